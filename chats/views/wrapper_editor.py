"""Writing a wrapper: the editor, its check while typing, its lint, conflicts, and the buttons of its lists.

Everything is one form. What is typed is checked and previewed by one request after a short pause; what is saved is the
draft. A record that can't be rendered leaves the last good preview where it is, marked as stale.
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from chats.domain.chat_templates import SPECIAL_TOKEN_NAMES, TemplateFailure
from chats.domain.recipes import TEXT_FIELDS, Recipe, RecipeError, recipe_from_texts, recipe_to_texts
from chats.domain.text_differences import diff_rows
from chats.models import Chat
from chats.queries.previews import SAMPLE, ChosenChat, Preview, chosen_chat, prefix_steps, preview
from chats.queries.wrapper_lint import lint_of
from chats.queries.wrappers import WrapperRow, recipe_of, wrapper_row
from chats.services import wrappers as services
from chats.services.wrappers import WrapperConflict
from chats.template_pool import shared_pool
from chats.wrapper_forms.conflicts import conflict_rows, merged_content
from chats.wrapper_forms.operations import field_of_operation, operate
from chats.wrapper_forms.parts import posted_data
from chats.wrapper_forms.shown import change_rows, field_view, group_views, option_views, wording_views
from chats.wrapper_forms.state import EditorState, posted_state, refreshed, state_of
from chats.wrapper_forms.templates import HABITS, argument_views
from eleanor_site.access import author
from eleanor_site.errors import too_many
from eleanor_site.limits import PREVIEWS, take
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, wants_part

CHATS_OFFERED = 30
SHOWN = ("prompt", "base", "turns")
MAX_MESSAGES_LISTED = 300


@author
@require_http_methods(["GET", "HEAD", "POST"])
def edit_wrapper(request: Request, slug: str) -> HttpResponse:
    """The editor. Buttons name what they do in `do`; `save` saves the draft."""
    row = _row(slug)
    stored = recipe_of(row.newest)
    if request.method != "POST":
        return _editor(request, row, state_of(stored, request.GET.get("tab", "form")), request.GET.dict())
    data = posted_data(request.POST)
    if "take" in data:
        return _settle(request, row, data)
    operation = data.get("do", "")
    if operation.partition(":")[0] in ("silence", "unsilence"):
        _silence(data, operation)
    elif operation:
        return _operate(request, row, data, stored, operation)
    state = posted_state(data, stored)
    if data.get("tab_to") in ("form", "json"):
        state = _changed_tab(state, data["tab_to"])
        return _editor(request, row, state, data, status=200 if state.is_good else 422)
    if "preview" in data:
        return _editor(request, row, state, data)
    if not state.is_good:
        if wants_part(request):
            return page(request, "chats/wrapper_edit.html", {"row": row, "unsaved": True}, part="saved", status=422)
        return _editor(request, row, state, data, status=422)
    return _save(request, row, state, data)


def _save(request: Request, row: WrapperRow, state: EditorState, data: dict[str, str]) -> HttpResponse:
    content = _content(state.recipe, data)
    try:
        draft = services.save_wrapper_draft(
            tenant=request.tenant,
            wrapper=row.wrapper,
            by=request.user,
            revision=_revision(data),
            content=content,
            name=data.get("name", "").strip()[:120],
        )
    except WrapperConflict as conflict:
        return _conflict(request, row, conflict, content)
    except Refused as refused:
        state.problems[""] = [str(refused)]
        return _editor(request, row, state, data, status=422)
    if wants_part(request):
        context = {"row": row, "draft": draft if draft.pk else None, "fresh": True}
        return page(request, "chats/wrapper_edit.html", context, part="saved")
    messages.success(request, _("Draft saved."))
    return redirect("chats:edit_wrapper", request.tenant.slug, row.wrapper.slug)


def _conflict(request: Request, row: WrapperRow, conflict: WrapperConflict, mine: dict[str, str]) -> HttpResponse:
    """Theirs and mine by path. A save while typing only says so; the page to decide on is one button away."""
    if wants_part(request):
        context = {"row": row, "conflict": conflict}
        return page(request, "chats/wrapper_edit.html", context, part="saved", status=409)
    context = {
        "row": row,
        "conflict": conflict,
        "rows": conflict_rows(conflict.theirs, mine, conflict.base),
        "mine": json.dumps(mine),
        "revision": conflict.revision,
    }
    return page(request, "chats/wrapper_conflict.html", context, status=409)


def _settle(request: Request, row: WrapperRow, data: dict[str, str]) -> HttpResponse:
    """Save what a person chose on the conflict page, path by path, on top of what is there now."""
    theirs = services.content_of(row.newest)
    try:
        mine = {name: str(value) for name, value in json.loads(data.get("mine", "")).items() if name in theirs}
        content = merged_content(
            theirs, mine, {k[5:] for k, v in data.items() if k.startswith("take.") and v == "mine"}
        )
        recipe_from_texts(content)
        services.save_wrapper_draft(
            tenant=request.tenant, wrapper=row.wrapper, by=request.user, revision=_revision(data), content=content
        )
    except WrapperConflict as conflict:
        return _conflict(request, row, conflict, mine)
    except (ValueError, AttributeError, Refused):
        messages.error(request, _("This choice can't be saved. What is on the server is unchanged."))
    else:
        messages.success(request, _("Draft saved."))
    return redirect("chats:edit_wrapper", request.tenant.slug, row.wrapper.slug)


def _operate(request: Request, row: WrapperRow, data: dict[str, str], stored: Recipe, operation: str) -> HttpResponse:
    """Add, remove, move or reset: nothing is saved by that. The answer is the field, or the page without script."""
    focus = operate(data, operation, posted_state(dict(data), stored).recipe)
    state = posted_state(data, stored)
    if not wants_part(request):
        return _editor(request, row, state, {**data, "focus": focus})
    view = field_view(state, field_of_operation(operation))
    if view is None:
        raise Http404
    context = {"row": row, "field": view, "focus": focus}
    answer = page(request, "chats/wrapper_fields.html", context, part="one")
    answer["HX-Trigger-After-Settle"] = "wrapper-changed"
    return answer


def _changed_tab(state: EditorState, tab: str) -> EditorState:
    """The same value in the other tab; what can't be read keeps its tab, so that nothing typed is lost."""
    if not state.is_good:
        return state
    state.tab = tab
    return refreshed(state)


def _silence(data: dict[str, str], operation: str) -> None:
    """Note a reason for a finding, or forget it. A finding is silenced with a reason only."""
    word, _colon, key = operation.partition(":")
    silenced = _object(data.get("silenced", ""))
    reason = data.get(f"reason.{key}", "").strip()[:300]
    if word == "silence" and reason:
        silenced[key] = reason
    elif word == "unsilence":
        silenced.pop(key, None)
    data["silenced"] = json.dumps(silenced)


@author
@require_POST
def check_wrapper(request: Request, slug: str) -> HttpResponse:
    """What is being typed: errors at their places, what differs from the base, and the prompt. Saves nothing."""
    wait = take(PREVIEWS, f"{request.user.pk}")
    if wait:
        return too_many(request, wait)
    row, data, state = _typed(request, slug)
    context = _context(row, state, data)
    if state.base_changed:
        context |= _form_context(refreshed(state)) | {"base_changed": True}
    return page(request, "chats/wrapper_check.html", context)


@author
@require_POST
def lint_wrapper(request: Request, slug: str) -> HttpResponse:
    """The findings for what is typed, those of the tenant's chats included."""
    wait = take(PREVIEWS, f"{request.user.pk}")
    if wait:
        return too_many(request, wait)
    row, data, state = _typed(request, slug)
    chat = chosen_chat(data.get("chat", ""), data.get("turn", ""))
    lint = lint_of(state.recipe, chat.record, _object(data.get("silenced", "")))
    context = {"row": row, "state": state, "lint": lint} | _arguments_context(state, data)
    return page(request, "chats/wrapper_lint.html", context, part="lint")


def _typed(request: Request, slug: str) -> tuple[WrapperRow, dict[str, str], EditorState]:
    """The wrapper, what was posted, and what that stands for."""
    row = _row(slug)
    data = posted_data(request.POST)
    return row, data, posted_state(data, recipe_of(row.newest))


def _editor(
    request: Request, row: WrapperRow, state: EditorState, given: dict[str, str], status: int = 200
) -> HttpResponse:
    context = _context(row, state, given)
    if not context["preview"].is_good:
        # Without script there is no preview left on the page: the saved state's stands in for it.
        kept = preview(context["chat"].record, recipe_of(row.newest), context["chat"].upto)
        context |= {"kept": kept if kept.is_good else None}
    silenced = _object(given.get("silenced", "") or row.newest.silenced)
    # The lint of a template takes hundreds of renders: the page asks for it when it is there, or a person by a button.
    at_once = not state.recipe.is_template or request.method == "POST"
    context |= {
        "draft": row.draft,
        "lint": lint_of(state.recipe, context["chat"].record, silenced) if at_once else None,
        "silenced": json.dumps(silenced),
        "model_name": given.get("model_name", row.newest.model_name),
        "name": given.get("name", row.wrapper.name),
        "focus": given.get("focus", ""),
        "revision": given.get("revision") or (row.draft.revision if row.draft else 0),
    }
    context |= _arguments_context(state, given)
    return page(request, "chats/wrapper_edit.html", context, status=status)


def _context(row: WrapperRow, state: EditorState, given: dict[str, str]) -> dict[str, Any]:
    chat = chosen_chat(given.get("chat", ""), given.get("turn", ""))
    shown = given.get("show", "") if given.get("show", "") in SHOWN else "prompt"
    made = Preview(problem=chat.problem) if chat.problem else preview(chat.record, state.recipe, chat.upto)
    context: dict[str, Any] = {
        "row": row,
        "chat": chat,
        "chats": _offered_chats(chat),
        "chat_changed": given.get("shown_chat", "") not in ("", chat.key),
        "messages_listed": _messages(chat),
        "show": shown,
        "preview": made,
        "state": state,
    }
    if shown == "base" and made.is_good and not state.recipe.is_template:
        base = preview(chat.record, state.recipe.unchanged(), chat.upto)
        context["base_rows"] = diff_rows(base.text, made.text) if base.is_good else []
    elif shown == "turns":
        try:
            context["steps"] = prefix_steps(chat.record, state.recipe)
        except (RecipeError, ValueError):
            context["steps"] = []
    return context | _form_context(state, made)


def _form_context(state: EditorState, made: Preview | None = None) -> dict[str, Any]:
    if state.recipe.is_template:
        return _template_context(state, made)
    return {
        "state": state,
        "groups": group_views(state),
        "options": option_views(state),
        "wording": wording_views(state),
        "changes": change_rows(state.recipe),
        "problems": state.problems.get("", []),
        "json_diagnostics": _json_diagnostics(state),
    }


def _arguments_context(state: EditorState, given: dict[str, str]) -> dict[str, Any]:
    """The arguments that the template reads, each with its value. Reading the whole syntax tree takes its time."""
    if not state.recipe.is_template:
        return {}
    read = shared_pool().variables(state.recipe.template, state.recipe.profile) if state.recipe.template else ()
    arguments = argument_views(state.data, () if isinstance(read, TemplateFailure) else read)
    names = " ".join(view.name for view in arguments)
    known = given.get("shown_arguments")
    return {
        "arguments": arguments,
        "argument_names": names,
        # Rows are written anew only when other names are read, so that nobody's typing is swapped away.
        "arguments_changed": known is not None and known != names and not isinstance(read, TemplateFailure),
    }


def _template_context(state: EditorState, made: Preview | None) -> dict[str, Any]:
    return {
        "diagnostics": _template_diagnostics(state, made),
        "tokens": [
            {"name": name, "value": state.data.get(f"t.{name}", ""), "on": state.data.get(f"t.{name}.is") == "on"}
            for name in SPECIAL_TOKEN_NAMES
        ],
        "named": [
            {"index": i, "name": name, "text": state.data.get(f"n.{i}.text", "")}
            for i, name in enumerate(state.recipe.named_templates)
        ],
        "habits": [
            {"name": f"h.{name}", "label": label, "on": state.data.get(f"h.{name}") == "on"} for name, label in HABITS
        ],
        "problems": state.problems.get("", []),
    }


def _template_diagnostics(state: EditorState, made: Preview | None) -> list[dict[str, Any]]:
    """The failure at its line, as the code field's component takes it."""
    if made is None or made.failure is None or made.failure.kind in ("input", "limit") or made.line is None:
        return []
    lines = state.data.get("template", "").split("\n")
    start = sum(len(line) + 1 for line in lines[: made.line - 1])
    text = lines[made.line - 1] if made.line <= len(lines) else ""
    indent = len(text) - len(text.lstrip())
    return [
        {
            "start": start + indent,
            "end": start + max(len(text), indent + 1),
            "line": made.line,
            "column": indent + 1,
            "severity": "error",
            "message": made.problem,
        }
    ]


def _json_diagnostics(state: EditorState) -> list[dict[str, Any]]:
    problem = state.json_problem
    if problem is None:
        return []
    end = min(len(state.json_text), problem.start + 1)
    shown = {"line": problem.line, "column": problem.column, "severity": "error", "message": problem.message}
    return [{"start": problem.start, "end": max(problem.start, end), **shown}]


def _messages(chat: ChosenChat) -> list[dict[str, Any]]:
    upto = len(chat.record.chat.messages) if chat.upto is None else chat.upto + 1
    first = max(0, upto - MAX_MESSAGES_LISTED)
    return [
        {"index": i, "number": i + 1, "role": message.role, "excerpt": " ".join(message.content[:160].split())[:80]}
        for i, message in enumerate(chat.record.chat.messages[first:upto], start=first)
    ]


def _offered_chats(chosen: ChosenChat) -> list[tuple[str, str]]:
    newest = [(str(chat.pk), str(chat)) for chat in Chat.objects.order_by("-id")[:CHATS_OFFERED]]
    offered = [*newest, (SAMPLE, _("Sample conversation"))]
    if chosen.key not in dict(offered):
        offered.insert(0, (chosen.key, chosen.title))
    return offered


def _content(recipe: Recipe, data: dict[str, str]) -> dict[str, str]:
    texts = {name: text for name, text in recipe_to_texts(recipe).items() if name in TEXT_FIELDS}
    silenced = json.dumps(_object(data.get("silenced", "")))
    return {**texts, "model_name": data.get("model_name", "")[:200], "silenced": silenced}


def _object(text: str) -> dict[str, str]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v)[:300] for k, v in value.items()} if isinstance(value, dict) else {}


def _revision(data: dict[str, str]) -> int:
    text = data.get("revision", "")
    return whole_number(text, otherwise=-1, most=10**8 - 1)


def _row(slug: str) -> WrapperRow:
    row = wrapper_row(slug)
    if row is None:
        raise Http404
    return row

"""Wrappers for lists and choices: the built-ins, which every tenant has, and the tenant's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F

from chats.domain.recipes import Recipe, RecipeError, recipe_from_texts
from chats.domain.settings_lint import CorpusFacts, TokenSeen, special_tokens_of
from chats.domain.shown_prompt import TOKEN
from chats.domain.wrappers import WRAPPERS, RegisteredWrapper
from chats.models import Chat, ChatVersion, Wrapper, WrapperDraft, WrapperVersion
from chats.models.wrappers import CONTENT_FIELDS

DEFAULT_BUILT_IN = "ChatMLChatWrapper"
# Needs a template of its own, so it's no format that can be chosen as it stands.
NOT_CHOSEN = "TemplateChatWrapper"
LOOKED_AT = 200
_TOKENS_LOOKED_FOR = 12


def built_ins() -> list[RegisteredWrapper]:
    """The built-in formats that can be chosen as they stand."""
    return [entry for entry in WRAPPERS.values() if entry.id != NOT_CHOSEN]


@dataclass(frozen=True)
class WrapperRow:
    """A wrapper of the tenant with its newest version and its draft; one of them is there."""

    wrapper: Wrapper
    version: WrapperVersion | None
    draft: WrapperDraft | None

    @property
    def content(self) -> WrapperVersion | WrapperDraft:
        """What holds: the newest version, or the draft as long as there is none."""
        found = self.version or self.draft
        assert found is not None
        return found

    @property
    def newest(self) -> WrapperVersion | WrapperDraft:
        """What an editor starts with: the draft, or the newest version."""
        found = self.draft or self.version
        assert found is not None
        return found

    @property
    def base_label(self) -> str:
        registered = WRAPPERS.get(self.content.base)
        return registered.label if registered else ""


def wrapper_rows(*, archived: bool = False) -> list[WrapperRow]:
    """The tenant's wrappers by name."""
    wrappers = list(
        Wrapper.objects.filter(archived_at__isnull=not archived).select_related("by").order_by("name", "slug")
    )
    drafts = {d.wrapper_id: d for d in WrapperDraft.objects.filter(wrapper__in=wrappers).select_related("by")}
    versions: dict[int, WrapperVersion] = {}
    for version in WrapperVersion.objects.filter(wrapper__in=wrappers).select_related("by").order_by("number"):
        versions[version.wrapper_id] = version
    rows = [WrapperRow(w, versions.get(w.pk), drafts.get(w.pk)) for w in wrappers]
    return [row for row in rows if row.version or row.draft]


def wrapper_row(slug: str) -> WrapperRow | None:
    if "\0" in slug:
        return None
    wrapper = Wrapper.objects.select_related("by").filter(slug=slug).first()
    if wrapper is None:
        return None
    version = WrapperVersion.objects.filter(wrapper=wrapper).select_related("by").order_by("-number").first()
    draft = WrapperDraft.objects.filter(wrapper=wrapper).select_related("by").first()
    return WrapperRow(wrapper, version, draft) if version or draft else None


def recipe_of(row: WrapperVersion | WrapperDraft) -> Recipe:
    """What a stored record means."""
    return recipe_from_texts({name: getattr(row, name) for name in CONTENT_FIELDS})


@dataclass(frozen=True)
class Choice:
    """A wrapper that a preview can be made with. `key` in addresses is a built-in's id, SLUG, SLUG@draft or SLUG@N."""

    key: str
    label: str
    recipe: Recipe
    wrapper: Wrapper | None = None
    detail: str = ""


def built_in_choice(id: str) -> Choice | None:
    registered = WRAPPERS.get(id)
    if registered is None or id == NOT_CHOSEN:
        return None
    return Choice(id, registered.label, Recipe(base=id))


def choice(key: str) -> Choice | None:
    """The wrapper that an address names; None if there is none."""
    found = built_in_choice(key)
    if found is not None:
        return found
    slug, _at, state = key.partition("@")
    row = wrapper_row(slug)
    if row is None:
        return None
    content: WrapperVersion | WrapperDraft | None = row.content
    if state == "draft":
        content = row.draft
    elif state.isdecimal() and len(state) < 9:
        content = WrapperVersion.objects.filter(wrapper=row.wrapper, number=int(state)).first()
    elif state:
        content = None
    return None if content is None else choice_of(row.wrapper, content)


def choice_of(wrapper: Wrapper, content: WrapperVersion | WrapperDraft) -> Choice:
    if isinstance(content, WrapperVersion):
        return Choice(wrapper.slug, wrapper.name, recipe_of(content), wrapper, f"v{content.number}")
    return Choice(f"{wrapper.slug}@draft", wrapper.name, recipe_of(content), wrapper, "draft")


def choice_labels() -> list[tuple[str, str, str]]:
    """Key, label and group (`own` or `built_in`) of everything that can be chosen; the tenant's own first."""
    own = [(row.wrapper.slug, row.wrapper.name, "own") for row in wrapper_rows()]
    return [*own, *((entry.id, entry.label, "built_in") for entry in built_ins())]


def corpus_facts(recipe: Recipe) -> CorpusFacts:
    """What the newest chats of the tenant hold that this wrapper stumbles over. Looks at LOOKED_AT chats at most."""
    newest = list(Chat.objects.order_by("-id").values_list("pk", flat=True)[:LOOKED_AT])
    versions = ChatVersion.objects.filter(chat__in=newest, number=F("chat__version_count"))
    with_system = versions.filter(content__contains='"role": "system"').count()
    seen = []
    for token in _tokens(recipe)[:_TOKENS_LOOKED_FOR]:
        # Contents are JSON text: what has to be escaped there is looked for in its escaped form.
        written = json.dumps(token, ensure_ascii=False)[1:-1]
        found = versions.filter(content__contains=written).order_by("-chat_id").values_list("chat_id", flat=True)
        chats = list(found)
        if chats:
            seen.append(TokenSeen(token, len(chats), chats[0]))
    return CorpusFacts(len(newest), with_system, tuple(seen))


# What stands in the stored JSON text of a chat that has the case. Where there are calls there were tools, too.
_CASES: Final = {
    "system": ('"role": "system"',),
    "developer": ('"role": "developer"',),
    "tools": ('"tools": ["', '"tools": [{', '"tool_calls": [{'),
    "calls": ('"tool_calls": [{',),
    "reasoning": ('"reasoning": "',),
}


def missing_cases() -> frozenset[str]:
    """The cases (keys of _CASES) that none of the newest chats has. Empty where there are no chats to tell by."""
    newest = list(Chat.objects.order_by("-id").values_list("pk", flat=True)[:LOOKED_AT])
    if not newest:
        return frozenset()
    versions = ChatVersion.objects.filter(chat__in=newest, number=F("chat__version_count"))
    return frozenset(
        case
        for case, texts in _CASES.items()
        if not any(versions.filter(content__contains=text).exists() for text in texts)
    )


def _tokens(recipe: Recipe) -> list[str]:
    """The control tokens that this wrapper writes, those of its settings and those around messages."""
    from chats.domain.sample_chat import sample_record
    from chats.domain.spans import render_record

    try:
        wrapper = recipe.wrapper()
        pieces = render_record(sample_record(), wrapper).pieces
    except (RecipeError, ValueError):
        return []
    found = dict.fromkeys(_tokens_in(pieces))
    found.update(dict.fromkeys(special_tokens_of(wrapper.settings, TOKEN)))
    return list(found)


def _tokens_in(pieces: Any) -> Iterator[str]:
    for piece in pieces:
        if piece.kind == "special_text":
            yield from re.findall(TOKEN, piece.text)


def versions_of(wrapper: Wrapper) -> list[WrapperVersion]:
    return list(WrapperVersion.objects.filter(wrapper=wrapper).select_related("by").order_by("-number"))

"""What wrappers make of chats: one prompt, several side by side, findings, and which wrapper suits a model."""

from __future__ import annotations

from typing import Any, Literal

from django.http import Http404
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chats.api.exchange import Exchange, read_chat
from chats.api.wrappers import WrapperContent, content_texts
from chats.domain import ChatRecord
from chats.domain.chat_templates.files import (
    TOKENIZER_CONFIG,
    TemplateFileError,
    TemplateFiles,
    read_file,
    read_pasted,
)
from chats.domain.chat_templates.requests import MAX_TEMPLATE_BYTES
from chats.domain.recipes import DEFAULT_TEMPLATE, recipe_from_texts
from chats.domain.sample_chat import sample_record
from chats.queries.chats import record_of, stored_version
from chats.queries.previews import Preview, chosen_chat, preview, side_by_side
from chats.queries.resolving import which_wrapper
from chats.queries.wrapper_lint import Lint, LintItem, lint_of
from chats.queries.wrappers import choice
from chats.wrapper_sentences import file_sentence
from eleanor_site import limits
from eleanor_site.api_access import ApiRequest, KeyRouter, take_from
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import Id, Index, Strict
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["wrappers"])


class RenderIn(Strict):
    """What to render: a stored chat by id, or a conversation in the exchange form; up to a message, with a nudge."""

    chat: Id | None = None
    conversation: Exchange | None = None
    upto: Index | None = Field(default=None, description="Index of the last message to render.")
    nudge: str | None = Field(default=None, max_length=20_000, description="Text to append as a user message.")


class RenderAnswer(BaseModel):
    """The prompt as the model reads it; `problem` says why there is none. `left_out` has no place in it."""

    text: str
    problem: str
    left_out: list[str]


class SideBySideIn(RenderIn):
    wrappers: list[str] = Field(
        min_length=1,
        max_length=4,
        description="Keys as `render` takes them.",
        examples=[["ChatMLChatWrapper", "mine@draft"]],
    )


class PromptPiece(BaseModel):
    """A stretch of a prompt. `message` is the stored message that it comes from; `differs`: another one lacks it."""

    kind: str
    text: str
    message: int | None
    added: bool
    differs: bool
    look_alike: bool = Field(description="Stored text that equals a special token.")


class SideOut(BaseModel):
    """One wrapper's prompt. `pieces` are its end when it is long; `cut` characters before them are left out."""

    wrapper: str
    label: str
    problem: str
    pieces: list[PromptPiece]
    cut: int
    left_out: list[str]


class SideBySide(BaseModel):
    sides: list[SideOut]


class LintIn(Strict):
    """A wrapper by its key, or a content that is being written; on a stored chat, or a sample conversation."""

    wrapper: str | None = Field(default=None, max_length=120)
    content: WrapperContent | None = None
    chat: Id | None = None


class LintFinding(BaseModel):
    """`key` names it in `silenced`; `path` or `line` say where it is; `answer` is why it was silenced."""

    key: str
    severity: Literal["error", "warning", "info"]
    message: str
    path: str
    line: int | None
    chat: int | None
    answer: str

    @classmethod
    def of(cls, item: LintItem) -> LintFinding:
        return cls(
            key=item.key,
            severity=item.severity,
            message=str(item.sentence),
            path=item.path,
            line=item.line,
            chat=item.chat,
            answer=item.reason,
        )


class LintAnswer(BaseModel):
    """Findings, errors first; those that were answered for; and why nothing could be looked at, if so."""

    findings: list[LintFinding]
    silenced: list[LintFinding]
    problem: str

    @classmethod
    def of(cls, lint: Lint) -> LintAnswer:
        return cls(
            findings=[LintFinding.of(item) for item in lint.items],
            silenced=[LintFinding.of(item) for item in lint.silenced],
            problem=str(lint.problem),
        )


class WhichIn(Strict):
    """What is known of a model; each may be left out."""

    file_name: str = Field(default="", max_length=300, examples=["Mistral-7B-Instruct-v0.3.Q4_K_M.gguf"])
    architecture: str = Field(default="", max_length=100, examples=["llama"])
    model_name: str = Field(default="", max_length=300)
    template: str = Field(default="", max_length=MAX_TEMPLATE_BYTES, description="Its chat template.")
    tokenizer_config: str = Field(
        default="", max_length=MAX_TEMPLATE_BYTES * 8, description="Or its tokenizer_config.json, as text."
    )


class WhichAnswer(BaseModel):
    """The wrapper to take: a built-in one with options, or the template itself; empty when nothing suits. And why."""

    wrapper: str
    label: str
    is_template: bool
    options: dict[str, Any]
    reasons: list[str]


@router.operation("POST", "/wrappers/which", KeyScope.WRAPPERS_READ, answers=WhichAnswer)
def find_wrapper(request: ApiRequest, body: WhichIn) -> WhichAnswer:
    """Which wrapper suits a model, and why. A template is tried out."""
    take_from(limits.PREVIEWS, request.tenant)
    files = _files(body)
    found = which_wrapper(
        file_name=body.file_name,
        architecture=body.architecture,
        template=_first_template(files) if files else "",
        metadata={"general.name": body.model_name} if body.model_name else {},
        tokens=dict(files.tokens) if files else {},
    )
    return WhichAnswer(
        wrapper=found.wrapper_id,
        label=str(found.label),
        is_template=found.is_template,
        options=dict(found.options),
        reasons=[str(reason) for reason in found.reasons],
    )


@router.operation("POST", "/wrappers/preview", KeyScope.WRAPPERS_READ, answers=SideBySide)
def render_side_by_side(request: ApiRequest, body: SideBySideIn) -> SideBySide:
    """The prompts that one to four wrappers make of one chat, with the pieces that differ marked."""
    choices = []
    for n, key in enumerate(body.wrappers):
        found = choice(key)
        if found is None:
            raise wrong(f"wrappers[{n}]", "unknown", _("There is no wrapper with this name."))
        choices.append(found)
    record = _record(request, body)
    made = side_by_side(record, choices, body.upto, body.nudge)
    sides = zip(choices, made, strict=True)
    return SideBySide(sides=[_side(one.key, str(one.label), shown) for one, shown in sides])


@router.operation("POST", "/wrappers/preview/lint", KeyScope.WRAPPERS_READ, answers=LintAnswer)
def lint_wrapper(request: ApiRequest, body: LintIn) -> LintAnswer:
    """What its author should look at in a wrapper, in the tenant's chats included."""
    take_from(limits.PREVIEWS, request.tenant)
    if (body.wrapper is None) == (body.content is None):
        raise wrong("wrapper", "one_of", _("Give either a wrapper or a content."))
    record = sample_record()
    if body.chat is not None:
        on = chosen_chat(str(body.chat))
        if on.key != str(body.chat):
            raise wrong("chat", "unknown", _("There is no chat with this id."))
        record = on.record
    if body.content is None:
        found = choice(body.wrapper or "")
        if found is None:
            raise wrong("wrapper", "unknown", _("There is no wrapper with this name."))
        return LintAnswer.of(lint_of(found.recipe, record, {}))
    recipe = recipe_from_texts(content_texts(body.content))
    return LintAnswer.of(lint_of(recipe, record, body.content.silenced or {}))


@router.operation("POST", "/wrappers/{key}/render", KeyScope.WRAPPERS_READ, answers=RenderAnswer)
def render(request: ApiRequest, key: str, body: RenderIn) -> RenderAnswer:
    """The prompt that a wrapper makes of a chat. `key` is that of a list entry, `SLUG@draft` or `SLUG@N`."""
    found = choice(key)
    if found is None:
        raise Http404
    shown = preview(_record(request, body), found.recipe, body.upto, body.nudge)
    return RenderAnswer(text=shown.text, problem=str(shown.problem), left_out=[str(text) for text in shown.left_out])


def _files(body: WhichIn) -> TemplateFiles | None:
    path = "tokenizer_config" if body.tokenizer_config.strip() else "template"
    try:
        if body.tokenizer_config.strip():
            return read_file(TOKENIZER_CONFIG, body.tokenizer_config.encode())
        return read_pasted(body.template) if body.template.strip() else None
    except TemplateFileError as error:
        raise wrong(path, error.code, str(file_sentence(error))) from None


def _first_template(files: TemplateFiles) -> str:
    return files.templates.get(DEFAULT_TEMPLATE) or next(iter(files.templates.values()))


def _record(request: ApiRequest, body: RenderIn) -> ChatRecord:
    """The chat that is meant. Raises Problem."""
    if (body.chat is None) == (body.conversation is None):
        raise wrong("chat", "one_of", _("Give either a stored chat or a conversation."))
    take_from(limits.PREVIEWS, request.tenant)
    if body.chat is not None:
        version = stored_version(body.chat)
        if version is None:
            raise wrong("chat", "unknown", _("There is no chat with this id."))
        record = record_of(version)
    else:
        record = read_chat(body.conversation, "conversation")
    if body.upto is not None and body.upto > len(record.chat.messages) - 1:
        raise wrong("upto", "out_of_range", _("The chat ends before this message."))
    return record


def _side(key: str, label: str, shown: Preview) -> SideOut:
    pieces = [
        PromptPiece(
            kind=run.kind,
            text=run.text,
            message=run.message,
            added=run.added,
            differs=run.differs,
            look_alike=run.look_alike,
        )
        for run in shown.runs
    ]
    return SideOut(
        wrapper=key,
        label=label,
        problem=str(shown.problem),
        pieces=pieces,
        cut=shown.cut,
        left_out=[str(text) for text in shown.left_out],
    )

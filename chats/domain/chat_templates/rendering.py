"""Rendering a chat with a template: the text that `apply_chat_template(tokenize=False)` gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from jinja2.runtime import Context

from chats.domain.chat_templates.compiling import SHARED_CACHE, CompiledTemplate, TemplateCache
from chats.domain.chat_templates.continuing import cut_at_tag, tag_message
from chats.domain.chat_templates.environment import RunningRender, running_render
from chats.domain.chat_templates.failures import ADDRESS, explain
from chats.domain.chat_templates.preparing import checked_messages, checked_offers, plain, unchanged, with_reasoning
from chats.domain.chat_templates.provenance import Tracer
from chats.domain.chat_templates.requests import (
    MAX_OUTPUT_CHARACTERS,
    LimitExceeded,
    Rendered,
    RenderRequest,
    TemplateFailure,
)


def render(request: RenderRequest, cache: TemplateCache = SHARED_CACHE, owned: bool = False) -> Rendered:
    """The text for a chat. The request's values are copied, so nothing the template does can reach the caller's.

    `owned` spares the copy of values that have just been read from JSON and that nobody else holds.
    Raises what transformers raises: ValueError and TypeError for arguments that don't go together, TemplateError from
    the template's author, any other exception of jinja2 and Python; and LimitExceeded.
    """
    copied: Callable[[Any], Any] = unchanged if owned else plain
    messages = checked_messages(request, copied)
    compiled = cache.get(request.template, request.profile)
    tools, documents = checked_offers(request, copied)
    if request.profile == "current":
        messages = [with_reasoning(m) for m in messages]
    continued = tag_message(request, messages) if request.continue_final_message else None
    context = compiled.template.new_context(
        {
            **compiled.template.globals,
            **copied(request.tokens),
            **copied(request.kwargs),
            "messages": messages,
            "tools": tools,
            "documents": documents,
            "add_generation_prompt": request.add_generation_prompt,
        },
        shared=True,
    )
    rendering = RunningRender(request.now, request.profile == "classic")
    tracer = Tracer(compiled, messages) if request.provenance else None
    token = running_render.set(rendering)
    try:
        text = _run(compiled, context, rendering, tracer, _AddressMask(request))
    finally:
        running_render.reset(token)
    if continued is not None:
        text = cut_at_tag(text, continued, request.profile)
    spans = tuple(rendering.spans)
    return Rendered(text, spans, tracer.origins(len(text)) if tracer is not None else ())


def render_or_explain(
    request: RenderRequest, cache: TemplateCache = SHARED_CACHE, owned: bool = False
) -> Rendered | TemplateFailure:
    """As `render`, with every exception told as a value."""
    try:
        return render(request, cache, owned)
    except Exception as error:
        return explain(error)


def _run(
    compiled: CompiledTemplate, context: Context, rendering: RunningRender, tracer: Tracer | None, mask: _AddressMask
) -> str:
    """Piece by piece, so that an endless text is stopped and every piece can be traced."""
    running = compiled.template.root_render_func(context)
    if tracer is None and not compiled.notes_spans:
        return _run_plainly(running, mask)
    pieces: list[str] = []
    for piece in running:
        if "0x" in piece:
            piece = mask(piece)
        if tracer is not None:
            tracer.note(running, piece, rendering.length)
        pieces.append(piece)
        rendering.pieces += 1
        rendering.length += len(piece)
        if rendering.length > MAX_OUTPUT_CHARACTERS:
            raise LimitExceeded("output", allowed=MAX_OUTPUT_CHARACTERS)
    return "".join(pieces)


def _run_plainly(running: Iterator[str], mask: _AddressMask) -> str:
    """The same where nobody asks what has been put out so far."""
    pieces: list[str] = []
    add, length = pieces.append, 0
    for piece in running:
        add(piece)
        length += len(piece)
        if length > MAX_OUTPUT_CHARACTERS:
            raise LimitExceeded("output", allowed=MAX_OUTPUT_CHARACTERS)
    text = "".join(pieces)
    return "".join([mask(piece) if "0x" in piece else piece for piece in pieces]) if "0x" in text else text


class _AddressMask:
    """Writes an object's address in memory as 0xADDR; what the chat or the template says itself stays."""

    def __init__(self, request: RenderRequest) -> None:
        self._request = request
        self._given: str | None = None

    def __call__(self, piece: str) -> str:
        return ADDRESS.sub(self._masked, piece)

    def _masked(self, match: re.Match[str]) -> str:
        if self._given is None:
            r = self._request
            given = (r.template, r.messages, r.tools, r.documents, r.kwargs, r.tokens)
            self._given = json.dumps(plain(given), ensure_ascii=False)
        return match[0] if match[0] in self._given else " at 0xADDR"

"""Chat templates in the jinja2 sandbox: the text that `apply_chat_template(tokenize=False)` gives.

Behaviour, profiles and the reasons for both are in chat-templates.md. The module needs the standard library and jinja2
only, since the worker process (`chats/template_worker.py`) imports it without anything else of the product.

The sandbox keeps a template away from Python's internals, not from the processor: whoever renders a text that
somebody typed goes through `chats.template_pool`, which bounds time and memory.
"""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

import jinja2
import jinja2.ext
from jinja2 import meta, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

Profile = Literal["current", "classic"]
PROFILES: tuple[Profile, ...] = ("current", "classic")

SPECIAL_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
PASSED_NAMES = ("messages", "tools", "documents", "add_generation_prompt")

MAX_TEMPLATE_BYTES = 128 * 1024
MAX_OUTPUT_CHARACTERS = 2_000_000
CACHED_TEMPLATES = 64

# One value under three names; the first is the one that templates read (transformers 5.21 and later).
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
CONTINUE_TAG = "CONTINUE_FINAL_MESSAGE_TAG "

_TEMPLATE_FILE = "<template>"
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation")
_LINES = re.compile("[^\n]*\n|[^\n]+")
_MAX_MESSAGE_CHARACTERS = 100_000
_MAX_PIECES = 20_000
_MAX_SPANS = 20_000
# Shorter contents ("ok", "1") turn up in template text and other messages too often to say where they came from.
_SHORTEST_TRACED_CONTENT = 4

FailureKind = Literal["message", "syntax", "error", "input", "limit"]


class LimitExceeded(Exception):
    """A bound of the product, not a mistake that Python or jinja2 found. `limit` is its code, such as "output"."""

    def __init__(self, limit: str, **args: int) -> None:
        super().__init__(limit)
        self.limit = limit
        self.args_by_name = args


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What `apply_chat_template` would be called with, the chat in plain JSON values.

    `tokens` holds the special tokens that the model defines, by name; `kwargs` win over them. `now` is the local time
    that `strftime_now` sees (None: the present). `continue_final_message` is true or the name of the field to continue.
    `keep_nulls` leaves out step 2 of the preparation, the dropping of null keys, which not every caller does.
    """

    template: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    profile: Profile = "current"
    add_generation_prompt: bool = False
    continue_final_message: bool | str = False
    provenance: bool = False
    now: datetime | None = None
    keep_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """Characters `start` to `end` of the text: written by template line `line` (from 1) for message `message`, the
    index in the request's messages, or None where no message had a part in it."""

    start: int
    end: int
    line: int
    message: int | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, the character ranges inside `{% generation %}`, and, if asked for, the origin of every character."""

    text: str
    spans: tuple[tuple[int, int], ...] = ()
    provenance: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateFailure:
    """Why there is no text.

    `kind` is "message" (the template's author speaks, by `raise_exception`), "syntax", "error" (while rendering),
    "input" (the chat and arguments don't go together, before the template ran) or "limit" (`limit` names it:
    "time", "memory", "depth", "output", "template_size", "request_size", "busy" or "stopped").
    `error_class` and `message` are Python's and jinja2's own words; `line` is the template line, from 1, if known.
    """

    kind: FailureKind
    error_class: str
    message: str
    line: int | None = None
    limit: str | None = None
    args: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A name that a template reads from outside, with what its text tells about the values it expects."""

    name: str
    line: int
    choices: tuple[str, ...] = ()
    looks_boolean: bool = False


@dataclass(slots=True)
class _Rendering:
    """What the running render shares with the tag and the global that are called from inside it."""

    now: datetime | None
    classic: bool = False
    pieces: int = 0
    length: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def overlooks_span(self) -> bool:
        """Older versions took "nothing put out yet" for "not asked for spans"."""
        return self.classic and not self.pieces and not self.spans


_rendering: ContextVar[_Rendering | None] = ContextVar("rendering", default=None)


class GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`: the body unchanged, its place noted.

    A CallBlock, so that the trimming of blanks around the tag is what transformers has. As there, the start counts
    what was put out before: inside a macro or a captured block that is not where the text ends up.
    """

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as an instance attribute of the base class

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_note_span"), [], [], body).set_lineno(line)

    def _note_span(self, caller: Macro) -> str:
        text: str = caller()
        rendering = _rendering.get()
        if rendering is not None and not rendering.overlooks_span():
            if len(rendering.spans) >= _MAX_SPANS:
                raise LimitExceeded("output", allowed=_MAX_SPANS)
            rendering.spans.append((rendering.length, rendering.length + len(text)))
        return text


class LineKeepingGenerator(CodeGenerator):
    """Marks the line of plain template text, too, which jinja2 leaves with the line of what stood before it."""

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        for line, children in groupby(node.nodes, key=lambda child: child.lineno):
            part = nodes.Output(list(children), lineno=line)
            self.newline(part)
            super().visit_Output(part, frame)


class TemplateDict:
    """`dict` for templates: can be called, can be asked for `fromkeys`, and nothing else."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


def _check_namespace_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(
            "Chat templates cannot store underscore-prefixed attributes on a namespace, but got "
            f"{name!r}. Please rename the attribute."
        )


class TemplateNamespace(Namespace):
    """`namespace` for templates: refuses names that start with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_namespace_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_namespace_name(name)
        super().__setitem__(name, value)


def raise_exception(message: str) -> None:
    raise jinja2.exceptions.TemplateError(message)


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON in Python's form: no HTML escapes, and keys stay in their order."""
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format: str) -> str:
    rendering = _rendering.get()
    now = rendering.now if rendering is not None else None
    return (now or datetime.now()).strftime(format)


def make_environment(profile: Profile) -> ImmutableSandboxedEnvironment:
    """The sandbox with the options, filters and globals that chat templates are written for."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    # Same text, a fifth less time to compile, and no expression of the template is computed while compiling.
    environment.optimized = False
    environment.code_generator_class = LineKeepingGenerator
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    if profile == "current":
        environment.globals["dict"] = TemplateDict()
        environment.globals["namespace"] = TemplateNamespace
    return environment


_environments: dict[Profile, ImmutableSandboxedEnvironment] = {p: make_environment(p) for p in PROFILES}


class CompiledTemplate:
    """A template ready to run, with the way back from a line of its Python code to a line of its text."""

    def __init__(self, text: str, profile: Profile) -> None:
        self.text = text
        self.template = _environments[profile].from_string(text)
        # All names are gathered for every render, and a plain dict gives them in a fraction of a chain's time.
        self.template.globals = dict(self.template.globals)
        self.notes_spans = _GENERATION_TAG.search(text) is not None
        self._code_lines: list[int] = []
        self._template_lines: list[int] = []

    def line_of(self, code_line: int) -> int:
        if not self._code_lines:
            pairs = sorted(self.template.debug_info, key=lambda pair: pair[1])
            self._template_lines = [line for line, _ in pairs]
            self._code_lines = [code for _, code in pairs]
        at = bisect_right(self._code_lines, code_line) - 1
        return self._template_lines[at] if at >= 0 else 1


class TemplateCache:
    """The last compiled templates by text and profile. Safe to share between threads."""

    def __init__(self, size: int = CACHED_TEMPLATES) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[Profile, str], CompiledTemplate] = OrderedDict()

    def get(self, text: str, profile: Profile = "current") -> CompiledTemplate:
        """Compiled anew if need be; raises whatever jinja2 and Python raise while compiling."""
        key = (profile, text)
        with self._lock:
            known = self._compiled.get(key)
            if known is not None:
                self._compiled.move_to_end(key)
                return known
        if len(text) > MAX_TEMPLATE_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
            raise LimitExceeded("template_size", allowed=MAX_TEMPLATE_BYTES)
        compiled = CompiledTemplate(text, profile)
        with self._lock:
            self._compiled[key] = compiled
            while len(self._compiled) > self._size:
                self._compiled.popitem(last=False)
        return compiled

    def clear(self) -> None:
        with self._lock:
            self._compiled.clear()


_cache = TemplateCache()


def render(request: RenderRequest, cache: TemplateCache = _cache, owned: bool = False) -> Rendered:
    """The text for a chat. The request's values are copied, so nothing the template does can reach the caller's.

    `owned` spares the copy of values that have just been read from JSON and that nobody else holds.
    Raises what transformers raises: ValueError and TypeError for arguments that don't go together, TemplateError from
    the template's author, any other exception of jinja2 and Python; and LimitExceeded.
    """
    copied: Callable[[Any], Any] = _same if owned else plain
    messages = _checked_messages(request, copied)
    compiled = cache.get(request.template, request.profile)
    tools, documents = _checked_offers(request, copied)
    if request.profile == "current":
        messages = [_with_reasoning(m) for m in messages]
    continued = _tag_message(request, messages) if request.continue_final_message else None
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
    rendering = _Rendering(request.now, request.profile == "classic")
    tracer = _Tracer(compiled, messages) if request.provenance else None
    token = _rendering.set(rendering)
    try:
        text = _run(compiled, context, rendering, tracer, _AddressMask(request))
    finally:
        _rendering.reset(token)
    if continued is not None:
        text = _cut_at_tag(text, continued, request.profile)
    spans = tuple(rendering.spans)
    return Rendered(text, spans, tracer.origins(len(text)) if tracer is not None else ())


def render_or_explain(
    request: RenderRequest, cache: TemplateCache = _cache, owned: bool = False
) -> Rendered | TemplateFailure:
    """As `render`, with every exception told as a value."""
    try:
        return render(request, cache, owned)
    except Exception as error:
        return explain(error)


def check(text: str, profile: Profile = "current", cache: TemplateCache = _cache) -> TemplateFailure | None:
    """Why the text doesn't compile; None if it does."""
    try:
        cache.get(text, profile)
    except Exception as error:
        return explain(error)
    return None


def explain(error: Exception) -> TemplateFailure:
    """An exception as a value: kind, class, message and template line (chat-templates.md, "Errors")."""
    name = type(error).__name__
    if isinstance(error, LimitExceeded):
        return TemplateFailure("limit", name, "", None, error.limit, error.args_by_name)
    if isinstance(error, MemoryError):
        return TemplateFailure("limit", name, "", _line_of(error), "memory")
    if isinstance(error, RecursionError):
        return TemplateFailure("limit", name, _words(error), _line_of(error), "depth")
    if isinstance(error, jinja2.TemplateSyntaxError):
        return TemplateFailure("syntax", name, error.message or "", error.lineno)
    line = _line_of(error)
    if type(error) is jinja2.TemplateError:
        return TemplateFailure("message", name, _words(error), line)
    if isinstance(error, SyntaxError):
        # Python refuses what jinja2 wrote, such as too many blocks inside each other; its line is of that code.
        return TemplateFailure("syntax", name, error.msg, None)
    return TemplateFailure("input" if line is None else "error", name, _words(error), line)


def _words(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:
        # A message may be any value of the template, and printing one may fail again.
        return ""
    return _ADDRESS.sub(" at 0xADDR", text)[:_MAX_MESSAGE_CHARACTERS]


def _line_of(error: BaseException) -> int | None:
    """The line of the innermost template frame that the error passed through; None if it passed none."""
    found = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == _TEMPLATE_FILE:
            found = at
        at = at.tb_next
    if found is None:
        return None
    template = found.tb_frame.f_globals.get("__jinja_template__")
    # Without the template's own frame jinja2 has rewritten the traceback, and the line is the text's already.
    return template.get_corresponding_lineno(found.tb_lineno) if template is not None else found.tb_lineno


def plain(value: Any) -> Any:
    """A copy of plain JSON values only; what is none becomes its type's name, as in transformers."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return f"<{type(value).__name__}>"


def _same(value: Any) -> Any:
    return value


def _checked_messages(request: RenderRequest, copied: Callable[[Any], Any]) -> list[dict[str, Any]]:
    current = request.profile == "current"
    if not request.messages:
        if current:
            raise ValueError("Cannot apply chat template to an empty conversation. Provide at least one message.")
        # What the older versions stumble over, in their words.
        raise IndexError("list index out of range")
    for message in request.messages:
        if type(message) is not dict and not isinstance(message, Mapping):
            raise TypeError(f"Chat messages should be dicts, dataclasses or pydantic models, but got {message!r}.")
    if request.continue_final_message and request.add_generation_prompt:
        raise ValueError(
            "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you "
            "want the model to continue the final message, and add_generation_prompt when you want to add a header "
            "that will prompt it to start a new assistant message instead."
        )
    messages: list[dict[str, Any]] = copied(request.messages)
    if not current or request.keep_nulls:
        return messages
    return [_without_nulls(m) if None in m.values() else m for m in messages]


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None}


def _checked_offers(request: RenderRequest, copied: Callable[[Any], Any]) -> tuple[Any, Any]:
    tools, documents = copied(request.tools), copied(request.documents)
    if tools is not None and not all(isinstance(tool, dict) for tool in tools):
        raise ValueError(
            "Tools should either be a JSON schema, or a callable function with type hints and a docstring suitable "
            "for auto-conversion to a schema."
        )
    if documents is not None and not all(isinstance(document, dict) for document in documents):
        raise TypeError("Documents should be a list of dicts with 'title' and 'text' keys!")
    return tools, documents


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """The reasoning under the names that templates read; the key order shows when a template prints a message."""
    if message.keys().isdisjoint(REASONING_FIELDS):
        return message
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name) is not None), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _tag_message(request: RenderRequest, messages: list[dict[str, Any]]) -> str:
    """Put the tag behind the value to continue, in place; returns the value without it."""
    last = messages[-1]
    if request.profile == "classic":
        # Any field name counts as true here, and a missing content is a KeyError.
        fields, value = ["content"], last["content"]
    else:
        wanted = request.continue_final_message if isinstance(request.continue_final_message, str) else "content"
        value = last.get(wanted)
        if value is None:
            raise ValueError(f'continue_final_message is set but the final message has no "{wanted}" to continue!')
        fields = [wanted]
        if wanted in REASONING_FIELDS:
            fields = [name for name in REASONING_FIELDS if last.get(name) == value]
        if not any(name in request.template for name in fields):
            raise ValueError(
                f'continue_final_message is set to "{wanted}" but this is not an accepted field in the chat_template'
            )
    if isinstance(value, list):
        return _tag_last_text_part(value)
    for name in fields:
        last[name] = last[name] + CONTINUE_TAG
    return str(value)


def _tag_last_text_part(parts: list[Any]) -> str:
    for part in reversed(parts):
        if "text" in part:
            text: str = part["text"]
            part["text"] = text + CONTINUE_TAG
            return text
    raise ValueError("continue_final_message is set but we could not find any text to continue in the final message!")


def _cut_at_tag(text: str, value: str, profile: Profile) -> str:
    tag = CONTINUE_TAG.strip()
    if value.strip() not in text or tag not in text:
        message = (
            "continue_final_message is set but the final message does not appear in the chat after applying the chat "
            "template! This can happen if the chat template deletes portions of the final message. Please verify the "
            "chat template and final message in your chat to ensure they are compatible."
        )
        if profile == "current":
            message += f"Final message to continue: {value.strip()}\nRendered chat:\n{text}"
        raise ValueError(message)
    at = text.rindex(tag)
    if text.startswith(CONTINUE_TAG, at):
        return text[:at]
    # The template trimmed the message, and with it the tag's blank: what stood before the tag would be trimmed, too.
    return text[:at].rstrip()


def _run(
    compiled: CompiledTemplate, context: Context, rendering: _Rendering, tracer: _Tracer | None, mask: _AddressMask
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
        return _ADDRESS.sub(self._masked, piece)

    def _masked(self, match: re.Match[str]) -> str:
        if self._given is None:
            r = self._request
            given = (r.template, r.messages, r.tools, r.documents, r.kwargs, r.tokens)
            self._given = json.dumps(plain(given), ensure_ascii=False)
        return match[0] if match[0] in self._given else " at 0xADDR"


class _Tracer:
    """Where each piece of the output came from: the running frame knows its line and holds the message.

    A loop over messages has the very dict among its locals, and the innermost loop counts. A message picked by
    `{% set m = messages[0] %}` counts on lines that name it. Where the content of another message stands in the
    piece, that part is told to be its own: templates like to put the system message into the first user turn.
    """

    def __init__(self, compiled: CompiledTemplate, messages: list[dict[str, Any]]) -> None:
        self._compiled = compiled
        self._index_by_id = {id(message): index for index, message in enumerate(messages)}
        self._lines = template_lines(compiled.text)
        self._contents = _traceable_contents(messages, compiled.text)
        self._origins: list[Origin] = []

    def note(self, running: Any, piece: str, start: int) -> None:
        if len(self._origins) >= _MAX_PIECES:
            return
        frame = running
        while frame.gi_yieldfrom is not None and hasattr(frame.gi_yieldfrom, "gi_frame"):
            frame = frame.gi_yieldfrom
        line = self._compiled.line_of(frame.gi_frame.f_lineno)
        message = self._message_of(frame.gi_frame.f_locals, line)
        if "\n" in piece[:-1] and self._is_template_text(piece, line):
            for number, part in enumerate(_LINES.findall(piece)):
                self._add(start, start + len(part), line + number, message)
                start += len(part)
            return
        at = start
        for begin, end, index in self._contents_in(piece, message):
            self._add(at, start + begin, line, message)
            self._add(start + begin, start + end, line, index)
            at = start + end
        self._add(at, start + len(piece), line, message)

    def _is_template_text(self, piece: str, line: int) -> bool:
        """Whether the piece stands in the template as it is, so that each of its lines has a line there."""
        count = piece.count("\n")
        return piece in "\n".join(self._lines[line - 1 : line + count]) + "\n"

    def _add(self, start: int, end: int, line: int, message: int | None) -> None:
        if start == end:
            return
        last = self._origins[-1] if self._origins else None
        if last is not None and last.end == start and (last.line, last.message) == (line, message):
            self._origins[-1] = Origin(last.start, end, line, message)
            return
        self._origins.append(Origin(start, end, line, message))

    def _message_of(self, variables: dict[str, Any], line: int) -> int | None:
        best, depth = None, 0
        for name, value in variables.items():
            index = self._index_by_id.get(id(value))
            if index is None or not name.startswith("l_"):
                continue
            level, _, own_name = name[2:].partition("_")
            if not level.isdigit() or int(level) < depth:
                continue
            if int(level) == 0 and not self._line_names(line, own_name):
                continue
            best, depth = index, int(level)
        return best

    def _line_names(self, line: int, name: str) -> bool:
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return re.search(rf"\b{re.escape(name)}\b", text) is not None

    def _contents_in(self, piece: str, own: int | None) -> list[tuple[int, int, int]]:
        if len(piece) < _SHORTEST_TRACED_CONTENT:
            return []
        found: list[tuple[int, int, int]] = []
        for content, index in self._contents:
            at = piece.find(content) if index != own else -1
            if at >= 0 and all(at >= end or at + len(content) <= begin for begin, end, _ in found):
                found.append((at, at + len(content), index))
        return sorted(found)

    def origins(self, length: int) -> tuple[Origin, ...]:
        """In order of the text and cut at its end, which continuing a message moves forward."""
        return tuple(
            o if o.end <= length else Origin(o.start, length, o.line, o.message)
            for o in self._origins
            if o.start < length
        )


def _traceable_contents(messages: list[dict[str, Any]], template: str) -> list[tuple[str, int]]:
    """Texts that one message alone has and the template hasn't, longest first, with the message's index."""
    owners: dict[str, int | None] = {}
    for index, message in enumerate(messages):
        for text in _texts_of(message.get("content")):
            owners[text] = index if text not in owners else None
    texts = [(t, i) for t, i in owners.items() if i is not None and t not in template]
    return sorted(texts, key=lambda pair: -len(pair[0]))


def _texts_of(content: Any) -> Iterator[str]:
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and len(text.strip()) >= _SHORTEST_TRACED_CONTENT:
            yield text.strip()


def template_lines(text: str) -> list[str]:
    """The lines as jinja2 counts them: by CRLF, CR and LF, and by no other character that ends a line elsewhere."""
    return re.split("\r\n|\r|\n", text)


def select_template(
    templates: Mapping[str, str], name: str | None = None, tools: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """The template that `apply_chat_template` takes from several named ones.

    The one asked for; else, with tools (an empty list counts), `tool_use`; else `default`. Raises ValueError with the
    names there are.
    """
    if name is not None and name in templates:
        return templates[name]
    if name is None and tools is not None and "tool_use" in templates:
        return templates["tool_use"]
    if name is None and "default" in templates:
        return templates["default"]
    raise ValueError(
        "This model has multiple chat templates with no default specified! Please either pass a chat template or the "
        "name of the template you wish to use to the `chat_template` argument. Available template names are "
        f"{sorted(templates)}."
    )


def undeclared_names(text: str, profile: Profile = "current") -> frozenset[str]:
    """Names that some path through the template reads before it sets them, those of the sandbox left out."""
    return frozenset(meta.find_undeclared_variables(_environments[profile].parse(text)))


def variables(text: str, profile: Profile = "current") -> tuple[TemplateVariable, ...]:
    """The keyword arguments that a template can be given, in alphabetical order.

    What the product passes itself is left out, and so is a name that the template sets before it first reads it: a
    variable that only one branch sets looks undeclared, but is not meant to be passed. Raises as compiling does.
    """
    tree = _environments[profile].parse(text)
    first_use = _first_uses(tree)
    choices: dict[str, set[str]] = {}
    booleans: set[str] = set()
    for comparison in tree.find_all(nodes.Compare):
        _note_choices(comparison, choices)
    for test in tree.find_all((nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not)):
        booleans.update(_tested_names(test))
    found = []
    # Last, since it computes constant parts of the tree and puts their values in place.
    undeclared = meta.find_undeclared_variables(tree)
    for name in sorted(undeclared - {*PASSED_NAMES, *SPECIAL_TOKEN_NAMES}):
        context, line = first_use.get(name, ("load", 1))
        if context == "load":
            known = tuple(sorted(choices.get(name, ())))
            found.append(TemplateVariable(name, line, known, name in booleans and not known))
    return tuple(found)


def _first_uses(tree: nodes.Template) -> dict[str, tuple[str, int]]:
    """How and at which line each name is met first when the template is read from the top, values before targets."""
    first: dict[str, tuple[str, int]] = {}
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Name):
            first.setdefault(node.name, (node.ctx, node.lineno))
            continue
        children = list(node.iter_child_nodes())
        if isinstance(node, (nodes.Assign, nodes.AssignBlock, nodes.For)):
            # The target stands first in the text, but the value is read before it is set.
            target = node.target
            read = [c for c in children if c is not target]
            children = [read[0], target, *read[1:]] if isinstance(node, nodes.For) else [*read, target]
        waiting.extend(reversed(children))
    return first


def _note_choices(comparison: nodes.Compare, choices: dict[str, set[str]]) -> None:
    if not isinstance(comparison.expr, nodes.Name):
        return
    for operand in comparison.ops:
        values = operand.expr.items if isinstance(operand.expr, (nodes.List, nodes.Tuple)) else [operand.expr]
        for value in values:
            if isinstance(value, nodes.Const) and isinstance(value.value, str):
                choices.setdefault(comparison.expr.name, set()).add(value.value)


def _tested_names(test: nodes.Node) -> Iterator[str]:
    """Names whose truth alone decides: `if x`, `not x`, `x and …`, `x is true`."""
    sides: list[nodes.Node] = []
    if isinstance(test, (nodes.If, nodes.CondExpr)):
        sides = [test.test]
    elif isinstance(test, (nodes.And, nodes.Or)):
        sides = [test.left, test.right]
    elif isinstance(test, nodes.Not):
        sides = [test.node]
    for side in sides:
        if isinstance(side, nodes.Test) and side.name in ("true", "false"):
            side = side.node
        if isinstance(side, nodes.Name):
            yield side.name


@dataclass(frozen=True, slots=True)
class ServerHabits:
    """What servers do to a chat before the template sees it; each is a switch beside the preview."""

    parse_arguments: bool = False
    join_text_parts: bool = False
    empty_null_content: bool = False


def as_served(messages: Sequence[Mapping[str, Any]], habits: ServerHabits) -> list[dict[str, Any]]:
    """A copy of the messages after these habits.

    Arguments given as JSON text become the object (empty text: an empty one; other text stays), a content that is
    a list of text parts only becomes their texts joined by line breaks (vLLM), and a null content an empty string.
    """
    served: list[dict[str, Any]] = plain(messages)
    for message in served:
        if habits.parse_arguments:
            _parse_arguments(message)
        content = message.get("content")
        if habits.join_text_parts and isinstance(content, list) and all(_is_text_part(p) for p in content):
            message["content"] = "\n".join(p if isinstance(p, str) else p["text"] for p in content)
        if habits.empty_null_content and "content" in message and content is None:
            message["content"] = ""
    return served


def _is_text_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def _parse_arguments(message: dict[str, Any]) -> None:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
            continue
        try:
            function["arguments"] = json.loads(function["arguments"]) if function["arguments"] else {}
        except (ValueError, RecursionError):
            continue

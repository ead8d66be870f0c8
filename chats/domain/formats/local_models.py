"""Ollama exchanges and LM Studio conversation files (section 4, 23)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import Exchanges, run_of_exchanges, set_aside
from chats.domain.formats.marks import is_ollama_response
from chats.domain.formats.openai_chat import call_of
from chats.domain.formats.parts import Content, plain_text, read_content, read_part
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

OLLAMA: Final = "ollama"
LMSTUDIO: Final = "lmstudio"
_COUNTS: Final = ("prompt_eval_count", "eval_count")


def recognise_ollama(head: Head) -> float:
    return share(head, _fits_ollama)


def _fits_ollama(row: dict[str, Any]) -> bool:
    if "exchanges" in row:
        pairs = mappings(row["exchanges"])
        return any(is_ollama_response(p.get("response")) for p in pairs)
    if isinstance(row.get("request"), dict):
        return is_ollama_response(row.get("response"))
    return is_ollama_response(row) or is_ollama_response(row.get("response"))


def read_ollama(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if rows and all(is_ollama_response(r) and "messages" not in r for r in rows):
        yield from read_whole(document, reading, lambda chunks: _answers(mappings(chunks), reading))
        return
    chain = Exchanges(reading, "messages", lambda request, response: _completed(request, response, reading))
    yield from read_rows(document.rows(), reading, lambda row: _convert(mapping(row), reading, chain))
    yield from chain.finish()


def _answers(chunks: list[dict[str, Any]], reading: Reading) -> Iterator[Item]:
    """A file of chunks: each answer ends with the chunk that says `done`."""
    held: list[dict[str, Any]] = []
    for chunk in chunks:
        held.append(chunk)
        if chunk.get("done") is True:
            yield from _completed({}, held, reading)
            held = []
    if held:
        yield from _completed({}, held, reading)


def _convert(row: dict[str, Any], reading: Reading, chain: Exchanges) -> Iterator[Item]:
    if "exchanges" in row:
        yield from run_of_exchanges(
            row["exchanges"], reading, "messages", lambda request, response: _completed(request, response, reading)
        )
    elif isinstance(row.get("request"), dict):
        yield from chain.add(row["request"], row.get("response"))
    else:
        yield from _completed(row, row.get("response") if "messages" in row or "prompt" in row else row, reading)


def _completed(request: dict[str, Any], response: Any, reading: Reading) -> Iterator[Item]:
    draft = ChatDraft(reading, OLLAMA)
    draft.tools = offered_tools(request.get("tools"), reading.cleaner)
    draft.metadata = scalars({k: request.get(k) for k in ("model", "format")})
    if system := text(request.get("system")):
        draft.add("system", system)
    if isinstance(request.get("prompt"), str):
        _add(draft, {"role": "user", "content": request["prompt"], "images": request.get("images")})
    for message in reading.objects(request.get("messages")):
        _add(draft, message)
    chunks = mappings(response) if isinstance(response, list) else mappings([response])
    if chunks:
        _add_answer(draft, chunks)
    yield draft.record()


def _add(draft: ChatDraft, message: dict[str, Any], **given: Any) -> None:
    role = label(message.get("role")) or "assistant"
    content = read_content(message.get("content"))
    for _ in sequence(message.get("images")):
        content.add_placeholder("image", {})
    name = label(message.get("tool_name")) or label(message.get("name"))
    draft.add(
        role,
        content,
        name=name,
        tool_call_id=(label(message.get("tool_call_id")) or draft.open_call(name)) if role == "tool" else None,
        calls=[call_of(c) for c in mappings(message.get("tool_calls"))],
        reasoning=text(message.get("thinking")),
        **given,
    )


def _add_answer(draft: ChatDraft, chunks: list[dict[str, Any]]) -> None:
    """The chunks of one answer, joined."""
    joined: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
    for chunk in chunks:
        message = mapping(chunk.get("message"))
        joined["content"] += text(message.get("content")) or text(chunk.get("response")) or ""
        joined["thinking"] += text(message.get("thinking")) or text(chunk.get("thinking")) or ""
        joined["tool_calls"] += mappings(message.get("tool_calls"))
    last = chunks[-1]
    _add(
        draft,
        joined,
        finish=text(last.get("done_reason")),
        model=text(last.get("model")),
        usage={k: last[k] for k in _COUNTS if isinstance(last.get(k), int)} or None,
        created_at=moment(last.get("created_at")),
    )


def recognise_lmstudio(head: Head) -> float:
    return share(head, lambda row: any("versions" in mapping(m) for m in sequence(row.get("messages"))))


def read_lmstudio(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: _conversations(mapping(row), reading))


def _conversations(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    messages = reading.objects(row.get("messages"))
    for i, message in enumerate(messages):
        versions = mappings(message.get("versions"))
        chosen = _chosen(message)
        others = [v for n, v in enumerate(versions) if n != chosen]
        reading.report.other_branches += len(others)
        for other in others if reading.options.all_branches else []:
            taken = [*messages[:i], {"versions": [other], "currentlySelected": 0}]
            record = _conversation(row, taken, reading)
            if not isinstance(record, Problem):
                record.external_id = None
            yield set_aside(record, "branch", reading)
    yield _conversation(row, messages, reading)


def _chosen(message: dict[str, Any]) -> int:
    chosen = message.get("currentlySelected")
    return chosen if isinstance(chosen, int) and 0 <= chosen < len(sequence(message.get("versions"))) else 0


def _conversation(row: dict[str, Any], messages: list[dict[str, Any]], reading: Reading) -> Item:
    draft = ChatDraft(reading, LMSTUDIO)
    draft.external_id = label(row.get("createdAt"))
    draft.title = text(row.get("name"))
    if model := text(at(row, "lastUsedModel", "identifier")):
        draft.metadata["model"] = model
    if system := text(row.get("systemPrompt")):
        draft.add("system", system)
    for message in messages:
        versions = mappings(message.get("versions"))
        if not versions:
            reading.report.note_skipped("no_record", reading.place)
            continue
        _add_version(draft, versions[_chosen(message)])
    if not len(draft):
        raise ReadingProblem("no_messages")
    return draft.record()


def _add_version(draft: ChatDraft, version: dict[str, Any]) -> None:
    role = label(version.get("role")) or "user"
    name = text(at(version, "senderInfo", "senderName"))
    if version.get("type") != "multiStep":
        content = Content()
        for part in sequence(version.get("content")):
            known = mapping(part)
            if known.get("type") == "file":
                is_image = known.get("fileType") == "image"
                content.add_placeholder("image" if is_image else "file", {**known, "name": known.get("fileIdentifier")})
            else:
                read_part(content, part)
        draft.add(role, content, model=name if role == "assistant" else None)
        return
    steps = _Steps(draft, role, name)
    for step in mappings(version.get("steps")):
        steps.add(step)
    steps.close()


class _Steps:
    """The steps of one version; each tool result ends an answer."""

    def __init__(self, draft: ChatDraft, role: str, model: str | None) -> None:
        self.draft = draft
        self._role = role
        self._model = model
        self._clear()

    def _clear(self) -> None:
        self._content = Content()
        self._calls: list[Call] = []
        self._finish: str | None = None
        self._answer: int | None = None

    def add(self, step: dict[str, Any]) -> None:
        is_thinking = at(step, "style", "type") == "thinking"
        for part in mappings(step.get("content")):
            kind = part.get("type")
            if kind == "toolCallRequest":
                if self._answer is not None:
                    self._clear()
                call_id = label(part.get("toolCallRequestId")) or label(part.get("callId"))
                self._calls.append(Call(call_id, label(part.get("name")) or "unknown", part.get("parameters")))
            elif kind == "toolCallResult":
                self._result(part)
            elif is_thinking:
                self._next()
                if told := text(part.get("text")):
                    self._content.reasoning.append(told)
            else:
                self._next()
                read_part(self._content, part)
        finish = text(at(step, "genInfo", "stats", "stopReason"))
        if finish is not None:
            self._finish = finish
            if self._answer is not None:
                self.draft.extend_answer(self._answer, finish=finish)
        self._model = text(at(step, "genInfo", "indexedModelIdentifier")) or self._model

    def _next(self) -> None:
        if self._answer is not None:
            self._clear()

    def _flush(self) -> int:
        if self._answer is None:
            self._answer = self.draft.add(
                self._role, self._content, calls=self._calls, finish=self._finish, model=self._model
            )
        return self._answer

    def _result(self, part: dict[str, Any]) -> None:
        self._flush()
        call_id = label(part.get("toolCallRequestId")) or label(part.get("toolCallId"))
        value = part.get("content")
        inner = self.draft.reading.cleaner.parse_if_json(value) if isinstance(value, str) else value
        if isinstance(inner, list) and inner and all(mapping(p).get("type") == "text" for p in inner):
            value = plain_text(inner)
        self.draft.add("tool", shown(value), tool_call_id=call_id or self.draft.open_call(None))

    def close(self) -> None:
        if self._answer is None and (self._content.texts or self._content.reasoning or self._calls):
            self._flush()

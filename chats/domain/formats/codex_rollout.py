"""Codex sessions: rollout files new and old, and the output of `exec --json` (section 4, 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.exchanges import set_aside
from chats.domain.formats.parts import plain_text
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_whole, share
from chats.domain.formats.response_items import ItemReader, is_item
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, shown, text, whole

FORMAT: Final = "codex-rollout"
_PAYLOAD_TYPES: Final = frozenset(
    {"session_meta", "response_item", "request_item", "event_msg", "turn_context", "compacted"}
)
_EXEC_TYPES: Final = re.compile(r"^(?:thread\.|turn\.|item\.)[a-z_.]+$|^error$")
_TAGS: Final = ("environment_context", "user_instructions", "INSTRUCTIONS")
_AGENTS: Final = "# AGENTS.md instructions"
_REQUEST: Final = re.compile(r"^#+\s*My request[^\n]*\n+(?P<request>.*)", re.DOTALL | re.MULTILINE)
_TITLE: Final = 200


def recognise(head: Head) -> float:
    if head.shape not in ("lines", "object", "values"):
        return 0.0
    if _is_old(head):
        return 1.0
    return share(
        head,
        lambda r: (
            (text(r.get("type")) in _PAYLOAD_TYPES and isinstance(r.get("payload"), dict))
            or (isinstance(r.get("type"), str) and _EXEC_TYPES.match(r["type"]) is not None and "payload" not in r)
        ),
    )


def _is_old(head: Head) -> bool:
    """Older files: a line with id and time of the session, then bare items."""
    first = mapping(head.rows[0]) if head.rows else {}
    if head.shape == "object" or "type" in first or not {"id", "timestamp"} <= first.keys():
        return False
    rest = [mapping(r) for r in head.rows[1:]]
    return any(map(is_item, rest)) and sum(is_item(r) or "record_type" in r for r in rest) * 2 > len(rest)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_whole(document, reading, lambda records: _session(records, reading))


def _session(records: list[Any], reading: Reading) -> Iterator[Item]:
    if any(str(mapping(r).get("type")).startswith(("thread.", "item.")) for r in records):
        yield _exec_session(records, reading)
        return
    rollout = _Rollout(reading)
    for i, record in enumerate(reading.objects(records)):
        yield from rollout.take(record, f"record {i}")
    yield rollout.finish()


class _Rollout:
    """One session file; a compaction starts a new part of the chat."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.parts = 0
        self.metadata: dict[str, Any] = {}
        self.session: str | None = None
        self._start()

    def _start(self) -> None:
        self.draft = ChatDraft(self.reading, FORMAT)
        self.items = ItemReader(self.draft)
        self.title: str | None = None

    def take(self, record: dict[str, Any], ref: str) -> Iterator[Item]:
        kind = label(record.get("type"))
        payload = mapping(record.get("payload"))
        if kind in ("response_item", "request_item"):
            self._item(payload, record.get("timestamp"), ref)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self.items.model(text(payload.get("model")))
            for key in ("model", "approval_policy", "effort"):
                if (value := text(payload.get(key))) is not None:
                    self.metadata[key] = value
            sandbox = payload.get("sandbox_policy")
            found = text(sandbox) or text(mapping(sandbox).get("mode")) or text(mapping(sandbox).get("type"))
            if found is not None:
                self.metadata["sandbox"] = found
        elif kind == "event_msg":
            if payload.get("type") == "turn_aborted":
                self.metadata["interrupted"] = True
                self.items.close()
        elif kind == "compacted":
            yield from self._compact(payload)
        elif is_item(record):
            self._item(record, record.get("timestamp"), ref)
        elif kind is None and "record_type" not in record and {"id", "timestamp"} <= record.keys():
            self._meta(record)
        else:
            reason = kind or record.get("record_type") or "unknown"
            self.reading.report.note_skipped(f"record:{reason}"[:60], self.reading.place)

    def finish(self) -> Item:
        self.items.close()
        self.draft.external_id = f"{self.session}/{self.parts}" if self.session and self.parts else self.session
        self.draft.title = self.title
        self.draft.metadata.update(self.metadata)
        if self.parts:
            self.draft.metadata["part"] = self.parts + 1
        return self.draft.record()

    def _meta(self, payload: dict[str, Any]) -> None:
        if self.session is None:
            self.session = label(payload.get("id"))
        self.metadata.update(scalars(payload, without=frozenset({"id", "instructions"})))
        self.metadata.update({f"git_{k}": v for k, v in scalars(mapping(payload.get("git"))).items()})

    def _item(self, item: dict[str, Any], timestamp: Any, ref: str) -> None:
        if item.get("role") == "user" and item.get("type", "message") == "message":
            content = plain_text(item.get("content"))
            if is_context(content):
                item = {**item, "role": "system"}
            elif self.title is None:
                self.title = request_of(content)
        self.items.add(item, moment(timestamp), ref)

    def _compact(self, payload: dict[str, Any]) -> Iterator[Item]:
        """The history so far was replaced: what came before is a part of its own."""
        self.reading.report.note_skipped("compaction", self.reading.place)
        if len(self.draft):
            part = self.finish()
            yield set_aside(part, "earlier_part", self.reading)
            self.parts += 1
            self._start()
        for item in mappings(payload.get("replacement_history")):
            self._item(item, None, "replacement_history")
        summary = text(payload.get("message"))
        if summary is not None and not payload.get("replacement_history"):
            self.draft.add("system", summary)


def is_context(content: str) -> bool:
    """Whether a user message holds nothing but what the program tells of its surroundings."""
    rest = content.strip()
    if not rest:
        return False
    while rest:
        if rest.startswith(_AGENTS):
            start = rest.find("<INSTRUCTIONS>")
            if start < 0:
                return True
            rest = rest[start:]
        tag = next((t for t in _TAGS if rest.startswith(f"<{t}>")), None)
        end = rest.find(f"</{tag}>") if tag is not None else -1
        if tag is None or end < 0:
            return False
        rest = rest[end + len(tag) + 3 :].lstrip()
    return True


def request_of(content: str) -> str | None:
    """What a person asked, without the preamble that an editor puts before it; one line, as a title."""
    found = _REQUEST.search(content)
    told = (found.group("request") if found else content).strip()
    return told.splitlines()[0][:_TITLE] if told else None


def _exec_session(records: list[Any], reading: Reading) -> Item:
    """The output of `exec --json`: a command is call and result in one."""
    draft = ChatDraft(reading, FORMAT)
    items = ItemReader(draft)
    for i, record in enumerate(reading.objects(records)):
        kind = label(record.get("type")) or ""
        if kind == "thread.started":
            draft.external_id = label(record.get("thread_id"))
        elif kind == "turn.completed":
            items.usage(mapping(record.get("usage")))
            items.close()
        elif kind in ("turn.failed", "error"):
            draft.metadata["error"] = shown(at(record, "error", "message") or record.get("message"))[:500]
            items.finish_reason("failed")
        elif kind == "item.completed":
            _add_exec_item(items, mapping(record.get("item")), f"record {i}")
    items.close()
    if not len(draft):
        raise ReadingProblem("no_messages")
    return draft.record()


def _add_exec_item(items: ItemReader, item: dict[str, Any], ref: str) -> None:
    kind = label(item.get("type")) or label(item.get("item_type")) or "unknown"
    if kind in ("agent_message", "assistant_message"):
        items.add({"type": "message", "role": "assistant", "content": item.get("text")}, ref=ref)
    elif kind == "reasoning":
        items.add(item, ref=ref)
    elif kind == "command_execution":
        failed = item.get("status") == "failed" and whole(item.get("exit_code")) is None
        items.add_pair(
            Call(label(item.get("id")), "command_execution", {"command": item.get("command")}),
            shown(item.get("aggregated_output")),
            "error" if failed else None,
            whole(item.get("exit_code")),
            ref,
        )
    elif kind in ("file_change", "mcp_tool_call", "web_search", "todo_list", "collab_tool_call"):
        _add_other(items, kind, item, ref)
    elif kind == "error":
        items.draft.metadata["error"] = shown(item.get("message"))[:500]
    else:
        items.draft.reading.report.note_unknown_field(f"items[].{kind}")


def _add_other(items: ItemReader, kind: str, item: dict[str, Any], ref: str) -> None:
    call_id = label(item.get("id"))
    failed = item.get("status") == "failed" or bool(item.get("error"))
    if kind == "mcp_tool_call":
        name = label(item.get("tool")) or kind
        arguments = item.get("arguments")
        result = item.get("error") or item.get("result")
        told = plain_text(at(result, "content")) or shown(result)
    else:
        name = kind
        arguments = {k: v for k, v in item.items() if k in ("changes", "query", "items", "prompt") and v is not None}
        told = "" if kind == "web_search" else shown(item.get("status"))
    items.add_pair(Call(call_id, name, arguments), told, "error" if failed else "ok", None, ref)

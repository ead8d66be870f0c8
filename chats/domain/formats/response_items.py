"""Items of the Responses API and of Codex rollouts: messages, calls, outputs and reasoning (section 4, 5 and 11)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.drafts import Call, ChatDraft
from chats.domain.formats.parts import Content, read_content
from chats.domain.formats.values import at, label, mapping, mappings, sequence, shown, text, whole

ITEM_TYPES: Final = frozenset(
    {"message", "reasoning", "compaction", "compaction_summary", "item_reference", "mcp_list_tools"}
    | {"mcp_approval_request", "mcp_approval_response"}
)
_NAMES: Final = {"local_shell_call": "local_shell", "shell_call": "shell", "computer_call": "computer"}
_SKIPPED: Final = frozenset(
    {"mcp_approval_request", "mcp_approval_response", "mcp_list_tools", "compaction", "compaction_summary"}
)
_WRAPPER: Final = frozenset({"id", "type", "status", "call_id", "output", "outputs", "results", "result", "error"})


def is_item(value: Any) -> bool:
    """Whether an object is an item of this kind."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    kind = value["type"]
    if kind == "message":
        return isinstance(value.get("role"), str)
    return kind in ITEM_TYPES or is_call(kind) or is_output(kind)


def is_call(kind: str) -> bool:
    return kind.endswith("_call")


def is_output(kind: str) -> bool:
    return kind.endswith("_call_output") or (kind.endswith("_output") and kind.startswith(("function", "custom")))


class ItemReader:
    """Adds items to a draft. What the model says between two inputs is one answer, reasoning included."""

    def __init__(self, draft: ChatDraft) -> None:
        self.draft = draft
        self._open: int | None = None
        self._reasoning: list[str] = []
        self._model: str | None = None

    def model(self, name: str | None) -> None:
        """The model that the answers from here on are from."""
        self._model = name or self._model

    def add(self, item: dict[str, Any], created_at: datetime | None = None, ref: str | None = None) -> None:
        """Take in one item; unknown types are counted."""
        kind = label(item.get("type")) or ("message" if "role" in item else "unknown")
        if kind == "message":
            self._add_message(item, created_at, ref)
        elif kind == "reasoning":
            self._reasoning.extend(reasoning_texts(item))
        elif is_call(kind):
            self._add_call(kind, item, created_at, ref)
        elif is_output(kind):
            self._add_output(item, created_at, ref)
        elif kind in _SKIPPED:
            self._note_skipped(kind, item)
        else:
            self.draft.reading.report.note_unknown_field(f"items[].{kind}")

    def finish_reason(self, raw: str | None) -> None:
        """Why the answer at hand ended."""
        if raw is not None and self._open is not None:
            self.draft.extend_answer(self._open, finish=raw)

    def usage(self, counts: dict[str, Any]) -> None:
        if counts and self._open is not None:
            self.draft.extend_answer(self._open, usage=counts)

    def close(self) -> None:
        """The answer at hand is over; reasoning that nothing followed is an answer without text."""
        if self._reasoning:
            self._answer(None, None)
        self._open = None

    def _note_skipped(self, kind: str, item: dict[str, Any]) -> None:
        self.draft.reading.report.note_skipped(f"item:{kind}", self.draft.reading.place)
        if kind.startswith("mcp_approval"):
            kept = {k: v for k, v in item.items() if isinstance(v, (str, bool, int))}
            self.draft.metadata.setdefault("approvals", []).append(kept)

    def _add_message(self, item: dict[str, Any], created_at: datetime | None, ref: str | None) -> None:
        unknown: list[str] = []
        content = read_content(item.get("content"), unknown)
        for name in unknown:
            self.draft.reading.report.note_unknown_field(f"items[].{name}")
        if item.get("role") == "assistant":
            self._answer(created_at, ref, content=content)
            if item.get("status") == "incomplete":
                self.finish_reason("incomplete")
            return
        self.close()
        self.draft.add(label(item.get("role")) or "user", content, created_at=created_at, ref=ref)

    def _answer(
        self,
        created_at: datetime | None,
        ref: str | None,
        *,
        content: Content | None = None,
        call: Call | None = None,
    ) -> int:
        reasoning, self._reasoning = "\n".join(self._reasoning) or None, []
        calls = [call] if call is not None else []
        if self._open is None:
            self._open = self.draft.add(
                "assistant",
                content if content is not None else "",
                calls=calls,
                reasoning=reasoning,
                model=self._model,
                created_at=created_at,
                ref=ref,
            )
        else:
            known = content or Content()
            self.draft.extend_answer(self._open, known.text, calls, reasoning=reasoning, parts=known.parts)
        return self._open

    def _add_call(self, kind: str, item: dict[str, Any], created_at: datetime | None, ref: str | None) -> None:
        call = call_of(kind, item)
        index = self._answer(created_at, ref, call=call)
        carried = carried_result(kind, item)
        if carried is None:
            return
        content, status, exit_code = carried
        call_id = self.draft.details[index].tool_calls[-1].id
        self.close()
        self.draft.add(
            "tool", content, tool_call_id=call_id, status=status, exit_code=exit_code, created_at=created_at, ref=ref
        )

    def add_pair(
        self, call: Call, content: str | Content, status: ResultStatus | None, exit_code: int | None, ref: str | None
    ) -> None:
        """Add a call whose result is known at once."""
        index = self._answer(None, ref, call=call)
        call_id = self.draft.details[index].tool_calls[-1].id
        self.close()
        self.draft.add("tool", content, tool_call_id=call_id, status=status, exit_code=exit_code, ref=ref)

    def _add_output(self, item: dict[str, Any], created_at: datetime | None, ref: str | None) -> None:
        self.close()
        content, exit_code = self._output(item.get("output", item.get("content")))
        failed = item.get("is_error") is True or mapping(item.get("output")).get("success") is False
        status: ResultStatus | None = "error" if failed else None
        self.draft.add(
            "tool",
            content,
            tool_call_id=label(item.get("call_id")) or label(item.get("id")),
            status=status,
            exit_code=exit_code,
            created_at=created_at,
            ref=ref,
        )

    def _output(self, value: Any) -> tuple[str | Content, int | None]:
        """The text of an output, which may be JSON text with the text and the exit code in it."""
        if isinstance(value, str):
            inner = self.draft.reading.cleaner.parse_object(value)
            if inner is None or not isinstance(inner.get("output"), str) or inner.keys() - {"output", "metadata"}:
                return value, None
            return inner["output"], whole(at(inner, "metadata", "exit_code"))
        if isinstance(value, list):
            if value and all("stdout" in mapping(v) or "outcome" in mapping(v) for v in value):
                texts = [t for v in value for k in ("stdout", "stderr") if (t := text(mapping(v).get(k)))]
                return "\n".join(texts), whole(at(value, -1, "outcome", "exit_code"))
            return read_content(value), None
        if isinstance(value, dict):
            if value.get("type") == "computer_screenshot":
                content = Content()
                content.add_placeholder("image", value)
                return content, None
            told = text(value.get("content")) or text(value.get("output"))
            return told or shown(value), whole(at(value, "metadata", "exit_code"))
        return shown(value), None


def call_of(kind: str, item: dict[str, Any]) -> Call:
    """The call that an item is: `call_id` is the id to match, not `id`."""
    name = label(item.get("name")) or _NAMES.get(kind) or kind.removesuffix("_call")
    call_id = label(item.get("call_id")) or label(item.get("id"))
    for key in ("arguments", "parameters", "input", "action", "code"):
        if item.get(key) is not None:
            value = item[key]
            return Call(call_id, name, {"code": value} if key == "code" else value)
    rest = {k: v for k, v in item.items() if k not in _WRAPPER and k not in ("name", "server_label") and v is not None}
    return Call(call_id, name, rest if kind not in ("function_call", "custom_tool_call") else None)


def carried_result(kind: str, item: dict[str, Any]) -> tuple[str | Content, ResultStatus | None, int | None] | None:
    """The result that a built-in tool's item brings with it, if it does."""
    if kind in ("function_call", "custom_tool_call"):
        return None
    if item.get("error"):
        return shown(item["error"]), "error", None
    if kind == "image_generation_call" and item.get("result"):
        content = Content()
        content.add_placeholder("image", {k: v for k, v in item.items() if k not in ("result", "id", "type")})
        return content, "ok", None
    for key in ("output", "outputs", "results"):
        value = item.get(key)
        if value:
            logs = [t for o in mappings(value) if (t := text(o.get("logs")))]
            return ("\n".join(logs) if logs else shown(value)), "ok", None
    return None


def reasoning_texts(item: dict[str, Any]) -> list[str]:
    """Summaries and thinking texts; encrypted content is dropped."""
    found = [t for s in sequence(item.get("summary")) if (t := text(mapping(s).get("text")) or text(s))]
    found += [t for s in sequence(item.get("content")) if (t := text(mapping(s).get("text")))]
    if not found and (told := text(item.get("text"))):
        found.append(told)
    return found

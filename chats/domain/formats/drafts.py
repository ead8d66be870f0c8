"""A chat while it is being read: messages are added in order, and the same things are counted for every format."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chats.domain.details import FinishReason, MessageDetails, OfferedTool, ResultStatus, ToolCall
from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.foreign_nudges import DEFAULT_CODES, RALPH, foreign_nudge
from chats.domain.formats.limits import ImportOptions
from chats.domain.formats.parts import Content, read_content
from chats.domain.formats.problems import ImportReport, LimitPassed, Place, ReadingProblem
from chats.domain.formats.values import mapping, mappings, shown, text
from chats.domain.formats.vocabulary import KNOWN_ROLES, canonical_role, finish_reason
from chats.domain.header import EleanorFrameworkHeader
from chats.domain.messages import CanonicalChat, CanonicalMessage
from chats.domain.record import ChatRecord


@dataclass(slots=True)
class Reading:
    """What a reader needs besides the records: options, the report, the cleaner, and the place at hand."""

    options: ImportOptions
    report: ImportReport
    cleaner: Cleaner
    place: Place

    def objects(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list of records; anything else in it is left out and counted."""
        found = mappings(value)
        left_out = len(value) - len(found) if isinstance(value, list) else 0
        if left_out:
            self.report.note_skipped("no_record", self.place, left_out)
        return found


@dataclass(slots=True)
class Call:
    """A call as found. `arguments` is an object, text that may be JSON, or null for none."""

    id: str | None
    name: str
    arguments: Any = None


class ChatDraft:
    """Collects one chat. Raises LimitPassed for a message or a chat that is too large."""

    def __init__(self, reading: Reading, source_format: str) -> None:
        self.reading = reading
        self.source_format = source_format
        self.messages: list[CanonicalMessage] = []
        self.details: list[MessageDetails] = []
        self.external_id: str | None = None
        self.identity_by_content = False
        self.title: str | None = None
        self.tools: list[OfferedTool] | None = None
        self.step_budget: int | None = None
        self.chat_type: str | None = None
        self.header: EleanorFrameworkHeader | None = None
        self.metadata: dict[str, Any] = {}
        self._answered = False
        self._said: dict[int, list[str]] = {}
        self._thought: dict[int, list[str]] = {}
        self._sizes: dict[int, int] = {}
        self._used_ids: dict[int, set[str]] = {}
        self._caller: int | None = None
        self._waiting: dict[str | None, deque[str]] = {}
        self._answered_ids: set[str] = set()
        self._renamed: dict[str, deque[str]] = defaultdict(deque)
        self._nudge_codes = reading.options.nudge_codes if reading.options.nudge_codes is not None else DEFAULT_CODES

    def __len__(self) -> int:
        return len(self.messages)

    def add(
        self,
        role: str,
        content: str | Content,
        *,
        name: str | None = None,
        tool_call_id: str | None = None,
        calls: list[Call] | None = None,
        reasoning: str | None = None,
        finish: str | None = None,
        created_at: datetime | None = None,
        model: str | None = None,
        usage: dict[str, Any] | None = None,
        parts: list[dict[str, Any]] | None = None,
        status: ResultStatus | None = None,
        exit_code: int | None = None,
        few_shot: bool = False,
        ref: str | None = None,
    ) -> int:
        """Add a message and give its index. Roles and finish reasons may be those of the source."""
        index = len(self.messages)
        limits = self.reading.options.limits
        if index >= limits.messages:
            raise LimitPassed("messages", limits.messages)
        if isinstance(content, Content):
            reasoning = reasoning or content.thinking
            parts = content.parts or parts
            content = content.text
        self._weigh(content, index)
        kind = canonical_role(role)
        if kind not in KNOWN_ROLES:
            self.reading.report.note_unknown_role(kind)
        given: dict[str, Any] = {}
        made = self._calls(calls, index) if calls else []
        if made:
            given["tool_calls"] = made
        if reasoning:
            self._weigh(reasoning, index)
            given["reasoning"] = reasoning
        if finish is not None:
            given["finish_reason_raw"] = finish
            given["finish_reason"] = _judged(finish, made)
        if status is not None:
            given["result_status"] = status
        if exit_code is not None:
            given["exit_code"] = exit_code
        if created_at is not None:
            given["created_at"] = created_at
        if model is not None:
            given["model"] = model
        if usage:
            given["usage"] = usage
        if parts:
            given["parts"] = parts
        if ref is not None:
            given["source_ref"] = ref
        if kind == "user" and self._answered and not few_shot and (code := self._nudge(content)):
            given["nudge_code"] = code
            self.reading.report.nudges[code] += 1
        if kind == "assistant":
            self._answered = True
        if tool_call_id is not None and kind == "tool" and self._renamed.get(tool_call_id):
            tool_call_id = self._renamed[tool_call_id].popleft()
        self.messages.append(
            CanonicalMessage(content=content, role=kind, name=name, tool_call_id=tool_call_id, fewshot_example=few_shot)
        )
        self.details.append(MessageDetails(**given))
        if made:
            self._caller, self._waiting = index, {}
            self._wait_for(made)
        elif kind == "tool" and tool_call_id is not None:
            self._answered_ids.add(tool_call_id)
        return index

    def add_parts(self, role: str, value: Any, **given: Any) -> int:
        """Add a message whose content may be text, null or a list of parts."""
        unknown: list[str] = []
        content = read_content(value, unknown)
        for field in unknown:
            self.reading.report.note_unknown_field(field)
        return self.add(role, content, **given)

    def extend_answer(
        self,
        index: int,
        content: str = "",
        calls: list[Call] | None = None,
        *,
        reasoning: str | None = None,
        finish: str | None = None,
        usage: dict[str, Any] | None = None,
        parts: list[dict[str, Any]] | None = None,
    ) -> None:
        """Go on with an answer that is already there: texts joined by a newline, calls appended."""
        message, details = self.messages[index], self.details[index]
        if content:
            self._said.setdefault(index, [message.content] if message.content else []).append(content)
            self._weigh_together(index, message.content, content)
        if calls:
            made = self._calls(calls, index)
            details.tool_calls.extend(made)
            if self._caller is None or index >= self._caller:
                if index != self._caller:
                    self._caller, self._waiting = index, {}
                self._wait_for(made)
        if reasoning:
            self._thought.setdefault(index, [details.reasoning] if details.reasoning else []).append(reasoning)
            self._weigh_together(-index - 1, details.reasoning or "", reasoning)
        raw = finish if finish is not None else details.finish_reason_raw
        if raw is not None:
            details.finish_reason_raw = raw
            details.finish_reason = _judged(raw, details.tool_calls)
        if usage:
            details.usage = usage
        if parts:
            details.parts = details.parts or []
            details.parts.extend(parts)

    def _weigh_together(self, key: int, before: str, more: str) -> None:
        """Add to the size of an answer that comes in pieces; `key` tells its text (from 0) and its thinking apart."""
        size = self._sizes.get(key)
        size = len(before.encode("utf-8", "replace")) if size is None else size
        self._sizes[key] = size = size + 1 + len(more.encode("utf-8", "replace"))
        most = self.reading.options.limits.message_bytes
        if size > most:
            raise LimitPassed("message_bytes", most, f"messages[{key if key >= 0 else -key - 1}]")

    def _join(self) -> None:
        """Put together the answers that came in pieces; done once, since they may be many."""
        for index, pieces in self._said.items():
            self.messages[index].content = "\n".join(pieces)
        for index, pieces in self._thought.items():
            self.details[index].reasoning = "\n".join(pieces)
        self._said, self._thought = {}, {}

    def _wait_for(self, calls: list[ToolCall]) -> None:
        for call in calls:
            self._waiting.setdefault(call.name, deque()).append(call.id)
            self._waiting.setdefault(None, deque()).append(call.id)
            self._answered_ids.discard(call.id)

    def open_call(self, name: str | None) -> str | None:
        """The id of the first unanswered call of the last answer that called, by name where one is given."""
        for key in (name, None):
            waiting = self._waiting.get(key)
            while waiting and waiting[0] in self._answered_ids:
                waiting.popleft()
            if waiting:
                return waiting[0]
        return None

    def set_finish(self, finish: str) -> None:
        """The reason for which the last message ended, when it is only known afterwards."""
        self.details[-1].finish_reason_raw = finish
        self.details[-1].finish_reason = _judged(finish, self.details[-1].tool_calls)

    def _calls(self, calls: list[Call], index: int) -> list[ToolCall]:
        """Calls with ids that are unique in the message; arguments that are no JSON object are kept as text."""
        made: list[ToolCall] = []
        used = self._used_ids.setdefault(index, set())
        for n, call in enumerate(calls, len(used)):
            call_id = call.id or f"call-{index}-{n}"
            if call_id in used:
                renamed = f"call-{index}-{n}"
                queue = self._renamed[call_id]
                if not queue:
                    queue.append(call_id)
                queue.append(renamed)
                call_id = renamed
            used.add(call_id)
            made.append(self._call(call_id, call, index))
        return made

    def _call(self, call_id: str, call: Call, index: int) -> ToolCall:
        arguments = call.arguments
        if arguments is None:
            arguments = {}
        if isinstance(arguments, str):
            self._weigh(arguments, index)
            parsed = self.reading.cleaner.parse_object(arguments)
            if parsed is None:
                self._not_json(index)
                return ToolCall(id=call_id, name=call.name, arguments_raw=arguments)
            arguments = parsed
        if isinstance(arguments, dict):
            return ToolCall.model_construct(id=call_id, name=call.name, arguments=arguments, arguments_raw=None)
        self._not_json(index)
        return ToolCall(id=call_id, name=call.name, arguments_raw=shown(arguments))

    def _not_json(self, index: int) -> None:
        self.reading.report.arguments_not_json.add(self._place(index))

    def _place(self, index: int) -> Place:
        here = self.reading.place
        return Place(here.member, here.line, here.index, f"messages[{index}]")

    def _weigh(self, content: str, index: int) -> None:
        most = self.reading.options.limits.message_bytes
        if len(content) * 4 > most and len(content.encode("utf-8", "replace")) > most:
            raise LimitPassed("message_bytes", most, f"messages[{index}]")

    def _nudge(self, content: str) -> str | None:
        code = foreign_nudge(content, self._nudge_codes)
        if code is not None or RALPH not in self._nudge_codes:
            return code
        first = next((m for m in self.messages if m.role == "user" and not m.fewshot_example), None)
        return RALPH if first is not None and first.content == content and content else None

    def record(self) -> ChatRecord:
        """The finished chat, with what doesn't fit together counted. Raises ReadingProblem when it has no messages."""
        if not self.messages:
            raise ReadingProblem("no_messages")
        self._join()
        self._count_orphans()
        chat = CanonicalChat.model_construct(
            messages=self.messages, ai_name=None, ai_role="assistant", human_role="user", system_role="system"
        )
        return ChatRecord.model_construct(
            chat=chat,
            details=self.details,
            tools=self.tools,
            step_budget=self.step_budget,
            require_delivery=None,
            audit_mode=None,
            chat_type=self.chat_type,
            header=self.header,
            external_id=self.external_id,
            identity_by_content=self.identity_by_content,
            title=self.title,
            source_format=self.source_format,
            metadata=self.metadata,
        )

    def _count_orphans(self) -> None:
        count_orphans(self.messages, self.details, self.reading.report, self._place)


def _judged(raw: str, calls: list[ToolCall]) -> FinishReason | None:
    """The normalised reason. Gemini says STOP also when it calls a function."""
    return "tool_calls" if raw == "STOP" and calls else finish_reason(raw)


def count_orphans(
    messages: list[CanonicalMessage], details: list[MessageDetails], report: ImportReport, place: Any
) -> None:
    """Results that belong to no earlier call and calls that no result belongs to.

    A result belongs to the nearest earlier call with its id (canonical-chat.md section 5).
    """
    latest: dict[str, tuple[int, int]] = {}
    open_calls: dict[tuple[int, int], int] = {}
    for i, (message, known) in enumerate(zip(messages, details, strict=True)):
        for n, call in enumerate(known.tool_calls):
            latest[call.id] = (i, n)
            open_calls[(i, n)] = i
        if message.role != "tool":
            continue
        call_at = latest.get(message.tool_call_id) if message.tool_call_id is not None else None
        if call_at is None:
            report.results_without_call.add(place(i))
        else:
            open_calls.pop(call_at, None)
    for i in open_calls.values():
        report.calls_without_result.add(place(i))


def offered_tools(value: Any, cleaner: Cleaner) -> list[OfferedTool] | None:
    """Tools in any of the usual forms: OpenAI functions, bare objects, names, JSON text of a list; None if unknown."""
    if isinstance(value, str):
        value = cleaner.parse_if_json(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    found: list[OfferedTool] = []
    for tool in value:
        if isinstance(tool, str):
            nested = cleaner.parse_if_json(tool)
            if isinstance(nested, dict):
                found.extend(_tools_of(nested))
            elif tool:
                found.append(OfferedTool(name=tool))
        elif isinstance(tool, dict):
            found.extend(_tools_of(tool))
    return found


def _tools_of(tool: dict[str, Any]) -> list[OfferedTool]:
    """One object may declare one function, or several (Gemini)."""
    for key in ("functionDeclarations", "function_declarations"):
        if isinstance(tool.get(key), list):
            return [t for d in mappings(tool[key]) for t in _tools_of(d)]
    function = mapping(tool.get("function")) or tool
    name = text(function.get("name")) or text(tool.get("name")) or text(tool.get("type"))
    if name is None:
        return []
    for key in ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema"):
        if isinstance(function.get(key), dict):
            return [OfferedTool(name=name, description=text(function.get("description")), parameters=function[key])]
    return [OfferedTool(name=name, description=text(function.get("description")))]

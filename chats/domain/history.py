"""What a renderer gets of a stored chat: history for wrappers, messages for templates (canonical-chat.md section 6).

Every text remembers the index of the stored message it came from. Whatever has no place in the input is listed with
its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from chats.domain.details import MessageDetails, OfferedTool, ToolCall
from chats.domain.header import is_header
from chats.domain.history_items import (
    FunctionCall,
    HistoryItem,
    ModelItem,
    OriginText,
    ResponseEntry,
    Segment,
    SystemItem,
    UserItem,
)
from chats.domain.js_json import ABSENT, parse_json
from chats.domain.llama_text import LlamaText
from chats.domain.messages import ROLE_AI, ROLE_HUMAN, ROLE_SYSTEM, ROLE_TOOL, CanonicalMessage
from chats.domain.record import ChatRecord

LeftOutCode: TypeAlias = Literal["header", "name", "role", "result_without_call", "second_result"]
"""Why something isn't in the input: an Eleanor header, a participant's name, a message of a role that has no place
(argument `role`), a tool result that belongs to no call, another result for a call that has one."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a stored message that has no place, and why."""

    code: LeftOutCode
    message_index: int
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrapperInput:
    """A chat as wrappers take it: `functions` is empty if none were offered or it is unknown."""

    history: list[HistoryItem]
    functions: dict[str, dict[str, Any]]
    left_out: list[LeftOut]


@dataclass(frozen=True, slots=True)
class TemplateInput:
    """A chat as templates take it. `message_indexes` has the stored message's index of each message, None for a
    tried nudge; `tools` is None if none were offered or it is unknown.
    """

    messages: list[dict[str, Any]]
    message_indexes: list[int | None]
    tools: list[dict[str, Any]] | None
    add_generation_prompt: bool
    left_out: list[LeftOut]


@dataclass(slots=True)
class _Answer:
    """A call that waits for its result."""

    call: ToolCall
    message_index: int
    is_first: bool
    result: Any = ABSENT
    result_index: int | None = None


def wrapper_input(record: ChatRecord, upto: int | None = None, extra_user: str | None = None) -> WrapperInput:
    """The chat up to and with message `upto` (None: all of it), and one more user message to try a nudge.

    An empty model item follows unless the last item is one: the answer that is to be written. Raises IndexError for a
    message that the chat hasn't got.
    """
    left_out: list[LeftOut] = []
    messages = list(_kept_messages(record, upto, left_out))
    answers = _answers(record, messages, left_out)
    history: list[HistoryItem] = []
    response: list[ResponseEntry] | None = None
    for index, message, details in messages:
        role = _role(record, message)
        if message.name is not None and role != ROLE_TOOL:
            left_out.append(LeftOut("name", index))
        if role == ROLE_AI:
            response = [] if response is None else response
            response.extend(_entries(index, message, details, answers))
        elif role in (ROLE_SYSTEM, ROLE_HUMAN):
            _close(history, response)
            response = None
            text = OriginText(message.content, index)
            history.append(SystemItem(LlamaText.of([text])) if role == ROLE_SYSTEM else UserItem(text))
        elif role != ROLE_TOOL:
            left_out.append(LeftOut("role", index, {"role": message.role}))
    _close(history, response)
    if extra_user is not None:
        history.append(UserItem(extra_user))
    if not history or not isinstance(history[-1], ModelItem):
        history.append(ModelItem(()))
    left_out.sort(key=lambda one: one.message_index)
    return WrapperInput(history, _functions(record.tools), left_out)


def template_input(record: ChatRecord, upto: int | None = None, extra_user: str | None = None) -> TemplateInput:
    """As `wrapper_input`, in the form that chat templates know; only Eleanor headers have no place there."""
    left_out: list[LeftOut] = []
    messages: list[dict[str, Any]] = []
    indexes: list[int | None] = []
    for index, message, details in _kept_messages(record, upto, left_out):
        messages.append(_template_message(_role(record, message), message, details))
        indexes.append(index)
    if extra_user is not None:
        messages.append({"role": ROLE_HUMAN, "content": extra_user})
        indexes.append(None)
    ends_with_answer = bool(messages) and messages[-1]["role"] == ROLE_AI
    tools = [_tool(tool) for tool in record.tools or []] or None
    return TemplateInput(messages, indexes, tools, not ends_with_answer, left_out)


_Stored: TypeAlias = tuple[int, CanonicalMessage, MessageDetails]


def _kept_messages(record: ChatRecord, upto: int | None, left_out: list[LeftOut]) -> Iterator[_Stored]:
    messages = record.chat.messages
    if upto is not None and not 0 <= upto < len(messages):
        raise IndexError(f"the chat has no message {upto}")
    end = len(messages) if upto is None else upto + 1
    for index in range(end):
        message = messages[index]
        if _role(record, message) == ROLE_SYSTEM and is_header(message.content):
            left_out.append(LeftOut("header", index))
            continue
        yield index, message, record.details[index]


def _role(record: ChatRecord, message: CanonicalMessage) -> str:
    """The role by its usual name, whatever this chat calls it."""
    names = {
        record.chat.system_role: ROLE_SYSTEM,
        record.chat.human_role: ROLE_HUMAN,
        record.chat.ai_role: ROLE_AI,
    }
    return names.get(message.role, message.role)


def _answers(
    record: ChatRecord, messages: Sequence[_Stored], left_out: list[LeftOut]
) -> dict[tuple[int, int], _Answer]:
    """Calls by message and position, with the results that belong to them: the nearest earlier call with the id."""
    answers: dict[tuple[int, int], _Answer] = {}
    nearest: dict[str, _Answer] = {}
    for index, message, details in messages:
        role = _role(record, message)
        if role == ROLE_AI:
            for position, call in enumerate(details.tool_calls):
                answer = _Answer(call, index, is_first=position == 0)
                answers[index, position] = nearest[call.id] = answer
        elif role == ROLE_TOOL:
            found = nearest.get(message.tool_call_id) if message.tool_call_id is not None else None
            if found is None:
                left_out.append(LeftOut("result_without_call", index))
            elif found.result_index is not None:
                left_out.append(LeftOut("second_result", index))
            else:
                found.result_index = index
                found.result = _result(message.content)
    return answers


def _result(content: str) -> Any:
    if not content:
        return ABSENT
    try:
        return parse_json(content)
    except ValueError:
        return content


def _entries(
    index: int, message: CanonicalMessage, details: MessageDetails, answers: dict[tuple[int, int], _Answer]
) -> Iterator[ResponseEntry]:
    if details.reasoning:
        yield Segment("thought", OriginText(details.reasoning, index), ended=True)
    if message.content:
        yield OriginText(message.content, index)
    for position, call in enumerate(details.tool_calls):
        answer = answers[index, position]
        yield FunctionCall(
            name=call.name,
            params=_arguments(call),
            result=answer.result,
            starts_new_chunk=True if answer.is_first else None,
            origin=index,
            result_origin=answer.result_index,
        )


def _arguments(call: ToolCall) -> Any:
    return call.arguments_raw if call.arguments is None else call.arguments


def _close(history: list[HistoryItem], response: list[ResponseEntry] | None) -> None:
    if response is not None:
        history.append(ModelItem(tuple(response)))


def _functions(tools: Sequence[OfferedTool] | None) -> dict[str, dict[str, Any]]:
    functions: dict[str, dict[str, Any]] = {}
    for tool in tools or ():
        about = {"description": tool.description, "params": tool.parameters}
        functions[tool.name] = {key: value for key, value in about.items() if value is not None}
    return functions


def _template_message(role: str, message: CanonicalMessage, details: MessageDetails) -> dict[str, Any]:
    out: dict[str, Any] = {"role": role, "content": message.content}
    if message.name is not None:
        out["name"] = message.name
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    if details.reasoning:
        out["reasoning_content"] = details.reasoning
    if details.tool_calls:
        out["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in details.tool_calls
        ]
    return out


def _tool(tool: OfferedTool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {key: value for key, value in about.items() if value is not None}}

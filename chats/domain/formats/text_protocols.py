"""Calls that an agent wrote as text, and results that came back as user messages (section 4, 18).

Imported as they are, every step would be a turn of its own; a person may choose to have one protocol converted.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.details import MessageDetails, ToolCall
from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.foreign_nudges import DEFAULT_CODES, foreign_nudge
from chats.domain.formats.limits import Limits
from chats.domain.formats.problems import ImportReport, LimitPassed
from chats.domain.messages import CanonicalMessage
from chats.domain.record import ChatRecord

# Answers may be long and hostile: no expression here goes back over what it has read, and ends are looked for once.
_FUNCTION: Final = re.compile(r"<function=(?P<name>[^>\s]{1,200})>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER: Final = re.compile(r"<parameter=(?P<key>[^>\s]{1,200})>")
_PARAMETER_END: Final = "</parameter>"
_FENCE: Final = re.compile(r"^```(?:bash|sh|shell|mswea_bash_command)?[ \t]*\n", re.MULTILINE)
_FENCE_END: Final = re.compile(r"\n?```[ \t]*$", re.MULTILINE)
_ANY_FENCE: Final = re.compile(r"^```", re.MULTILINE)
_EXECUTE: Final = re.compile(r"<execute>(?P<code>.*?)(?:</execute>|\Z)", re.DOTALL)
_ACT: Final = re.compile(r"^Act:[ \t]*(?P<name>\w+)[ \t]*(?P<rest>.*)\Z", re.DOTALL | re.MULTILINE)
_REACT: Final = re.compile(
    r"^Action:(?P<name>[^\n]+)\n+Action Input:(?P<input>.*?)(?=^Observation:|\Z)",
    re.DOTALL | re.MULTILINE,
)
_HERMES: Final = re.compile(r"<tool_call>(?P<json>.*?)(?:</tool_call>|\Z)", re.DOTALL)
_RESPONSE: Final = re.compile(r"<tool_response>(?P<text>.*?)(?:</tool_response>|\Z)", re.DOTALL)
_RESULT_MARK: Final = re.compile(r"^\s*(?:OBSERVATION:|EXECUTION RESULT of \[[^\]\n]*\]:)[ \t]*\n?")
_OBSERVATION: Final = re.compile(r"^\s*Observation:[ \t]*\n?", re.IGNORECASE)
_RETURN_CODE: Final = re.compile(r"\A\s*<returncode>(-?\d+)</returncode>")

_TextCall = tuple[str, dict[str, Any] | str]


@dataclass(frozen=True, slots=True)
class Protocol:
    """How calls and results are written. `calls` gives the text that remains and the calls, or None without any.

    `results` gives the texts of a user message that answers `count` calls and the text left over, or None when the
    message is no result.
    """

    id: str
    label: str
    mark: str
    calls: Callable[[str, Cleaner], tuple[str, list[_TextCall]] | None]
    results: Callable[[str, int], tuple[list[str], str] | None]


def _xml_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    found = list(_FUNCTION.finditer(content))
    if not found:
        return None
    calls: list[_TextCall] = [(m["name"], _parameters(m["body"])) for m in found]
    return _FUNCTION.sub("", content).strip(), calls


def _parameters(body: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    opened = _PARAMETER.search(body)
    while opened is not None and (end := body.find(_PARAMETER_END, opened.end())) >= 0:
        found[opened["key"]] = _trimmed(body[opened.end() : end])
        opened = _PARAMETER.search(body, end)
    return found


def _trimmed(value: str) -> str:
    """A parameter's value without the line breaks that set it off from its tags."""
    value = value[1:] if value.startswith("\n") else value
    return value[:-1] if value.endswith("\n") else value


def _xml_results(content: str, count: int) -> tuple[list[str], str] | None:
    mark = _RESULT_MARK.match(content)
    return None if mark is None else ([content[mark.end() :]], "")


def _next_message(content: str, count: int) -> tuple[list[str], str] | None:
    """Whatever comes back after a command is its result."""
    return [content], ""


def fenced_command(content: str) -> tuple[str, str] | None:
    """The text and the command of an answer with exactly one fenced block."""
    if len(_ANY_FENCE.findall(content)) != 2 or (found := _fenced(content)) is None:
        return None
    start, command, end = found
    if _fenced(content, end) is not None:
        return None
    return (content[:start] + content[end:]).strip(), command


def _fenced(content: str, at: int = 0) -> tuple[int, str, int] | None:
    """Start, command and end of the first fenced block from a place on."""
    opened = _FENCE.search(content, at)
    # The line's own end may be the one before the closing fence.
    closed = _FENCE_END.search(content, opened.end() - 1) if opened is not None else None
    if opened is None or closed is None:
        return None
    return opened.start(), content[opened.end() : max(closed.start(), opened.end())], closed.end()


def _fenced_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    found = fenced_command(content)
    return None if found is None else (found[0], [("bash", {"command": found[1]})])


def _execute_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    found = list(_EXECUTE.finditer(content))
    if not found:
        return None
    return _EXECUTE.sub("", content).strip(), [("execute", {"code": m["code"].strip()}) for m in found]


def _observation(content: str, count: int) -> tuple[list[str], str] | None:
    mark = _OBSERVATION.match(content)
    return [content[mark.end() :] if mark is not None else content], ""


def _act_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    found = _ACT.search(content)
    if found is None or found["name"] != "bash":
        return None
    block = _fenced(found["rest"])
    command = block[1] if block is not None else found["rest"].strip()
    return content[: found.start()].strip(), [("bash", {"command": command})]


def _react_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    found = _REACT.search(content)
    name = found["name"].strip() if found is not None else ""
    if found is None or not name:
        return None
    return content[: found.start()].strip(), [(name, _object(found["input"].strip(), cleaner))]


def _react_results(content: str, count: int) -> tuple[list[str], str] | None:
    mark = _OBSERVATION.match(content)
    return None if mark is None else ([content[mark.end() :]], "")


def _hermes_calls(content: str, cleaner: Cleaner) -> tuple[str, list[_TextCall]] | None:
    calls: list[_TextCall] = []
    for found in _HERMES.finditer(content):
        known = _object(told := found["json"].strip(), cleaner)
        if isinstance(known, dict) and isinstance(known.get("name"), str):
            arguments = known.get("arguments", {})
            calls.append((known["name"], arguments if isinstance(arguments, (dict, str)) else json.dumps(arguments)))
        else:
            calls.append(("unknown", told))
    return (_HERMES.sub("", content).strip(), calls) if calls else None


def _hermes_results(content: str, count: int) -> tuple[list[str], str] | None:
    found = [m["text"].strip() for m in _RESPONSE.finditer(content)]
    return (found, _RESPONSE.sub("", content).strip()) if found else None


def _object(given: str, cleaner: Cleaner) -> dict[str, Any] | str:
    """The object that a text is; what passes a limit stays text."""
    try:
        found = cleaner.parse_object(given)
    except LimitPassed:
        return given
    return given if found is None else found


PROTOCOLS: Final = {
    p.id: p
    for p in (
        Protocol("xml-calls", "<function=…> with OBSERVATION", "<function=", _xml_calls, _xml_results),
        Protocol("execute-blocks", "<execute> blocks", "<execute>", _execute_calls, _observation),
        Protocol("act-bash", "Act: bash", "Act: bash", _act_calls, _next_message),
        Protocol("react", "Action / Action Input / Observation", "Action Input:", _react_calls, _react_results),
        Protocol("hermes", "<tool_call> with <tool_response>", "<tool_call>", _hermes_calls, _hermes_results),
        Protocol("fenced-bash", "one fenced bash block an answer", "```", _fenced_calls, _next_message),
    )
}


def matching_protocols(content: str) -> list[str]:
    """The protocols that an answer's text has a call of."""
    found = [p for p in PROTOCOLS.values() if p.mark in content]
    cleaner = Cleaner(Limits(), ImportReport()) if found else None
    return [p.id for p in found if cleaner is not None and p.calls(content, cleaner) is not None]


def converted(record: ChatRecord, protocol_id: str, cleaner: Cleaner | None = None) -> ChatRecord:
    """The chat with text calls as calls and their results as tool messages; the given chat is left as it is.

    `cleaner` counts what is replaced in the arguments. Raises KeyError for an unknown protocol. Harness sentences after
    an answer stay what they are: nudges.
    """
    protocol = PROTOCOLS[protocol_id]
    messages: list[CanonicalMessage] = []
    details: list[MessageDetails] = []
    waiting: deque[str] = deque()
    cleaner = cleaner or Cleaner(Limits(), ImportReport())
    for message, known in zip(record.chat.messages, record.details, strict=True):
        if message.role == "assistant" and not message.fewshot_example:
            waiting.clear()
            message, known = _answer(protocol, message, known, len(messages), cleaner)
            waiting.extend(c.id for c in known.tool_calls)
        elif message.role == "user" and waiting and known.nudge_code is None:
            if foreign_nudge(message.content, DEFAULT_CODES) is None and _add_results(
                protocol, message, known, waiting, messages, details
            ):
                continue
        elif message.role == "tool" and waiting:
            message = _linked(protocol, message, waiting)
        messages.append(message)
        details.append(known)
    chat = record.chat.model_copy(update={"messages": messages})
    return record.model_copy(update={"chat": chat, "details": details})


def _answer(
    protocol: Protocol, message: CanonicalMessage, known: MessageDetails, index: int, cleaner: Cleaner
) -> tuple[CanonicalMessage, MessageDetails]:
    if known.tool_calls or protocol.mark not in message.content:
        return message, known
    found = protocol.calls(message.content, cleaner)
    if found is None:
        return message, known
    rest, calls = found
    made = [
        ToolCall(id=f"call-{index}-{n}", name=name, arguments=given)
        if isinstance(given, dict)
        else ToolCall(id=f"call-{index}-{n}", name=name, arguments_raw=given)
        for n, (name, given) in enumerate(calls)
    ]
    return message.model_copy(update={"content": rest}), known.model_copy(update={"tool_calls": made})


def _add_results(
    protocol: Protocol,
    message: CanonicalMessage,
    known: MessageDetails,
    waiting: deque[str],
    messages: list[CanonicalMessage],
    details: list[MessageDetails],
) -> bool:
    """Add a user message as results, and what it says besides as a user message; False when it is no result."""
    found = protocol.results(message.content, len(waiting))
    if found is None:
        return False
    texts, rest = found
    for n, told in enumerate(texts):
        call_id = waiting.popleft() if waiting else None
        messages.append(message.model_copy(update={"role": "tool", "content": told, "tool_call_id": call_id}))
        code = _RETURN_CODE.match(told)
        update = {"exit_code": int(code[1])} if code is not None else {}
        details.append(known.model_copy(update=update if n == 0 else {**update, "parts": None}))
    if rest:
        messages.append(message.model_copy(update={"content": rest}))
        details.append(known.model_copy(update={"parts": None}))
    return True


def _linked(protocol: Protocol, message: CanonicalMessage, waiting: deque[str]) -> CanonicalMessage:
    """A tool message of the file without an id belongs to the next call that was written as text."""
    found = protocol.results(message.content, 1)
    update: dict[str, Any] = {"content": found[0][0]} if found is not None and len(found[0]) == 1 else {}
    if message.tool_call_id is None:
        update["tool_call_id"] = waiting.popleft()
    return message.model_copy(update=update) if update else message

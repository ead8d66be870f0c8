"""The exchange form `eleanor-chat`: a stored chat as JSON and back (canonical-chat.md section 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from chats.domain.details import MessageDetails, OfferedTool
from chats.domain.header import HEADER_PATTERN, EleanorFrameworkHeader
from chats.domain.messages import CanonicalChat, CanonicalMessage
from chats.domain.record import ChatRecord

FORMAT: Final = "eleanor-chat"
VERSION: Final = 1
HEADER_KEY: Final = "eleanor_header"

_CHAT_DATA: Final = (
    "external_id",
    "title",
    "tools",
    "step_budget",
    "require_delivery",
    "audit_mode",
    "chat_type",
    "metadata",
)
_TOP: Final = frozenset({"format", "version", "chat", *_CHAT_DATA})
_DETAILS: Final = frozenset(MessageDetails.model_fields)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an exchange chat: `refused_key`, `wrong_value`, `wrong_type` or `unsupported_version`."""

    code: str
    path: str
    args: Mapping[str, object]


class ExchangeError(ValueError):
    """The chat was refused; `faults` says all that is wrong with it, with paths."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{f.path}: {f.code}" for f in faults))
        self.faults = faults


def to_exchange(record: ChatRecord) -> dict[str, Any]:
    """The exchange form. What is unknown is left out; a header that stands in no message goes to the metadata."""
    chat = record.chat.model_dump(mode="json", exclude={"messages"})
    chat["messages"] = [
        message.model_dump(mode="json") | _known(details)
        for message, details in zip(record.chat.messages, record.details, strict=True)
    ]
    data: dict[str, Any] = {
        "external_id": record.external_id,
        "title": record.title,
        "tools": None if record.tools is None else [_tool(t) for t in record.tools],
        "step_budget": record.step_budget,
        "require_delivery": record.require_delivery,
        "audit_mode": record.audit_mode,
        "chat_type": record.chat_type,
        "metadata": dict(record.metadata) or None,
    }
    if record.header is not None and header_in(record.chat) != record.header:
        data["metadata"] = {**record.metadata, HEADER_KEY: record.header.model_dump(mode="json")}
    known = {k: v for k, v in data.items() if v is not None}
    return {"format": FORMAT, "version": VERSION, **known, "chat": chat}


def to_json(record: ChatRecord) -> str:
    """The exchange form on one line, for JSON Lines; non-ASCII as it is."""
    return json.dumps(to_exchange(record), ensure_ascii=False)


def from_json(text: str) -> ChatRecord:
    """Read one exchange chat. Raises ValueError for wrong JSON and its subclass ExchangeError for a refused chat."""
    return from_exchange(json.loads(text))


def from_exchange(value: Any, not_understood: list[str] | None = None) -> ChatRecord:
    """Read the exchange form. Raises ExchangeError.

    Keys beside `chat` that have no meaning are added to `not_understood`; inside `chat` they are refused.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ExchangeError([Fault("wrong_value", "format", {"expected": FORMAT})])
    if value.get("version") != VERSION or isinstance(value.get("version"), bool):
        raise ExchangeError([Fault("unsupported_version", "version", {"version": value.get("version")})])
    if not_understood is not None:
        not_understood.extend(k for k in value if k not in _TOP)
    if not isinstance(value.get("chat"), dict):
        raise ExchangeError([_wrong_type("chat", "object", value.get("chat"))])
    faults: list[Fault] = []
    chat, details = _chat(value["chat"], faults)
    data = {k: value[k] for k in _CHAT_DATA if value.get(k) is not None}
    if isinstance(data.get("tools"), list):
        data["tools"] = [{"name": t} if isinstance(t, str) else t for t in data["tools"]]
    if chat is None:
        raise ExchangeError(faults)
    header = header_in(chat)
    if header is None and isinstance(data.get("metadata"), dict) and HEADER_KEY in data["metadata"]:
        data["metadata"] = dict(data["metadata"])
        header = data["metadata"].pop(HEADER_KEY)
    try:
        record = ChatRecord.model_validate(
            {**data, "chat": CanonicalChat(), "details": [], "header": header, "source_format": FORMAT}
        )
    except ValidationError as error:
        faults.extend(_faults(error, ""))
    if faults:
        raise ExchangeError(faults)
    record.chat, record.details = chat, details
    return record


def header_in(chat: CanonicalChat) -> EleanorFrameworkHeader | None:
    """The first Eleanor header among the system messages, or None when there is none or it is broken."""
    if not any("ELEANOR_SYSTEM" in m.content for m in chat.messages if m.role == chat.system_role):
        return None
    return chat.parse_system_message(
        HEADER_PATTERN, None, lambda groups: EleanorFrameworkHeader.model_validate_json(groups[0])
    )[1]


def _known(details: MessageDetails) -> dict[str, Any]:
    known = details.model_dump(mode="json", exclude_defaults=True, exclude={"tool_calls"})
    if details.tool_calls:
        known["tool_calls"] = [c.model_dump(mode="json", exclude_none=True) for c in details.tool_calls]
    return known


def _tool(tool: OfferedTool) -> str | dict[str, Any]:
    known = tool.model_dump(mode="json", exclude_none=True)
    return tool.name if known.keys() == {"name"} else known


def _chat(value: dict[str, Any], faults: list[Fault]) -> tuple[CanonicalChat | None, list[MessageDetails]]:
    messages: list[CanonicalMessage] = []
    details: list[MessageDetails] = []
    given = value.get("messages", [])
    if not isinstance(given, list):
        faults.append(_wrong_type("chat.messages", "list", given))
        given = []
    for i, item in enumerate(given):
        path = f"chat.messages[{i}]"
        if not isinstance(item, dict):
            faults.append(_wrong_type(path, "object", item))
            continue
        known = {k: v for k, v in item.items() if k in _DETAILS}
        try:
            messages.append(CanonicalMessage.model_validate({k: v for k, v in item.items() if k not in _DETAILS}))
        except ValidationError as error:
            faults.extend(_faults(error, path))
        if "tool_calls" in known:
            known["tool_calls"] = _calls(known["tool_calls"], i, path, faults)
        try:
            details.append(MessageDetails.model_validate(known))
        except ValidationError as error:
            faults.extend(_faults(error, path))
    try:
        chat = CanonicalChat.model_validate({k: v for k, v in value.items() if k != "messages"})
    except ValidationError as error:
        faults.extend(_faults(error, "chat"))
        return None, []
    chat.messages = messages
    return chat, details


def _calls(value: Any, index: int, path: str, faults: list[Fault]) -> Any:
    """Calls with made-up ids where there are none, and with an empty object where there are no arguments."""
    if value is None:
        return []
    if not isinstance(value, list):
        return value
    made: list[Any] = []
    used: set[str] = set()
    for n, call in enumerate(value):
        if isinstance(call, dict):
            call = {"id": f"call-{index}-{n}", **{k: v for k, v in call.items() if k != "id" or v is not None}}
            has_object, has_text = call.get("arguments") is not None, call.get("arguments_raw") is not None
            if has_object and has_text:
                faults.append(Fault("wrong_value", f"{path}.tool_calls[{n}].arguments_raw", {"expected": "one of two"}))
            elif not has_object and not has_text:
                call["arguments"] = {}
            if isinstance(call["id"], str) and call["id"] in used:
                faults.append(Fault("wrong_value", f"{path}.tool_calls[{n}].id", {"expected": "unique"}))
            if isinstance(call["id"], str):
                used.add(call["id"])
        made.append(call)
    return made


def _faults(error: ValidationError, prefix: str) -> list[Fault]:
    found: list[Fault] = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        path = prefix
        for step in item["loc"]:
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
        if item["type"] == "extra_forbidden":
            found.append(Fault("refused_key", path, {"key": str(item["loc"][-1])}))
        else:
            found.append(Fault("wrong_value", path, {"reason": item["type"]}))
    return found


def _wrong_type(path: str, expected: str, found: Any) -> Fault:
    return Fault("wrong_type", path, {"expected": expected, "found": type(found).__name__})

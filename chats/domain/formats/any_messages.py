"""Messages inside traces, whatever form a step's input and output have, told apart one by one (section 4, 8)."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from chats.domain.formats import anthropic_messages, gemini_contents, langchain, openai_chat
from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.core_messages import add_core_message, holds_core_parts
from chats.domain.formats.drafts import Call, ChatDraft, offered_tools
from chats.domain.formats.otel_messages import add_parts_message, is_parts_message
from chats.domain.formats.streams import completion_of
from chats.domain.formats.values import label, mapping, mappings, sequence, shown, text

_REPR: Final = re.compile(
    r"^role='(?P<role>\w+)' content=(?P<content>None|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL
)
_REPR_ID: Final = re.compile(r" tool_call_id='(?P<id>[^']*)'")
_REPR_CALLS: Final = re.compile(r" tool_calls=(?P<calls>\[.*?\]) (?:audio|images|name|\w+)=", re.DOTALL)
_LONGEST_LIST: Final = 1 << 17
_LIST_KEYS: Final = ("messages", "contents", "input", "prompt", "history", "chat_history")


def messages_in(value: Any, draft: ChatDraft) -> list[Any]:
    """The messages of a step's input: JSON text, a list, `{messages}`, `{args, kwargs}`, or a prompt."""
    cleaner = draft.reading.cleaner
    for _ in range(3):
        if not isinstance(value, str):
            break
        parsed = cleaner.parse_if_json(value)
        if parsed is value or (isinstance(parsed, str) and not parsed.strip()):
            break
        value = parsed
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        if value and all(isinstance(v, list) for v in value):
            value = value[0]
        return [m for v in value for m in (v if isinstance(v, list) else [v])]
    known = mapping(value)
    if isinstance(known.get("kwargs"), dict) and "args" in known:
        inner = messages_in(known["kwargs"], draft)
        return inner or [m for v in sequence(known["args"]) for m in messages_in(v, draft)]
    if ("role" in known and known.keys() & {"content", "parts", "tool_calls"}) or langchain.is_message(known):
        return [known]
    for key in _LIST_KEYS:
        if known.get(key):
            return [*_system_of(known), *messages_in(known[key], draft)]
    return []


def _system_of(known: dict[str, Any]) -> list[Any]:
    """The system text that stands beside the messages."""
    for holder in (known, mapping(known.get("config"))):
        for key in ("system", "instructions", "systemInstruction", "system_instruction"):
            value = holder.get(key)
            if value:
                parts = mapping(value).get("parts")
                return [{"role": "system", "content": parts if parts is not None else value}]
    return []


def tools_in(value: Any, draft: ChatDraft) -> Any:
    """What a step's input says of offered tools, or None."""
    known = mapping(draft.reading.cleaner.parse_if_json(value) if isinstance(value, str) else value)
    for holder in (known, mapping(known.get("config")), mapping(known.get("kwargs"))):
        if holder.get("tools"):
            return offered_tools(holder["tools"], draft.reading.cleaner)
    for message in mappings(known.get("messages")) or mappings(value):
        if isinstance(message.get("tools"), list):
            return offered_tools(message["tools"], draft.reading.cleaner)
    return None


class AnyMessages:
    """Adds messages of any form to a draft, in order."""

    def __init__(self, draft: ChatDraft) -> None:
        self.draft = draft
        self._contents = gemini_contents.ContentReader(draft)

    def add_all(self, messages: list[Any]) -> None:
        plain: list[Any] = []
        for message in messages:
            known = mapping(message)
            if langchain.is_message(known) and "role" not in known:
                plain.append(known)
                continue
            self._flush(plain)
            plain = []
            self.add(message)
        self._flush(plain)

    def _flush(self, messages: list[Any]) -> None:
        if messages:
            langchain.add_messages(self.draft, messages)

    def add(self, message: Any, **given: Any) -> None:
        """Add one message; text alone is a person's."""
        if isinstance(message, str):
            self._add_text(message)
            return
        known = mapping(message)
        if "message" in known and "role" not in known:
            finish = text(known.get("finish_reason"))
            known = {**mapping(known["message"]), **({"finish_reason": finish} if finish else {})}
        if "json" in known and "content" not in known:
            known = _of_json(known)
        if is_parts_message(known):
            add_parts_message(self.draft, known)
        elif gemini_contents.is_content(known):
            self._contents.add(known)
        elif anthropic_messages.has_blocks(known):
            anthropic_messages.add_message(self.draft, known)
        elif holds_core_parts(known):
            add_core_message(self.draft, known)
        elif langchain.is_message(known):
            langchain.add_message(self.draft, known)
        elif _is_tool_definition(known):
            self._offer(known["content"])
        elif known:
            openai_chat.add_message(self.draft, self._plain_or_calls(known), **given)

    def _offer(self, tool: dict[str, Any]) -> None:
        """Some tracers list the offered tools behind the messages."""
        found = offered_tools([tool], self.draft.reading.cleaner)
        self.draft.tools = [*(self.draft.tools or []), *(t for t in found or [] if t not in (self.draft.tools or []))]

    def _plain_or_calls(self, known: dict[str, Any]) -> dict[str, Any]:
        """The message; content that is nothing but the JSON of calls is the calls, whatever role it was given."""
        content = known.get("content")
        if isinstance(content, str) and content.startswith('[{"') and '"function"' in content[:200]:
            calls = self.draft.reading.cleaner.parse_if_json(content)
            if isinstance(calls, list) and all("name" in mapping(mapping(c).get("function")) for c in calls):
                return _plain({**known, "role": "assistant", "content": "", "tool_calls": calls})
        plain = _plain(known)
        if plain.get("role") == "tool" and not plain.get("tool_call_id"):
            plain["tool_call_id"] = self.draft.open_call(label(known.get("name")))
        return plain

    def _add_text(self, message: str) -> None:
        found = _REPR.match(message)
        if found is None:
            self.draft.add("user", message)
            return
        content = found.group("content")
        known: dict[str, Any] = {"role": found.group("role"), "content": _literal(content, self.draft.reading.cleaner)}
        if (call_id := _REPR_ID.search(message)) is not None:
            known["tool_call_id"] = call_id.group("id")
        if (calls := _REPR_CALLS.search(message)) is not None:
            known["tool_calls"] = _literal(calls.group("calls"), self.draft.reading.cleaner)
        openai_chat.add_message(self.draft, known)

    def add_output(self, value: Any, **given: Any) -> bool:
        """Add a step's output as the answer; says whether there was one."""
        if isinstance(value, str):
            parsed = self.draft.reading.cleaner.parse_if_json(value)
            value = parsed if isinstance(parsed, (dict, list)) else value
        if isinstance(value, str):
            if not value or value == "None":
                return False
            self.draft.add("assistant", value, **_times(given))
            return True
        if isinstance(value, list):
            joined = completion_of(mappings(value))
            if joined is not None:
                return self._add_output_object(joined, given)
            return self._add_outputs(value, given)
        return self._add_output_object(mapping(value), given)

    def _add_outputs(self, values: list[Any], given: dict[str, Any]) -> bool:
        known = mappings(values)
        if not known:
            return self._add_each([v for v in values if isinstance(v, (str, list))], given)
        if all("toolCallId" in v or "toolName" in v for v in known):
            calls = [
                Call(label(v.get("toolCallId")), label(v.get("toolName")) or "unknown", v.get("input", v.get("args")))
                for v in known
            ]
            self.draft.add("assistant", "", calls=calls, finish=given.get("finish"), **_times(given))
            return True
        if all("role" in v or "message" in v or langchain.is_message(v) for v in known):
            self.add_all(known)
            return True
        return self._add_each(known, given)

    def _add_each(self, values: list[Any], given: dict[str, Any]) -> bool:
        added = [self.add_output(v, **given) for v in values]
        return any(added)

    def _add_output_object(self, value: dict[str, Any], given: dict[str, Any]) -> bool:
        choices = mappings(value.get("choices"))
        if choices:
            choice = choices[0]
            if isinstance(choice.get("finish_reason"), dict):
                choice = {**choice, "finish_reason": choice["finish_reason"].get("finish_reason")}
            openai_chat.add_choice(self.draft, value, choice)
            return True
        if value.get("type") == "message" and isinstance(value.get("content"), list):
            anthropic_messages.add_response(self.draft, value)
            return True
        if mappings(value.get("candidates")):
            self._contents.add_candidate(gemini_contents.chunks_joined(value)[0])
            return True
        if isinstance(mapping(value.get("content")).get("parts"), list):
            self._contents.add_candidate(gemini_contents.chunks_joined({**value, "candidates": [value]})[0])
            return True
        generations = value.get("generations")
        if isinstance(generations, list) and generations:
            first = generations[0]
            first = mapping(first[0] if isinstance(first, list) and first else first)
            if isinstance(first.get("message"), dict):
                self.add_all([first["message"]])
            else:
                self.draft.add("assistant", text(first.get("text")) or "", **_times(given))
            return True
        for key in ("messages", "output", "message", "response", "outputs"):
            if isinstance(value.get(key), (dict, list)) and value[key] and key != "message":
                return self.add_output(value[key], **given)
        if value.keys() & {"role", "content", "parts", "message"} or langchain.is_message(value):
            if "role" not in value and "message" not in value and not langchain.is_message(value):
                value = {"role": "assistant", **value}
            self.add_all([value])
            return True
        told = next((t for k in ("output", "text", "completion", "answer") if (t := text(value.get(k)))), None)
        if told is None:
            return False
        self.draft.add("assistant", told, **_times(given))
        return True


def _times(given: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in given.items() if k in ("created_at", "model", "usage")}


def _literal(value: str, cleaner: Cleaner) -> Any:
    """The value of a Python literal, or its text: parsing a long list takes hundreds of times its size."""
    if value.startswith("[") and len(value) > _LONGEST_LIST:
        return value
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return cleaner.clean(found)


def _is_tool_definition(known: dict[str, Any]) -> bool:
    content = mapping(known.get("content"))
    return content.get("type") == "function" and isinstance(content.get("function"), dict)


def _of_json(known: dict[str, Any]) -> dict[str, Any]:
    inner = mapping(known["json"])
    content = text(inner.get("text")) or text(inner.get("content"))
    if isinstance(inner.get("message"), dict):
        return {**known, **inner["message"]}
    return {**known, "content": content if content is not None else shown(known["json"])}


def _plain(known: dict[str, Any]) -> dict[str, Any]:
    """The keys of an OpenAI message; LangChain's extra arguments may hold the calls."""
    calls = known.get("tool_calls") or mapping(known.get("additional_kwargs")).get("tool_calls")
    content = known.get("content")
    is_result = known.get("role") in ("tool", "function") and isinstance(content, (dict, list))
    if is_result and not all(mapping(p).get("type") for p in (content if isinstance(content, list) else [content])):
        content = shown(content)
    kept = {
        k: v
        for k, v in known.items()
        if k in openai_chat.MESSAGE_KEYS and k not in ("content", "tool_calls") and v is not None
    }
    return {**kept, "content": content, **({"tool_calls": calls} if isinstance(calls, list) else {})}

"""OpenHands events, of the older loop and of the SDK (section 4, 19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.foreign_nudges import foreign_nudge
from chats.domain.formats.parts import plain_text
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.values import at, label, mapping, moment, scalars, sequence, text, whole

FORMAT: Final = "openhands"
_CALLS: Final = frozenset(
    {"think", "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp"}
    | {"delegate", "finish", "reject", "task_tracking"}
)
_SKIPPED: Final = frozenset({"recall", "change_agent_state", "null", "agent_state_changed", ""})
_NO_ARGUMENTS: Final = frozenset(
    {"thought", "action", "id", "timestamp", "source", "message", "cause", "timeout", "tool_call_metadata"}
    | {"action_risk", "is_confirmed", "confirmation_state", "keep_prompt", "kernel_init_code", "llm_metrics", "args"}
    | {"hidden", "security_risk", "blocking"}
)


def recognise(head: Head) -> float:
    if head.rows and all(isinstance(r, dict) for r in head.rows) and any(_is_event(r) for r in head.rows):
        return share(head, lambda r: _is_event(r) or str(r.get("kind", "")).endswith(("Event", "Condensation")))
    if head.rows and all(_is_pair(r) for r in head.rows):
        return 1.0
    return share(head, lambda row: _events_of(row) is not None)


def _is_event(value: Any) -> bool:
    known = mapping(value)
    if isinstance(known.get("kind"), str) and known["kind"].endswith("Event"):
        return True
    if not isinstance(known.get("action", known.get("observation")), str):
        return False
    return bool(known.keys() & {"args", "extras", "source", "content", "message", "thought", "cause"})


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and any(map(_is_event, value))


def _events_of(row: dict[str, Any]) -> list[Any] | None:
    """The events of an output row; older files hold pairs of action and observation."""
    for key in ("history", "trajectory", "events"):
        value = row.get(key)
        if not isinstance(value, list):
            continue
        if sum(_is_event(e) or _is_pair(e) for e in value[:20]) * 2 >= max(len(value[:20]), 1):
            return value
    return None


def read(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if any(_is_event(r) or _is_pair(r) for r in rows):
        yield from read_whole(document, reading, lambda values: [_chat({}, _flat(values, reading), reading)])
        return
    yield from read_rows(document.rows(), reading, lambda row: [_convert(mapping(row), reading)])


def _flat(values: list[Any], reading: Reading) -> list[dict[str, Any]]:
    return reading.objects([e for v in values for e in (v if isinstance(v, list) else [v])])


def _convert(row: dict[str, Any], reading: Reading) -> Item:
    events = _events_of(row)
    if events is None:
        raise ReadingProblem("no_messages")
    return _chat(row, _flat(events, reading), reading)


def _chat(row: dict[str, Any], events: list[dict[str, Any]], reading: Reading) -> Item:
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(row.get("conversation_id")) or label(row.get("instance_id"))
    draft.identity_by_content = "conversation_id" not in row
    known = mapping(row.get("metadata"))
    draft.metadata = scalars(row, without=frozenset({"instruction", "git_patch"})) | scalars(known)
    draft.step_budget = whole(known.get("max_iterations"))
    model = text(at(known, "llm_config", "model"))
    if model is not None:
        draft.metadata["model"] = model
    reader = _Events(draft)
    for event in events:
        reader.add(event)
    return draft.record()


class _Events:
    """Adds events to a draft, pairing actions and observations."""

    def __init__(self, draft: ChatDraft) -> None:
        self.draft = draft
        self._answers: dict[str, int] = {}
        self._calls: dict[str, str] = {}
        self._last_call: str | None = None

    def add(self, event: dict[str, Any]) -> None:
        if isinstance(event.get("kind"), str) and event["kind"].endswith(("Event", "Observation", "Condensation")):
            self._add_sdk(event)
        elif isinstance(event.get("action"), str):
            self._add_action(event)
        elif isinstance(event.get("observation"), str):
            self._add_observation(event)
        else:
            self._skip("unknown")

    def _skip(self, kind: str) -> None:
        self.draft.reading.report.note_skipped(f"event:{kind}"[:60], self.draft.reading.place)

    def _add_action(self, event: dict[str, Any]) -> None:
        action = event["action"]
        arguments = mapping(event.get("args"))
        if action == "message":
            self._add_message(event, arguments)
        elif action == "system":
            self.draft.tools = offered_tools(arguments.get("tools"), self.draft.reading.cleaner)
            self._spoken("system", event, text(arguments.get("content")) or text(event.get("content")) or "")
        elif action in _SKIPPED:
            self._skip(action)
        elif action in _CALLS or at(event, "tool_call_metadata", "tool_call_id") is not None:
            self._add_call(event, action, arguments)
        else:
            self._skip(action)

    def _spoken(self, role: str, event: dict[str, Any], content: str, **given: Any) -> int:
        return self.draft.add(
            role, content, created_at=moment(event.get("timestamp")), ref=label(event.get("id")), **given
        )

    def _add_message(self, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        told = next((c for c in (arguments.get("content"), event.get("content"), event.get("message")) if c), "")
        content = told if isinstance(told, str) else plain_text(told)
        role = self._speaker(event, content)
        given = self._model_given(event) if role == "assistant" else {}
        images = sequence(arguments.get("image_urls")) or sequence(event.get("images_urls"))
        if images:
            content = "\n".join([content, *["[image]"] * len(images)])
            given["parts"] = [{"placeholder": "image"} for _ in images]
        self._spoken(role, event, content, **given)

    def _speaker(self, event: dict[str, Any], content: str) -> str:
        """Older files don't say who speaks: the first message is the person's, then both take turns."""
        source = event.get("source")
        if source in ("user", "agent"):
            return "user" if source == "user" else "assistant"
        if foreign_nudge(content) is not None or not any(m.role == "user" for m in self.draft.messages):
            return "user"
        last = self.draft.messages[-1]
        return "user" if last.role == "assistant" and not self.draft.details[-1].tool_calls else "assistant"

    def _model_given(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the raw completion says of an answer."""
        answer = mapping(at(event, "tool_call_metadata", "model_response"))
        message = mapping(at(answer, "choices", 0, "message"))
        return {
            "finish": text(at(answer, "choices", 0, "finish_reason")),
            "model": text(answer.get("model")),
            "usage": {k: v for k, v in mapping(answer.get("usage")).items() if isinstance(v, (int, float))} or None,
            "reasoning": text(message.get("reasoning_content")),
        }

    def _add_call(self, event: dict[str, Any], action: str, arguments: dict[str, Any]) -> None:
        known = mapping(event.get("tool_call_metadata"))
        if "args" not in event:  # older files keep the arguments among the event's own fields
            arguments = {k: v for k, v in event.items() if k not in _NO_ARGUMENTS and v is not None}
        thought = text(arguments.get("thought")) or text(event.get("thought")) or ""
        if action == "finish":
            thought = text(arguments.get("final_thought")) or thought
        inputs = {k: v for k, v in arguments.items() if k != "thought"}
        call = Call(label(known.get("tool_call_id")), label(known.get("function_name")) or action, inputs)
        answer = label(at(known, "model_response", "id"))
        index = self._answers.get(answer) if answer is not None else None
        if index is not None:
            self.draft.extend_answer(index, thought, [call])
        else:
            index = self._spoken("assistant", event, thought, calls=[call], **self._model_given(event))
            if answer is not None:
                self._answers[answer] = index
        self._called(label(event.get("id")), index)

    def _called(self, event_id: str | None, index: int) -> None:
        call_id = self.draft.details[index].tool_calls[-1].id
        self._last_call = call_id
        if event_id is not None:
            self._calls[event_id] = call_id

    def _add_observation(self, event: dict[str, Any]) -> None:
        kind = event["observation"]
        extras = mapping(event.get("extras"))
        if kind in _SKIPPED:
            self._skip(kind)
            return
        call_id = label(at(event, "tool_call_metadata", "tool_call_id"))
        if call_id is None and event.get("cause") is not None:
            call_id = self._calls.get(label(event.get("cause")) or "")
        if call_id is None and "cause" not in event:
            call_id, self._last_call = self._last_call, None
        if call_id is None and kind != "error":
            self._skip(kind)
            return
        status: ResultStatus | None = "error" if kind == "error" else "not_run" if kind == "user_rejected" else None
        codes = (event.get("exit_code"), extras.get("exit_code"), at(extras, "metadata", "exit_code"))
        content = event.get("content")
        self._spoken(
            "tool",
            event,
            content if isinstance(content, str) else plain_text(content) or text(event.get("message")) or "",
            tool_call_id=call_id,
            status=status,
            exit_code=next((c for c in codes if whole(c) is not None), None),
        )

    def _add_sdk(self, event: dict[str, Any]) -> None:
        kind = event["kind"]
        if kind == "SystemPromptEvent":
            prompt = event.get("system_prompt")
            self.draft.tools = offered_tools(_sdk_tools(event), self.draft.reading.cleaner)
            self._spoken("system", event, plain_text(prompt))
        elif kind == "MessageEvent":
            message = mapping(event.get("llm_message"))
            role = label(message.get("role")) or ("assistant" if event.get("source") == "agent" else "user")
            content = plain_text(message.get("content", event.get("content")))
            self._spoken(role, event, content, reasoning=text(message.get("reasoning_content")))
        elif kind == "ActionEvent":
            self._add_sdk_action(event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._add_sdk_result(event, kind)
        else:
            self._skip(kind)

    def _add_sdk_action(self, event: dict[str, Any]) -> None:
        given = mapping(event.get("tool_call"))
        action = mapping(event.get("action"))
        arguments = given.get("arguments", at(given, "function", "arguments"))
        if arguments is None:
            arguments = {k: v for k, v in action.items() if k != "kind"}
        name = label(event.get("tool_name")) or label(given.get("name")) or "unknown"
        call = Call(label(event.get("tool_call_id")) or label(given.get("id")), name, arguments)
        answer = label(event.get("llm_response_id"))
        thought = plain_text(event.get("thought"))
        index = self._answers.get(answer) if answer is not None else None
        if index is not None:
            self.draft.extend_answer(index, thought, [call])
        else:
            reasoning = text(event.get("reasoning_content"))
            index = self._spoken("assistant", event, thought, calls=[call], reasoning=reasoning)
            if answer is not None:
                self._answers[answer] = index
        self._called(label(event.get("id")), index)

    def _add_sdk_result(self, event: dict[str, Any], kind: str) -> None:
        result = event.get("observation")
        known = mapping(result)
        status: ResultStatus | None = None
        if kind == "AgentErrorEvent":
            status, content = "error", text(event.get("error")) or ""
        elif kind == "UserRejectObservation":
            status, content = "not_run", text(event.get("rejection_reason")) or ""
        else:
            if isinstance(known.get("is_error"), bool):
                status = "error" if known["is_error"] else "ok"
            content = plain_text(known.get("content", known.get("output"))) if known else plain_text(result)
        call_id = label(event.get("tool_call_id")) or self._calls.get(label(event.get("action_id")) or "")
        self._spoken(
            "tool",
            event,
            content,
            name=label(event.get("tool_name")),
            tool_call_id=call_id,
            status=status,
            exit_code=whole(known.get("exit_code")),
        )


def _sdk_tools(event: dict[str, Any]) -> Any:
    tools = sequence(event.get("tools"))
    return [t if "name" in mapping(t) or "function" in mapping(t) else {"name": mapping(t).get("title")} for t in tools]

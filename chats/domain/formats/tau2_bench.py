"""tau2-bench results: simulations between an agent and a simulated customer (section 4, 17)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.tau_bench import without_marks
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, shown, text

FORMAT: Final = "tau2-bench"
_KEYS: Final = frozenset(
    {"role", "content", "tool_calls", "id", "requestor", "error", "tool_messages", "turn_idx", "timestamp", "cost"}
    | {"usage", "raw_data"}
)


def recognise(head: Head) -> float:
    top = head.top
    if top is not None and isinstance(top.get("simulations"), list):
        fits = sum("messages" in mapping(s) for s in top["simulations"])
        return fits / len(top["simulations"]) if top["simulations"] else 1.0
    return share(head, _is_simulation)


def _is_simulation(row: dict[str, Any]) -> bool:
    return isinstance(row.get("messages"), list) and "task_id" in row and "termination_reason" in row


def read(document: Document, reading: Reading) -> Iterator[Item]:
    top = document.head.top
    if top is not None and "simulations" in top:
        info = mapping(top.get("info"))
        return read_rows(document.items("simulations"), reading, lambda row: [_chat(mapping(row), info, reading)])
    return read_rows(document.rows(), reading, lambda row: [_chat(mapping(row), {}, reading)])


def _chat(simulation: dict[str, Any], info: dict[str, Any], reading: Reading) -> Item:
    messages = reading.objects(simulation.get("messages"))
    if not messages:
        error = text(simulation.get("termination_reason"))
        return Problem("failed_run" if error else "no_messages", reading.place, {"error": error or ""})
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(simulation.get("id"))
    if draft.external_id is None:
        draft.external_id = label(simulation.get("task_id"))
        draft.identity_by_content = True
    draft.metadata = scalars(simulation, without=frozenset({"id"}))
    reward = at(simulation, "reward_info", "reward")
    if isinstance(reward, (int, float)):
        draft.metadata["reward"] = reward
    for key, path in (("agent_model", ("agent_info", "llm")), ("domain", ("environment_info", "domain_name"))):
        if (value := text(at(info, *path))) is not None:
            draft.metadata[key] = value
    if isinstance(info.get("max_steps"), int):
        draft.metadata["max_steps"] = info["max_steps"]
    draft.tools = offered_tools(at(info, "environment_info", "tool_defs"), reading.cleaner)
    policy = text(at(info, "environment_info", "policy"))
    if policy is not None and messages[0].get("role") != "system":
        draft.add("system", policy)
    waiting: deque[str] = deque()
    for message in messages:
        _add(draft, message, waiting)
    if not len(draft):
        raise ReadingProblem("no_messages")
    return draft.record()


def _add(draft: ChatDraft, message: dict[str, Any], waiting: deque[str]) -> None:
    results = message.get("tool_messages")
    if isinstance(results, list):
        for result in mappings(results):
            _add_result(draft, result, waiting)
    elif message.get("role") == "tool":
        _add_result(draft, message, waiting)
    else:
        _add_spoken(draft, message, waiting)


def _add_result(draft: ChatDraft, result: dict[str, Any], waiting: deque[str]) -> None:
    if result.get("requestor") == "user":
        draft.reading.report.note_skipped("customer_result", draft.reading.place)
        return
    call_id = label(result.get("id")) or label(result.get("tool_call_id"))
    if call_id is not None and call_id in waiting:
        waiting.remove(call_id)
    elif call_id is None and waiting:
        call_id = waiting.popleft()
    failed = result.get("error")
    draft.add(
        "tool",
        shown(result.get("content")),
        tool_call_id=call_id,
        status="error" if failed is True else "ok" if failed is False else None,
        created_at=moment(result.get("timestamp")),
        ref=_ref(result),
    )


def _add_spoken(draft: ChatDraft, message: dict[str, Any], waiting: deque[str]) -> None:
    role = label(message.get("role")) or "user"
    content = message.get("content")
    if isinstance(content, str) and role in ("user", "assistant"):
        content = without_marks(content)
    calls = [
        Call(label(c.get("id")), label(c.get("name")) or "unknown", c.get("arguments"))
        for c in mappings(message.get("tool_calls"))
        if c.get("requestor") != "user" and role == "assistant"
    ]
    left_out = len(mappings(message.get("tool_calls"))) - len(calls)
    if left_out:
        draft.reading.report.note_skipped("customer_call", draft.reading.place, left_out)
    if not content and not calls and (left_out or message.get("content")):
        if message.get("content"):
            draft.reading.report.note_skipped("control_mark", draft.reading.place)
        return
    raw = mapping(message.get("raw_data"))
    index = draft.add_parts(
        role,
        content,
        calls=calls,
        finish=_finish(raw) if role == "assistant" else None,
        model=text(raw.get("model")) if role == "assistant" else None,
        usage=mapping(message.get("usage")) or None,
        created_at=moment(message.get("timestamp")),
        ref=_ref(message),
    )
    if calls:
        waiting.clear()
        waiting.extend(c.id for c in draft.details[index].tool_calls)


def _finish(raw: dict[str, Any]) -> str | None:
    return text(raw.get("finish_reason")) or text(at(raw, "choices", 0, "finish_reason"))


def _ref(message: dict[str, Any]) -> str | None:
    turn = message.get("turn_idx")
    return f"turn {turn}" if isinstance(turn, int) else None

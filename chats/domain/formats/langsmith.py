"""LangSmith runs, ingestion batches, and the event stream of managed agents (section 4, 21)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.parts import plain_text
from chats.domain.formats.problems import Problem
from chats.domain.formats.reading_rows import Item, read_whole
from chats.domain.formats.traces import Step, TraceChats
from chats.domain.formats.values import at, label, mapping, mappings, moment, text

FORMAT: Final = "langsmith"
_MODEL_RUNS: Final = frozenset({"llm", "chat_model", "chat"})
_EVENT_PREFIX: Final = "client.beta.sessions."


def recognise(head: Head) -> float:
    rows = [r for r in head.rows if _is_run(r) or _is_batch(r) or _is_managed(r)]
    return len(rows) / len(head.rows) if head.rows else 0.0


def _is_run(row: Any) -> bool:
    known = mapping(row)
    return isinstance(known.get("run_type"), str) and ("inputs" in known or "outputs" in known)


def _is_batch(row: Any) -> bool:
    known = mapping(row)
    return isinstance(known.get("post"), list) or isinstance(known.get("patch"), list) or _is_run_list(known)


def _is_run_list(known: dict[str, Any]) -> bool:
    return isinstance(known.get("runs"), list) and bool(known["runs"]) and all(_is_run(r) for r in known["runs"])


def _is_managed(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and row[0].startswith(_EVENT_PREFIX)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_whole(document, reading, lambda rows: _chats(rows, reading))


def _chats(rows: list[Any], reading: Reading) -> Iterator[Item]:
    if any(_is_managed(r) for r in rows):
        yield _managed_chat([r for r in rows if _is_managed(r)], reading)
        return
    runs = _merged(rows)
    chats = TraceChats(reading, FORMAT)
    for run in runs.values():
        call_id = label(at(run, "outputs", "output", "tool_call_id")) or label(at(run, "inputs", "tool_call_id"))
        if run.get("run_type") == "tool" and call_id is not None:
            chats.outcomes[call_id] = "error" if run.get("error") else "ok"
        if text(run.get("run_type")) in _MODEL_RUNS:
            chats.add(_step(run))
    made = False
    for item in chats.chats():
        made = True
        yield item
    if not made:
        yield Problem("no_messages", reading.place)


def _merged(rows: list[Any]) -> dict[str, dict[str, Any]]:
    """Runs by id: what a patch says goes over what the post said. Runs inside runs are taken out."""
    runs: dict[str, dict[str, Any]] = {}
    waiting = [r for row in mappings(rows) for r in _runs_of(row)]
    for n, run in enumerate(waiting):
        run_id = label(run.get("id")) or _id_in_order(run) or f"run-{n}"
        known = runs.setdefault(run_id, {"id": run_id})
        known.update({k: v for k, v in run.items() if v not in (None, {}, []) and k != "id"})
        waiting.extend(mappings(run.get("child_runs")))
    return runs


def _runs_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    if _is_run_list(row):
        return mappings(row["runs"])
    if _is_batch(row):
        return [*mappings(row.get("post")), *mappings(row.get("patch"))]
    return [row]


def _id_in_order(run: dict[str, Any]) -> str | None:
    """A patch may name its run only in `dotted_order`: times and ids of the run and those above it."""
    dotted = text(run.get("dotted_order"))
    return dotted.rsplit(".", 1)[-1].partition("Z")[2] or None if dotted is not None else None


def _step(run: dict[str, Any]) -> Step:
    started = moment(run.get("start_time"))
    known = mapping(at(run, "extra", "metadata"))
    session = label(known.get("session_id")) or label(known.get("thread_id")) or label(known.get("conversation_id"))
    return Step(
        id=label(run.get("id")),
        group=session or label(run.get("trace_id")) or label(run.get("id")) or "trace",
        agent=label(known.get("agent_name")) or label(known.get("lc_agent_name")),
        inputs=run.get("inputs"),
        outputs=run.get("outputs"),
        started=started.timestamp() if started is not None else 0.0,
        ended=moment(run.get("end_time")),
        model=text(known.get("ls_model_name")),
        usage=mapping(at(run, "outputs", "usage_metadata")) or None,
        metadata={k: v for k in ("name", "session_name") if (v := text(run.get(k))) is not None},
    )


def _managed_chat(rows: list[Any], reading: Reading) -> Item:
    """Sent and streamed events of one managed session, in order."""
    draft = ChatDraft(reading, FORMAT)
    answer: int | None = None
    refused: set[str] = set()
    streamed = any(at(r, 1, "type") == "user.message" for r in rows)
    for name, value in rows:
        if name.endswith("sessions.create"):
            agent = mapping(mapping(value).get("agent"))
            draft.external_id = label(mapping(value).get("id"))
            draft.metadata.update({k: v for k in ("name", "id") if (v := text(agent.get(k))) is not None})
            draft.tools = offered_tools(
                [t for t in mappings(agent.get("tools")) if "name" in t] or None, reading.cleaner
            )
            model = text(at(agent, "model", "id")) or text(agent.get("model"))
            if model is not None:
                draft.metadata["model"] = model
            if told := text(agent.get("system")):
                draft.add("system", told)
            continue
        events = [mapping(value)] if isinstance(value, dict) else mappings(mapping(at(value, 1)).get("events"))
        for event in events:
            if streamed and not isinstance(value, dict):
                continue
            answer = _add_event(draft, event, answer, refused)
    return draft.record()


def _add_event(draft: ChatDraft, event: dict[str, Any], answer: int | None, refused: set[str]) -> int | None:
    """Add a managed agent's event; gives the answer at hand, if it goes on."""
    kind = text(event.get("type")) or ""
    created = moment(event.get("processed_at"))
    ref = label(event.get("id"))
    if kind == "user.message":
        draft.add_parts("user", event.get("content"), created_at=created, ref=ref)
        return None
    if kind == "agent.message":
        if answer is not None:
            draft.extend_answer(answer, plain_text(event.get("content")))
            return answer
        return draft.add_parts(
            "assistant", event.get("content"), created_at=created, ref=ref, model=text(draft.metadata.get("model"))
        )
    if kind.startswith("agent.") and kind.endswith("tool_use"):
        call = Call(ref, label(event.get("name")) or "unknown", event.get("input"))
        if answer is not None:
            draft.extend_answer(answer, calls=[call])
            return answer
        return draft.add(
            "assistant", "", calls=[call], created_at=created, ref=ref, model=text(draft.metadata.get("model"))
        )
    if kind.startswith("agent.") and kind.endswith("tool_result"):
        call_id = label(event.get("tool_use_id")) or label(event.get("mcp_tool_use_id"))
        failed = event.get("is_error") is True
        draft.add_parts(
            "tool",
            event.get("content"),
            tool_call_id=call_id,
            status="not_run" if call_id in refused else "error" if failed else "ok",
            created_at=created,
            ref=ref,
        )
        return None
    if kind == "user.tool_confirmation" and event.get("result") == "deny":
        refused.add(label(event.get("tool_use_id")) or "")
    if kind == "span.model_request_end" and answer is not None:
        draft.extend_answer(answer, usage=mapping(event.get("model_usage")))
        return None
    if kind == "session.status_idle":
        reason = text(at(event, "stop_reason", "type"))
        last = next((i for i in range(len(draft) - 1, -1, -1) if draft.messages[i].role == "assistant"), None)
        if reason in ("end_turn", "max_tokens") and last is not None:
            draft.extend_answer(last, finish=reason)
    return answer

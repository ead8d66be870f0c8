"""Langfuse traces: chats are rebuilt from the generations (section 4, 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Reading
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole
from chats.domain.formats.traces import Step, TraceChats
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, shown, text

FORMAT: Final = "langfuse"
_TYPES: Final = frozenset(
    {"GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
)
_UNDERSCORE: Final = re.compile(r"_([a-z])")
_AGENT_NAMES: Final = ("gen_ai.agent.name", "agent.name", "agent_name")


def recognise(head: Head) -> float:
    """A trace with its observations, a list of observations, or what observations were normalised to, by id."""
    top = head.top
    if top is not None and (isinstance(top.get("observations"), list) or _is_normalised(top)):
        return 1.0
    if top is not None and isinstance(top.get("data"), list) and top["data"]:
        return sum(_fits(mapping(r)) for r in top["data"]) / len(top["data"])
    if not head.rows:
        return 0.0
    return sum(_fits(mapping(r)) for r in head.rows) / len(head.rows)


def _fits(row: dict[str, Any]) -> bool:
    return isinstance(row.get("observations"), list) or _is_observation(row)


def _is_observation(row: dict[str, Any]) -> bool:
    return text(row.get("type")) in _TYPES and bool(row.keys() & {"traceId", "trace_id"})


def _in_camel_case(observation: dict[str, Any]) -> dict[str, Any]:
    """Exports of the database name the fields as its columns."""
    if "trace_id" not in observation:
        return observation
    return {_UNDERSCORE.sub(lambda m: m[1].upper(), k): v for k, v in observation.items()}


def _is_normalised(top: dict[str, Any]) -> bool:
    sides = [mapping(v).get(k) for v in top.values() for k in ("input", "output") if k in mapping(v)]
    return bool(sides) and len(top) <= len(sides) and all("success" in mapping(s) for s in sides)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    if all(text(mapping(r).get("type")) in _TYPES for r in document.head.rows):
        yield from read_whole(document, reading, lambda rows: _chats({}, reading.objects(rows), reading))
        return
    yield from read_rows(document.rows(), reading, lambda row: _convert(mapping(row), reading))


def _convert(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    if isinstance(row.get("observations"), list):
        trace = mapping(row.get("trace")) or {k: v for k, v in row.items() if k != "observations"}
        yield from _chats(trace, reading.objects(row["observations"]), reading)
    elif isinstance(row.get("data"), list):
        # A page of a list: observations, or traces that hold theirs.
        if any(map(_is_observation, mappings(row["data"]))):
            yield from _chats({}, reading.objects(row["data"]), reading)
        else:
            for trace in reading.objects(row["data"]):
                yield from _convert(trace, reading)
    elif _is_normalised(row):
        observations = [
            {"id": key, "type": "GENERATION", "input": at(v, "input", "data"), "output": at(v, "output", "data")}
            for key, v in row.items()
        ]
        yield from _chats({}, [o for o in observations if _has_messages(o["input"])], reading)
    else:
        raise ReadingProblem("no_messages")


def _has_messages(value: Any) -> bool:
    return isinstance(value, list) and any("role" in mapping(m) for m in value)


def _chats(trace: dict[str, Any], observations: list[dict[str, Any]], reading: Reading) -> Iterator[Item]:
    observations = [_in_camel_case(o) for o in observations]
    chats = TraceChats(reading, FORMAT)
    by_id = {i: o for o in observations if (i := label(o.get("id"))) is not None}
    agents: dict[str, str | None] = {}
    group = label(trace.get("sessionId")) or label(trace.get("id"))
    for observation in observations:
        kind = observation.get("type")
        attributes = mapping(_parsed(reading, at(observation, "metadata"))).get("attributes")
        call_id = label(mapping(_parsed(reading, attributes)).get("gen_ai.tool.call.id"))
        if call_id is None and kind == "TOOL":
            call_id = label(mapping(_parsed(reading, observation.get("output"))).get("tool_call_id"))
        if call_id is not None:
            chats.outcomes[call_id] = "error" if observation.get("level") == "ERROR" else "ok"
            if observation.get("output") is not None:
                told = mapping(_parsed(reading, observation["output"]))
                chats.results[call_id] = shown(told.get("content") if "tool_call_id" in told else observation["output"])
        if kind == "GENERATION" or (kind == "AGENT" and _holds_messages(reading, observation.get("input"))):
            chats.add(_step(reading, trace, observation, by_id, agents, group))
    made = 0
    for item in chats.chats():
        made += 1
        yield item
    if not made and trace:
        step = _step(reading, {}, {**trace, "type": "GENERATION"}, {}, {}, group)
        chats.add(step)
        for item in chats.chats():
            made += 1
            yield item
    if not made:
        yield Problem("no_messages", reading.place)


def _holds_messages(reading: Reading, value: Any) -> bool:
    """An agent's own input counts where it is a list of messages: some runtimes give the model only what is new."""
    found = _parsed(reading, value)
    return isinstance(found, list) and any("role" in mapping(m) for m in found)


def _parsed(reading: Reading, value: Any) -> Any:
    return reading.cleaner.parse_if_json(value) if isinstance(value, str) else value


def _step(
    reading: Reading,
    trace: dict[str, Any],
    observation: dict[str, Any],
    by_id: dict[str, dict[str, Any]],
    agents: dict[str, str | None],
    group: str | None,
) -> Step:
    started = moment(observation.get("startTime"))
    details = mapping(observation.get("usageDetails")) or mapping(observation.get("usage"))
    return Step(
        id=label(observation.get("id")),
        group=group or label(observation.get("traceId")) or "trace",
        agent=_agent(reading, observation, by_id, agents),
        inputs=observation.get("input"),
        outputs=observation.get("output"),
        started=started.timestamp() if started is not None else 0.0,
        ended=moment(observation.get("endTime")),
        model=text(observation.get("model")) or text(observation.get("providedModelName")),
        usage={k: v for k, v in details.items() if isinstance(v, (int, float))} or None,
        metadata=scalars({k: trace.get(k) for k in ("id", "name", "environment", "release", "version")})
        | ({"tags": trace["tags"]} if trace.get("tags") else {}),
    )


def _agent(
    reading: Reading,
    observation: dict[str, Any],
    by_id: dict[str, dict[str, Any]],
    known: dict[str, str | None],
) -> str | None:
    """The agent under which a step was taken: the nearest observation above of that type, or a name in metadata."""
    way: list[str] = []
    seen: set[str] = set()
    step: dict[str, Any] | None = observation
    found: str | None = None
    while step is not None and found is None:
        found = _own_agent(reading, step)
        parent = label(step.get("parentObservationId"))
        if found is not None or parent is None or parent in seen:
            break
        seen.add(parent)
        if parent in known:
            found = known[parent]
            break
        way.append(parent)
        step = by_id.get(parent)
    known.update(dict.fromkeys(way, found))
    return found


def _own_agent(reading: Reading, step: dict[str, Any]) -> str | None:
    if step.get("type") == "AGENT":
        return label(step.get("name")) or label(step.get("id"))
    attributes = mapping(_parsed(reading, mapping(_parsed(reading, step.get("metadata"))).get("attributes")))
    return next((name for key in _AGENT_NAMES if (name := label(attributes.get(key))) is not None), None)

"""OpenTelemetry spans of model calls, in the current convention and the older and vendors' ones (section 4, 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Reading, offered_tools
from chats.domain.formats.problems import Problem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.traces import Step, TraceChats
from chats.domain.formats.values import label, mapping, mappings, moment, sequence, shown, text

FORMAT: Final = "otel-genai"
_NUMBERED: Final = re.compile(r"^(?:gen_ai\.(?:prompt|completion)|llm\.(?:input|output)_messages)\.\d+\.")
_EVENT_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_NO_CHAT: Final = frozenset({"execute_tool", "embeddings", "invoke_agent", "create_agent", "invoke_workflow"})


def recognise(head: Head) -> float:
    return share(head, lambda row: isinstance(row.get("resourceSpans") or row.get("resourceLogs"), list))


# Trace, parent, agent, conversation, and the instructions: what tells steps apart of which each may become a chat.
_Slot = tuple[str, str | None, str | None, str | None, str]


@dataclass(slots=True)
class _Link:
    """What must be kept of a span until its children are known."""

    parent: str | None
    conversation: str | None
    agent: str | None


def read(document: Document, reading: Reading) -> Iterator[Item]:
    """Spans of all lines are grouped; only the longest of each parent is held."""
    spans = _Spans(reading)

    def take(row: Any) -> Iterator[Item]:
        spans.take(mapping(row))
        return iter(())

    for item in read_rows(document.rows(), reading, take):
        yield Problem(item.code, item.place, item.args, chat_lost=False) if isinstance(item, Problem) else item
    reading.place = document.place
    found = False
    for item in spans.chats():
        found = True
        yield item
    if not found:
        yield Problem("no_messages", document.place)


class _Spans:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._links: dict[tuple[str, str], _Link] = {}
        self._steps: dict[_Slot, tuple[str, str, Step]] = {}
        self._groups: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._agents: list[tuple[str, str, Step]] = []
        self._outcomes: dict[str, Any] = {}
        self._results: dict[str, str] = {}
        self._logs: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def take(self, row: dict[str, Any]) -> None:
        for resource in mappings(row.get("resourceLogs")):
            for scope in mappings(resource.get("scopeLogs")):
                for record in mappings(scope.get("logRecords")):
                    self._log(record)
        for resource in mappings(row.get("resourceSpans")):
            scopes = resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")
            for scope in mappings(scopes):
                for span in mappings(scope.get("spans")):
                    self._span(span)

    def _log(self, record: dict[str, Any]) -> None:
        attributes = attributes_of(record)
        name = text(record.get("eventName")) or text(attributes.get("event.name"))
        if name is None or not name.startswith("gen_ai."):
            return
        body = decoded(record.get("body"))
        key = (label(record.get("traceId")) or "", label(record.get("spanId")) or "")
        self._logs.setdefault(key, []).append({"name": name, "fields": {**attributes, **mapping(body)}})

    def _span(self, span: dict[str, Any]) -> None:
        attributes = attributes_of(span)
        trace, own = label(span.get("traceId")) or "", label(span.get("spanId")) or ""
        operation = text(attributes.get("gen_ai.operation.name"))
        agent = label(attributes.get("gen_ai.agent.id")) or label(attributes.get("gen_ai.agent.name"))
        conversation = label(attributes.get("gen_ai.conversation.id")) or label(attributes.get("session.id"))
        parent = label(span.get("parentSpanId"))
        if agent is None and operation == "invoke_agent":
            agent = own
        self._links[(trace, own)] = _Link(parent, conversation, agent)
        call_id = label(attributes.get("gen_ai.tool.call.id"))
        if call_id is not None:
            failed = mapping(span.get("status")).get("code") in (2, "2", "STATUS_CODE_ERROR")
            self._outcomes[call_id] = "error" if failed else "ok"
            if "gen_ai.tool.call.result" in attributes:
                self._results[call_id] = shown(attributes["gen_ai.tool.call.result"])
        step = self._step(span, attributes, trace, own)
        if step is None or operation in ("execute_tool", "embeddings"):
            return
        if operation in _NO_CHAT:
            self._agents.append((trace, own, step))
            return
        self._keep_longest(trace, own, step)

    def _keep_longest(self, trace: str, own: str, step: Step) -> None:
        """Of steps under one parent with one instruction, only the longest can be the one that is taken."""
        link = self._links.setdefault((trace, own), _Link(None, None, None))
        slot = (trace, link.parent, link.agent, link.conversation, _first_system(step.inputs))
        best = self._steps.get(slot)
        if best is None or len(step.inputs) >= len(best[2].inputs):
            self._steps[slot] = (trace, own, step)

    def _step(self, span: dict[str, Any], attributes: dict[str, Any], trace: str, own: str) -> Step | None:
        inputs, outputs = self._convention(attributes)
        events = [{"name": e.get("name"), "fields": attributes_of(e)} for e in mappings(span.get("events"))]
        if not inputs and not outputs:
            inputs, outputs = self._numbered(attributes)
        if not inputs and not outputs:
            inputs, outputs = self._events([*events, *self._logs.pop((trace, own), [])])
        if not inputs and not outputs:
            return None
        reasons = self._json(attributes.get("gen_ai.response.finish_reasons"))
        finish = next((t for t in (reasons if isinstance(reasons, list) else [reasons]) if text(t)), None)
        usage = {
            k.removeprefix("gen_ai.usage."): v
            for k, v in attributes.items()
            if k.startswith("gen_ai.usage.") and isinstance(v, (int, float))
        }
        started = label(span.get("startTimeUnixNano"))
        return Step(
            id=own,
            group="",
            agent=None,
            inputs=inputs,
            outputs=outputs,
            started=float(started) if started and started.isdecimal() else 0.0,
            ended=moment(label(span.get("endTimeUnixNano"))),
            model=text(attributes.get("gen_ai.response.model")) or text(attributes.get("gen_ai.request.model")),
            usage=usage or None,
            finish=finish,
            tools=offered_tools(attributes.get("gen_ai.tool.definitions"), self._reading.cleaner),
            metadata={"trace_id": trace},
        )

    def _json(self, value: Any) -> Any:
        return self._reading.cleaner.parse_if_json(value) if isinstance(value, str) else value

    def _convention(self, attributes: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        inputs = sequence(self._json(attributes.get("gen_ai.input.messages")))
        outputs = sequence(self._json(attributes.get("gen_ai.output.messages")))
        system = self._json(attributes.get("gen_ai.system_instructions"))
        if system and (inputs or outputs):
            parts = system if isinstance(system, list) else [{"type": "text", "content": system}]
            inputs = [{"role": "system", "parts": parts}, *inputs]
        return inputs, outputs

    def _numbered(self, attributes: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Vendors' attributes with a number for each message in the key."""
        tree: dict[str, Any] = {}
        for key, value in attributes.items():
            if _NUMBERED.match(key):
                _plant(tree, key.split("."), value)
        prompt = mapping(mapping(tree.get("gen_ai")).get("prompt"))
        completion = mapping(mapping(tree.get("gen_ai")).get("completion"))
        llm = mapping(tree.get("llm"))
        inputs = _in_order(prompt) or _in_order(mapping(llm.get("input_messages")))
        outputs = _in_order(completion) or _in_order(mapping(llm.get("output_messages")))
        return [self._vendor_message(m, "user") for m in inputs], [
            self._vendor_message(m, "assistant") for m in outputs
        ]

    def _vendor_message(self, fields: dict[str, Any], role: str) -> dict[str, Any]:
        known = mapping(fields.get("message")) or fields
        calls = []
        for entry in _in_order(mapping(known.get("tool_calls"))):
            call = mapping(entry.get("tool_call")) or entry
            function = mapping(call.get("function")) or call
            calls.append({"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")})
        content = known.get("content")
        parts = _in_order(mapping(known.get("contents")))
        if content is None and parts:
            content = [{"type": "text", **mapping(p.get("message_content"))} for p in parts]
        if isinstance(content, str) and content.lstrip().startswith("[{"):
            content = self._json(content)
            if not isinstance(content, list) or not all(mapping(p).get("type") for p in content):
                content = known.get("content")
        message = {
            "role": known.get("role") or role,
            "content": content,
            "tool_call_id": known.get("tool_call_id"),
            "name": known.get("name"),
            "finish_reason": known.get("finish_reason"),
        }
        return {**message, "tool_calls": calls} if calls else message

    def _events(self, events: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
        """Messages as span events or log records."""
        inputs: list[Any] = []
        outputs: list[Any] = []
        for event in events:
            name, fields = event["name"], event["fields"]
            if name in _EVENT_ROLES:
                known = self._event_message(fields)
                inputs.append({"role": _EVENT_ROLES[name], **known})
            elif name == "gen_ai.choice":
                known = self._event_message(fields)
                inner = self._json(fields.get("message"))
                inner = inner if isinstance(inner, dict) else {"content": inner} if inner else {}
                finish = fields.get("finish_reason")
                outputs.append({"role": "assistant", **known, **inner, "finish_reason": finish})
            elif name == "gen_ai.content.prompt":
                inputs.extend(sequence(self._json(fields.get("gen_ai.prompt"))))
            elif name == "gen_ai.content.completion":
                outputs.extend(sequence(self._json(fields.get("gen_ai.completion"))))
            elif "gen_ai.input.messages" in fields or "gen_ai.output.messages" in fields:
                more_in, more_out = self._convention(fields)
                inputs.extend(more_in)
                outputs.extend(more_out)
        return inputs, outputs

    def _event_message(self, fields: dict[str, Any]) -> dict[str, Any]:
        known = {k: fields[k] for k in ("content", "role", "name") if fields.get(k) is not None}
        calls = self._json(fields.get("tool_calls"))
        if isinstance(calls, list):
            known["tool_calls"] = calls
        call_id = fields.get("tool_call_id", fields.get("id"))
        if call_id is not None and known.get("role", "tool") == "tool":
            known["tool_call_id"] = call_id
        return known

    def chats(self) -> Iterator[Item]:
        self._take_lone_logs()
        chats = TraceChats(self._reading, FORMAT)
        chats.outcomes = self._outcomes
        chats.results = self._results
        for trace, own, step in self._steps.values():
            step.group, step.agent = self._group(trace, own)
            chats.add(step)
        for trace, own, step in self._agents:
            step.group, step.agent = self._group(trace, own)
            chats.add(step)
        yield from chats.chats()

    def _take_lone_logs(self) -> None:
        """Messages in log records whose span came earlier or not at all."""
        for (trace, own), events in self._logs.items():
            inputs, outputs = self._events(events)
            if inputs or outputs:
                step = Step(id=own, group="", agent=None, inputs=inputs, outputs=outputs, metadata={"trace_id": trace})
                self._keep_longest(trace, own, step)
        self._logs.clear()

    def _group(self, trace: str, own: str) -> tuple[str, str | None]:
        """The conversation and the agent of a span, from itself or the nearest span above that says so."""
        way: list[tuple[_Link, str]] = []
        seen: set[str] = set()
        step: str | None = own
        conversation, agent = None, None
        while step is not None and step not in seen and (link := self._links.get((trace, step))) is not None:
            seen.add(step)
            if (trace, step) in self._groups:
                conversation, agent = self._groups[(trace, step)]
                break
            way.append((link, step))
            step = link.parent
        for link, step in reversed(way):
            conversation, agent = link.conversation or conversation, link.agent or agent
            self._groups[(trace, step)] = conversation, agent
        return conversation or trace, agent


def attributes_of(holder: dict[str, Any]) -> dict[str, Any]:
    """Attributes by key; both the list of OTLP and a plain object are read."""
    given = holder.get("attributes")
    if isinstance(given, dict):
        return given
    return {k: decoded(a.get("value")) for a in mappings(given) if (k := text(a.get("key"))) is not None}


def decoded(value: Any) -> Any:
    """A typed OTLP value as JSON."""
    known = mapping(value)
    if not known:
        return value
    if "intValue" in known:
        try:
            return int(known["intValue"])
        except (TypeError, ValueError):
            return None
    if "arrayValue" in known:
        return [decoded(v) for v in sequence(mapping(known["arrayValue"]).get("values"))]
    if "kvlistValue" in known:
        pairs = mappings(mapping(known["kvlistValue"]).get("values"))
        return {k: decoded(p.get("value")) for p in pairs if (k := text(p.get("key"))) is not None}
    for key in ("stringValue", "boolValue", "doubleValue"):
        if key in known:
            return known[key]
    return None


def _plant(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree.setdefault(path[-1], value)


def _in_order(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of an object whose keys are numbers."""
    return [mapping(tree[k]) for k in sorted((k for k in tree if k.isdecimal() and len(k) < 10), key=int)]


def _first_system(inputs: list[Any]) -> str:
    first = mapping(inputs[0]) if inputs else {}
    return str(first) if first.get("role") == "system" else ""

"""Small uploads made in memory, and what importing them gives."""

import io
import json
from dataclasses import dataclass, field
from typing import Any

from chats.domain import ChatRecord
from chats.domain.formats import ImportOptions, ImportReport, Problem, Source, open_source


@dataclass
class Imported:
    """Everything one import gave."""

    source: Source
    chats: list[ChatRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    @property
    def report(self) -> ImportReport:
        return self.source.report

    @property
    def chat(self) -> ChatRecord:
        (only,) = self.chats
        return only

    @property
    def codes(self) -> list[str]:
        return [p.code for p in self.problems]


def imported(upload: bytes, format: str | None = None, **options: Any) -> Imported:
    found = Imported(open_source(io.BytesIO(upload), format=format, options=ImportOptions(**options)))
    for located in found.source:
        found.places.append(str(located.place))
        if located.record is not None:
            found.chats.append(located.record)
        if located.problem is not None:
            found.problems.append(located.problem)
    return found


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def as_lines(*values: Any) -> bytes:
    return b"".join(as_json(v) + b"\n" for v in values)


def brief(record: ChatRecord) -> list[str]:
    """One text a message: role, content, and what hangs on it: `assistant: hi +read{"path": "a"}`, `tool[c1 ok]: x`."""
    lines: list[str] = []
    for message, known in zip(record.chat.messages, record.details, strict=True):
        mark = ""
        if message.role == "tool":
            state = [message.tool_call_id or "?", *filter(None, [known.result_status])]
            if known.exit_code is not None:
                state.append(str(known.exit_code))
            mark = f"[{' '.join(state)}]"
        if message.fewshot_example:
            mark = "[few-shot]"
        if known.nudge_code is not None:
            mark = f"[{known.nudge_code}]"
        calls = "".join(
            f" +{c.name}{json.dumps(c.arguments) if c.arguments is not None else '!' + str(c.arguments_raw)}"
            for c in known.tool_calls
        )
        thought = f" ({known.reasoning})" if known.reasoning else ""
        finish = f" ={known.finish_reason}" if known.finish_reason else ""
        name = f"<{message.name}>" if message.name else ""
        lines.append(f"{message.role}{name}{mark}: {message.content}{thought}{calls}{finish}")
    return lines

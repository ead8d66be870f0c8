"""Import every file of a folder with an `index.json` and compare with the counts given there.

Conversations must agree: chats taken and chats lost together, branches and sub-agents aside. Messages and calls of the
index are counted in the units of each source and called approximate there, so they are compared only where those units
are messages: for the rest at least one message a chat is asked for. Hostile files must end in a problem or an import in
part. A file must be recognised as its format or as one that stands higher in the table and fits too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from chats.domain.formats import FORMATS, ImportReport, open_source

ORDER = [f.id for f in FORMATS]
MIXED = frozenset({"containers", "hostile"})
SAME_UNITS = frozenset(
    {
        "alpaca",
        "eleanor-chat",
        "langchain",
        "openai-finetune",
        "sharegpt",
        "swe-agent",
        "tau-bench",
        "vercel-ui-messages",
    }
)
SAME_CALLS = SAME_UNITS - {"swe-agent"}  # there the index counts steps, of which one may be missing from the history


def failures(folder: Path, entry: dict[str, Any]) -> list[str]:
    """What is wrong with the import of one file; empty when nothing is."""
    source = open_source(folder / entry["path"])
    records = [found.record for found in source]
    report = source.report
    if entry["format"] == "hostile":
        noted = report.problems or report.results_without_call.count or report.unknown_roles
        return [] if noted or report.arguments_not_json.count else ["nothing was reported"]
    wrong: list[str] = []
    found = report.chats - sum(report.side_chats.values()) + report.chats_lost
    if found != entry["conversations"]:
        wrong.append(f"{found} conversations, not {entry['conversations']}: {_told(report)}")
    if entry["format"] not in MIXED and not _fits(source.format, entry["format"]):
        wrong.append(f"recognised as {source.format}")
    if any(r is not None and not r.chat.messages for r in records):
        wrong.append("a chat without messages")
    if entry["format"] in SAME_UNITS and entry["messages"]:
        left_out = sum(n.count for n in report.skipped.values())
        if report.messages + left_out != entry["messages"] and not _display_rows(entry):
            wrong.append(f"{report.messages} messages and {left_out} left out, not {entry['messages']}")
        if entry["format"] in SAME_CALLS and report.calls != entry["tool_calls"] and not _display_rows(entry):
            wrong.append(f"{report.calls} calls, not {entry['tool_calls']}")
    return wrong


def _fits(recognised: str | None, expected: str) -> bool:
    return recognised is not None and ORDER.index(recognised) <= ORDER.index(expected)


def _display_rows(entry: dict[str, Any]) -> bool:
    """Rows that hold a whole conversation as one text are counted by the index without looking into the text."""
    return "display string" in str(entry.get("notes", ""))


def _told(report: ImportReport) -> str:
    return ", ".join(f"{n.count} {code}" for code, n in report.problems.items()) or "no problems"


def run(argv: list[str]) -> int:
    """`python -m tests.golden formats DIR`, and names of formats after it to try only those."""
    if not argv:
        print("usage: python -m tests.golden formats DIR [FORMAT …]", file=sys.stderr)
        return 2
    folder = Path(argv[0])
    entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))["files"]
    wanted = [e for e in entries if len(argv) == 1 or e["format"] in argv[1:]]
    passed = 0
    for entry in wanted:
        wrong = failures(folder, entry)
        passed += not wrong
        for line in wrong:
            print(f"{entry['path']}: {line}")
    print(f"{passed} of {len(wanted)}")
    return 0 if passed == len(wanted) else 1

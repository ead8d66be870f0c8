"""`python -m tests.bench wrappers [--json] [--seconds S]`: renders per second of every wrapper.

Chats of 10 and 200 messages with functions, from `bench-input.json` beside the recorded results, or an own input of
the same form when that folder is absent. Three ways: `fresh`, where nothing of the chat was rendered before; `again`,
where the same chat is rendered as in the original's own benchmark; and `grown`, where ten turns are added one by one
before it starts over with the chat of that size, so that one render in eleven is a fresh one.

The original runs first when NODE_LLAMA_CPP_BENCH names a folder with its `bench.mjs` and `node_modules`. Rates are per
second of processor time; a ratio is ours to the original's, so above 1 is faster.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from chats.domain.history_items import history_from_json
from chats.domain.wrappers import WRAPPERS, ChatWrapper, build_wrapper
from tests.shared_data import SHARED

INPUT = SHARED / "peers" / "node-llama-cpp" / "bench-input.json"
SIZES = (10, 200)
ADDED_TURNS = 10
TEMPLATE_OPTIONS = {
    "template": "{{systemPrompt}}\n{{history}}model: {{completion}}\nuser: ",
    "historyTemplate": {
        "system": "system: {{message}}\n",
        "user": "user: {{message}}\n",
        "model": "model: {{message}}\n",
    },
}


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    baseline: float | None
    unit: str = "renders/CPU s"

    @property
    def ratio(self) -> float | None:
        return round(self.value / self.baseline, 2) if self.baseline else None

    def to_json(self) -> dict[str, Any]:
        value = round(self.value)
        return {"name": self.name, "value": value, "unit": self.unit, "baseline": self.baseline, "ratio": self.ratio}


def own_input() -> dict[str, Any]:
    """Chats of the same form as the recorded input: questions, thoughts, calls with results, answers."""
    functions = {
        f"lookUp{topic}": {
            "description": f"Look up the {topic.lower()} of a place",
            "params": {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer"}}},
        }
        for topic in ("Weather", "Traffic", "News", "Events", "Prices", "Hours")
    }
    return {"functions": functions, "histories": {str(size): _own_history(size) for size in SIZES}}


def _own_history(size: int) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"type": "system", "text": "You answer briefly."}]
    turn = 0
    while len(history) < size:
        history.append({"type": "user", "text": f"Question {turn}: what is going on in place number {turn}? ☀️"})
        if len(history) < size:
            history.append({"type": "model", "response": _own_response(turn)})
        turn += 1
    return history


def _own_response(turn: int) -> list[Any]:
    answer = f"Not much is going on in place {turn}, as far as I can see."
    if turn % 2 == 0:
        return [{"type": "segment", "segmentType": "thought", "text": f"Place {turn}, then.", "ended": True}, answer]
    call = {
        "type": "functionCall",
        "name": "lookUpNews",
        "params": {"place": f"Place {turn}", "days": 3},
        "result": {"items": [1, 2, turn], "state": "quiet"},
        "startsNewChunk": True,
    }
    return ["Let me look. ", call, answer]


def per_second(render: Callable[[], object], seconds: float) -> float:
    for _ in range(5):
        render()
    runs = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds or runs < 5:
        render()
        runs += 1
    return runs / spent


def ways(wrapper_id: str, items: Any, functions: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """The three ways to render a chat of this size."""
    options = TEMPLATE_OPTIONS if wrapper_id == "TemplateChatWrapper" else None
    history = history_from_json(items)

    def built() -> ChatWrapper:
        wrapper = build_wrapper(wrapper_id, options)
        wrapper.generate_context_state(history, functions)
        return wrapper

    fresh, again, grown = built(), built(), built()
    copies = [history_from_json(items) for _ in range(2)]

    def render_fresh() -> object:
        # Two copies in turn: no item is the object that was rendered before.
        copies.reverse()
        return fresh.generate_context_state(copies[0], functions)

    longer = [*history, *history_from_json(items)[1:], *history_from_json(items)[1:], *history_from_json(items)[1:]]
    lengths = cycle(range(len(history), len(history) + 2 * ADDED_TURNS + 1, 2))

    def render_grown() -> object:
        return grown.generate_context_state(longer[: next(lengths)], functions)

    yield "fresh", render_fresh
    yield "again", lambda: again.generate_context_state(history, functions)
    yield "grown", render_grown


def original_rates(seconds: float) -> dict[tuple[str, int], float]:
    """Rates of the original by wrapper and size; empty when it isn't there."""
    folder = os.environ.get("NODE_LLAMA_CPP_BENCH")
    node = shutil.which("node")
    if folder is None or node is None or not (Path(folder) / "node_modules").is_dir():
        return {}
    command = [node, "bench.mjs", "--seconds", str(seconds), "--json"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    rows = json.loads(finished.stdout)["rows"]
    return {(row["wrapper"], size): row[f"renders/CPU s, {size}"] for row in rows for size in SIZES}


def rows(given: dict[str, Any], seconds: float, baselines: dict[tuple[str, int], float]) -> Iterator[Row]:
    for wrapper_id in WRAPPERS:
        if wrapper_id == "JinjaTemplateChatWrapper":
            continue
        for size in SIZES:
            baseline = baselines.get((wrapper_id, size))
            for way, render in ways(wrapper_id, given["histories"][str(size)], given["functions"]):
                yield Row(f"{wrapper_id} {size} {way}", per_second(render, seconds), baseline)


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench wrappers")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.2, help="processor time a measurement")
    arguments = parser.parse_args(argv)
    given = json.loads(INPUT.read_text("utf-8")) if INPUT.is_file() else own_input()
    baselines = original_rates(arguments.seconds)
    if not arguments.json:
        missing = "" if baselines else "  (original not found: set NODE_LLAMA_CPP_BENCH)"
        print(f"{'wrapper, messages, way':<48}{'renders/CPU s':>14}{'original':>12}{'ratio':>8}{missing}")
    for row in rows(given, arguments.seconds, baselines):
        if arguments.json:
            print(json.dumps(row.to_json()))
            continue
        baseline = "" if row.baseline is None else f"{row.baseline:.0f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        print(f"{row.name:<48}{row.value:>14.0f}{baseline:>12}{ratio:>8}")
    return 0

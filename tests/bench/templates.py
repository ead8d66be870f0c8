"""`python -m tests.bench templates [--json] [--dir DIR]`: chat templates in process, through the pool, in transformers.

transformers is measured when it can be imported, or when TRANSFORMERS_PYTHON names an interpreter that can; it runs in
a process of its own on the same templates and chats. Times are milliseconds. The rounds of all three take turns, so
that whatever else the machine does hits them alike, and ratios are within one run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from chats.domain.chat_templates import CompiledTemplate, Rendered, RenderRequest, render
from chats.template_pool import TemplatePool
from tests.golden.templates import request_of
from tests.shared_data import SHARED

ROUNDS = 10
OWN_TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
NOW = datetime(2025, 3, 5, 14, 7, 9)

# Run by the interpreter that has transformers: reads requests, writes seconds of compiling, and those of a round of
# rendering for each line that it is sent.
TRANSFORMERS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils as utils
requests = json.load(open(sys.argv[1], encoding="utf-8"))
compiled = []
for text in sorted({r["template"] for r in requests}):
    started = time.perf_counter()
    try:
        utils._compile_jinja_template(text)
    except Exception:
        continue
    compiled.append(time.perf_counter() - started)
tokenizers = []
for r in requests:
    backend = Tokenizer(models.WordLevel({"[none]": 0}, unk_token="[none]"))
    tokenizers.append(PreTrainedTokenizerFast(tokenizer_object=backend, **r["tokens"]))
print(json.dumps(compiled), flush=True)
for line in sys.stdin:
    rendered = []
    for tokenizer, r in zip(tokenizers, requests):
        arguments = {"tools": r["tools"], "documents": r["documents"], **r["kwargs"]}
        started = time.perf_counter()
        tokenizer.apply_chat_template(
            r["messages"], chat_template=r["template"], tokenize=False,
            add_generation_prompt=r["add_generation_prompt"], **arguments,
        )
        rendered.append(time.perf_counter() - started)
    print(json.dumps(rendered), flush=True)
"""


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str = "ms"
    baseline: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None


def requests_of(folder: Path | None, count: int) -> list[RenderRequest]:
    """Requests that render, spread over all templates; a small template of our own when there is no folder."""
    if folder is None or not (folder / "index.json").is_file():
        chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
        return [RenderRequest(OWN_TEMPLATE, chat * n, now=NOW) for n in range(1, 21)]
    chats = [c for c in json.loads((folder / "chats.json").read_text("utf-8")) if not c.get("continue_final_message")]
    found: list[RenderRequest] = []
    for index, entry in enumerate(json.loads((folder / "index.json").read_text("utf-8"))["templates"]):
        text = (folder / entry["file"]).read_bytes().decode("utf-8")
        for step in range(len(chats)):
            request = request_of(text, chats[(index * 7 + step) % len(chats)], entry, "current", NOW)
            if renders(request):
                found.append(request)
                break
    return found[:count]


def renders(request: RenderRequest) -> bool:
    try:
        render(request)
    except Exception:
        return False
    return True


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


class Transformers:
    """transformers in a process of its own; `compiled` are its times of compiling, none where it isn't installed."""

    def __init__(self, requests: list[RenderRequest]) -> None:
        fields = ("template", "messages", "tools", "documents", "add_generation_prompt", "tokens", "kwargs")
        rows = [{name: getattr(request, name) for name in fields} for request in requests]
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(rows, file)
            file.flush()
            self._process = subprocess.Popen(
                [os.environ.get("TRANSFORMERS_PYTHON", sys.executable), "-c", TRANSFORMERS, file.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.compiled = self._answer()

    def _answer(self) -> list[float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return [seconds * 1000 for seconds in json.loads(line)] if line else []

    def round(self) -> list[float]:
        if not self.compiled:
            return []
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self._process.communicate()


def measure(folder: Path | None, count: int) -> list[Row]:
    requests = requests_of(folder, count)
    # As many as a worker keeps compiled, so that "warm" means warm everywhere.
    warm = requests[:60]
    compile_times = [timed(partial(CompiledTemplate, r.template, "current")) for r in requests]
    reference = Transformers(warm)
    in_process: list[float] = []
    pooled: list[float] = []
    rendered_there: list[float] = []
    with TemplatePool(size=1) as pool:
        first = [timed(partial(pool.render_request, r)) for r in requests]
        for number in range(ROUNDS + 1):
            of_round = (
                [timed(partial(render, r)) for r in warm],
                [timed(partial(pool.render_request, r)) for r in warm],
                reference.round(),
            )
            # The first round warms up.
            if number:
                in_process += of_round[0]
                pooled += of_round[1]
                rendered_there += of_round[2]
        chat = warm[0].messages
        many = [RenderRequest(r.template, chat, tokens=r.tokens, add_generation_prompt=True) for r in warm[:20]]
        twenty = [timed(partial(pool.render_many, many)) for _ in range(ROUNDS + 1)][1:]
        answered = pool.render_request(warm[0])
        assert isinstance(answered, Rendered), answered
    reference.close()
    compiled_there = reference.compiled
    base_compile = statistics.median(compiled_there) if compiled_there else None
    base_render = statistics.median(rendered_there) if rendered_there else None
    rows = [
        Row("compile in process, median", statistics.median(compile_times), baseline=base_compile),
        Row("compile in process, p95", p95(compile_times), baseline=p95(compiled_there) if compiled_there else None),
        Row("render in process, median", statistics.median(in_process), baseline=base_render),
        Row("render in process, p95", p95(in_process), baseline=p95(rendered_there) if rendered_there else None),
        Row("new template through the pool, median", statistics.median(first)),
        Row("new template through the pool, p95", p95(first)),
        Row("render through the pool, median", statistics.median(pooled), baseline=base_render),
        Row("render through the pool, p95", p95(pooled), baseline=p95(rendered_there) if rendered_there else None),
        Row("overhead of the pool, median", statistics.median(p - i for p, i in zip(pooled, in_process, strict=True))),
        Row("20 templates on one chat, median", statistics.median(twenty)),
    ]
    if base_compile is not None and base_render is not None:
        rows += [
            Row("compile in transformers, median", base_compile),
            Row("render in transformers, median", base_render),
            Row("render in transformers, p95", p95(rendered_there)),
        ]
    return rows


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench templates")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dir", type=Path, default=SHARED / "peers" / "chat-templates")
    parser.add_argument("--count", type=int, default=128)
    arguments = parser.parse_args(argv)
    rows = measure(arguments.dir, arguments.count)
    for row in rows:
        if arguments.json:
            content = {"name": row.name, "value": row.value, "unit": row.unit}
            print(json.dumps({**content, "baseline": row.baseline, "ratio": row.ratio}))
        else:
            ratio = f"{row.ratio:6.2f} x transformers" if row.ratio is not None else ""
            print(f"{row.name:40} {row.value:9.3f} {row.unit} {ratio}")
    if not arguments.json and all(row.baseline is None for row in rows):
        print("transformers isn't installed; TRANSFORMERS_PYTHON may name an interpreter that has it")
    return 0

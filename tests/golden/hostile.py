"""`python -m tests.golden hostile FILE`: templates that try to hang, bloat or escape, with honest renders beside them.

Each must be answered within the limits, show nothing of Python's insides and leave the next chat its render; meanwhile
another thread renders an honest template again and again, which must go on as if nothing was.
"""

import json
import re
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from chats.domain.chat_templates import MAX_OUTPUT_CHARACTERS, Rendered, TemplateFailure
from chats.template_pool import Limits, TemplatePool
from tests.golden.templates import request_of

HONEST = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
HONEST_CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
HONEST_TEXT = "<|user|>Hello\n<|assistant|>Good day\n"
# What only code outside the sandbox could have read. A repr of a function is no leak, its globals are.
LEAK = re.compile(r"__builtins__|__subclasses__|<module '|<frame |<code object |uid=\d+\(|root:x:0")


def text_of(entry: dict[str, Any]) -> str:
    if "template" in entry:
        return str(entry["template"])
    return "".join(part * times for part, times in entry["parts"])


def complaint(entry: dict[str, Any], outcome: Rendered | TemplateFailure, seconds: float, limits: Limits) -> str | None:
    """What is wrong with the answer to a hostile template; None if nothing is."""
    # A worker that got less than its CPU share on a busy machine is waited for three times as long.
    if seconds > 3 * limits.wall_seconds + 1:
        return f"took {seconds:.1f} s"
    if isinstance(outcome, TemplateFailure):
        if outcome.limit in ("busy", "stopped"):
            return f"got no answer of its own: {outcome.limit}"
        if entry.get("measured") == "harmless":
            return f"is harmless, but: {outcome.limit or outcome.error_class} {outcome.message[:80]!r}"
        return None
    if len(outcome.text) > MAX_OUTPUT_CHARACTERS:
        return f"gave {len(outcome.text)} characters"
    if LEAK.search(outcome.text):
        return f"shows {LEAK.search(outcome.text)!r}"
    if entry.get("measured") == "refused":
        return f"gave a text instead of an error: {outcome.text[:80]!r}"
    return None


class HonestRenders(threading.Thread):
    """Renders the same chat until told to stop, and notes how long each took and what was wrong."""

    def __init__(self, pool: TemplatePool) -> None:
        super().__init__(daemon=True)
        self._pool = pool
        self._stopping = threading.Event()
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self._stopping.wait(0.002):
            started = time.perf_counter()
            outcome = self._pool.render(template=HONEST, messages=HONEST_CHAT)
            self.seconds.append(time.perf_counter() - started)
            if not isinstance(outcome, Rendered) or outcome.text != HONEST_TEXT:
                self.wrong.append(repr(outcome))

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def failing(path: Path) -> tuple[list[str], int, list[tuple[float, str]], list[float]]:
    """Complaints, number of templates, seconds and name of each, and the seconds of the honest renders."""
    content = json.loads(path.read_text("utf-8"))
    limits = Limits()
    lines: list[str] = []
    times: list[tuple[float, str]] = []
    with TemplatePool(limits=limits) as pool:
        # The first render waits for the first process to start, which happens before anybody is hostile.
        pool.render(template=HONEST, messages=HONEST_CHAT)
        honest = HonestRenders(pool)
        honest.start()
        for entry in content["templates"]:
            started = time.perf_counter()
            outcome = pool.render_request(request_of(text_of(entry), content["chat"], entry, "current", None))
            seconds = time.perf_counter() - started
            times.append((seconds, entry["name"]))
            wrong = complaint(entry, outcome, seconds, limits)
            after = pool.render(template=HONEST, messages=HONEST_CHAT)
            if not isinstance(after, Rendered) or after.text != HONEST_TEXT:
                wrong = f"spoilt the next render: {after!r}"
            if wrong:
                lines.append(f"{entry['name']}: {wrong}")
        honest.stop()
    lines += [f"an honest render beside them: {wrong}" for wrong in honest.wrong]
    return lines, len(content["templates"]), times, honest.seconds


def run(argv: list[str]) -> int:
    lines, total, times, honest = failing(Path(argv[0]))
    print("\n".join(lines), end="\n" if lines else "")
    slowest, name = max(times)
    print(f"slowest hostile template: {slowest * 1000:.0f} ms ({name})")
    print(
        f"honest renders beside them: {len(honest)}, median {statistics.median(honest) * 1000:.2f} ms, "
        f"slowest {max(honest) * 1000:.1f} ms"
    )
    print(f"{max(total - len(lines), 0)} of {total}")
    return 1 if lines or not total else 0

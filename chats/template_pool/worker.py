"""The process that compiles and renders templates for `chats.template_pool`: bounded, alone, and expendable.

Started as `python -I -B worker.py LIMITS` with an empty environment. It loads the standard library, jinja2 and
`chats.domain.chat_templates`, gives up the right to open anything, writes one character for "ready", and then answers
one request after the other: a four-byte length, then JSON, both ways. It ends when its standard input closes.

Most renders take less time than what is around them, so that is kept short. The text of a template comes once and is
then named by its number (`known`); the answer to a number that isn't known any more is `unknown`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any


def _name_package(name: str, folder: Path) -> None:
    """Make modules below a package importable without running its `__init__`, which loads pydantic for others."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


_CHATS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    _name_package("chats", _CHATS)
    _name_package("chats.domain", _CHATS / "domain")

from chats.domain import chat_templates  # noqa: E402 - after the names above
from chats.domain.chat_templates.lint import lint  # noqa: E402

READY = b"+"
HEADER = struct.Struct(">I")
# What is read at once, at most: as much as a pipe holds.
CHUNK = 1 << 16
# How much longer than its CPU time a request may stay inside one C call, where no signal handler runs.
UNINTERRUPTED_SECONDS = 1.0
# A signal that comes while Python clears up is lost, so it is repeated until the request has ended.
REPEAT_SECONDS = 0.05

# A render that has nothing else to tell answers with its text.
Answer = dict[str, Any] | str


class OutOfTime(BaseException):
    """Not an Exception: templates and jinja2 handle those."""


class CpuBound:
    """The CPU time that the running request may take. Setting timers costs more than ignoring what they say late, so
    an answer in time leaves them to the next request, which sets them anew."""

    def __init__(self) -> None:
        self._running = False

    def start(self, cpu_seconds: float) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds + UNINTERRUPTED_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds, REPEAT_SECONDS)
        self._running = True

    def stop(self) -> None:
        self._running = False

    def disarm(self) -> None:
        """After a request that ran out of time, and left the last timer too little for anything else."""
        self._running = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def out_of_time(self, signum: int, frame: FrameType | None) -> None:
        if self._running:
            raise OutOfTime


_bound = CpuBound()


def _give_up_rights(limits: dict[str, int]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits["memory_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Standard input, output and the null device behind standard error: no file and no socket beyond these.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    if hasattr(resource, "RLIMIT_NPROC"):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    sys.setrecursionlimit(limits["recursion"])
    signal.signal(signal.SIGPROF, _bound.out_of_time)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Its default ends the process: the last resort for a C call that never returns, even if the parent is gone.
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)


def _load_what_loads_late() -> None:
    """What Python and jinja2 would otherwise open on first use, when nothing can be opened any more."""
    for name in ("jinja2.constants", "jinja2.debug", "pprint", "random", "traceback", "unicodedata"):
        importlib.import_module(name)
    datetime.now().strftime("%c %Z")
    for profile in chat_templates.PROFILES:
        chat_templates.check(_WARM_UP, profile)
    request = chat_templates.RenderRequest(_WARM_UP, [{"role": "user", "content": "x"}])
    chat_templates.render_or_explain(request, chat_templates.TemplateCache())


_WARM_UP = (
    "{{ lipsum(n=1) }}{{ 'a b'|urlize|wordwrap(3)|indent|title|striptags|urlencode }}{{ messages|pprint }}"
    "{{ [1]|tojson(indent=1) }}{% generation %}{{ [3, 1]|random }}{% endgeneration %}{{ raise_exception('x') }}"
)


def _request_of(fields: dict[str, Any]) -> chat_templates.RenderRequest:
    now = fields.pop("now", None)
    return chat_templates.RenderRequest(**fields, now=datetime.fromisoformat(now) if now else None)


def _told(failure: chat_templates.TemplateFailure) -> Answer:
    return {"failure": asdict(failure)}


class Worker:
    """What a request can ask for, by name; each returns the answer's content."""

    def __init__(self) -> None:
        self._cache = chat_templates.TemplateCache()
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._out_of_memory = False
        self._actions: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "render": self._render,
            "check": self._check,
            "variables": self._variables,
            "lint": self._lint,
        }

    def _render(self, fields: dict[str, Any]) -> Answer:
        outcome = chat_templates.render_or_explain(_request_of(fields), self._cache, owned=True)
        if isinstance(outcome, chat_templates.TemplateFailure):
            return _told(outcome)
        if not outcome.spans and not outcome.provenance:
            return outcome.text
        origins = [(o.start, o.end, o.line, o.message) for o in outcome.provenance]
        return {"text": outcome.text, "spans": outcome.spans, "provenance": origins}

    def _check(self, fields: dict[str, Any]) -> Answer:
        failure = chat_templates.check(fields["template"], fields["profile"], self._cache)
        return {} if failure is None else _told(failure)

    def _variables(self, fields: dict[str, Any]) -> Answer:
        try:
            found = chat_templates.variables(fields["template"], fields["profile"])
        except Exception as error:
            return _told(chat_templates.explain(error))
        return {"variables": [asdict(v) for v in found]}

    def _lint(self, fields: dict[str, Any]) -> Answer:
        report = lint(fields["template"], fields["tokens"], fields["kwargs"], fields["profile"])
        return asdict(report)

    def _find_template(self, fields: dict[str, Any], number: int) -> bool:
        """Put the text of the template in its place, which is sent once and then named by its number."""
        text = fields.get("template")
        if text is None:
            text = self._texts.get(number)
            if text is None:
                return False
            fields["template"] = text
        self._texts[number] = text
        self._texts.move_to_end(number)
        while len(self._texts) > chat_templates.CACHED_TEMPLATES:
            self._texts.popitem(last=False)
        return True

    def answer(self, request: bytes) -> bytes:
        """Never raises: whatever happens to a request is told as its answer."""
        try:
            try:
                fields = _FROM_JSON.raw_decode(request.decode("utf-8", "surrogatepass"))[0]
                _bound.start(fields.pop("cpu_seconds"))
                if not self._find_template(fields, fields.pop("known")):
                    return _encoded({"unknown": True})
                answer = self._actions[fields.pop("action")](fields)
                if isinstance(answer, dict) and "failure" in answer:
                    self._out_of_memory = answer["failure"]["limit"] == "memory"
                return _encoded(answer)
            finally:
                _bound.stop()
        except OutOfTime:
            _bound.disarm()
            return _stopped("OutOfTime", "time")
        except MemoryError:
            self._out_of_memory = True
            return _stopped("MemoryError", "memory")
        except RecursionError:
            return _stopped("RecursionError", "depth")
        except Exception as error:
            return _encoded(_told(chat_templates.explain(error)))

    def clear_up(self) -> None:
        """After an answer has been given: what ran out of memory leaves nothing behind."""
        if self._out_of_memory:
            self._out_of_memory = False
            self._cache.clear()
            self._texts.clear()
            gc.collect()


# Lone surrogates pass as they are: escaped, two of them side by side would come back as one character.
_TO_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_FROM_JSON = json.JSONDecoder()


def _encoded(answer: Answer) -> bytes:
    return _TO_JSON.encode(answer).encode("utf-8", "surrogatepass")


def _stopped(error_class: str, limit: str) -> bytes:
    return _encoded(_told(chat_templates.TemplateFailure("limit", error_class, "", None, limit)))


def _next_request() -> bytes | None:
    """From standard input; None when the other side has closed."""
    received = os.read(0, CHUNK)
    while len(received) < HEADER.size:
        if not received:
            return None
        received += os.read(0, CHUNK)
    missing = HEADER.size + HEADER.unpack_from(received)[0] - len(received)
    # Nobody asks again before he has his answer, so what comes belongs to this request.
    if not missing:
        return received[HEADER.size :]
    chunks = [received[HEADER.size :]]
    while missing > 0:
        chunk = os.read(0, CHUNK)
        if not chunk:
            return None
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)


def _write(data: bytes) -> None:
    written = os.write(1, data)
    while written < len(data):
        written += os.write(1, memoryview(data)[written:])


def main(limits: dict[str, int]) -> None:
    # Nothing that prints may get between the answers.
    sys.stdin = sys.stdout = sys.stderr = None
    _load_what_loads_late()
    worker = Worker()
    _give_up_rights(limits)
    gc.freeze()
    _write(READY)
    while (request := _next_request()) is not None:
        answer = worker.answer(request)
        _write(HEADER.pack(len(answer)) + answer)
        worker.clear_up()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

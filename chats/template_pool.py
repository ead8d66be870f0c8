"""Bounded worker processes for chat templates (chat-templates.md, "Limits").

A template may loop for ever or ask for all memory, while compiling as well as while rendering, and a thread cannot be
killed. So all of that happens in small processes that can. A pool belongs to one process, starts its workers when they
are first needed, keeps one more ready than it uses, and ends them with itself. It may be used from many threads, and
a child process that inherits it by `fork` starts workers of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from chats.domain.chat_templates import (
    CACHED_TEMPLATES,
    MAX_TEMPLATE_BYTES,
    Origin,
    Profile,
    Rendered,
    RenderRequest,
    TemplateFailure,
    TemplateVariable,
    explain,
    plain,
)
from chats.domain.chat_templates.lint import Finding, LintReport, Sample
from chats.template_worker import CHUNK, HEADER, READY

_T = TypeVar("_T")
_Answer = dict[str, Any]

_WORKER = Path(__file__).resolve().with_name("template_worker.py")
# A worker may have been ended from outside, such as by a system short of memory; the next may have been, too.
_ATTEMPTS = 3
_REQUEST_FIELDS = tuple(f.name for f in fields(RenderRequest) if f.name not in ("template", "profile", "now"))
_request_values = attrgetter(*_REQUEST_FIELDS)
# How long an answer is waited for before anything is done about its being late; most come in a tenth of that.
_QUICK_MILLISECONDS = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request. `cpu_seconds` count what the worker computes, so a busy machine doesn't fail an honest
    template; `wall_seconds` are waited before a worker that has had its share is killed, and twice `wall_seconds` more
    for one that hasn't. `lint_cpu_seconds` and `lint_wall_seconds` are the same for the many renders of a lint."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 3.0
    lint_cpu_seconds: float = 4.0
    lint_wall_seconds: float = 8.0
    memory_bytes: int = 448 * 1024 * 1024
    recursion: int = 400
    request_bytes: int = 4 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    waiting_seconds: float = 10.0
    starting_seconds: float = 30.0
    # A worker that still holds more than this after it ran out of memory is replaced.
    kept_bytes: int = 192 * 1024 * 1024


class _Lost(Exception):
    """The worker gave no answer. `limit` says why: "time", or "stopped" when it died by itself."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class _Worker:
    """One process and its two pipes. Used by one thread at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        arguments = json.dumps({"memory_bytes": limits.memory_bytes, "recursion": limits.recursion})
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_WORKER), arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._in_fd, self._out_fd = self._in.fileno(), self._out.fileno()
        os.set_blocking(self._in_fd, False)
        self._answered = select.poll()
        self._answered.register(self._out_fd, select.POLLIN)
        self._ready = False
        self._place = _Place(self._process.pid)
        # What the process still has, by the number that it knows it under; the last used is last, as there.
        self._templates: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._numbers = count()

    def knows(self, template: tuple[str, str]) -> bool:
        return template in self._templates

    def ask(self, request: bytes, template: tuple[str, str], cpu_seconds: float, wall_seconds: float) -> _Answer:
        """The answer, an object; raises _Lost when there is none in time, after which the worker must be ended.

        `request` is a JSON object that lacks the text of the template, which is sent only when it isn't there yet.
        """
        if not self._ready:
            self._await_start()
        number = self._templates.get(template)
        if number is not None:
            self._templates.move_to_end(template)
            answer = self._exchange(b'{"known":%d,' % number + request[1:], cpu_seconds, wall_seconds)
            if "unknown" not in answer:
                return answer
        number = next(self._numbers)
        text = _encoded({"known": number, "template": template[1]})
        answer = self._exchange(text[:-1] + b"," + request[1:], cpu_seconds, wall_seconds)
        self._templates[template] = number
        self._templates.move_to_end(template)
        while len(self._templates) > CACHED_TEMPLATES:
            self._templates.popitem(last=False)
        return answer

    def forget_templates(self) -> None:
        self._templates.clear()

    def _exchange(self, request: bytes, cpu_seconds: float, wall_seconds: float) -> _Answer:
        deadline = _Deadline(self._place, cpu_seconds, wall_seconds)
        self._place.come_here()
        self._write(HEADER.pack(len(request)) + request, deadline)
        return _decoded(self._read_answer(deadline))

    def _await_start(self) -> None:
        deadline = _Deadline(self._place, float("inf"), self._limits.starting_seconds)
        if self._read(deadline) != READY:
            raise _Lost("stopped")
        self._ready = True

    def _write(self, data: bytes, deadline: _Deadline) -> None:
        written = 0
        while written < len(data):
            try:
                written += os.write(self._in_fd, memoryview(data)[written:] if written else data)
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._in_fd, select.POLLOUT)
                deadline.wait(writable)
            except BrokenPipeError:
                raise self._lost() from None

    def _read_answer(self, deadline: _Deadline) -> bytes:
        received = self._read(deadline)
        while len(received) < HEADER.size:
            received += self._read(deadline)
        length = HEADER.size + HEADER.unpack_from(received)[0]
        if length > self._limits.answer_bytes:
            raise _Lost("stopped")
        if len(received) < length:
            chunks = [received]
            missing = length - len(received)
            while missing > 0:
                chunks.append(self._read(deadline))
                missing -= len(chunks[-1])
            received = b"".join(chunks)
        if len(received) > length:
            raise _Lost("stopped")
        return received[HEADER.size :]

    def _read(self, deadline: _Deadline) -> bytes:
        """What has arrived, at least one byte."""
        deadline.wait(self._answered)
        chunk = os.read(self._out_fd, CHUNK)
        if not chunk:
            raise self._lost()
        return chunk

    def _lost(self) -> _Lost:
        """A closed pipe: ended by its own last timer inside a long C call, or by something else."""
        try:
            status = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return _Lost("stopped")
        return _Lost("time" if status == -signal.SIGVTALRM else "stopped")

    def size(self) -> int:
        """Bytes of address space; 0 where the system doesn't tell."""
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def disown(self) -> None:
        """In a forked child: let go of the parent's process without touching it."""
        self._in.close()
        self._out.close()
        self._process.returncode = 0


class _Deadline:
    """When to stop waiting for a worker: after its time, and after three times that if it hasn't had its CPU share."""

    def __init__(self, place: _Place, cpu_seconds: float, wall_seconds: float) -> None:
        self._place = place
        self._cpu_seconds = cpu_seconds
        self._wall_seconds = wall_seconds
        self._started = time.monotonic()
        self._late = False

    def wait(self, ready: select.poll) -> None:
        """Return when the pipe is ready; raise _Lost("time") when it isn't in time."""
        if not ready.poll(_QUICK_MILLISECONDS):
            self._wait_long(ready)

    def _wait_long(self, ready: select.poll) -> None:
        if not self._late:
            self._late = True
            self._place.go_anywhere()
            # From now on, which is as good as from the start.
            self._cpu_until = _cpu_seconds_of(self._place.pid) + self._cpu_seconds
            self._until = self._started + self._wall_seconds
        last = self._started + 3 * self._wall_seconds
        while True:
            left = self._until - time.monotonic()
            if left > 0:
                if ready.poll(left * 1000):
                    return
                continue
            if self._until >= last or _cpu_seconds_of(self._place.pid) >= self._cpu_until:
                raise _Lost("time")
            self._until = min(self._until + 0.25, last)


class _Place:
    """On which processors a worker may run.

    It begins on that of the thread that asks, which sleeps meanwhile. Left to itself it often wakes up on an idle one,
    and on a virtual machine to wake that takes longer than a render. When it is late it may go where it likes, so that
    nothing that takes time is ever confined.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._here: int | None = None
        self._anywhere = os.sched_getaffinity(pid) if _current_processor is not None else set()

    def come_here(self) -> None:
        if _current_processor is None:
            return
        here = _current_processor()
        if here != self._here:
            self._here = here
            # Where that isn't allowed it only takes longer.
            with suppress(OSError):
                os.sched_setaffinity(self.pid, (here,))

    def go_anywhere(self) -> None:
        if self._here is not None:
            self._here = None
            with suppress(OSError):
                os.sched_setaffinity(self.pid, self._anywhere)


def _processor_call() -> Callable[[], int] | None:
    """The C library's `sched_getcpu`, for which Python has no name; None where the system can't place a process."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        # Not CDLL: it would let other threads in, and take turns with them, for something that never waits.
        call: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return call


_current_processor = _processor_call()


def _cpu_seconds_of(pid: int) -> float:
    """CPU time of a process so far; infinite where the system doesn't tell, so that nobody waits for it."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")


def _decoded(answer: bytes) -> _Answer:
    """A worker may have been taken over by its template, so its answers are read like any stranger's."""
    try:
        content, _ = _FROM_JSON.raw_decode(answer.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise _Lost("stopped") from None
    # A text alone is what most renders have to tell.
    if isinstance(content, str):
        return {"text": content}
    if not isinstance(content, dict):
        raise _Lost("stopped")
    return content


class TemplatePool:
    """Compiles, renders and lints templates in up to `size` processes of their own, plus one that waits.

    Every method answers with a value, a TemplateFailure where there is nothing better; none raises for what a template
    or a chat does. Threads that find all workers busy wait for their turn, at most `limits.waiting_seconds`.
    """

    def __init__(self, size: int = 2, limits: Limits | None = None) -> None:
        self._size = size
        self._limits = limits or Limits()
        # Shared with the finalizer, which must not keep the pool alive.
        self._all: set[_Worker] = set()
        self._reset()
        weakref.finalize(self, _end_all, self._all)
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._waiting = 0
        self._idle: list[_Worker] = []
        self._spare: _Worker | None = None
        self._starting_spare = False
        self._in_use = 0
        self._closed = False

    def render(
        self,
        *,
        template: str,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tokens: Mapping[str, str] | None = None,
        profile: Profile = "current",
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        provenance: bool = False,
        now: datetime | None = None,
    ) -> Rendered | TemplateFailure:
        """The text for one chat; the arguments are those of RenderRequest."""
        request = RenderRequest(
            template,
            messages,
            tools,
            documents,
            kwargs or {},
            tokens or {},
            profile,
            add_generation_prompt,
            continue_final_message,
            provenance,
            now,
        )
        return self.render_request(request)

    def render_request(self, request: RenderRequest) -> Rendered | TemplateFailure:
        """As `render`, with the arguments as one value."""
        # What isn't given is left out; an empty list of tools is given.
        values = zip(_REQUEST_FIELDS, _request_values(request), strict=True)
        content = {name: value for name, value in values if value is not None and value is not False}
        content["now"] = (request.now or datetime.now()).isoformat()
        return self._ask("render", request.template, request.profile, content, _rendered)

    def render_many(self, requests: Iterable[RenderRequest]) -> list[Rendered | TemplateFailure]:
        """One outcome a request, in order."""
        return [self.render_request(request) for request in requests]

    def check(self, template: str, profile: Profile = "current") -> TemplateFailure | None:
        """Why the template doesn't compile; None if it does. What compiled is ready for the next render."""
        return self._ask("check", template, profile, {}, lambda answer: None)

    def variables(self, template: str, profile: Profile = "current") -> tuple[TemplateVariable, ...] | TemplateFailure:
        """The keyword arguments that the template reads (see `chat_templates.variables`)."""
        return self._ask("variables", template, profile, {}, _variables)

    def lint(
        self,
        template: str,
        tokens: Mapping[str, str] | None = None,
        kwargs: Iterable[str] = (),
        profile: Profile = "current",
    ) -> LintReport | TemplateFailure:
        """Facts and findings about a template; `kwargs` are the names of the keyword arguments it will be given."""
        content = {"tokens": tokens or {}, "kwargs": sorted(kwargs)}
        return self._ask("lint", template, profile, content, _report)

    def start(self) -> None:
        """Start the first worker, so that the first request doesn't wait for it. Returns at once."""
        self._keep_spare()

    def close(self) -> None:
        """End all workers; later requests, and those that run, are answered with the limit "stopped"."""
        with self._lock:
            self._closed = True
            unused = [*self._idle, *([self._spare] if self._spare else [])]
            self._idle, self._spare = [], None
            self._turn.notify_all()
        for worker in list(self._all):
            worker.kill()
        # A thread that waits for a worker closes its pipes itself, when it finds that it is gone.
        for worker in unused:
            self._discard(worker)

    def __enter__(self) -> TemplatePool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _ask(
        self, action: str, template: str, profile: Profile, content: dict[str, Any], read: Callable[[_Answer], _T]
    ) -> _T | TemplateFailure:
        limits = self._limits
        cpu, wall = limits.cpu_seconds, limits.wall_seconds
        if action == "lint":
            cpu, wall = limits.lint_cpu_seconds, limits.lint_wall_seconds
        size = len(template) if template.isascii() else len(template.encode("utf-8", "surrogatepass"))
        if size > MAX_TEMPLATE_BYTES:
            return _refused("template_size", allowed=MAX_TEMPLATE_BYTES)
        try:
            request = _encoded({"action": action, "cpu_seconds": cpu, "profile": profile, **content})
        except Exception as error:
            return explain(error)
        if len(request) + size > limits.request_bytes:
            return _refused("request_size", allowed=limits.request_bytes)
        key = (profile, template)
        for _ in range(_ATTEMPTS):
            worker = self._take(key)
            if worker is None:
                return _refused("stopped" if self._closed else "busy")
            kept = False
            try:
                outcome: _T | TemplateFailure
                answer = worker.ask(request, key, cpu, wall)
                outcome = _failure(answer["failure"]) if "failure" in answer else read(answer)
                out_of_memory = isinstance(outcome, TemplateFailure) and outcome.limit == "memory"
                kept = not out_of_memory or self._shrunk(worker)
            except _Lost as lost:
                outcome = _refused(lost.limit)
            except _UNREADABLE:
                outcome = _refused("stopped")
            finally:
                self._give_back(worker, kept)
            if not isinstance(outcome, TemplateFailure) or outcome.limit != "stopped":
                return outcome
        return outcome

    def _shrunk(self, worker: _Worker) -> bool:
        worker.forget_templates()
        return worker.size() <= self._limits.kept_bytes

    def _take(self, template: tuple[str, str]) -> _Worker | None:
        """A worker for this thread alone, if possible one that has compiled the template; None if none gets free."""
        with self._lock:
            if not self._closed and not self._idle and self._in_use >= self._size and not self._wait():
                return None
            if self._closed:
                return None
            self._in_use += 1
            for at in range(len(self._idle) - 1, -1, -1):
                if self._idle[at].knows(template):
                    return self._idle.pop(at)
            if self._idle:
                return self._idle.pop()
            taken, self._spare = self._spare, None
        if taken is not None and not taken.alive():
            self._discard(taken)
            taken = None
        taken = taken or self._start()
        if taken is None:
            with self._lock:
                self._in_use -= 1
                self._turn.notify()
        self._keep_spare()
        return taken

    def _wait(self) -> bool:
        """With the lock held: until there is something to take or the pool is closed; false when that took too long."""
        self._waiting += 1
        try:
            return self._turn.wait_for(
                lambda: self._closed or bool(self._idle) or self._in_use < self._size, self._limits.waiting_seconds
            )
        finally:
            self._waiting -= 1

    def _discard(self, worker: _Worker) -> None:
        self._all.discard(worker)
        worker.end()

    def _give_back(self, worker: _Worker, kept: bool) -> None:
        with self._lock:
            self._in_use -= 1
            kept = kept and not self._closed
            if kept:
                self._idle.append(worker)
            if self._waiting:
                self._turn.notify()
        if not kept:
            self._discard(worker)
            self._keep_spare()

    def _keep_spare(self) -> None:
        with self._lock:
            if self._spare is not None or self._starting_spare or self._closed:
                return
            self._starting_spare = True
        # Returns at once; the new process loads its modules while nobody waits for it.
        spare = self._start()
        with self._lock:
            self._starting_spare = False
            if not self._closed:
                self._spare = spare
                return
        if spare is not None:
            self._discard(spare)

    def _start(self) -> _Worker | None:
        try:
            worker = _Worker(self._limits)
        except OSError:
            return None
        self._all.add(worker)
        return worker

    def _disown_workers(self) -> None:
        for worker in self._all:
            worker.disown()
        self._all.clear()
        self._reset()


_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)

_pools: weakref.WeakSet[TemplatePool] = weakref.WeakSet()


def _after_fork() -> None:
    global _sharing
    # Another thread of the parent may have held it.
    _sharing = threading.Lock()
    for pool in list(_pools):
        pool._disown_workers()


os.register_at_fork(after_in_child=_after_fork)


def _end_all(workers: set[_Worker]) -> None:
    while workers:
        workers.pop().end()


# Lone surrogates pass as they are: escaped, two of them side by side would come back as one character.
_TO_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), default=plain)
_FROM_JSON = json.JSONDecoder()


def _encoded(content: dict[str, Any]) -> bytes:
    return _TO_JSON.encode(content).encode("utf-8", "surrogatepass")


def _refused(limit: str, **args: int) -> TemplateFailure:
    return TemplateFailure("limit", "LimitExceeded", "", None, limit, args)


def _failure(told: _Answer) -> TemplateFailure:
    line = told["line"]
    return TemplateFailure(
        told["kind"],
        str(told["error_class"]),
        str(told["message"]),
        None if line is None else int(line),
        told["limit"],
        dict(told["args"]),
    )


def _rendered(answer: _Answer) -> Rendered:
    text = answer["text"]
    if not isinstance(text, str):
        raise TypeError
    spans = tuple((start, end) for start, end in answer.get("spans", ()))
    return Rendered(text, spans, tuple(Origin(*origin) for origin in answer.get("provenance", ())))


def _variables(answer: _Answer) -> tuple[TemplateVariable, ...]:
    return tuple(
        TemplateVariable(v["name"], v["line"], tuple(v["choices"]), v["looks_boolean"]) for v in answer["variables"]
    )


def _report(answer: _Answer) -> LintReport:
    return LintReport(answer["facts"], tuple(_finding(told) for told in answer["findings"]))


def _finding(told: _Answer) -> Finding:
    samples = [None if s is None else Sample(s["about"], s["text"], s["failed"]) for s in (told["left"], told["right"])]
    return Finding(told["code"], told["check"], told["severity"], told["args"], *samples)


_shared: TemplatePool | None = None
_sharing = threading.Lock()


def shared_pool() -> TemplatePool:
    """The pool of this process, made when first asked for. A forked child keeps the object and starts new workers."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = TemplatePool()
        return _shared

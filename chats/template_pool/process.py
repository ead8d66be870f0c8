"""One worker process and its pipes: asked by one thread at a time, and given up when it is late."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from itertools import count
from pathlib import Path

from chats.domain.chat_templates import CACHED_TEMPLATES
from chats.template_pool.answers import Answer, WorkerLost, decoded, encoded
from chats.template_pool.limits import Limits
from chats.template_pool.processors import Place, cpu_seconds_of
from chats.template_pool.worker import CHUNK, HEADER, READY

_WORKER = Path(__file__).resolve().with_name("worker.py")
# How long an answer is waited for before anything is done about its being late; most come in a tenth of that.
_QUICK_MILLISECONDS = 2


class WorkerProcess:
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
        self._place = Place(self._process.pid)
        # What the process still has, by the number that it knows it under; the last used is last, as there.
        self._templates: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._numbers = count()

    def knows(self, template: tuple[str, str]) -> bool:
        return template in self._templates

    def ask(self, request: bytes, template: tuple[str, str], cpu_seconds: float, wall_seconds: float) -> Answer:
        """The answer, an object; raises WorkerLost when there is none in time, after which the worker must be ended.

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
        text = encoded({"known": number, "template": template[1]})
        answer = self._exchange(text[:-1] + b"," + request[1:], cpu_seconds, wall_seconds)
        self._templates[template] = number
        self._templates.move_to_end(template)
        while len(self._templates) > CACHED_TEMPLATES:
            self._templates.popitem(last=False)
        return answer

    def forget_templates(self) -> None:
        self._templates.clear()

    def _exchange(self, request: bytes, cpu_seconds: float, wall_seconds: float) -> Answer:
        deadline = _Deadline(self._place, cpu_seconds, wall_seconds)
        self._place.come_here()
        try:
            self._write(HEADER.pack(len(request)) + request, deadline)
            received = self._read_answer(deadline)
        finally:
            self._place.let_go()
        return decoded(received)

    def _await_start(self) -> None:
        deadline = _Deadline(self._place, float("inf"), self._limits.starting_seconds)
        if self._read(deadline) != READY:
            raise WorkerLost("stopped")
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
            raise WorkerLost("stopped")
        if len(received) < length:
            chunks = [received]
            missing = length - len(received)
            while missing > 0:
                chunks.append(self._read(deadline))
                missing -= len(chunks[-1])
            received = b"".join(chunks)
        if len(received) > length:
            raise WorkerLost("stopped")
        return received[HEADER.size :]

    def _read(self, deadline: _Deadline) -> bytes:
        """What has arrived, at least one byte."""
        deadline.wait(self._answered)
        chunk = os.read(self._out_fd, CHUNK)
        if not chunk:
            raise self._lost()
        return chunk

    def _lost(self) -> WorkerLost:
        """A closed pipe: ended by its own last timer inside a long C call, or by something else."""
        try:
            status = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return WorkerLost("stopped")
        return WorkerLost("time" if status == -signal.SIGVTALRM else "stopped")

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

    def __init__(self, place: Place, cpu_seconds: float, wall_seconds: float) -> None:
        self._place = place
        self._cpu_seconds = cpu_seconds
        self._wall_seconds = wall_seconds
        self._started = time.monotonic()
        self._late = False

    def wait(self, ready: select.poll) -> None:
        """Return when the pipe is ready; raise WorkerLost("time") when it isn't in time."""
        if not ready.poll(_QUICK_MILLISECONDS):
            self._wait_long(ready)

    def _wait_long(self, ready: select.poll) -> None:
        if not self._late:
            self._late = True
            self._place.go_anywhere()
            # From now on, which is as good as from the start.
            self._cpu_until = cpu_seconds_of(self._place.pid) + self._cpu_seconds
            self._until = self._started + self._wall_seconds
        last = self._started + 3 * self._wall_seconds
        while True:
            left = self._until - time.monotonic()
            if left > 0:
                if ready.poll(left * 1000):
                    return
                continue
            if self._until >= last or cpu_seconds_of(self._place.pid) >= self._cpu_until:
                raise WorkerLost("time")
            self._until = min(self._until + 0.25, last)

"""Runs the processes of one checkout: starts them in order, restarts what crashes, stops everything together.

Standard library only, one thread, for Linux and macOS (architecture.md section 5.3).
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

FIRST_DELAY = 0.5  # seconds until the first restart; doubles with each crash
LONGEST_DELAY = 30.0
STEADY_AFTER = 30.0  # seconds of running after which a crash counts as the first one again
POLL = 0.05  # seconds between two looks at something that sends no signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


@dataclass(frozen=True)
class Child:
    """A process to keep running.

    A ``foundation`` starts first and ends last: the others start once all foundations are ready. ``ready`` says
    whether a running child can do its work. ``patience`` is how many seconds it has to end after SIGTERM before it
    is killed, ``orphan_signal`` what it gets when the supervisor itself was killed (on Linux).
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: Callable[[], bool] = lambda: True
    foundation: bool = False
    patience: float = 10.0
    orphan_signal: signal.Signals = signal.SIGTERM


@dataclass
class _Place:
    """What is known of one child at the moment; times are those of the monotonic clock."""

    child: Child
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    started_at: float = 0.0
    start_at: float = 0.0
    delay: float = 0.0


class Supervisor:
    """Keeps ``children`` running until SIGINT, SIGTERM or SIGHUP, then ends them, foundations last.

    A second signal kills them. ``say`` gets one line for everything that a person at the terminal should know.
    """

    def __init__(self, children: Sequence[Child], *, say: Callable[[str], None]) -> None:
        self._places = [_Place(child) for child in children]
        self._say = say
        self._stop_requests = 0

    def run(self, *, when_ready: Callable[[], None]) -> None:
        """Run until asked to stop; ``when_ready`` is called once, when every child is ready for the first time.

        To be called from the main thread: signals arrive there, and a child dies with the thread that started it.
        """
        with self._waking_on_signals() as wake:
            announced = False
            try:
                while not self._stop_requests:
                    self._notice_ends()
                    self._start_what_is_due()
                    self._notice_ready()
                    if not announced and all(place.ready for place in self._places):
                        announced = True
                        when_ready()
                    _wait(wake, self._seconds_to_next_look())
            finally:
                self._end([place for place in self._places if not place.child.foundation], wake)
                self._end([place for place in self._places if place.child.foundation], wake)

    @contextlib.contextmanager
    def _waking_on_signals(self) -> Iterator[socket.socket]:
        """Note signals, and make the yielded socket readable for each, so that none is missed before a wait."""
        wake, signalled = socket.socketpair()
        with wake, signalled:
            wake.setblocking(False)
            signalled.setblocking(False)
            # Started with nohup: the terminal may go.
            numbers = [n for n in STOP_SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
            before = {n: signal.signal(n, self._note_signal) for n in (*numbers, signal.SIGCHLD)}
            before_fd = signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
            try:
                yield wake
            finally:
                signal.set_wakeup_fd(before_fd)
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _note_signal(self, number: int, frame: object) -> None:
        if number in STOP_SIGNALS:
            self._stop_requests += 1

    def _notice_ends(self) -> None:
        for place in self._places:
            if place.process is not None and place.process.poll() is not None:
                self._note_crash(place, _how_it_ended(place.process))

    def _note_crash(self, place: _Place, how: str) -> None:
        now = time.monotonic()
        if place.process is not None:
            _kill_group(place.process)
        place.process, place.ready = None, False
        steady = now - place.started_at >= STEADY_AFTER
        place.delay = FIRST_DELAY if steady or not place.delay else min(place.delay * 2, LONGEST_DELAY)
        place.start_at = now + place.delay
        self._say(f"{place.child.name} ended ({how}) and starts again in {place.delay:g} s")

    def _due(self) -> list[_Place]:
        """Return the places whose child doesn't run and may, now or after its delay."""
        founded = all(place.ready for place in self._places if place.child.foundation)
        return [place for place in self._places if place.process is None and (founded or place.child.foundation)]

    def _start_what_is_due(self) -> None:
        for place in self._due():
            now = time.monotonic()
            if now < place.start_at:
                continue
            place.started_at = now
            try:
                place.process = _start(place.child)
            except OSError as error:
                self._note_crash(place, str(error))

    def _notice_ready(self) -> None:
        for place in self._places:
            if place.process is not None and not place.ready:
                place.ready = place.child.ready()

    def _seconds_to_next_look(self) -> float | None:
        """Return how long to wait at most, None when only a signal can bring news."""
        if any(place.process is not None and not place.ready for place in self._places):
            return POLL
        due = [place.start_at for place in self._due()]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _end(self, places: Sequence[_Place], wake: socket.socket) -> None:
        """Ask these children to end, all at once; kill those that outlast their patience or a second signal."""
        running = [(place.child, place.process) for place in places if place.process is not None]
        for _, process in running:
            process.terminate()
        asked_at = time.monotonic()
        while running:
            left = []
            for child, process in running:
                impatient = self._stop_requests > 1 or time.monotonic() - asked_at >= child.patience
                if process.poll() is None and not impatient:
                    left.append((child, process))
                    continue
                if process.returncode is None:
                    self._say(f"{child.name} didn't end by itself and is killed")
                _kill_group(process)
                process.wait()
            running = left
            if running:
                _wait(wake, POLL)
        for place in places:
            place.process, place.ready = None, False


def _start(child: Child) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        child.command,
        env={**os.environ, **child.environment},
        stdin=subprocess.DEVNULL,
        # A session of its own: Ctrl-C at the terminal reaches the supervisor only, which sends each child one signal.
        start_new_session=True,
        preexec_fn=_dying_with_parent(child.orphan_signal),
    )


def _dying_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return what the new process calls before it becomes the child: ask for a signal when the supervisor dies."""
    if sys.platform != "linux":
        return None
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec as little as possible should happen

    def ask() -> None:
        # What a shell starts in the background ignores some signals, and so would the child.
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # it died before we asked
            os.kill(os.getpid(), number)

    return ask


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a child's session: a worker's own children outlive it when it was killed."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _wait(wake: socket.socket, seconds: float | None) -> None:
    select.select([wake], [], [], seconds)
    with contextlib.suppress(BlockingIOError):
        while wake.recv(4096):
            pass

"""The workers of a process, and whose turn it is."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

from chats.domain.chat_templates import (
    MAX_TEMPLATE_BYTES,
    Profile,
    Rendered,
    RenderRequest,
    TemplateFailure,
    TemplateVariable,
    explain,
)
from chats.domain.chat_templates.lint import LintReport
from chats.template_pool.answers import (
    UNREADABLE,
    Answer,
    WorkerLost,
    encoded,
    failure_in,
    refused,
    rendered_in,
    report_in,
    variables_in,
)
from chats.template_pool.limits import Limits
from chats.template_pool.process import WorkerProcess

_T = TypeVar("_T")
# A worker may have been ended from outside, such as by a system short of memory; the next may have been, too.
_ATTEMPTS = 3
_REQUEST_FIELDS = tuple(f.name for f in fields(RenderRequest) if f.name not in ("template", "profile", "now"))
_request_values = attrgetter(*_REQUEST_FIELDS)


class TemplatePool:
    """Compiles, renders and lints templates in up to `size` processes of their own, plus one that waits.

    Every method answers with a value, a TemplateFailure where there is nothing better; none raises for what a template
    or a chat does. Threads that find all workers busy wait for their turn, at most `limits.waiting_seconds`.
    """

    def __init__(self, size: int = 2, limits: Limits | None = None) -> None:
        self._size = size
        self._limits = limits or Limits()
        # Shared with the finalizer, which must not keep the pool alive.
        self._all: set[WorkerProcess] = set()
        self._reset()
        weakref.finalize(self, _end_all, self._all)
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._waiting = 0
        self._idle: list[WorkerProcess] = []
        self._spare: WorkerProcess | None = None
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
        return self._ask("render", request.template, request.profile, content, rendered_in)

    def render_many(self, requests: Iterable[RenderRequest]) -> list[Rendered | TemplateFailure]:
        """One outcome a request, in order."""
        return [self.render_request(request) for request in requests]

    def check(self, template: str, profile: Profile = "current") -> TemplateFailure | None:
        """Why the template doesn't compile; None if it does. What compiled is ready for the next render."""
        return self._ask("check", template, profile, {}, lambda answer: None)

    def variables(self, template: str, profile: Profile = "current") -> tuple[TemplateVariable, ...] | TemplateFailure:
        """The keyword arguments that the template reads (see `chat_templates.variables`)."""
        return self._ask("variables", template, profile, {}, variables_in)

    def lint(
        self,
        template: str,
        tokens: Mapping[str, str] | None = None,
        kwargs: Iterable[str] = (),
        profile: Profile = "current",
    ) -> LintReport | TemplateFailure:
        """Facts and findings about a template; `kwargs` are the names of the keyword arguments it will be given."""
        content = {"tokens": tokens or {}, "kwargs": sorted(kwargs)}
        return self._ask("lint", template, profile, content, report_in)

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
        self, action: str, template: str, profile: Profile, content: dict[str, Any], read: Callable[[Answer], _T]
    ) -> _T | TemplateFailure:
        limits = self._limits
        cpu, wall = limits.cpu_seconds, limits.wall_seconds
        if action == "lint":
            cpu, wall = limits.lint_cpu_seconds, limits.lint_wall_seconds
        size = len(template) if template.isascii() else len(template.encode("utf-8", "surrogatepass"))
        if size > MAX_TEMPLATE_BYTES:
            return refused("template_size", allowed=MAX_TEMPLATE_BYTES)
        try:
            request = encoded({"action": action, "cpu_seconds": cpu, "profile": profile, **content})
        except Exception as error:
            return explain(error)
        if len(request) + size > limits.request_bytes:
            return refused("request_size", allowed=limits.request_bytes)
        key = (profile, template)
        for _ in range(_ATTEMPTS):
            worker = self._take(key)
            if worker is None:
                return refused("stopped" if self._closed else "busy")
            kept = False
            try:
                outcome: _T | TemplateFailure
                answer = worker.ask(request, key, cpu, wall)
                outcome = failure_in(answer["failure"]) if "failure" in answer else read(answer)
                out_of_memory = isinstance(outcome, TemplateFailure) and outcome.limit == "memory"
                kept = not out_of_memory or self._shrunk(worker)
            except WorkerLost as lost:
                outcome = refused(lost.limit)
            except UNREADABLE:
                outcome = refused("stopped")
            finally:
                self._give_back(worker, kept)
            if not isinstance(outcome, TemplateFailure) or outcome.limit != "stopped":
                return outcome
        return outcome

    def _shrunk(self, worker: WorkerProcess) -> bool:
        worker.forget_templates()
        return worker.size() <= self._limits.kept_bytes

    def _take(self, template: tuple[str, str]) -> WorkerProcess | None:
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

    def _discard(self, worker: WorkerProcess) -> None:
        self._all.discard(worker)
        worker.end()

    def _give_back(self, worker: WorkerProcess, kept: bool) -> None:
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

    def _start(self) -> WorkerProcess | None:
        try:
            worker = WorkerProcess(self._limits)
        except OSError:
            return None
        self._all.add(worker)
        return worker

    def _disown_workers(self) -> None:
        for worker in self._all:
            worker.disown()
        self._all.clear()
        self._reset()


_pools: weakref.WeakSet[TemplatePool] = weakref.WeakSet()


def _after_fork() -> None:
    global _sharing
    # Another thread of the parent may have held it.
    _sharing = threading.Lock()
    for pool in list(_pools):
        pool._disown_workers()


os.register_at_fork(after_in_child=_after_fork)


def _end_all(workers: set[WorkerProcess]) -> None:
    while workers:
        workers.pop().end()


_shared: TemplatePool | None = None
_sharing = threading.Lock()


def shared_pool() -> TemplatePool:
    """The pool of this process, made when first asked for. A forked child keeps the object and starts new workers."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = TemplatePool()
        return _shared

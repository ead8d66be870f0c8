"""The supervisor with real processes: small scripts that write down what happens to them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]

# Children come as JSON: keyword arguments of Child, with `ready_when` the path of a file in place of a function.
DRIVER = """
import json, pathlib, sys
from eleanor_site.supervisor import Child, Supervisor

def child(ready_when=None, **given):
    if ready_when is not None:
        given["ready"] = pathlib.Path(ready_when).exists
    return Child(**given)

children = [child(**given) for given in json.loads(sys.argv[1])]
Supervisor(children, say=lambda line: print(line, flush=True)).run(when_ready=lambda: print("READY", flush=True))
print("ENDED", flush=True)
"""

# Writes its process id to NAME.pid, then each signal to the journal; ends at SIGTERM unless it is stubborn.
CHILD = """
import os, signal, sys, pathlib
name, folder, stubborn = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "stubborn"

def note(what):
    with open(folder / "journal", "a") as journal:
        journal.write(f"{name} {what}\\n")

def on_signal(number, frame):
    note(signal.Signals(number).name)
    if not stubborn:
        note("ends")
        sys.exit(0)

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, on_signal)
note("starts")
(folder / f"{name}.draft").write_text(str(os.getpid()))
(folder / f"{name}.draft").rename(folder / f"{name}.pid")
while True:
    signal.pause()
"""


@dataclass
class Running:
    process: subprocess.Popen[str]
    folder: Path

    def lines(self) -> list[str]:
        return (self.folder / "output").read_text().splitlines()

    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def pid(self, name: str) -> int:
        path = self.folder / f"{name}.pid"
        until(path.exists, what=f"the start of {name}")
        return int(path.read_text())

    def wait_for(self, line: str) -> None:
        until(lambda: line in self.lines(), what=f"the line {line!r}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def supervise(tmp_path):
    """Start the driver with these children; whatever is left of it is killed after the test."""
    with contextlib.ExitStack() as stack:

        def start(*children: dict[str, Any]) -> Running:
            return stack.enter_context(driver(tmp_path, children))

        yield start


@contextlib.contextmanager
def driver(folder: Path, children: tuple[dict[str, Any], ...]) -> Iterator[Running]:
    with open(folder / "output", "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps(children)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    running = Running(process, folder)
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        for path in folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


def child(folder: Path, name: str, *, stubborn: bool = False, **more: Any) -> dict[str, Any]:
    kind = "stubborn" if stubborn else "obedient"
    return {"name": name, "command": [sys.executable, "-c", CHILD, name, str(folder), kind], **more}


def exists(pid: int) -> bool:
    """Whether the process still runs; one that ended and wasn't waited for doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return state != "Z"


def test_the_others_start_once_the_foundation_is_ready(supervise, tmp_path):
    gate = tmp_path / "gate"
    run = supervise(
        child(tmp_path, "web"),
        child(tmp_path, "broker", foundation=True, ready_when=str(gate)),
        child(tmp_path, "worker"),
    )
    run.pid("broker")
    assert run.journal() == ["broker starts"]
    gate.touch()
    run.wait_for("READY")
    run.pid("web")
    run.pid("worker")
    assert sorted(run.journal()) == ["broker starts", "web starts", "worker starts"]


def test_ready_is_said_once_and_only_when_all_are(supervise, tmp_path):
    gate = tmp_path / "gate"
    run = supervise(child(tmp_path, "worker"), child(tmp_path, "web", ready_when=str(gate)))
    run.pid("web")
    run.pid("worker")
    assert "READY" not in run.lines()
    gate.touch()
    run.wait_for("READY")
    os.kill(run.pid("web"), signal.SIGKILL)
    until(lambda: run.journal().count("web starts") == 2, what="the restart")
    run.end()
    assert run.lines().count("READY") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopping_ends_the_foundation_last(supervise, tmp_path, number):
    run = supervise(child(tmp_path, "broker", foundation=True), child(tmp_path, "worker"), child(tmp_path, "web"))
    pids = [run.pid(name) for name in ("broker", "worker", "web")]
    assert run.end(number) == 0
    assert run.lines()[-1] == "ENDED"
    assert not any(exists(pid) for pid in pids)
    ends = [line for line in run.journal() if line.endswith("ends")]
    assert sorted(ends[:2]) == ["web ends", "worker ends"]
    assert ends[2:] == ["broker ends"]


def test_ctrl_c_reaches_each_child_as_one_signal(supervise, tmp_path):
    run = supervise(child(tmp_path, "worker"), child(tmp_path, "web"))
    run.pid("worker")
    run.pid("web")
    os.killpg(run.process.pid, signal.SIGINT)  # what a terminal does: the whole group in the foreground
    assert run.process.wait(30) == 0
    signals = [line for line in run.journal() if "SIG" in line]
    assert sorted(signals) == ["web SIGTERM", "worker SIGTERM"]


def test_a_killed_child_starts_again(supervise, tmp_path):
    run = supervise(child(tmp_path, "worker"), child(tmp_path, "web"))
    run.wait_for("READY")
    first, web = run.pid("worker"), run.pid("web")
    os.kill(first, signal.SIGKILL)
    run.wait_for("worker ended (SIGKILL) and starts again in 0.5 s")
    until(lambda: run.pid("worker") != first, what="a new worker")
    assert exists(run.pid("worker"))
    assert run.pid("web") == web
    assert exists(web)


def test_the_delay_doubles_with_each_crash(supervise, tmp_path):
    run = supervise(
        {"name": "web", "command": [sys.executable, "-c", "raise SystemExit(3)"]}, child(tmp_path, "worker")
    )
    run.wait_for("web ended (exit code 3) and starts again in 2 s")
    delays = [line.rpartition(" in ")[2] for line in run.lines() if line.startswith("web ended")]
    assert delays == ["0.5 s", "1 s", "2 s"]
    assert run.journal() == ["worker starts"]
    assert run.end() == 0, "waiting for a restart must not keep it from stopping"


def test_a_missing_program_is_named_and_tried_again(supervise):
    run = supervise({"name": "broker", "command": ["/nonexistent/redis-server"], "foundation": True})
    until(lambda: sum("/nonexistent/redis-server" in line for line in run.lines()) == 2, what="two attempts")
    assert run.end() == 0


def test_what_a_killed_child_leaves_behind_is_killed(supervise, tmp_path):
    """A worker's own children would go on working beside those of its successor."""
    spawn = (
        "import pathlib, subprocess, sys, signal;"
        "inner = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']);"
        "target = pathlib.Path(sys.argv[1], f'grandchild.{inner.pid}.pid');"
        "target.with_suffix('.draft').write_text(str(inner.pid)); target.with_suffix('.draft').rename(target);"
        "(pathlib.Path(sys.argv[1]) / 'outer').write_text(str(__import__('os').getpid())); signal.pause()"
    )
    run = supervise({"name": "worker", "command": [sys.executable, "-c", spawn, str(tmp_path)]})
    until(lambda: (tmp_path / "outer").exists() and (tmp_path / "outer").read_text(), what="the worker")
    (inner,) = [int(path.read_text()) for path in tmp_path.glob("grandchild.*.pid")]
    assert exists(inner)
    os.kill(int((tmp_path / "outer").read_text()), signal.SIGKILL)
    until(lambda: not exists(inner), what="the end of the grandchild")
    assert run.end() == 0


def test_a_stubborn_child_is_killed_when_patience_ends(supervise, tmp_path):
    run = supervise(child(tmp_path, "worker", stubborn=True, patience=0.3), child(tmp_path, "web"))
    worker = run.pid("worker")
    run.pid("web")
    assert run.end() == 0
    assert not exists(worker)
    assert "worker didn't end by itself and is killed" in run.lines()
    assert "web ends" in run.journal()


def test_a_second_ctrl_c_kills_at_once(supervise, tmp_path):
    run = supervise(child(tmp_path, "worker", stubborn=True, patience=600))
    worker = run.pid("worker")
    run.process.send_signal(signal.SIGINT)
    until(lambda: "worker SIGTERM" in run.journal(), what="the first signal")
    assert run.end(signal.SIGINT) == 0
    assert not exists(worker)


def test_nohup_is_respected(tmp_path):
    with open(tmp_path / "output", "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps([child(tmp_path, "web")])],
            cwd=ROOT,
            stdout=output,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
    run = Running(process, tmp_path)  # type: ignore[arg-type]
    try:
        web = run.pid("web")
        process.send_signal(signal.SIGHUP)
        os.kill(web, signal.SIGKILL)
        until(lambda: run.journal().count("web starts") == 2, what="a restart after the hang-up")
        assert run.end() == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_children_die_with_a_killed_supervisor(supervise, tmp_path):
    run = supervise(child(tmp_path, "broker", foundation=True), child(tmp_path, "worker", orphan_signal=signal.SIGKILL))
    pids = [run.pid("broker"), run.pid("worker")]
    run.process.kill()
    run.process.wait()
    until(lambda: not any(exists(pid) for pid in pids), what="the end of both children")
    assert "broker SIGTERM" in run.journal()


@pytest.mark.parametrize("module", ["bootstrap", "supervisor"])
def test_needs_nothing_but_the_standard_library(module):
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import eleanor_site.{module};"
        "own = {'eleanor_site', '__main__'};"
        "print(sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names) - own))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr

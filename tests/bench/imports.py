"""`python -m tests.bench imports [--sizes N …] [--upload MB] [--database sqlite] [--json]`: imports, and their memory.

Each size is imported by a process of its own, the way `manage.py import_chats` does it: the file is kept, read as a
stream and stored, and time runs until every chat stands in the search index and in the segments that rules are
evaluated on, which is checked. Speeds are per second of the process's own time, since the machine may be shared; real
time, which holds the database's work too, stands beside them. The baseline is the JSON parser alone over the same file
in the same process. Peaks are the kernel's high-water marks (VmHWM; ru_maxrss would carry over what started the
process). An import collects one segment in memory, 65,536 points or about 3,100 of these chats, so that the smallest
size is one that fills it. The PostgreSQL of the benchmark doesn't wait for the disk. Goals: product.md section 12
(2,000 messages a second, constant memory).
"""

from __future__ import annotations

import argparse
import functools
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench._site import Row, configured, shown, signed_in, web

GOAL = 2_000
# The largest import may need so many times the memory of the smallest.
CONSTANT = 1.25
SIZES = (4_000, 8_000, 32_000)
SEED = 20_260_304
UPLOAD_PART = 1024 * 1024


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench imports")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="chats of each import")
    parser.add_argument("--upload", type=int, default=200, help="megabytes to send to the web server; 0: none")
    parser.add_argument("--var", type=Path)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        print(json.dumps(imported_here(options.child)))
        return 0
    with configured(options.database, options.var) as folder:
        rows = measured(folder, options.sizes, options.database)
        if options.upload:
            rows += uploaded(folder, options.upload)
    for row in rows:
        print(json.dumps(row.as_json()) if options.json else shown(row))
    missed = [row.name for row in rows if row.missed]
    if missed:
        print("missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed else 0


# --- the speed and the memory of an import


def measured(folder: Path, sizes: list[int], database: str) -> list[Row]:
    rows: list[Row] = []
    peaks: list[float] = []
    for size in sizes:
        path = folder / f"bench-{size}.jsonl"
        write_corpus(path, size)
        child = [sys.executable, "-m", "tests.bench", "imports", "--child", str(path)]
        found = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        path.unlink()
        speed = found["messages"] / found["processor"]
        peaks.append(found["peak"])
        rows += [
            Row(
                *(f"import of {size:,} chats, per second of its process", speed, "messages/s", "JSON parser alone"),
                ratio=found["parser"] / found["processor"],
                goal=f">= {GOAL:,}",
                missed=speed < GOAL,
                limit=f"{database}; {found['messages']:,} messages, {found['bytes'] / 1e6:,.0f} MB",
            ),
            Row("  in real time, with the database's share", found["messages"] / found["seconds"], "messages/s"),
            Row(f"  its process before it begins, {size:,} chats", found["idle"], "MB"),
            Row(f"  its peak, {size:,} chats", found["peak"], "MB", "the smallest import", found["peak"] / peaks[0]),
        ]
    growth = max(peaks) / min(peaks)
    return [
        *rows,
        Row(
            *(f"largest peak ({sizes[-1] / sizes[0]:.0f} times the chats)", max(peaks), "MB", "the smallest peak"),
            ratio=growth,
            goal=f"<= {CONSTANT} x",
            missed=growth > CONSTANT,
        ),
    ]


def write_corpus(path: Path, chats: int) -> None:
    """Conversations as JSON lines: those of the corpus generator beside the checkout, else plain ones."""
    with path.open("w", encoding="utf-8") as lines:
        for chat in _conversations(chats):
            lines.write(json.dumps(chat, ensure_ascii=False) + "\n")


def _conversations(count: int) -> Iterator[dict[str, Any]]:
    from tests.shared_data import SHARED

    if (SHARED / "bench" / "make_corpus.py").is_file():
        from tests.rules.domain.corpora import corpus_maker

        yield from (chat for chat, _points in corpus_maker().generate(count, SEED))
        return
    for n in range(count):
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"Please find the cause of problem {n}."}]
        for step in range(n % 12):
            call = {"id": f"c{step}", "name": "search", "arguments": {"text": f"problem {n} step {step}"}}
            messages += [
                {"role": "assistant", "content": "I will look further.", "tool_calls": [call]},
                {"role": "tool", "content": f"{step} lines found " * 20, "tool_call_id": f"c{step}"},
            ]
        messages.append(
            {"role": "assistant", "content": "This is the cause, and how to mend it.", "finish_reason": "stop"}
        )
        yield {"format": "eleanor-chat", "version": 1, "external_id": f"plain-{n}", "chat": {"messages": messages}}


def imported_here(path: Path) -> dict[str, float]:
    """Import the file in this process, in a tenant of its own, and tell what it took."""
    import django

    django.setup()
    from django.core.files import File
    from django_scopes import scope

    from chats.chunks import run_import
    from chats.models import ChatText, ImportJob
    from chats.services.importing import start_import
    from eleanor_site.tenants.models import Tenant
    from rules.queries.segments import uncovered_versions

    parser = parsed(path)
    tenant = Tenant.objects.create(slug=path.stem, name=path.stem)
    idle = memory("VmRSS")
    started, worked = time.perf_counter(), time.process_time()
    with scope(tenant=tenant):
        with path.open("rb") as stream:
            job = start_import(tenant=tenant, by=None, file=File(stream, name=path.name), name=path.name, send=False)
        run_import(job.pk)
        seconds, processor = time.perf_counter() - started, time.process_time() - worked
        job = ImportJob.objects.get(pk=job.pk)
        peak = memory("VmHWM")
        if job.skipped or ChatText.objects.count() != job.taken or uncovered_versions():
            raise RuntimeError(f"the import isn't whole: {job.taken} taken, {job.report}")
    return {
        "seconds": seconds,
        "processor": processor,
        "parser": parser,
        "messages": job.messages,
        "bytes": job.file_size,
        "idle": idle,
        "peak": peak,
    }


def parsed(path: Path) -> float:
    """Seconds of processor time that the JSON parser takes for the same lines."""
    started = time.process_time()
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)
    return time.process_time() - started


def memory(name: str, process: int | str = "self") -> float:
    """A line of the kernel's account of a process, in megabytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    return kilobytes / 1024


# --- the memory of the web server


def uploaded(folder: Path, megabytes: int) -> list[Row]:
    """Send a big file to the form of imports and look at the process that takes it."""
    from eleanor_site.tenants.models import Role, Tenant
    from tests.bench._site import TENANT
    from tests.factories import make_person

    tenant, made = Tenant.objects.get_or_create(slug=TENANT, defaults={"name": "Bench"})
    if made:
        make_person("bench", tenant, Role.ADMIN)
    with web(folder) as (port, worker):
        browser = signed_in(port)
        page = f"/t/{TENANT}/chats/import"
        browser.get(page)
        before = memory("VmHWM", worker)
        with tempfile.TemporaryFile() as file:
            line = json.dumps({"messages": [{"role": "user", "content": "x" * 1000}]}).encode() + b"\n"
            block = line * (UPLOAD_PART // len(line))
            while file.tell() < megabytes * UPLOAD_PART:
                file.write(block)
            size = file.tell()
            file.seek(0)
            started = time.perf_counter()
            status = _post_file(port, page, browser.cookies, file, size)
            seconds = time.perf_counter() - started
        after = memory("VmHWM", worker)
    if status != http.client.FOUND:
        raise RuntimeError(f"the upload was answered with {status}")
    return [
        Row(f"upload of {size / 1e6:,.0f} MB", size / 1e6 / seconds, "MB/s"),
        Row("  growth of the web process's peak", after - before, "MB", "the file", (after - before) / (size / 1e6)),
    ]


def _post_file(port: int, page: str, cookies: dict[str, str], file: Any, size: int) -> int:
    mark = "bench-boundary"
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{cookies["csrftoken"]}\r\n'
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="big.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    ).encode()
    tail = f"\r\n--{mark}--\r\n".encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.putrequest("POST", page)
    connection.putheader("Cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()))
    connection.putheader("Content-Type", f"multipart/form-data; boundary={mark}")
    connection.putheader("Content-Length", str(len(head) + size + len(tail)))
    connection.endheaders(head)
    for part in iter(functools.partial(file.read, UPLOAD_PART), b""):
        connection.send(part)
    connection.send(tail)
    return connection.getresponse().status

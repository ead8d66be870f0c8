"""`python -m tests.golden templates DIR [--classic] [--in-process]`: renders equal to those of transformers.

DIR holds `index.json`, the templates, one or more files of chats (`*chats*.json`), and `golden.json.gz` (profile
"current") or `golden-classic.json.gz` (`--classic`). Renders go through the worker pool unless told otherwise.
"""

import argparse
import gzip
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from chats.domain.chat_templates import Profile, Rendered, RenderRequest, TemplateFailure, render_or_explain
from chats.template_pool import TemplatePool

# The recorded results have every address written like this, also one that a chat mentions.
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
FILES: dict[Profile, str] = {"current": "golden.json.gz", "classic": "golden-classic.json.gz"}

Outcome = Rendered | TemplateFailure


def cases(folder: Path, profile: Profile) -> Iterator[tuple[str, RenderRequest | None, dict[str, Any]]]:
    """Name, request and recorded result of every case; the request is None when its template or chat is missing."""
    with gzip.open(folder / FILES[profile], "rt", encoding="utf-8") as file:
        golden = json.load(file)
    entries = {e["name"]: e for e in json.loads((folder / "index.json").read_text("utf-8"))["templates"]}
    chats = {c["id"]: c for path in sorted(folder.glob("*chats*.json")) for c in json.loads(path.read_text("utf-8"))}
    now = datetime.fromisoformat(golden["meta"]["frozen_now"])
    for name, results in golden["results"].items():
        entry = entries.get(name)
        text = (folder / entry["file"]).read_bytes().decode("utf-8") if entry else ""
        for chat_id, result in results.items():
            chat = chats.get(chat_id)
            known = entry is not None and chat is not None
            yield f"{name} / {chat_id}", request_of(text, chat, entry, profile, now) if known else None, result


def request_of(text: str, chat: Any, entry: Any, profile: Profile, now: datetime | None) -> RenderRequest:
    tokens = {name: token for name, token in (entry.get("special_tokens") or {}).items() if token is not None}
    return RenderRequest(
        text,
        chat["messages"],
        tools=chat.get("tools"),
        documents=chat.get("documents"),
        kwargs=chat.get("kwargs") or {},
        tokens=tokens,
        profile=profile,
        add_generation_prompt=chat.get("add_generation_prompt", False),
        continue_final_message=chat.get("continue_final_message", False),
        now=now,
    )


def difference(outcome: Outcome, expected: dict[str, Any]) -> str | None:
    """How an outcome differs from the recorded result; None if it doesn't.

    Texts and spans must be equal, classes of errors too, and the words of what a template's author raises; other
    words are those of Python's and jinja2's versions.
    """
    if isinstance(outcome, TemplateFailure):
        error = expected.get("error")
        if error is None:
            return f"{outcome.error_class}: {outcome.message[:200]!r} instead of a text"
        if outcome.error_class != error["class"]:
            return f"{outcome.error_class} instead of {error['class']}"
        message = ADDRESS.sub("0xADDR", outcome.message)
        if error["class"] == "TemplateError" and message != error["message"]:
            return f"message {message!r} instead of {error['message']!r}"
        return None
    if "error" in expected:
        return f"a text instead of {expected['error']['class']}: {outcome.text[:80]!r}"
    text = ADDRESS.sub("0xADDR", outcome.text)
    if text != expected["text"]:
        at = next((i for i, (a, b) in enumerate(zip(text, expected["text"], strict=False)) if a != b), len(text))
        return f"from character {at} on {text[at : at + 60]!r} instead of {expected['text'][at : at + 60]!r}"
    if "spans" in expected and [list(span) for span in outcome.spans] != expected["spans"]:
        return f"spans {outcome.spans} instead of {expected['spans']}"
    return None


def failing(folder: Path, profile: Profile, render: Callable[[RenderRequest], Outcome]) -> tuple[list[str], int]:
    """The cases that differ, a line each, and the number of all cases."""
    lines, total = [], 0
    for name, request, expected in cases(folder, profile):
        total += 1
        wrong = "no such template or chat" if request is None else difference(render(request), expected)
        if wrong:
            lines.append(f"{name}: {wrong}")
    return lines, total


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden templates")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--classic", action="store_true", help="profile classic and golden-classic.json.gz")
    parser.add_argument("--in-process", action="store_true", help="without the worker pool")
    arguments = parser.parse_args(argv)
    profile: Profile = "classic" if arguments.classic else "current"
    if arguments.in_process:
        lines, total = failing(arguments.folder, profile, render_or_explain)
    else:
        with TemplatePool() as pool:
            lines, total = failing(arguments.folder, profile, pool.render_request)
    print("\n".join(lines), end="\n" if lines else "")
    print(f"{total - len(lines)} of {total}")
    return 1 if lines or not total else 0

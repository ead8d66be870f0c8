"""The original's own template engine, whose dialect the product doesn't share; for errors the fact counts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.chat_templates import Rendered, RenderRequest, render_or_explain
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "jinja-engine.json"
JINJA = True
# Templates are always rendered for a chat; these don't look at it.
_MESSAGES = [{"role": "user", "content": "Hi"}]


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield case["template"], _difference(case, folder)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    now = folder.clock.now().replace(tzinfo=None)
    answer = render_or_explain(RenderRequest(case["template"], _MESSAGES, kwargs=case["context"], now=now))
    if not isinstance(answer, Rendered):
        return None if "error" in case else f"failed: {answer.error_class}: {answer.message}"
    return "should fail" if "error" in case else mismatch(answer.text, case["output"])

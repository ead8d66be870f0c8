"""Templates ready to run, and the cache of them."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import OrderedDict

from chats.domain.chat_templates.environment import ENVIRONMENTS
from chats.domain.chat_templates.failures import explain
from chats.domain.chat_templates.requests import MAX_TEMPLATE_BYTES, LimitExceeded, Profile, TemplateFailure

CACHED_TEMPLATES = 64
_GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation")


class CompiledTemplate:
    """A template ready to run, with the way back from a line of its Python code to a line of its text."""

    def __init__(self, text: str, profile: Profile) -> None:
        self.text = text
        self.template = ENVIRONMENTS[profile].from_string(text)
        # All names are gathered for every render, and a plain dict gives them in a fraction of a chain's time.
        self.template.globals = dict(self.template.globals)
        self.notes_spans = _GENERATION_TAG.search(text) is not None
        self._code_lines: list[int] = []
        self._template_lines: list[int] = []

    def line_of(self, code_line: int) -> int:
        if not self._code_lines:
            pairs = sorted(self.template.debug_info, key=lambda pair: pair[1])
            self._template_lines = [line for line, _ in pairs]
            self._code_lines = [code for _, code in pairs]
        at = bisect_right(self._code_lines, code_line) - 1
        return self._template_lines[at] if at >= 0 else 1


class TemplateCache:
    """The last compiled templates by text and profile. Safe to share between threads."""

    def __init__(self, size: int = CACHED_TEMPLATES) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[Profile, str], CompiledTemplate] = OrderedDict()

    def get(self, text: str, profile: Profile = "current") -> CompiledTemplate:
        """Compiled anew if need be; raises whatever jinja2 and Python raise while compiling."""
        key = (profile, text)
        with self._lock:
            known = self._compiled.get(key)
            if known is not None:
                self._compiled.move_to_end(key)
                return known
        if len(text) > MAX_TEMPLATE_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
            raise LimitExceeded("template_size", allowed=MAX_TEMPLATE_BYTES)
        compiled = CompiledTemplate(text, profile)
        with self._lock:
            self._compiled[key] = compiled
            while len(self._compiled) > self._size:
                self._compiled.popitem(last=False)
        return compiled

    def clear(self) -> None:
        with self._lock:
            self._compiled.clear()


SHARED_CACHE = TemplateCache()


def check(text: str, profile: Profile = "current", cache: TemplateCache = SHARED_CACHE) -> TemplateFailure | None:
    """Why the text doesn't compile; None if it does."""
    try:
        cache.get(text, profile)
    except Exception as error:
        return explain(error)
    return None

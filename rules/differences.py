"""Text differences of rules, as the diff component shows them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from rules.models.rules import CONTENT_FIELDS, RuleContent

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
FIELD_LABELS: dict[str, str | Promise] = {
    "title_en": _("Title, English"),
    "title_fr": _("Title, French"),
    "explanation_en": _("Explanation, English"),
    "explanation_fr": _("Explanation, French"),
    "stage": _("When it is evaluated"),
    "max_nudges": _("Cap per turn"),
    "expression": _("Expression"),
    "prompt_en": _("Prompt, English"),
    "prompt_fr": _("Prompt, French"),
}


def differences(old: RuleContent | None, new: RuleContent | None) -> list[dict[str, Any]]:
    """Each field that differs with its lines; a missing side counts as empty."""
    found = []
    for name in CONTENT_FIELDS:
        before, after = (_text(side, name) for side in (old, new))
        if before != after:
            found.append({"name": name, "label": FIELD_LABELS[name], "rows": list(_rows(before, after))})
    return found


def _text(content: RuleContent | None, name: str) -> str:
    if content is None:
        return ""
    return str(content.get_stage_display() if name == "stage" else getattr(content, name))


def _rows(old: str, new: str) -> Iterator[dict[str, Any]]:
    """Lines with their numbers; where as many lines went as came, what changed within each is marked."""
    before, after = old.splitlines(), new.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (
                {"kind": "same", "old": a + n + 1, "new": c + n + 1, "text": before[a + n]} for n in range(b - a)
            )
            continue
        pairs = list(zip(before[a:b], after[c:d], strict=False)) if b - a == d - c else []
        for n in range(a, b):
            parts = {"parts": _parts(*pairs[n - a], 0)} if pairs else {"text": before[n]}
            yield {"kind": "gone", "old": n + 1, **parts}
        for n in range(c, d):
            parts = {"parts": _parts(*pairs[n - c], 1)} if pairs else {"text": after[n]}
            yield {"kind": "added", "new": n + 1, **parts}


def _parts(old: str, new: str, side: int) -> list[dict[str, Any]]:
    """One of two lines in pieces, of which the changed ones are marked. Words are compared, not letters."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    parts = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        text = "".join(before[a:b] if side == 0 else after[c:d])
        if text:
            parts.append({"text": text, "changed": tag != "equal"})
    return parts

"""Regular expressions: RE2 only, with limits on size and speed (rule-engine.md section 2.3).

Operator text never reaches Python's `re`.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import re2

from rules.domain.language.diagnostics import Span

MAX_CHARACTERS = 200
MAX_PROGRAM = 300
MAX_MEMORY = 1 << 20
MIN_SPEED = 20
"""Megabytes a second of one pattern over the sample."""

MATCH_LIMIT = 1_000_000
"""Bytes of UTF-8: of a longer text only the beginning is searched."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_FIRST_MEMORY = 1 << 17
_QUICK_BYTES = 64_000
_SAMPLE_BYTES = 256_000
_QUICK_FACTOR = 4

_BOUNDARY_CLASS = r"[^\pL\pN_]"
_MAX_BOUNDARIES = 4
BOUNDARY_BEFORE = f"(?:^|{_BOUNDARY_CLASS})"
BOUNDARY_AFTER = f"(?:$|{_BOUNDARY_CLASS})"


@dataclass(frozen=True, slots=True)
class PatternProblem:
    """Why a pattern is refused; `at` is a span in code points of the pattern, when the place is known."""

    code: str
    args: Mapping[str, Any] = field(default_factory=dict)
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts on which the speed of patterns is tried. Make one with `sample_of`; equal digests mean equal texts."""

    digest: str
    texts: tuple[bytes, ...] = field(compare=False, repr=False)


def sample_of(texts: Iterable[str]) -> Sample:
    """A sample from the first texts of a corpus, as many as are needed; an empty corpus gives the built-in sample."""
    kept: list[bytes] = []
    size = 0
    for text in texts:
        if size >= _SAMPLE_BYTES:
            break
        data = text.encode("utf-8", "replace")[: _SAMPLE_BYTES - size]
        kept.append(data)
        size += len(data)
    if not size:
        return built_in_sample()
    # A small corpus is repeated: a few kilobytes can't be timed.
    kept *= -(-_SAMPLE_BYTES // (2 * size)) if size < _SAMPLE_BYTES // 2 else 1
    return Sample(hashlib.sha256(b"\0".join(kept)).hexdigest(), tuple(kept))


@functools.cache
def built_in_sample() -> Sample:
    """Answers in English and French, prose and code, for as long as there is no corpus."""
    subjects = ("The retry loop", "La tâche d'import", "This function", "Le formulaire de connexion", "The API client")
    verbs = ("drops", "renvoie", "no longer handles", "ignore en silence", "depends on", "écrit")
    objects = ("duplicate rows", "une liste vide", "the timezone offset", "un jeton périmé", "a 404 response")
    tails = (
        "under load",
        "après la mise à jour",
        "as the logs show",
        "si l'option est désactivée",
        "since version 4.2",
    )
    sentences = [
        f"{subject} {verb} {thing} {tail}."
        for subject, verb, thing, tail in itertools.product(subjects, verbs, objects, tails)
    ]
    code = "```\ndef handle_42(self, value, *, strict=False):\n    return {'rows': 17, \"état\": None}\n```"
    texts: list[bytes] = []
    size = turn = 0
    while size < _SAMPLE_BYTES:
        count = 3 + turn * 7 % 11
        chosen = [sentences[(turn * 97 + k * 31) % len(sentences)] for k in range(count)]
        parts = [" ".join(chosen), code] if turn % 5 == 0 else [" ".join(chosen)]
        parts.append(
            ("- [ ] écran d'export\n- [x] parser", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "Next: 1, 2, 3")[turn % 3]
        )
        data = "\n\n".join(parts).encode()
        texts.append(data)
        size += len(data)
        turn += 1
    return Sample(hashlib.sha256(b"\0".join(texts)).hexdigest(), tuple(texts))


def _options(memory: int, *, groups: bool = True) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    options.never_capture = not groups
    return options


_OPTIONS = _options(MAX_MEMORY)
_SEARCHING = _options(MAX_MEMORY, groups=False)


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """The pattern as RE2 searches it; raises `re2.error` when there is none, which `problem_in` tells beforehand.

    Groups catch nothing, since nobody asks for them and finding them in a long match takes a hundred times longer.
    """
    return re2.compile(pattern, _SEARCHING)


@functools.cache
def _boundary_size() -> int:
    return int(compiled(_BOUNDARY_CLASS).programsize)


@functools.lru_cache(maxsize=2048)
def problem_in(pattern: str, sample: Sample | None = None) -> PatternProblem | None:
    """Why the pattern is refused, or None. The answer for one pattern and sample is kept: it holds for the process."""
    if len(pattern) > MAX_CHARACTERS:
        args = {"what": "characters", "found": len(pattern), "limit": MAX_CHARACTERS}
        return PatternProblem("regex-too-large", args, (MAX_CHARACTERS, len(pattern)))
    try:
        # Compiling a huge program takes 40 ms with the full memory and is refused early with a little.
        re2.compile(pattern, _options(_FIRST_MEMORY))
        written = re2.compile(pattern, _OPTIONS)
        program = compiled(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        return _refusal(pattern, error)
    # The boundary that stands in for `\b` needs the tables of all letters and digits, which alone are over the limit.
    boundaries = min(pattern.count(_BOUNDARY_CLASS), _MAX_BOUNDARIES)
    size = written.programsize - boundaries * _boundary_size()
    if size > MAX_PROGRAM:
        return PatternProblem("regex-too-large", {"what": "program", "found": size, "limit": MAX_PROGRAM})
    speed = speed_of(program, sample or built_in_sample())
    if speed < MIN_SPEED:
        return PatternProblem("regex-slow", {"found": round(speed, 1), "limit": MIN_SPEED})
    return None


def _refusal(pattern: str, error: Exception) -> PatternProblem:
    if isinstance(error, UnicodeEncodeError):
        return PatternProblem("regex", {"reason": "lone surrogate", "fragment": "", "at": error.start})
    message = error.args[0]
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    if "too large" in text:
        return PatternProblem("regex-too-large", {"what": "program", "found": None, "limit": MAX_PROGRAM})
    reason, _, fragment = text.partition(": ")
    at = _place(pattern, reason, fragment)
    args = {"reason": reason, "fragment": fragment, "at": None if at is None else at[0]}
    return PatternProblem("regex", args, at)


def _place(pattern: str, reason: str, fragment: str) -> Span | None:
    """Where in the pattern RE2's complaint belongs; it names the fragment only, or the whole pattern."""
    if reason in ("missing )", "unexpected )"):
        opened, stray = _parentheses(pattern)
        place = (opened[-1] if opened else None) if reason == "missing )" else stray
        return None if place is None else (place, place + 1)
    if reason.startswith("trailing"):
        return len(pattern) - 1, len(pattern)
    found = pattern.rfind(fragment) if reason == "missing ]" else pattern.find(fragment)
    return (found, found + len(fragment)) if fragment and found >= 0 else None


def _parentheses(pattern: str) -> tuple[list[int], int | None]:
    """Places of parentheses that stay open, and of the first one that closes nothing."""
    opened: list[int] = []
    at, in_class = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            at += pattern.startswith(("[]", "[^]"), at) + pattern.startswith("[^]", at)
        elif char == "(":
            opened.append(at)
        elif char == ")":
            if not opened:
                return opened, at
            opened.pop()
        at += 1
    return opened, None


def speed_of(program: Any, sample: Sample) -> float:
    """Megabytes of the sample that the pattern searches in a second of processor time.

    The best of three runs over a quarter of a megabyte, each given up once it is known to be too slow: a check ends
    within 50 ms whatever the pattern. Processor time of this thread, so that a busy machine refuses nothing.
    """
    quick = _run(program, sample.texts, _QUICK_BYTES)
    if quick >= _QUICK_FACTOR * MIN_SPEED:
        return quick
    return max(_run(program, sample.texts, _SAMPLE_BYTES) for _ in range(3))


def _run(program: Any, texts: tuple[bytes, ...], size: int) -> float:
    done = 0
    longest = size / (MIN_SPEED * 1e6)
    start = time.thread_time()
    for text in texts:
        program.search(text)
        done += len(text)
        if done >= size or time.thread_time() - start > longest:
            break
    return done / 1e6 / max(time.thread_time() - start, 1e-9)


def searched_bytes(text: str) -> bytes:
    """The part of a text in which patterns are searched: whole characters, at most `MATCH_LIMIT` bytes.

    A lone surrogate, which UTF-8 can't hold, counts as U+FFFD, as in stored chats.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _SURROGATES.sub("\ufffd", text).encode()
    if len(data) <= MATCH_LIMIT:
        return data
    end = MATCH_LIMIT
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def found_in(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return compiled(pattern).search(searched_bytes(text)) is not None


def spans_in(pattern: str, text: str, most: int = 100) -> list[Span]:
    """Where the pattern is found, in code points, empty matches left out; the first `most` matches only."""
    matches = itertools.islice(compiled(pattern).finditer(searched_bytes(text).decode()), most)
    return [match.span() for match in matches if match.start() < match.end()]


def ascii_boundaries(pattern: str) -> list[tuple[Span, str]]:
    r"""Places of `\b` beside a letter that RE2's `\b` does not know, each with what to write instead.

    RE2's `\b` is ASCII: `\bétapes` is not found after a space.
    """
    found: list[tuple[Span, str]] = []
    at = 0
    while (at := pattern.find("\\", at)) >= 0:
        if pattern.startswith("\\b", at):
            if _begins_with_letter(pattern, at + 2):
                found.append(((at, at + 2), BOUNDARY_BEFORE))
            elif _ends_with_letter(pattern, at):
                found.append(((at, at + 2), BOUNDARY_AFTER))
        at += 2
    return found


def _foreign_letter(char: str) -> bool:
    return bool(char) and not char.isascii() and char.isalnum()


def _begins_with_letter(pattern: str, at: int) -> bool:
    """Whether what follows at `at`, or an alternative of the group that follows, begins with such a letter."""
    if not pattern.startswith("(", at):
        return _foreign_letter(pattern[at : at + 1])
    depth = 0
    begins = False
    while at < len(pattern):
        char = pattern[at]
        if begins and _foreign_letter(char):
            return True
        begins = False
        if char == "(":
            depth += 1
            begins = True
            if pattern.startswith("(?", at):
                colon = pattern.find(":", at)
                at = colon if colon >= 0 else at + 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return False
        elif char == "|":
            begins = depth == 1
        elif char == "\\":
            at += 1
        at += 1
    return False


def _ends_with_letter(pattern: str, at: int) -> bool:
    return at > 0 and _foreign_letter(pattern[at - 1])

"""Prose: what the text helpers look at, without code, block quotes and quotations (continuation.md section 11)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rules.domain.phrases.folding import PROSE, prose_characters

FENCE: Final = re.compile(r"[ \t]{0,40}(`{3,}|~{3,})(.*)", re.DOTALL)
_QUOTATION_MARKS: Final = {'"': '"', "“": "”", "«": "»"}
_OPENING_MARK: Final = re.compile('["“«]')
_LONGEST_QUOTATION: Final = 200
_BACKTICKS: Final = re.compile(r"`+")
_UNDERSCORES: Final = re.compile(r"_+")
_MARKED: Final = re.compile('[`~>"“«*_]')


@lru_cache(maxsize=64)
def prose(text: str) -> bytes:
    """One folded sentence a line, in ASCII; lines that held nothing are empty.

    Kept for the last texts, since several helpers read the same text one after the other.
    """
    folded = prose_characters(without_quotations(text))
    lines = "\n".join(" ".join(line.split()) for line in folded.splitlines())
    return lines.replace(". ", ".\n").replace("! ", "!\n").replace("? ", "?\n").encode("ascii")


def located_prose(text: str) -> tuple[bytes, list[int]]:
    """The same, and for each of its characters the index of the character of the text that it comes from."""
    chars: list[str] = []
    origins: list[int] = []
    space: int | None = None
    line_start = True
    for at, char in enumerate(_plain_line_ends(without_quotations(text))):
        for c in PROSE[ord(char)]:
            if c == "\n":
                chars.append("\n")
                origins.append(at)
                space, line_start = None, True
            elif c.isspace():
                space = at if space is None else space
            else:
                if space is not None and not line_start:
                    chars.append("\n" if chars[-1] in ".!?" else " ")
                    origins.append(space)
                chars.append(c)
                origins.append(at)
                space, line_start = None, False
    if chars and chars[-1] == "\n" and space is None:  # splitting into lines and joining them drops a last line end
        del chars[-1], origins[-1]
    return "".join(chars).encode("ascii"), origins


def _plain_line_ends(text: str) -> str:
    """Each line end as `\\n` in a text of the same length; of `\\r\\n` the first is a space."""
    return re.sub("[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]", "\n", text.replace("\r\n", " \n"))


def original_span(origins: list[int], start: int, end: int) -> tuple[int, int]:
    """Where a part of located prose stands in the text, as code points."""
    return origins[start], origins[end - 1] + 1


def sentence_end(sentences: bytes, start: int) -> int:
    """Where the sentence around a place ends, its last mark included."""
    end = sentences.find(b"\n", start)
    return len(sentences) if end < 0 else end


def is_question(sentence: bytes) -> bool:
    """Whether it ends in a question mark, closing brackets, quotes and marks after it aside."""
    return sentence.rstrip(b" )]}>\"'*_~!.").endswith(b"?")


def without_quotations(text: str) -> str:
    """The text of the same length with code, block quotes, quotations and emphasis marks overwritten by spaces."""
    if _MARKED.search(text) is None:
        return text
    if "```" in text or "~~~" in text:
        text = _without_fenced_blocks(text)
    if "`" in text or ">" in text or "_" in text:
        text = "".join(_plain_line(line) for line in text.splitlines(keepends=True))
    if '"' in text or "“" in text or "«" in text:
        text = _blanked(text, _quotations(text))
    return text.replace("*", " ")


def fenced_lines(lines: list[str]) -> list[bool]:
    """For each line, whether it belongs to a fenced block, its fences included; an unclosed block runs to the end."""
    inside: list[bool] = []
    fence = ""
    for line in lines:
        if fence:
            inside.append(True)
            closing = line.strip()
            if len(closing) >= len(fence) and not closing.strip(fence[0]):
                fence = ""
            continue
        opened = FENCE.match(line)
        if opened is not None and not ("`" in opened[1] and "`" in opened[2]):
            fence = opened[1]
        inside.append(bool(fence))
    return inside


def _without_fenced_blocks(text: str) -> str:
    lines = text.splitlines(keepends=True)
    inside = fenced_lines(lines)
    return "".join(_blank(line) if within else line for line, within in zip(lines, inside, strict=True))


def _plain_line(line: str) -> str:
    if line.lstrip().startswith(">"):
        return _blank(line)
    if "`" in line:
        line = _without_inline_code(line)
    if "_" in line:
        line = _without_underscore_marks(line)
    return line


def _without_inline_code(line: str) -> str:
    """A run of backticks opens code when a run of the same length follows on the line."""
    runs = [m.span() for m in _BACKTICKS.finditer(line)]
    following: dict[int, list[int]] = {}
    for index in range(len(runs) - 1, -1, -1):
        following.setdefault(runs[index][1] - runs[index][0], []).append(index)
    code = []
    index = 0
    while index < len(runs):
        start, end = runs[index]
        same = following[end - start]
        while same and same[-1] <= index:
            same.pop()
        if not same:
            index += 1
            continue
        closing = same.pop()
        code.append((start, runs[closing][1]))
        index = closing + 1
    return _blanked(line, code)


def _without_underscore_marks(line: str) -> str:
    """Underscores are marks at the edge of a word and letters inside one."""
    marks = []
    for run in _UNDERSCORES.finditer(line):
        before, after = line[run.start() - 1 : run.start()], line[run.end() : run.end() + 1]
        if not (before.isalnum() and after.isalnum()):
            marks.append(run.span())
    return _blanked(line, marks)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Text in double quotes of at most 200 characters, on one line; a mark that nothing closes is no quotation."""
    found = []
    opening = _OPENING_MARK.search(text)
    while opening is not None:
        start = opening.start()
        end = text.find(_QUOTATION_MARKS[opening[0]], start + 1, start + _LONGEST_QUOTATION + 2)
        closed = end > 0 and text.find("\n", start, end) < 0
        if closed:
            found.append((start, end + 1))
        opening = _OPENING_MARK.search(text, end + 1 if closed else start + 1)
    return found


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    pieces = []
    done = 0
    for start, end in spans:
        pieces += [text[done:start], " " * (end - start)]
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _blank(line: str) -> str:
    """Spaces of the same length; the line end stays."""
    body = line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    return " " * len(body) + line[len(body) :]

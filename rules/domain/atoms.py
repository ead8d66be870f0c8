"""Text terms over many points: found once per distinct text, kept as bits (rule-engine.md sections 4 to 6).

A text term ("atom") is the smallest part of a predicate that is true or false and reads a text. It reads one text
column and nothing else, so its bits depend on the segment and the term's key only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rules.domain import phrases
from rules.domain.columns import Columns
from rules.domain.language.environment import FINISH_REASONS, PHRASE_FUNCTIONS
from rules.domain.language.patterns import MATCH_LIMIT, found_in
from rules.domain.language.tree import Node, atom_key, is_text
from rules.domain.texts import SAME, Indices, Texts

Flags = npt.NDArray[np.bool_]
Selection = slice | npt.NDArray[np.int64]

KERNEL_TEXTS: Final = 4_096
HELPER_TEXTS: Final = 128
"""Texts between two looks at the clock, for Arrow's kernels and for the phrase functions, which are dear."""
SHARED_TEXTS: Final = 32
"""Texts on which all phrase functions are tried in turn; fewer than the helpers remember reduced."""

_HELPERS: Final[Mapping[str, Callable[[str], bool]]] = {
    "is_go_ahead": phrases.is_go_ahead,
    "lists_remaining_work": phrases.lists_remaining_work,
    "announces_action": phrases.announces_action,
    "asks_user": phrases.asks_user,
}
_UNKNOWN: Final = -1
_REASONS: Final = (None, *FINISH_REASONS)


_MOST_KEPT: Final = 4096
_ATOMS: dict[int, tuple[Node, Mapping[str, Node]]] = {}


class OutOfTime(Exception):
    """The clock ran out between two kernel calls. What was found until then is kept."""


# --- which parts of a tree are text terms


def is_atom(node: Node) -> bool:
    """Whether the node is a text term."""
    if node.type != "bool":
        return False
    match node.kind:
        case "call":
            return is_text(node.children[0])
        case "compare":
            sides = node.children
            return _reads_text_only(sides[0], sides[1]) or _reads_text_only(sides[1], sides[0])
        case "in":
            return _reads_text_only(node.children[0], node.children[1])
        case _:
            return False


def _reads_text_only(side: Node, other: Node) -> bool:
    reads = is_text(side) or (side.kind == "call" and side.value == "size")
    return reads and other.kind in ("string", "int", "null", "list")


def atoms_of(tree: Node) -> Mapping[str, Node]:
    """The text terms of a tree by their keys."""
    # Asked for at every segment: kept by identity, since hashing a tree takes longer than most columns.
    kept = _ATOMS.get(id(tree))
    if kept is not None and kept[0] is tree:
        return kept[1]
    if len(_ATOMS) >= _MOST_KEPT:
        _ATOMS.clear()
    found = _found_atoms(tree)
    _ATOMS[id(tree)] = tree, found
    return found


def _found_atoms(tree: Node) -> dict[str, Node]:
    found: dict[str, Node] = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        if is_atom(node):
            found[atom_key(node)] = node
        else:
            stack.extend(node.children)
    return found


# --- one term over an Arrow array of texts


def term_over(term: Node, texts: Any) -> Flags:
    """The term on each text of an Arrow string array, whatever column its text stands for."""
    if term.kind == "call":
        return _call_over(str(term.value), term, texts)
    left, right = term.children
    if not (is_text(left) or left.kind == "call"):
        left, right = right, left
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        operator = flipped.get(str(term.value), str(term.value))
    else:
        operator = "in" if term.kind == "in" else str(term.value)
    if left.kind == "call" and left.value == "size":
        return _compared(lengths_of(texts), operator, right)
    if right.kind == "null":
        return np.full(len(texts), operator == "!=")
    if operator == "in":
        return _flags(pc.is_in(texts, value_set=_strings(child.value for child in right.children)))
    equal = _flags(pc.is_in(texts, value_set=_strings([right.value])))
    return equal if operator == "==" else ~equal


def _strings(values: Any) -> Any:
    # A constant can't hold a surrogate, since no escape makes one.
    return pa.array(list(values), pa.large_string())


def lengths_of(texts: Any) -> npt.NDArray[np.int64]:
    """The number of code points of each text."""
    return np.asarray(pc.utf8_length(texts).to_numpy(zero_copy_only=False), dtype=np.int64)


def _compared(lengths: npt.NDArray[np.int64], operator: str, constant: Node) -> Flags:
    if operator == "in":
        return np.isin(lengths, [int(child.value or 0) for child in constant.children])
    compare: Mapping[str, Any] = {
        "==": np.equal,
        "!=": np.not_equal,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }
    return np.asarray(compare[operator](lengths, constant.value), dtype=np.bool_)


def _call_over(name: str, term: Node, texts: Any) -> Flags:
    if name in PHRASE_FUNCTIONS:
        helper = _HELPERS[name]
        return np.fromiter(map(helper, texts.to_pylist()), dtype=np.bool_, count=len(texts))
    argument = str(term.children[1].value)
    if name == "matches":
        return _matched(argument, texts)
    kernel = {"contains": pc.match_substring, "startsWith": pc.starts_with, "endsWith": pc.ends_with}[name]
    return _flags(kernel(texts, pattern=argument))


def _matched(pattern: str, texts: Any) -> Flags:
    found = _flags(pc.match_substring_regex(texts, pattern=pattern))
    for at in np.flatnonzero(_byte_lengths(texts) > MATCH_LIMIT):
        found[at] = found_in(pattern, texts[int(at)].as_py())
    return found


def _byte_lengths(texts: Any) -> npt.NDArray[np.int64]:
    return np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False), dtype=np.int64)


def _flags(result: Any) -> Flags:
    found = result.to_numpy(zero_copy_only=False)
    return np.array(found, dtype=np.bool_)


def over_finish_reasons(term: Node) -> Flags:
    """A phrase function of `finish_reason` for each code that the column may hold."""
    helper = _HELPERS[str(term.value)]
    return np.array([reason is not None and helper(reason) for reason in _REASONS], dtype=np.bool_)


# --- text columns


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Distinct texts of one column of a segment: `size` of them, `of` tells each point's, `part` gives some."""

    size: int
    of: Indices
    part: Callable[[Selection], Any]


def _part_of(texts: Any) -> Callable[[Selection], Any]:
    def part(chosen: Selection) -> Any:
        if isinstance(chosen, slice):
            return texts.slice(chosen.start, chosen.stop - chosen.start)
        return texts.take(pa.array(chosen))

    return part


class TextColumns:
    """The text columns of a segment by the expression that reads them."""

    def __init__(self, columns: Columns, texts: Texts) -> None:
        self.texts = texts
        self._columns = columns
        self._known: dict[str, TextColumn] = {}

    def column(self, node: Node) -> TextColumn:
        """The column that a text node stands for."""
        name = _text_name(node)
        if name not in self._known:
            self._known[name] = self._made(node)
        return self._known[name]

    def _made(self, node: Node) -> TextColumn:
        texts = self.texts
        if node.kind == "field" and node.value == "final_text":
            return TextColumn(len(texts.final), texts.final_of, _part_of(texts.final))
        if node.kind == "field":
            of = texts.user_of[self._columns.field("turn")]
            return TextColumn(len(texts.user), of, _part_of(texts.user))
        inner = self.column(node.children[0])
        if node.children[0].kind == "field" and node.children[0].value == "final_text":
            return TextColumn(inner.size, inner.of, self._final_paragraphs)
        return TextColumn(inner.size, inner.of, lambda chosen: _paragraphs(inner.part(chosen)))

    def _final_paragraphs(self, chosen: Selection) -> Any:
        texts = self.texts
        place = texts.paragraph_of[chosen]
        whole = texts.final.slice(chosen.start, chosen.stop - chosen.start) if isinstance(chosen, slice) else None
        if whole is None:
            whole = texts.final.take(pa.array(chosen))
        differs = place != SAME
        if not differs.any():
            return whole
        paragraphs = texts.paragraph.take(pa.array(place, mask=~differs))
        return pc.if_else(pa.array(differs), paragraphs, whole)


def _paragraphs(texts: Any) -> Any:
    return pa.array([phrases.last_paragraph(text) for text in texts.to_pylist()], pa.large_string())


def _text_name(node: Node) -> str:
    return str(node.value) if node.kind == "field" else f"last_paragraph({_text_name(node.children[0])})"


# --- atoms of a segment


class Atoms:
    """The bits of text terms over one segment, found as they are asked for.

    Results are kept per distinct text until all are known, and then as one bit a point. `fresh` names the terms whose
    bits were completed here and are not stored yet. Threads may share it: at worst they find the same bits twice.
    """

    def __init__(self, columns: Columns, texts: Callable[[], Texts], stored: Mapping[str, bytes] | None = None) -> None:
        self._columns = columns
        self._open = texts
        self._text_columns: TextColumns | None = None
        self._bits: dict[str, bytes] = dict(stored or {})
        self._partial: dict[str, npt.NDArray[np.int8]] = {}
        self.fresh: set[str] = set()

    @property
    def text_columns(self) -> TextColumns:
        if self._text_columns is None:
            self._text_columns = TextColumns(self._columns, self._open())
        return self._text_columns

    def fill(self, trees: Iterable[Node], deadline: float | None = None) -> None:
        """Find all text terms of the trees at every point; stops early, with what it has, when the deadline passes."""
        terms = {key: term for tree in trees for key, term in atoms_of(tree).items() if not self.is_complete(key)}
        try:
            self._find_phrases({key: term for key, term in terms.items() if term.value in PHRASE_FUNCTIONS}, deadline)
            for key, term in terms.items():
                if not self.is_complete(key):
                    self.flags(term, deadline=deadline)
        except OutOfTime:
            pass

    def take_fresh(self) -> dict[str, bytes]:
        """Bits that were completed since this was last asked, by key, to be stored."""
        fresh, self.fresh = self.fresh, set()
        return {key: self._bits[key] for key in sorted(fresh)}

    def _find_phrases(self, terms: Mapping[str, Node], deadline: float | None) -> None:
        """All phrase functions on a few texts at a time, since they share what each text is reduced to."""
        fields: dict[str, list[str]] = {}
        for key, term in terms.items():
            fields.setdefault(_field_of(term), []).append(key)
        for keys in fields.values():
            # A field and its last paragraphs are numbered alike.
            columns = {key: self.text_columns.column(_text_of(terms[key])) for key in keys}
            size = columns[keys[0]].size
            found = {key: self._partial_of(key, size) for key in keys}
            for start in range(0, size, SHARED_TEXTS):
                _look_at_clock(start > 0, deadline)
                part = slice(start, min(start + SHARED_TEXTS, size))
                for key, known in found.items():
                    if (known[part] == _UNKNOWN).any():
                        known[part] = term_over(terms[key], columns[key].part(part))
            for key, known in found.items():
                self._complete(key, known, columns[key])

    def _partial_of(self, key: str, size: int) -> npt.NDArray[np.int8]:
        if key not in self._partial:
            self._partial[key] = np.full(size, _UNKNOWN, dtype=np.int8)
        return self._partial[key]

    def hold(self, stored: Mapping[str, bytes]) -> None:
        """Take over bits that were found elsewhere and stored, by the keys of their terms."""
        for key, bits in stored.items():
            self._bits.setdefault(key, bits)
            self._partial.pop(key, None)

    def is_complete(self, key: str) -> bool:
        """Whether the bits of the term are known for every point."""
        return key in self._bits

    def packed(self, key: str) -> bytes:
        """The bits of a complete term, eight points a byte: the form in which they are stored."""
        return self._bits[key]

    def flags(self, term: Node, selection: Selection = slice(None), deadline: float | None = None) -> Flags:
        """The term at the selected points; raises `OutOfTime` when the monotonic clock passes `deadline` before."""
        [key] = atoms_of(term)
        if key in self._bits:
            bits = np.frombuffer(self._bits[key], dtype=np.uint8)
            return _unpacked(bits, self._columns.points, selection)
        column = self.text_columns.column(_text_of(term))
        known = self._partial_of(key, column.size)
        chosen = column.of[selection]
        portion = HELPER_TEXTS if term.value in PHRASE_FUNCTIONS else KERNEL_TEXTS
        for number, part in enumerate(_missing(known, chosen, portion)):
            _look_at_clock(number > 0, deadline)
            known[part] = term_over(term, column.part(part))
        found = known[chosen].view(np.bool_)
        if len(chosen) == self._columns.points or not (known == _UNKNOWN).any():
            self._complete(key, known, column)
        return found

    def _complete(self, key: str, known: npt.NDArray[np.int8], column: TextColumn) -> None:
        self._bits[key] = np.packbits(known[column.of].view(np.bool_)).tobytes()
        self._partial.pop(key, None)
        self.fresh.add(key)

    def sizes(self, node: Node, selection: Selection = slice(None)) -> npt.NDArray[np.int64]:
        """The number of code points of a text at the selected points."""
        column = self.text_columns.column(node)
        chosen = column.of[selection]
        distinct, places = np.unique(chosen, return_inverse=True)
        return lengths_of(column.part(distinct.astype(np.int64)))[places]


def _text_of(term: Node) -> Node:
    """The text node that a term reads."""
    for node in term.walk():
        if is_text(node):
            return node
    raise ValueError("not a text term")


def _look_at_clock(has_begun: bool, deadline: float | None) -> None:
    # Not before the first portion, so that whoever asks again and again gets on.
    if has_begun and deadline is not None and time.monotonic() > deadline:
        raise OutOfTime


def _field_of(term: Node) -> str:
    text = _text_of(term)
    while text.kind != "field":
        text = text.children[0]
    return str(text.value)


def _unpacked(bits: npt.NDArray[np.uint8], count: int, selection: Selection) -> Flags:
    if not isinstance(selection, slice):
        chosen: Flags = ((bits[selection >> 3] >> (7 - (selection & 7)).astype(np.uint8)) & 1).view(np.bool_)
        return chosen
    start, stop, _ = selection.indices(count)
    first = start // 8
    found: Flags = np.unpackbits(bits[first : -(-stop // 8)]).view(np.bool_)[start - first * 8 : stop - first * 8]
    return found


def _missing(known: npt.NDArray[np.int8], chosen: Indices, portion: int) -> Iterator[Selection]:
    """The distinct texts among `chosen` that are not known yet, in portions of at most so many."""
    wanted = np.zeros(len(known), dtype=np.bool_)
    wanted[chosen] = True
    missing = np.flatnonzero(wanted & (known == _UNKNOWN))
    for at in range(0, len(missing), portion):
        part = missing[at : at + portion]
        first, last = int(part[0]), int(part[-1])
        yield slice(first, last + 1) if last - first + 1 == len(part) else part

"""The texts of a segment as Arrow buffers, each text once (rule-engine.md section 5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rules.domain import phrases

Indices = npt.NDArray[np.int32]

_SURROGATES = re.compile("[\ud800-\udfff]")
_NAMES = ("final", "user", "paragraph")
SAME = -1


@dataclass(frozen=True, slots=True)
class Texts:
    """Distinct texts, and where each point finds its own.

    `final_of` has an entry a point, `user_of` one a turn, `paragraph_of` one a final text: the place of its last
    paragraph, or `SAME` where that is the whole text. Distinct texts stand in the order of the points that first have
    them, so that consecutive points need consecutive texts.
    """

    final: Any
    user: Any
    paragraph: Any
    final_of: Indices
    user_of: Indices
    paragraph_of: Indices


class TextsBuilder:
    """Collects texts point by point and turn by turn."""

    def __init__(self) -> None:
        self.final: dict[str, int] = {}
        self.user: dict[str, int] = {}
        self.final_of: list[int] = []
        self.user_of: list[int] = []

    def add_points(self, texts: Sequence[str]) -> None:
        known = self.final
        self.final_of.extend([known.setdefault(text, len(known)) for text in texts])

    def add_turns(self, texts: Sequence[str]) -> None:
        known = self.user
        self.user_of.extend([known.setdefault(text, len(known)) for text in texts])

    def build(self) -> bytes:
        """An Arrow file of one row of lists, to be stored or memory-mapped as it is."""
        paragraphs: dict[str, int] = {}
        paragraph_of = []
        for text in self.final:
            paragraph = phrases.last_paragraph(text)
            paragraph_of.append(SAME if paragraph == text else paragraphs.setdefault(paragraph, len(paragraphs)))
        columns = {
            name: _text_list(texts) for name, texts in zip(_NAMES, (self.final, self.user, paragraphs), strict=True)
        }
        places = {"final_of": self.final_of, "user_of": self.user_of, "paragraph_of": paragraph_of}
        columns |= {name: _one_row(pa.array(values, pa.int32())) for name, values in places.items()}
        table = pa.table(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())


def _text_list(texts: dict[str, int]) -> Any:
    try:
        values = pa.array(list(texts), pa.large_string())
    except UnicodeEncodeError:
        values = pa.array([_SURROGATES.sub("\ufffd", text) for text in texts], pa.large_string())
    return _one_row(values)


def _one_row(values: Any) -> Any:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def open_texts(source: bytes | Path) -> Texts:
    """The texts of a stored segment. A file is memory-mapped: nothing is read before it is asked for.

    Raises `pyarrow.ArrowInvalid` or `OSError` when the file is damaged or missing.
    """
    reader = pa.ipc.open_file(pa.memory_map(str(source)) if isinstance(source, Path) else pa.BufferReader(source))
    batch = reader.get_batch(0)
    lists = {name: batch.column(name).values for name in batch.schema.names}
    places = {name: lists[name].to_numpy(zero_copy_only=True) for name in ("final_of", "user_of", "paragraph_of")}
    return Texts(lists["final"], lists["user"], lists["paragraph"], **places)

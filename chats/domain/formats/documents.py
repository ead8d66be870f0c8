"""From bytes to records: JSON objects, arrays, lines, tables and Parquet, one record in memory at a time."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Literal

from chats.domain.formats.cleaning import Cleaner, invalid_json, may_hold_unstorable
from chats.domain.formats.containers import DAMAGED, PARQUET, ByteSource, first_bytes, streams
from chats.domain.formats.limits import Limits
from chats.domain.formats.problems import LONGEST_NAME, ImportReport, LimitPassed, Place, Problem, ReadingProblem

Shape = Literal["object", "array", "lines", "values", "table", "parquet"]
HEAD_ROWS: Final = 20
KEPT_CHARACTERS: Final = 1 << 20
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_CSV_MARKS: Final = frozenset({"instruction", "output"})


@dataclass(frozen=True, slots=True)
class Row:
    """One record and where it stands."""

    value: Any
    place: Place


@dataclass(slots=True)
class Head:
    """What a format is recognised by: the first records, and the top-level object where there is just one.

    In `top`, arrays at the top level are cut to the first 20 items when the document is large.
    """

    shape: Shape
    rows: list[Any] = field(default_factory=list)
    top: dict[str, Any] | None = None

    def keys(self) -> list[str]:
        """The top-level keys found, for the message that no format fits."""
        found = (
            self.top if self.top is not None else dict.fromkeys(k for r in self.rows if isinstance(r, dict) for k in r)
        )
        return [k[:LONGEST_NAME] for k in found][:HEAD_ROWS]


def encoding_of(head: bytes, asked: str | None = None) -> str:
    """UTF-16 by its mark, else UTF-8 with or without one, unless a person chose another."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if asked is not None and not head.startswith(codecs.BOM_UTF8):
        return asked
    return "utf-8-sig"


class Document:
    """One JSON text, table or Parquet file. `rows()` and `items()` read it again from the start each time.

    `taken` counts the characters of the records that `rows()` has given so far.
    """

    def __init__(self, source: ByteSource, cleaner: Cleaner, encoding: str | None = None) -> None:
        """Look at the start; raises ReadingProblem when it is nothing that can hold records."""
        self.source = source
        self.cleaner = cleaner
        self.limits: Limits = cleaner.limits
        self.place = Place(member=source.member)
        self.taken = 0
        self._are_lists_of_records = False
        start = first_bytes(source)
        self.encoding = encoding_of(start, encoding)
        self._whole: Any = None
        looked = ImportReport()
        self.cleaner = Cleaner(cleaner.limits, looked)
        if start.startswith(PARQUET):
            self.head = Head("parquet", [r.value for r in _first(self._parquet_rows())])
        else:
            self.head = self._look()
        self.cleaner = cleaner
        if self._whole is not None:
            cleaner.report.add_cleaning(looked)

    def rows(self) -> Iterator[Row | Problem]:
        """Each record in order. A bad line is a problem in its place; a broken array or object ends the document."""
        if not self._are_lists_of_records:
            yield from self._rows()
            return
        for row in self._rows():
            if isinstance(row, Problem) or not isinstance(row.value, list):
                yield row
                continue
            for index, value in enumerate(row.value):
                yield Row(value, self._at(line=row.place.line, index=index))

    def open_lists(self) -> bool:
        """Take the items of lists for the records, where all records are lists: arrays that were put together."""
        rows = self.head.rows
        if self._are_lists_of_records or not rows or not all(isinstance(r, list) for r in rows):
            return False
        self._are_lists_of_records = True
        self.head = Head(self.head.shape, [v for r in rows for v in r][:HEAD_ROWS])
        return True

    def _rows(self) -> Iterator[Row | Problem]:
        self.taken = 0
        try:
            match self.head.shape:
                case "object":
                    yield Row(self.whole(), self.place)
                case "array":
                    yield from self._array_rows()
                case "lines":
                    yield from self._line_rows()
                case "values":
                    yield from self._value_rows()
                case "table":
                    yield from self._table_rows()
                case "parquet":
                    yield from self._parquet_rows()
        except ReadingProblem as problem:
            yield problem.at(self.place)
        except DAMAGED as error:
            yield Problem("damaged_archive", self.place, {"reason": str(error)})

    def whole(self) -> Any:
        """The one value of a document of shape `object`. Raises ReadingProblem."""
        if self._whole is not None:
            return self._whole
        cursor = self._cursor()
        try:
            return cursor.value()
        finally:
            cursor.close()

    def items(self, key: str) -> Iterator[Row | Problem]:
        """The items of an array at the top level of an object, one at a time."""
        if self._whole is not None:
            found = self._whole.get(key)
            for i, item in enumerate(found if isinstance(found, list) else []):
                yield Row(item, self._at(index=i))
            return
        try:
            cursor = self._cursor()
            try:
                for name in cursor.entries():
                    if name != key or cursor.peek() != "[":
                        cursor.value()
                        continue
                    for i, item in enumerate(cursor.elements()):
                        yield Row(item, self._at(index=i))
            finally:
                cursor.close()
        except ReadingProblem as problem:
            yield problem.at(self.place)
        except DAMAGED as error:
            yield Problem("damaged_archive", self.place, {"reason": str(error)})

    def _at(self, *, line: int | None = None, index: int | None = None) -> Place:
        return Place(self.source.member, line, index)

    def _cursor(self) -> _Cursor:
        return _Cursor(_decoded(self.source, self.encoding), self.cleaner, self.limits)

    def _look(self) -> Head:
        cursor = self._cursor()
        try:
            first = cursor.peek()
            if first == "":
                raise ReadingProblem("empty_file")
            if first == "{":
                return self._look_at_object(cursor)
            if first == "[":
                return self._look_at_array(cursor)
        except UnicodeDecodeError as error:
            raise _wrong_encoding(error) from error
        finally:
            cursor.close()
        return self._look_at_table()

    def _look_at_object(self, cursor: _Cursor) -> Head:
        top: dict[str, Any] = {}
        try:
            whole = cursor.value_if_short()
            if isinstance(whole, dict):
                top = whole
            else:
                for key in cursor.entries():
                    top[key] = cursor.value() if cursor.peek() != "[" else _cut(cursor.elements())
            lines_used = cursor.line
            follows = cursor.peek()
            on_same_line = cursor.line == lines_used
        except ReadingProblem as problem:
            if problem.code != "limit" and self._later_lines_are_json():
                return self._look_at_lines("lines")
            raise
        if follows and on_same_line and follows in "{[":
            return self._look_at_lines("values")
        if follows:
            return self._look_at_lines("lines" if lines_used == 1 or self._lines_are_whole() else "values")
        self._whole = whole
        return Head("object", [top], top)

    def _look_at_array(self, cursor: _Cursor) -> Head:
        if self._first_line_is_whole():
            return self._look_at_lines("lines")
        rows: list[Any] = []
        try:
            for item in cursor.elements():
                rows.append(item)
                if len(rows) == HEAD_ROWS:
                    return Head("array", rows)
            if cursor.peek() in ("[", "{"):
                return self._look_at_lines("lines" if self._lines_are_whole() else "values")
        except ReadingProblem as problem:
            if not rows and problem.code != "limit":
                if self._later_lines_are_json():
                    return self._look_at_lines("lines")
                raise
            if not rows:
                raise
        return Head("array", rows)

    def _look_at_lines(self, shape: Literal["lines", "values"]) -> Head:
        rows = self._line_rows() if shape == "lines" else self._value_rows()
        return Head(shape, [r.value for r in _first(rows)])

    def _first_line_is_whole(self) -> bool:
        """Whether the first of several lines is a list of its own: JSON Lines of lists."""
        with self.source.open() as file:
            if self.encoding == "utf-16" or not file.readline(16 * KEPT_CHARACTERS).rstrip().endswith(b"]"):
                return False
            following = b"\n"
            while following and not following.strip():
                following = file.readline(64)
        return following.lstrip()[:1] in (b"[", b"{")

    def _later_lines_are_json(self) -> bool:
        """Whether a text whose first value is broken is JSON Lines with a bad first line."""
        return any(isinstance(r.value, dict) and r.place.line != 1 for r in _first(self._line_rows(), HEAD_ROWS))

    def _lines_are_whole(self) -> bool:
        """Whether the first lines hold whole values, so that one bad line can be left out."""
        for i, row in enumerate(self._line_rows()):
            if isinstance(row, Problem):
                return False
            if i == 2:
                break
        return True

    def _look_at_table(self) -> Head:
        try:
            rows = [r.value for r in _first(self._table_rows())]
        except (ReadingProblem, csv.Error):
            rows = []
        if not rows:
            raise ReadingProblem("not_json")
        return Head("table", rows)

    def _array_rows(self) -> Iterator[Row | Problem]:
        cursor = self._cursor()
        index = 0
        try:
            cursor.peek()
            line = cursor.line
            for item in cursor.elements():
                self.taken = cursor.taken
                yield Row(item, self._at(line=cursor.item_line or line, index=index))
                index += 1
            if cursor.peek():
                raise ReadingProblem("invalid_json", reason="Extra data", offset=cursor.taken)
        except ReadingProblem as problem:
            yield problem.at(self._at(line=cursor.line, index=index))
        finally:
            cursor.close()

    def _value_rows(self) -> Iterator[Row | Problem]:
        cursor = self._cursor()
        index = 0
        try:
            while cursor.peek():
                line = cursor.line
                value = cursor.value()
                self.taken = cursor.taken
                yield Row(value, self._at(line=line, index=index))
                index += 1
        except ReadingProblem as problem:
            yield problem.at(self._at(line=cursor.line, index=index))
        finally:
            cursor.close()

    def _line_rows(self) -> Iterator[Row | Problem]:
        """JSON Lines; a bad line is left out. A line over the record limit ends the file: the rest is unknown."""
        number = 0
        for number, line in self._lines():
            place = self._at(line=number)
            if isinstance(line, ReadingProblem):
                yield line.at(place)
                if line.stops_file:
                    return
                continue
            text = line.strip().lstrip("\ufeff")  # files that were put together keep the mark of each
            if not text:
                continue
            self.taken += len(text)
            try:
                yield Row(self.cleaner.parse(text), place)
            except ReadingProblem as problem:
                yield problem.at(place)
                if problem.stops_file:
                    return

    def _lines(self) -> Iterator[tuple[int, str | ReadingProblem]]:
        """Numbered lines. UTF-8 is decoded line by line, so that a bad line costs only itself."""
        with self.source.open() as file:
            if self.encoding == "utf-16":
                yield from enumerate(_text_lines(file, self.limits), 1)
                return
            codec = "utf-8" if self.encoding == "utf-8-sig" else self.encoding
            number = 0
            while line := file.readline(self.limits.record_bytes + 1):
                number += 1
                if len(line) > self.limits.record_bytes:
                    yield number, LimitPassed("record_bytes", self.limits.record_bytes)
                    return
                if number == 1 and line.startswith(codecs.BOM_UTF8):
                    line = line[len(codecs.BOM_UTF8) :]
                try:
                    yield number, line.decode(codec)
                except UnicodeDecodeError as error:
                    yield number, _wrong_encoding(error)

    def _table_rows(self) -> Iterator[Row | Problem]:
        csv.field_size_limit(self.limits.message_bytes)
        with self.source.open() as file:
            text = io.TextIOWrapper(file, self.encoding, newline="")
            try:
                header = text.readline(1 << 16)
                delimiter = max(",;\t", key=header.count)
                names = next(csv.reader([header], delimiter=delimiter), [])
                if _CSV_MARKS - set(names):
                    raise ReadingProblem("not_json")
                reader = csv.DictReader(text, names, delimiter=delimiter)
                for index, row in enumerate(reader):
                    known = {k: v for k, v in row.items() if isinstance(k, str) and isinstance(v, str)}
                    self.taken += sum(map(len, known.values()))
                    yield Row(self.cleaner.clean(known), self._at(line=reader.line_num + 1, index=index))
            except UnicodeDecodeError as error:
                raise _wrong_encoding(error) from error
            except csv.Error as error:
                if "field limit" in str(error):
                    raise LimitPassed("message_bytes", self.limits.message_bytes) from error
                raise ReadingProblem("unreadable", reason=str(error)) from error

    def _parquet_rows(self) -> Iterator[Row | Problem]:
        """One batch of a row group at a time."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ReadingProblem("missing_library", library="pyarrow") from error
        with tempfile.SpooledTemporaryFile(KEPT_CHARACTERS * 16) as copy:
            for block in streams(self.source):
                copy.write(block)
            packed = copy.tell()
            copy.seek(0)
            try:
                table = pyarrow.parquet.ParquetFile(pyarrow.PythonFile(copy, mode="r"))
                groups = table.metadata
                size = sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))
                if size > self.limits.upload_bytes:
                    raise LimitPassed("upload_bytes", self.limits.upload_bytes)
                index = 0
                unpacked = 0
                for batch in table.iter_batches(batch_size=64):
                    unpacked += batch.nbytes
                    if unpacked > self.limits.upload_bytes:
                        raise LimitPassed("upload_bytes", self.limits.upload_bytes)
                    if unpacked > packed * self.limits.ratio:
                        raise LimitPassed("ratio", self.limits.ratio)
                    self.taken = unpacked
                    for value in batch.to_pylist():
                        yield Row(self.cleaner.clean(_plain(value, self.cleaner)), self._at(index=index))
                        index += 1
            except (pyarrow.ArrowException, OSError, ValueError) as error:
                raise ReadingProblem("damaged_archive", reason=str(error)[:200]) from error


def _first(rows: Iterator[Row | Problem], count: int = HEAD_ROWS) -> list[Row]:
    """The first good rows. What goes wrong behind the first is met again when the document is read."""
    found: list[Row] = []
    try:
        for seen, row in enumerate(rows):
            if isinstance(row, Row):
                found.append(row)
            if len(found) == count or seen > 5 * count:
                break
    except (ReadingProblem, *DAMAGED):
        if not found:
            raise
    return found


def _cut(elements: Iterator[Any]) -> list[Any]:
    """The first items of an array, read through to its end."""
    kept: list[Any] = []
    for item in elements:
        if len(kept) < HEAD_ROWS:
            kept.append(item)
    return kept


def _plain(value: Any, cleaner: Cleaner) -> Any:
    """A Parquet value as JSON would hold it: times as ISO text, bytes left out, NaN as null."""
    if isinstance(value, dict):
        return {k: _plain(v, cleaner) for k, v in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(v, tuple) for v in value):  # a map column
            return {str(k): _plain(v, cleaner) for k, v in value}
        return [_plain(v, cleaner) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        cleaner.report.numbers_read_as_null += 1
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def _wrong_encoding(error: UnicodeDecodeError) -> ReadingProblem:
    return ReadingProblem("encoding", encoding=error.encoding, offset=error.start)


def _text_lines(file: BinaryIO, limits: Limits) -> Iterator[str | ReadingProblem]:
    text = io.TextIOWrapper(file, "utf-16", newline="\n")
    try:
        while line := text.readline(limits.record_bytes // 2 + 1):
            if len(line) > limits.record_bytes // 2:
                yield LimitPassed("record_bytes", limits.record_bytes)
                return
            yield line
    except UnicodeDecodeError as error:
        wrong = _wrong_encoding(error)
        wrong.stops_file = True
        yield wrong


def _decoded(source: ByteSource, encoding: str) -> Iterator[str]:
    """The text in blocks; what comes before a wrong byte is still given, then UnicodeDecodeError is raised."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for block in streams(source):
        try:
            yield decoder.decode(block)
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode(error.encoding)
            if good:
                yield good
            raise
    yield decoder.decode(b"", final=True)


class _Cursor:
    """Walks through one JSON text, holding no more of it than the value at hand."""

    def __init__(self, blocks: Iterator[str], cleaner: Cleaner, limits: Limits) -> None:
        self._blocks = blocks
        self._cleaner = cleaner
        self._most = limits.record_bytes
        self._text = ""
        self._at = 0
        self._ended = False
        self._broken: Exception | None = None
        self.line = 1
        self.taken = 0
        self.item_line: int | None = None

    def close(self) -> None:
        close = getattr(self._blocks, "close", None)
        if close is not None:
            close()

    def _more(self) -> bool:
        """Read on; the amount doubles with what is held, so that a long value is parsed few times.

        What goes wrong while reading is raised only when all text before it has been used.
        """
        if self._broken is not None:
            raise self._broken
        if self._ended:
            return False
        held = self._text[self._at :]
        wanted = max(len(held), 1 << 16)
        pieces = [held]
        got = 0
        while got < wanted:
            try:
                block = next(self._blocks, None)
            except UnicodeDecodeError as error:
                self._broken = _wrong_encoding(error)
                break
            except (ReadingProblem, *DAMAGED) as error:
                self._broken = error
                break
            if block is None:
                self._ended = True
                break
            pieces.append(block)
            got += len(block)
        self._text = "".join(pieces)
        self._at = 0
        if len(self._text) > self._most:
            raise LimitPassed("record_bytes", self._most)
        if got == 0 and self._broken is not None:
            raise self._broken
        return got > 0

    def peek(self) -> str:
        """The next character that is not blank, or the empty string at the end."""
        while True:
            text, start = self._text, self._at
            # In one step: an upload may be hundreds of megabytes of blanks.
            self._at = at = _BLANKS.match(text, start).end()  # type: ignore[union-attr]  # it fits an empty run, too
            self.line += text.count("\n", start, at)
            if at < len(text):
                return text[at]
            if not self._more():
                return ""

    def _take(self, wanted: str) -> None:
        found = self.peek()
        if found == "":
            raise ReadingProblem("truncated_json")
        if found != wanted:
            raise ReadingProblem("invalid_json", reason=f"expected {wanted!r}, found {found!r}", offset=self._at)
        self._at += 1

    def value(self) -> Any:
        """The next value, whole and cleaned."""
        if self.peek() == "":
            raise ReadingProblem("truncated_json")
        report = self._cleaner.report
        counts = (report.duplicate_keys, report.numbers_read_as_null)
        while True:
            report.duplicate_keys, report.numbers_read_as_null = counts
            try:
                value, end = self._cleaner.decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._cut_off(error) and self._more():
                    continue
                if error.msg.startswith("Unterminated string") or error.pos >= len(self._text.rstrip()):
                    raise ReadingProblem("truncated_json") from error
                raise invalid_json(error) from error
            except RecursionError as error:
                raise LimitPassed("depth", self._cleaner.limits.depth) from error
            if end == len(self._text) and not self._ended and self._more():
                continue  # a number may go on in the next block
            used = self._text[self._at : end]
            self.line += used.count("\n")
            self.taken += len(used)
            self._at = end
            return self._cleaner.clean(value, texts=may_hold_unstorable(used))

    def _cut_off(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 16

    def value_if_short(self) -> Any:
        """The next value if it ends within the text held for looking ahead, else None with nothing taken."""
        ahead = min(KEPT_CHARACTERS, self._most // 4)
        while len(self._text) - self._at < ahead and self._broken is None and self._more():
            pass
        if not self._ended and len(self._text) - self._at >= ahead:
            try:
                value, end = self._cleaner.decoder.raw_decode(self._text, self._at)
            except (json.JSONDecodeError, RecursionError):
                return None
            used = self._text[self._at : end]
            self.line += used.count("\n")
            self.taken += len(used)
            self._at = end
            return self._cleaner.clean(value, texts=may_hold_unstorable(used))
        return self.value()

    def entries(self) -> Iterator[str]:
        """The keys of the object that comes next; the value of each must be taken before going on."""
        self._take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.value() if self.peek() == '"' else None
            if key is None:
                raise ReadingProblem("invalid_json", reason="expected a key", offset=self._at)
            self._take(":")
            yield key
            if self.peek() == "}":
                self._at += 1
                return
            self._take(",")

    def elements(self) -> Iterator[Any]:
        """The items of the array that comes next."""
        self._take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            self.peek()
            self.item_line = self.line
            yield self.value()
            if self.peek() == "]":
                self._at += 1
                return
            self._take(",")

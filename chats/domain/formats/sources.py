"""An upload as a stream of chats and problems."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

from chats.domain.exchange import header_in
from chats.domain.formats import inspect_log
from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.containers import (
    DAMAGED,
    Archive,
    ByteSource,
    Meter,
    first_bytes,
    is_zip,
    open_archive,
    source_of,
    unpacked,
)
from chats.domain.formats.documents import Document
from chats.domain.formats.drafts import Reading
from chats.domain.formats.identity import content_hash
from chats.domain.formats.limits import ImportOptions
from chats.domain.formats.problems import ImportReport, Place, Problem, ReadingProblem
from chats.domain.formats.reading_rows import TYPE_ERRORS, unreadable
from chats.domain.formats.register import BY_ID, Format, recognised
from chats.domain.formats.text_protocols import PROTOCOLS, converted, matching_protocols
from chats.domain.formats.values import mapping
from chats.domain.record import ChatRecord

_NO_CONVERSATIONS = frozenset({"unknown_format", "not_json", "empty_file"})
_BROKEN = frozenset({"encoding", "invalid_json", "truncated_json"})
_JSON_START = re.compile(rb"\s*(?:\{\s*(?:[\"}]|\Z)|\[\s*(?:[\[{\"\]0-9-]|true|false|null|NaN|\Z))")
_NEVER_READ = frozenset({"user.json", "users.json"})


@dataclass(frozen=True, slots=True)
class Located:
    """A chat or a problem, and where it stands."""

    item: ChatRecord | Problem
    place: Place

    @property
    def record(self) -> ChatRecord | None:
        return self.item if isinstance(self.item, ChatRecord) else None

    @property
    def problem(self) -> Problem | None:
        return self.item if isinstance(self.item, Problem) else None


@dataclass(frozen=True, slots=True)
class Detection:
    """What an upload is. `format` is None when nothing fits or the upload can't be read; `problem` says why."""

    format: str | None
    container: tuple[str, ...]
    problem: Problem | None = None


class Source:
    """One upload. Iterating gives every chat and problem in order and fills `report`; iterate once."""

    def __init__(self, upload: str | os.PathLike[str] | IO[bytes], forced: Format | None, options: ImportOptions):
        self.options = options
        self.report = ImportReport()
        self._forced = forced
        self._upload = upload
        self._hashes: dict[str, str] = {}

    @cached_property
    def detection(self) -> Detection:
        """Format and container, judged by content. In an archive the first member that holds conversations counts."""
        container: tuple[str, ...] = ()
        try:
            source, container = unpacked(source_of(self._upload), self.options.limits)
            if is_zip(first_bytes(source)):
                container = (*container, "zip")
                with open_archive(source, self.options.limits) as archive:
                    return self._detected_in(archive, container)
            document = self._document(source, ImportReport())
            return Detection(self._format_of(document).id, (*container, *_shape(document)))
        except ReadingProblem as found:
            return Detection(None, container, found.at(Place()))
        except DAMAGED as error:
            return Detection(None, container, Problem("damaged_archive", Place(), {"reason": str(error)}))

    def _detected_in(self, archive: Archive, container: tuple[str, ...]) -> Detection:
        if _is_eval(archive):
            return Detection(inspect_log.FORMAT, container)
        problem: Problem | None = None
        for member in archive.members:
            place = Place(member=member.member)
            try:
                inner, layers = unpacked(member, self.options.limits)
                document = self._document(inner, ImportReport())
                return Detection(self._format_of(document).id, (*container, *layers, *_shape(document)))
            except ReadingProblem as found:
                problem = problem or found.at(place)
            except DAMAGED as error:
                problem = problem or Problem("damaged_archive", place, {"reason": str(error)})
        return Detection(None, container, problem)

    @property
    def format(self) -> str | None:
        return self.detection.format

    @property
    def container(self) -> tuple[str, ...]:
        return self.detection.container

    def __iter__(self) -> Iterator[Located]:
        for located in self._items():
            if isinstance(located.item, Problem):
                self.report.note_problem(located.item)
                yield located
            else:
                yield Located(self._finished(located.item), located.place)

    def _finished(self, record: ChatRecord) -> ChatRecord:
        self._note_protocols(record)
        if self.options.text_protocol is not None:
            cleaner = Cleaner(self.options.limits, self.report)
            record = converted(record, self.options.text_protocol, cleaner)
        calls = sum(len(d.tool_calls) for d in record.details)
        self.report.take(len(record.chat.messages), calls)
        if record.header is None:
            record.header = header_in(record.chat)
        if record.external_id is None or record.identity_by_content:
            return record
        key, digest = f"{record.source_format}:{record.external_id}", content_hash(record)
        if self._hashes.setdefault(key, digest) != digest:
            record.identity_by_content = True
            self.report.ids_used_twice += 1
        return record

    def _note_protocols(self, record: ChatRecord) -> None:
        """Count the answers that are written in a text protocol, so that conversion can be offered."""
        for message, details in zip(record.chat.messages, record.details, strict=True):
            if message.role != "assistant" or message.fewshot_example:
                continue
            self.report.answers += 1
            if not details.tool_calls:
                self.report.protocols.update(matching_protocols(message.content))

    def _items(self) -> Iterator[Located]:
        try:
            source, layers = unpacked(source_of(self._upload), self.options.limits)
            if is_zip(first_bytes(source)):
                if layers:
                    raise ReadingProblem("nested_archive", name="")
                with open_archive(source, self.options.limits) as archive:
                    yield from self._read_archive(archive)
            else:
                yield from self._read(source)
        except ReadingProblem as found:
            yield _located(found.at(Place()))
        except DAMAGED as error:
            yield _located(Problem("damaged_archive", Place(), {"reason": str(error)}))

    def _read_archive(self, archive: Archive) -> Iterator[Located]:
        self.report.members_passed_over += archive.passed_over
        for problem in archive.refused:
            yield _located(problem)
        if _is_eval(archive):
            yield from self._read_eval(archive)
            return
        meter = Meter()
        for member in archive.members:
            meter = Meter(before=meter.before + meter.most)
            place = Place(member=member.member)
            if (member.member or "").rsplit("/", 1)[-1] in _NEVER_READ:
                self.report.members_passed_over += 1
                continue
            inner = member
            try:
                inner, _ = unpacked(member, self.options.limits, meter)
                if is_zip(first_bytes(inner)):
                    raise ReadingProblem("nested_archive", name=member.member or "")
                yield from self._read(inner)
            except ReadingProblem as found:
                if found.code in _NO_CONVERSATIONS or (found.code in _BROKEN and not _starts_as_json(inner)):
                    self.report.members_passed_over += 1
                    continue
                yield _located(found.at(place))
            except DAMAGED as error:
                yield _located(Problem("damaged_archive", place, {"reason": str(error)}))

    def _read_eval(self, archive: Archive) -> Iterator[Located]:
        """An Inspect archive: a header, and one member a sample."""
        by_name = {m.member: m for m in archive.members}
        task: dict[str, Any] = {}
        for name in inspect_log.HEADER_MEMBERS:
            if name in by_name and not task:
                try:
                    inner, _ = unpacked(by_name[name], self.options.limits)
                    task = mapping(mapping(self._document(inner, ImportReport()).whole()).get("eval"))
                except (ReadingProblem, *DAMAGED):
                    continue
        for member in archive.members:
            place = Place(member=member.member)
            if not inspect_log.SAMPLE_MEMBER.match(member.member or ""):
                self.report.members_passed_over += 1
                continue
            try:
                inner, _ = unpacked(member, self.options.limits)
                document = self._document(inner, self.report)
                reading = Reading(self.options, self.report, document.cleaner, document.place)
                for item in inspect_log.read_sample(document, task, reading):
                    yield Located(item, item.place if isinstance(item, Problem) else reading.place)
            except ReadingProblem as found:
                yield _located(found.at(place))
            except DAMAGED as error:
                yield _located(Problem("damaged_archive", place, {"reason": str(error)}))

    def _read(self, source: ByteSource) -> Iterator[Located]:
        """Raises ReadingProblem only before the first chat."""
        document = self._document(source, self.report)
        found = self._format_of(document)
        reading = Reading(self.options, self.report, document.cleaner, document.place)
        nothing = True
        try:
            for item in found.read(document, reading):
                nothing = False
                yield Located(item, item.place if isinstance(item, Problem) else reading.place)
        except TYPE_ERRORS as error:
            nothing = False
            yield _located(unreadable(error, reading.place))
        if nothing:
            yield _located(Problem("no_messages", document.place, chat_lost=False))

    def _document(self, source: ByteSource, report: ImportReport) -> Document:
        return Document(source, Cleaner(self.options.limits, report), self.options.encoding)

    def _format_of(self, document: Document) -> Format:
        found = self._forced or recognised(document.head)
        if found is None and document.open_lists():
            found = recognised(document.head)
        if found is None:
            raise ReadingProblem("unknown_format", keys=document.head.keys())
        return found


def open_source(
    upload: str | os.PathLike[str] | IO[bytes], *, format: str | None = None, options: ImportOptions | None = None
) -> Source:
    """An upload, ready to be gone through. `format` overrides the guess.

    Raises ValueError for a format or a text protocol that is unknown.

    A file object must be binary and seekable; it stays open. Nothing is read before `detection` or the iteration.
    """
    if format is not None and format not in BY_ID:
        raise ValueError(f"unknown format {format!r}")
    if options is not None and options.text_protocol is not None and options.text_protocol not in PROTOCOLS:
        raise ValueError(f"unknown text protocol {options.text_protocol!r}")
    return Source(upload, BY_ID[format] if format is not None else None, options or ImportOptions())


def detect(upload: str | os.PathLike[str] | IO[bytes], options: ImportOptions | None = None) -> Detection:
    """Format and container of an upload."""
    return open_source(upload, options=options).detection


def _starts_as_json(source: ByteSource) -> bool:
    """Whether a text that couldn't be read begins as JSON does: pictures and notes of an archive don't."""
    start = first_bytes(source, 200).removeprefix(codecs.BOM_UTF8)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return _JSON_START.match(start) is not None


def _located(problem: Problem) -> Located:
    return Located(problem, problem.place)


def _is_eval(archive: Archive) -> bool:
    names = {m.member or "" for m in archive.members}
    return bool(names & set(inspect_log.HEADER_MEMBERS)) and any(map(inspect_log.SAMPLE_MEMBER.match, names))


def _shape(document: Document) -> tuple[str, ...]:
    names: dict[Any, str] = {"lines": "jsonl", "values": "jsonl", "table": "csv", "parquet": "parquet"}
    return (names.get(document.head.shape, "json"),)

"""What an import reports: problems with their place, and the counts of everything that was not taken as it stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PROBLEM_CODES: Final[Mapping[str, str]] = {
    "empty_file": "there is nothing in the file",
    "encoding": "bytes that are not in the encoding; args: encoding, offset",
    "not_json": "neither JSON, JSON Lines, Parquet, an archive nor a table of instructions",
    "invalid_json": "JSON with an error; args: reason, offset",
    "truncated_json": "JSON that ends too early",
    "unknown_format": "no format fits; args: keys",
    "limit": "a limit was passed and the file was left there; args: limit, allowed",
    "damaged_archive": "an archive that ends early or is inconsistent; args: reason",
    "unsafe_member": "an archive member with an absolute path or .. in it, or no regular file; args: name",
    "encrypted_member": "an archive member that needs a password; args: name",
    "nested_archive": "an archive in an archive, deeper than is read; args: name",
    "unreadable": "a record that does not have the shape of its format; args: reason",
    "wrong_type": "a value of the wrong type; args: expected, found",
    "wrong_value": "a value that is not allowed there; args: expected or reason",
    "refused_key": "a key that the exchange form does not know inside a chat; args: key",
    "no_messages": "a record without messages",
    "failed_run": "a run that failed with an error and has no messages; args: error",
    "parent_missing": "a chain of answers whose earlier part is not in the file; args: id",
    "unsupported_version": "a version that is not known; args: version",
    "missing_library": "reading this needs a library that is not installed; args: library",
}
PLACES_KEPT = 50
FIELDS_KEPT = 500
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an upload: member of an archive, line (from 1), record (from 0), and key path inside the record."""

    member: str | None = None
    line: int | None = None
    index: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        parts = [
            self.member,
            None if self.line is None else f"line {self.line}",
            None if self.index is None else f"record {self.index}",
            self.path,
        ]
        return ", ".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not taken. `code` is one of PROBLEM_CODES; the sentence is made where it is shown.

    `chat_lost` says whether a chat is missing because of it.
    """

    code: str
    place: Place = Place()
    args: Mapping[str, object] = field(default_factory=dict)
    chat_lost: bool = True


class ReadingProblem(Exception):
    """Raised inside a reader to give up one record. It never leaves `chats.domain.formats`."""

    def __init__(self, code: str, *, path: str | None = None, stops_file: bool = False, **args: object) -> None:
        super().__init__(code)
        self.code = code
        self.path = path
        self.stops_file = stops_file
        self.arguments = args

    def at(self, place: Place) -> Problem:
        here = Place(place.member, place.line, place.index, self.path or place.path)
        return Problem(self.code, here, self.arguments)


class LimitPassed(ReadingProblem):
    """A limit of section 5: the file is left where it was passed, and what is complete is kept."""

    def __init__(self, limit: str, allowed: int, path: str | None = None) -> None:
        super().__init__("limit", path=path, stops_file=True, limit=limit, allowed=allowed)


@dataclass(slots=True)
class Noted:
    """A count with the first places, and what was found at each (the arguments of its problem)."""

    count: int = 0
    places: list[Place] = field(default_factory=list)
    details: list[Mapping[str, object]] = field(default_factory=list)

    def add(self, place: Place, count: int = 1, details: Mapping[str, object] | None = None) -> None:
        self.count += count
        if len(self.places) < PLACES_KEPT:
            self.places.append(place)
            self.details.append(details or {})


@dataclass(slots=True)
class ImportReport:
    """What one import took and what it left (import-formats.md section 1). Lists of places are bounded."""

    chats: int = 0
    messages: int = 0
    calls: int = 0
    problems: dict[str, Noted] = field(default_factory=dict)
    chats_lost: int = 0
    skipped: dict[str, Noted] = field(default_factory=dict)
    not_understood: Counter[str] = field(default_factory=Counter)
    results_without_call: Noted = field(default_factory=Noted)
    calls_without_result: Noted = field(default_factory=Noted)
    arguments_not_json: Noted = field(default_factory=Noted)
    unknown_roles: Counter[str] = field(default_factory=Counter)
    replaced_characters: int = 0
    numbers_read_as_null: int = 0
    duplicate_keys: int = 0
    other_branches: int = 0
    side_chats: Counter[str] = field(default_factory=Counter)
    members_passed_over: int = 0
    ids_used_twice: int = 0
    nudges: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    protocols: Counter[str] = field(default_factory=Counter)

    def take(self, messages: int, calls: int) -> None:
        self.chats += 1
        self.messages += messages
        self.calls += calls

    @property
    def offered_protocol(self) -> str | None:
        """The text protocol that at least half of the answers follow: its conversion is worth offering."""
        found = self.protocols.most_common(1)
        return found[0][0] if found and found[0][1] * 2 >= self.answers else None

    def add_cleaning(self, other: ImportReport) -> None:
        """Take over what another report counted while the same text was cleaned."""
        self.replaced_characters += other.replaced_characters
        self.numbers_read_as_null += other.numbers_read_as_null
        self.duplicate_keys += other.duplicate_keys

    def note_problem(self, problem: Problem) -> None:
        self.problems.setdefault(problem.code, Noted()).add(problem.place, details=problem.args)
        self.chats_lost += problem.chat_lost

    def note_skipped(self, reason: str, place: Place, count: int = 1) -> None:
        """Records or messages of a chat that were left out on purpose, by reason."""
        known = reason in self.skipped or len(self.skipped) < FIELDS_KEPT
        self.skipped.setdefault(reason[:LONGEST_NAME] if known else "other", Noted()).add(place, count)

    def note_unknown_field(self, path: str) -> None:
        path = path[:LONGEST_NAME]
        if path in self.not_understood or len(self.not_understood) < FIELDS_KEPT:
            self.not_understood[path] += 1

    def note_unknown_role(self, role: str) -> None:
        role = role[:LONGEST_NAME]
        if role in self.unknown_roles or len(self.unknown_roles) < FIELDS_KEPT:
            self.unknown_roles[role] += 1

    def note_unknown_fields(self, record: Mapping[str, Any], known: frozenset[str], prefix: str = "") -> None:
        """The keys of a record that the importer has no meaning for; keys without a value are passed over."""
        if record.keys() <= known:
            return
        for key in record.keys() - known:
            if record[key] not in (None, "", [], {}):
                self.note_unknown_field(prefix + key)

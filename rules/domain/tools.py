"""Kinds of tools, and whether a check passed (continuation.md sections 5 and 7)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import re2

from rules.domain.language.patterns import PatternProblem, found_in, problem_in
from rules.domain.shell_commands import reads_only, verifies

ToolKind = Literal["read", "verify", "other", "finish"]
Outcome = Literal["ok", "failed", "not_run", "unknown"]

_SEPARATORS: Final = ("__", ".", "/", ":")


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One entry of a catalogue; an empty `argument` means that the name alone decides.

    `pattern` is a shell-style wildcard, case ignored. `argument_pattern`, `success_pattern` and `failure_pattern` are
    RE2 patterns. `command` is how built-in entries read the argument instead, as a shell command.
    """

    pattern: str
    kind: ToolKind
    argument: str = ""
    argument_pattern: str = ""
    repeatable: bool = False
    success_pattern: str = ""
    failure_pattern: str = ""
    command: Literal["", "verify", "read"] = ""

    @property
    def conditional(self) -> bool:
        return bool(self.argument)

    def problems(self) -> dict[str, PatternProblem]:
        """Why parts of the entry are refused, by the name of the part; empty when all is well."""
        found = {}
        for part in ("argument_pattern", "success_pattern", "failure_pattern"):
            pattern = getattr(self, part)
            problem = problem_in(pattern) if pattern else None
            if problem is not None:
                found[part] = problem
        return found

    def fits_arguments(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the condition on the argument holds; without one it does."""
        if not self.argument:
            return True
        text = _argument_text(arguments.get(self.argument))
        if text is None:
            return False
        if self.command == "verify":
            return verifies(text)
        if self.command == "read":
            return reads_only(text)
        return not self.argument_pattern or found_in(self.argument_pattern, text)


def _argument_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return None


def _shell_entries() -> Iterable[ToolEntry]:
    names = (
        "bash", "shell", "execute_bash", "run_command", "terminal", "exec_command", "local_shell", "run_terminal_cmd",
    )  # fmt: skip
    for name in names:
        for argument in ("command", "cmd"):
            yield ToolEntry(name, "verify", argument, command="verify")
            yield ToolEntry(name, "read", argument, command="read")
        yield ToolEntry(name, "other")


def _editor_entries() -> Iterable[ToolEntry]:
    for name in ("str_replace_editor", "str_replace_based_edit_tool"):
        yield ToolEntry(name, "read", "command", r"\Aview\z")
        yield ToolEntry(name, "other")


def _entries(kind: ToolKind, names: str, *, repeatable: bool = False) -> list[ToolEntry]:
    return [ToolEntry(name, kind, repeatable=repeatable) for name in names.split()]


BUILT_IN_ENTRIES: Final[tuple[ToolEntry, ...]] = (
    *_shell_entries(),
    *_editor_entries(),
    *_entries("read", "scroll_* wait* sleep poll*", repeatable=True),
    *_entries("finish", "submit finish attempt_completion final_answer"),
    *_entries("verify", "test tests test_* *_test *_tests *_test_* *_tests_* lint* *_lint* verify* validate* check_*"),
    *_entries("read", "get_* list_* find_* search* read* view* open* grep glob ls think calculate"),
)

FALLBACK: Final = ToolEntry("*", "other")


class ToolCatalogue:
    """A tenant's entries, then the built-in ones; the first entry that fits decides.

    Raises ValueError naming entry and part when a pattern of an entry is refused. What a name can be is worked out
    once.
    """

    def __init__(self, entries: Sequence[ToolEntry] = ()) -> None:
        for position, entry in enumerate(entries, 1):
            for part, problem in entry.problems().items():
                raise ValueError(f"entry {position} ({entry.pattern}): {part} is refused: {problem.code}")
        self.entries: Final = (*entries, *BUILT_IN_ENTRIES)
        self._names = [_wildcard(entry.pattern) for entry in self.entries]
        self._candidates: dict[str, tuple[ToolEntry, ...]] = {}

    def entry_for(self, name: str, arguments: Mapping[str, Any] | None) -> ToolEntry:
        """The entry that decides on a call; arguments that are no JSON object count as none."""
        candidates = self.candidates(name)
        if len(candidates) == 1:
            return candidates[0]
        given = arguments or {}
        return next(entry for entry in candidates if entry.fits_arguments(given))

    def can_verify(self, name: str) -> bool:
        """Whether some call of this tool would be a check."""
        return any(entry.kind == "verify" for entry in self.candidates(name))

    def candidates(self, name: str) -> tuple[ToolEntry, ...]:
        """The entries that fit the name in order, up to the first without a condition."""
        known = self._candidates.get(name)
        if known is None:
            known = self._candidates[name] = self._find(name)
        return known

    def _find(self, name: str) -> tuple[ToolEntry, ...]:
        forms = [form.encode("utf-8", "replace") for form in (name, _last_part(name))]
        found = []
        for entry, pattern in zip(self.entries, self._names, strict=True):
            if not any(pattern.search(form) for form in forms):
                continue
            found.append(entry)
            if not entry.conditional:
                return tuple(found)
        return (*found, FALLBACK)


def _last_part(name: str) -> str:
    end = max((name.rfind(separator) + len(separator) for separator in _SEPARATORS if separator in name), default=0)
    return name[end:]


def _wildcard(pattern: str) -> Any:
    """`*`, `?` and `[...]` as in a shell, over the whole name, case ignored. A `[` that is never closed is a letter."""
    pieces = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        # A "]" right behind the opening, or behind its "!", stands for itself.
        first = at + 2 if pattern.startswith(("[!", "[^"), at) else at + 1
        closing = pattern.find("]", first + 1) if char == "[" else -1
        if char == "*":
            pieces.append(".*")
        elif char == "?":
            pieces.append(".")
        elif closing > 0:
            negated = "^" if first == at + 2 else ""
            pieces.append(f"[{negated}{_character_class(pattern[first:closing])}]")
            at = closing
        else:
            pieces.append(re2.escape(char))
        at += 1
    return re2.compile(r"(?is)\A(?:" + "".join(pieces) + r")\z")


def _character_class(inside: str) -> str:
    """Ranges stay ranges; one that runs backwards has no letters between its ends, so its ends count alone."""
    pieces = []
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and inside[at] <= inside[at + 2 : at + 3]:
            pieces.append(f"{re2.escape(inside[at])}-{re2.escape(inside[at + 2])}")
            at += 3
        else:
            pieces.append(re2.escape(inside[at]))
            at += 1
    return "".join(pieces)


# --- did a check pass?

_REFUSED: Final = re2.compile(
    r"(?i)\A[\s\[(<\"'*]*(?:the user (?:doesn['’]t|does not|didn['’]t|did not) want to proceed"
    r"|(?:the )?tool call was (?:rejected|denied|cancell?ed)"
    r"|rejected by the user|request interrupted by user)"
)
_EXIT_CODE: Final = re2.compile(
    r"(?i)\b(?:exit(?:ed|s)?(?: with)?[ _-]?(?:code|status)|return(?:ed)?(?: with)?[ _-]?code)\s*(?:[:=]|is"
    r"|of)?\s*(-?\d+)"
)
_FAILED: Final = re2.compile(
    "(?m)"
    r"(?i:\b0*[1-9][\d,]*\s+(?:(?:tests?|test suites?|suites?|specs?|checks?|cases?|examples?|assertions?|lint"
    r"|type)\s+)?"
    r"(?:failed|failures?|errors?)\b)"
    r"|^FAILED\b"
    r"|(?i:traceback \(most recent call last\))"
    r"|(?i:test result: )FAILED"
    r"|BUILD FAIL(?:ED|URE)"
    r"|^E   "
    r"|(?i:(?:assertion|syntax|indentation|type|name|import|modulenotfound)error\b)"
    r"|(?i:^error(?:\[[^\]\n]*\])?:)"
    r"|(?i:npm )ERR!"
    r"|(?i:command not found|no such file or directory)"
)
_EXIT_KEYS: Final = ("exit_code", "exitCode", "returncode", "return_code")
_PASS_KEYS: Final = ("success", "ok", "passed")
_ERROR_KEYS: Final = ("isError", "is_error")
_COUNT_KEYS: Final = ("failed", "failures", "errors")


def outcome(
    content: str, result_status: str | None = None, exit_code: int | None = None, entry: ToolEntry = FALLBACK
) -> Outcome:
    """Whether a call with this result passed: the first step of section 7 that says something decides.

    A call without a result is `unknown`, which is for the caller to say.
    """
    if result_status is not None:
        return "failed" if result_status == "error" else "not_run" if result_status == "not_run" else "ok"
    if exit_code is not None:
        return "ok" if exit_code == 0 else "failed"
    if was_refused(content):
        return "not_run"
    if entry.failure_pattern and found_in(entry.failure_pattern, content):
        return "failed"
    if entry.success_pattern:
        return "ok" if found_in(entry.success_pattern, content) else "failed"
    told = _told_by_object(content)
    if told is not None:
        return told
    data = content.encode("utf-8", "replace")
    codes = _EXIT_CODE.findall(data)
    if codes:
        return "ok" if not codes[-1].strip(b"-0") else "failed"
    return "failed" if _FAILED.search(data) is not None else "ok"


def was_not_run(content: str, result_status: str | None, exit_code: int | None) -> bool:
    """Whether the outcome is `not_run`, which only the first three steps can say."""
    if result_status is not None:
        return result_status == "not_run"
    return exit_code is None and was_refused(content)


def was_refused(content: str) -> bool:
    """Whether a result starts like a refusal by the user or the runtime."""
    return _REFUSED.search(content[:200].encode("utf-8", "replace")) is not None


def _told_by_object(content: str) -> Outcome | None:
    """What a result that is a JSON object says of itself; one that says nothing passed. None for any other text."""
    text = content.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return "failed" if _object_failed(value) else "ok"


def _object_failed(value: dict[str, Any]) -> bool:
    for key in _EXIT_KEYS:
        if isinstance(value.get(key), int | float) and not isinstance(value[key], bool):
            return bool(value[key] != 0)
    for key in _PASS_KEYS:
        if isinstance(value.get(key), bool):
            return not value[key]
    for key in _ERROR_KEYS:
        if isinstance(value.get(key), bool):
            return bool(value[key])
    if value.get("error"):
        return True
    status = value.get("status")
    if isinstance(status, str) and status.lower() in ("failed", "failure", "error"):
        return True
    return any(_counts_something(value.get(key)) for key in _COUNT_KEYS)


def _counts_something(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value)
    return isinstance(value, int | float) and value > 0

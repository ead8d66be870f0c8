"""`ChatWrapperSettings`: how function calls, results and segments look in a prompt (chat-wrappers.md section 6).

JSON has the names of the original (camelCase). Every text is a string or a LlamaText in JSON form; a string is plain
text. A missing key and None mean absent; JSON null is a value for `emptyCallParamsPlaceholder` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    StrictBool,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from chats.domain.js_json import ABSENT, Absence
from chats.domain.llama_text import LlamaText, UnknownPart

T = TypeVar("T")

TEMPLATE_PARAMETERS: Final = ("{{functionName}}", "{{functionParams}}")
"""Replaced in plain pieces of result prefix and suffix; the first one in call paramsPrefix and suffix, too."""

NOT_PRESENT: Final = "$absent"
"""In a difference, `{"$absent": true}` takes a key of the base away; JSON has no value for that."""


def _text(value: object) -> LlamaText:
    if isinstance(value, LlamaText):
        return value
    try:
        return LlamaText.from_json(value)
    except UnknownPart as error:
        raise PydanticCustomError("unknown_text_part", "not a part of a text", {"index": error.index}) from error
    except ValueError as error:
        raise PydanticCustomError("text_type", "a text is a string or a list of parts") from error


def _present(value: T) -> T:
    if value is None:
        raise PydanticCustomError("null_value", "null is no value here; leave the key out")
    return value


Text: TypeAlias = Annotated[LlamaText, PlainValidator(_text)]
OptionalText: TypeAlias = Annotated[Text | None, BeforeValidator(_present)]
OptionalBool: TypeAlias = Annotated[StrictBool | None, BeforeValidator(_present)]


class SettingsPart(BaseModel):
    """Base of all parts: frozen, names in camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, arbitrary_types_allowed=True
    )

    def to_json(self) -> dict[str, Any]:
        """The JSON form; what is absent has no key. `from_json` of it gives an equal value."""
        out = {}
        for name, info in type(self).model_fields.items():
            value = getattr(self, name)
            if value is ABSENT or (value is None and name != _PLACEHOLDER):
                continue
            out[info.alias or name] = _plain(value)
        return out


_PLACEHOLDER = "empty_call_params_placeholder"


def _plain(value: Any) -> Any:
    if isinstance(value, SettingsPart | LlamaText):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


class CallSettings(SettingsPart):
    """`functions.call`: prefix, name, paramsPrefix, params, suffix."""

    optional_prefix_space: StrictBool
    prefix: Text
    params_prefix: Text
    suffix: Text
    empty_call_params_placeholder: Any = ABSENT
    prefix_alternate_matches: Annotated[tuple[Text, ...] | None, BeforeValidator(_present)] = None


class ResultSettings(SettingsPart):
    """`functions.result`: prefix, result, suffix."""

    prefix: Text
    suffix: Text


class ParallelCallSettings(SettingsPart):
    """`functions.parallelism.call`: what stands around and between the calls of one section."""

    section_prefix: Text
    section_prefix_alternate_matches: Annotated[tuple[Text, ...] | None, BeforeValidator(_present)] = None
    between_calls: OptionalText = None
    section_suffix: OptionalText = None


class ParallelResultSettings(SettingsPart):
    """`functions.parallelism.result`: what stands around and between the results of one section."""

    section_prefix: OptionalText = None
    between_results: OptionalText = None
    section_suffix: OptionalText = None


class ParallelismSettings(SettingsPart):
    """`functions.parallelism`: present if several calls may form one section."""

    call: ParallelCallSettings
    result: Annotated[ParallelResultSettings | None, BeforeValidator(_present)] = None


class FunctionsSettings(SettingsPart):
    """`functions`."""

    call: CallSettings
    result: ResultSettings
    parallelism: Annotated[ParallelismSettings | None, BeforeValidator(_present)] = None


class OpenedOnStart(SettingsPart):
    """A thought that the chat template itself opens, so that no prefix is printed."""

    type: Literal["openedOnStart"]
    after_function_calls: OptionalBool = None


def _segment_prefix(value: object) -> LlamaText | OpenedOnStart:
    if isinstance(value, OpenedOnStart):
        return value
    if isinstance(value, Mapping):
        return OpenedOnStart.model_validate(value)
    return _text(value)


class CommentSegment(SettingsPart):
    """`segments.comment`. `suffix` is absent where only `closeAllSegments` ends it."""

    prefix: Text
    suffix: OptionalText = None

    @property
    def printed_prefix(self) -> LlamaText | None:
        return self.prefix


class ThoughtSegment(SettingsPart):
    """`segments.thought`."""

    prefix: Annotated[LlamaText | OpenedOnStart, PlainValidator(_segment_prefix)]
    suffix: OptionalText = None
    open_on_response_start: OptionalBool = None
    reopen_after_function_calls: OptionalBool = None

    @property
    def printed_prefix(self) -> LlamaText | None:
        """The prefix, if it's one that is printed (the *standardised* definition of chat-wrappers.md section 6)."""
        return self.prefix if isinstance(self.prefix, LlamaText) else None


class SegmentsSettings(SettingsPart):
    """`segments`."""

    close_all_segments: OptionalText = None
    reiterate_stack_after_function_calls: OptionalBool = None
    thought: Annotated[ThoughtSegment | None, BeforeValidator(_present)] = None
    comment: Annotated[CommentSegment | None, BeforeValidator(_present)] = None


class ChatWrapperSettings(SettingsPart):
    """All settings of a chat wrapper."""

    supports_system_messages: StrictBool
    functions: FunctionsSettings
    segments: Annotated[SegmentsSettings | None, BeforeValidator(_present)] = None

    @classmethod
    def from_json(cls, json: object) -> Self:
        """Read the JSON form. Raises SettingsError that names every wrong place."""
        try:
            return cls.model_validate(json)
        except ValidationError as error:
            raise SettingsError(_problems(error)) from error


@dataclass(frozen=True)
class SettingsProblem:
    """One wrong place: path by JSON names, a code for the reader's language, and the arguments of its message.

    Codes: `unknown_key`, `missing_key`, `not_an_object`, `not_a_boolean`, `not_a_text`, `unknown_text_part`,
    `not_a_list`, `null_value`, `unknown_value` (argument `expected`).
    """

    path: tuple[str | int, ...]
    code: str
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def dotted_path(self) -> str:
        return ".".join(map(str, self.path))


class SettingsError(ValueError):
    """The settings can't be read; `problems` has one entry a wrong place."""

    def __init__(self, problems: list[SettingsProblem]) -> None:
        super().__init__("; ".join(f"{p.dotted_path or '.'}: {p.code}" for p in problems))
        self.problems = problems


_CODES = {
    "extra_forbidden": "unknown_key",
    "missing": "missing_key",
    "model_type": "not_an_object",
    "model_attributes_type": "not_an_object",
    "bool_type": "not_a_boolean",
    "text_type": "not_a_text",
    "unknown_text_part": "unknown_text_part",
    "tuple_type": "not_a_list",
    "null_value": "null_value",
}


def _problems(error: ValidationError) -> list[SettingsProblem]:
    found = []
    for item in error.errors(include_url=False):
        path = tuple(item["loc"])
        if item["type"] == "unknown_text_part":
            path = (*path, item["ctx"]["index"])
        code = _CODES.get(item["type"], "unknown_value")
        arguments = {"expected": str(item["ctx"]["expected"])} if "expected" in item.get("ctx", {}) else {}
        found.append(SettingsProblem(path, code, arguments))
    return found


_OBJECTS = {
    (),
    ("functions",),
    ("functions", "call"),
    ("functions", "result"),
    ("functions", "parallelism"),
    ("functions", "parallelism", "call"),
    ("functions", "parallelism", "result"),
    ("segments",),
    ("segments", "thought"),
    ("segments", "comment"),
}


def difference(base: ChatWrapperSettings, settings: ChatWrapperSettings) -> dict[str, Any]:
    """What differs from the base, as sparse JSON; `apply_difference(base, …)` of it gives `settings` again.

    Objects of the settings are compared key by key, every other value as a whole. A key that only the base has is
    `{"$absent": true}`.
    """
    return _difference(base.to_json(), settings.to_json(), ())


def _difference(base: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in base:
        if key not in new:
            out[key] = {NOT_PRESENT: True}
    for key, value in new.items():
        below = (*path, key)
        if key not in base:
            out[key] = value
        elif below in _OBJECTS:
            changed = _difference(base[key], value, below)
            if changed:
                out[key] = changed
        elif not _same(base[key], value):
            out[key] = value
    return out


def _same(first: Any, second: Any) -> bool:
    """Equality that tells true from 1 and 1 from 1.0, as JSON text does."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(_same(first[k], second[k]) for k in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def apply_difference(base: ChatWrapperSettings, changes: Mapping[str, Any]) -> ChatWrapperSettings:
    """The base with a sparse difference laid over it. Raises SettingsError if the result isn't valid."""
    return ChatWrapperSettings.from_json(_applied(base.to_json(), changes, ()))


def _applied(base: dict[str, Any], changes: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    out = dict(base)
    for key, value in changes.items():
        below = (*path, key)
        if value == {NOT_PRESENT: True}:
            out.pop(key, None)
        elif below in _OBJECTS and isinstance(value, Mapping):
            there = out.get(key)
            out[key] = _applied(there if isinstance(there, dict) else {}, value, below)
        else:
            out[key] = value
    return out


_SPECIAL_PAREN = [{"type": "specialTokensText", "value": "("}]
_SPECIAL_CLOSE = [{"type": "specialTokensText", "value": ")"}]
_SPECIAL_BREAK = {"type": "specialTokensText", "value": "\n"}

BASE_SETTINGS: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": True,
                "prefix": "||call: ",
                "paramsPrefix": _SPECIAL_PAREN,
                "suffix": _SPECIAL_CLOSE,
                "emptyCallParamsPlaceholder": "",
                "prefixAlternateMatches": ["||call:"],
            },
            "result": {"prefix": [_SPECIAL_BREAK, "||result: "], "suffix": [_SPECIAL_BREAK]},
        },
        "segments": {},
    }
)
"""The settings of the base wrapper, which the wrappers of plain formats share."""

__all__ = [
    "ABSENT",
    "BASE_SETTINGS",
    "NOT_PRESENT",
    "TEMPLATE_PARAMETERS",
    "Absence",
    "CallSettings",
    "ChatWrapperSettings",
    "CommentSegment",
    "FunctionsSettings",
    "OpenedOnStart",
    "ParallelCallSettings",
    "ParallelResultSettings",
    "ParallelismSettings",
    "ResultSettings",
    "SegmentsSettings",
    "SettingsError",
    "SettingsPart",
    "SettingsProblem",
    "Text",
    "ThoughtSegment",
    "apply_difference",
    "difference",
]

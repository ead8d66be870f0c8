"""`ChatWrapperSettings` as a form, grouped as the settings are (chat-wrappers.md section 6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chats.wrapper_forms import parts
from chats.wrapper_forms.parts import Data

FieldKind = Literal["bool", "maybe_bool", "text", "maybe_text", "maybe_texts", "maybe_json", "object", "thought_prefix"]
PREFIX: Final = "s"
MAX_DEPTH: Final = 40


@dataclass(frozen=True)
class SettingsField:
    """One field. `object` fields say whether the object at their path is there; the fields below follow them."""

    path: tuple[str, ...]
    kind: FieldKind
    label: str | Promise
    help: str | Promise = ""

    @property
    def name(self) -> str:
        return ".".join((PREFIX, *self.path))

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Group:
    key: str
    title: str | Promise
    fields: Sequence[SettingsField] = field(default_factory=tuple)


def _field(path: str, kind: FieldKind, label: str | Promise, help: str | Promise = "") -> SettingsField:
    return SettingsField(tuple(path.split(".")), kind, label, help)


GROUPS: Final = (
    Group(
        "system",
        _("System messages"),
        (
            _field(
                "supportsSystemMessages",
                "bool",
                _("The model knows system messages"),
                _("Otherwise they become part of a user message, where the wrapper does that."),
            ),
        ),
    ),
    Group(
        "call",
        _("Function call"),
        (
            _field(
                "functions.call.optionalPrefixSpace",
                "bool",
                _("A space before the call is optional"),
                _("When an answer is read, a space before the prefix is not part of the text."),
            ),
            _field("functions.call.prefix", "text", _("Prefix"), _("Before the function's name.")),
            _field(
                "functions.call.paramsPrefix",
                "text",
                _("Before the parameters"),
                _("After the name. {{functionName}} is replaced in text parts."),
            ),
            _field("functions.call.suffix", "text", _("Suffix"), _("After the parameters.")),
            _field(
                "functions.call.emptyCallParamsPlaceholder",
                "maybe_json",
                _("Where a call has no parameters"),
                _("JSON that stands for them, for example {}."),
            ),
            _field(
                "functions.call.prefixAlternateMatches",
                "maybe_texts",
                _("Other spellings of the prefix"),
                _("Understood when an answer is read, never written."),
            ),
        ),
    ),
    Group(
        "result",
        _("Function result"),
        (
            _field(
                "functions.result.prefix",
                "text",
                _("Prefix"),
                _("Before the result. {{functionName}} and {{functionParams}} are replaced in text parts."),
            ),
            _field("functions.result.suffix", "text", _("Suffix"), _("After the result.")),
        ),
    ),
    Group(
        "parallel",
        _("Parallel calls"),
        (
            _field("functions.parallelism", "object", _("Several calls may form one section")),
            _field("functions.parallelism.call.sectionPrefix", "text", _("Before the calls")),
            _field("functions.parallelism.call.betweenCalls", "maybe_text", _("Between calls")),
            _field("functions.parallelism.call.sectionSuffix", "maybe_text", _("After the calls")),
            _field(
                "functions.parallelism.call.sectionPrefixAlternateMatches",
                "maybe_texts",
                _("Other spellings of what stands before the calls"),
            ),
            _field("functions.parallelism.result", "object", _("Their results form a section, too")),
            _field("functions.parallelism.result.sectionPrefix", "maybe_text", _("Before the results")),
            _field("functions.parallelism.result.betweenResults", "maybe_text", _("Between results")),
            _field("functions.parallelism.result.sectionSuffix", "maybe_text", _("After the results")),
        ),
    ),
    Group(
        "segments",
        _("Segments"),
        (
            _field("segments", "object", _("The model writes segments, such as thoughts")),
            _field(
                "segments.closeAllSegments", "maybe_text", _("Closes all segments"), _("Ends every segment at once.")
            ),
            _field(
                "segments.reiterateStackAfterFunctionCalls",
                "maybe_bool",
                _("Open segments are named again after calls"),
            ),
            _field("segments.thought", "object", _("Thoughts")),
            _field("segments.thought.prefix", "thought_prefix", _("A thought's prefix")),
            _field("segments.thought.suffix", "maybe_text", _("A thought's suffix")),
            _field("segments.thought.openOnResponseStart", "maybe_bool", _("An answer begins inside of a thought")),
            _field("segments.thought.reopenAfterFunctionCalls", "maybe_bool", _("Thinking goes on after calls")),
            _field("segments.comment", "object", _("Comments")),
            _field("segments.comment.prefix", "text", _("A comment's prefix")),
            _field("segments.comment.suffix", "maybe_text", _("A comment's suffix")),
        ),
    ),
)
FIELDS: Final[Mapping[str, SettingsField]] = {f.name: f for group in GROUPS for f in group.fields}
_OBJECTS: Final = frozenset(f.path for f in FIELDS.values() if f.kind == "object")
_BOOLS: Final = {True: "true", False: "false"}


def encoded(settings: Mapping[str, Any]) -> dict[str, str]:
    """The form of settings in their JSON form."""
    data: dict[str, str] = {}
    for one in FIELDS.values():
        encode_field(one, value_at(settings, one.path), data)
    return data


ABSENT: Final = object()
"""There is no value at a path."""


def value_at(settings: Any, path: Sequence[str]) -> Any:
    """The JSON value at a path; ABSENT where there is none."""
    for key in path:
        if not isinstance(settings, Mapping) or key not in settings:
            return ABSENT
        settings = settings[key]
    return settings


def encode_field(one: SettingsField, value: Any, data: Data) -> None:
    """Write one field; what was there before is forgotten."""
    name = one.name
    if one.kind == "object":
        data[f"{name}.is"] = "" if value is ABSENT else "on"
        return
    parts.clear(name, data)
    if one.kind in ("bool", "maybe_bool"):
        data[name] = _BOOLS[value] if isinstance(value, bool) else ("false" if one.kind == "bool" else "")
    elif one.kind == "text":
        parts.encode_text("" if value is ABSENT else value, name, data)
    elif one.kind == "thought_prefix":
        opened = isinstance(value, Mapping)
        data[f"{name}.is"] = "opened" if opened else "text"
        data[f"{name}.after"] = _BOOLS.get(value.get("afterFunctionCalls"), "") if opened else ""
        if not opened:
            parts.encode_text("" if value is ABSENT else value, name, data)
    else:
        data[f"{name}.is"] = "" if value is ABSENT else "on"
        if value is not ABSENT:
            _encode_optional(one, value, data)


def _encode_optional(one: SettingsField, value: Any, data: Data) -> None:
    if one.kind == "maybe_text":
        parts.encode_text(value, one.name, data)
    elif one.kind == "maybe_json":
        # Escaped, so that a form can carry it.
        data[f"{one.name}.text"] = json.dumps(value)
    else:
        for index, text in enumerate(value):
            data[f"{one.name}.{index}.has"] = "1"
            parts.encode_text(text, f"{one.name}.{index}", data)


class FormError(ValueError):
    """A field that can't be read; `name` is the field's."""

    def __init__(self, name: str, code: str) -> None:
        super().__init__(f"{name}: {code}")
        self.name = name
        self.code = code


def decoded(data: Mapping[str, str]) -> dict[str, Any]:
    """The settings that a form stands for, in JSON form. Raises FormError."""
    out: dict[str, Any] = {"supportsSystemMessages": False, "functions": {"call": {}, "result": {}}}
    for one in FIELDS.values():
        if any(data.get(f"{'.'.join((PREFIX, *above))}.is") != "on" for above in _objects_above(one.path)):
            continue
        value = decode_field(one, data)
        if value is not ABSENT:
            _put(out, one.path, value)
    return out


def decode_field(one: SettingsField, data: Mapping[str, str]) -> Any:
    """The field's JSON value, ABSENT where it has none. Raises FormError."""
    name = one.name
    if one.kind == "object":
        if data.get(f"{name}.is") != "on":
            return ABSENT
        return {"call": {}} if one.path == ("functions", "parallelism") else {}
    if one.kind in ("bool", "maybe_bool"):
        value = data.get(name, "")
        return value == "true" if value or one.kind == "bool" else ABSENT
    if one.kind == "text":
        return parts.decode_text(name, data)
    if one.kind == "thought_prefix":
        if data.get(f"{name}.is") != "opened":
            return parts.decode_text(name, data)
        after = data.get(f"{name}.after", "")
        return {"type": "openedOnStart", **({"afterFunctionCalls": after == "true"} if after else {})}
    if data.get(f"{name}.is") != "on":
        return ABSENT
    if one.kind == "maybe_text":
        return parts.decode_text(name, data)
    if one.kind == "maybe_json":
        return _json_value(name, data.get(f"{name}.text", ""))
    return [parts.decode_text(f"{name}.{index}", data) for index in parts.indexes(name, data)]


def json_value(text: str) -> Any:
    """The value that a text of JSON says. Raises ValueError, also for what only Python takes or is nested too deep."""
    value = json.loads(text, parse_constant=_refuse)
    level = [value]
    for _depth in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
        if not level:
            return value
    raise ValueError(gettext("this is nested too deeply"))


def _refuse(word: str) -> Any:
    raise ValueError(gettext("%(word)s is no value in JSON") % {"word": word})


def _json_value(name: str, text: str) -> Any:
    try:
        return json_value(text)
    except (ValueError, RecursionError) as error:
        raise FormError(name, "not_json") from error


def _objects_above(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (path[:n] for n in range(1, len(path)) if path[:n] in _OBJECTS)


def _put(out: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        out = out.setdefault(key, {})
    out[path[-1]] = value

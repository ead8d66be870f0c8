"""Checking generated params against a function's schema (chat-wrappers.md section 14.1).

The schemas are the original's dialect: every property is required, and unknown keys are refused unless
`additionalProperties` says otherwise. The messages are the original's, so they can be compared with recorded ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from chats.domain.js_json import json_compact, json_string

_REFERENCE = "#/$defs/"
# Definitions may refer to themselves, params may be nested as deep as a model likes, and alternatives inside each
# other multiply: a check does this much and no more.
_MAX_DEPTH = 200
_MAX_STEPS = 50_000
_DATE = r"\d{4}-(0[1-9]|1[012])-(0[1-9]|[12]\d|3[01])"
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{3})?(Z|[+-]([01][0-9]|2[0-3])?:[0-5][0-9])"
_FORMATS = {
    "date": re.compile(_DATE, re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "date-time": re.compile(f"{_DATE}T{_TIME}", re.ASCII),
}

Definitions = Mapping[str, Any]


class ParamsMismatch(ValueError):
    """The params don't fit the schema; the message says where they differ first."""


class CheckTooLarge(ParamsMismatch):
    """Params and schema are nested too deeply, or there are too many alternatives to try."""


def check_params(params: Any, schema: Mapping[str, Any]) -> None:
    """Raise ParamsMismatch unless the params (parsed JSON) fit the schema."""
    _Check().value(params, schema, {}, 0)


class _Check:
    def __init__(self) -> None:
        self._steps = 0

    def value(self, value: Any, schema: Mapping[str, Any], definitions: Definitions, depth: int) -> None:
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            raise CheckTooLarge("Nested too deeply")
        if isinstance(schema.get("$defs"), Mapping):
            definitions = {**definitions, **schema["$defs"]}
        kind = schema.get("type")
        if isinstance(schema.get("$ref"), str):
            self._check_reference(value, schema["$ref"], definitions, depth)
        elif kind == "array":
            self._check_array(value, schema, definitions, depth)
        elif kind == "object":
            self._check_object(value, schema, definitions, depth)
        elif schema.get("oneOf") is not None:
            self._check_one_of(value, schema["oneOf"], definitions, depth)
        elif kind == "string":
            _check_string(value, schema)
        elif schema.get("enum") is not None:
            if not any(_identical(value, item) for item in schema["enum"]):
                expected = ", ".join(map(json_compact, schema["enum"]))
                raise ParamsMismatch(f"Expected one of [{expected}] but got {json_compact(value)}")
        elif "const" in schema:
            if not _identical(value, schema["const"]):
                raise ParamsMismatch(f"Expected {json_compact(schema['const'])} but got {json_compact(value)}")
        elif isinstance(kind, list):
            if not any(_has_type(value, item) for item in kind):
                names = ", ".join(map(json_compact, kind))
                raise ParamsMismatch(f'Expected one type of [{names}] but got type "{_type_name(value)}"')
        elif not _has_type(value, kind):
            raise ParamsMismatch(f'Expected type "{kind}" but got "{_type_name(value)}"')

    def _check_reference(self, value: Any, reference: str, definitions: Definitions, depth: int) -> None:
        target = definitions.get(reference.removeprefix(_REFERENCE)) if reference.startswith(_REFERENCE) else None
        if target is not None:
            self.value(value, target, definitions, depth + 1)

    def _check_array(self, value: Any, schema: Mapping[str, Any], definitions: Definitions, depth: int) -> None:
        if not isinstance(value, list):
            raise ParamsMismatch(f'Expected an array but got "{_js_typeof(value)}"')
        first = schema.get("prefixItems") or []
        minimum = max(schema.get("minItems") or 0, len(first))
        _check_count(len(value), minimum, schema.get("maxItems"), "items")
        for item, item_schema in zip(value, first, strict=False):
            self.value(item, item_schema, definitions, depth + 1)
        if schema.get("items") is not None:
            for item in value[len(first) :]:
                self.value(item, schema["items"], definitions, depth + 1)

    def _check_object(self, value: Any, schema: Mapping[str, Any], definitions: Definitions, depth: int) -> None:
        if not isinstance(value, dict | list):
            raise ParamsMismatch(f'Expected an object but got "{_js_typeof(value)}"')
        found = value if isinstance(value, dict) else {str(index): item for index, item in enumerate(value)}
        properties: Mapping[str, Any] = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        extra = [key for key in found if key not in properties]
        if extra and (additional is None or additional is False):
            raise ParamsMismatch(f"Unexpected keys: {', '.join(map(json_string, extra))}")
        if isinstance(additional, Mapping):
            for key in extra:
                self.value(found[key], additional, definitions, depth + 1)
        missing = [key for key in properties if key not in found]
        if missing:
            raise ParamsMismatch(f"Missing keys: {', '.join(map(json_string, missing))}")
        for key, item_schema in properties.items():
            self.value(found[key], item_schema, definitions, depth + 1)
        if additional is not None and additional is not False:
            minimum = max(schema.get("minProperties") or 0, len(properties))
            _check_count(len(found), minimum, schema.get("maxProperties"), "properties")

    def _check_one_of(self, value: Any, schemas: list[Mapping[str, Any]], definitions: Definitions, depth: int) -> None:
        for schema in schemas:
            try:
                self.value(value, schema, definitions, depth + 1)
            except CheckTooLarge:
                raise
            except ParamsMismatch:
                continue
            return
        raise ParamsMismatch(f"Expected one of {len(schemas)} schemas but got {json_compact(value)}")


def _check_string(value: Any, schema: Mapping[str, Any]) -> None:
    if not isinstance(value, str):
        raise ParamsMismatch(f'Expected type "string" but got "{_type_name(value)}"')
    form = schema.get("format")
    if form is None:
        # JavaScript counts UTF-16 units.
        length = len(value.encode("utf-16-le", "surrogatepass")) // 2
        _check_count(length, max(0, schema.get("minLength") or 0), schema.get("maxLength"), "characters")
        return
    pattern = _FORMATS.get(form)
    if pattern is None:
        raise ParamsMismatch(f'Unknown format "{form}"')
    if pattern.fullmatch(value) is None:
        raise ParamsMismatch(f"Expected a valid {form} string but got {json_string(value)}")


def _check_count(count: int, minimum: int, maximum: int | None, noun: str) -> None:
    if maximum is not None:
        maximum = max(maximum, minimum)
    if count < minimum:
        bound, limit = "least", minimum
    elif maximum is not None and count > maximum:
        bound, limit = "most", maximum
    else:
        return
    how = "exactly" if minimum == maximum else f"at {bound}"
    raise ParamsMismatch(f"Expected {how} {limit} {noun} but got {count}")


def _identical(value: Any, other: Any) -> bool:
    """JavaScript's `===` for JSON values: lists and objects are never identical to another."""
    if isinstance(value, dict | list) or isinstance(value, bool) != isinstance(other, bool):
        return False
    return bool(value == other)


def _has_type(value: Any, kind: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or (math.isfinite(value) and value % 1 == 0)
    raise ParamsMismatch(f"Unknown immutable type {'undefined' if kind is None else json_compact(kind)}")


def _type_name(value: Any) -> str:
    return "null" if value is None else _js_typeof(value)


def _js_typeof(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, int | float) else "object"

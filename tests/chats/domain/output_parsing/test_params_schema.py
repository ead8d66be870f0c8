"""Params against a function's schema."""

from typing import Any

import pytest

from chats.domain.output_parsing.params_schema import CheckTooLarge, ParamsMismatch, check_params

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TREE: dict[str, Any] = {
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}}
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    ("params", "schema"),
    [
        ({"city": "Rome"}, CITY),
        ({"city": "Rome", "x": 1}, {**CITY, "additionalProperties": True}),
        ([1, "a"], {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
        ("2024-02-03", {"type": "string", "format": "date"}),
        (1.0, {"type": "integer"}),
        (None, {"type": ["string", "null"]}),
        ({"next": {"next": None}}, TREE),
        ("anything", {"$ref": "#/$defs/unknown"}),
        (1, {"enum": ["a", 1]}),
    ],
)
def test_params_that_fit(params: Any, schema: dict[str, Any]) -> None:
    check_params(params, schema)


@pytest.mark.parametrize(
    ("params", "schema", "message"),
    [
        ({"city": 5}, CITY, 'Expected type "string" but got "number"'),
        ({}, CITY, 'Missing keys: "city"'),
        ({"city": "a", "b": 1}, CITY, 'Unexpected keys: "b"'),
        ([], CITY, 'Missing keys: "city"'),
        ("x", CITY, 'Expected an object but got "string"'),
        ({"a": 1}, {"type": "array"}, 'Expected an array but got "object"'),
        ([1], {"type": "array", "minItems": 2, "maxItems": 2}, "Expected exactly 2 items but got 1"),
        ([1, 2, 3], {"type": "array", "maxItems": 2}, "Expected at most 2 items but got 3"),
        ("😀", {"type": "string", "maxLength": 1}, "Expected at most 1 characters but got 2"),
        ("noon", {"type": "string", "format": "time"}, 'Expected a valid time string but got "noon"'),
        (True, {"enum": [1]}, "Expected one of [1] but got true"),
        (2, {"const": 1}, "Expected 1 but got 2"),
        ("x", {"oneOf": [{"type": "number"}, {"type": "null"}]}, 'Expected one of 2 schemas but got "x"'),
        (1.5, {"type": ["integer", "null"]}, 'Expected one type of ["integer", "null"] but got type "number"'),
        (None, {"type": "boolean"}, 'Expected type "boolean" but got "null"'),
    ],
)
def test_params_that_do_not_fit(params: Any, schema: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsMismatch) as caught:
        check_params(params, schema)
    assert str(caught.value) == message


def test_endless_nesting_is_refused() -> None:
    params: Any = None
    for _ in range(5000):
        params = {"next": params}
    with pytest.raises(CheckTooLarge):
        check_params(params, TREE)


def test_alternatives_that_multiply_are_refused() -> None:
    step = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema: dict[str, Any] = {
        "$defs": {"node": {"oneOf": [step, step, {"type": "string"}]}},
        "$ref": "#/$defs/node",
    }
    params: Any = 0
    for _ in range(60):
        params = {"next": params}
    with pytest.raises(CheckTooLarge):
        check_params(params, schema)

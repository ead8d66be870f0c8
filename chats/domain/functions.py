"""Descriptions of offered functions for a model (chat-wrappers.md section 8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from chats.domain.history_items import Functions
from chats.domain.js_json import ABSENT, JS_WHITESPACE, js_number, js_ordered, js_trim, json_compact, json_dumps

_TYPE_NAMES: Final = (
    ("string", "string"),
    ("number", "number"),
    ("integer", "bigint"),
    ("boolean", "boolean"),
    ("null", "null"),
)
_DEFINITIONS = "#/$defs/"


class ReservedName(ValueError):
    """A function has a name that the format uses itself."""

    def __init__(self, name: str) -> None:
        super().__init__(f'Function name "{name}" is reserved and cannot be used')
        self.name = name


def typescript_signatures(functions: Functions, document_params: bool = True) -> str:
    """`function NAME(params: TYPE);`, one a block (section 8.1)."""
    blocks = []
    for name, definition in js_ordered(functions):
        params = definition.get("params")
        inside = ""
        if params is not None:
            inside = f"params: {schema_type(params)}" if document_params else "params"
        blocks.append(f"{_comment(definition)}function {name}({inside});")
    return "\n\n".join(blocks)


def typescript_types(functions: Functions, document_params: bool = True, reserved: Collection[str] = ()) -> str:
    """`type NAME = (_: TYPE) => any;`, one a block (section 8.2). Raises ReservedName."""
    blocks = []
    for name, definition in js_ordered(functions):
        if name in reserved:
            raise ReservedName(name)
        params = definition.get("params")
        inside = f"_: {schema_type(params)}" if document_params and params is not None else ""
        blocks.append(f"{_comment(definition)}type {name} = ({inside}) => any;")
    return "\n\n".join(blocks)


def llama_3_1_signatures(functions: Functions, document_params: bool = True) -> str:
    """`Use the function 'NAME' to: …` and the JSON object of the function (section 8.3)."""
    blocks = []
    for name, definition in js_ordered(functions):
        description = description_of(definition)
        aim = "." if description is None else f" to: {_commented_lines(description)}"
        blocks.append(f"Use the function '{name}'{aim}\n{json_dumps(_json_object(name, definition, document_params))}")
    return "\n\n".join(blocks)


def llama_3_2_signatures(functions: Functions, document_params: bool = True) -> str:
    """The JSON objects of the functions, separated by blank lines (section 8.3)."""
    return "\n\n".join(
        [json_dumps(_json_object(name, definition, document_params)) for name, definition in js_ordered(functions)]
    )


def qwen_signatures(functions: Functions, document_params: bool = True) -> str:
    """One JSON object of type function a line (section 8.3)."""
    return "\n".join([json_dumps(tool) for tool in _qwen_tools(functions, document_params)])


def seed_signatures(functions: Functions, document_params: bool = True) -> str:
    """A JSON list of the objects that Qwen gets one a line (section 8.3)."""
    return json_dumps(_qwen_tools(functions, document_params))


def mistral_tools(functions: Functions, document_params: bool = True) -> str:
    """A JSON list of objects of type function; blank descriptions and null params are left out (section 10.9)."""
    return json_dumps(
        [
            {"type": "function", "function": _json_object(name, definition, document_params)}
            for name, definition in js_ordered(functions)
        ]
    )


def description_of(definition: Mapping[str, Any]) -> str | None:
    """The description, untrimmed, or None if it's blank."""
    description = definition.get("description")
    return description if isinstance(description, str) and js_trim(description) else None


def _qwen_tools(functions: Functions, document_params: bool) -> list[dict[str, Any]]:
    tools = []
    for name, definition in js_ordered(functions):
        function = {
            "name": name,
            "description": definition.get("description", ABSENT),
            "parameters": definition.get("params", ABSENT) if document_params else ABSENT,
        }
        tools.append({"type": "function", "function": function})
    return tools


def _json_object(name: str, definition: Mapping[str, Any], document_params: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": name}
    description = description_of(definition)
    if description is not None:
        out["description"] = description
    params = definition.get("params")
    if document_params and params is not None:
        out["parameters"] = params
    return out


def _comment(definition: Mapping[str, Any]) -> str:
    description = description_of(definition)
    return "" if description is None else f"// {_commented_lines(description)}\n"


def _commented_lines(text: str) -> str:
    return text.replace("\n", "\n// ")


def schema_type(schema: Mapping[str, Any]) -> str:
    """The TypeScript type of a JSON-schema-like object (section 8.4); empty if nothing is known of it."""
    return _SchemaPrinter().type_of(schema, {})


_Scope = dict[str, tuple[Mapping[str, Any], "Any"]]


class _SchemaPrinter:
    """Prints one schema; remembers which definitions it has spelled out already."""

    def __init__(self) -> None:
        self._printed: set[int] = set()

    def type_of(self, schema: Mapping[str, Any], outer: _Scope) -> str:
        scope = _inner_scope(schema, outer)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._reference(reference, scope)
        if isinstance(schema.get("oneOf"), list):
            return " | ".join([self.type_of(alternative, scope) for alternative in schema["oneOf"]])
        if schema.get("const", ABSENT) is not ABSENT:
            return json_compact(schema["const"])
        if isinstance(schema.get("enum"), list):
            return " | ".join([json_compact(value) for value in schema["enum"]])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, scope)
        if kind == "array":
            return self._array(schema, scope)
        kinds = kind if isinstance(kind, list) else [kind]
        return " | ".join([printed for name, printed in _TYPE_NAMES if name in kinds])

    def _reference(self, reference: str, scope: _Scope) -> str:
        name = reference.removeprefix(_DEFINITIONS)
        if name == reference or name not in scope:
            return "any"
        definition, home = scope[name]
        label = name.replace("\n", " ").replace("*/", "* /")
        if id(definition) in self._printed:
            return f"/* {label} type */ any"
        self._printed.add(id(definition))
        return f"/* Type: {label} */ {self.type_of(definition, home)}"

    def _object(self, schema: Mapping[str, Any], scope: _Scope) -> str:
        properties = []
        has_notes = False
        for key, value in js_ordered(schema.get("properties") or {}):
            printed_key = json_compact(key)
            if printed_key[1:-1] == key:
                printed_key = key
            printed_type = self.type_of(value, scope)
            if not printed_key or not printed_type:
                continue
            notes = _notes(value)
            mapping = f"{printed_key}: {printed_type}"
            if notes:
                has_notes = True
                mapping = f"\n// {_commented_lines(notes)}\n{mapping}"
            properties.append(mapping)
        rest = self._additional(schema.get("additionalProperties"))
        if not properties and rest:
            return rest
        if has_notes:
            lines = ",\n".join([mapping.replace("\n", "\n    ") for mapping in properties])
            printed = "{\n    " + lines.lstrip(JS_WHITESPACE) + "\n}"
        else:
            printed = "{" + ", ".join(properties) + "}"
        return f"{printed} & {rest}" if rest else printed

    def _additional(self, additional: Any) -> str:
        if additional is True:
            return "{[key: string]: any}"
        if isinstance(additional, Mapping):
            # The original types it without the outer definitions.
            return f"{{[key: string]: {self.type_of(additional, {})}}}"
        return ""

    def _array(self, schema: Mapping[str, Any], scope: _Scope) -> str:
        least = schema.get("minItems")
        most = schema.get("maxItems")
        if most == 0:
            return "[]"
        items = schema.get("items")
        prefix_items = schema.get("prefixItems")
        if prefix_items:
            return self._tuple(prefix_items, items, least, most, scope)
        if items is None:
            return "any[]"
        item = self.type_of(items, scope)
        if not item:
            return "[]"
        if least is not None and least == most:
            if least < 10:
                return f"[{', '.join([item] * math.ceil(least))}]"
            return f"[{', '.join([item] * 10)}, ...{_array_of(item)}]"
        if least is not None and 1 <= least < 10:
            return f"[{', '.join([item] * math.ceil(least))}, ...{_array_of(item)}]"
        return _array_of(item)

    def _tuple(self, prefix_items: list[Any], items: Any, least: Any, most: Any, scope: _Scope) -> str:
        # Here, too, outer definitions are unknown to the original.
        entries = [self.type_of(item, {}) for item in prefix_items]
        rest = "any" if items is None else self.type_of(items, scope)
        if least is not None:
            wanted = min(len(prefix_items) + 10, least)
            while len(entries) < wanted:
                entries.append(rest)
        if most is None or most > len(entries):
            entries.append(f"...{_array_of(rest)}")
        return f"[{', '.join(entries)}]"


def _inner_scope(schema: Mapping[str, Any], outer: _Scope) -> _Scope:
    definitions = schema.get("$defs")
    if not definitions:
        return outer
    scope = dict(outer)
    for name, definition in definitions.items():
        # Each definition sees the scope it was registered in, itself included.
        scope[name] = (definition, scope)
    return scope


def _array_of(item: str) -> str:
    needs_parentheses = any(character in item for character in " |&\n\t")
    return f"({item})[]" if needs_parentheses else f"{item}[]"


def _notes(schema: Mapping[str, Any]) -> str:
    lines = []
    description = schema.get("description")
    if description:
        lines.append(description)
    facts = _FACTS.get(schema.get("type"), _no_facts)(schema) if isinstance(schema.get("type"), str) else []
    if facts:
        lines.append(", ".join(facts))
    return "\n".join(lines)


def _no_facts(_schema: Mapping[str, Any]) -> list[str]:
    return []


def _string_facts(schema: Mapping[str, Any]) -> list[str]:
    form = schema.get("format")
    if form is not None:
        return ["format: ISO 8601 date-time" if form == "date-time" else f"format: {form}"]
    return _limits(schema, "length", "minLength", "maxLength", 0)


def _array_facts(schema: Mapping[str, Any]) -> list[str]:
    return _limits(schema, "items", "minItems", "maxItems", 10)


def _object_facts(schema: Mapping[str, Any]) -> list[str]:
    return _limits(schema, "number of properties", "minProperties", "maxProperties", 0)


_FACTS: Final[dict[Any, Callable[[Mapping[str, Any]], list[str]]]] = {
    "string": _string_facts,
    "array": _array_facts,
    "object": _object_facts,
}


def _limits(schema: Mapping[str, Any], what: str, least_key: str, most_key: str, not_worth_saying: int) -> list[str]:
    facts = []
    least = schema.get(least_key)
    most = schema.get(most_key)
    if least is not None and least > not_worth_saying:
        facts.append(f"minimum {what}: {js_number(math.floor(least))}")
    if most is not None:
        facts.append(f"maximum {what}: {js_number(math.floor(max(most, least or 0, 0)))}")
    return facts

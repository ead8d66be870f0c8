"""What the buttons beside a field do to what was typed: add, remove, move, write it as the base has it."""

from __future__ import annotations

from chats.domain.recipes import Recipe
from chats.domain.wrappers import WRAPPERS
from chats.wrapper_forms import parts, settings
from chats.wrapper_forms.settings import value_at

_OPERATIONS = ("add", "remove", "up", "down", "additem", "removeitem", "reset")


def operate(data: dict[str, str], operation: str, recipe: Recipe) -> str:
    """Carry out what a button asks for, such as `up:s.functions.call.prefix.2`.

    Returns the id of the control that gets the focus then; empty for what can't be done.
    """
    word, _colon, name = operation.partition(":")
    if word not in _OPERATIONS or not name:
        return ""
    if word == "add":
        return f"{name}.{parts.add_part(name, data)}.text"
    if word == "additem":
        return f"{name}.{parts.add_item(name, data)}.0.text"
    if word == "reset":
        reset(data, name, recipe)
        return f"{name}.reset"
    above, _dot, number = name.rpartition(".")
    if not number.isdecimal() or len(number) > 6:
        return ""
    if word in ("remove", "removeitem"):
        parts.remove(above, int(number), data)
        return f"{above}.add"
    moved = parts.move(above, int(number), -1 if word == "up" else 1, data)
    return f"{above}.{moved}.{word}"


def reset(data: dict[str, str], name: str, recipe: Recipe) -> None:
    """Write a field as the base has it."""
    registered = WRAPPERS.get(recipe.base)
    if registered is None:
        return
    if name.startswith("w."):
        key = name[2:]
        default = registered.wrapper_class.default_wording(registered.options(recipe.options)).get(key)
        if default is not None:
            parts.clear(name, data)
            data[f"{name}.has"] = "1"
            parts.encode_text(default.to_json(), name, data)
        return
    one = settings.FIELDS.get(name)
    if one is not None:
        settings.encode_field(one, value_at(recipe.base_settings().to_json(), one.path), data)


def field_of_operation(operation: str) -> str:
    """The field that a button belongs to."""
    name = operation.partition(":")[2]
    if name.startswith("w."):
        return ".".join(name.split(".")[:2])
    keys = name.split(".")
    while keys and ".".join(keys) not in settings.FIELDS:
        keys.pop()
    return ".".join(keys)

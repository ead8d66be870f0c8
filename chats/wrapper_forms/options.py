"""Options of a built-in wrapper as a form, made from the model that reads them.

Each option is left as it is, or has a value of its own. Options are few and differ per wrapper, so their names are the
original's own, and only the words around them are ours.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Union

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chats.domain.js_json import Absence
from chats.domain.wrappers.base import WrapperOptions
from chats.wrapper_forms.settings import FormError

OptionKind = Literal["bool", "choice", "text", "long_text", "number", "date"]
PREFIX = "o"


@dataclass(frozen=True)
class OptionField:
    """One option: path by JSON names, what it takes, whether it may be null, and what holds when it is left alone."""

    path: tuple[str, ...]
    kind: OptionKind
    nullable: bool
    required: bool
    choices: tuple[str, ...]
    default: str

    @property
    def name(self) -> str:
        return ".".join((PREFIX, *self.path))

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    @property
    def is_internal(self) -> bool:
        """Meant for recognising published templates."""
        return any(key.startswith("_") for key in self.path)


def option_fields(model: type[WrapperOptions]) -> list[OptionField]:
    return list(_fields(model, ()))


def _fields(model: type[BaseModel], path: tuple[str, ...], optional: bool = False) -> Iterator[OptionField]:
    for name, info in model.model_fields.items():
        below = (*path, info.alias or name)
        kinds = _alternatives(info.annotation)
        nested = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if nested is not None:
            yield from _fields(nested, below, optional or type(None) in kinds)
        else:
            yield _leaf(below, info, kinds, optional)


def _alternatives(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return [kind for part in typing.get_args(annotation) for kind in _alternatives(part)]
    if typing.get_origin(annotation) is typing.Annotated:
        return _alternatives(typing.get_args(annotation)[0])
    return [annotation]


def _leaf(path: tuple[str, ...], info: FieldInfo, kinds: list[Any], optional: bool) -> OptionField:
    literals = [value for kind in kinds if typing.get_origin(kind) is Literal for value in typing.get_args(kind)]
    kind: OptionKind = "text"
    if bool in kinds:
        kind = "bool"
    elif literals:
        kind = "choice"
    elif datetime in kinds:
        kind = "date"
    elif int in kinds or float in kinds:
        kind = "number"
    elif "emplate" in path[0]:
        kind = "long_text"
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    shown = "" if default is None or isinstance(default, Absence) else _shown(default)
    required = info.is_required() and not optional
    return OptionField(path, kind, type(None) in kinds, required, tuple(map(str, literals)), shown)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


def encoded(model: type[WrapperOptions], options: Mapping[str, Any]) -> dict[str, str]:
    """The form of options in JSON form."""
    data: dict[str, str] = {}
    for one in option_fields(model):
        value: Any = options
        there = True
        for key in one.path:
            there = isinstance(value, Mapping) and key in value
            if not there:
                break
            value = value[key]
        if not there:
            data[f"{one.name}.is"] = ""
        elif value is None:
            data[f"{one.name}.is"] = "none"
        else:
            data[f"{one.name}.is"] = "own"
            data[one.name] = value if isinstance(value, str) else json.dumps(value)
    return data


def decoded(model: type[WrapperOptions], data: Mapping[str, str]) -> dict[str, Any]:
    """The options that a form stands for, in JSON form. Raises FormError for a number that is none."""
    out: dict[str, Any] = {}
    for one in option_fields(model):
        state = data.get(f"{one.name}.is", "")
        if state not in ("own", "none"):
            continue
        there = out
        for key in one.path[:-1]:
            there = there.setdefault(key, {})
        there[one.path[-1]] = None if state == "none" else _value(one, data.get(one.name, ""))
    return out


def _value(one: OptionField, text: str) -> Any:
    if one.kind == "bool":
        return text == "true"
    if one.kind not in ("number", "date"):
        return text
    try:
        value = json.loads(text.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    except ValueError:
        pass
    if one.kind == "date":
        return text.strip()
    raise FormError(one.name, "float_type")

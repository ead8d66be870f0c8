"""A chat template with what it is given, as a form: texts by name, special tokens, typed keyword arguments, habits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from chats.domain.chat_templates import (
    PASSED_NAMES,
    PROFILES,
    SPECIAL_TOKEN_NAMES,
    Profile,
    ServerHabits,
    TemplateVariable,
)
from chats.domain.recipes import Recipe
from chats.wrapper_forms.parts import indexes
from chats.wrapper_forms.settings import FormError

HABITS: Final = (
    ("parse_arguments", _("Arguments of calls given as JSON text become objects")),
    ("join_text_parts", _("Contents in parts become one text")),
    ("empty_null_content", _("A missing content becomes an empty text")),
)
_MAX_ARGUMENTS: Final = 40


@dataclass(frozen=True)
class ArgumentView:
    """A keyword argument as the form shows it. `known` tells that the template reads it, at line `line`."""

    index: int
    name: str
    type: str
    value: str
    known: bool
    line: int | None = None
    choices: Sequence[str] = ()
    looks_boolean: bool = False

    @property
    def form_name(self) -> str:
        return f"k.{self.index}"


def encoded(recipe: Recipe) -> dict[str, str]:
    """The form of a template's record, its texts with the line ends that a text area has."""
    data = {"template": _typed(recipe.template), "template_profile": recipe.profile}
    for index, (name, text) in enumerate(recipe.named_templates.items()):
        data[f"n.{index}.name"] = name
        data[f"n.{index}.text"] = _typed(text)
    for name in SPECIAL_TOKEN_NAMES:
        if name in recipe.tokens:
            data[f"t.{name}"] = recipe.tokens[name]
            data[f"t.{name}.is"] = "on"
    for index, (name, value) in enumerate(recipe.kwargs.items()):
        data[f"k.{index}.name"] = name
        data[f"k.{index}.type"], data[f"k.{index}.value"] = _argument(value)
    data.update({f"h.{name}": "on" for name, on in asdict(recipe.habits).items() if on})
    return data


def decoded(data: Mapping[str, str], before: Recipe) -> Recipe:
    """The record that a form stands for. A text that reads as the one before keeps that one's line ends, byte for byte.

    Raises FormError for an argument that is no number or no JSON.
    """
    named = {}
    for index in indexes("n", data):
        name = data.get(f"n.{index}.name", "").strip()
        if name:
            named[name] = _kept(data.get(f"n.{index}.text", ""), before.named_templates.get(name, ""))
    tokens = {}
    for name in SPECIAL_TOKEN_NAMES:
        text = data.get(f"t.{name}", "")
        if text or data.get(f"t.{name}.is") == "on":
            tokens[name] = text
    profile: Profile = next((known for known in PROFILES if known == data.get("template_profile")), "current")
    return Recipe(
        template=_kept(data.get("template", ""), before.template),
        named_templates=named,
        tokens=tokens,
        kwargs=_arguments(data),
        profile=profile,
        habits=ServerHabits(**{name: data.get(f"h.{name}") == "on" for name, _label in HABITS}),
    )


def argument_views(data: Mapping[str, str], variables: Sequence[TemplateVariable]) -> list[ArgumentView]:
    """The given arguments and those that the template reads, each once; then room for one more."""
    read = {variable.name: variable for variable in variables}
    views = []
    given = [index for index in indexes("k", data) if data.get(f"k.{index}.name", "").strip()]
    for index in given:
        name = data[f"k.{index}.name"].strip()
        kind, value = data.get(f"k.{index}.type", ""), data.get(f"k.{index}.value", "")
        views.append(_view(index, name, kind, value, read.pop(name, None)))
    following = max(given, default=-1) + 1
    for index, variable in enumerate(read.values(), start=following):
        views.append(_view(index, variable.name, "", "", variable))
    views.append(ArgumentView(following + len(read), "", "", "", known=True))
    return views[:_MAX_ARGUMENTS]


def _view(index: int, name: str, kind: str, value: str, variable: TemplateVariable | None) -> ArgumentView:
    if variable is None:
        return ArgumentView(index, name, kind, value, known=name in (*PASSED_NAMES, *SPECIAL_TOKEN_NAMES))
    return ArgumentView(index, name, kind, value, True, variable.line, variable.choices, variable.looks_boolean)


def _arguments(data: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index in indexes("k", data):
        name, kind = data.get(f"k.{index}.name", "").strip(), data.get(f"k.{index}.type", "")
        text = data.get(f"k.{index}.value", "")
        if not name or not kind:
            continue
        if kind in ("true", "false"):
            found[name] = kind == "true"
        elif kind == "text":
            found[name] = text
        else:
            found[name] = _parsed(f"k.{index}", kind, text)
    return found


def _parsed(name: str, kind: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormError(name, "float_type" if kind == "number" else "not_json") from error
    if kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise FormError(name, "float_type")
    return value


def _argument(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return ("true" if value else "false"), ""
    if isinstance(value, str) and not any(c < " " and c != "\n" for c in value):
        return "text", value
    kind = "number" if isinstance(value, int | float) else "json"
    return kind, json.dumps(value)


def _typed(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _kept(typed: str, before: str) -> str:
    return before if typed == _typed(before) else typed

"""What the page shows of the form: fields in groups, options, and what differs from the base."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from chats.domain.llama_text import LlamaText
from chats.domain.recipes import Recipe, RecipeError
from chats.domain.wrappers import WRAPPERS
from chats.wrapper_forms import options, parts, settings
from chats.wrapper_forms.settings import ABSENT, FormError, SettingsField, value_at
from chats.wrapper_forms.state import EditorState

WORDING_LABELS: Mapping[str, str | Promise] = {
    "functions": _("Introduces the offered functions"),
    "systemPrompt": _("System message of a new chat"),
    "functionsNote": _("Second note after the functions"),
    "toolInstructions": _("Tool instructions"),
    "modelIdentity": _("Who the model is"),
    "commentaryChannel": _("Which channel calls go to"),
    "noThinking": _("System message without thinking"),
    "noThinkingThought": _("Thought without thinking"),
    "thinkingBudget": _("System message with a thinking budget"),
    "defaultSystem": _("System message when a chat has none"),
}


@dataclass(frozen=True)
class ItemView:
    name: str
    index: int
    parts: Sequence[parts.PartView]


@dataclass(frozen=True)
class FieldView:
    """A field with its value and state; `is_changed` compares with the base."""

    name: str
    label: str | Promise
    help: str | Promise
    kind: str
    value: str
    state: str
    is_changed: bool
    errors: Sequence[str]
    parts: Sequence[parts.PartView] = ()
    items: Sequence[ItemView] = ()
    text: str = ""
    after: str = ""
    inside: str = ""

    @property
    def dom_id(self) -> str:
        """Fit for a selector, which a name with dots isn't."""
        return self.name.replace(".", "-")

    @property
    def is_wording(self) -> bool:
        return self.name.startswith("w.")


@dataclass(frozen=True)
class GroupView:
    key: str
    title: str | Promise
    fields: Sequence[FieldView]

    @property
    def changed(self) -> int:
        return sum(field.is_changed for field in self.fields)


def group_views(state: EditorState) -> list[GroupView]:
    """The settings, grouped; each field compared with the base."""
    try:
        base = state.recipe.base_settings().to_json()
    except RecipeError:
        base = Recipe(base=state.recipe.base).base_settings().to_json()
    return [
        GroupView(group.key, group.title, [_field_view(one, state, base) for one in group.fields])
        for group in settings.GROUPS
    ]


def field_view(state: EditorState, name: str) -> FieldView | None:
    """One field, for the answer to its buttons."""
    if name.startswith("w."):
        return next((view for view in wording_views(state) if view.name == name), None)
    one = settings.FIELDS.get(name)
    return None if one is None else _field_view(one, state, state.recipe.base_settings().to_json())


def _field_view(one: SettingsField, state: EditorState, base: Mapping[str, Any]) -> FieldView:
    data, name = state.data, one.name
    above = _objects_over(one)
    base_value = value_at(base, one.path)
    try:
        # A field of an object that isn't there has no value, whatever still stands in it.
        is_there = all(data.get(f"{'.'.join((settings.PREFIX, *path))}.is") == "on" for path in above)
        value = settings.decode_field(one, data) if is_there else ABSENT
        changed = _differs(one, value, base_value)
    except FormError:
        changed = True
    items = []
    if one.kind == "maybe_texts":
        items = [
            ItemView(f"{name}.{index}", index, parts.part_views(f"{name}.{index}", data))
            for index in parts.indexes(name, data)
        ]
    has_parts = one.kind in ("text", "maybe_text", "thought_prefix")
    return FieldView(
        name=name,
        label=one.label,
        help=one.help,
        kind=one.kind,
        value=data.get(name, ""),
        state=data.get(f"{name}.is", ""),
        is_changed=changed,
        errors=state.problems.get(name, ()),
        parts=parts.part_views(name, data) if has_parts else (),
        items=items,
        text=data.get(f"{name}.text", ""),
        after=data.get(f"{name}.after", ""),
        inside=".".join(("s", *above[-1])) if above else "",
    )


def _objects_over(one: SettingsField) -> list[tuple[str, ...]]:
    objects = {f.path for f in settings.FIELDS.values() if f.kind == "object"}
    return [one.path[:n] for n in range(1, len(one.path)) if one.path[:n] in objects]


def _differs(one: SettingsField, value: Any, base: Any) -> bool:
    if one.kind == "object":
        return (value is ABSENT) != (base is ABSENT)
    if value is ABSENT or base is ABSENT:
        return value is not base
    if one.kind in ("text", "maybe_text"):
        return bool(_text(value) != _text(base))
    if one.kind == "maybe_texts":
        return [_text(item) for item in value] != [_text(item) for item in base]
    if one.kind == "thought_prefix" and not isinstance(value, Mapping) and not isinstance(base, Mapping):
        return bool(_text(value) != _text(base))
    return json.dumps(value) != json.dumps(base)


def _text(value: Any) -> LlamaText:
    return LlamaText.from_json(value)


def wording_views(state: EditorState) -> list[FieldView]:
    """The sentences that the wrapper says itself."""
    recipe = state.recipe
    registered = WRAPPERS[recipe.base]
    try:
        defaults = registered.wrapper_class.default_wording(registered.options(recipe.options))
    except ValueError:
        return []
    views = []
    for key, default in defaults.items():
        name = f"w.{key}"
        if f"{name}.has" not in state.data:
            state.data[f"{name}.has"] = "1"
            parts.encode_text(recipe.wording.get(key, default.to_json()), name, state.data)
        value = parts.decode_text(name, state.data)
        views.append(
            FieldView(
                name=name,
                label=WORDING_LABELS.get(key, key),
                help="",
                kind="text",
                value="",
                state="on",
                is_changed=_text(value) != default,
                errors=state.problems.get(name, ()),
                parts=parts.part_views(name, state.data),
            )
        )
    return views


@dataclass(frozen=True)
class OptionView:
    field: options.OptionField
    state: str
    value: str
    errors: Sequence[str]


def option_views(state: EditorState) -> list[OptionView]:
    """The options of the base, the internal ones last."""
    registered = WRAPPERS.get(state.recipe.base)
    found = options.option_fields(registered.options_model) if registered else []
    found = sorted(found, key=lambda one: one.is_internal)
    data = state.data
    return [
        OptionView(one, data.get(f"{one.name}.is", ""), data.get(one.name, ""), state.problems.get(one.name, ()))
        for one in found
    ]


@dataclass(frozen=True)
class ChangeRow:
    """What differs from the base at one path; values in JSON, None where one side has nothing."""

    part: str
    path: str
    base: str | None
    own: str | None


def change_rows(recipe: Recipe) -> list[ChangeRow]:
    """Every difference to the base by path: settings, options, wording."""
    rows = [ChangeRow("options", key, None, _json(value)) for key, value in recipe.options.items()]
    if recipe.is_template:
        return []
    try:
        base, own = recipe.base_settings(), recipe.wrapper().settings
    except RecipeError:
        return rows
    for one in settings.FIELDS.values():
        before, after = value_at(base.to_json(), one.path), value_at(own.to_json(), one.path)
        if _differs(one, after, before):
            rows.append(ChangeRow("settings", one.dotted, _shown(one, before), _shown(one, after)))
    registered = WRAPPERS[recipe.base]
    defaults = registered.wrapper_class.default_wording(registered.options(recipe.options))
    for name, value in recipe.wording.items():
        default = defaults.get(name)
        rows.append(ChangeRow("wording", name, None if default is None else _json(default.to_json()), _json(value)))
    return rows


def _shown(one: SettingsField, value: Any) -> str | None:
    if value is ABSENT:
        return None
    return "{…}" if one.kind == "object" else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

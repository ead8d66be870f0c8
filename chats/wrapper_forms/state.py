"""The editor's whole form: what was typed, what it stands for, and what the page shows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from chats.domain.llama_text import LlamaText
from chats.domain.recipes import Recipe, RecipeError, RecipeProblem
from chats.domain.wrapper_settings import ChatWrapperSettings, SettingsError, difference
from chats.domain.wrappers import WRAPPERS
from chats.wrapper_forms import options, parts, settings, templates
from chats.wrapper_forms.settings import ABSENT, FormError, SettingsField, value_at
from chats.wrapper_sentences import problem_sentence

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
# Characters that a text area changes or a page can't hold; JSON may escape any.
_UNSHOWABLE = re.compile("[\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")
_OPERATIONS = ("add", "remove", "up", "down", "additem", "removeitem", "reset")


@dataclass(frozen=True)
class JsonProblem:
    """Where the JSON tab's text stops being JSON, or settings: character, line and column from 1."""

    message: str
    start: int
    line: int
    column: int


@dataclass
class EditorState:
    """What the form holds. `recipe` is the last value that could be read; `problems` say what couldn't, by field name.

    `data` are the posted texts. In the JSON tab `json_text` is what stands there, and `json_problem` where it breaks.
    """

    recipe: Recipe
    data: dict[str, str]
    problems: dict[str, list[str]] = field(default_factory=dict)
    tab: str = "form"
    json_text: str = ""
    json_problem: JsonProblem | None = None
    base_changed: bool = False

    @property
    def is_good(self) -> bool:
        return not self.problems and self.json_problem is None

    def resolved_settings(self) -> ChatWrapperSettings | None:
        """The settings with all changes; None if they can't be built."""
        try:
            return self.recipe.wrapper().settings
        except RecipeError:
            return None


def state_of(recipe: Recipe, tab: str = "form") -> EditorState:
    """The form of a stored record. A record that can't be built any more shows its base, with what is wrong."""
    if recipe.is_template:
        return EditorState(recipe, templates.encoded(recipe))
    problems: dict[str, list[str]] = {}
    try:
        shown = recipe.wrapper().settings
    except RecipeError as error:
        problems = _by_field(error.problems)
        shown = Recipe(base=recipe.base).base_settings()
    data = _settings_data(recipe, shown)
    text = _UNSHOWABLE.sub(_escaped, json.dumps(shown.to_json(), ensure_ascii=False, indent=2))
    return EditorState(recipe, data, problems, tab if tab == "json" else "form", text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def posted_state(data: dict[str, str], stored: Recipe) -> EditorState:
    """What was posted. `stored` is the record as it is on the server: its base, and line ends of templates."""
    if stored.is_template:
        try:
            return EditorState(templates.decoded(data, stored), data)
        except FormError as error:
            return EditorState(stored, data, {error.name: [_problem(error)]})
    return _posted_settings(data, stored)


def _posted_settings(data: dict[str, str], stored: Recipe) -> EditorState:
    registered = WRAPPERS[stored.base]
    tab = "json" if data.get("tab") == "json" else "form"
    state = EditorState(stored, data, tab=tab, json_text=data.get("settings_json", ""))
    try:
        chosen = options.decoded(registered.options_model, data)
        shown_over = replace(stored, options=json.loads(data.get("shown_options") or "{}")).base_settings()
        values, problem = _values(data, tab)
        if problem is not None:
            state.json_problem = problem
            values = json.loads(data.get("settings_good") or "null") or shown_over.to_json()
        posted = ChatWrapperSettings.from_json(values)
        changes = difference(shown_over, posted)
        recipe = replace(stored, options=chosen, changes=changes, wording=_wording(data, stored, chosen))
        recipe.wrapper()
    except FormError as error:
        state.problems[error.name] = [_problem(error)]
        return state
    except SettingsError as error:
        found = [RecipeProblem("settings", p.path, p.code, p.args) for p in error.problems]
        _note_settings_problems(state, found)
        return state
    except RecipeError as error:
        _note_settings_problems(state, error.problems)
        return state
    except (ValueError, RecursionError):
        state.problems[""] = [str(_("The form can't be read. Reload the page."))]
        return state
    state.recipe = recipe
    state.base_changed = json.dumps(chosen) != (data.get("shown_options") or "{}")
    return state


def refreshed(state: EditorState) -> EditorState:
    """The same record with its form written anew: after options changed what the base says, or a change of tab."""
    return replace(state_of(state.recipe, state.tab), problems=state.problems)


def _note_settings_problems(state: EditorState, problems: Sequence[RecipeProblem]) -> None:
    if state.tab == "json":
        settings_problems = [p for p in problems if p.part == "settings"]
        if settings_problems:
            first = settings_problems[0]
            at = place_in_json(state.json_text, first.path)
            state.json_problem = _json_problem(state.json_text, at, problem_sentence(first))
            problems = [p for p in problems if p.part != "settings"]
    state.problems.update(_by_field(problems))


def _values(data: Mapping[str, str], tab: str) -> tuple[Any, JsonProblem | None]:
    if tab == "form":
        return settings.decoded(data), None
    text = data.get("settings_json", "")
    try:
        return settings.json_value(text), None
    except json.JSONDecodeError as error:
        return None, _json_problem(text, error.pos, _json_words(error))
    except (ValueError, RecursionError) as error:
        return None, _json_problem(text, 0, str(error))


def _json_words(error: json.JSONDecodeError) -> str:
    known = {
        "Expecting value": _("a value is missing here"),
        "Expecting ',' delimiter": _("a comma is missing here"),
        "Expecting ':' delimiter": _("a colon is missing here"),
        "Expecting property name enclosed in double quotes": _("a key in double quotes is missing here"),
        "Extra data": _("there is something after the end"),
        "Illegal trailing comma before end of object": _("there is a comma before the end"),
        "Illegal trailing comma before end of array": _("there is a comma before the end"),
        "Unterminated string starting at": _("this string has no end"),
    }
    return str(known.get(error.msg, error.msg))


def _json_problem(text: str, at: int, message: str) -> JsonProblem:
    before = text[:at]
    return JsonProblem(message, at, before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


def place_in_json(text: str, path: Sequence[str | int]) -> int:
    """The character at which the value of a path begins, as near as plain searching finds it."""
    at = 0
    for key in path:
        if isinstance(key, int):
            continue
        found = text.find(json.dumps(key, ensure_ascii=False), at)
        if found < 0:
            break
        at = found
    return at


def _wording(data: Mapping[str, str], stored: Recipe, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Only what differs from the default; a name that these options don't have is left out."""
    registered = WRAPPERS[stored.base]
    defaults = registered.wrapper_class.default_wording(registered.options(chosen))
    out = {}
    for name, default in defaults.items():
        if f"w.{name}.has" not in data:
            if name in stored.wording:
                out[name] = stored.wording[name]
            continue
        value = parts.decode_text(f"w.{name}", data)
        if LlamaText.from_json(value) != default:
            out[name] = value
    return out


def _settings_data(recipe: Recipe, shown: ChatWrapperSettings) -> dict[str, str]:
    registered = WRAPPERS[recipe.base]
    data = {**settings.encoded(shown.to_json()), **options.encoded(registered.options_model, recipe.options)}
    data["shown_options"] = json.dumps(dict(recipe.options))
    data["settings_good"] = json.dumps(shown.to_json())
    try:
        defaults = registered.wrapper_class.default_wording(registered.options(recipe.options))
    except ValueError:
        defaults = {}
    for name, default in defaults.items():
        data[f"w.{name}.has"] = "1"
        parts.encode_text(recipe.wording.get(name, default.to_json()), f"w.{name}", data)
    return data


def _problem(error: FormError) -> str:
    return problem_sentence(RecipeProblem("options", (), error.code))


def _by_field(problems: Sequence[RecipeProblem]) -> dict[str, list[str]]:
    """Sentences by the name of the field that they belong to; the ones that belong to none under the empty name."""
    out: dict[str, list[str]] = {}
    for problem in problems:
        name = ""
        if problem.part == "settings":
            name = field_at(problem.path)
        elif problem.part in ("options", "wording") and problem.path:
            prefix = "o" if problem.part == "options" else "w"
            name = ".".join((prefix, *(str(key) for key in problem.path if isinstance(key, str))))
        out.setdefault(name, []).append(problem_sentence(problem))
    return out


def field_at(path: Sequence[str | int]) -> str:
    """The name of the form field in which a path of the settings is edited; empty if none is."""
    keys = [key for key in path if isinstance(key, str)]
    while keys:
        name = ".".join((settings.PREFIX, *keys))
        if name in settings.FIELDS:
            return name
        keys.pop()
    return ""


# Operations of buttons: add, remove, move, reset


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


# What the page shows


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

"""The editor's whole form: what was typed, and what it stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from chats.domain.llama_text import LlamaText
from chats.domain.recipes import Recipe, RecipeError, RecipeProblem
from chats.domain.wrapper_settings import ChatWrapperSettings, SettingsError, difference
from chats.domain.wrappers import WRAPPERS
from chats.wrapper_forms import options, parts, settings, templates
from chats.wrapper_forms.json_places import JsonProblem, json_problem_at, json_words, place_in_json
from chats.wrapper_forms.settings import FormError
from chats.wrapper_sentences import problem_sentence

# Characters that a text area changes or a page can't hold; JSON may escape any.
_UNSHOWABLE = re.compile("[\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")


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
            state.json_problem = json_problem_at(state.json_text, at, problem_sentence(first))
            problems = [p for p in problems if p.part != "settings"]
    state.problems.update(_by_field(problems))


def _values(data: Mapping[str, str], tab: str) -> tuple[Any, JsonProblem | None]:
    if tab == "form":
        return settings.decoded(data), None
    text = data.get("settings_json", "")
    try:
        return settings.json_value(text), None
    except json.JSONDecodeError as error:
        return None, json_problem_at(text, error.pos, json_words(error))
    except (ValueError, RecursionError) as error:
        return None, json_problem_at(text, 0, str(error))


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

"""A wrapper record as a value: settings over a built-in base (chat-wrappers.md section 6), or a chat template.

Records are stored as texts of JSON, which keep key order and number form; a recipe is what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from chats.domain.chat_templates import PROFILES, Profile, ServerHabits, select_template
from chats.domain.llama_text import LlamaText, UnknownPart
from chats.domain.wording import Wording
from chats.domain.wrapper_settings import ChatWrapperSettings, SettingsError
from chats.domain.wrappers import (
    WRAPPERS,
    ChatWrapper,
    Clock,
    InvalidWrapper,
    OptionsError,
    build_wrapper,
    default_settings,
)

DEFAULT_TEMPLATE: Final = "default"
Part: TypeAlias = Literal["base", "options", "settings", "wording", "template"]


@dataclass(frozen=True)
class RecipeProblem:
    """One wrong place: which part of the record, the path in it, a code and its arguments.

    Codes besides those of settings and options: `unknown_base`, `invalid_options` (`message`, the wrapper's own
    words), `unknown_wording`, `no_template` (`names`).
    """

    part: Part
    path: tuple[str | int, ...]
    code: str
    args: Mapping[str, Any] = field(default_factory=dict)


class RecipeError(ValueError):
    """The record can't be made into a wrapper; `problems` has one entry a wrong place."""

    def __init__(self, problems: list[RecipeProblem]) -> None:
        super().__init__("; ".join(f"{p.part} {'.'.join(map(str, p.path))}: {p.code}" for p in problems))
        self.problems = problems


@dataclass(frozen=True)
class Recipe:
    """What a wrapper record says. With a `base` the template's fields don't count, without one the others don't.

    `changes` is the sparse difference of the settings, `wording` holds changed texts in JSON form by name.
    """

    base: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    wording: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""
    named_templates: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile = "current"
    habits: ServerHabits = field(default_factory=ServerHabits)

    @property
    def is_template(self) -> bool:
        return not self.base

    def wrapper(self, clock: Clock | None = None) -> ChatWrapper:
        """The wrapper that writes prompts as this record says. Raises RecipeError."""
        wording = self._wording()
        try:
            return build_wrapper(self.base, self.options, self.changes or None, wording, clock)
        except SettingsError as error:
            raise RecipeError([RecipeProblem("settings", p.path, p.code, p.args) for p in error.problems]) from error
        except (KeyError, OptionsError, InvalidWrapper) as error:
            raise self._options_error(error) from error
        except ValueError as error:
            raise RecipeError([RecipeProblem("wording", (), "unknown_wording", {"message": str(error)})]) from error

    def base_settings(self) -> ChatWrapperSettings:
        """The settings of the base with these options, before any change. Raises RecipeError."""
        try:
            return default_settings(self.base, self.options)
        except (KeyError, OptionsError, InvalidWrapper) as error:
            raise self._options_error(error) from error

    def unchanged(self) -> Recipe:
        """The base alone, as the product ships it: what a record is compared with."""
        return Recipe(base=self.base, options=self.options if _needs_options(self.base) else {})

    def template_for(self, tools: list[dict[str, Any]] | None) -> str:
        """The template that is taken for a chat with these tools. Raises ValueError with the names there are."""
        if not self.named_templates:
            return self.template
        every = {DEFAULT_TEMPLATE: self.template} if self.template else {}
        return select_template({**every, **self.named_templates}, tools=tools)

    def _wording(self) -> Wording:
        texts = {}
        problems = []
        for name, value in self.wording.items():
            try:
                texts[name] = LlamaText.from_json(value)
            except UnknownPart as error:
                problems.append(RecipeProblem("wording", (name, error.index), "unknown_text_part"))
            except ValueError:
                problems.append(RecipeProblem("wording", (name,), "not_a_text"))
        if problems:
            raise RecipeError(problems)
        return texts

    def _options_error(self, error: KeyError | OptionsError | InvalidWrapper) -> RecipeError:
        if isinstance(error, OptionsError):
            return RecipeError([RecipeProblem("options", p.path, p.code) for p in error.problems])
        if isinstance(error, InvalidWrapper):
            return RecipeError([RecipeProblem("options", (), "invalid_options", {"message": str(error)})])
        return RecipeError([RecipeProblem("base", (), "unknown_base", {"base": self.base})])


def _needs_options(base: str) -> bool:
    """Whether a built-in can't be built without options: the wrapper made of templates has none of its own."""
    registered = WRAPPERS.get(base)
    return registered is not None and any(f.is_required() for f in registered.options_model.model_fields.values())


TEXT_FIELDS: Final = (
    "base",
    "options",
    "settings",
    "wording",
    "template",
    "named_templates",
    "template_tokens",
    "template_kwargs",
    "template_profile",
    "serving",
)
"""Names of the stored texts that a recipe is made of."""


def recipe_from_texts(texts: Mapping[str, str]) -> Recipe:
    """Read what `recipe_to_texts` wrote; missing texts count as empty. Raises ValueError for anything else."""

    def loaded(name: str) -> dict[str, Any]:
        value = json.loads(texts.get(name) or "{}")
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no object")
        return value

    profile = texts.get("template_profile")
    habits = loaded("serving")
    if unknown := habits.keys() - ServerHabits.__dataclass_fields__.keys():
        raise ValueError(f"serving has no {min(unknown)}")
    return Recipe(
        base=texts.get("base", ""),
        options=loaded("options"),
        changes=loaded("settings"),
        wording=loaded("wording"),
        template=texts.get("template", ""),
        named_templates=loaded("named_templates"),
        tokens=loaded("template_tokens"),
        kwargs=loaded("template_kwargs"),
        profile=next((known for known in PROFILES if known == profile), "current"),
        habits=ServerHabits(**{name: value is True for name, value in habits.items()}),
    )


def recipe_to_texts(recipe: Recipe) -> dict[str, str]:
    """The texts that are stored. Escaped where JSON needs no raw character, so that any database takes them."""

    def text(value: Mapping[str, Any]) -> str:
        return json.dumps(dict(value))

    habits = {name: True for name, on in asdict(recipe.habits).items() if on}
    return {
        "base": recipe.base,
        "options": text(recipe.options),
        "settings": text(recipe.changes),
        "wording": text(recipe.wording),
        "template": recipe.template,
        "named_templates": text(recipe.named_templates),
        "template_tokens": text(recipe.tokens),
        "template_kwargs": text(recipe.kwargs),
        "template_profile": recipe.profile,
        "serving": text(habits),
    }

"""The steps by which a wrapper is found, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from chats.domain.js_json import js_trim
from chats.domain.resolving.model_facts import (
    LLAMA_3_2,
    ModelFacts,
    by_likeness,
    contained,
    is_compatible,
    lineage_names,
    nested_metadata,
    value_at,
)
from chats.domain.resolving.model_file_names import parse_model_file_name
from chats.domain.resolving.wrapper_types import SPECIALISED_TYPES, WRAPPER_IDS

# First match wins; the first two need a compatible model, too.
_MODEL_NAMES: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("llama3.2-lightweight", LLAMA_3_2),
    ("llama3.1", ("llama 3.1", "llama-3.1", "llama3.1")),
    ("llama3", ("llama 3", "llama-3", "llama3")),
    ("mistral", ("mistral", "codestral")),
    ("gemma4", ("gemma 4", "gemma-4")),
    ("gemma", ("gemma",)),
    ("harmony", ("gpt-oss", "gpt oss")),
    ("muse", ("muse glimmer", "muse-glimmer", "muse_glimmer")),
    ("seed", ("seed-oss", "seed oss")),
)
_TEMPLATE_MARKS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("seed", ("<seed:think>",)),
    ("seed", ("<seed:bos>", "<seed:eos>")),
    ("harmony", ("<|start|>", "<|channel|>")),
    ("gemma4", ("<|turn>", "<|tool_call>call:")),
    ("chatML", ("<|im_start|>",)),
    ("llama2Chat", ("[INST]",)),
    ("llama3.1", ("<|start_header_id|>", "<|end_header_id|>")),
    ("gemma", ("<start_of_turn>",)),
)
_SPACE_BEFORE_EOS = "' ' + eos_token"
_BOS_TEXTS: Final = (("llama2Chat", "<s>[INST] <<SYS>>\n"), ("chatML", "<|im_start|>system\n"))
_ARCHITECTURES: Final[Mapping[str, str]] = {
    "llama": "general",
    "falcon": "falconChat",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma4": "gemma4",
    "muse-glimmer": "muse",
}


@dataclass(frozen=True)
class Reason:
    """Why, or why not. Codes and their arguments:

    `type_given` (type), `type_unknown` (type), `type_incomplete` (type): an explicit choice;
    `template_equals` (type, options): the template renders as this wrapper does;
    `template_equals_none`, `template_kept`: no wrapper does, so the template itself is used;
    `template_broken` (message); `template_not_rendered`: there was nobody to render it;
    `model_name` (name, found), `template_mark` (marks), `file_name` (part, value), `bos_text` (text),
    `architecture` (architecture); `nothing_known`.
    """

    code: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Resolution:
    """The wrapper's type name, or None if nothing is known; its options in JSON form; the reasons in order."""

    wrapper: str | None
    options: Mapping[str, Any]
    reasons: Sequence[Reason]

    @property
    def wrapper_id(self) -> str | None:
        """The id in the register of wrappers."""
        return None if self.wrapper is None else WRAPPER_IDS[self.wrapper]


class TemplateBroken(ValueError):
    """A chat template can't be used at all; the message says why."""


class TemplateTrial(Protocol):
    """Tries a template out. It renders what somebody typed, so it works through a bounded pool of workers."""

    def equal_wrapper(self, types: Iterable[str]) -> tuple[str, Mapping[str, Any]] | None:
        """The first of the types whose rendering the template equals, and the options that it takes for that.

        Raises TemplateBroken if the template can't be rendered within the bounds.
        """
        ...

    def check(self) -> None:
        """Raise TemplateBroken if the template can't be used as a wrapper of its own."""
        ...


def resolve(
    file_name: str | None = None,
    architecture: str | None = None,
    template: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    bos_text: str | None = None,
    special_tokens: Sequence[str] | None = None,
    wrapper_type: str | None = None,
    custom_options: Mapping[str, Mapping[str, Any]] | None = None,
    trial: TemplateTrial | None = None,
    use_template_itself: bool = True,
    fall_back: bool = True,
) -> Resolution:
    """The wrapper for a model.

    `metadata` may be flat, as in a GGUF file, or nested. `custom_options` holds options by type name, which win over
    what was found. Without a `trial` the template isn't rendered: only its marks are looked at. With `fall_back` false
    a broken template raises TemplateBroken instead of leading to the next step.
    """
    general = nested_metadata(metadata or {})
    custom = custom_options or {}
    own_template = (custom.get("jinjaTemplate") or {}).get("template")
    if template is None:
        template = own_template if own_template is not None else value_at(general, "tokenizer", "chat_template")
    facts = ModelFacts(
        file_name,
        architecture if architecture is not None else value_at(general, "general", "architecture"),
        template,
        general,
        bos_text,
        special_tokens,
    )
    steps = _Steps(facts, custom, trial, use_template_itself, fall_back)
    return steps.run(wrapper_type)


class _Steps:
    def __init__(
        self,
        facts: ModelFacts,
        custom: Mapping[str, Mapping[str, Any]],
        trial: TemplateTrial | None,
        use_template_itself: bool,
        fall_back: bool,
    ) -> None:
        self._facts = facts
        self._custom = custom
        self._trial = trial
        self._use_template_itself = use_template_itself
        self._fall_back = fall_back
        self._reasons: list[Reason] = []

    def run(self, wrapper_type: str | None) -> Resolution:
        if wrapper_type not in (None, "auto"):
            chosen = self._explicit(str(wrapper_type))
            if chosen is not None:
                return chosen
        steps = (
            self._by_template,
            self._by_model_name,
            self._by_template_mark,
            self._by_file_name,
            self._by_bos_text,
            self._by_architecture,
        )
        for step in steps:
            found = step()
            if found is not None:
                return found
        self._because("nothing_known")
        return Resolution(None, {}, tuple(self._reasons))

    def _because(self, code: str, **args: Any) -> None:
        self._reasons.append(Reason(code, args))

    def _found(self, wrapper: str, options: Mapping[str, Any] | None = None) -> Resolution:
        merged = {**(options or {}), **(self._custom.get(wrapper) or {})}
        return Resolution(wrapper, merged, tuple(self._reasons))

    def _explicit(self, wrapper_type: str) -> Resolution | None:
        if wrapper_type == "template":
            options = self._custom.get("template") or {}
            roles = options.get("historyTemplate") or {}
            if options.get("template") is None or any(roles.get(role) is None for role in ("system", "user", "model")):
                self._because("type_incomplete", type=wrapper_type)
                return None
        elif wrapper_type == "jinjaTemplate":
            if self._facts.template is None:
                self._because("type_incomplete", type=wrapper_type)
                return None
            if not self._template_works():
                return None
            self._because("type_given", type=wrapper_type)
            return self._found(wrapper_type, {"template": self._facts.template})
        elif wrapper_type not in SPECIALISED_TYPES:
            self._because("type_unknown", type=wrapper_type)
            return None
        self._because("type_given", type=wrapper_type)
        return self._found(wrapper_type)

    def _template_works(self) -> bool:
        if self._trial is None:
            return True
        try:
            self._trial.check()
        except TemplateBroken as broken:
            if not self._fall_back:
                raise
            self._because("template_broken", message=str(broken))
            return False
        return True

    def _by_template(self) -> Resolution | None:
        template = self._facts.template
        if template is None or not js_trim(template):
            return None
        if self._trial is None:
            self._because("template_not_rendered")
            return None
        candidates = [kind for kind in by_likeness(self._facts) if is_compatible(kind, self._facts)]
        try:
            equal = self._trial.equal_wrapper(candidates)
        except TemplateBroken as broken:
            if not self._fall_back:
                raise
            self._because("template_broken", message=str(broken))
            return None
        if equal is not None:
            wrapper, options = equal
            self._because("template_equals", type=wrapper, options=dict(options))
            return self._found(wrapper, options)
        self._because("template_equals_none")
        if not self._use_template_itself or not self._template_works():
            return None
        self._because("template_kept")
        return self._found("jinjaTemplate", {"template": template})

    def _by_model_name(self) -> Resolution | None:
        for names in lineage_names(self._facts.metadata):
            for wrapper, patterns in _MODEL_NAMES:
                found = contained(names, patterns)
                if found is None:
                    continue
                if wrapper in ("llama3.2-lightweight", "llama3.1") and not is_compatible(wrapper, self._facts):
                    continue
                self._because("model_name", name=found[0], found=found[1])
                return self._found(wrapper)
        return None

    def _by_template_mark(self) -> Resolution | None:
        template = self._facts.template or ""
        for wrapper, marks in _TEMPLATE_MARKS:
            if not all(mark in template for mark in marks):
                continue
            self._because("template_mark", marks=list(marks))
            if wrapper == "llama2Chat":
                return self._found(wrapper, {"addSpaceBeforeEos": _SPACE_BEFORE_EOS in template})
            if wrapper == "llama3.1" and not is_compatible(wrapper, self._facts):
                return self._found("llama3")
            return self._found(wrapper)
        return None

    def _by_file_name(self) -> Resolution | None:
        if self._facts.file_name is None:
            return None
        found = _wrapper_of_file_name(self._facts.file_name)
        if found is None:
            return None
        wrapper, part, value = found
        self._because("file_name", part=part, value=value)
        return self._found(wrapper)

    def _by_bos_text(self) -> Resolution | None:
        bos = self._facts.bos_text
        for wrapper, start in _BOS_TEXTS if bos else ():
            if start.startswith(bos or ""):
                self._because("bos_text", text=bos)
                return self._found(wrapper)
        return None

    def _by_architecture(self) -> Resolution | None:
        architecture = self._facts.architecture
        wrapper = _ARCHITECTURES.get(architecture or "")
        if wrapper is None:
            return None
        self._because("architecture", architecture=architecture)
        return self._found(wrapper)


def _wrapper_of_file_name(file_name: str) -> tuple[str, str, str] | None:
    """The wrapper, and which part of the file name said so: `name`, `sub_type` or `word`, with its value."""
    parsed = parse_model_file_name(file_name)
    if parsed.file_type.lower() != "gguf":
        return None
    name = (parsed.name or "").lower()
    sub_type = parsed.sub_type.lower()
    words = [*sub_type.split("-"), *[info.lower() for info in parsed.other_info]]
    first = words[0]
    if name == "llama":
        return ("llama2Chat", "word", "chat") if "chat" in words else ("general", "name", name)
    if name in ("codellama", "mistral"):
        return "general", "name", name
    if name == "orca":
        return "chatML", "name", name
    if name == "phind" and sub_type == "codellama":
        return "llama2Chat", "sub_type", sub_type
    if first == "llama":
        return "llama2Chat", "sub_type", first
    if sub_type == "alpaca":
        return "alpacaChat", "sub_type", sub_type
    if name == "functionary":
        return "functionary", "name", name
    if name == "dolphin" and "mistral" in words:
        return "chatML", "word", "mistral"
    if name == "gemma":
        return ("gemma4", "sub_type", first) if first == "4" else ("gemma", "name", name)
    if "chatml" in words:
        return "chatML", "word", "chatml"
    return None

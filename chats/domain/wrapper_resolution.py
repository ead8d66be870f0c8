"""Which chat wrapper suits a model, and why (chat-wrappers.md section 13).

What is known of a model is looked at in a fixed order: an explicit choice, its chat template, its name and those of
the models it comes from, marks in the template's text, its file name, its BOS text, its architecture. Every step that
says something leaves a reason, as a code with arguments to be worded in the reader's language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from chats.domain.js_json import js_trim
from chats.domain.model_file_names import parse_model_file_name

SPECIALISED_TYPES: Final = (
    "general",
    "deepSeek",
    "qwen",
    "llama3.2-lightweight",
    "llama3.1",
    "llama3",
    "llama2Chat",
    "mistral",
    "alpacaChat",
    "functionary",
    "chatML",
    "falconChat",
    "gemma4",
    "gemma",
    "harmony",
    "muse",
    "seed",
)
"""The wrappers for one format each, in the order in which they are tried."""

WRAPPER_IDS: Final[Mapping[str, str]] = {
    "general": "GeneralChatWrapper",
    "deepSeek": "DeepSeekChatWrapper",
    "qwen": "QwenChatWrapper",
    "llama3.2-lightweight": "Llama3_2LightweightChatWrapper",
    "llama3.1": "Llama3_1ChatWrapper",
    "llama3": "Llama3ChatWrapper",
    "llama2Chat": "Llama2ChatWrapper",
    "mistral": "MistralChatWrapper",
    "alpacaChat": "AlpacaChatWrapper",
    "functionary": "FunctionaryChatWrapper",
    "chatML": "ChatMLChatWrapper",
    "falconChat": "FalconChatWrapper",
    "gemma4": "Gemma4ChatWrapper",
    "gemma": "GemmaChatWrapper",
    "harmony": "HarmonyChatWrapper",
    "muse": "MuseChatWrapper",
    "seed": "SeedChatWrapper",
    "template": "TemplateChatWrapper",
    "jinjaTemplate": "JinjaTemplateChatWrapper",
}
"""The id in the register of wrappers for each type. The Jinja wrapper isn't registered, since it needs a renderer."""

_OTHER_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "harmony": ("gpt", "gpt-oss"),
    "muse": ("muse glimmer", "muse-glimmer", "muse_glimmer"),
    "gemma4": ("gemma 4", "gemma-4"),
}
_LLAMA_3_2 = ("llama 3.2", "llama-3.2", "llama3.2")
_QWEN_ARCHITECTURES = frozenset(
    ["qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"]
)
# First match wins; the first two need a compatible model, too.
_MODEL_NAMES: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("llama3.2-lightweight", _LLAMA_3_2),
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


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model. `metadata` is nested as GGUF keys are: `{"general": {"name": …}, "tokenizer": …}`.

    `special_tokens` are those of its vocabulary, None if that is unknown.
    """

    file_name: str | None = None
    architecture: str | None = None
    template: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    bos_text: str | None = None
    special_tokens: Sequence[str] | None = None


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
        template = own_template if own_template is not None else _at(general, "tokenizer", "chat_template")
    facts = ModelFacts(
        file_name,
        architecture if architecture is not None else _at(general, "general", "architecture"),
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
                found = _contained(names, patterns)
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


def lineage_names(metadata: Mapping[str, Any]) -> list[list[str]]:
    """The model's names, then those of each model it was made from, as far as its metadata says."""
    general = _at(metadata, "general")
    if not isinstance(general, Mapping):
        return []
    own = [name for name in (general.get("name"), general.get("basename")) if isinstance(name, str)]
    groups = [own] if own else []
    count = _at(general, "base_model", "count")
    if isinstance(count, int | float) and not isinstance(count, bool):
        # The number comes from a file that may say anything.
        bases = general["base_model"]
        numbers = sorted(int(key) for key in bases if key.isdecimal() and int(key) < count)
        names = [_at(bases, str(number), "name") for number in numbers]
        groups += [[name] for name in names if isinstance(name, str)]
    return groups


def is_compatible(wrapper: str, facts: ModelFacts) -> bool:
    """Whether a model can have this wrapper at all (sections 10.7, 10.8 and 10.14)."""
    if wrapper == "qwen":
        return facts.architecture is None or facts.architecture in _QWEN_ARCHITECTURES
    if wrapper not in ("llama3.1", "llama3.2-lightweight"):
        return True
    if facts.special_tokens is not None and "<|eom_id|>" not in facts.special_tokens:
        return False
    groups = lineage_names(facts.metadata)
    size = _at(facts.metadata, "general", "size_label")
    is_lightweight = size in ("1B", "3B") and any(_contained(names, _LLAMA_3_2) for names in groups)
    return is_lightweight == (wrapper == "llama3.2-lightweight")


def by_likeness(facts: ModelFacts) -> list[str]:
    """The specialised types, those first whose names look most like the model's name and its file name."""
    model_name = _at(facts.metadata, "general", "name")

    def points(wrapper: str) -> float:
        names = (wrapper, *_OTHER_NAMES.get(wrapper, ()))
        by_name = max(_likeness(name, model_name, 3, 4) for name in names)
        return by_name + max(_likeness(name, facts.file_name, 2, 3) for name in names)

    return sorted(SPECIALISED_TYPES, key=points, reverse=True)


def _likeness(pattern: str, text: Any, found: float, position: float) -> float:
    """Points for being there, and more for standing further back, where names get specific."""
    if not isinstance(text, str):
        return 0
    index = text.lower().find(pattern.lower())
    return 0 if index < 0 else found + (index + 1) / len(text) * position


def _contained(names: Iterable[str], patterns: Iterable[str]) -> tuple[str, str] | None:
    """The first name that contains one of the patterns, and which; case doesn't matter."""
    for name in names:
        for pattern in patterns:
            if pattern in name.lower():
                return name, pattern
    return None


def nested_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """GGUF metadata with dotted keys as nested mappings; what is nested already stays as it is."""
    if not any("." in key for key in metadata):
        return metadata
    out: dict[str, Any] = {}
    for key, value in metadata.items():
        *parents, last = key.split(".")
        there = out
        for parent in parents:
            below = there.setdefault(parent, {})
            if not isinstance(below, dict):
                below = there[parent] = {}
            there = below
        if not isinstance(there.get(last), dict):
            there[last] = value
    return out


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value

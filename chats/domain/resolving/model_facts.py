"""What is known of a model, and which wrappers that allows or suggests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chats.domain.resolving.wrapper_types import SPECIALISED_TYPES

_OTHER_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "harmony": ("gpt", "gpt-oss"),
    "muse": ("muse glimmer", "muse-glimmer", "muse_glimmer"),
    "gemma4": ("gemma 4", "gemma-4"),
}
LLAMA_3_2 = ("llama 3.2", "llama-3.2", "llama3.2")
_QWEN_ARCHITECTURES = frozenset(
    ["qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"]
)


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


def lineage_names(metadata: Mapping[str, Any]) -> list[list[str]]:
    """The model's names, then those of each model it was made from, as far as its metadata says."""
    general = value_at(metadata, "general")
    if not isinstance(general, Mapping):
        return []
    own = [name for name in (general.get("name"), general.get("basename")) if isinstance(name, str)]
    groups = [own] if own else []
    count = value_at(general, "base_model", "count")
    if isinstance(count, int | float) and not isinstance(count, bool):
        # The number comes from a file that may say anything.
        bases = general["base_model"]
        numbers = sorted(int(key) for key in bases if key.isdecimal() and int(key) < count)
        names = [value_at(bases, str(number), "name") for number in numbers]
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
    size = value_at(facts.metadata, "general", "size_label")
    is_lightweight = size in ("1B", "3B") and any(contained(names, LLAMA_3_2) for names in groups)
    return is_lightweight == (wrapper == "llama3.2-lightweight")


def by_likeness(facts: ModelFacts) -> list[str]:
    """The specialised types, those first whose names look most like the model's name and its file name."""
    model_name = value_at(facts.metadata, "general", "name")

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


def contained(names: Iterable[str], patterns: Iterable[str]) -> tuple[str, str] | None:
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


def value_at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value

"""Which wrapper suits a model, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from chats.domain.resolving import (
    SPECIALISED_TYPES,
    WRAPPER_IDS,
    ModelFacts,
    Reason,
    TemplateBroken,
    by_likeness,
    nested_metadata,
    resolve,
)
from chats.domain.wrappers import WRAPPERS


class Trial:
    """A template that equals one wrapper, or none, or is broken."""

    def __init__(self, equal: str | None = None, broken: str | None = None) -> None:
        self.equal = equal
        self.broken = broken
        self.asked: list[str] = []

    def equal_wrapper(self, types: Iterable[str]) -> tuple[str, Mapping[str, Any]] | None:
        self.asked = list(types)
        return None if self.equal is None or self.equal not in self.asked else (self.equal, {"found": True})

    def check(self) -> None:
        if self.broken is not None:
            raise TemplateBroken(self.broken)


def codes(reasons: Iterable[Reason]) -> list[str]:
    return [reason.code for reason in reasons]


def test_every_type_is_registered() -> None:
    assert {WRAPPER_IDS[kind] for kind in SPECIALISED_TYPES} <= set(WRAPPERS)


@pytest.mark.parametrize(
    ("facts", "wrapper", "reason"),
    [
        ({"architecture": "falcon"}, "falconChat", Reason("architecture", {"architecture": "falcon"})),
        ({"bos_text": "<|im_start|>"}, "chatML", Reason("bos_text", {"text": "<|im_start|>"})),
        ({"file_name": "orca-2-13b.Q4_0.gguf"}, "chatML", Reason("file_name", {"part": "name", "value": "orca"})),
        ({"file_name": "x-7b-chatml.Q4_0.gguf"}, "chatML", Reason("file_name", {"part": "word", "value": "chatml"})),
        (
            {"metadata": {"general.name": "Meta Llama 3.1 8B"}},
            "llama3.1",
            Reason("model_name", {"name": "Meta Llama 3.1 8B", "found": "llama 3.1"}),
        ),
    ],
)
def test_each_fact_has_its_wrapper_and_reason(facts: dict[str, Any], wrapper: str, reason: Reason) -> None:
    resolution = resolve(**facts)
    assert (resolution.wrapper, resolution.reasons) == (wrapper, (reason,))
    assert resolution.wrapper_id in WRAPPERS


def test_nothing_known_is_a_reason_too() -> None:
    resolution = resolve(file_name="orca-2-13b.bin", architecture="mamba")
    assert (resolution.wrapper, codes(resolution.reasons)) == (None, ["nothing_known"])


def test_a_template_that_equals_a_wrapper_beats_names() -> None:
    resolution = resolve("llama-3-8b.gguf", template="{{ x }}", trial=Trial("qwen"))
    assert (resolution.wrapper, resolution.options) == ("qwen", {"found": True})
    assert codes(resolution.reasons) == ["template_equals"]


def test_only_wrappers_that_suit_the_architecture_are_tried() -> None:
    trial = Trial("qwen")
    resolution = resolve(architecture="llama", template="{{ x }}", trial=trial)
    assert "qwen" not in trial.asked
    assert (resolution.wrapper, codes(resolution.reasons)) == (
        "jinjaTemplate",
        ["template_equals_none", "template_kept"],
    )


def test_without_a_trial_only_the_marks_of_a_template_are_looked_at() -> None:
    resolution = resolve(template="{{ '<|im_start|>' }}")
    assert (resolution.wrapper, codes(resolution.reasons)) == ("chatML", ["template_not_rendered", "template_mark"])


def test_a_broken_template_leads_to_the_next_step_or_is_an_error() -> None:
    given = {"template": "{{ [INST]", "trial": Trial(broken="bad")}
    resolution = resolve(**given)
    assert resolution.wrapper == "llama2Chat"
    assert codes(resolution.reasons) == ["template_equals_none", "template_broken", "template_mark"]
    with pytest.raises(TemplateBroken, match="bad"):
        resolve(**given, fall_back=False)


def test_an_explicit_type_wins_and_takes_its_options() -> None:
    resolution = resolve(
        "orca-2-13b.gguf", wrapper_type="llama2Chat", custom_options={"llama2Chat": {"addSpaceBeforeEos": True}}
    )
    assert (resolution.wrapper, resolution.options) == ("llama2Chat", {"addSpaceBeforeEos": True})


def test_an_explicit_type_that_cannot_be_is_explained() -> None:
    assert codes(resolve("orca-2-13b.gguf", wrapper_type="template").reasons) == ["type_incomplete", "file_name"]
    assert codes(resolve("orca-2-13b.gguf", wrapper_type="nonsense").reasons) == ["type_unknown", "file_name"]


def test_light_llamas_are_told_by_name_and_size() -> None:
    light = {"general": {"name": "Llama 3.2 1B Instruct", "size_label": "1B"}}
    assert resolve(metadata=light).wrapper == "llama3.2-lightweight"
    assert resolve(metadata=light, special_tokens=["<|eot_id|>"]).wrapper == "llama3"
    assert resolve(metadata=light, special_tokens=["<|eom_id|>"]).wrapper == "llama3.2-lightweight"


def test_names_of_base_models_come_after_the_own_ones() -> None:
    base = {"count": 2, "0": {"name": "nothing"}, "1": {"name": "Gemma 2"}}
    assert resolve(metadata={"general": {"name": "my-finetune", "base_model": base}}).wrapper == "gemma"
    assert resolve(metadata={"general": {"name": "mistral-x", "base_model": base}}).wrapper == "mistral"
    assert resolve(metadata={"general": {"name": "x", "base_model": {"count": 10**12}}}).wrapper is None


def test_likely_types_are_tried_first() -> None:
    facts = ModelFacts(file_name="gpt-oss-20b.gguf", metadata={"general": {"name": "Some Gemma"}})
    assert by_likeness(facts)[:2] == ["gemma", "harmony"]
    assert by_likeness(ModelFacts()) == list(SPECIALISED_TYPES)


def test_flat_metadata_is_nested() -> None:
    flat = {"general.name": "n", "general.base_model.count": 1, "general.base_model.0.name": "b", "other": 1}
    assert nested_metadata(flat) == {
        "general": {"name": "n", "base_model": {"count": 1, "0": {"name": "b"}}},
        "other": 1,
    }

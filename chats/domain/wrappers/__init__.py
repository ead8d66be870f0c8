"""The register of chat wrappers: every built-in format by id, and how to build one with changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from chats.domain.wording import Wording
from chats.domain.wrapper_settings import ChatWrapperSettings, apply_difference
from chats.domain.wrappers.base import ChatWrapper, Clock, InvalidWrapper, WrapperOptions
from chats.domain.wrappers.chatml import ChatMLChatWrapper
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.deepseek import DeepSeekChatWrapper
from chats.domain.wrappers.empty import EmptyChatWrapper
from chats.domain.wrappers.functionary import FunctionaryChatWrapper
from chats.domain.wrappers.gemma import Gemma4ChatWrapper, GemmaChatWrapper
from chats.domain.wrappers.general import AlpacaChatWrapper, FalconChatWrapper, GeneralChatWrapper
from chats.domain.wrappers.harmony import HarmonyChatWrapper
from chats.domain.wrappers.llama import (
    Llama2ChatWrapper,
    Llama3_1ChatWrapper,
    Llama3_2LightweightChatWrapper,
    Llama3ChatWrapper,
)
from chats.domain.wrappers.mistral import MistralChatWrapper
from chats.domain.wrappers.muse import MuseChatWrapper
from chats.domain.wrappers.qwen import QwenChatWrapper
from chats.domain.wrappers.seed import SeedChatWrapper
from chats.domain.wrappers.template import TemplateChatWrapper


@dataclass(frozen=True)
class RegisteredWrapper:
    """A built-in format: its id (the original's class name), a label, the models it's for, and its class."""

    id: str
    label: str
    model_family: str
    wrapper_class: type[ChatWrapper]

    @property
    def options_model(self) -> type[WrapperOptions]:
        return self.wrapper_class.options_model

    def options(self, values: Mapping[str, Any] | None = None) -> WrapperOptions:
        """The options from JSON. Raises OptionsError."""
        try:
            return self.options_model.model_validate(dict(values or {}))
        except ValidationError as error:
            raise OptionsError(error) from error


@dataclass(frozen=True)
class OptionsProblem:
    """A wrong option: its path by JSON names, and pydantic's code of what's wrong."""

    path: tuple[str | int, ...]
    code: str


class OptionsError(ValueError):
    """The options can't be read; `problems` has one entry a wrong place."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(str(error))
        self.problems = [OptionsProblem(tuple(item["loc"]), item["type"]) for item in error.errors()]


_REGISTERED = (
    RegisteredWrapper("GeneralChatWrapper", "General", "any", GeneralChatWrapper),
    RegisteredWrapper("ChatMLChatWrapper", "ChatML", "ChatML", ChatMLChatWrapper),
    RegisteredWrapper("QwenChatWrapper", "Qwen", "Qwen", QwenChatWrapper),
    RegisteredWrapper("DeepSeekChatWrapper", "DeepSeek", "DeepSeek", DeepSeekChatWrapper),
    RegisteredWrapper("HarmonyChatWrapper", "Harmony", "gpt-oss", HarmonyChatWrapper),
    RegisteredWrapper("SeedChatWrapper", "Seed", "Seed-OSS", SeedChatWrapper),
    RegisteredWrapper("MuseChatWrapper", "Muse", "Muse", MuseChatWrapper),
    RegisteredWrapper("Gemma4ChatWrapper", "Gemma 4", "Gemma", Gemma4ChatWrapper),
    RegisteredWrapper("GemmaChatWrapper", "Gemma", "Gemma", GemmaChatWrapper),
    RegisteredWrapper(
        "Llama3_2LightweightChatWrapper", "Llama 3.2 lightweight", "Llama", Llama3_2LightweightChatWrapper
    ),
    RegisteredWrapper("Llama3_1ChatWrapper", "Llama 3.1", "Llama", Llama3_1ChatWrapper),
    RegisteredWrapper("Llama3ChatWrapper", "Llama 3", "Llama", Llama3ChatWrapper),
    RegisteredWrapper("Llama2ChatWrapper", "Llama 2", "Llama", Llama2ChatWrapper),
    RegisteredWrapper("MistralChatWrapper", "Mistral", "Mistral", MistralChatWrapper),
    RegisteredWrapper("FunctionaryChatWrapper", "Functionary", "Functionary", FunctionaryChatWrapper),
    RegisteredWrapper("AlpacaChatWrapper", "Alpaca", "Alpaca", AlpacaChatWrapper),
    RegisteredWrapper("FalconChatWrapper", "Falcon", "Falcon", FalconChatWrapper),
    RegisteredWrapper("EmptyChatWrapper", "Empty", "any", EmptyChatWrapper),
    RegisteredWrapper("TemplateChatWrapper", "Template", "any", TemplateChatWrapper),
)
WRAPPERS: Final[Mapping[str, RegisteredWrapper]] = {entry.id: entry for entry in _REGISTERED}
"""All built-in formats by id, in the order in which pages list them."""


def build_wrapper(
    wrapper_id: str,
    options: Mapping[str, Any] | None = None,
    settings_override: Mapping[str, Any] | None = None,
    wording: Wording | None = None,
    clock: Clock | None = None,
) -> ChatWrapper:
    """A wrapper with JSON options, a sparse difference of its settings, and changed wording.

    Raises KeyError for an unknown id, OptionsError and InvalidWrapper for the options, SettingsError for the
    difference, ValueError for wording that the wrapper doesn't have.
    """
    registered = WRAPPERS[wrapper_id]
    chosen = registered.options(options)
    wrapper_class = registered.wrapper_class
    unknown = set(wording or {}) - set(wrapper_class.default_wording(chosen))
    if unknown:
        raise ValueError(f"{wrapper_id} has no wording named {', '.join(sorted(unknown))}")
    settings = None
    if settings_override:
        settings = apply_difference(default_settings(wrapper_id, options), settings_override)
    return wrapper_class(chosen, settings, wording, clock)


def default_settings(wrapper_id: str, options: Mapping[str, Any] | None = None) -> ChatWrapperSettings:
    """The settings of a built-in format with these options. Raises as `build_wrapper` does."""
    registered = WRAPPERS[wrapper_id]
    return registered.wrapper_class(registered.options(options)).settings


__all__ = [
    "WRAPPERS",
    "ChatWrapper",
    "Clock",
    "ContextState",
    "InvalidWrapper",
    "OptionsError",
    "OptionsProblem",
    "RegisteredWrapper",
    "build_wrapper",
    "default_settings",
]

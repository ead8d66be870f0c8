"""The names that wrappers have where one is chosen for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

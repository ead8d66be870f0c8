"""Which chat wrapper suits a model, and why (chat-wrappers.md section 13).

What is known of a model is looked at in a fixed order: an explicit choice, its chat template, its name and those of
the models it comes from, marks in the template's text, its file name, its BOS text, its architecture. Every step that
says something leaves a reason, as a code with arguments to be worded in the reader's language.
"""

from chats.domain.resolving.model_facts import ModelFacts, by_likeness, nested_metadata
from chats.domain.resolving.steps import Reason, Resolution, TemplateBroken, resolve
from chats.domain.resolving.trial import JinjaTrial
from chats.domain.resolving.wrapper_types import SPECIALISED_TYPES, WRAPPER_IDS

__all__ = [
    "SPECIALISED_TYPES",
    "WRAPPER_IDS",
    "JinjaTrial",
    "ModelFacts",
    "Reason",
    "Resolution",
    "TemplateBroken",
    "by_likeness",
    "nested_metadata",
    "resolve",
]

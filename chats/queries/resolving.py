"""Which wrapper suits a model, with reasons that a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.resolving import WRAPPER_IDS, JinjaTrial, resolve
from chats.domain.wrappers import WRAPPERS
from chats.domain.wrappers.jinja.rendering import within
from chats.template_pool import shared_pool
from chats.wrapper_sentences import reason_sentence

_TRIAL_SECONDS: Final = 8.0


@dataclass(frozen=True)
class Answer:
    """The chosen wrapper (id and label empty if none, `is_template` if the template itself), its options, and why."""

    wrapper_id: str
    label: str
    is_template: bool
    options: Mapping[str, Any]
    reasons: list[str]


def which_wrapper(
    *,
    file_name: str = "",
    architecture: str = "",
    template: str = "",
    metadata: Mapping[str, Any] | None = None,
    tokens: Mapping[str, str] | None = None,
) -> Answer:
    """What would be chosen for a model, and why. A template is tried out in the pool's workers."""
    trial = JinjaTrial(template, within(shared_pool().render_request, _TRIAL_SECONDS)) if template.strip() else None
    found = resolve(
        file_name or None,
        architecture or None,
        template or None,
        metadata or {},
        bos_text=(tokens or {}).get("bos_token"),
        trial=trial,
    )
    reasons = [reason_sentence(reason) for reason in found.reasons]
    if found.wrapper is None:
        return Answer("", "", False, {}, reasons)
    wrapper_id = WRAPPER_IDS[found.wrapper]
    if wrapper_id not in WRAPPERS:
        return Answer("", "", True, {}, reasons)
    return Answer(wrapper_id, WRAPPERS[wrapper_id].label, False, found.options, reasons)

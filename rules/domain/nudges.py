"""Recognising nudges that a history holds (continuation.md section 8)."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

NudgeOutcome = Literal["acted", "finished", "ignored"]


def normal_form(text: str) -> str:
    """Text after NFC with every run of white space made one space and outer white space cut."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def normal_form_hash(text: str) -> str:
    """SHA-256 of the normal form, in hexadecimal: how prompts are kept."""
    return hashlib.sha256(normal_form(text).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class KnownPrompts:
    """The prompts of a tenant's rules, in any version ever saved and in either language, by the hash of their form."""

    codes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_texts(cls, prompts: Iterable[tuple[str, str]]) -> Self:
        """From pairs of prompt and code. Of two codes with the same prompt the first one keeps it."""
        codes: dict[str, str] = {}
        for prompt, code in prompts:
            codes.setdefault(normal_form_hash(prompt), code)
        return cls(codes)

    def code_of(self, text: str) -> str | None:
        """The code of the rule whose prompt the whole text is; never judged by a part or by likeness."""
        return self.codes.get(normal_form_hash(text)) if self.codes else None

"""What a replay depends on, as one value: its digest names the replay, and it is enough to run it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from rules.domain.nudges import KnownPrompts
from rules.domain.phrases import HELPER_VERSIONS
from rules.domain.points import Defaults
from rules.domain.rule_set import RuleSpec
from rules.domain.tools import ToolCatalogue, ToolEntry, ToolKind
from rules.domain.turns import WALKER_VERSION

# Rises when the same inputs may give another result.
ENGINE_VERSION = 1


class CatalogueEntry(BaseModel):
    """A tenant's entry of the tool catalogue; empty means absent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    kind: ToolKind
    argument: str = ""
    argument_pattern: str = ""
    repeatable: bool = False
    success_pattern: str = ""
    failure_pattern: str = ""


class Manifest(BaseModel):
    """Inputs of a replay (rule-engine.md section 7.2). `corpus` is the digest of its chats in their order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: list[RuleSpec]
    catalogue: list[CatalogueEntry]
    defaults: Defaults
    # Hash of a prompt in its normal form, and the code that it belongs to.
    known_prompts: dict[str, str]
    corpus: str
    chat_count: int
    engine: int = ENGINE_VERSION
    walker: int = WALKER_VERSION
    helpers: dict[str, int] = dict(HELPER_VERSIONS)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of all of it: equal names, equal results."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def tool_catalogue(self) -> ToolCatalogue:
        return ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in self.catalogue])

    def prompts(self) -> KnownPrompts:
        return KnownPrompts(self.known_prompts)


def corpus_digest(content_hashes: Sequence[str]) -> str:
    """SHA-256 over the content hashes of the chats, in order."""
    return hashlib.sha256("\n".join(content_hashes).encode()).hexdigest()

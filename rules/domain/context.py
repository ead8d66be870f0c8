"""What the rules look at: the state of a turn at one point (continuation.md section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]
Stage = Literal["final", "round"]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The 15 fields of a turn at a point; each may be left out. Counts are of the turn so far, this point included.

    `finish_reason` is None when unknown. `nudges` counts firings per rule code; codes without a count are absent.
    """

    final_text: str = ""
    finish_reason: FinishReason | None = None
    user_text: str = ""
    tools_available: bool = False
    tool_calls_total: int = 0
    tool_calls_since_user: int = 0
    mutated: bool = False
    verified_after_mutation: bool = True
    verify_failed: bool = False
    no_progress_rounds: int = 0
    read_only_rounds: int = 0
    budget_low: bool = False
    require_delivery: bool = False
    audit_mode: bool = False
    nudges: Mapping[str, int] = field(default_factory=dict)

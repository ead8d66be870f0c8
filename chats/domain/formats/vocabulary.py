"""Roles and finish reasons of all formats in the product's words (import-formats.md section 1)."""

from __future__ import annotations

from typing import Final

from chats.domain.details import FinishReason

ROLES: Final[dict[str, str]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "gemini": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "function_response": "tool",
}
KNOWN_ROLES: Final = frozenset(ROLES.values())

_FINISH_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "stop end_turn STOP stop_sequence eos eosFound completed complete",
    "length": "length max_tokens MAX_TOKENS max_output_tokens model_length maxPredictedTokensReached "
    "contextLengthReached",
    "tool_calls": "tool_calls tool_use function_call tool_call toolCalls",
    "content_filter": "content_filter SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT refusal",
    "error": "error failed MALFORMED_FUNCTION_CALL userStopped cancelled incomplete",
}
_BY_RAW: Final = {raw: reason for reason, names in _FINISH_REASONS.items() for raw in names.split()}


def canonical_role(role: str) -> str:
    """The product's role; any other role is kept as it is."""
    return ROLES.get(role, role)


def finish_reason(raw: str | None) -> FinishReason | None:
    """The normalised reason, or None when it is unknown."""
    return None if raw is None else _BY_RAW.get(raw)

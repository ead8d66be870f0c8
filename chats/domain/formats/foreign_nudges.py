"""Nudges that other runtimes write into a conversation, and the codes they are stored with (section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ForeignNudge:
    """A sentence of a runtime. `whole` says that nothing may follow it."""

    code: str
    beginning: str
    runtime: str
    whole: bool = False
    on_by_default: bool = True


RALPH: Final = "EXT-RALPH"
FOREIGN_NUDGES: Final = (
    ForeignNudge(
        "EXT-OPENHANDS-CONTINUE",
        "Please continue working on the task on whatever approach you think is suitable.",
        "OpenHands evaluation",
    ),
    ForeignNudge("EXT-CLINE-NOTOOL", "[ERROR] You did not use a tool in your previous response", "Cline, Roo Code"),
    ForeignNudge("EXT-GEMINI-CONTINUE", "Please continue.", "Gemini CLI", whole=True),
    ForeignNudge("EXT-CLAUDE-STOPHOOK", "Stop hook feedback:", "Claude Code"),
    ForeignNudge("EXT-SWEAGENT-FORMAT", "Your output was not formatted correctly", "SWE-agent"),
    ForeignNudge("EXT-MINISWE-FORMAT", "Please always provide EXACTLY ONE action", "mini-swe-agent"),
    ForeignNudge(RALPH, "", "loop scripts", whole=True, on_by_default=False),
)
DEFAULT_CODES: Final = frozenset(n.code for n in FOREIGN_NUDGES if n.on_by_default)
_SENTENCES: Final[Mapping[str, tuple[tuple[str, bool], ...]]] = {
    n.code: ((" ".join(n.beginning.split()), n.whole),) for n in FOREIGN_NUDGES if n.beginning
}
_LONGEST: Final = max(len(n.beginning) for n in FOREIGN_NUDGES) * 4


def foreign_nudge(content: str, codes: frozenset[str] = DEFAULT_CODES) -> str | None:
    """The code of the sentence that a text is or begins with, white space aside.

    Whether an answer came before is the caller's to know.
    """
    content = content.strip()
    start = " ".join(content[:_LONGEST].split())
    for code, sentences in _SENTENCES.items():
        if code not in codes:
            continue
        for sentence, whole in sentences:
            if start == sentence if whole and len(content) < _LONGEST else not whole and start.startswith(sentence):
                return code
    return None

"""The rows of the deciding side."""

from rules.models.nudges import RecordedNudge
from rules.models.releases import Release, ReleaseEntry
from rules.models.replays import Replay, ReplayChunk
from rules.models.rules import KnownPrompt, Rule, RuleDraft, RuleTest, RuleVersion
from rules.models.segments import Segment, SegmentAtom
from rules.models.tools import ToolEntry

__all__ = [
    "KnownPrompt",
    "RecordedNudge",
    "Release",
    "ReleaseEntry",
    "Replay",
    "ReplayChunk",
    "Rule",
    "RuleDraft",
    "RuleTest",
    "RuleVersion",
    "Segment",
    "SegmentAtom",
    "ToolEntry",
]

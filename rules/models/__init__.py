"""The rows of the deciding side."""

from rules.models.nudges import NudgeDay, RecordedNudge
from rules.models.proposals import Proposal, ProposalItem
from rules.models.releases import Release, ReleaseEntry
from rules.models.replays import RemovedFinding, Replay, ReplayChunk
from rules.models.rules import DraftRevision, KnownPrompt, Rule, RuleDraft, RuleTest, RuleVersion
from rules.models.schedules import ReplaySchedule, ScheduledRun
from rules.models.segments import Preparation, Segment, SegmentAtom, SegmentChat
from rules.models.tools import ToolEntry
from rules.models.verdicts import ReviewItem, ReviewQueue, Verdict

__all__ = [
    "DraftRevision",
    "KnownPrompt",
    "NudgeDay",
    "Preparation",
    "Proposal",
    "ProposalItem",
    "RecordedNudge",
    "Release",
    "ReleaseEntry",
    "RemovedFinding",
    "Replay",
    "ReplayChunk",
    "ReplaySchedule",
    "ReviewItem",
    "ReviewQueue",
    "Rule",
    "RuleDraft",
    "RuleTest",
    "RuleVersion",
    "ScheduledRun",
    "Segment",
    "SegmentAtom",
    "SegmentChat",
    "ToolEntry",
    "Verdict",
]

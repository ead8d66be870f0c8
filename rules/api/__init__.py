"""Endpoints of the deciding side. Each calls the service or query that its page calls."""

from rules.api.attention import router as attention
from rules.api.catalogue import router as catalogue
from rules.api.comparisons import router as comparisons
from rules.api.effects import router as effects
from rules.api.live import router as live
from rules.api.nudges import router as nudges
from rules.api.points import router as points
from rules.api.proposals import router as proposals
from rules.api.queues import router as queues
from rules.api.redaction import router as redaction
from rules.api.releases import router as releases
from rules.api.replay_reports import router as replay_reports
from rules.api.replays import router as replays
from rules.api.rule_tests import router as rule_tests
from rules.api.rules import router as rules
from rules.api.schedules import router as schedules
from rules.api.tools import router as tools
from rules.api.verdicts import router as verdicts

# What is asked for at every step of an agent is found first; and fixed words stand before codes and ids.
ROUTERS = (
    live,
    releases,
    proposals,
    catalogue,
    effects,
    rules,
    rule_tests,
    comparisons,
    tools,
    schedules,
    replay_reports,
    replays,
    points,
    redaction,
    nudges,
    verdicts,
    queues,
    attention,
)

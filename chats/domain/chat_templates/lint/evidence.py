"""A template and what it makes of the probes, for facts and checks to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from chats.domain.chat_templates import (
    PASSED_NAMES,
    SPECIAL_TOKEN_NAMES,
    Profile,
    Rendered,
    RenderRequest,
    TemplateCache,
    TemplateFailure,
    render_or_explain,
    undeclared_names,
    variables,
)
from chats.domain.chat_templates.lint import probes
from chats.domain.chat_templates.lint.report import Sample

CLOCKS = (datetime(2025, 3, 5, 14, 7, 9), datetime(2031, 11, 23, 1, 2, 3))
_MAX_SAMPLE_CHARACTERS = 20_000


class Evidence:
    """The template, its probes' results, and the renders that single checks still ask for."""

    def __init__(
        self, text: str, tokens: Mapping[str, str], kwargs: Iterable[str], profile: Profile, cache: TemplateCache
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.kwargs = frozenset(kwargs)
        self._profile = profile
        self._cache = cache
        self.outcomes = {name: self.outcome(probe) for name, probe in probes.PROBES.items()}
        self.names = sorted(undeclared_names(text, profile) - {*PASSED_NAMES, *SPECIAL_TOKEN_NAMES})
        self.variables = variables(text, profile)
        self.depends_on_clock = "strftime_now" in text and any(
            self.outcome(probe, now=CLOCKS[1]) != self.outcomes[name] for name, probe in probes.PROBES.items()
        )

    def outcome(
        self, probe: probes.Probe, text: str | None = None, now: datetime = CLOCKS[0]
    ) -> Rendered | TemplateFailure:
        request = RenderRequest(
            self.text if text is None else text,
            probe.messages,
            tools=probe.tools,
            tokens=self.tokens,
            profile=self._profile,
            add_generation_prompt=probe.add_generation_prompt,
            continue_final_message=probe.continue_final_message,
            keep_nulls=probe.keep_nulls,
            now=now,
        )
        return render_or_explain(request, self._cache)

    def prompt(self, name: str) -> str | None:
        """The text of a probe; None where it raised."""
        outcome = self.outcomes[name]
        return outcome.text if isinstance(outcome, Rendered) else None

    def sample(self, name: str) -> Sample:
        return sample_of(name, self.outcomes[name])

    def kept(self, name: str, text: str) -> str:
        prompt = self.prompt(name)
        if prompt is None:
            return "raises"
        return "kept" if text in prompt else "dropped"

    def accepted(self, name: str) -> str:
        return "raises" if self.prompt(name) is None else "ok"

    def continued(self, name: str) -> bool | None:
        """Is the probe's prompt the start of the next turn's? None if one of the two raised."""
        before, after = self.prompt(name), self.prompt("second_turn")
        return None if before is None or after is None else after.startswith(before)


def sample_of(about: str, outcome: Rendered | TemplateFailure) -> Sample:
    if isinstance(outcome, Rendered):
        return Sample(about, outcome.text[:_MAX_SAMPLE_CHARACTERS])
    return Sample(about, outcome.message[:_MAX_SAMPLE_CHARACTERS], failed=True)


def prompts_of(e: Evidence) -> list[tuple[str, str]]:
    return [(name, outcome.text) for name, outcome in e.outcomes.items() if isinstance(outcome, Rendered)]

"""Rendering a chat template for the Jinja wrapper: placeholders, attempts, failures (chat-wrappers.md section 12)."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from chats.domain.chat_templates import Profile, Rendered, RenderRequest, TemplateFailure

T = TypeVar("T")

Render: TypeAlias = Callable[[RenderRequest], Rendered | TemplateFailure]
"""Renders a template; for texts that somebody typed it's a pool of bounded workers, never the process of a request."""

_ATTEMPTS_ERRORS = (ValueError, TypeError)


class TemplateFailed(ValueError):
    """The template can't render what it was given. `failure` has more, if the renderer said so."""

    def __init__(self, message: str, failure: TemplateFailure | None = None) -> None:
        super().__init__(message)
        self.failure = failure


class OutOfTime(Exception):
    """The renderer refuses to go on (time, memory, size …); other attempts would end the same way."""

    def __init__(self, failure: TemplateFailure) -> None:
        super().__init__(failure.limit or failure.message)
        self.failure = failure


def within(render: Render, seconds: float, clock: Callable[[], float] = time.monotonic) -> Render:
    """The renderer for this many seconds from now on in all; after that it refuses, as if a render took too long.

    A wrapper or a trial takes some hundred renders, and each may just stay within the bounds of a single one.
    """
    deadline = clock() + seconds

    def bounded(request: RenderRequest) -> Rendered | TemplateFailure:
        if clock() >= deadline:
            return TemplateFailure("limit", "LimitExceeded", "", limit="time")
        return render(request)

    return bounded


@dataclass(frozen=True)
class TemplateRenderer:
    """A template with what every render of it is given."""

    template: str
    render: Render
    parameters: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile = "current"

    def __call__(
        self,
        messages: Sequence[Mapping[str, Any]],
        tokens: Mapping[str, str],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> str:
        """The text. Raises TemplateFailed, or OutOfTime when a bound of the renderer was reached."""
        answer = self.render(
            RenderRequest(
                template=self.template,
                messages=messages,
                tools=tools,
                kwargs={**self.parameters, **variables},
                tokens=tokens,
                profile=self.profile,
                add_generation_prompt=add_generation_prompt,
            )
        )
        if isinstance(answer, Rendered):
            return answer.text
        if answer.kind == "limit":
            raise OutOfTime(answer)
        raise TemplateFailed(f"{answer.error_class}: {answer.message}", answer)


class Placeholders:
    """Makes ids that stand for contents, occur nowhere else, and can be found again in what was rendered."""

    def __init__(self, avoided: str) -> None:
        self._word = _unused(avoided, lambda: "W" + "".join(secrets.choice(_LETTERS) for _ in range(8)))
        self._digits = _unused(avoided, lambda: str(secrets.randbelow(9 * 10**8) + 10**8))
        self._count = 0
        self._pattern = re.compile(f"({self._word}[0-9]{{5}}W|{self._digits}[0-9]{{6}})")

    def make(self, digits: bool = False) -> str:
        self._count += 1
        return f"{self._digits}{self._count:06d}" if digits else f"{self._word}{self._count:05d}W"

    def split(self, text: str) -> list[str]:
        """Texts and ids in turn: every second item is an id, the others may be empty."""
        return self._pattern.split(text)


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _unused(avoided: str, make: Callable[[], str]) -> str:
    while (made := make()) in avoided:
        pass
    return made


def first_success(attempts: Iterable[Callable[[], T]]) -> T:
    """The result of the first attempt that doesn't fail; the last one's error if all do (section 12.2)."""
    failed: Exception | None = None
    for attempt in attempts:
        try:
            return attempt()
        except _ATTEMPTS_ERRORS as error:
            failed = error
    raise failed or TemplateFailed("there was nothing to try")


def attempt(make: Callable[[], T]) -> T | None:
    """The result, or None if it fails."""
    try:
        return make()
    except _ATTEMPTS_ERRORS:
        return None

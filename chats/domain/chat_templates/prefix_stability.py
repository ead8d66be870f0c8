"""Turn by turn: does the prompt of one turn stay the start of the next one's? (chat-templates.md, lint check 10)

Where it doesn't, the server's prefix cache misses, and the model reads a past that it never wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chats.domain.chat_templates import Rendered, RenderRequest, TemplateFailure

Comparison = Literal["with_generation_prompt", "without_generation_prompt", "after_closed_turn"]
COMPARISONS: tuple[Comparison, ...] = ("with_generation_prompt", "without_generation_prompt", "after_closed_turn")

MAX_TURNS = 100
_EXCERPT_CHARACTERS = 80
_CONTEXT_CHARACTERS = 20

Outcome = Rendered | TemplateFailure


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the later prompt leaves the earlier one: the first differing character, and what each has around it.

    The excerpts start at `excerpt_start`, a little before `at`; the earlier one ends where its prompt ends.
    """

    at: int
    excerpt_start: int
    earlier: str
    later: str


@dataclass(frozen=True, slots=True)
class Step:
    """From the prompt before message `message` (an answer, by its index) to the prompt of the next turn.

    `stable` is None where one of the two can't be rendered; `failure` then says why. `lost_characters` is how much of
    the earlier prompt a prefix cache can't use again.
    """

    comparison: Comparison
    turn: int
    message: int
    stable: bool | None
    difference: Difference | None = None
    failure: TemplateFailure | None = None
    lost_characters: int = 0


def stability(
    request: RenderRequest, render: Callable[[RenderRequest], Outcome], answer_role: str = "assistant"
) -> tuple[Step, ...]:
    """All comparisons of all turns of a chat, in the order of COMPARISONS; the first MAX_TURNS turns.

    A turn ends with each message of `answer_role` that another message follows later; `render` is called two to three
    times a turn.
    """
    answers = [i for i, message in enumerate(request.messages) if message.get("role") == answer_role and i > 0]
    # Where each prompt ends: before an answer, and at last after all that follows the final answer.
    ends = [*answers, len(request.messages)]
    if answers and answers[-1] == len(request.messages) - 1:
        ends.pop()
    ends = ends[: MAX_TURNS + 1]

    def prompt(end: int, generation: bool) -> Outcome:
        return render(
            replace(
                request,
                messages=request.messages[:end],
                add_generation_prompt=generation,
                continue_final_message=False,
                provenance=False,
            )
        )

    with_prompt = [prompt(end, True) for end in ends]
    without = [prompt(end, False) for end in ends[:-1]]
    closed = [prompt(end + 1, False) for end in ends[:-1]]
    earlier_by_comparison: tuple[Sequence[Outcome], ...] = (with_prompt, without, closed)
    steps = []
    for comparison, earlier in zip(COMPARISONS, earlier_by_comparison, strict=True):
        for turn, end in enumerate(ends[:-1]):
            steps.append(_step(comparison, turn + 1, end, earlier[turn], with_prompt[turn + 1]))
    return tuple(steps)


def _step(comparison: Comparison, turn: int, message: int, earlier: Outcome, later: Outcome) -> Step:
    if isinstance(earlier, TemplateFailure):
        return Step(comparison, turn, message, None, failure=earlier)
    if isinstance(later, TemplateFailure):
        return Step(comparison, turn, message, None, failure=later)
    found = difference(earlier.text, later.text)
    if found is None:
        return Step(comparison, turn, message, True)
    return Step(comparison, turn, message, False, found, lost_characters=len(earlier.text) - found.at)


def difference(earlier: str, later: str) -> Difference | None:
    """The first place where `later` doesn't go on as `earlier` does; None if it starts with all of it."""
    if later.startswith(earlier):
        return None
    at = _common_length(earlier, later)
    start = max(0, at - _CONTEXT_CHARACTERS)
    end = at + _EXCERPT_CHARACTERS
    return Difference(at, start, earlier[start:end], later[start:end])


def _common_length(a: str, b: str) -> int:
    """How many characters two texts share at their starts, by halving: comparing slices is fast, characters aren't."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

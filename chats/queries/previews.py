"""Rendered prompts of chats, for the pages that show them.

Settings are rendered here, within bounds that are estimated first; templates only ever in the pool's workers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from django.db.models.functions import Length
from django.utils.translation import gettext as _

from chats.domain import ChatRecord
from chats.domain.chat_templates import Rendered, RenderRequest, TemplateFailure, as_served
from chats.domain.chat_templates.prefix_stability import Comparison, Step, difference, stability
from chats.domain.history import TemplateInput, template_input
from chats.domain.recipes import Recipe, RecipeError, RecipeProblem
from chats.domain.sample_chat import sample_record
from chats.domain.settings_lint import texts_of
from chats.domain.shown_prompt import Run, ShownPrompt, shown_pieces, shown_template, visible_runs, with_differences
from chats.domain.spans import render_record
from chats.domain.text_differences import differing_ranges, merged
from chats.domain.wrappers import ChatWrapper
from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from chats.queries.wrappers import DEFAULT_BUILT_IN, Choice, choice
from chats.template_pool import shared_pool
from chats.wrapper_sentences import failure_sentence, left_out_sentences, problem_sentence
from eleanor_site.numbers import whole_number

SAMPLE: Final = "sample"
"""Stands for the sample conversation where an address names a chat."""
MAX_STORED: Final = 3_000_000
MAX_SHOWN: Final = 400_000
MAX_RUNS: Final = 30_000
_MAX_COST: Final = 12_000_000
_STABILITY_SECONDS: Final = 0.6
_SEARCH_SECONDS: Final = 0.25
_MAX_TURNS: Final = 40


@dataclass(frozen=True)
class Preview:
    """A prompt, or the reason why there is none (`problem`, and where: template `line`, `message` of the chat).

    `runs` are what is shown: at most MAX_SHOWN characters, from the end of the prompt; `cut` is how many are missing.
    """

    runs: Sequence[Run] = ()
    text: str = ""
    left_out: Sequence[str] = ()
    look_alikes: int = 0
    cut: int = 0
    problem: str = ""
    problems: Sequence[RecipeProblem] = ()
    failure: TemplateFailure | None = None
    line: int | None = None
    message: int | None = None
    prompt: ShownPrompt | None = field(default=None, repr=False)

    @property
    def is_good(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class TurnChoice:
    """A turn of a chat: its number from 1, its last message, and how it begins."""

    number: int
    last_message: int
    excerpt: str


@dataclass(frozen=True)
class ChosenChat:
    """The chat that previews are made on, and up to which message. `key` names it in addresses."""

    key: str
    title: str
    record: ChatRecord
    turns: list[TurnChoice]
    turn: int | None
    problem: str = ""

    @property
    def upto(self) -> int | None:
        """The last message to render; None for the whole chat."""
        if self.turn is None or self.turn >= len(self.turns):
            return None
        return self.turns[self.turn - 1].last_message


def rendered(record: ChatRecord, wrapper_id: str) -> Preview:
    """The whole chat as this wrapper writes it: a built-in by id, or one of the tenant's by its key."""
    found = choice(wrapper_id or DEFAULT_BUILT_IN)
    if found is None:
        return Preview(problem=_("There is no wrapper with this name."))
    return preview(record, found.recipe)


def chosen_chat(key: str = "", turn: str = "") -> ChosenChat:
    """The chat and turn that an address names; the newest chat by default, the sample where there is none."""
    chat = None
    if key.isdecimal() and len(key) < 18:
        chat = Chat.objects.filter(pk=int(key)).first()
    elif key != SAMPLE:
        chat = Chat.objects.order_by("-id").first()
    if chat is None:
        return _chosen(SAMPLE, _("Sample conversation"), sample_record(), turn)
    newest = ChatVersion.objects.select_related("chat").filter(chat=chat, number=chat.version_count)
    version = newest.annotate(size=Length("content")).defer("content").first()
    if version is None or version.size > MAX_STORED:
        problem = _("%(chat)s is too large for a preview. Choose another chat.") % {"chat": chat}
        return ChosenChat(str(chat.pk), str(chat), sample_record(), [], None, problem)
    return _chosen(str(chat.pk), str(chat), record_of(version), turn)


def _chosen(key: str, title: str, record: ChatRecord, turn: str) -> ChosenChat:
    turns = turns_of(record)
    number = whole_number(turn, otherwise=None, most=10**6 - 1)
    wanted = number if number is not None and 1 <= number <= len(turns) else None
    return ChosenChat(key, title, record, turns, wanted)


def turns_of(record: ChatRecord) -> list[TurnChoice]:
    """The turns of a chat: each begins with a human message that is no recorded nudge."""
    messages = record.chat.messages
    starts = [
        i
        for i, message in enumerate(messages)
        if message.role == record.chat.human_role and not record.details[i].nudge_code
    ]
    ends = [*[start - 1 for start in starts[1:]], len(messages) - 1]
    return [
        TurnChoice(n, end, " ".join(messages[start].content[:120].split())[:60])
        for n, (start, end) in enumerate(zip(starts, ends, strict=False), start=1)
    ]


def preview(record: ChatRecord, recipe: Recipe, upto: int | None = None, nudge: str | None = None) -> Preview:
    """The chat up to and with message `upto` (None: all of it), with a nudge at its end to try it."""
    try:
        if recipe.is_template:
            return _template_preview(record, recipe, upto, nudge)
        return _settings_preview(record, recipe.wrapper(), upto, nudge)
    except RecipeError as error:
        return Preview(problem=problem_sentence(error.problems[0]), problems=tuple(error.problems))


def side_by_side(record: ChatRecord, choices: Sequence[Choice], upto: int | None, nudge: str | None) -> list[Preview]:
    """One preview a choice, with the runs that differ marked: in the first from any other, in the others from it."""
    made = [preview(record, one.recipe, upto, nudge) for one in choices]
    if not made or not made[0].is_good:
        return made
    first = made[0]
    ours: list[tuple[int, int]] = []
    others = []
    for other in made[1:]:
        if not other.is_good:
            others.append(other)
            continue
        left, right = differing_ranges(first.text, other.text)
        ours += left
        others.append(marked(other, right))
    return [marked(first, merged(ours)), *others]


def marked(one: Preview, ranges: list[tuple[int, int]]) -> Preview:
    """The preview with these characters marked as differing."""
    if one.prompt is None:
        return one
    return _shown(with_differences(one.prompt, ranges), one.left_out)


def _shown(prompt: ShownPrompt, left_out: Sequence[str]) -> Preview:
    runs = list(visible_runs(prompt.runs))
    shown = 0
    first = len(runs)
    while first > 0 and shown < MAX_SHOWN and len(runs) - first < MAX_RUNS:
        first -= 1
        shown += len(runs[first].text)
    cut = sum(len(run.text) for run in runs[:first])
    return Preview(runs[first:], prompt.text, left_out, len(prompt.look_alikes), cut, prompt=prompt)


# Settings over a built-in


def _settings_preview(record: ChatRecord, wrapper: ChatWrapper, upto: int | None, nudge: str | None) -> Preview:
    if _cost(record, wrapper) > _MAX_COST:
        return Preview(problem=_("This chat with these settings gives a prompt that is too large to show."))
    try:
        prompt = render_record(record, wrapper, upto, nudge)
    except ValueError as error:
        message = _first_failing(record, wrapper, upto)
        return Preview(problem=_("This wrapper can't write this chat: %(reason)s") % {"reason": error}, message=message)
    return _shown(shown_pieces(prompt.pieces, nudge), left_out_sentences(prompt.left_out))


def _cost(record: ChatRecord, wrapper: ChatWrapper) -> int:
    """How many characters rendering may touch at most, by a generous estimate."""
    texts = [text for _path, text in texts_of(wrapper.settings)] + list(wrapper.wording.values())
    written = sum(len(str(text)) for text in texts) + len(str(wrapper.options))
    slots = sum(str(text).count("{{") for text in texts)
    tools = sum(len(json.dumps(tool.parameters or {})) + len(tool.description or "") for tool in record.tools or ())
    contents = sum(len(message.content) for message in record.chat.messages)
    calls = [call for details in record.details for call in details.tool_calls]
    arguments = sum(len(str(call.arguments)) + len(call.name) for call in calls)
    # A name with a dollar sign may pull the text around a parameter into the text once more for each parameter.
    tricky = sum(written * (1 + slots) for call in calls if "$" in call.name or "$" in str(call.arguments))
    each = len(record.chat.messages) * (written + 200)
    return contents + each + (arguments + tools) * (1 + slots) + tricky


def _first_failing(record: ChatRecord, wrapper: ChatWrapper, upto: int | None) -> int | None:
    until = time.monotonic() + _SEARCH_SECONDS
    low, high = 0, len(record.chat.messages) - 1 if upto is None else upto
    while low < high and time.monotonic() < until:
        middle = (low + high) // 2
        try:
            render_record(record, wrapper, middle)
            low = middle + 1
        except ValueError:
            high = middle
    return low if low == high else None


# Chat templates


def _request(recipe: Recipe, given: TemplateInput, provenance: bool = True) -> RenderRequest:
    return RenderRequest(
        template=recipe.template_for(given.tools),
        messages=as_served(given.messages, recipe.habits),
        tools=given.tools,
        kwargs=recipe.kwargs,
        tokens=recipe.tokens,
        profile=recipe.profile,
        add_generation_prompt=given.add_generation_prompt,
        provenance=provenance,
    )


def _template_preview(record: ChatRecord, recipe: Recipe, upto: int | None, nudge: str | None) -> Preview:
    given = template_input(record, upto, nudge)
    try:
        request = _request(recipe, given)
    except ValueError as error:
        return Preview(problem=str(error))
    outcome = shared_pool().render_request(request)
    if isinstance(outcome, TemplateFailure):
        place = _failing_message(request, outcome)
        message = None if place is None else given.message_indexes[place]
        return Preview(problem=failure_sentence(outcome), failure=outcome, line=outcome.line, message=message)
    prompt = shown_template(outcome, request.messages, given.message_indexes, request.template, recipe.tokens)
    return _shown(prompt, left_out_sentences(given.left_out))


def _failing_message(request: RenderRequest, failure: TemplateFailure) -> int | None:
    """The first message with which the template fails as it does with all of them; found by halving."""
    if failure.kind not in ("message", "error") or not request.messages:
        return None
    until = time.monotonic() + _SEARCH_SECONDS
    low, high = 1, len(request.messages)
    while low < high:
        if time.monotonic() > until:
            return None
        middle = (low + high) // 2
        outcome = shared_pool().render(
            template=request.template,
            messages=request.messages[:middle],
            tools=request.tools,
            kwargs=request.kwargs,
            tokens=request.tokens,
            profile=request.profile,
            add_generation_prompt=request.add_generation_prompt,
        )
        if isinstance(outcome, Rendered):
            low = middle + 1
        else:
            high = middle
    return low - 1


# Turn by turn


def prefix_steps(record: ChatRecord, recipe: Recipe) -> list[Step]:
    """Does the prompt of each turn stay the start of the next one's? Stops when its time is up."""
    until = time.monotonic() + _STABILITY_SECONDS
    out_of_time = TemplateFailure("limit", "LimitExceeded", "", None, "time")
    if not recipe.is_template:
        return _wrapper_steps(record, recipe.wrapper(), until)
    given = template_input(record)
    request = _request(recipe, given, provenance=False)

    def render(one: RenderRequest) -> Rendered | TemplateFailure:
        return shared_pool().render_request(one) if time.monotonic() < until else out_of_time

    return list(stability(request, render))


def _wrapper_steps(record: ChatRecord, wrapper: ChatWrapper, until: float) -> list[Step]:
    answers = [i for i, m in enumerate(record.chat.messages) if m.role == record.chat.ai_role and i > 0]
    if _cost(record, wrapper) > _MAX_COST:
        return []
    open_prompts: dict[int, str] = {}
    comparison: Comparison
    steps = []

    def prompt(upto: int) -> str:
        return render_record(record, wrapper, upto).text

    for turn, (here, following) in enumerate(pairwise(answers), start=1):
        if time.monotonic() > until or turn > _MAX_TURNS:
            break
        earlier = open_prompts.get(here) or prompt(here - 1)
        later = open_prompts[following] = prompt(following - 1)
        for comparison, text in (("with_generation_prompt", earlier), ("after_closed_turn", prompt(here))):
            found = difference(text, later)
            lost = len(text) - found.at if found else 0
            steps.append(Step(comparison, turn, here, found is None, found, lost_characters=lost))
    return sorted(steps, key=lambda step: step.comparison == "after_closed_turn")

"""The editor's pages: numbers for what is typed, sets with addresses, autosave, conflicts that keep three sides."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from chats.domain.spans import render_record
from chats.models import Chat, SavedSearch
from chats.queries.chats import record_of
from chats.queries.wrappers import built_in_choice
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant, User
from rules.models import DraftRevision, KnownPrompt, Release, RuleDraft, Verdict
from rules.queries.draft_states import state_of
from rules.services import drafts, publishing
from tests.factories import ALWAYS, make_chat, make_rule, publish, some_author

HTMX = {"HX-Request": "true"}
WHERE = "/t/acme/rules/ACME-01"


def typed(**more: Any) -> dict[str, Any]:
    return {"rule": "ACME-01", "stage": "final", "max_nudges": "1", "expression": ALWAYS, "prompt_en": "Go.", **more}


def headline(text: str) -> list[str]:
    return re.findall(r'headline-value">(?:≈ )?([\d,]+)<', text)


def counted(client: Client, url: str) -> str:
    """The page once it has numbers: on a busy machine the first answers may only say that they are being worked out."""
    texts = (client.get(url).content.decode() for _again in range(50))
    return next(text for text in texts if headline(text))


@pytest.fixture
def chats(acme: Tenant) -> list[Chat]:
    return [
        make_chat(
            acme,
            {"role": "user", "content": "Please mend it."},
            {"role": "assistant", "content": text, "finish_reason": "stop"},
            external_id=f"chat-{number}",
            tools=["mend"],
        )
        for number, text in enumerate(["I will mend it now.", "Je vais réparer cela.", "It is mended."])
    ]


def test_numbers_of_what_is_typed_are_not_saved(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    make_rule(acme)
    answer = author.post(
        "/t/acme/rules/check/effect", typed(expression="announces_action(ctx.final_text)"), headers=HTMX
    )
    text = answer.content.decode()
    assert headline(text) == ["2", "2", "0", "0"]
    assert 'id="effect-numbers"' in text
    with scope(tenant=acme):
        assert RuleDraft.objects.get().expression == ALWAYS


def test_a_rule_without_a_code_yet_has_numbers_too(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    answer = author.post("/t/acme/rules/check/effect", {"expression": ALWAYS, "stage": "final"}, headers=HTMX)
    assert headline(answer.content.decode()) == ["3", "3", "0", "0"]


def test_an_error_keeps_the_last_numbers(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    answer = author.post("/t/acme/rules/check/effect", typed(expression="ctx.mutatd"), headers=HTMX)
    text = answer.content.decode()
    assert 'id="effect-numbers"' not in text
    assert "those from before it" in text
    assert "data-repair" in text


@pytest.mark.parametrize(
    ("stage", "expression", "kind"),
    [
        ("round", "ctx.mutated", "no-data"),
        ("final", "ctx.budget_low", "not-evaluable"),
        ("final", 'ctx.final_text.contains("nowhere")', "zero"),
    ],
)
def test_three_kinds_of_nought(
    author: Client, acme: Tenant, chats: list[Chat], stage: str, expression: str, kind: str
) -> None:
    answer = author.post("/t/acme/rules/check/effect", {"expression": expression, "stage": stage}, headers=HTMX)
    assert re.findall(r'data-zero="([^"]+)"', answer.content.decode()) == [kind]


def test_without_chats_there_is_a_way_to_get_some(author: Client, acme: Tenant) -> None:
    answer = author.post("/t/acme/rules/check/effect", {"expression": ALWAYS}, headers=HTMX)
    assert "/t/acme/chats/import" in answer.content.decode()


@pytest.mark.parametrize(
    "expression",
    ["(" * 3000, "!" * 6000, "1+" * 20000 + "1", "ctx.__class__", "9" * 5000, "\x00\u202e😀",
     "ctx.final_text.matches('(x{0,20}){0,20}y')", r"ctx.final_text.matches('(\pL?\s?){40}y')", "[1].map(x, x)"],
)  # fmt: skip
def test_whatever_is_typed_is_answered(author: Client, acme: Tenant, chats: list[Chat], expression: str) -> None:
    assert author.post("/t/acme/rules/check/effect", typed(expression=expression), headers=HTMX).status_code == 200


def test_the_page_of_a_state_is_the_same_for_everybody(
    author: Client, viewer: Client, acme: Tenant, chats: list[Chat]
) -> None:
    publish(acme, make_rule(acme))
    author.post(f"{WHERE}/edit", typed(revision=0, expression="announces_action(ctx.final_text)"))
    author.post(f"{WHERE}/edit", typed(revision=3, expression="ctx.mutated"))
    with scope(tenant=acme):
        first = DraftRevision.objects.order_by("number")[1].number
    text = viewer.get(f"{WHERE}/effect?draft={first}&set=gone").content.decode()
    assert "It is mended." in text
    assert "Je vais" not in text
    assert "State 2 of the draft" in text
    same = viewer.get(f"{WHERE}/effect?draft={first}&set=same").content.decode()
    assert "<mark>I will mend</mark>" in same
    assert viewer.get(f"{WHERE}/effect?draft=99").status_code == 404


def test_a_row_opens_to_the_reason_and_the_nudge_in_place(
    author: Client, viewer: Client, acme: Tenant, chats: list[Chat]
) -> None:
    publish(acme, make_rule(acme, "EARLIER", expression='ctx.final_text.contains("Je vais")'))
    make_rule(acme, prompt_en="Mend it with a tool call.")
    point = f"{chats[1].pk}.1.1-final"
    text = viewer.get(f"{WHERE}/effect?set=shadowed&point={point}").content.decode()
    assert "Je vais réparer" in text
    assert 'class="why-true"' in text
    assert text.index("Rules before it") < text.index("<code>EARLIER</code> ", text.index("Rules before it"))
    assert "Mend it with a tool call." in text
    gone = viewer.get(f"{WHERE}/effect?set=fires&point={chats[1].pk}.1.77-final").content.decode()
    assert "there any more" in gone


def test_near_misses_name_the_clause_that_blocks(viewer: Client, acme: Tenant, chats: list[Chat]) -> None:
    make_rule(acme, expression="announces_action(ctx.final_text) && ctx.mutated")
    text = viewer.get(f"{WHERE}/effect?set=near").content.decode()
    assert re.search(r"<code>ctx\.mutated</code></a></th><td class=\"num\">2</td>", text)


def test_autosave_is_one_entry_a_sitting_and_remembers_no_half_prompt(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    with scope(tenant=acme):
        before, prompts = Entry.objects.count(), KnownPrompt.objects.count()
    for revision, text in enumerate(["G", "Go", "Go on"], start=1):
        answer = author.post(f"{WHERE}/edit", typed(revision=revision, prompt_en=text, by_itself="1"), headers=HTMX)
        assert answer.status_code == 200
        assert answer["HX-Replace-Url"] == f"{WHERE}/edit?draft={revision + 1}"
    with scope(tenant=acme):
        assert Entry.objects.count() == before + 1
        assert KnownPrompt.objects.count() == prompts
    author.post(f"{WHERE}/edit", typed(revision=4, prompt_en="Go on"))
    with scope(tenant=acme):
        assert KnownPrompt.objects.count() == prompts + 1


def test_who_else_is_writing_is_told_while_typing(author: Client, acme: Tenant, people: dict[str, User]) -> None:
    rule = make_rule(acme)
    with scope(tenant=acme):
        drafts.save_draft(tenant=acme, rule=rule, by=people["admin"], revision=1, content={"title_en": "Other"})
    text = author.post("/t/acme/rules/check/effect", typed(revision=1), headers=HTMX).content.decode()
    assert "Admin is writing on this rule too" in text
    text = author.post("/t/acme/rules/check/effect", typed(revision=2), headers=HTMX).content.decode()
    assert "is writing on this rule too" not in text


def test_a_conflict_keeps_three_sides_and_takes_a_choice_a_field(
    author: Client, acme: Tenant, people: dict[str, User]
) -> None:
    rule = make_rule(acme, prompt_en="First.")
    with scope(tenant=acme):
        theirs = {"prompt_en": "Theirs.", "title_en": "Their title"}
        drafts.save_draft(tenant=acme, rule=rule, by=people["admin"], revision=1, content=theirs)
    quiet = author.post(f"{WHERE}/edit", typed(revision=1, prompt_en="Mine.", by_itself="1"), headers=HTMX)
    assert quiet.status_code == 409
    assert b"Compare and choose" in quiet.content
    answer = author.post(f"{WHERE}/edit", typed(revision=1, prompt_en="Mine.", title_fr="Mon titre"))
    text = answer.content.decode()
    assert answer.status_code == 409
    for side in ("First.", "Theirs.", "Mine.", "Their title", "Mon titre"):
        assert side in text
    decided = typed(revision=2, prompt_en="Mine.", title_fr="Mon titre") | {
        "choice-prompt_en": "both",
        "both-prompt_en": "Theirs. Mine.",
        "choice-title_en": "theirs",
        "theirs-title_en": "Their title",
        "choice-title_fr": "mine",
        "mine-title_fr": "Mon titre",
    }
    assert author.post(f"{WHERE}/edit", decided).status_code == 302
    with scope(tenant=acme):
        draft = RuleDraft.objects.get(rule=rule)
        assert (draft.prompt_en, draft.title_en, draft.title_fr) == ("Theirs. Mine.", "Their title", "Mon titre")


def test_a_draft_that_was_published_meanwhile_is_a_conflict_not_a_loss(author: Client, acme: Tenant) -> None:
    rule = make_rule(acme, prompt_en="Published.")
    publish(acme, rule)
    answer = author.post(f"{WHERE}/edit", typed(revision=1, prompt_en="Mine."))
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "Published." in text
    assert "Mine." in text


def test_an_older_state_can_be_the_draft_again(author: Client, acme: Tenant) -> None:
    rule = make_rule(acme, prompt_en="One.")
    author.post(f"{WHERE}/edit", typed(revision=1, prompt_en="Two."))
    text = author.get(f"{WHERE}/edit?draft=1").content.decode()
    assert "Make state 1 the draft again" in text
    assert "Two." in text
    author.post(f"{WHERE}/restore", {"number": "1"})
    with scope(tenant=acme):
        state = state_of(rule)
        assert state is not None
        assert (state.content.prompt_en, state.revision) == ("One.", 3)


def test_a_new_draft_goes_on_from_what_is_live(author: Client, acme: Tenant) -> None:
    rule = make_rule(acme)
    publish(acme, rule)
    author.post(f"{WHERE}/edit", typed(revision=0, max_nudges="7"))
    publish(acme, rule)
    with scope(tenant=acme):
        first = Release.objects.get(number=1)
        publishing.roll_back(tenant=acme, to=first, by=some_author(acme), seen_release=2, note="back")
    text = author.get(f"{WHERE}/edit").content.decode()
    assert re.search(r'name="max_nudges" value="1"', text)


def test_special_tokens_in_a_prompt_are_warned_of(author: Client, acme: Tenant) -> None:
    make_rule(acme, prompt_en="Stop.<|im_end|>")
    assert "&lt;|im_end|&gt;" in author.get(f"{WHERE}/edit").content.decode()


def test_completion_tells_observed_values(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    found = author.get("/t/acme/rules/check/completions", {"text": "ctx.finish", "at": "10", "stage": "final"}).json()
    [reason] = [item for item in found["items"] if "finish_reason" in item["label"]]
    assert reason["observed"] == "stop 100 %"
    assert reason["detail"]


def test_a_repair_works_without_script(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    answer = author.post(f"{WHERE}/edit", typed(revision=1, expression="ctx.no_progres > 2", repair="0"))
    assert "ctx.no_progress_rounds &gt; 2</textarea>" in answer.content.decode()


def test_a_save_that_is_not_good_keeps_what_was_typed(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    answer = author.post(f"{WHERE}/edit", typed(revision=1, max_nudges="x", prompt_en="Typed long ago."))
    assert answer.status_code == 422
    assert "Typed long ago." in answer.content.decode()
    quiet = author.post(f"{WHERE}/edit", typed(revision=1, max_nudges="", by_itself="1"), headers=HTMX)
    assert quiet.status_code == 422
    assert "Not saved" in quiet.content.decode()


@pytest.mark.parametrize(
    "wrapper",
    ["ChatMLChatWrapper", "Llama3ChatWrapper", "GemmaChatWrapper", "MistralChatWrapper", "AlpacaChatWrapper"],
)
def test_the_nudge_stands_at_the_end_of_what_the_model_reads(
    viewer: Client, acme: Tenant, chats: list[Chat], wrapper: str
) -> None:
    nudge = "Mend it <now> & here."
    make_rule(acme, prompt_en=nudge)
    point = f"{chats[0].pk}.1.1-final"
    where = f"{WHERE}/effect?part=preview&point={point}&model={wrapper}"
    text = viewer.get(where, headers=HTMX).content.decode()
    shown = text.split("data-spaces>", 1)[1].rsplit("</div>", 2)[0]
    shown = re.sub(r'<span class="added-by".*?</span>', "", shown, flags=re.S)
    shown = html.unescape(re.sub(r"<[^>]+>", "", shown)).strip()
    with scope(tenant=acme):
        record = record_of(chats[0].versions.select_related("chat").get())
    chosen = built_in_choice(wrapper)
    assert chosen is not None
    whole = render_record(record, chosen.recipe.wrapper(), 1, nudge).text
    assert nudge in whole
    assert nudge in shown
    assert re.sub(r"\s+", "", whole).endswith(re.sub(r"\s+", "", shown[-300:]))


def test_a_point_is_judged_from_its_page(reviewer: Client, acme: Tenant, chats: list[Chat]) -> None:
    publish(acme, make_rule(acme))
    where = f"{WHERE}/effect?set=fires&point={chats[0].pk}.1.1-final"
    text = reviewer.get(where).content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text.split('/review/judge"')[1]))
    reviewer.post("/t/acme/review/judge", {**fields, "value": "right"})
    with scope(tenant=acme):
        verdict = Verdict.objects.get()
        assert (verdict.code, verdict.message, verdict.stage, verdict.value) == ("ACME-01", 1, "final", "right")


def test_the_whole_way_goes_without_script(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    answer = author.post("/t/acme/rules/new", typed(code="NEW-01", expression="", revision=0))
    assert answer["Location"].endswith("/rules/NEW-01/edit")
    draft = typed(rule="NEW-01", revision=1, expression='ctx.final_text.contains("will")', show_effect="1")
    answer = author.post("/t/acme/rules/NEW-01/edit", draft)
    assert answer["Location"].endswith("/rules/NEW-01/effect")
    text = author.get(answer["Location"]).content.decode()
    assert "I will mend it now." in text.replace("<mark>", "").replace("</mark>", "")


def test_a_rule_begins_with_the_chats_of_a_search(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    with scope(tenant=acme):
        search = SavedSearch.objects.create(tenant=acme, name="Mended", query="q=r%C3%A9parer")
    text = author.get(f"/t/acme/rules/new?from=search:{search.pk}").content.decode()
    assert re.search(rf'<option value="search:{search.pk}" selected>Mended', text)
    answer = author.post(
        "/t/acme/rules/check/effect", {"expression": ALWAYS, "corpus": f"search:{search.pk}"}, headers=HTMX
    )
    assert headline(answer.content.decode()) == ["1", "1", "0", "0"]


def test_firings_without_a_date_are_told(author: Client, acme: Tenant, chats: list[Chat]) -> None:
    """The chats of these tests don't say when they began: there is no chart, and the page doesn't keep silent."""
    make_rule(acme)
    text = counted(author, f"{WHERE}/effect")
    assert "3 firings without a date" in text
    assert "<figure" not in text
    assert "3 firings without a date" in author.get(f"{WHERE}/effect?part=chart", headers=HTMX).content.decode()


def test_matches_have_a_set_and_rows_their_verdicts(
    viewer: Client, acme: Tenant, people: dict[str, User], chats: list[Chat]
) -> None:
    publish(acme, make_rule(acme, "FIRST-01"))
    make_rule(acme)
    text = counted(viewer, f"{WHERE}/effect")
    assert headline(text) == ["0", "3", "3", "0"]
    assert "set=matches" in text
    with scope(tenant=acme):
        version = chats[0].versions.get()
        Verdict.objects.create(
            tenant=acme,
            code="ACME-01",
            chat=chats[0],
            chat_version=version,
            message=1,
            stage="final",
            value="wrong",
            by=people["reviewer"],
        )
    text = counted(viewer, f"{WHERE}/effect?set=matches")
    assert 'id="tab-matches" aria-current="true"' in text
    assert text.count('class="set-row"') == 3
    assert len(re.findall(r'state-error">(?:(?!</span>).)*wrong</span>', text, re.S)) == 1

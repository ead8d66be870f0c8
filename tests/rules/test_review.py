"""Review: queues, verdicts by person, undo, agreement, precision and recall."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django_scopes import scope

from chats.models import ChatVersion, SavedSearch
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant, User
from rules.models import Replay, ReviewItem, ReviewQueue, Verdict
from rules.queries.reviews import agreement_of, quality
from rules.services.reviewing import JudgedPoint, judge
from tests.conftest import client_of
from tests.factories import exchange_chat, import_text, make_replay, make_rule, publish

URL = "/t/acme/review/"


@pytest.fixture
def replay(acme: Tenant) -> Replay:
    """Four chats; the rule fires once in each."""
    import_text(acme, "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(4)))
    publish(acme, make_rule(acme))
    return make_replay(acme, drafts=False)


@pytest.fixture
def queue(reviewer: Client, acme: Tenant, replay: Replay) -> ReviewQueue:
    reviewer.post(f"{URL}new", {"kind": "firings", "code": "ACME-01", "name": "Mine", "limit": "50"})
    with scope(tenant=acme):
        return ReviewQueue.objects.get()


def items_of(tenant: Tenant, queue: ReviewQueue) -> list[ReviewItem]:
    with scope(tenant=tenant):
        return list(ReviewItem.objects.filter(queue=queue))


def typed(item: ReviewItem, value: str, **more: object) -> dict[str, object]:
    """What the form of the item's page sends."""
    return {
        "queue": item.queue_id,
        "item": item.position,
        "chat_version": item.chat_version_id,
        "message": item.message,
        "stage": item.stage,
        "turn": item.turn,
        "code": item.code,
        "version": item.version,
        "value": value,
        **more,
    }


def test_a_queue_holds_each_new_firing_once(acme: Tenant, queue: ReviewQueue) -> None:
    items = items_of(acme, queue)
    assert queue.item_count == len(items) == 4
    assert [item.position for item in items] == [1, 2, 3, 4]
    assert {(item.code, item.version, item.message, item.stage) for item in items} == {("ACME-01", 1, 1, "final")}
    with scope(tenant=acme):
        assert Entry.objects.get(object_type="review").action == "review.queue"


def test_the_item_shows_context_reason_and_prompt(reviewer: Client, queue: ReviewQueue) -> None:
    page = reviewer.get(f"{URL}?queue={queue.pk}").content.decode()
    for part in ("Item 1 of 4", "What is 2 + 2?", "I will compute it now.", "Go on, says ACME-01.", "ctx.final_text"):
        assert part in page
    for action in ("verdict-right", "verdict-wrong", "verdict-unsure", "verdict-undo", "verdict-note", "review-next"):
        assert f'data-shortcut="{action}"' in page


def test_judging_goes_on_to_the_next_item_and_to_the_end(reviewer: Client, acme: Tenant, queue: ReviewQueue) -> None:
    items = items_of(acme, queue)
    answer = reviewer.post(f"{URL}judge", typed(items[0], "right", note="clear"))
    assert answer["Location"].endswith(f"?queue={queue.pk}&item=2")
    for item in items[1:]:
        answer = reviewer.post(f"{URL}judge", typed(item, "wrong"))
    assert answer["Location"].endswith(f"?queue={queue.pk}")
    assert b"You have judged all 4 items" in reviewer.get(answer["Location"]).content
    with scope(tenant=acme):
        verdict = Verdict.objects.order_by("id").first()
        assert (verdict.value, verdict.note, verdict.code, verdict.version) == ("right", "clear", "ACME-01", 1)
        assert (verdict.chat_version_id, verdict.message, verdict.stage) == (items[0].chat_version_id, 1, "final")
        assert Entry.objects.filter(action="verdict.give").count() == 4


def test_changing_and_undoing_step_by_step(reviewer: Client, acme: Tenant, queue: ReviewQueue) -> None:
    item = items_of(acme, queue)[2]

    def values() -> list[tuple[str, str]]:
        with scope(tenant=acme):
            return list(Verdict.objects.values_list("value", "note"))

    reviewer.post(f"{URL}judge", typed(item, "right"))
    reviewer.post(f"{URL}judge", typed(item, "wrong", note="no"))
    reviewer.post(f"{URL}judge", typed(item, "wrong", note="no"))
    assert values() == [("wrong", "no")]
    answer = reviewer.post(f"{URL}undo", {"queue": queue.pk})
    assert answer["Location"].endswith("&item=3")
    assert values() == [("right", "")]
    reviewer.post(f"{URL}undo", {"queue": queue.pk})
    assert values() == []
    reviewer.post(f"{URL}undo", {"queue": queue.pk})
    with scope(tenant=acme):
        actions = Entry.objects.filter(object_type="verdict").order_by("number").values_list("action", flat=True)
        assert list(actions) == ["verdict.give", "verdict.give", "verdict.undo", "verdict.undo"]


def test_several_reviewers_agree_or_not(acme: Tenant, people: dict[str, User], queue: ReviewQueue) -> None:
    items = items_of(acme, queue)
    said = {"reviewer": ["right", "right", "wrong", "right"], "author": ["right", "wrong", "wrong"]}
    for name, values in said.items():
        client = client_of(people[name])
        for item, value in zip(items, values, strict=False):
            client.post(f"{URL}judge", typed(item, value))
    with scope(tenant=acme):
        found = agreement_of(queue)
        assert (found.judged_by_several, found.same) == (3, 2)
        assert [d.item.position for d in found.disagreements] == [2]
        (pair,) = found.pairs
        assert (pair.first, pair.second, pair.items, pair.same) == ("Author", "Reviewer", 3, 2)
        # Chance: right 1/3 by 2/3, wrong 2/3 by 1/3.
        assert pair.kappa == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
        (row,) = quality()
        # The item on which they differ counts for neither side.
        assert (row.code, row.version, row.precision.hits, row.precision.n) == ("ACME-01", 1, 2, 3)
    page = client_of(people["viewer"]).get(f"{URL}?queue={queue.pk}&show=agreement").content.decode()
    assert "Author and Reviewer" in page
    assert "too few (n = 3)" in client_of(people["viewer"]).get(URL).content.decode()


def test_twenty_labels_are_enough_for_a_percentage(viewer: Client, acme: Tenant, people: dict[str, User]) -> None:
    import_text(acme, "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(20)))
    with scope(tenant=acme):
        for n, version in enumerate(ChatVersion.objects.select_related("chat")):
            point = JudgedPoint(version, 1, "final", code="R", rule_version=3)
            judge(tenant=acme, by=people["reviewer"], point=point, value="right" if n else "wrong")
    page = viewer.get(URL).content.decode()
    # 19 of 20: Wilson gives 0.7639 to 0.9911.
    assert "95\u00a0%" in page
    assert "76\u00a0% – 99\u00a0% · n = 20" in page


def test_missed_points_lower_the_recall(reviewer: Client, acme: Tenant, replay: Replay) -> None:
    reviewer_search = {"q": "compute", "name": "All"}
    with scope(tenant=acme):
        search = SavedSearch.objects.create(tenant=acme, name=reviewer_search["name"], query="q=compute")
        quiet = make_rule(acme, "QUIET", expression="ctx.mutated")
    publish(acme, quiet)
    reviewer.post(f"{URL}new", {"kind": "search", "search": search.pk, "silent": "1"})
    with scope(tenant=acme):
        queue = ReviewQueue.objects.get()
    item = items_of(acme, queue)[0]
    reviewer.post(f"{URL}judge", typed(item, "right"))
    reviewer.post(f"{URL}judge", typed(item, "missed", code="QUIET", version=0))
    with scope(tenant=acme):
        rows = {row.code: row for row in quality()}
        # Missed by the version that is live.
        assert (rows["QUIET"].version, rows["QUIET"].recall.hits, rows["QUIET"].recall.n) == (1, 0, 1)
        assert (rows["ACME-01"].recall.hits, rows["ACME-01"].recall.n) == (1, 1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kind": "firings", "code": "NO-SUCH"}, b"Choose a rule"),
        ({"kind": "search", "search": "99"}, b"Choose a saved search"),
        ({"kind": "search"}, b"Choose a saved search"),
    ],
)
def test_a_queue_of_nothing_is_refused(
    reviewer: Client, replay: Replay, given: dict[str, str], sentence: bytes
) -> None:
    answer = reviewer.post(f"{URL}new", given)
    assert answer.status_code == 422
    assert sentence in answer.content


def test_a_queue_without_a_replay_is_refused(reviewer: Client, acme: Tenant) -> None:
    assert reviewer.post(f"{URL}new", {"kind": "firings", "code": "X"}).status_code == 422


@pytest.mark.parametrize(
    "change",
    [{"value": "great"}, {"message": "99"}, {"stage": "middle"}, {"message": "²"}, {"code": "", "value": "wrong"}],
)
def test_what_is_no_verdict_changes_nothing(
    reviewer: Client, acme: Tenant, queue: ReviewQueue, change: dict[str, str]
) -> None:
    given = typed(items_of(acme, queue)[0], "right") | change
    assert reviewer.post(f"{URL}judge", given).status_code == 302
    with scope(tenant=acme):
        assert not Verdict.objects.exists()


def test_from_the_chat_one_comes_back_to_the_chat(reviewer: Client, acme: Tenant, queue: ReviewQueue) -> None:
    given = typed(items_of(acme, queue)[0], "right")
    del given["queue"]
    here = "/t/acme/chats/1/?point=1-final"
    assert reviewer.post(f"{URL}judge", given | {"next": here})["Location"] == here
    for elsewhere in ("https://evil.example/", "//evil.example/", "/t/other/", "javascript:x"):
        assert reviewer.post(f"{URL}judge", given | {"next": elsewhere})["Location"] == URL


def test_a_viewer_looks_and_judges_nothing(viewer: Client, acme: Tenant, queue: ReviewQueue) -> None:
    assert viewer.post(f"{URL}judge", typed(items_of(acme, queue)[0], "right")).status_code == 403
    assert b"your role only looks" in viewer.get(f"{URL}?queue={queue.pk}").content
    assert viewer.get(f"{URL}?queue=99").status_code == viewer.get(f"{URL}?queue={queue.pk}&item=9").status_code == 404


def test_nobody_takes_back_what_somebody_else_said(acme: Tenant, people: dict[str, User], queue: ReviewQueue) -> None:
    client_of(people["author"]).post(f"{URL}judge", typed(items_of(acme, queue)[0], "right"))
    with scope(tenant=acme):
        verdict = Verdict.objects.get()
    client_of(people["reviewer"]).post(f"{URL}undo", {"verdict": verdict.pk})
    with scope(tenant=acme):
        assert Verdict.objects.count() == 1


def test_a_queue_outlives_its_chats(reviewer: Client, acme: Tenant, queue: ReviewQueue) -> None:
    items = items_of(acme, queue)
    reviewer.post(f"{URL}judge", typed(items[0], "right"))
    with scope(tenant=acme):
        items[0].chat.delete()
        assert Verdict.objects.get().value == "right"
    assert b"The chat of this item is gone" in reviewer.get(f"{URL}?queue={queue.pk}&item=1").content


def test_points_and_queues_of_another_tenant_are_unknown(
    people: dict[str, User], acme: Tenant, queue: ReviewQueue
) -> None:
    given = typed(items_of(acme, queue)[0], "right")
    client = client_of(people["stranger"])
    for path, form in (("judge", given), ("undo", {"queue": queue.pk}), ("new", {"kind": "search"})):
        assert client.post(f"{URL}{path}", form).status_code == 404
    here = "/t/elsewhere/review/"
    assert client.post(f"{here}judge", given).status_code == 404
    assert client.get(f"{here}?queue={queue.pk}").status_code == client.get(f"{here}?queue=98765").status_code == 404
    with scope(tenant=acme):
        assert not Verdict.objects.exists()

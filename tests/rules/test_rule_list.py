"""The list of rules: its filters, orders and columns, what the row actions do, and their way back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_scopes import scope

from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge, Release, ReleaseEntry, Verdict
from rules.queries.rules import live_number
from rules.services.drafts import save_draft
from tests.factories import make_chat, make_replay, make_rule, publish, some_author

URL = "/t/acme/rules/"
HTMX = {"HX-Request": "true"}


def shown(client: Client, query: str = "") -> list[str]:
    """The codes of the rows, in order."""
    text = client.get(f"{URL}?{query}".removesuffix("?")).content.decode()
    return re.findall(r'<a data-open href="/t/acme/rules/([^/"]+)/">', text)


def nudge(tenant: Tenant, code: str, at: datetime | None, source: str = "import") -> None:
    with scope(tenant=tenant):
        RecordedNudge.objects.create(tenant=tenant, code=code, source=source, at=at)


@pytest.fixture
def rules(acme: Tenant) -> None:
    """B and A are live in this order; C is a draft in French only, of the other stage."""
    full = {"title_en": "One", "title_fr": "Une", "prompt_en": "Go.", "prompt_fr": "Allez."}
    publish(acme, make_rule(acme, "B-RULE", **full), make_rule(acme, "A-RULE", **{**full, "title_fr": ""}))
    make_rule(acme, "C-RULE", stage="round", prompt_en="", title_fr="Titre", prompt_fr="Continuez.")


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("", ["B-RULE", "A-RULE", "C-RULE"]),
        ("q=TITRE", ["C-RULE"]),
        ("stage=round", ["C-RULE"]),
        ("state=live", ["B-RULE", "A-RULE"]),
        ("state=draft", ["C-RULE"]),
        ("lang=en", ["B-RULE", "A-RULE"]),
        ("lang=fr", ["B-RULE", "C-RULE"]),
        ("lang=no-en", ["C-RULE"]),
        ("lang=no-fr", ["A-RULE"]),
        ("sort=code", ["A-RULE", "B-RULE", "C-RULE"]),
        ("stage=final&sort=code", ["A-RULE", "B-RULE"]),
        ("sort=nonsense&stage=nonsense", ["B-RULE", "A-RULE", "C-RULE"]),
    ],
)
def test_the_address_narrows_and_orders(viewer: Client, query: str, codes: list[str]) -> None:
    assert shown(viewer, query) == codes


@pytest.mark.usefixtures("rules")
def test_when_rules_fired(viewer: Client, acme: Tenant) -> None:
    now = timezone.now()
    nudge(acme, "A-RULE", now - timedelta(days=2))
    nudge(acme, "A-RULE", None)
    nudge(acme, "B-RULE", now - timedelta(days=10))
    assert shown(viewer, "fired=7") == ["A-RULE"]
    assert shown(viewer, "fired=30") == ["B-RULE", "A-RULE"]
    assert shown(viewer, "fired=not-30") == ["C-RULE"]
    assert shown(viewer, "fired=never") == ["C-RULE"]
    assert shown(viewer, "sort=fired") == ["A-RULE", "B-RULE", "C-RULE"]
    assert shown(viewer, "sort=fires") == ["A-RULE", "B-RULE", "C-RULE"]


@pytest.mark.usefixtures("rules")
def test_a_firing_without_a_time_is_neither_now_nor_never(viewer: Client, acme: Tenant) -> None:
    nudge(acme, "A-RULE", None)
    assert shown(viewer, "fired=7") == []
    assert shown(viewer, "fired=never") == ["B-RULE", "C-RULE"]
    text = viewer.get(URL).content.decode()
    assert "at an unknown time" in text
    assert "one without a time" in text


@pytest.mark.usefixtures("rules")
def test_the_least_precise_comes_first(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme)
    with scope(tenant=acme):
        version = chat.versions.get()
        for code, right in (("A-RULE", 15), ("B-RULE", 19)):
            for number in range(20):
                Verdict.objects.create(
                    tenant=acme,
                    code=code,
                    chat_version=version,
                    message=number,
                    stage="final",
                    by=some_author(acme),
                    value="right" if number < right else "wrong",
                )
    assert shown(viewer, "sort=precision") == ["A-RULE", "B-RULE", "C-RULE"]
    assert "75 %" in viewer.get(URL).content.decode()


@pytest.mark.usefixtures("rules")
def test_defaults_are_not_in_the_address(viewer: Client) -> None:
    answer = viewer.get(f"{URL}?q=&stage=final&state=&lang=&fired=&sort=")
    assert (answer.status_code, answer["Location"]) == (302, f"{URL}?stage=final")
    answer = viewer.get(f"{URL}?q=one&stage=&state=&lang=&fired=&sort=", headers=HTMX)
    assert (answer.status_code, answer["HX-Replace-Url"]) == (200, f"{URL}?q=one")
    text = answer.content.decode()
    assert "<html" not in text
    assert "2 rules" in text


@pytest.mark.usefixtures("rules")
def test_the_last_evaluation_is_the_newest_trace(viewer: Client, acme: Tenant) -> None:
    assert "replay<" not in viewer.get(URL).content.decode()
    make_chat(acme)
    replay = make_replay(acme, drafts=False)
    nudge(acme, "A-RULE", datetime(2020, 1, 1, tzinfo=UTC), "live")
    nudge(acme, "B-RULE", timezone.now() + timedelta(hours=1), "observe")
    text = viewer.get(URL).content.decode()
    # The replay is newer than the nudge of one rule and older than that of the other; it held no draft.
    assert text.count(f'href="/t/acme/replays/{replay.pk}/"') == 1
    assert text.count("observed nudge") == 1
    assert "live nudge" not in text


def test_more_rules_take_no_more_queries(viewer: Client, acme: Tenant) -> None:
    make_chat(acme)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            viewer.get(URL)
        return len(caught)

    publish(acme, make_rule(acme, "R-0"))
    make_rule(acme, "D-0")
    make_replay(acme)
    nudge(acme, "R-0", timezone.now())
    queries()
    before = queries()
    publish(acme, *(make_rule(acme, f"R-{n}") for n in range(1, 8)))
    for n in range(1, 8):
        make_rule(acme, f"D-{n}")
        nudge(acme, f"R-{n}", timezone.now())
    make_replay(acme)
    assert queries() == before


# --- row actions


def modes(tenant: Tenant) -> dict[str, str]:
    with scope(tenant=tenant):
        live = Release.objects.get(status=Release.Status.LIVE)
        return {e.version.rule.code: e.mode for e in live.entries.select_related("version__rule")}


def act(client: Client, tenant: Tenant, code: str, action: str, **more: str) -> str:
    with scope(tenant=tenant):
        seen = live_number()
    answer = client.post(f"{URL}{code}/mode", {"action": action, "seen_release": seen, **more})
    return str(answer["Location"])


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("action", "after", "sentence"),
    [
        ("pause", {"B-RULE": "paused", "A-RULE": "live"}, "B-RULE is switched off in release 2"),
        ("observe", {"B-RULE": "observe", "A-RULE": "live"}, "B-RULE is only observed in release 2"),
        ("take_out", {"A-RULE": "live"}, "B-RULE isn’t part of release 2"),
    ],
)
def test_an_action_says_what_it_did_and_can_be_undone(
    publisher: Client, acme: Tenant, action: str, after: dict[str, str], sentence: str
) -> None:
    where = act(publisher, acme, "B-RULE", action, list="stage=final&state=&sort=code")
    assert where == f"{URL}?stage=final&sort=code&changed=B-RULE&release=2"
    assert modes(acme) == after
    text = publisher.get(where).content.decode()
    assert sentence in text
    assert 'value="undo"' in text
    where = act(publisher, acme, "B-RULE", "undo", list="stage=final&sort=code")
    assert where == f"{URL}?stage=final&sort=code"
    assert modes(acme) == {"B-RULE": "live", "A-RULE": "live"}


@pytest.mark.usefixtures("rules")
def test_undoing_keeps_the_end_of_other_observations(publisher: Client, acme: Tenant) -> None:
    act(publisher, acme, "A-RULE", "observe")
    ends = datetime(2040, 1, 1, tzinfo=UTC)
    with scope(tenant=acme):
        ReleaseEntry.objects.filter(mode="observe").update(observe_until=ends)
    act(publisher, acme, "B-RULE", "pause")
    act(publisher, acme, "B-RULE", "undo")
    with scope(tenant=acme):
        live = Release.objects.get(status=Release.Status.LIVE)
        assert [e.observe_until for e in live.entries.order_by("position")] == [None, ends]


@pytest.mark.usefixtures("rules")
def test_only_what_one_did_oneself_can_be_undone(publisher: Client, viewer: Client, acme: Tenant) -> None:
    where = act(publisher, acme, "B-RULE", "pause")
    assert 'value="undo"' not in viewer.get(where).content.decode()
    act(publisher, acme, "A-RULE", "pause")
    assert 'value="undo"' not in publisher.get(where).content.decode()


@pytest.mark.usefixtures("rules")
def test_observing_what_is_live_is_said_before_it_happens(publisher: Client, acme: Tenant) -> None:
    row = publisher.get(f"{URL}?q=B-RULE").content.decode()
    assert re.search(r'value="observe"><span>Only observe <span class="sub">stops nudging', row)


def test_observing_a_draft_of_a_live_rule_says_what_ends(publisher: Client, acme: Tenant) -> None:
    rule = make_rule(acme)
    page = publisher.get(f"{URL}ACME-01/publish?mode=observe").content.decode()
    assert "observe-warning" not in page
    assert "Observe: it is evaluated" in page
    publish(acme, rule)
    with scope(tenant=acme):
        save_draft(tenant=acme, rule=rule, by=some_author(acme), revision=0, content={"prompt_en": "Another."})
    page = publisher.get(f"{URL}ACME-01/publish?mode=observe").content.decode()
    assert "ACME-01 nudges nowhere" in page
    assert "Observe instead: version 1 stops nudging" in page
    assert "from=copy:ACME-01" in page
    assert "Observe instead of live" in publisher.get(f"{URL}ACME-01/edit").content.decode()

    publisher.post(f"{URL}ACME-01/publish", {"mode": "observe", "note": "To see", "seen_release": 1, "action": "add"})
    assert "is live and stops nudging" in publisher.get("/t/acme/releases/open").content.decode()

    given = {"mode": "observe", "note": "To see", "seen_release": 1, "action": "now"}
    where = publisher.post(f"{URL}ACME-01/publish", given)["Location"]
    assert where == f"{URL}ACME-01/?release=2"
    assert "ACME-01 is only observed in release 2" in publisher.get(where).content.decode()
    act(publisher, acme, "ACME-01", "undo")
    with scope(tenant=acme):
        entry = ReleaseEntry.objects.get(release__status=Release.Status.LIVE)
        assert (entry.mode, entry.version.number) == ("live", 1)

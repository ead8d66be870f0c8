"""The history of nudges: list, filters, chart, groups, replays, statistics, export."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from io import BytesIO

import pytest
import time_machine
from django.test import Client
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.exports import check
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge, Verdict
from rules.queries.nudge_statistics import groups, history_chart, rules_and_models
from rules.queries.nudges import NudgeFilter, nudge_page
from tests.factories import make_chat, make_replay, make_rule, publish, some_author

HTMX = {"HX-Request": "true"}
START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def nudged_chat(tenant: Tenant, name: str = "n-1", code: str = "ACME-01", **rest: object) -> None:
    """One final answer, a recorded nudge after it, and an answer that calls a tool."""
    make_chat(
        tenant,
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "I will.", "model": "m-1", "created_at": "2026-05-04T10:00:00Z"},
        {"role": "user", "content": "Do it.", "nudge_code": code, "created_at": "2026-05-04T10:01:00Z"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "bash"}]},
        {"role": "tool", "content": "ok", "tool_call_id": "1"},
        external_id=name,
        **rest,
    )


def live(tenant: Tenant, count: int, **rest: object) -> None:
    with scope(tenant=tenant):
        RecordedNudge.objects.bulk_create(
            RecordedNudge(
                **{
                    "tenant": tenant,
                    "code": f"R-{n % 12:02}",
                    "source": "live",
                    "at": START - timedelta(hours=n),
                    **rest,
                }
            )
            for n in range(count)
        )


def test_pages_hold_every_nudge_once_and_in_order(in_acme: Tenant) -> None:
    live(in_acme, 130)
    live(in_acme, 7, at=None)
    live(in_acme, 5, at=START)  # the same moment five times
    seen, after = [], ""
    while True:
        rows, after = nudge_page(NudgeFilter(), after)
        seen += [row.nudge for row in rows]
        if not after:
            break
    assert len(seen) == len({n.pk for n in seen}) == 142
    assert [(n.sorted_at, n.pk) for n in seen] == sorted(((n.sorted_at, n.pk) for n in seen), reverse=True)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (NudgeFilter(rule="R-01"), 2),
        (NudgeFilter(rule="R-99"), 0),
        (NudgeFilter(source="live"), 24),
        (NudgeFilter(source="import"), 1),
        (NudgeFilter(outcome="acted"), 1),
        (NudgeFilter(outcome="unknown"), 24),
        (NudgeFilter(model="m-1"), 1),
        (NudgeFilter(model="none"), 24),
        (NudgeFilter(start=START.date(), end=START.date()), 13),
        (NudgeFilter(verdict="none"), 25),
        (NudgeFilter(verdict="right"), 0),
    ],
)
def test_filters_leave_the_same_in_list_groups_and_chart(in_acme: Tenant, wanted: NudgeFilter, count: int) -> None:
    live(in_acme, 24)
    nudged_chat(in_acme)
    assert len(nudge_page(wanted)[0]) == count
    if not wanted.verdict:
        assert sum(row.count for row in groups(wanted, "rule")) == count
        assert sum(row.count for row in groups(wanted, "model")) == count
        assert sum(day["total"] for day in history_chart(in_acme, wanted)["days"]) == count


def test_a_verdict_is_shown_and_filtered(viewer: Client, acme: Tenant) -> None:
    nudged_chat(acme)
    nudged_chat(acme, "n-2")
    with scope(tenant=acme):
        nudge = RecordedNudge.objects.order_by("id").first()
        where = {"chat": nudge.chat, "chat_version": nudge.chat_version, "message": 1, "stage": "final"}
        Verdict.objects.create(tenant=acme, by=some_author(acme), code="ACME-01", value="wrong", **where)
        wanted = NudgeFilter(verdict="wrong")
        assert [row.nudge.pk for row in nudge_page(wanted)[0]] == [nudge.pk]
        assert [(row.label, row.count) for row in groups(NudgeFilter(), "verdict")] == [("Wrong", 1), ("not judged", 1)]
    text = viewer.get("/t/acme/nudges/?verdict=wrong").content.decode()
    assert f"/chats/{nudge.chat_id}/?point=1-final&amp;version=1#m-2" in text


def test_the_chart_stacks_eight_series_at_most_and_marks_releases(in_acme: Tenant) -> None:
    live(in_acme, 100)
    with time_machine.travel(START - timedelta(days=2), tick=False):
        publish(in_acme, make_rule(in_acme))
    chart = history_chart(in_acme, NudgeFilter())
    assert len(chart["days"]) == 28
    assert [series["number"] for series in chart["series"]] == list(range(1, 9))
    assert chart["series"][-1]["label"] == "other"
    for day in chart["days"]:
        assert day["total"] == sum(part["value"] for part in day["segments"]) <= chart["max"]
        tops = [part["start"] + part["value"] for part in day["segments"]]
        assert [part["start"] for part in day["segments"]] == [0, *tops[:-1]][: len(tops)]
    (release,) = chart["releases"]
    entry = Entry.objects.get(object_type="release")
    assert (release["day"], release["url"]) == (25, f"/t/acme/changes/{entry.number}/")


def test_the_page_without_and_with_htmx(viewer: Client, acme: Tenant) -> None:
    assert "No nudge is recorded" in viewer.get("/t/acme/nudges/").content.decode()
    live(acme, 60)
    page = viewer.get("/t/acme/nudges/").content.decode()
    assert 'role="img"' in page
    assert "Show as a table" in page
    assert "after=" in page
    part = viewer.get("/t/acme/nudges/?rule=R-03", headers=HTMX).content.decode()
    assert "R-03" in part
    assert "<html" not in part


@pytest.mark.parametrize(
    "query",
    [
        "group=verdict",
        "group=x",
        "set=replay",
        "set=x&replay=9",
        "after=x_y",
        "after=²_²",
        "from=x&version=²",
    ],
)
def test_strange_addresses_are_no_error(viewer: Client, acme: Tenant, query: str) -> None:
    live(acme, 3)
    assert viewer.get(f"/t/acme/nudges/?{query}").status_code == 200


def test_an_unknown_replay_is_unknown(viewer: Client, acme: Tenant, elsewhere: Tenant) -> None:
    make_rule(elsewhere)
    make_chat(elsewhere)
    foreign = make_replay(elsewhere)
    assert viewer.get(f"/t/acme/nudges/?set=replay&replay={foreign.pk}").status_code == 404


def test_replays_apart_and_together_with_what_is_recorded(viewer: Client, acme: Tenant) -> None:
    publish(acme, make_rule(acme))
    nudged_chat(acme)
    nudged_chat(acme, "n-2", code="OTHER")
    make_chat(acme, external_id="new")
    make_replay(acme, drafts=False)
    fired = viewer.get("/t/acme/nudges/?set=replay").content.decode()
    assert "reproduced" in fired
    assert "3 nudges in all" in fired
    both = viewer.get("/t/acme/nudges/?set=both&group=verdict").content.decode()
    assert "different" in both
    assert "OTHER" in both
    one = viewer.get("/t/acme/nudges/?set=replay&model=m-1&lang=&from=2026-05-04").content.decode()
    assert "2 nudges in all" in one


def test_what_came_of_the_nudges_of_a_rule_and_model(in_acme: Tenant) -> None:
    nudged_chat(in_acme)
    make_chat(in_acme, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "model": "m-1"})
    live(in_acme, 1, code="ACME-01", model="m-1", outcome="ignored")
    (row,) = rules_and_models(NudgeFilter())
    assert (row.code, row.model, row.count, row.acted, row.ignored) == ("ACME-01", "m-1", 2, 1, 1)
    # One recorded nudge in the two turns of stored chats; the live one has no stored chat.
    assert row.per_hundred_turns == 50


def test_the_statistics_page(viewer: Client, acme: Tenant) -> None:
    assert viewer.get("/t/acme/nudges/rules").status_code == 200
    publish(acme, make_rule(acme, expression="ctx.finish_reason == null"))
    nudged_chat(acme)
    make_replay(acme, drafts=False)
    page = viewer.get("/t/acme/nudges/rules").content.decode()
    assert "(no finish reason)</span> 1" in page
    assert "Counted over one chat." in page


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_export_holds_what_the_filters_leave(viewer: Client, acme: Tenant, form: str) -> None:
    nudged_chat(acme)
    live(acme, 3)
    body = b"".join(viewer.get(f"/t/acme/nudges/export?format={form}&source=import").streaming_content)
    assert check(BytesIO(body)).flaw is None
    if form == "csv":
        row = next(csv.DictReader(body.decode().splitlines()))
    else:
        row = json.loads(body.splitlines()[0])
        assert len(body.splitlines()) == 2
    assert (row["rule"], row["external_id"], row["outcome"]) == ("ACME-01", "n-1", "acted")
    assert row["time_utc"] == "2026-05-04T10:01:00+00:00"
    assert viewer.get("/t/acme/nudges/export?format=xml").status_code == 404


SECRET_ID = "session-jane.doe@example.com"


def test_exports_mask_ids_as_pages_do(viewer: Client, acme: Tenant) -> None:
    """A chat's own page and export show everything; lists, and exports of lists, don't."""
    publish(acme, make_rule(acme, expression="true"))
    nudged_chat(acme, name=SECRET_ID, title="Password: hunter22")
    replay = make_replay(acme, drafts=False)
    page = viewer.get("/t/acme/chats/").content.decode()
    nudges = b"".join(viewer.get("/t/acme/nudges/export?format=jsonl").streaming_content).decode()
    firings = b"".join(viewer.get(f"/t/acme/replays/{replay.pk}/export?format=jsonl").streaming_content).decode()
    shown = "session-•••@•••"
    assert shown in page or "•••@•••" in page
    for text in (page, nudges, firings):
        assert "jane" not in text
        assert "example.com" not in text
    assert json.loads(nudges.splitlines()[0])["external_id"] == json.loads(firings.splitlines()[0])["external_id"]
    chats = b"".join(viewer.get("/t/acme/chats/export").streaming_content).decode()
    assert SECRET_ID in chats

"""Scheduled replays: each due time once, compared with a baseline, and webhooks and people told of what differs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.test import Client
from django_scopes import scope
from hypothesis import given
from hypothesis import strategies as st

from eleanor_site.audit.models import Entry
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant
from eleanor_site.webhooks import deliveries, posting
from eleanor_site.webhooks.models import Delivery, Event
from eleanor_site.webhooks.services import add_webhook
from rules.chunks.replays import run_here
from rules.domain.due_times import next_due
from rules.models import Replay, ReplaySchedule, Rule, ScheduledRun
from rules.queries.schedules import last_regressions, schedule_rows
from rules.scheduled_replays import judge_done_runs, run_due, start_due_runs
from rules.services.replays import stop_replay
from rules.services.schedules import MOST_SCHEDULES, add_schedule, remove_schedule, start_due, switch_schedule
from tests.factories import import_text, make_chat, make_replay, make_rule, publish, some_author
from tests.rules.random_chats import random_lines

MONDAY = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
Rules = ReplaySchedule.Rules


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def rule(in_acme: Tenant) -> Rule:
    import_text(in_acme, random_lines(41, 12))
    rule = make_rule(in_acme, "A", expression="ctx.tool_calls_total == 0")
    publish(in_acme, rule)
    return rule


@pytest.fixture
def schedule(in_acme: Tenant, rule: Rule) -> ReplaySchedule:
    with time_machine.travel(MONDAY, tick=False):
        return nightly(in_acme, make_replay(in_acme, drafts=False))


def nightly(tenant: Tenant, replay: Replay, **more: Any) -> ReplaySchedule:
    values = {"name": "nightly", "rules": Rules.LIVE, "hour": 3, **more}
    return add_schedule(tenant=tenant, by=some_author(tenant), replay=replay, **values)


def run_on(day: int, hour: int = 3) -> ScheduledRun | None:
    """What the beat does at that hour of March, with the replays that it starts done; the newest run."""
    before = ScheduledRun.objects.count()
    with time_machine.travel(datetime(2026, 3, day, hour, 0, 20, tzinfo=UTC), tick=False):
        run_due()
        for replay in Replay.objects.filter(status="queued"):
            run_here(replay)
        run_due()
    return ScheduledRun.objects.first() if ScheduledRun.objects.count() > before else None


# --- when


@given(
    after=st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)),
    hour=st.integers(0, 23),
    weekday=st.none() | st.integers(0, 6),
)
def test_the_next_time_is_the_first_one_that_fits(after: datetime, hour: int, weekday: int | None) -> None:
    found = next_due(after, hour=hour, weekday=weekday)
    slow = after.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    while slow.hour != hour or weekday not in (None, slow.weekday()):
        slow += timedelta(hours=1)
    assert found == slow


def test_a_time_in_another_zone_is_read_as_it_is() -> None:
    assert next_due(datetime.fromisoformat("2026-03-02T02:30:00+05:00"), hour=22) == datetime(
        2026, 3, 1, 22, tzinfo=UTC
    )


# --- once


def test_nothing_runs_before_its_time_and_each_time_runs_once(schedule: ReplaySchedule) -> None:
    assert schedule.due_at == datetime(2026, 3, 3, 3, tzinfo=UTC)
    assert run_on(2, 23) is None
    first = run_on(3)
    assert first is not None
    assert first.due_at == datetime(2026, 3, 3, 3, tzinfo=UTC)
    assert run_on(3) is None
    assert run_on(3, 23) is None
    assert run_on(4) is not None
    assert ScheduledRun.objects.count() == 2


def test_missed_times_are_made_up_for_by_one_run(schedule: ReplaySchedule) -> None:
    assert run_on(9, 17) is not None
    schedule.refresh_from_db()
    assert schedule.due_at == datetime(2026, 3, 10, 3, tzinfo=UTC)
    assert ScheduledRun.objects.count() == 1


def test_a_weekly_one_runs_on_its_day(in_acme: Tenant, rule: Rule) -> None:
    with time_machine.travel(MONDAY, tick=False):
        nightly(in_acme, make_replay(in_acme, drafts=False), weekday=4)
    assert [run_on(day) is not None for day in (3, 4, 5, 6, 7, 12, 13)] == [False] * 3 + [True, False, False, True]


def test_a_second_beat_that_saw_the_same_schedule_starts_nothing(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    now = datetime(2026, 3, 3, 3, 1, tzinfo=UTC)
    first = start_due(tenant=in_acme, schedule=schedule.pk, now=now)
    assert first is not None
    run_here(first.replay)  # type: ignore[arg-type]
    assert start_due(tenant=in_acme, schedule=schedule.pk, now=now) is None
    assert (ScheduledRun.objects.count(), Replay.objects.count()) == (1, 2)


def test_a_beat_that_dies_in_the_middle_leaves_the_time_to_the_next(
    in_acme: Tenant, schedule: ReplaySchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 3, 3, 3, 1, tzinfo=UTC)

    def killed(**_given: Any) -> Replay:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("rules.services.schedules.start_replay", killed)
        with pytest.raises(SystemExit):
            start_due_runs(now)
    assert ScheduledRun.objects.count() == 0
    assert (start_due_runs(now), start_due_runs(now)) == (1, 0)


def test_a_run_waits_while_the_last_one_is_at_work(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    assert start_due_runs(datetime(2026, 3, 3, 3, 1, tzinfo=UTC)) == 1
    assert start_due_runs(datetime(2026, 3, 4, 3, 1, tzinfo=UTC)) == 0
    run = ScheduledRun.objects.get()
    assert run.replay is not None
    stop_replay(tenant=in_acme, replay=run.replay, by=some_author(in_acme))
    assert start_due_runs(datetime(2026, 3, 5, 9, 1, tzinfo=UTC)) == 1
    assert [run.due_at.day for run in ScheduledRun.objects.all()] == [4, 3]


def test_a_beat_that_comes_in_between_leaves_one_run(
    in_acme: Tenant, schedule: ReplaySchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 3, 3, 3, 1, tzinfo=UTC)
    asked: list[int] = []

    def is_running(found: ReplaySchedule) -> bool:
        asked.append(found.pk)
        if len(asked) == 1:
            assert start_due(tenant=in_acme, schedule=schedule.pk, now=now) is not None
        return False

    monkeypatch.setattr("rules.queries.schedules.is_running", is_running)
    assert start_due(tenant=in_acme, schedule=schedule.pk, now=now) is None
    assert (len(asked), ScheduledRun.objects.count()) == (2, 1)


# --- compared


def test_the_same_result_is_the_same_and_chats_that_came_in_are_no_regression(
    in_acme: Tenant, schedule: ReplaySchedule
) -> None:
    first = run_on(3)
    assert first is not None
    assert (first.outcome, first.shared_chats) == ("same", 12)
    import_text(in_acme, random_lines(43, 5))
    second = run_on(4)
    assert second is not None
    assert second.replay is not None
    assert (second.outcome, second.shared_chats, second.replay.chats_total) == ("same", 12, 17)
    assert last_regressions() == []


def test_another_expression_differs_and_names_the_rules(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    before = schedule.baseline.fires
    publish(in_acme, make_rule(in_acme, "B", expression="ctx.tool_calls_total > 0"))
    run = run_on(3)
    assert run is not None
    assert run.replay is not None
    assert run.outcome == "differs"
    added = run.replay.fires - before
    changed = json.loads(run.changed)
    assert changed == [{"rule": "B", "fires_before": None, "fires_after": added, "newly": added, "gone": 0}]
    assert last_regressions() == [run]


def test_the_baselines_own_rules_stay_as_they_were(in_acme: Tenant, rule: Rule) -> None:
    with time_machine.travel(MONDAY, tick=False):
        nightly(in_acme, make_replay(in_acme, drafts=False), rules=Rules.BASELINE)
    publish(in_acme, make_rule(in_acme, "B", expression="ctx.tool_calls_total > 0"))
    run = run_on(3)
    assert run is not None
    assert run.outcome == "same"


def test_a_run_that_cannot_be_started_is_kept_as_such_and_the_next_is_tried(
    in_acme: Tenant, schedule: ReplaySchedule
) -> None:
    ReplaySchedule.objects.update(scope="search:999")
    run = run_on(3)
    assert run is not None
    assert (run.outcome, run.replay) == ("refused", None)
    ReplaySchedule.objects.update(scope="all")
    again = run_on(4)
    assert again is not None
    assert again.outcome == "same"


# --- told


def test_a_difference_is_told_once_and_signed(
    in_acme: Tenant, schedule: ReplaySchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[tuple[dict[str, str], bytes]] = []

    def post(url: str, body: bytes, headers: dict[str, str]) -> posting.Outcome:
        got.append((headers, body))
        return posting.Outcome(200, "", 1)

    monkeypatch.setattr(posting, "post", post)
    webhook = add_webhook(
        tenant=in_acme, by=some_author(in_acme), url="https://example.org/x", events=[Event.REPLAY_REGRESSED]
    )
    run_on(3)
    assert Delivery.objects.count() == 0
    publish(in_acme, make_rule(in_acme, "B", expression="ctx.tool_calls_total > 0"))
    run = run_on(4)
    assert run is not None
    assert judge_done_runs() == 0
    deliveries.deliver(Delivery.objects.get().pk)
    [(headers, body)] = got
    told = json.loads(body)
    assert told["type"] == "replay.regressed"
    assert told["data"]["replay"] == run.replay_id
    assert told["data"]["baseline"] == schedule.baseline_id
    assert [row["rule"] for row in told["data"]["rules"]] == ["B"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(webhook.secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_the_overview_says_so_until_the_run_is_taken_as_the_baseline(
    author: Client, viewer: Client, acme: Tenant, schedule: ReplaySchedule
) -> None:
    said = "1 scheduled replay differs from its baseline."
    with scope(tenant=acme):
        publish(acme, make_rule(acme, "B", expression="ctx.tool_calls_total > 0"))
        run = run_on(3)
    assert run is not None
    assert said in viewer.get("/t/acme/").content.decode()
    page = author.get(f"/t/acme/replays/schedules/{schedule.pk}/").content.decode()
    assert "differs from the baseline" in page
    assert f"compare?a={schedule.baseline_id}&amp;b={run.replay_id}" in page
    url = f"/t/acme/replays/schedules/{schedule.pk}/action"
    assert author.post(url, {"action": "baseline", "run": run.pk}).status_code == 302
    assert said not in viewer.get("/t/acme/").content.decode()
    assert author.post(url, {"action": "baseline", "run": "999"}).status_code == 404
    with scope(tenant=acme):
        again = run_on(4)
        assert again is not None
        assert (again.outcome, again.baseline_id) == ("same", run.replay_id)


# --- kept


def test_a_replay_is_scheduled_paused_and_removed_on_pages(author: Client, viewer: Client, acme: Tenant) -> None:
    with scope(tenant=acme):
        import_text(acme, random_lines(44, 3))
        publish(acme, make_rule(acme, "A"))
        replay = make_replay(acme, drafts=False)
    assert b"Nothing is scheduled" in viewer.get("/t/acme/replays/schedules/").content
    assert f"schedules/new?replay={replay.pk}".encode() in author.get(f"/t/acme/replays/{replay.pk}/").content
    form = author.get(f"/t/acme/replays/schedules/new?replay={replay.pk}").content.decode()
    assert f'<option value="{replay.pk}" selected>' in form
    typed = {"replay": str(replay.pk), "name": "Friday", "rules": "live", "weekday": "4", "hour": "24"}
    wrong = author.post("/t/acme/replays/schedules/new", typed)
    assert (wrong.status_code, b'value="Friday"' in wrong.content) == (422, True)
    answer = author.post("/t/acme/replays/schedules/new", {**typed, "hour": "22"})
    page = viewer.get(answer["Location"]).content.decode()
    assert "Fridays at 22:00 UTC" in page
    assert "Remove schedule" not in page
    assert "Friday" in viewer.get("/t/acme/replays/schedules/").content.decode()
    action = f"{answer['Location']}action"
    for name in ("pause", "resume", "unknown", "remove"):
        assert author.post(action, {"action": name}).status_code == 302
    with scope(tenant=acme):
        assert schedule_rows() == []
        entries = Entry.objects.filter(action__startswith="schedule.").order_by("pk")
        assert [entry.action.split(".")[1] for entry in entries] == ["add", "pause", "resume", "remove"]
    assert viewer.get(answer["Location"]).status_code == 404


def test_a_paused_one_does_not_run_and_makes_up_for_nothing(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    by = some_author(in_acme)
    with time_machine.travel(MONDAY, tick=False):
        switch_schedule(tenant=in_acme, schedule=schedule, by=by, on=False)
    assert run_on(5) is None
    with time_machine.travel(datetime(2026, 3, 5, 12, tzinfo=UTC), tick=False):
        found = switch_schedule(tenant=in_acme, schedule=schedule, by=by, on=True)
    assert found.due_at == datetime(2026, 3, 6, 3, tzinfo=UTC)


def test_removing_one_leaves_its_replays(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    run_on(3)
    remove_schedule(tenant=in_acme, schedule=schedule, by=some_author(in_acme))
    assert (ScheduledRun.objects.count(), Replay.objects.count()) == (0, 2)


def test_what_cannot_be_scheduled_is_refused(in_acme: Tenant, schedule: ReplaySchedule) -> None:
    queued = make_replay(in_acme, run=False)
    with pytest.raises(Refused, match="that is done"):
        nightly(in_acme, queued)
    Replay.objects.filter(pk=schedule.baseline_id).update(scope='{"kind": "manifest"}')
    with pytest.raises(Refused, match="manifest"):
        nightly(in_acme, Replay.objects.get(pk=schedule.baseline_id))
    Replay.objects.filter(pk=schedule.baseline_id).update(scope='{"kind": "all"}')
    for _ in range(MOST_SCHEDULES - 1):
        nightly(in_acme, Replay.objects.get(pk=schedule.baseline_id))
    with pytest.raises(Refused, match=re.escape("20 schedules")):
        nightly(in_acme, Replay.objects.get(pk=schedule.baseline_id))


def test_another_tenants_schedules_are_run_apart(acme: Tenant, elsewhere: Tenant, schedule: ReplaySchedule) -> None:
    make_chat(elsewhere)
    publish(elsewhere, make_rule(elsewhere, "E"))
    with scope(tenant=elsewhere), time_machine.travel(MONDAY, tick=False):
        nightly(elsewhere, make_replay(elsewhere, drafts=False), name="theirs")
    assert start_due_runs(datetime(2026, 3, 3, 3, 1, tzinfo=UTC)) == 2
    for tenant, name in ((acme, "nightly"), (elsewhere, "theirs")):
        with scope(tenant=tenant):
            run = ScheduledRun.objects.get()
            assert run.replay is not None
            assert (run.replay.title, run.replay.tenant) == (name, tenant)

"""The counts of nudges by day follow the table of nudges, whoever writes there and however."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django_scopes import scope
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eleanor_site.tenants.models import Tenant
from rules.kept_triggers import keep_counting_nudges
from rules.models import NudgeDay, RecordedNudge
from tests.factories import make_chat

START = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def some_nudges(tenant: Tenant, count: int = 20) -> list[RecordedNudge]:
    return [
        RecordedNudge(
            tenant=tenant,
            code=f"R-{n % 3}",
            source="live",
            model=f"m-{n % 2}",
            outcome=("acted", "ignored", "")[n % 3],
            at=None if n % 7 == 0 else START + timedelta(hours=n),
        )
        for n in range(count)
    ]


def counted() -> Counter[tuple[str, ...]]:
    """The same counts, from the nudges themselves."""
    rows = RecordedNudge.objects.all()
    return Counter(
        (n.at.date().isoformat() if n.at else "", n.code, str(n.version_id or 0), n.model, n.source, n.outcome)
        for n in rows
    )


def kept() -> Counter[tuple[str, ...]]:
    rows = NudgeDay.objects.filter(count__gt=0).exclude(day=NudgeDay.ALL_DAYS)
    sums = NudgeDay.objects.filter(day=NudgeDay.ALL_DAYS)
    assert sum(r.count for r in sums) == sum(r.count for r in rows)
    return Counter({(r.day, r.code, str(r.version), r.model, r.source, r.outcome): r.count for r in rows})


def test_counts_follow_every_kind_of_writing(in_acme: Tenant) -> None:
    RecordedNudge.objects.bulk_create(some_nudges(in_acme))
    assert kept() == counted()
    RecordedNudge.objects.create(tenant=in_acme, code="R-1", source="observe")
    RecordedNudge.objects.filter(code="R-2").delete()
    assert kept() == counted()
    RecordedNudge.objects.filter(code="R-0").update(outcome="finished", at=F("at") + timedelta(days=1))
    RecordedNudge.objects.filter(model="m-1").update(code="R-9")
    assert kept() == counted()
    RecordedNudge.objects.update(turn=1)
    assert kept() == counted()
    assert sum(kept().values()) == RecordedNudge.objects.count()


def test_rows_that_are_ignored_count_nothing(in_acme: Tenant) -> None:
    chat = make_chat(in_acme)
    same = {"tenant": in_acme, "code": "R", "source": "live", "chat_version": chat.versions.get(), "message": 1}
    RecordedNudge.objects.bulk_create([RecordedNudge(**same)])
    RecordedNudge.objects.bulk_create(
        [RecordedNudge(**same), RecordedNudge(**same | {"message": 2})], ignore_conflicts=True
    )
    assert sum(kept().values()) == RecordedNudge.objects.count() == 2


def test_tenants_count_apart(acme: Tenant, elsewhere: Tenant) -> None:
    for tenant in (acme, elsewhere):
        with scope(tenant=tenant):
            RecordedNudge.objects.bulk_create(some_nudges(tenant, 10))
    with scope(tenant=acme):
        assert kept() == counted()


@pytest.mark.parametrize("answer", [{"content": "Done."}, {"content": "", "tool_calls": [{"name": "bash"}]}])
def test_importing_again_counts_once(in_acme: Tenant, answer: dict[str, object]) -> None:
    messages = (
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": "Do it now.", "nudge_code": "R-7"},
        {"role": "assistant", **answer},
    )
    make_chat(in_acme, *messages)
    make_chat(in_acme, *messages, {"role": "user", "content": "Thanks"})
    assert sum(kept().values()) == 1
    nudge = RecordedNudge.objects.get()
    assert (nudge.message, nudge.point, nudge.stage) == (2, 1, "final")
    nudge.chat.delete()
    # Retention removes chats; what they counted for stays.
    assert sum(kept().values()) == 1


def test_counts_are_made_again_when_a_migration_dropped_them(in_acme: Tenant) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL keeps the triggers of a table that is altered")
    RecordedNudge.objects.bulk_create(some_nudges(in_acme))
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER nudge_day_added")
    RecordedNudge.objects.bulk_create(some_nudges(in_acme))
    assert kept() != counted()
    keep_counting_nudges(None, using="default")
    RecordedNudge.objects.filter(code="R-1").delete()
    assert kept() == counted()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.sampled_from(["add", "judge", "move", "rename", "delete"]), st.integers(0, 19))),
)
def test_any_sequence_of_writing_leaves_the_counts_of_a_recount(in_acme: Tenant, steps: list[tuple[str, int]]) -> None:
    for step, n in steps:
        chosen = RecordedNudge.objects.filter(code=f"R-{n % 3}")
        if step == "add":
            RecordedNudge.objects.bulk_create(some_nudges(in_acme, n))
        elif step == "judge":
            chosen.update(outcome=("acted", "finished", "ignored", "")[n % 4])
        elif step == "move":
            chosen.update(at=F("at") + timedelta(hours=7 * n))
        elif step == "rename":
            chosen.update(code=f"R-{n % 5}", model=f"m-{n % 4}")
        else:
            chosen.filter(model=f"m-{n % 2}").delete()
    assert kept() == counted()

"""Allowances in the database, and what is kept of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from eleanor_site.limits import Allowance, take
from eleanor_site.tasks import forget_full_buckets
from eleanor_site.tenants.models import TokenBucket

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLOW = Allowance("slow", 2, 1)


def test_an_allowance_is_used_up_and_grows_again() -> None:
    with time_machine.travel(NOON, tick=False):
        assert [take(SLOW, "a") for _ in range(3)] == [0, 0, 60]
        assert take(SLOW, "b") == 0
    with time_machine.travel(NOON + timedelta(minutes=1), tick=False):
        assert [take(SLOW, "a") for _ in range(2)] == [0, 60]


def test_a_bucket_that_nobody_touched_for_a_day_is_forgotten() -> None:
    with time_machine.travel(NOON, tick=False):
        take(SLOW, "long ago")
    with time_machine.travel(NOON + timedelta(hours=12), tick=False):
        take(SLOW, "today")
    with time_machine.travel(NOON + timedelta(hours=25), tick=False):
        forget_full_buckets()
        assert TokenBucket.objects.count() == 1
        assert take(SLOW, "long ago", 2) == 0

"""Times are written in the reader's zone, with UTC on hover; days of filters and charts are UTC days for everybody."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from django.template import engines
from django.test import Client
from django.utils import timezone, translation
from django_scopes import scope

from chats.models import Chat
from eleanor_site.tenants.models import Tenant, User
from rules.models import Release
from rules.queries.day_charts import Span, day_chart
from rules.queries.nudge_statistics import turns_by_model
from rules.queries.nudges import NudgeFilter
from tests.conftest import client_of
from tests.factories import exchange_chat, import_text, make_chat, make_rule, publish

# Late on Monday in UTC: Tuesday in Paris and on Kiritimati, Monday in New York.
MONDAY_NIGHT = "2026-01-05T23:30:00Z"
QUESTION = {"role": "user", "content": "Where is my parcel?", "created_at": MONDAY_NIGHT}
ANSWER = {"role": "assistant", "content": "I will look.", "finish_reason": "stop"}


@pytest.fixture
def chat(acme: Tenant) -> Chat:
    return make_chat(acme, QUESTION, ANSWER)


@pytest.mark.parametrize(
    ("chosen", "told", "shown"),
    [
        ("", None, "2026-01-05 23:30"),
        ("", "Europe/Paris", "2026-01-06 00:30"),
        ("America/New_York", "Europe/Paris", "2026-01-05 18:30"),
        ("", "Asia/Kathmandu", "2026-01-06 05:15"),
        ("", "../../etc/passwd", "2026-01-05 23:30"),
        ("", "Europe/Atlantis", "2026-01-05 23:30"),
    ],
)
def test_the_persons_zone_wins_then_the_browsers_then_utc(
    people: dict[str, User], chat: Chat, chosen: str, told: str | None, shown: str
) -> None:
    User.objects.filter(pk=people["viewer"].pk).update(time_zone=chosen)
    client = client_of(people["viewer"])
    if told:
        client.cookies["zone"] = told
    page = client.get("/t/acme/chats/").content.decode()
    in_utc = '<time datetime="2026-01-05T23:30:00+00:00" title="2026-01-05 23:30:00 UTC">'
    assert f"{in_utc}{shown}</time>" in page


def test_french_pages_write_the_same_moment_their_way(people: dict[str, User], chat: Chat) -> None:
    User.objects.filter(pk=people["viewer"].pk).update(time_zone="Europe/Paris", language="fr")
    assert ">06/01/2026 00:30</time>" in client_of(people["viewer"]).get("/t/acme/chats/").content.decode()


def test_a_zone_is_chosen_on_the_account_page_and_can_be_left_to_the_browser(people: dict[str, User]) -> None:
    client = client_of(people["viewer"])
    client.post("/account/", {"time_zone": "Europe/Paris", "single_key_shortcuts": "on"})
    page = client.get("/account/").content.decode()
    assert '<option value="Europe/Paris" selected>Paris</option>' in page
    client.cookies["zone"] = "Asia/Tokyo"
    client.post("/account/", {"time_zone": ""})
    assert User.objects.get(pk=people["viewer"].pk).time_zone == ""
    assert "As the browser says (Asia/Tokyo)" in client.get("/account/").content.decode()


def test_a_zone_that_does_not_exist_is_refused(viewer: Client, people: dict[str, User]) -> None:
    answer = viewer.post("/account/", {"time_zone": "Europe/Atlantis"})
    assert answer.status_code == 422
    assert "No zone has this name." in answer.content.decode()
    assert User.objects.get(pk=people["viewer"].pk).time_zone == ""


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_days_are_utc_days_in_every_zone(people: dict[str, User], acme: Tenant, chat: Chat, zone: str) -> None:
    User.objects.filter(pk=people["viewer"].pk).update(time_zone=zone)
    client = client_of(people["viewer"])
    found = client.get("/t/acme/chats/?from=2026-01-05&to=2026-01-05").content.decode()
    assert "Where is my parcel?" in found
    assert "From (UTC day)" in found
    assert "Where is my parcel?" not in client.get("/t/acme/chats/?from=2026-01-06").content.decode()
    monday = NudgeFilter(start=date(2026, 1, 5), end=date(2026, 1, 5))
    with timezone.override(zone), scope(tenant=acme):
        assert turns_by_model(monday) == {"": 1}
        assert turns_by_model(NudgeFilter(start=date(2026, 1, 6))) == {}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_release_stands_on_its_utc_day(in_acme: Tenant, zone: str) -> None:
    release = publish(in_acme, make_rule(in_acme))
    Release.objects.filter(pk=release.pk).update(published_at=datetime(2026, 1, 5, 23, 30, tzinfo=UTC))
    span = Span(date(2026, 1, 5), date(2026, 1, 5))
    with timezone.override(zone):
        chart = day_chart(in_acme, {}, span, unit="nudges", title="Nudges")
        assert [mark["day"] for mark in chart["releases"]] == [0]


def test_exports_stay_in_utc(people: dict[str, User], acme: Tenant) -> None:
    User.objects.filter(pk=people["viewer"].pk).update(time_zone="Asia/Tokyo")
    nudge = {"role": "user", "content": "Go on.", "nudge_code": "X-1", "created_at": MONDAY_NIGHT}
    import_text(acme, json.dumps(exchange_chat(QUESTION, ANSWER, nudge, ANSWER)))
    answer = client_of(people["viewer"]).get("/t/acme/nudges/export?format=csv")
    assert "2026-01-05T23:30:00+00:00" in b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def test_the_first_hours_of_the_calendar_have_no_place_in_the_west() -> None:
    template = engines["django"].from_string("{{ at|moment }}")
    with timezone.override("America/New_York"), translation.override("en"):
        assert ">0001-01-01 00:00</time>" in template.render({"at": datetime(1, 1, 1, tzinfo=UTC)})

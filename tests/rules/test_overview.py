"""The overview: what needs whom, the first steps, the chart."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import time_machine
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from chats.models import Chat, ChatVersion, ImportJob
from eleanor_site.tenants.models import Role, Tenant, User
from rules.models import Proposal, RecordedNudge, ReleaseEntry, Replay, Verdict
from rules.queries.overview import attention
from rules.services.drafts import save_draft
from tests.factories import exchange_chat, import_text, make_chat, make_replay, make_rule, publish

OLD = datetime(2026, 1, 5, tzinfo=UTC)


def kinds(tenant: Tenant, person: User, role: Role = Role.ADMIN) -> dict[str, list[str]]:
    with scope(tenant=tenant):
        return {note.kind: [label for label, _url in note.links] for note in attention(tenant, person, role)}


def test_three_steps_tick_themselves_off(viewer: Client, acme: Tenant) -> None:
    page = viewer.get("/t/acme/").content.decode()
    assert page.count('class="done"') == 0
    assert "Three steps" in page
    make_chat(acme)
    assert viewer.get("/t/acme/").content.decode().count('class="done"') == 1
    publish(acme, make_rule(acme))
    make_replay(acme, drafts=False)
    page = viewer.get("/t/acme/").content.decode()
    assert "Three steps" not in page
    assert "Nothing needs your attention." in page
    assert "broker" in page


def test_drafts_are_for_the_person_who_made_them(acme: Tenant, people: dict[str, User]) -> None:
    rule = make_rule(acme)
    with scope(tenant=acme):
        save_draft(tenant=acme, rule=rule, by=people["author"], revision=1, content={"prompt_en": "Mine."})
    assert kinds(acme, people["author"]) == {"draft": ["ACME-01"]}
    assert kinds(acme, people["reviewer"]) == {}


def test_approvals_wait_for_others_who_may_publish(acme: Tenant, people: dict[str, User]) -> None:
    with scope(tenant=acme):
        Proposal.objects.create(tenant=acme, status="requested", by=people["publisher"], note="Please")
    assert kinds(acme, people["admin"]) == {"approval": ["Please"]}
    assert kinds(acme, people["publisher"], Role.PUBLISHER) == {}
    assert kinds(acme, people["author"], Role.AUTHOR) == {}


def test_failed_work_of_the_last_days(acme: Tenant, people: dict[str, User]) -> None:
    import_text(acme, "no chat at all", name="broken.jsonl")
    make_chat(acme)
    publish(acme, make_rule(acme))
    replay = make_replay(acme, run=False)
    with scope(tenant=acme):
        Replay.objects.filter(pk=replay.pk).update(status="incomplete")
    assert [label.split()[0] for label in kinds(acme, people["admin"])["failed"]] == ["broken.jsonl", "Replay"]
    with scope(tenant=acme):
        ImportJob.objects.update(created_at=OLD)
        Replay.objects.update(created_at=OLD)
    assert kinds(acme, people["admin"]) == {}


def test_observed_rules_that_end_soon(acme: Tenant, people: dict[str, User]) -> None:
    publish(acme, make_rule(acme, "SOON"), make_rule(acme, "LATER"))
    with scope(tenant=acme):
        for code, days in (("SOON", 2), ("LATER", 4)):
            entry = ReleaseEntry.objects.filter(version__rule__code=code)
            entry.update(mode="observe", observe_until=timezone.now() + timedelta(days=days))
    (label,) = kinds(acme, people["admin"])["observe"]
    assert label.startswith("SOON")


def test_precision_under_the_target_with_n(acme: Tenant, people: dict[str, User]) -> None:
    import_text(acme, "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(20)))
    publish(acme, make_rule(acme))

    def label(count: int, right: int) -> None:
        with scope(tenant=acme):
            Verdict.objects.all().delete()
            for n, version in enumerate(ChatVersion.objects.all()[:count]):
                where = {"chat_id": version.chat_id, "chat_version": version, "message": 1, "stage": "final"}
                value = "right" if n < right else "wrong"
                Verdict.objects.create(
                    tenant=acme, by=people["reviewer"], code="ACME-01", version=1, value=value, **where
                )

    label(20, 15)
    assert kinds(acme, people["viewer"]) == {"precision": ["ACME-01: 75 %, n = 20"]}
    label(20, 16)
    assert kinds(acme, people["viewer"]) == {}
    label(19, 0)  # too few to say
    assert kinds(acme, people["viewer"]) == {}


def test_silent_rules_where_others_were_heard(acme: Tenant, people: dict[str, User]) -> None:
    with time_machine.travel(OLD, tick=False):
        publish(acme, make_rule(acme, "QUIET"), make_rule(acme, "LOUD"))
    publish(acme, make_rule(acme, "YOUNG"))
    # No data isn't silence.
    assert kinds(acme, people["viewer"]) == {}
    with scope(tenant=acme):
        RecordedNudge.objects.create(tenant=acme, code="LOUD", source="live", at=timezone.now())
    assert kinds(acme, people["viewer"]) == {"silent": ["QUIET"]}


def test_the_page_shows_notes_and_chart(admin: Client, acme: Tenant, people: dict[str, User]) -> None:
    with scope(tenant=acme):
        Proposal.objects.create(tenant=acme, status="requested", by=people["author"], note="<b>now</b>")
        RecordedNudge.objects.create(tenant=acme, code="LOUD", source="live", at=timezone.now())
        assert not Chat.objects.exists()
    page = admin.get("/t/acme/").content.decode()
    assert "Needs attention" in page
    assert "&lt;b&gt;now" in page
    assert 'role="img"' in page

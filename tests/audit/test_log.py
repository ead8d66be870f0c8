"""The change log: append only, chained, and altered rows are found."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import BytesIO, StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from eleanor_site.audit import chain
from eleanor_site.audit.models import Entry
from eleanor_site.audit.queries import faults
from eleanor_site.audit.services import record
from eleanor_site.exports import check
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge
from rules.queries.release_effects import around_entry
from tests.factories import make_rule, publish, some_author


@pytest.fixture
def logged(in_acme: Tenant) -> Tenant:
    by = some_author(in_acme)
    for n in range(4):
        with transaction.atomic():
            record(
                tenant=in_acme,
                by=by,
                action="rule.draft",
                object_type="rule",
                object_id=n,
                object_label=f"R{n}",
                before={"cap": n},
                after={"cap": n + 1, "é": "ü"},
            )
    return in_acme


def behind_the_triggers(statement: str, *values: object) -> None:
    """What somebody with the database's own tools could do."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Foreign keys of this transaction that wait for its end would keep the table from being altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE audit_entry DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER audit_no_update")
            cursor.execute("DROP TRIGGER audit_no_delete")
        cursor.execute(statement, values)
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE audit_entry ENABLE TRIGGER USER")


def test_numbers_have_no_gaps_and_the_log_is_whole(logged: Tenant) -> None:
    assert list(Entry.objects.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4]
    assert faults() == []


@pytest.mark.parametrize("statement", ["UPDATE audit_entry SET note = 'x'", "DELETE FROM audit_entry"])
def test_the_database_refuses_changes(logged: Tenant, statement: str) -> None:
    with pytest.raises(DatabaseError, match="append only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    with pytest.raises(DatabaseError, match="append only"), transaction.atomic():
        Entry.objects.filter(number=1).update(note="x")
    assert faults() == []


@pytest.mark.parametrize(
    ("statement", "values", "expected"),
    [
        ("UPDATE audit_entry SET note = %s WHERE number = %s", ("x", 2), [(2, "altered")]),
        ("UPDATE audit_entry SET actor_label = %s WHERE number = %s", ("eve@example.org", 4), [(4, "altered")]),
        ("DELETE FROM audit_entry WHERE number = %s", (2,), [(2, "missing")]),
        (
            "UPDATE audit_entry SET previous_hash = %s WHERE number = %s",
            ("0" * 64, 3),
            [(3, "reordered"), (3, "altered")],
        ),
    ],
)
def test_an_altered_log_is_found(
    logged: Tenant, statement: str, values: tuple[object, ...], expected: list[tuple[int, str]]
) -> None:
    behind_the_triggers(statement, *values)
    assert [(f.number, f.kind) for f in faults()] == expected
    with pytest.raises(CommandError, match="altered"):
        call_command("verify_log", tenant="acme", stdout=StringIO())


def test_verify_log_says_that_all_is_well(logged: Tenant) -> None:
    out = StringIO()
    call_command("verify_log", stdout=out)
    assert "acme: 4 entries, 0 faults" in out.getvalue()


def test_a_change_outside_of_a_transaction_is_a_mistake_of_ours(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    # A test that truly runs outside of one couldn't be cleaned up: the log refuses to be emptied, too.
    monkeypatch.setattr("eleanor_site.audit.services.connection", SimpleNamespace(in_atomic_block=False))
    with pytest.raises(RuntimeError), scope(tenant=acme):
        record(tenant=acme, by=None, action="x", object_type="x", object_id=1, object_label="x")


def test_the_pages(viewer: Client, acme: Tenant) -> None:
    with scope(tenant=acme), transaction.atomic():
        record(
            tenant=acme, by=None, action="rule.draft", object_type="rule", object_id=1, object_label="R", note="because"
        )
    assert b"because" in viewer.get("/t/acme/changes/").content
    assert b"The log is whole" in viewer.get("/t/acme/changes/?verify=1").content
    assert b"because" in viewer.get("/t/acme/changes/1/").content
    assert b"No change fits" in viewer.get("/t/acme/changes/?actor=nobody").content


def test_filters_leave_what_they_say(viewer: Client, logged: Tenant) -> None:
    with transaction.atomic():
        record(
            tenant=logged, by=None, action="x.other", object_type="x", object_id=7, object_label="Zebra", note="stripes"
        )
    for query in ("actor=system", "object=x", "action=x.other", "q=STRIPES", "q=zebra", "object=x&id=7"):
        page = viewer.get(f"/t/acme/changes/?{query}", headers={"HX-Request": "true"}).content.decode()
        assert "Zebra" in page
        assert "R1" not in page
    for query in ("id=8", "from=2999-01-01", "to=1999-01-01", "q=giraffe", "after=²", "from=x"):
        assert viewer.get(f"/t/acme/changes/?{query}").status_code == 200


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_can_be_checked_elsewhere(viewer: Client, logged: Tenant, form: str) -> None:
    body = b"".join(viewer.get(f"/t/acme/changes/export?format={form}").streaming_content)
    assert check(BytesIO(body)).flaw is None
    if form == "jsonl":
        rows = [json.loads(line) for line in body.splitlines()[:-1]]
        # The chain, by what the file says alone.
        same = ("number", "actor_id", "action", "object_type", "object_id", "before", "after", "note", "request_id")
        previous = chain.FIRST
        for row in rows:
            assert row["previous_hash"] == previous
            previous = chain.entry_hash(
                previous=row["previous_hash"],
                tenant_id=logged.pk,
                at=datetime.fromisoformat(row["at"]),
                actor_label=row["actor"],
                object_label=row["object"],
                **{name: row[name] for name in same},
            )
            assert row["hash"] == previous
        assert [row["number"] for row in rows] == [1, 2, 3, 4]
    assert viewer.get("/t/acme/changes/export?format=xml").status_code == 404


def test_the_page_of_an_altered_entry_says_so(viewer: Client, logged: Tenant) -> None:
    assert b"was altered" not in viewer.get("/t/acme/changes/2/").content
    behind_the_triggers("UPDATE audit_entry SET note = %s WHERE number = %s", "x", 2)
    assert b"This entry was altered" in viewer.get("/t/acme/changes/2/").content


def test_a_release_shows_the_nudges_around_it(viewer: Client, acme: Tenant) -> None:
    now = timezone.now()
    with scope(tenant=acme):
        RecordedNudge.objects.bulk_create(
            RecordedNudge(tenant=acme, code=code, source="live", at=now + timedelta(days=days))
            for code, days in (("A", -8), ("A", -7), ("A", -1), ("A", 0), ("B", 6), ("B", 7))
        )
    publish(acme, make_rule(acme))
    with scope(tenant=acme):
        entry = Entry.objects.get(object_type="release")
        found = around_entry(acme, entry)
    assert found is not None
    assert [(row.code, row.before, row.after) for row in found["effect_rows"]] == [("A", 2, 1), ("B", 0, 1)]
    assert "Seven days before and after" in viewer.get(f"/t/acme/changes/{entry.number}/").content.decode()

"""The change log: append only, chained, and altered rows are found."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.audit.queries import faults
from eleanor_site.audit.services import record
from eleanor_site.tenants.models import Tenant
from tests.factories import some_author


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


def test_a_change_outside_of_a_transaction_is_a_mistake_of_ours(transactional_acme: Tenant) -> None:
    with pytest.raises(RuntimeError), scope(tenant=transactional_acme):
        record(tenant=transactional_acme, by=None, action="x", object_type="x", object_id=1, object_label="x")


@pytest.fixture
def transactional_acme(transactional_db: None) -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


def test_the_pages(viewer: Client, acme: Tenant) -> None:
    with scope(tenant=acme), transaction.atomic():
        record(
            tenant=acme, by=None, action="rule.draft", object_type="rule", object_id=1, object_label="R", note="because"
        )
    assert b"because" in viewer.get("/t/acme/changes/").content
    assert b"The log is whole" in viewer.get("/t/acme/changes/?verify=1").content
    assert b"because" in viewer.get("/t/acme/changes/1/").content
    assert b"No change fits" in viewer.get("/t/acme/changes/?actor=nobody").content

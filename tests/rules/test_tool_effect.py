"""The tool catalogue: what its entries take, and the effect of a change before it is saved."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.chunks import segments
from rules.chunks.replays import run_here
from rules.domain.manifest import CatalogueEntry
from rules.models import Preparation, ToolEntry
from rules.queries import tools as queries
from rules.queries.manifests import catalogue_entries
from rules.queries.replays import counts
from rules.queries.rules import rule_set
from rules.queries.tools import catalogue_use, tool_effect, tool_names
from rules.services.replays import start_replay
from rules.services.tools import add_entry
from tests.factories import exchange_chat, import_text, make_chat, make_rule, publish, some_author
from tests.rules.random_chats import random_lines


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def entry(pattern: str, kind: Any, **given: Any) -> CatalogueEntry:
    return CatalogueEntry(pattern=pattern, kind=kind, **given)


def test_names_are_counted_over_the_newest_chats(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(40, 25))
    calls: Counter[str] = Counter()
    chats: Counter[str] = Counter()
    for version in ChatVersion.objects.all():
        record = record_of(version)
        called = [call.name for details in record.details for call in details.tool_calls]
        calls.update(called)
        chats.update({*called, *(tool.name for tool in record.tools or ())})
    assert {n.name: (n.calls, n.chats) for n in tool_names(in_acme)} == {n: (calls[n], chats[n]) for n in chats}


def test_each_entry_says_what_it_takes_and_what_fits_none(in_acme: Tenant) -> None:
    def call(name: str) -> dict[str, Any]:
        return {"id": name, "name": name, "arguments": {}}

    make_chat(
        in_acme,
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": "", "tool_calls": [call(n) for n in ("db__list_tables", "frobnicate", "ls")]},
        *({"role": "tool", "content": "x", "tool_call_id": n} for n in ("db__list_tables", "frobnicate", "ls")),
    )
    use = catalogue_use(in_acme, [entry("frob*", "read", argument="x", argument_pattern="y")])
    assert [name.name for name in use.own[0].names] == ["frobnicate"]
    assert [name.name for name in use.unknown.names] == []
    assert {name.name for taken in use.built_in for name in taken.names} == {"db__list_tables", "ls"}
    assert [name.name for name in catalogue_use(in_acme, []).unknown.names] == ["frobnicate"]


@pytest.mark.parametrize(
    "change",
    [entry("write_file", "read"), entry("run_*", "other"), entry("submit", "other"), entry("get_rows", "verify")],
)
def test_the_effect_of_a_change_is_what_a_replay_finds_after_it(in_acme: Tenant, change: CatalogueEntry) -> None:
    import_text(in_acme, random_lines(41, 30))
    publish(
        in_acme,
        make_rule(in_acme, "A", expression="ctx.mutated && !ctx.verified_after_mutation"),
        make_rule(in_acme, "B", expression="ctx.read_only_rounds >= 1", stage="round"),
    )
    segments.derive_missing(in_acme, seconds=60)

    def replayed() -> tuple[int, dict[str, int]]:
        rules = rule_set(in_acme, drafts=False)
        done = run_here(start_replay(tenant=in_acme, by=None, rules=rules, send=False))
        return done.points, {code: n["fires"] for code, n in counts(done)["rules"].items()}

    points, fires = replayed()
    found = tool_effect(in_acme, [change], seconds=60)
    assert found.exact
    add_entry(tenant=in_acme, values=change.model_dump(), by=some_author(in_acme))
    segments.derive_missing(in_acme, seconds=60)
    points_after, fires_after = replayed()
    assert found.points_after - found.points_before == points_after - points
    assert {r.code: r.change for r in found.rules} == {code: fires_after[code] - fires[code] for code in fires}
    assert found.points_changed > 0


def test_an_estimate_goes_on_until_it_is_exact(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    import_text(in_acme, random_lines(42, 30))
    monkeypatch.setattr(queries, "_READ_AT_ONCE", 3)
    clock = iter(range(10_000))
    monkeypatch.setattr("rules.queries.tools.time.monotonic", lambda: float(next(clock)))
    change = [entry("write_file", "read")]
    seen = [tool_effect(in_acme, change, seconds=1.5).seen]
    while seen[-1] < (found := tool_effect(in_acme, change, seconds=1.5)).concerned and not found.exact:
        seen.append(found.seen)
    assert seen == sorted(set(seen))
    assert found.exact


def test_what_takes_no_other_tool_changes_nothing(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(43, 5))
    found = tool_effect(in_acme, [entry("no_such_tool", "read")])
    assert (found.concerned, found.exact, found.points_changed) == (0, True, 0)


def test_the_pages(author: Client, viewer: Client, acme: Tenant) -> None:
    import_text(acme, random_lines(44, 6))
    publish(acme, make_rule(acme, "A", expression="ctx.mutated"))
    base = "/t/acme/tools/"
    assert b"run_tests" in viewer.get(base).content
    tried = author.get(base + "try", {"pattern": "write_file", "kind": "read"})
    assert b"Points with another context" in tried.content
    with scope(tenant=acme):
        assert not ToolEntry.objects.exists()
    part = author.get(base + "try", {"pattern": "write_file", "kind": "read"}, headers={"HX-Request": "true"})
    assert part.status_code == 286
    assert author.post(base + "save", {"pattern": "write_file", "kind": "read"}).status_code == 302
    with scope(tenant=acme):
        row = ToolEntry.objects.get()
        assert Preparation.objects.get(kind="segments").status == "queued"
    edited = author.get(base + f"?edit={row.pk}").content.decode()
    assert 'value="write_file"' in edited
    author.post(base + "save", {"entry": row.pk, "change": "1", "pattern": "write_*", "kind": "verify"})
    with scope(tenant=acme):
        assert [e.pattern for e in catalogue_entries()] == ["write_*"]
        assert Entry.objects.filter(action="tools.change").count() == 1
    for action in ("up", "down", "remove"):
        assert author.get(base + "try", {"entry": str(row.pk), action: "1"}).status_code == 200
    assert author.get(base + "try", {"entry": str(10**9), "remove": "1"}).status_code == 404
    author.post(base + "save", {"entry": row.pk, "remove": "1"})
    with scope(tenant=acme):
        assert not ToolEntry.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"pattern": "x", "kind": "read", "argument": "a", "argument_pattern": "("},
        {"pattern": "x", "kind": "read", "success_pattern": "(x{0,20}){0,20}y"},
        {"pattern": "x", "kind": "read", "argument_pattern": "a"},
        {"pattern": "", "kind": "read"},
        {"pattern": "x", "kind": "nonsense"},
    ],
)
def test_wrong_entries_keep_what_was_typed(author: Client, acme: Tenant, wrong: dict[str, str]) -> None:
    for answer in (author.get("/t/acme/tools/try", wrong), author.post("/t/acme/tools/save", wrong)):
        assert answer.status_code == 422
    with scope(tenant=acme):
        assert not ToolEntry.objects.exists()


def test_an_entry_of_another_tenant_is_unknown(author: Client, acme: Tenant, elsewhere: Tenant) -> None:
    with scope(tenant=elsewhere):
        foreign = add_entry(tenant=elsewhere, values={"pattern": "x", "kind": "read"}, by=some_author(elsewhere))
    assert author.get("/t/acme/tools/try", {"entry": str(foreign.pk), "remove": "1"}).status_code == 404
    assert author.post("/t/acme/tools/save", {"entry": foreign.pk, "remove": "1"}).status_code == 422
    with scope(tenant=elsewhere):
        assert ToolEntry.objects.filter(pk=foreign.pk).exists()
    import_text(acme, json.dumps(exchange_chat(external_id="z")))

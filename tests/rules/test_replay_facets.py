"""The filters of a replay's page: what they leave, and the counts beside them, against a plain walk."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django_scopes import scope

from chats.models import ChatVersion, Corpus
from eleanor_site.tenants.models import Tenant
from rules.chunks.replays import run_here
from rules.models import Replay, Verdict
from rules.queries.replays import FindingFilter, breakdown, finding_page, findings, rule_rows
from rules.queries.rules import rule_set
from rules.queries.segments import Scope
from rules.services.replays import Compared, start_replay
from tests.factories import import_text, make_rule, publish, some_author
from tests.rules.random_chats import random_lines

VALUES = ("right", "wrong", "unsure", "missed")


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def replay(acme: Tenant) -> Replay:
    """Two segments and some chats of each left out, another rule set beside it, and verdicts here and there."""
    with scope(tenant=acme):
        import_text(acme, random_lines(31, 25))
        import_text(acme, random_lines(32, 15))
        publish(
            acme,
            make_rule(acme, "A", expression="ctx.tool_calls_total == 0"),
            make_rule(acme, "R", expression="ctx.read_only_rounds >= 1", stage="round"),
        )
        live = rule_set(acme, drafts=False)
        changed = [live[0].model_copy(update={"expression": 'ctx.tool_calls_total > 0 || ctx.final_text == "ok"'})]
        make_rule(acme, "B", expression="ctx.mutated", stage="round")
        changed += [live[1], rule_set(acme, drafts=True)[-1]]
        members = list(ChatVersion.objects.order_by("pk").values_list("pk", flat=True))
        corpus = Corpus.objects.create(tenant=acme, name="most", digest="x", members=str(members[2:-2]))
        found = run_here(
            start_replay(
                tenant=acme,
                by=None,
                rules=changed,
                compared=Compared("live", live),
                scope=Scope("corpus", corpus.pk),
                send=False,
            )
        )
        _judge(acme, found)
        return found


def _judge(tenant: Tenant, replay: Replay) -> None:
    rng = random.Random(5)
    people = [some_author(tenant)]
    for version in ChatVersion.objects.all():
        chat = version.chat
        for finding in [f for _key, f in findings(replay, FindingFilter()) if f.version == version.pk and f.stage]:
            if rng.random() < 0.4:
                Verdict.objects.create(
                    tenant=tenant,
                    chat=chat,
                    chat_version=version,
                    message=finding.message,
                    stage=finding.stage,
                    code=rng.choice([finding.code or finding.recorded or "", "A", "R", "B"]),
                    value=rng.choice(VALUES),
                    by=people[0],
                )


def _expected(replay: Replay, wanted: FindingFilter) -> list[tuple[int, int, str]]:
    """The same from every finding there is, one after the other."""
    spoken = dict(ChatVersion.objects.values_list("pk", "chat__language"))
    said: dict[tuple[int | None, int, str], list[Verdict]] = {}
    for row in Verdict.objects.all():
        said.setdefault((row.chat_version_id, row.message, row.stage), []).append(row)
    every = [f for _key, f in findings(replay, FindingFilter())]
    every += [f for _key, f in findings(replay, FindingFilter(delta="gone")) if f.code is None and f.recorded is None]
    found = []
    for f in every:
        changes = {
            "newly": f.code is not None and f.code != f.compared,
            "gone": f.compared is not None and f.code != f.compared,
            "same": f.code is not None and f.code == f.compared,
        }
        code = f.compared if wanted.delta == "gone" else f.code or f.recorded
        here = {v.value for v in said.get((f.version, f.message, f.stage), []) if v.code == code or v.value == "missed"}
        if (
            (changes[wanted.delta] if wanted.delta else f.code or f.recorded)
            and wanted.status in ("", f.status)
            and wanted.code in ("", code)
            and wanted.language in ("", spoken[f.version] or "none")
            and (wanted.verdict in here or wanted.verdict == "" or (wanted.verdict == "none" and not here))
        ):
            found.append((f.version, f.message, f.stage))
    return sorted(found)


def _filters() -> list[FindingFilter]:
    rng = random.Random(3)
    choices = {
        "code": ("", "", "A", "R", "B", "C", "NONE"),
        "status": ("", "", "reproduced", "different", "new", "recorded_only"),
        "delta": ("", "", "newly", "gone", "same"),
        "language": ("", "", "en", "fr", "none", "de"),
        "verdict": ("", "", *VALUES, "none"),
    }
    return [FindingFilter()] + [
        FindingFilter(**{name: rng.choice(values) for name, values in choices.items()}) for _ in range(60)
    ]


def test_each_combination_of_filters_leaves_what_a_plain_walk_leaves(acme: Tenant, replay: Replay) -> None:
    with scope(tenant=acme):
        sizes: Counter[bool] = Counter()
        for wanted in _filters():
            found = [(f.version, f.message, f.stage) for _key, f in findings(replay, wanted)]
            assert sorted(found) == _expected(replay, wanted), wanted
            sizes[bool(found)] += 1
        assert sizes[True] > 12


def test_the_counts_of_each_facet_are_those_of_the_lists_behind_them(acme: Tenant, replay: Replay) -> None:
    with scope(tenant=acme):
        for wanted in _filters()[:25]:
            counted = {facet.name: facet.counts for facet in breakdown(replay, wanted)[0]}
            assert set(counted) == {"status", "delta", "language", "verdict"}
            for name, counts in counted.items():
                for value, n in counts.items():
                    assert n == len(list(findings(replay, replace(wanted, **{name: value})))), (wanted, name, value)


def test_the_language_split_adds_up_to_the_firings_of_each_rule(acme: Tenant, replay: Replay) -> None:
    with scope(tenant=acme):
        split = breakdown(replay)[1]
        rows, _others = rule_rows(replay)
        assert {row.code: sum(n for _language, n in split[row.code]) for row in rows} == {
            row.code: row.counts["fires"] for row in rows
        }
        for row in rows:
            for language, n in split[row.code]:
                wanted = FindingFilter(row.code, language=language)
                assert n == len([f for _key, f in findings(replay, wanted) if f.code == row.code])
        assert {language for row in rows for language, _n in split[row.code]} >= {"en", "fr"}


def test_pages_of_a_filter_are_the_whole_list(acme: Tenant, replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.queries.replays.PAGE", 3)
    with scope(tenant=acme):
        for wanted in (
            FindingFilter(language="fr"),
            FindingFilter(verdict="none"),
            FindingFilter("Z"),
            FindingFilter(),
        ):
            keys: list[str] = []
            after: str | None = ""
            while after is not None:
                rows, after = finding_page(replay, wanted, after=after)
                keys += [row["key"] for row in rows]
            assert keys == [key for key, _finding in findings(replay, wanted)]


def test_each_filter_is_an_address_that_shows_a_colleague_the_same_rows(
    author: Client, viewer: Client, acme: Tenant, replay: Replay
) -> None:
    page = author.get(f"/t/acme/replays/{replay.pk}/").content.decode()
    links = {unescape(url) for url in re.findall(r'<a class="chip" href="([^"]+)"', page)}
    keys = {key for url in links for key in parse_qs(urlsplit(url).query)}
    assert keys == {"status", "delta", "lang", "verdict"}
    for url in sorted(links):
        address = urlsplit(url)
        mine = author.get(f"{address.path}?{address.query}").context
        theirs = viewer.get(f"{address.path}?{address.query}").context
        assert [i["key"] for i in mine["items"]] == [i["key"] for i in theirs["items"]]
        current = [c for facet in mine["facets"] for c in facet["choices"] if c["current"] and c["url"] == url]
        assert current or not address.query
    wrong = f"/t/acme/replays/{replay.pk}/?status=x&delta=x&verdict=x&lang=toolong&rule=nothing&seen=1"
    assert viewer.get(wrong).status_code == 200
    with scope(tenant=acme):
        wanted = [f for _key, f in findings(replay, FindingFilter(delta="newly"))]
    old = viewer.get(f"/t/acme/replays/{replay.pk}/?status=newly").context["items"]
    assert [item["finding"] for item in old] == wanted[:50]


def test_an_export_follows_the_filters_of_the_page(viewer: Client, acme: Tenant, replay: Replay) -> None:
    query = "lang=fr&delta=same"
    lines = b"".join(viewer.get(f"/t/acme/replays/{replay.pk}/export?format=jsonl&{query}")).splitlines()
    with scope(tenant=acme):
        expected = len(list(findings(replay, FindingFilter(language="fr", delta="same"))))
    assert len(lines) - 1 == expected > 0
    page = viewer.get(f"/t/acme/replays/{replay.pk}/?{query}").content.decode()
    assert "export?format=csv&amp;delta=same&amp;lang=fr" in page


def test_polling_says_nothing_while_nothing_changed_and_ends_with_the_end(viewer: Client, acme: Tenant) -> None:
    import_text(acme, random_lines(33, 4))
    publish(acme, make_rule(acme, "A"))
    with scope(tenant=acme):
        replay = start_replay(tenant=acme, by=None, rules=rule_set(acme, drafts=False), send=False)
    url = f"/t/acme/replays/{replay.pk}/"
    page = viewer.get(url).content.decode()
    found = re.search(r'id="seen-state" name="seen" value="([^"]+)"', page)
    assert found is not None
    assert 'hx-include="#seen-state"' in page
    htmx = {"HX-Request": "true"}
    same = viewer.get(f"{url}?seen={found[1]}", headers=htmx)
    assert (same.status_code, same.content) == (204, b"")
    first = viewer.get(url, headers=htmx)
    assert first.status_code == 200
    assert "seen=" not in first.content.decode()
    with scope(tenant=acme):
        run_here(replay)
    ended = viewer.get(f"{url}?seen={found[1]}", headers=htmx)
    assert ended.status_code == 286
    assert ended["HX-Trigger"] == "replay-over"
    assert b"seen" not in ended.content
    listed = viewer.get(url, headers={**htmx, "HX-Target": "findings"}).content.decode()
    assert listed.strip().startswith('<section class="stack" id="findings"')
    assert "data-open" in listed

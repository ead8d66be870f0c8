"""The live effect over stored chats: it equals a replay, its sets can be opened, and each state is told apart."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django_scopes import scope

from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules.chunks import segments
from rules.chunks.replays import run_here
from rules.domain import phrases
from rules.domain.deciding import replay
from rules.domain.language import check
from rules.domain.manifest import Manifest
from rules.domain.near_misses import clauses_of
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.scalar import compile_scalar
from rules.domain.turns import walk
from rules.models import SegmentAtom
from rules.queries import effects
from rules.queries.manifests import manifest_of
from rules.queries.replays import counts, gone_rules
from rules.queries.rules import rule_set
from rules.queries.segments import ALL, Scope
from rules.services import ingesting
from rules.services.replays import Compared, start_replay
from tests.factories import exchange_chat, import_text, make_chat, make_rule, publish, some_author
from tests.rules.domain.language.random_predicates import Predicates
from tests.rules.random_chats import random_lines

Place = tuple[int, int, str]


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def spec(code: str, expression: str, *, stage: str = "final", cap: int = 2) -> RuleSpec:
    given: Any = {"code": code, "stage": stage, "max_nudges": cap, "expression": expression, "prompt": "Go on."}
    return RuleSpec(**given)


def random_rules(predicates: Predicates, rng: random.Random, codes: Sequence[str]) -> list[RuleSpec]:
    """Rules that hold here and there; some read the counters of others."""
    found = []
    for code in codes:
        stage = rng.choice(["final", "round"])
        source = predicates.one(2)
        while check(source, stage="final").tree is None or any(
            d.severity == "error" for d in check(source, stage="final").diagnostics
        ):
            source = predicates.one(2)
        found.append(spec(code, source, stage=stage, cap=rng.randint(0, 2)))
    return found


def publish_specs(tenant: Tenant, specs: Sequence[RuleSpec]) -> None:
    rules = [make_rule(tenant, s.code, expression=s.expression, stage=s.stage, max_nudges=s.max_nudges) for s in specs]
    publish(tenant, *rules)


def reference(tenant: Tenant, specs: Sequence[RuleSpec]) -> dict[Place, tuple[str | None, dict[str, str]]]:
    """By point: the rule that fires and what each rule of the stage comes to, from the walk of each stored chat."""
    manifest: Manifest = manifest_of(tenant, specs, [])
    rules = compile_rules(specs)
    found: dict[Place, tuple[str | None, dict[str, str]]] = {}
    for chat in Chat.objects.all():
        version = ChatVersion.objects.get(chat=chat, number=chat.version_count)
        walked = walk(record_of(version), manifest.tool_catalogue(), manifest.prompts())
        for d in replay(walked, rules, manifest.defaults):
            place = (version.pk, d.point.message, d.point.stage)
            found[place] = (d.fired, {r.code: str(r.outcome) for r in d.rules})
    return found


def places(tenant: Tenant, specs: Sequence[RuleSpec], code: str, name: str, **given: Any) -> list[Place]:
    """A set page by page, to its end."""
    found: list[Place] = []
    after = ""
    while True:
        page = effects.point_page(tenant, specs, code, name, after=after, size=7, **given)
        assert page.state == "ready"
        found += [(row.version.pk, row.message, row.stage) for row in page.rows]
        if not page.next_after:
            assert len(found) == page.total
            return found
        after = page.next_after


@pytest.mark.parametrize("seed", range(6))
def test_an_effect_is_the_difference_of_two_replays(in_acme: Tenant, seed: int) -> None:
    rng, predicates = random.Random(seed), Predicates(seed)
    import_text(in_acme, random_lines(seed, 25))
    live = random_rules(predicates, rng, ("A", "B", "C", "D"))
    publish_specs(in_acme, live)
    segments.derive_missing(in_acme, seconds=60)  # prompts that some chat holds were saved with the rules
    [edit] = random_rules(predicates, rng, (rng.choice(["A", "B", "C", "D", "E"]),))
    edited = effects.edited_rules(
        in_acme, edit.code, stage=edit.stage, max_nudges=edit.max_nudges, expression=edit.expression,
        position=rng.choice([None, 1, 3]),
    )  # fmt: skip
    answer = effects.effect(in_acme, edited, edit.code, seconds=None)
    assert answer.state == "ready"
    assert answer.effect is not None
    assert answer.effect.exact

    compared = Compared("live", rule_set(in_acme, drafts=False))
    run = run_here(start_replay(tenant=in_acme, by=some_author(in_acme), rules=edited, compared=compared, send=False))
    of_rule = counts(run)["rules"][edit.code]
    found = answer.effect
    assert (found.fires, found.matches, found.shadowed, found.capped, found.newly, found.gone) == tuple(
        of_rule[name] for name in ("fires", "matches", "shadowed", "capped", "newly", "gone")
    )
    assert found.points == of_rule["points"]
    changes = {code: n["newly"] - n["gone"] for code, n in counts(run)["rules"].items() if code != edit.code}
    changes |= {code: -n for code, n in gone_rules(run).items() if code != edit.code}
    assert dict(found.others) == {code: n for code, n in changes.items() if n}

    before, after = reference(in_acme, compared.rules), reference(in_acme, edited)
    fired = {place for place, (code, _rules) in after.items() if code == edit.code}
    had = {place for place, (code, _rules) in before.items() if code == edit.code}
    came_to = {
        outcome: {place for place, (_c, rules) in after.items() if rules.get(edit.code) == outcome}
        for outcome in ("shadowed", "capped")
    }
    wanted = {"newly": fired - had, "gone": had - fired, "same": fired & had, "fires": fired, **came_to,
              "matches": fired | came_to["shadowed"] | came_to["capped"]}  # fmt: skip
    for name, expected in wanted.items():
        listed = places(in_acme, edited, edit.code, name)
        assert (len(listed), set(listed)) == (len(expected), expected), name


@pytest.mark.parametrize("seed", range(3))
def test_near_misses_are_points_that_one_clause_blocks(in_acme: Tenant, seed: int) -> None:
    import_text(in_acme, random_lines(seed + 50, 25))
    source = "ctx.tools_available && !asks_user(ctx.final_text) && (announces_action(ctx.final_text) || ctx.mutated)"
    rules = [spec("N", source)]
    tree = check(source).tree
    assert tree is not None
    clauses = list(clauses_of(tree))
    parts = [compile_scalar(clause) for clause in clauses]
    wanted: dict[int, set[Place]] = {n: set() for n in range(len(clauses))}
    manifest = manifest_of(in_acme, rules, [])
    for chat in Chat.objects.all():
        version = ChatVersion.objects.get(chat=chat)
        walked = walk(record_of(version), manifest.tool_catalogue(), manifest.prompts())
        for point in walked.points:
            values = [bool(part(point.context(walked.facts.settled(manifest.defaults)))) for part in parts]
            for n in range(len(values)):
                flipped = [value != (at == n) for at, value in enumerate(values)]
                if point.stage == "final" and not holds(values) and holds(flipped):
                    wanted[n].add((version.pk, point.message, point.stage))
    groups = effects.near_misses(in_acme, rules, "N")
    assert [(g.text, g.missed) for g in groups] == [
        (source[c.span[0] : c.span[1]], len(wanted[n])) for n, c in enumerate(clauses)
    ]
    for n in wanted:
        assert set(places(in_acme, rules, "N", "near", clause=n)) == wanted[n]
    assert set(places(in_acme, rules, "N", "near")) == set().union(*wanted.values())


def holds(values: list[bool]) -> bool:
    tools, asks, announces, mutated = values
    return tools and not asks and (announces or mutated)


def test_the_words_that_made_a_term_true_are_marked(in_acme: Tenant) -> None:
    text = "Vu. " + "x" * 200 + ". Je vais vérifier les étapes. Voilà."
    make_chat(in_acme, {"role": "user", "content": "Salut"}, {"role": "assistant", "content": text})
    page = effects.point_page(in_acme, [spec("M", "announces_action(ctx.final_text)")], "M", "fires")
    [row] = page.rows
    [(start, end), *_rest] = phrases.find_announces_action(text)
    assert [part.text for part in row.parts if part.marked] == [text[start:end]]
    shown = "".join(part.text for part in row.parts)
    assert shown in text
    assert row.excerpt.cut_before
    assert (row.field, row.point, row.turn, row.fired, row.fired_before) == ("final_text", "1-final", 0, "M", None)


def test_points_behind_a_change_in_their_turn_are_marked(in_acme: Tenant) -> None:
    answers = [{"role": "assistant", "content": text} for text in ("one", "two", "three")]
    make_chat(in_acme, {"role": "user", "content": "Go"}, *answers)
    rules = [spec("C", 'ctx.final_text != ""', cap=5)]
    page = effects.point_page(in_acme, rules, "C", "fires")
    assert [row.counterfactual for row in page.rows] == [False, True, True]


def test_three_kinds_of_nought(in_acme: Tenant) -> None:
    make_chat(in_acme, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."})

    def nought(expression: str, stage: str = "final") -> str | None:
        answer = effects.effect(in_acme, [spec("Z", expression, stage=stage)], "Z")
        assert answer.effect is not None
        return answer.effect.zero

    assert nought("ctx.no_progress_rounds > 1", "round") == "no-data"
    assert nought("ctx.budget_low") == "not-evaluable"
    assert nought('ctx.final_text == "never"') == "zero"
    assert nought('ctx.final_text == "Hi."') is None


def test_what_keeps_a_question_from_an_answer_has_a_name(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [spec("S", "ctx.mutated")]
    assert effects.effect(in_acme, rules, "S").state == "empty"
    assert effects.point_page(in_acme, rules, "S", "fires").state == "empty"
    with monkeypatch.context() as patched:
        patched.setattr(ingesting.Intake, "store_all", lambda self, tenant: None)
        import_text(in_acme, random_lines(9, 3))
    answer = effects.effect(in_acme, rules, "S")
    assert (answer.state, answer.corpus.missing, answer.prepare_total) == ("preparing", 3, 3)
    segments.derive_missing(in_acme, seconds=60)
    assert effects.effect(in_acme, rules, "S").state == "ready"
    broken = effects.effect(in_acme, [*rules, spec("T", "ctx.")], "S")
    assert (broken.state, broken.broken_code) == ("broken", "T")
    with pytest.raises(ValueError, match="no rule"):
        effects.effect(in_acme, rules, "nobody")
    json.dumps(answer.as_json())


def test_an_estimate_goes_on_until_it_is_exact(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(10, 60))
    rules = [spec("P", "ctx.final_text.matches('(?i)steps|lancer')")]
    first = effects.effect(in_acme, rules, "P", seconds=0)
    assert first.effect is not None
    seen = [first.effect.seen]
    while not (again := effects.effect(in_acme, rules, "P", seconds=0).effect).exact:  # type: ignore[union-attr]
        seen.append(again.seen)  # type: ignore[union-attr]
    assert seen == sorted(seen)
    assert again is not None
    assert len(places(in_acme, rules, "P", "fires")) == again.fires
    if not first.effect.exact:
        assert first.effect.low is not None
        assert first.effect.low <= again.fires or first.effect.seen == 0


def test_bits_that_were_found_are_stored_for_other_processes(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(11, 5))
    before = SegmentAtom.objects.count()
    effects.effect(in_acme, [spec("K", "ctx.final_text.contains('suite')")], "K", seconds=None)
    assert SegmentAtom.objects.count() == before + 1


def test_an_order_against_the_live_one(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(12, 20))
    live = [spec("A", 'ctx.final_text != ""', cap=1), spec("B", "ctx.tool_calls_total == 0", cap=1)]
    publish_specs(in_acme, live)
    answer = effects.order_effect(in_acme, list(reversed(rule_set(in_acme, drafts=False))))
    before, after = (
        Counter(code for code, _r in reference(in_acme, rules).values() if code)
        for rules in (live, list(reversed(live)))
    )
    assert {row.code: (row.before, row.after) for row in answer.rows} == {
        code: (before[code], after[code]) for code in "AB"
    }
    assert all(row.after - row.before == row.newly - row.gone for row in answer.rows)
    assert effects.live_counts(in_acme)["A"]["fires"] == before["A"]


def test_firings_by_the_day_on_which_the_chat_began(in_acme: Tenant) -> None:
    for name, day in (("a", "2026-03-01"), ("b", "2026-03-03"), ("c", "2026-03-03"), ("old", "2025-01-01")):
        messages = [
            {"role": "user", "content": "Go", "created_at": f"{day}T23:30:00Z"},
            {"role": "assistant", "content": "Well."},
        ]
        make_chat(in_acme, *messages, external_id=name)
    make_chat(
        in_acme, {"role": "user", "content": "Go"}, {"role": "assistant", "content": "Well."}, external_id="when?"
    )
    rules = [spec("D", 'ctx.final_text == "Well."')]
    found = effects.daily(in_acme, rules, "D", until=date(2026, 3, 4), days=4)
    assert [(d.date.day, d.fires, d.before) for d in found.days] == [(1, 1, 0), (2, 0, 0), (3, 2, 0), (4, 0, 0)]
    assert (found.undated, found.outside) == (1, 1)
    assert effects.daily(in_acme, rules, "D", until=date(2020, 1, 1), days=4) == effects.Daily([], 1, 4)


def test_warnings_and_observed_values_come_from_the_points(in_acme: Tenant) -> None:
    make_chat(in_acme, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."})
    rules = [spec("W", 'ctx.finish_reason == "length" || ctx.final_text.contains("Bonjour tout le monde")')]
    codes = {d.code for d in effects.corpus_warnings(in_acme, rules, "W")}
    assert "never-seen" in codes
    assert [o.value for o in effects.observed(in_acme, "final")["mutated"]] == [None]
    assert [(o.value, o.count) for o in effects.observed(in_acme, "final")["tool_calls_total"]] == [(0, 1)]


def test_another_tenants_points_are_out_of_reach(acme: Tenant, elsewhere: Tenant) -> None:
    import_text(acme, random_lines(13, 5))
    rules = [spec("T", 'ctx.final_text != ""')]
    with scope(tenant=acme):
        page = effects.point_page(acme, rules, "T", "fires")
        assert page.total > 0
        job = Chat.objects.order_by("pk").first().imports.get().job_id  # type: ignore[union-attr]
    with scope(tenant=elsewhere):
        assert effects.effect(elsewhere, rules, "T").state == "empty"
        assert effects.effect(elsewhere, rules, "T", scope=Scope("import", job)).state == "empty"
        assert effects.point_page(elsewhere, rules, "T", "fires", after=page.rows[0].key).rows == []


def test_a_scope_is_its_text() -> None:
    for text in ("all", "import:7", "search:1", "corpus:12"):
        assert str(Scope.parse(text)) == text
    assert Scope.parse("") == ALL
    for wrong in ("all:1", "import", "import:x", "chat:1", "import:-1", "corpus:" + "9" * 30):
        with pytest.raises(ValueError, match="no scope"):
            Scope.parse(wrong)


def test_chats_with_equal_content_hold_points_of_their_own(in_acme: Tenant) -> None:
    messages = [{"role": "user", "content": "Same"}, {"role": "assistant", "content": "Same."}]
    lines = [json.dumps(exchange_chat(*messages, external_id=f"x{n}")) for n in range(3)]
    import_text(in_acme, "\n".join(lines))
    rows = effects.point_page(in_acme, [spec("E", 'ctx.final_text == "Same."')], "E", "fires").rows
    assert len({row.chat.pk for row in rows}) == 3

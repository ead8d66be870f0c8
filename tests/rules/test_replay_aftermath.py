"""What came after the firings of a replay: counted over columns, the same as chat by chat, whenever it is counted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chats.models import Chat, ChatVersion, Corpus
from chats.queries.chats import record_of
from chats.services.retention import delete_chat
from eleanor_site.tenants.models import Tenant
from rules.chunks import aftermaths, preparing
from rules.chunks.replays import compute, run_chunk, run_here, write
from rules.domain.aftermath import Aftermath, by_group, merged
from rules.domain.deciding import replay as replay_chat
from rules.domain.language import check
from rules.domain.language.tree import fields_read
from rules.domain.points import Defaults
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.turns import walk
from rules.models import Preparation, Replay, ReplayChunk, Segment, SegmentChat, Verdict
from rules.queries.replay_aftermath import aftermath_report, counting, is_told, untold_chunks
from rules.queries.replays import manifest
from rules.services import aftermaths as services
from rules.services.replays import Scope, start_replay
from tests.factories import import_text, make_chat, make_replay, make_rule, publish, some_author
from tests.rules.domain.aftermath_loop import aftermath
from tests.rules.random_chats import random_chat

HTMX = {"HX-Request": "true"}
SAID = ("Go on.", "Vas-y.", "ok, go ahead", "Mend  the PARSER.", "mend the parser.", "Ouvre l’écran.", "ouvre l'ecran.")
EXPRESSIONS = (
    ("final", 'ctx.final_text != ""'),
    ("final", "ctx.finish_reason == null && !ctx.tools_available"),
    ("final", 'nudged("A") == 0 && ctx.tool_calls_total > 0'),
    ("final", "announces_action(ctx.final_text) || is_go_ahead(ctx.user_text)"),
    ("round", "ctx.no_progress_rounds >= 1"),
    ("round", "ctx.tool_calls_total >= 1 && (ctx.budget_low || !ctx.verified_after_mutation)"),
    ("round", 'ctx.read_only_rounds >= 1 && nudged("D") < 2'),
    ("round", "true"),
)


def lines(seed: int, count: int) -> str:
    """Random chats of several models in which people say the same again, and rounds repeat each other."""
    rng = random.Random(seed)
    chats = []
    for n in range(count):
        given = random_chat(rng, f"a-{seed}-{n}")
        model = rng.choice(["m-1", "m-2", ""])
        for message in given["chat"]["messages"]:
            if message["role"] == "user" and "nudge_code" not in message:
                message["content"] = rng.choice(SAID)
            if message["role"] == "assistant" and model:
                message["model"] = model
            if message["role"] == "tool":
                message["content"] = rng.choice(["done", "done", "other"])
        chats.append(json.dumps(given))
    return "\n".join(chats)


def rules_of(rng: random.Random) -> list[RuleSpec]:
    chosen = rng.sample(EXPRESSIONS, rng.randint(2, len(EXPRESSIONS)))
    codes = ["A", "B", "D", "EAI-GOV-07", "F", "G", "H", "I"]
    return [
        RuleSpec(code=code, stage=stage, expression=expression, prompt="Go on.", max_nudges=rng.randint(0, 3))
        for code, (stage, expression) in zip(codes, chosen, strict=False)
    ]


def by_the_loop(replay: Replay, versions: Iterable[int]) -> dict[tuple[str, str], dict[str, Aftermath]]:
    """Chat by chat, over what is stored."""
    frozen = manifest(replay)
    rules, catalogue, prompts = compile_rules(frozen.rules), frozen.tool_catalogue(), frozen.prompts()
    reads = {}
    for spec in frozen.rules:
        tree = check(spec.expression, stage=spec.stage).tree
        assert tree is not None
        reads[spec.code] = (spec.stage, fields_read(tree))
    found: dict[tuple[str, str], list[dict[str, Aftermath]]] = {}
    for version in ChatVersion.objects.filter(pk__in=list(versions)).select_related("chat"):
        walked = walk(record_of(version), catalogue, prompts)
        told = aftermath(walked, replay_chat(walked, rules, frozen.defaults), reads, frozen.defaults)
        found.setdefault((version.chat.model, version.chat.language), []).append(told)
    return {group: merged(parts) for group, parts in found.items()}


def counted(replay: Replay) -> dict[tuple[str, str], dict[str, Aftermath]]:
    """From what the chunks tell; groups without chats aside, which a scope may leave."""
    texts = ReplayChunk.objects.filter(replay=replay).values_list("aftermath", flat=True)
    groups = by_group(map(json.loads, texts), [spec.code for spec in manifest(replay).rules])
    return {group: found for group, found in groups.items() if any(a.chats for a in found.values())}


def forget(replay: Replay, *, sequels: bool = True) -> None:
    """As replays were before their chunks told what came after."""
    ReplayChunk.objects.filter(replay=replay).update(aftermath="")
    if sequels:
        Segment.objects.update(sequels=b"")


def count_now(replay: Replay) -> None:
    for pk in untold_chunks(replay).values_list("pk", flat=True):
        aftermaths.count_chunk(pk)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_columns_tell_what_the_chats_tell(in_acme: Tenant, seed: int) -> None:
    rng = random.Random(seed)
    job = import_text(in_acme, lines(seed, rng.randint(1, 12)), name=f"{seed}.jsonl")
    defaults = Defaults(step_budget=rng.choice([None, 4]))
    given_scope = rng.choice([Scope(), Scope("import", job.pk)])
    replay = start_replay(
        tenant=in_acme,
        by=some_author(in_acme),
        scope=given_scope,
        rules=rules_of(rng),
        defaults=defaults,
        send=False,
    )
    versions = given_scope.versions()
    replay = run_here(replay)
    expected = by_the_loop(replay, versions)
    # Segments of the examples before may be of older times, see below.
    assert is_told(replay) or given_scope == Scope()
    count_now(replay)
    assert counted(replay) == expected
    forget(replay, sequels=rng.random() < 0.5)
    assert counting(replay).done == 0
    count_now(replay)
    assert counted(replay) == expected


def test_the_random_chats_reach_every_kind(in_acme: Tenant) -> None:
    """Else the comparison above would say little."""
    import_text(in_acme, lines(5, 150))
    rules = [
        RuleSpec(code=f"R{n}", stage=stage, expression=expression, prompt="Go on.", max_nudges=1)
        for n, (stage, expression) in enumerate([*EXPRESSIONS[1:3], *EXPRESSIONS[4:6]])
    ]
    replay = start_replay(tenant=in_acme, by=some_author(in_acme), rules=rules, send=False)
    total = Aftermath()
    for of_rules in counted(run_here(replay)).values():
        for counts in of_rules.values():
            total.add(counts)
    assert [name for name, value in vars(total).items() if not value] == []


@pytest.fixture
def replayed(in_acme: Tenant) -> Replay:
    import_text(in_acme, lines(7, 30))
    make_rule(in_acme, "A", expression='ctx.final_text != ""')
    make_rule(in_acme, "B", stage="round", expression="ctx.no_progress_rounds >= 1")
    return make_replay(in_acme)


def test_what_a_chunk_tells_is_written_once_with_its_result(in_acme: Tenant, replayed: Replay) -> None:
    replay = make_replay(in_acme, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)
    first, second = compute(chunk), compute(chunk)
    assert first.aftermath == second.aftermath != ""
    assert write(chunk, first) is True
    assert write(chunk, second) is False
    assert run_chunk(chunk.pk) is False
    assert counted(replay) == counted(replayed)


def test_deleted_chats_stay_counted(in_acme: Tenant, replayed: Replay, django_capture_on_commit_callbacks: Any) -> None:
    before = counted(replayed)
    chat = Chat.objects.order_by("pk").first()
    assert chat is not None
    with django_capture_on_commit_callbacks(execute=True):
        delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat)
    assert counted(replayed) == before
    # What replays find in the columns that are left is what the chats that are left tell.
    rest = make_replay(in_acme)
    segment = Segment.objects.get(retired_at__isnull=True)
    left = SegmentChat.objects.filter(segment=segment).values_list("version", flat=True)
    assert counted(rest) == by_the_loop(rest, left)
    # Counted only now, the older one lacks the chat, and the page says so.
    forget(replayed)
    count_now(replayed)
    report = aftermath_report(replayed)
    assert (report.chats, report.uncounted) == (29, 1)


def test_a_segment_whose_chats_give_other_points_now_is_left_out(in_acme: Tenant, replayed: Replay) -> None:
    forget(replayed)
    version = ChatVersion.objects.order_by("pk").first()
    assert version is not None
    content = json.loads(version.content)
    content["chat"]["messages"] = content["chat"]["messages"][:1]
    ChatVersion.objects.filter(pk=version.pk).update(content=json.dumps(content))
    count_now(replayed)
    report = aftermath_report(replayed)
    assert is_told(replayed)
    assert (report.chats, report.uncounted, report.by_stage) == (0, 30, [])


def test_a_frozen_corpus_counts_its_versions(in_acme: Tenant, replayed: Replay) -> None:
    members = list(ChatVersion.objects.order_by("pk").values_list("pk", flat=True))[:7]
    corpus = Corpus.objects.create(tenant=in_acme, name="few", digest="x", members=json.dumps(members))
    rules = manifest(replayed).rules
    replay = start_replay(
        tenant=in_acme, by=some_author(in_acme), scope=Scope("corpus", corpus.pk), rules=rules, send=False
    )
    assert counted(run_here(replay)) == by_the_loop(replay, members)


# --- the page


@pytest.fixture
def page_replay(acme: Tenant) -> Replay:
    with scope(tenant=acme):
        publish(acme, make_rule(acme, expression="ctx.finish_reason == null"))
        make_chat(acme, {"role": "user", "content": "Go"}, {"role": "assistant", "content": "I will."})
        replay = make_replay(acme, drafts=False)
        forget(replay)
        return replay


ADDRESS = "/t/acme/nudges/rules"


def test_a_small_replay_is_counted_at_once_when_somebody_asks(
    viewer: Client, acme: Tenant, page_replay: Replay
) -> None:
    assert "Count what came after the firings" in viewer.get(ADDRESS).content.decode()
    assert not is_told_in(acme, page_replay)
    answer = viewer.post(ADDRESS)
    assert (answer.status_code, answer["Location"]) == (302, f"{ADDRESS}#aftermath")
    report = viewer.get(ADDRESS).content.decode()
    assert "(no finish reason)" in report
    assert "Counted over one chat." in report


def is_told_in(tenant: Tenant, replay: Replay) -> bool:
    with scope(tenant=tenant):
        return is_told(replay)


def test_a_large_replay_shows_how_far_the_counting_is(
    viewer: Client, acme: Tenant, page_replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    monkeypatch.setattr(services, "AT_ONCE", 0)
    monkeypatch.setattr("rules.tasks.count_aftermath.apply_async", lambda args=(), **rest: sent.append(args))
    for _time in range(2):
        assert viewer.post(ADDRESS).status_code == 302
    page = viewer.get(ADDRESS).content.decode()
    assert f'data-poll="{ADDRESS}"' in page
    assert "<progress" in page
    assert viewer.get(ADDRESS, headers=HTMX).status_code == 200
    with scope(tenant=acme):
        pk = Preparation.objects.get(kind="aftermath").pk
    assert preparing.run(pk) is False
    answer = viewer.get(ADDRESS, headers=HTMX)
    assert (answer.status_code, b"(no finish reason)" in answer.content) == (286, True)
    with scope(tenant=acme):
        assert not Replay.objects.filter(aftermath_wanted=True).exists()


def test_a_counting_that_failed_can_be_asked_for_again(
    viewer: Client, acme: Tenant, page_replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "AT_ONCE", 0)
    monkeypatch.setattr("rules.tasks.count_aftermath.apply_async", lambda *args, **rest: None)
    viewer.post(ADDRESS)
    with scope(tenant=acme):
        Preparation.objects.update(status="failed")
    assert "Count what came after the firings" in viewer.get(ADDRESS).content.decode()


def test_a_sample_of_a_rule_is_judged_and_its_false_alarms_are_shown(
    reviewer: Client, acme: Tenant, page_replay: Replay
) -> None:
    reviewer.post(ADDRESS)
    page = reviewer.get(ADDRESS).content.decode()
    assert "Judge a sample" in page
    asked = {"kind": "firings", "replay": page_replay.pk, "code": "ACME-01", "all": "1", "limit": "50"}
    queue = reviewer.post("/t/acme/review/new", asked)
    assert queue.status_code == 302
    with scope(tenant=acme):
        version = ChatVersion.objects.get()
        Verdict.objects.create(
            tenant=acme,
            by=some_author(acme),
            chat=version.chat,
            chat_version=version,
            message=1,
            stage="final",
            code="ACME-01",
            value="wrong",
        )
    assert "too few (n = 1)" in reviewer.get(ADDRESS).content.decode()


def test_a_counting_that_stood_still_is_taken_up_by_the_sweeper(
    acme: Tenant, page_replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "AT_ONCE", 0)
    monkeypatch.setattr("rules.tasks.count_aftermath.apply_async", lambda *args, **rest: None)
    with scope(tenant=acme):
        services.prepare_aftermath(tenant=acme, replay=page_replay)
        Preparation.objects.update(heartbeat_at="2020-01-01T00:00:00Z")
    found = preparing.to_send_again()
    assert [kind for kind, _pk in found].count("aftermath") == 1
    assert preparing.run(dict(found)["aftermath"]) is False
    with scope(tenant=acme):
        assert is_told(page_replay)
        assert Segment.objects.get().sequels

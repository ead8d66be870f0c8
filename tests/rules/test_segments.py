"""Columns of stored chats: what an import writes, what is derived later, what is masked, and what is mended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django_scopes import scope

from chats.chunks import run_import
from chats.models import Chat, ChatVersion, Corpus
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules import kept_columns, text_files
from rules.chunks import preparing, segments
from rules.domain import phrases
from rules.domain.atoms import atoms_of
from rules.domain.language import check
from rules.domain.nudges import KnownPrompts
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from rules.models import KnownPrompt, Preparation, Segment, SegmentAtom, SegmentChat
from rules.queries.manifests import catalogue_entries, defaults_of
from rules.queries.point_sets import recorded_at, turn_of
from rules.queries.segments import ALL, Scope, corpus_view, newest_prompt
from rules.services import ingesting
from rules.services.tools import add_entry
from tests.factories import exchange_chat, import_text, make_chat, make_rule, some_author
from tests.rules.random_chats import random_lines


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> Path:
    """Text files of each test in a folder of its own."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def two_messages(name: str, answer: str = "I will do it.") -> str:
    messages = [{"role": "user", "content": "Do it."}, {"role": "assistant", "content": answer}]
    return json.dumps(exchange_chat(*messages, external_id=name))


def points_of(tenant: Tenant) -> list[tuple[int, int, int, str, int, str | None]]:
    """Each point by version, message, turn, stage and recorded nudge, from the columns alone."""
    found = []
    view = corpus_view()
    for part, points in zip(view.parts, kept_columns.views_of(tenant, view.parts, defaults_of(tenant)), strict=True):
        chats = {row.number: row for row in SegmentChat.objects.filter(segment=part.segment)}
        for at in range(points.columns.points):
            if points.scope is not None and not points.scope[at]:
                continue
            chat = chats[int(points.columns.field("chat")[at])]
            stage = "round" if points.columns.field("is_round")[at] else "final"
            message = int(points.columns.field("message")[at])
            turn = turn_of(points, chat, at)
            calls = int(points.columns.field("tool_calls_total")[at])
            found.append((chat.version_id, message, turn, stage, calls, recorded_at(points, at)))
    return sorted(found, key=str)


def walked_points() -> list[tuple[int, int, int, str, int, str | None]]:
    """The same from the stored chats, one after the other."""
    known = KnownPrompts(dict(KnownPrompt.objects.values_list("text_hash", "code")))
    found = []
    for chat in Chat.objects.all():
        version = ChatVersion.objects.get(chat=chat, number=chat.version_count)
        for p in walk(record_of(version), ToolCatalogue(), known).points:
            found.append((version.pk, p.message, p.turn, p.stage, p.tool_calls_total, p.next_nudge))
    return sorted(found, key=str)


def test_an_import_writes_its_points_once(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(1, 40))
    segment = Segment.objects.get()
    assert (segment.chat_count, segment.point_count) == (40, sum(c.point_count for c in Chat.objects.all()))
    assert corpus_view().missing == 0
    assert points_of(in_acme) == walked_points()
    import_text(in_acme, random_lines(1, 40))
    assert Segment.objects.count() == 1


def test_turns_without_points_keep_the_numbers_of_later_turns(in_acme: Tenant) -> None:
    call = {"id": "c", "name": "read_file", "arguments": {}}
    make_chat(
        in_acme,
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "Two."},
        {"role": "assistant", "content": "Here."},
    )
    assert [turn for _v, _m, turn, *_rest in points_of(in_acme)] == [1]


def test_the_bits_of_the_usual_terms_come_with_the_import(in_acme: Tenant) -> None:
    make_rule(in_acme, "ACME-01", expression="ctx.final_text.contains('x')")
    import_text(in_acme, random_lines(2, 5))
    keys = set(SegmentAtom.objects.values_list("key", flat=True))
    trees = [tree for source in segments.HELPER_TERMS if (tree := check(source).tree) is not None]
    wanted = {key for tree in trees for key in atoms_of(tree)}
    assert wanted <= keys


def test_a_new_version_takes_the_place_of_the_old_one(in_acme: Tenant) -> None:
    import_text(in_acme, "\n".join([two_messages("a"), two_messages("b")]))
    before = corpus_view()
    old = ChatVersion.objects.get(chat__external_id="a")
    corpus = Corpus.objects.create(tenant=in_acme, name="frozen", digest="x", members=json.dumps([old.pk]))
    import_text(in_acme, two_messages("a", "I have done it."))
    view = corpus_view()
    assert (view.points, view.chats, view.missing) == (2, 2, 0)
    assert view.digest != before.digest
    assert {v for v, *_rest in points_of(in_acme)} == set(
        ChatVersion.objects.exclude(pk=old.pk).values_list("pk", flat=True)
    )
    frozen = corpus_view(Scope("corpus", corpus.pk))
    assert (frozen.points, frozen.chats, frozen.missing) == (1, 1, 0)
    assert frozen.digest != view.digest


def test_scopes_of_an_import(in_acme: Tenant) -> None:
    first = import_text(in_acme, "\n".join([two_messages("a"), two_messages("b")]))
    second = import_text(in_acme, two_messages("c"))
    assert [corpus_view(Scope("import", job.pk)).chats for job in (first, second)] == [2, 1]
    assert corpus_view(ALL).chats == 3
    assert corpus_view(Scope("import", 10**9)).chats == 0


@pytest.mark.parametrize("harm", ["missing", "short", "flipped"])
def test_a_text_file_that_is_gone_or_damaged_is_made_anew(in_acme: Tenant, harm: str) -> None:
    import_text(in_acme, random_lines(3, 6))
    segment = Segment.objects.get()
    path = text_files.path_of(segment)
    whole = path.read_bytes()
    text_files.open_texts(segment)
    if harm == "missing":
        path.unlink()
    elif harm == "short":
        path.write_bytes(whole[:-10])
    else:
        path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(text_files.TextsGone):
        text_files.open_texts(segment)
    segments.derive_missing(in_acme, seconds=60)
    assert path.read_bytes() == whole
    assert len(text_files.open_texts(segment).final) > 0


def test_a_file_is_read_whole_for_its_hash_only_once(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    import_text(in_acme, random_lines(9, 3))
    segment = Segment.objects.get()
    monkeypatch.setattr(text_files, "_checked", {})  # another process
    with monkeypatch.context() as patched:
        patched.setattr(text_files, "_BLOCK", "nobody reads it")
        text_files.open_texts(segment)
    note = text_files.path_of(segment).with_suffix(".checked")
    note.write_text("1 2 3")
    monkeypatch.setattr(text_files, "_checked", {})
    text_files.open_texts(segment)
    assert note.read_text() != "1 2 3"


def test_another_tool_catalogue_makes_other_segments_and_the_old_ones_come_back(in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(4, 10))
    before = corpus_view()
    values = {"pattern": "read_file", "kind": "other"}
    entry = add_entry(tenant=in_acme, values=values, by=some_author(in_acme))
    assert (corpus_view().points, corpus_view().missing) == (0, 10)
    segments.derive_missing(in_acme, seconds=60)
    assert (corpus_view().points, corpus_view().missing) == (before.points, 0)
    assert corpus_view().digest != before.digest
    entry.delete()
    assert corpus_view().digest == before.digest


def test_a_prompt_that_is_saved_later_is_looked_for_where_somebody_wrote_it(in_acme: Tenant) -> None:
    messages = [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": "  Please go \n on, ACME. "},
        {"role": "assistant", "content": "Done."},
    ]
    lines = [json.dumps(exchange_chat(*messages, external_id="concerned")), two_messages("other")]
    import_text(in_acme, "\n".join(lines))
    assert {nudge for *_rest, nudge in points_of(in_acme)} == {None}
    make_rule(in_acme, "ACME-01", prompt_en="Please go on, ACME.")
    view = corpus_view()
    assert (view.chats, view.missing) == (1, 1)
    segments.derive_missing(in_acme, seconds=60)
    assert (corpus_view().chats, corpus_view().missing) == (2, 0)
    assert points_of(in_acme) == walked_points()
    assert {nudge for *_rest, nudge in points_of(in_acme)} == {None, "ACME-01"}
    assert set(Segment.objects.values_list("prompts", flat=True)) == {newest_prompt()}
    again = Segment.objects.count()
    make_rule(in_acme, "ACME-02", prompt_en="Nobody ever wrote this.")
    assert corpus_view().missing == 0
    segments.derive_missing(in_acme, seconds=60)
    assert Segment.objects.count() == again


def test_what_a_killed_import_left_out_is_derived(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ingesting.Intake, "store_all", lambda self, tenant: None)
        import_text(in_acme, random_lines(5, 8))
    assert (corpus_view().points, corpus_view().missing) == (0, 8)
    found = preparing.to_send_again()
    assert [kind for kind, _pk in found] == ["segments"]
    assert preparing.to_send_again() == []
    preparing.run(found[0][1])
    assert corpus_view().missing == 0
    assert points_of(in_acme) == walked_points()
    assert Preparation.objects.get().status == "done"


def test_chats_of_a_batch_that_was_undone_are_in_no_segment(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError("disk")

    with monkeypatch.context() as patched:
        patched.setattr("chats.chunks.jobs.beat", fails)
        patched.setattr("chats.chunks.BATCH_CHATS", 1)
        job = import_text(in_acme, "\n".join([two_messages("a"), two_messages("b")]))
    ChatVersion.objects.filter(chat__external_id="a").update(content_hash="0" * 64)
    run_import(job.pk)
    for view in (corpus_view(),):
        assert view.missing + view.chats == Chat.objects.count() == 2
    segments.derive_missing(in_acme, seconds=60)
    assert points_of(in_acme) == walked_points()


def test_a_full_disk_delays_columns_and_fails_no_import(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(text_files, "write", is_full)
        job = import_text(in_acme, random_lines(6, 4))
        assert (job.status, corpus_view().missing, Segment.objects.count()) == ("done", 4, 0)
        [(_kind, pk)] = preparing.to_send_again() or [("segments", Preparation.objects.get().pk)]
        assert preparing.run(pk) is True
        assert Preparation.objects.get().error == "OSError"
    preparing.run(pk)
    assert corpus_view().missing == 0


def test_another_version_of_a_helper_renames_its_bits(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    import_text(in_acme, random_lines(7, 3))
    before = set(SegmentAtom.objects.values_list("key", flat=True))
    monkeypatch.setitem(phrases.HELPER_VERSIONS, "asks_user", phrases.HELPER_VERSIONS["asks_user"] + 1)
    preparing.find_bits(in_acme)
    after = set(SegmentAtom.objects.values_list("key", flat=True))
    assert len(after - before) == 1


def test_many_small_segments_become_one(in_acme: Tenant) -> None:
    for n in range(segments.MOST_SMALL + 2):
        import_text(in_acme, two_messages(f"chat-{n}"))
    assert len(corpus_view().parts) == segments.MOST_SMALL + 2
    segments.derive_missing(in_acme, seconds=60)
    view = corpus_view()
    assert (len(view.parts), view.chats, view.missing) == (1, segments.MOST_SMALL + 2, 0)
    assert points_of(in_acme) == walked_points()
    assert segments.forget_unused(catalogue_entries(), days=-1) == segments.MOST_SMALL + 2
    assert Segment.objects.count() == 1
    assert points_of(in_acme) == walked_points()


def test_equal_texts_of_two_tenants_share_nothing(acme: Tenant, elsewhere: Tenant, media: Path) -> None:
    for tenant in (acme, elsewhere):
        import_text(tenant, random_lines(8, 3))
    assert len(list(media.rglob("*.arrow"))) == 2
    with scope(tenant=elsewhere):
        foreign = set(Segment.objects.values_list("pk", flat=True))
    with scope(tenant=acme):
        view = corpus_view()
        assert not {part.segment for part in view.parts} & foreign
        views = kept_columns.views_of(acme, view.parts, defaults_of(acme))
        tree = check("ctx.final_text.contains('only asked here')").tree
        assert tree is not None
        views[0].atoms.fill([tree])
        kept_columns.store_bits(acme, views, view.parts)
    with scope(tenant=elsewhere):
        view = corpus_view()
        views = kept_columns.views_of(elsewhere, view.parts, defaults_of(elsewhere))
        assert not kept_columns.fetch_bits(views, view.parts, [tree])
        assert not SegmentAtom.objects.filter(key__in=atoms_of(tree)).exists()


def test_the_numeric_libraries_wait_for_the_first_question() -> None:
    """The web process starts without them (architecture.md section 4)."""
    code = (
        "import django, sys; django.setup(); from django.urls import get_resolver; get_resolver().url_patterns; "
        "print(*[name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr

"""One chat as a timeline: pages, marks, folded rounds, keys, inspector."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import Manifest
from rules.queries.manifests import manifest_of
from rules.queries.rules import rule_set
from rules.queries.timeline import Timeline, next_nudge, timeline
from tests.factories import make_chat, make_replay, make_rule, publish

HTMX = {"HX-Request": "true"}


def user(text: str = "Fix it", **details: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **details}


def answer(text: str = "Done.", **details: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **details}


def work(n: int, content: str = "ok", **details: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    call = {"id": f"c{n}", "name": "edit", "arguments": {"n": n}}
    return answer("", tool_calls=[call]), {"role": "tool", "content": content, "tool_call_id": f"c{n}", **details}


def rules_of(tenant: Tenant) -> Manifest:
    return manifest_of(tenant, rule_set(tenant, drafts=False), [])


def page_of(tenant: Tenant, chat: Chat, around: int = 0) -> Timeline:
    version = ChatVersion.objects.select_related("chat").get(chat=chat)
    return timeline(record_of(version), rules_of(tenant), around=around)


def test_pages_hold_every_message_once_and_decide_as_the_whole(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, stage="round", expression="ctx.tool_calls_total > 1", max_nudges=2))
    turns = [[user(f"turn {t}"), *(m for n in range(t * 7 % 40) for m in work(n)), answer()] for t in range(12)]
    turns[5] = [user("long"), *(m for n in range(400) for m in work(n)), answer()]
    chat = make_chat(in_acme, *(message for turn in turns for message in turn))
    seen, fired, at, pages = [], [], 0, 0
    while at is not None:
        shown = page_of(in_acme, chat, at)
        assert shown.first == at
        seen += range(shown.first, shown.last + 1)
        fired += [d.point.message for d in shown.decisions if d.fired]
        pages, at = pages + 1, shown.later
    assert seen == list(range(chat.message_count))
    assert pages == shown.pages > 4
    # Each turn with more than one call fires twice, whatever page it is cut by.
    assert len(fired) == sum(min(2, max(0, len(turn) // 2 - 2)) for turn in turns)


def test_marks_have_a_shape_and_a_word(viewer: Client, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "FIRST"), make_rule(acme, "SECOND", max_nudges=0), make_rule(acme, "THIRD"))
    chat = make_chat(acme, user(), answer("I will."), user("Go.", nudge_code="FIRST"), answer("Done."))
    page = viewer.get(f"/t/acme/chats/{chat.pk}/").content.decode()
    timeline_part = page[page.index('<ol class="timeline"') :]
    for mark in ("fires", "recorded", "shadowed"):
        assert f'href="#mark-{mark}"' in timeline_part
    assert "would fire <code>FIRST</code>" in timeline_part
    # The cap of FIRST is used up by the recorded nudge; THIRD takes its place.
    assert "would fire <code>THIRD</code>" in timeline_part
    assert "· capped" in timeline_part


def test_long_rows_of_quiet_rounds_are_folded_with_counts(viewer: Client, acme: Tenant) -> None:
    rounds = [*work(1), *work(2, "boom", result_status="error"), *work(3), *work(4, exit_code=0)]
    chat = make_chat(acme, user(), *rounds, answer(), user(), *work(5), answer())
    page = viewer.get(f"/t/acme/chats/{chat.pk}/").content.decode()
    assert re.search(r"4 tool rounds <span[^>]*>· 4 calls, one failed", page)
    folded = re.search(
        r'<details class="rounds" (open)?><summary>4 tool',
        viewer.get(f"/t/acme/chats/{chat.pk}/?point=3-round").content.decode(),
    )
    assert folded is not None
    assert folded[1] == "open"


def test_a_round_where_a_rule_speaks_is_never_folded(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, stage="round", expression="ctx.tool_calls_total == 3"))
    chat = make_chat(in_acme, user(), *(m for n in range(8) for m in work(n)), answer())
    (turn,) = page_of(in_acme, chat).turns
    assert [(block.folded, len(block.items)) for block in turn.blocks] == [
        (False, 1),
        (False, 2),
        (False, 1),
        (True, 5),
        (False, 1),
    ]


def test_the_next_nudge_is_found_on_later_pages(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, expression='ctx.final_text == "here"'))
    quiet = [message for n in range(150) for message in (user(str(n)), answer())]
    chat = make_chat(in_acme, *quiet, user(), answer("here"), user(), answer(), user("Go.", nudge_code="X"), answer())
    shown, rules = page_of(in_acme, chat), rules_of(in_acme)
    assert next_nudge(shown, rules, -1) == "301-final"
    assert next_nudge(shown, rules, 301) == "303-final"
    assert next_nudge(shown, rules, 303) == ""


def test_the_inspector_shows_context_reasons_and_the_way_on(viewer: Client, acme: Tenant) -> None:
    publish(acme, make_rule(acme))
    chat = make_chat(acme, user(), *work(1), answer("I will."), user(), answer())
    page = viewer.get(f"/t/acme/chats/{chat.pk}/?point=3-final").content.decode()
    for part in ("Rules in order", "tool_calls_total", "Go on, says ACME-01.", 'aria-current="true"'):
        assert part in page
    assert 'data-shortcut="previous-point" href="?point=1-round#p-1-round"' in page
    assert 'data-shortcut="next-point" href="?point=5-final#p-5-final"' in page
    assert 'data-shortcut="next-nudge" href="?point=5-final' in page
    part = viewer.get(f"/t/acme/chats/{chat.pk}/?point=3-final", headers=HTMX).content.decode()
    assert "<html" not in part
    assert "Rules in order" in part


def test_without_a_point_the_keys_lead_in(viewer: Client, acme: Tenant) -> None:
    publish(acme, make_rule(acme, expression='ctx.final_text == "x"'))
    chat = make_chat(acme, user(), answer(), user(), answer("x"))
    page = viewer.get(f"/t/acme/chats/{chat.pk}/").content.decode()
    assert 'data-shortcut="next-point" href="?point=1-final#' in page
    assert 'data-shortcut="next-nudge" href="?point=3-final#' in page
    assert page.count('data-shortcut="change-view"') == 1


def test_drafts_or_the_rules_of_a_replay_decide(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme, user(), answer())
    make_rule(acme, "DRAFTED")
    url = f"/t/acme/chats/{chat.pk}/"
    assert "would fire <code>DRAFTED" not in viewer.get(url).content.decode()
    assert "would fire <code>DRAFTED" in viewer.get(f"{url}?rules=drafts").content.decode()
    replay = make_replay(acme)
    page = viewer.get(f"{url}?replay={replay.pk}&turn=1").content.decode()
    assert "would fire <code>DRAFTED" in page
    assert f"?point=1-final&amp;replay={replay.pk}" in page


@pytest.mark.parametrize(
    "query",
    [
        "point=x",
        "point=²-final",
        "point=01-final",
        "point=99999999-final",
        "message=99",
        "turn=7",
        "turn=²",
        "replay=²",
        "view=x",
    ],
)
def test_strange_places_are_no_error(viewer: Client, acme: Tenant, query: str) -> None:
    chat = make_chat(acme, user(), answer())
    assert viewer.get(f"/t/acme/chats/{chat.pk}/?{query}").status_code == 200


def test_an_older_version_is_shown_as_it_was(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme, user(), answer("Before."), external_id="v")
    make_chat(acme, user(), answer("After."), external_id="v")
    page = viewer.get(f"/t/acme/chats/{chat.pk}/?version=1").content.decode()
    assert "Before." in page
    assert "version 1 of 2" in page
    assert viewer.get(f"/t/acme/chats/{chat.pk}/?version=3").status_code == 404


def test_an_empty_chat_has_a_page(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme, {"role": "system", "content": "Only this."})
    with scope(tenant=acme):
        assert page_of(acme, chat).pages == 1
    assert viewer.get(f"/t/acme/chats/{chat.pk}/").status_code == 200

"""The chat list: search in two languages, filters, saved searches."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django_scopes import scope

from chats.models import Chat, ChatText, SavedSearch
from chats.queries.chats import ChatFilter, chats
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from tests.factories import make_chat

HTMX = {"HX-Request": "true"}


def say(text: str, answer: str = "Done.") -> tuple[dict[str, str], dict[str, str]]:
    return {"role": "user", "content": text}, {"role": "assistant", "content": answer}


@pytest.fixture
def stored(acme: Tenant, elsewhere: Tenant) -> Tenant:
    make_chat(acme, *say("Quelle est la prochaine étape ?"), external_id="fr-1")
    make_chat(acme, *say("Show me one step.", "Here are the next steps: deploy."), external_id="en-1")
    make_chat(acme, *say("Refund it", "I will, 100% sure_thing."), external_id="en-2")
    make_chat(elsewhere, *say("Another étape, other steps"), external_id="x-1")
    return acme


def found(tenant: Tenant, text: str) -> list[str]:
    with scope(tenant=tenant):
        return sorted(chats(ChatFilter(text=text)).values_list("external_id", flat=True))


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("étapes", ["fr-1"]),
        ("ETAPE", ["fr-1"]),
        ("steps", ["en-1"]),
        ("steps deployed", ["en-1"]),
        ("steps refund", []),
        ('"next steps"', ["en-1"]),
        ('"steps next"', []),
        ('"100 sure"', ["en-2"]),
        ("%", []),
        ("' OR 1=1", []),
        ('" ) OR stems', []),
        ("en-1", ["en-1"]),
        ("", ["en-1", "en-2", "fr-1"]),
    ],
)
def test_search(stored: Tenant, query: str, ids: list[str]) -> None:
    assert found(stored, query) == ids


def test_a_chat_is_found_by_its_newest_text_only(stored: Tenant) -> None:
    make_chat(stored, *say("Refund it"), {"role": "user", "content": "and a giraffe"}, external_id="en-2")
    assert found(stored, "giraffes") == ["en-2"]
    make_chat(stored, *say("Refund it"), {"role": "user", "content": "no animal"}, external_id="en-2")
    assert found(stored, "giraffes") == []
    with scope(tenant=stored):
        assert ChatText.objects.count() == Chat.objects.count() == 3


def test_a_deleted_chat_leaves_the_index(stored: Tenant) -> None:
    with scope(tenant=stored):
        Chat.objects.get(external_id="fr-1").delete()
    assert found(stored, "étape") == []


def test_chats_from_before_the_index_are_indexed_later(stored: Tenant) -> None:
    with scope(tenant=stored):
        ChatText.objects.all().delete()
        assert found(stored, "steps") == []
    out = StringIO()
    call_command("index_chats", tenant="acme", stdout=out)
    call_command("index_chats", stdout=out)
    assert out.getvalue().splitlines() == [
        "acme: 3 chats indexed",
        "acme: 0 chats indexed",
        "elsewhere: 0 chats indexed",
    ]
    assert found(stored, "steps") == ["en-1"]
    with pytest.raises(CommandError, match="no tenant"):
        call_command("index_chats", tenant="nobody")


def test_the_page_searches_and_keeps_what_was_typed(viewer: Client, stored: Tenant) -> None:
    answer = viewer.get("/t/acme/chats/", {"q": '"next steps"'})
    text = answer.content.decode()
    assert "Show me one step." in text
    assert "Refund it" not in text
    assert 'value="&quot;next steps&quot;"' in text
    found_part = viewer.get("/t/acme/chats/", {"q": "étapes", "lang": "", "from": ""}, headers=HTMX)
    assert found_part["HX-Replace-Url"] == "/t/acme/chats/?q=%C3%A9tapes"
    part = found_part.content.decode()
    assert "Quelle est" in part
    assert "<html" not in part


@pytest.mark.parametrize(
    "query", ["lang=none", "model=x%00", "from=nonsense", "to=2026-13-01", "import=²", "after=²", "format=x"]
)
def test_strange_filters_are_no_error(viewer: Client, stored: Tenant, query: str) -> None:
    assert viewer.get(f"/t/acme/chats/?{query}").status_code == 200


def test_a_search_is_saved_used_and_deleted(author: Client, stored: Tenant) -> None:
    answer = author.post("/t/acme/chats/searches/save", {"q": "étapes", "after": "3", "name": "Étapes"})
    assert answer["Location"].endswith("/chats/?q=%C3%A9tapes")
    with scope(tenant=stored):
        search = SavedSearch.objects.get()
        assert (search.query, search.by.email) == ("q=%C3%A9tapes", "author@example.org")
        assert Entry.objects.get(object_type="search").action == "search.save"
    listed = author.get(f"/t/acme/chats/?{search.query}").content.decode()
    assert f"rules/new?from=search:{search.pk}" in listed
    assert "1 / 1" not in (searches := author.get("/t/acme/chats/searches/").content.decode())
    assert "0 / 1" in searches
    assert author.post(f"/t/acme/chats/searches/{search.pk}/delete").status_code == 302
    with scope(tenant=stored):
        assert not SavedSearch.objects.exists()


@pytest.mark.parametrize("name", ["", "Twice"])
def test_a_search_without_a_name_of_its_own_is_refused(author: Client, stored: Tenant, name: str) -> None:
    author.post("/t/acme/chats/searches/save", {"q": "a", "name": "Twice"})
    answer = author.post("/t/acme/chats/searches/save", {"q": "steps", "name": name})
    assert answer.status_code == 422
    assert b"Show me one step." in answer.content
    with scope(tenant=stored):
        assert SavedSearch.objects.count() == 1


def test_a_viewer_saves_nothing(viewer: Client, stored: Tenant) -> None:
    assert viewer.post("/t/acme/chats/searches/save", {"q": "a", "name": "x"}).status_code == 403

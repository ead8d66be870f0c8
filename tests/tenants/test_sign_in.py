"""Signing in and out: nothing typed is lost, nobody learns who has an account, nobody is sent elsewhere."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django_scopes import scope

from eleanor_site import limits
from eleanor_site.tenants.models import Membership, Role, Tenant, User
from rules.models import RuleDraft
from tests.conftest import client_of
from tests.factories import ALWAYS, make_rule

SIGN_IN = "/account/sign-in"
GOOD = {"email": "author@example.org", "password": "pw"}


def test_signing_in_leads_to_the_page_that_was_asked_for(people: dict[str, User]) -> None:
    client = Client()
    answer = client.get("/t/acme/rules/?q=x")
    assert answer["Location"] == "/account/sign-in?next=%2Ft%2Facme%2Frules%2F%3Fq%3Dx"
    page = client.get(answer["Location"]).content.decode()
    assert 'value="/t/acme/rules/?q=x"' in page
    assert client.post(SIGN_IN, {**GOOD, "next": "/t/acme/rules/?q=x"})["Location"] == "/t/acme/rules/?q=x"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_nobody_is_sent_elsewhere(people: dict[str, User], target: str) -> None:
    assert Client().post(SIGN_IN, {**GOOD, "next": target})["Location"] == "/"


def test_unknown_people_and_wrong_passwords_get_the_same_words(people: dict[str, User]) -> None:
    answers = [
        Client().post(SIGN_IN, {"email": email, "password": "wrong"})
        for email in ("author@example.org", "nobody@example.org")
    ]
    errors = [re.findall(r'<div class="form-errors".*?</div>', a.content.decode(), re.S) for a in answers]
    assert [a.status_code for a in answers] == [422, 422]
    assert errors[0] == errors[1] != []


def test_too_many_tries_have_to_wait(people: dict[str, User]) -> None:
    for _ in range(limits.SIGN_IN_BY_ACCOUNT.burst):
        Client().post(SIGN_IN, {**GOOD, "password": "wrong"})
    answer = Client().post(SIGN_IN, GOOD)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0


def test_signing_in_itself_is_not_limited(people: dict[str, User]) -> None:
    for _ in range(limits.SIGN_IN_BY_ADDRESS.burst + 5):
        assert Client().post(SIGN_IN, GOOD).status_code == 302


def test_a_form_posted_without_a_session_is_offered_again(people: dict[str, User], acme: Tenant) -> None:
    make_rule(acme)
    typed = {
        "revision": "1",
        "stage": "final",
        "max_nudges": "1",
        "expression": ALWAYS,
        "prompt_en": "Kept <b>text</b>.",
    }
    client = Client()
    page = client.post("/t/acme/rules/ACME-01/edit", typed)
    assert page.status_code == 401
    held = re.search(r'name="held" value="([^"]+)"', page.content.decode())
    assert held
    again = client.post(SIGN_IN, {**GOOD, "held": held[1]}).content.decode()
    assert "Kept &lt;b&gt;text&lt;/b&gt;." in again
    fields = dict(re.findall(r'<textarea name="(\w+)" hidden>\n(.*?)</textarea>', again, re.S))
    assert fields["expression"].replace("&quot;", '"') == ALWAYS
    assert client.post("/t/acme/rules/ACME-01/edit", typed).status_code == 302
    with scope(tenant=acme):
        assert RuleDraft.objects.get().prompt_en == "Kept <b>text</b>."


def test_a_sealed_form_that_was_changed_is_dropped(people: dict[str, User]) -> None:
    assert Client().post(SIGN_IN, {**GOOD, "held": "forged"})["Location"] == "/"


def test_a_fragment_gets_a_dialog_in_place(people: dict[str, User]) -> None:
    client = Client()
    answer = client.post("/t/acme/rules/check/expression", {"expression": "x"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Retarget"]) == (401, "#sign-in-place")
    assert b"<dialog" in answer.content
    answer = client.post(SIGN_IN, GOOD, headers={"HX-Request": "true"})
    assert "eleanor:signed-in" in answer["HX-Trigger"]
    assert client.get("/t/acme/rules/").status_code == 200


def test_a_role_that_is_taken_away_works_at_the_next_request(people: dict[str, User], acme: Tenant) -> None:
    client = client_of(people["author"])
    assert client.get("/t/acme/rules/new").status_code == 200
    Membership.objects.filter(user=people["author"]).update(role=Role.VIEWER)
    assert client.get("/t/acme/rules/new").status_code == 403
    Membership.objects.filter(user=people["author"]).delete()
    assert client.get("/t/acme/rules/").status_code == 404


def test_signing_in_changes_the_session_key(people: dict[str, User]) -> None:
    client = Client()
    client.get(SIGN_IN)
    before = client.cookies.get("sessionid")
    client.post(SIGN_IN, GOOD)
    assert client.cookies["sessionid"] != before


def test_other_sessions_can_be_ended(people: dict[str, User]) -> None:
    here, there = client_of(people["viewer"]), client_of(people["viewer"])
    here.post("/account/", {"end_sessions": "1"})
    assert here.get("/t/acme/").status_code == 200
    assert there.get("/t/acme/").status_code == 302


def test_the_last_admin_stays(admin: Client, people: dict[str, User], acme: Tenant) -> None:
    mine = Membership.objects.get(user=people["admin"], tenant=acme)
    admin.post(f"/t/acme/settings/members/{mine.pk}", {"remove": "1"})
    admin.post(f"/t/acme/settings/members/{mine.pk}", {f"{mine.pk}-role": "viewer"})
    assert Membership.objects.get(pk=mine.pk).role == Role.ADMIN


@pytest.mark.parametrize(("field", "value"), [("language", "fr"), ("theme", "dark")])
def test_language_and_theme_are_kept(viewer: Client, people: dict[str, User], field: str, value: str) -> None:
    answer = viewer.post(f"/account/{field}", {field: value, "next": "/t/acme/"})
    assert answer["Location"] == "/t/acme/"
    people["viewer"].refresh_from_db()
    assert getattr(people["viewer"], field) == value

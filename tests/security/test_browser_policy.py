"""Headers, tokens and methods that protect a person's browser."""

from __future__ import annotations

import pytest
from django.test import Client

from eleanor_site.tenants.models import Tenant, User

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.mark.parametrize("url", ["/account/sign-in", "/t/acme/", "/t/acme/rules/", "/no-such-page", "/healthz"])
def test_every_answer_has_the_same_policy(viewer: Client, url: str) -> None:
    answer = viewer.get(url)
    assert set(answer["Content-Security-Policy"].split("; ")) == set(POLICY.split("; "))
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"
    assert "camera=()" in answer["Permissions-Policy"]
    assert answer["Cache-Control"] == "no-store"
    assert "HX-Request" in answer["Vary"]


def test_a_post_without_token_or_from_elsewhere_is_refused(people: dict[str, User]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people["admin"])
    assert client.post("/account/theme", {"theme": "dark"}).status_code == 403
    client.get("/t/acme/")
    token = client.cookies["csrftoken"].value
    given = {"theme": "dark", "csrfmiddlewaretoken": token}
    assert client.post("/account/theme", given, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/account/theme", given).status_code == 302


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}"])
def test_what_people_wrote_is_shown_as_text(viewer: Client, acme: Tenant, text: str) -> None:
    from tests.factories import make_chat

    chat = make_chat(acme, {"role": "user", "content": text}, {"role": "assistant", "content": text}, title=text)
    for url in ("/t/acme/chats/", f"/t/acme/chats/{chat.pk}/"):
        page = viewer.get(url).content.decode()
        assert text not in page or "<" not in text
        assert "49" not in page or "{{" not in text

"""API keys in the settings: made, shown once, revoked."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import APIKey, Tenant

URL = "/t/acme/settings/keys/"
FORM: dict[str, Any] = {"name": "agent", "scopes": ["rules:read", "nudges:write"], "days": "90"}


def test_a_key_is_shown_once(admin: Client, acme: Tenant) -> None:
    page = admin.post(URL, FORM).content.decode()
    key = APIKey.objects.get()
    assert f"ek_{key.prefix}_" in page
    text = page.split("ek_", 1)[1].split("<", 1)[0]
    assert admin.get("/api/v1/release", headers={"Authorization": f"Bearer ek_{text}"}).status_code == 200
    again = admin.get(URL).content.decode()
    assert text not in again
    assert key.prefix in again
    assert (key.scopes, key.expires_at is not None) == ("rules:read nudges:write", True)
    with scope(tenant=acme):
        assert Entry.objects.get().action == "key.make"


def test_revoking(admin: Client, acme: Tenant) -> None:
    admin.post(URL, FORM)
    key = APIKey.objects.get()
    assert admin.post(f"{URL}{key.pk}/revoke").status_code == 302
    assert b"revoked" in admin.get(URL).content
    admin.post(f"{URL}{key.pk}/revoke")
    with scope(tenant=acme):
        assert list(Entry.objects.order_by("number").values_list("action", flat=True)) == ["key.make", "key.revoke"]


@pytest.mark.parametrize(
    "form",
    [{}, {**FORM, "name": ""}, {**FORM, "scopes": []}, {**FORM, "scopes": ["admin"]}, {**FORM, "days": "9999"}],
)
def test_a_wrong_form_is_shown_again(admin: Client, form: dict[str, Any]) -> None:
    assert admin.post(URL, form).status_code == 422
    assert not APIKey.objects.exists()


def test_publishing_has_to_be_ticked(admin: Client) -> None:
    page = admin.get(URL).content.decode()
    ticked = [part.split(">", 1)[0] for part in page.split("<input") if "checked" in part.split(">", 1)[0]]
    assert any("rules:read" in tag for tag in ticked)
    assert not any("rules:publish" in tag for tag in ticked)

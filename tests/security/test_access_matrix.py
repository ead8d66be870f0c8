"""Every route × method × person has an expected status; ids of another tenant are as unknown as any."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django_scopes import scope

from chats.models import Chat
from chats.services.corpora import freeze
from chats.services.searches import save_search
from eleanor_site.checks import marked_views
from eleanor_site.tenants.models import Membership, Role, Tenant, User
from eleanor_site.tenants.services import make_api_key
from eleanor_site.webhooks.services import add_webhook, send_test
from rules.models import ReplaySchedule
from rules.services.proposals import add_to_open
from rules.services.schedules import add_schedule
from tests.conftest import client_of
from tests.factories import (
    exchange_chat,
    import_text,
    make_chat,
    make_replay,
    make_rule,
    make_wrapper,
    publish,
    some_author,
)

Ids = dict[str, dict[str, Any]]
ROLES = [role.value for role in Role]
PUBLIC = {
    *("healthz", "readyz", "metrics", "help/"),
    *("account/sign-in", "account/sign-out", "account/language", "account/theme"),
}


@dataclass(frozen=True)
class Route:
    """A route behind a role. `post` is a form that is accepted; `ids` are kinds of ids in the path, in order."""

    path: str
    role: str
    get: int | None = 200
    post: dict[str, Any] | None = None
    post_status: int = 302
    ids: tuple[str, ...] = ()
    query: dict[str, str] = field(default_factory=dict)


ROUTES = [
    Route("", "viewer"),
    Route("settings/", "viewer"),
    Route("settings/general", "admin", None, {"name": "Acme"}, 422),
    Route("settings/members", "admin", None, {"email": "nobody@example.org", "role": "viewer"}, 422),
    Route("settings/members/<member>", "admin", None, {"role": "viewer"}, ids=("member",)),
    Route("settings/keys/", "admin", 200, {}, 422),
    Route("settings/keys/<key>/revoke", "admin", None, {}, ids=("key",)),
    Route("settings/webhooks/", "admin", 200, {}, 422),
    Route("settings/webhooks/<webhook>/", "admin", 200, {}, 422, ids=("webhook",)),
    Route("settings/webhooks/<webhook>/action", "admin", None, {}, ids=("webhook",)),
    Route("settings/webhooks/deliveries/<delivery>/again", "admin", None, {}, ids=("delivery",)),
    Route("changes/", "viewer"),
    Route("changes/<change>/", "viewer", ids=("change",)),
    Route("changes/export", "viewer"),
    Route("settings/retention", "admin", 200, {"days": "x"}, 422),
    Route("settings/redaction", "admin", 200, {"pattern": "("}, 422),
    Route("chats/<chat>/redact", "admin", 200, {"pattern": "("}, 422, ids=("chat",)),
    Route("chats/<chat>/delete", "admin", 200, {}, ids=("chat",)),
    Route("chats/import/<job>/delete", "admin", 200, {}, ids=("job",)),
    Route("chats/", "viewer"),
    Route("chats/export", "viewer"),
    Route("chats/searches/", "viewer"),
    Route("chats/searches/save", "author", None, {}, 422),
    Route("chats/searches/<search>/delete", "author", None, {}, ids=("search",)),
    Route("chats/corpora/", "viewer"),
    Route("chats/corpora/freeze", "author", 200, {}, 422),
    Route("chats/corpora/<corpus>/", "viewer", ids=("corpus",)),
    Route("chats/corpora/<corpus>/export", "viewer", ids=("corpus",)),
    Route("chats/import", "author", 200, {}, 422),
    Route("chats/import/<job>/", "viewer", ids=("job",)),
    Route("chats/import/<job>/retry", "author", None, {}, ids=("job",)),
    Route("chats/<chat>/", "viewer", ids=("chat",)),
    Route("rules/", "viewer"),
    Route("rules/new", "author", 200, {"code": ""}, 422),
    Route("rules/order", "publisher", 200, {"up-1": "1"}, 200),
    Route("rules/catalogue", "viewer"),
    Route("rules/catalogue/install", "author", None, {}),
    Route("rules/check/expression", "author", None, {"expression": "ctx.mutated"}, 200),
    Route("rules/check/effect", "author", None, {"expression": "ctx.mutated"}, 200),
    Route("rules/check/code", "author", query={"code": "X"}),
    Route("rules/check/completions", "viewer", query={"text": "ctx.", "at": "4"}),
    Route("rules/<code>/", "viewer", ids=("code",)),
    Route("rules/<code>/edit", "author", 200, {"expression": ""}, 422, ids=("code",)),
    Route("rules/<code>/effect", "viewer", ids=("code",)),
    Route("rules/<code>/tests", "author", None, {}, ids=("code",)),
    Route("rules/<code>/restore", "author", None, {}, ids=("code",)),
    Route("rules/<code>/publish", "author", 200, {}, 422, ids=("code",)),
    Route("rules/<code>/versions/", "viewer", ids=("code",)),
    Route("rules/<code>/versions/compare", "viewer", ids=("code",)),
    Route("rules/<code>/versions/<number>/", "viewer", ids=("code", "number")),
    Route("rules/<code>/versions/<number>/roll-back", "publisher", None, {}, ids=("code", "number")),
    Route("rules/<code>/mode", "publisher", None, {"action": "pause"}, ids=("code",)),
    Route("rules/<code>/archive", "author", None, {}, ids=("code",)),
    Route("rules/<code>/discard", "author", None, {}, ids=("code",)),
    Route("releases/", "viewer"),
    Route("releases/open", "author"),
    Route("releases/open/add", "author", None, {}),
    Route("releases/proposals/<proposal>/", "author", ids=("proposal",)),
    Route("releases/proposals/<proposal>/decide", "author", None, {}, ids=("proposal",)),
    Route("releases/<number>/", "viewer", ids=("number",)),
    Route("releases/<number>/roll-back", "publisher", None, {}, ids=("number",)),
    Route("tools/", "viewer"),
    Route("tools/try", "author", query={"pattern": "x*", "kind": "read"}),
    Route("tools/save", "author", None, {}, 422),
    Route("replays/", "viewer"),
    Route("replays/new", "author", 200, {}, 302),
    Route("replays/<replay>/", "viewer", ids=("replay",)),
    Route("replays/schedules/", "viewer"),
    Route("replays/schedules/new", "author", 200, {}, 422),
    Route("replays/schedules/<schedule>/", "viewer", ids=("schedule",)),
    Route("replays/schedules/<schedule>/action", "author", None, {"action": "pause"}, ids=("schedule",)),
    Route("replays/compare", "viewer"),
    Route("replays/<replay>/export", "viewer", ids=("replay",)),
    Route("replays/<replay>/manifest", "viewer", ids=("replay",)),
    Route("replays/<replay>/baseline", "author", None, {}, ids=("replay",)),
    Route("replays/<replay>/stop", "author", None, {}, ids=("replay",)),
    Route("replays/<replay>/resume", "author", None, {}, ids=("replay",)),
    Route("nudges/", "viewer"),
    Route("nudges/rules", "viewer", post={"ask": "1"}),
    Route("nudges/export", "viewer"),
    Route("review/", "viewer"),
    Route("review/new", "reviewer", None, {}, 422),
    # Which point is judged, and in which queue, stands in the form; without them there is nothing.
    Route("review/judge", "reviewer", None, {}, 404),
    Route("review/undo", "reviewer", None, {}),
    Route("wrappers/", "viewer"),
    Route("wrappers/new", "author", 200, {}, 422),
    Route("wrappers/which", "viewer", 200, {}, 200),
    Route("wrappers/preview", "viewer", query={"m": "QwenChatWrapper"}),
    Route("wrappers/<wrapper>/", "viewer", ids=("wrapper",)),
    Route("wrappers/<wrapper>/edit", "author", 200, {}, 409, ids=("wrapper",)),
    Route("wrappers/<wrapper>/check", "author", None, {}, 200, ids=("wrapper",)),
    Route("wrappers/<wrapper>/lint", "author", None, {}, 200, ids=("wrapper",)),
    Route("wrappers/<wrapper>/archive", "author", None, {}, ids=("wrapper",)),
    Route("wrappers/<wrapper>/discard", "author", None, {}, ids=("wrapper",)),
    Route("wrappers/<wrapper>/versions/", "viewer", ids=("wrapper",)),
    Route("wrappers/<wrapper>/versions/make", "author", None, {}, 422, ids=("wrapper",)),
    Route("wrappers/<wrapper>/versions/compare", "viewer", ids=("wrapper",), query={"a": "1", "b": "draft"}),
    Route("wrappers/<wrapper>/versions/<wrapper_version>/", "viewer", ids=("wrapper", "wrapper_version")),
    Route(
        "wrappers/<wrapper>/versions/<wrapper_version>/roll-back",
        "publisher",
        None,
        {},
        ids=("wrapper", "wrapper_version"),
    ),
]


@pytest.fixture
def ids(acme: Tenant, elsewhere: Tenant, people: dict[str, User]) -> Ids:
    """For each kind of id: one of acme's, and one that only the other tenant has."""
    return {"acme": _furnish(acme, "ACME-01", 1), "elsewhere": _furnish(elsewhere, "ELSE-01", 3)}


def _furnish(tenant: Tenant, code: str, releases: int) -> dict[str, Any]:
    """Rows of every kind. The other tenant gets more releases and changes, so that its numbers are unknown here."""
    chat = make_chat(tenant, external_id=f"{tenant.slug}-chat")
    job = import_text(tenant, json.dumps(exchange_chat(external_id=f"{tenant.slug}-other")))
    rule = make_rule(tenant, code)
    for n in range(releases):
        publish(tenant, rule if n == 0 else make_rule(tenant, f"{code}-{n}"))
    make_rule(tenant, f"{code}-draft")
    replay = make_replay(tenant)
    with scope(tenant=tenant):
        proposal = add_to_open(tenant=tenant, by=some_author(tenant), rules=[make_rule(tenant, f"{code}-open")])
    member = Membership.objects.filter(tenant=tenant).order_by("pk").first()
    assert member is not None
    with scope(tenant=tenant):
        wrapper = make_wrapper(tenant, f"{tenant.slug}-wrapper")
        by = some_author(tenant)
        key, _text = make_api_key(tenant=tenant, by=by, name="key", scopes=["rules:read"])
        webhook = add_webhook(tenant=tenant, by=by, url="http://127.0.0.1:1/", events=["release.published"])
        delivery = send_test(tenant=tenant, webhook=webhook, by=by)
        search = save_search(tenant=tenant, by=by, name="search", query="q=x")
        corpus = freeze(tenant=tenant, by=by, name="corpus", chats=Chat.objects.all())
        every = ReplaySchedule.Rules.LIVE
        schedule = add_schedule(tenant=tenant, by=by, replay=replay, name="nightly", rules=every, hour=3)
        return {
            "search": search.pk,
            "corpus": corpus.pk,
            "key": key.pk,
            "webhook": webhook.pk,
            "delivery": delivery.pk,
            "wrapper": wrapper.slug,
            "wrapper_version": 1,
            "chat": chat.pk,
            "job": job.pk,
            "code": code,
            "number": releases,
            "replay": replay.pk,
            "schedule": schedule.pk,
            "proposal": proposal.pk,
            "member": member.pk,
            "change": 1 if releases == 1 else 999,
        }


def _url(route: Route, tenant: str, values: dict[str, Any]) -> str:
    return f"/t/{tenant}/" + re.sub(r"<(\w+)>", lambda found: str(values[found[1]]), route.path)


def _send(client: Client, method: str, url: str, route: Route) -> Any:
    """The answer; what the request changed is rolled back, so that the next one finds the same rows."""
    with transaction.atomic():
        answer = client.post(url, route.post or {}) if method == "post" else client.get(url, route.query)
        transaction.set_rollback(True)
    return answer


def test_every_route_has_a_row() -> None:
    known = {"/t/<str:tenant>/" + re.sub(r"<(\w+)>", "<>", r.path) for r in ROUTES}
    missing = []
    for route, view in marked_views():
        plain = "/" + re.sub(r"<\w+:(?!tenant)\w+>", "<>", route)
        if getattr(view, "access", None) in ROLES and plain not in known:
            missing.append(route)
    assert missing == []


def test_routes_without_a_tenant_are_the_public_ones_and_the_account() -> None:
    others = {
        r for r, view in marked_views() if getattr(view, "access", None) not in ROLES and not r.startswith("api/")
    }
    assert others == PUBLIC | {"", "account/"}


def test_roles(ids: Ids, people: dict[str, User], subtests: pytest.Subtests) -> None:
    clients = {role: client_of(people[role]) for role in ROLES}
    for route in ROUTES:
        with subtests.test(route.path or "overview"):
            url = _url(route, "acme", ids["acme"])
            for role, client in clients.items():
                for method in ("get", "post"):
                    got = _send(client, method, url, route).status_code
                    assert got == _expected(route, method, role), f"{method} as {role}"


def _expected(route: Route, method: str, role: str) -> int:
    if ROLES.index(role) < ROLES.index(route.role):
        return 403
    if method == "get":
        return 405 if route.get is None else route.get
    return 405 if route.post is None else route.post_status


def test_a_stranger_and_an_unknown_tenant_are_alike(
    ids: Ids, people: dict[str, User], subtests: pytest.Subtests
) -> None:
    for person in ("stranger", "outsider"):
        client = client_of(people[person])
        for route in ROUTES:
            for method in ("get", "post"):
                with subtests.test(route.path or "overview", person=person, method=method):
                    foreign = _send(client, method, _url(route, "acme", ids["acme"]), route)
                    unknown = _send(client, method, _url(route, "no-such-tenant", ids["acme"]), route)
                    assert foreign.status_code == unknown.status_code == 404
                    assert _plain(foreign) == _plain(unknown)


def test_ids_of_another_tenant_are_unknown(ids: Ids, people: dict[str, User], subtests: pytest.Subtests) -> None:
    client = client_of(people["admin"])
    nothing: dict[str, Any] = {kind: 9999 if kind == "number" else 10**9 for kind in ids["acme"]} | {"code": "NO-SUCH"}
    for route in ROUTES:
        for method, there in (("get", route.get is not None), ("post", route.post is not None)):
            if not route.ids or not there:
                continue
            with subtests.test(route.path, method=method):
                foreign = _send(client, method, _url(route, "acme", ids["elsewhere"]), route)
                unknown = _send(client, method, _url(route, "acme", nothing), route)
                assert foreign.status_code == unknown.status_code == 404
                assert _plain(foreign) == _plain(unknown)


def test_without_a_sign_in(ids: Ids, subtests: pytest.Subtests) -> None:
    for route in ROUTES:
        with subtests.test(route.path or "overview"):
            url = _url(route, "acme", ids["acme"])
            got = Client().get(url)
            assert got.status_code == 302
            assert got["Location"].startswith("/account/sign-in?next=")
            assert Client().post(url, {"some": "text"}).status_code == 401


def _plain(response: Any) -> str:
    """The body without what differs by request: tokens and the address itself."""
    text = response.content.decode()
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"', "", text)
    return re.sub(r"/t/[\w-]+/[^\"&<]*", "", text)

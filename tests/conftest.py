"""People, tenants and clients. A fixture named after a role is that person's client in the tenant `acme`."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from django.test import Client
from django_scopes import scope
from hypothesis import HealthCheck, settings

from eleanor_site.tenants.models import Role, Tenant, User
from tests.factories import make_person, make_tenant

# A busy machine is no finding: how long an example takes, or to make one, fails no law.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A run in the background, or behind nohup, ignores these; so would every process that the tests start, and end.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

pytest_plugins = ["tests.chromium", "tests.postgres_server", "tests.redis_server", "tests.running_site"]


@pytest.fixture
def acme(db: None) -> Tenant:
    return make_tenant("acme")


@pytest.fixture
def elsewhere(db: None) -> Tenant:
    """Another tenant, which nobody of acme may see."""
    return make_tenant("elsewhere")


@pytest.fixture
def in_acme(acme: Tenant) -> Iterator[Tenant]:
    """Opens acme's scope for the whole test."""
    with scope(tenant=acme):
        yield acme


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def people(acme: Tenant, elsewhere: Tenant) -> dict[str, User]:
    """One person a role in acme, `stranger` (admin elsewhere) and `outsider` (member of none)."""
    found = {role.value: make_person(role.value, acme, role) for role in Role}
    found["stranger"] = make_person("stranger", elsewhere, Role.ADMIN)
    found["outsider"] = User.objects.create_user("outsider@example.org", "pw")
    return found


@pytest.fixture
def viewer(people: dict[str, User]) -> Client:
    return client_of(people["viewer"])


@pytest.fixture
def reviewer(people: dict[str, User]) -> Client:
    return client_of(people["reviewer"])


@pytest.fixture
def author(people: dict[str, User]) -> Client:
    return client_of(people["author"])


@pytest.fixture
def publisher(people: dict[str, User]) -> Client:
    return client_of(people["publisher"])


@pytest.fixture
def admin(people: dict[str, User]) -> Client:
    return client_of(people["admin"])


@pytest.fixture
def stranger(people: dict[str, User]) -> Client:
    return client_of(people["stranger"])


@pytest.fixture
def outsider(people: dict[str, User]) -> Client:
    return client_of(people["outsider"])

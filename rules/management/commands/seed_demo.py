"""`manage.py seed_demo`: a tenant with people of each role, rules, chats and a finished replay, for a first look."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.files.base import ContentFile
from django.core.management.base import BaseCommand
from django.db import transaction
from django_scopes import scope

from chats.chunks import run_import
from chats.services.importing import start_import
from eleanor_site.sending import held_back
from eleanor_site.tenants.models import Membership, Role, Tenant, User
from rules.chunks.replays import run_here
from rules.demo_chats import demo_chats
from rules.domain.catalogue import default_rule_texts
from rules.queries.rules import live_number, rule_set
from rules.services.catalogue import install
from rules.services.publishing import publish_drafts
from rules.services.replays import Scope, start_replay


class Command(BaseCommand):
    help = "Make the tenants demo and sandbox with demo data, once. Does nothing when there is a tenant already."

    def handle(self, *args: Any, **options: Any) -> None:
        if Tenant.objects.exists():
            return
        password = secrets.token_urlsafe(9)
        tenant, admin = self._people(password)
        with scope(tenant=tenant), held_back():
            self._data(tenant, admin)
        self.stdout.write("Demo tenant made. Sign in with one of these, all with the password below:")
        for role in Role:
            self.stdout.write(f"  {role.value}@demo.example")
        self.stdout.write(f"  password: {password}")
        self.stdout.write("It is shown this once.")

    @transaction.atomic
    def _people(self, password: str) -> tuple[Tenant, User]:
        demo = Tenant.objects.create(slug="demo", name="Demo")
        sandbox = Tenant.objects.create(slug="sandbox", name="Sandbox")
        first, *others = [
            User.objects.create_user(f"{role.value}@demo.example", password, name=f"Demo {role.label}")
            for role in reversed(Role)
        ]
        for user, role in zip((first, *others), reversed(Role), strict=True):
            Membership.objects.create(tenant=demo, user=user, role=role)
        Membership.objects.create(tenant=sandbox, user=first, role=Role.ADMIN)
        return demo, first

    def _data(self, tenant: Tenant, admin: User) -> None:
        codes = [text.code for text in default_rule_texts()]
        rules = install(tenant=tenant, by=admin, codes=codes)
        publish_drafts(tenant=tenant, rules=rules, by=admin, note="The default catalogue", seen_release=live_number())
        lines = "\n".join(demo_chats()) + "\n"
        file = ContentFile(lines.encode(), name="demo-chats.jsonl")
        job = start_import(tenant=tenant, by=admin, file=file, name="demo-chats.jsonl", send=False)
        run_import(job.pk)
        replay = start_replay(
            tenant=tenant,
            by=admin,
            scope=Scope(),
            rules=rule_set(tenant, drafts=False),
            title="Default rules on the demo chats",
            send=False,
        )
        run_here(replay)

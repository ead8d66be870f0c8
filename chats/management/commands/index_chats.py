"""`manage.py index_chats [--tenant SLUG]`: index chats that came in before there was a search index."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from chats.services.searches import index_missing
from eleanor_site.tenants.models import Tenant


class Command(BaseCommand):
    help = "Index the texts of chats that can't be found by search yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="slug of one tenant; all of them when left out")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants:
                raise CommandError(f"There is no tenant {options['tenant']!r}.")
        for tenant in tenants:
            with scope(tenant=tenant):
                done = index_missing(tenant)
            self.stdout.write(f"{tenant.slug}: {done} chats indexed")

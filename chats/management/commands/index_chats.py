"""`manage.py index_chats [--tenant SLUG]`: index chats that came in before there was a search index."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django_scopes import scope

from chats.services.searches import index_missing
from eleanor_site.tenants.commands import named_tenants


class Command(BaseCommand):
    help = "Index the texts of chats that can't be found by search yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="slug of one tenant; all of them when left out")

    def handle(self, *args: Any, **options: Any) -> None:
        for tenant in named_tenants(options["tenant"]):
            with scope(tenant=tenant):
                done = index_missing(tenant)
            self.stdout.write(f"{tenant.slug}: {done} chats indexed")

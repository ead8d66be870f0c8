"""`manage.py verify_log [--tenant SLUG]`: is the change log whole? Exit status 1 when it isn't."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.audit.queries import faults
from eleanor_site.tenants.commands import named_tenants


class Command(BaseCommand):
    help = "Check the hash chain of the change log and name every altered, missing or reordered entry."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="slug of one tenant; all of them when left out")

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for tenant in named_tenants(options["tenant"]):
            with scope(tenant=tenant):
                found, total = faults(), Entry.objects.count()
            broken += len(found)
            for fault in found:
                self.stdout.write(f"{tenant.slug} entry {fault.number}: {fault.kind}")
            self.stdout.write(f"{tenant.slug}: {total} entries, {len(found)} faults")
        if broken:
            raise CommandError(f"The log was altered: {broken} faults.")

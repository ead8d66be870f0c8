"""`manage.py import_chats --tenant SLUG FILE…`: the same import as the page, here or in the queue."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from chats.chunks import run_import
from chats.domain.formats import FORMATS
from chats.models import ImportJob
from chats.problem_sentences import sections_of
from chats.services.importing import start_import
from eleanor_site.jobs import Status
from eleanor_site.tenants.commands import named_tenant
from eleanor_site.tenants.models import Tenant


class Command(BaseCommand):
    help = "Import conversation files into a tenant. Exit status 1 when a file gave nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument("--format", default="", choices=["", *(f.id for f in FORMATS)], help="override the guess")
        parser.add_argument("--all-branches", action="store_true", help="make a chat of each branch")
        parser.add_argument("--queue", action="store_true", help="leave the work to the workers")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = named_tenant(options["tenant"])
        failed = [path for path in options["files"] if not self._import(tenant, path, options)]
        if failed:
            raise CommandError("Nothing was taken from: " + ", ".join(str(path) for path in failed))

    def _import(self, tenant: Tenant, path: Path, options: dict[str, Any]) -> bool:
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        with scope(tenant=tenant), path.open("rb") as stream:
            job = start_import(
                tenant=tenant,
                by=None,
                file=File(stream, name=path.name),
                name=path.name,
                chosen_format=options["format"],
                options={"all_branches": options["all_branches"]},
                send=options["queue"],
            )
            if options["queue"]:
                self.stdout.write(f"{path.name}: queued as import {job.pk}")
                return True
            run_import(job.pk)
            job = ImportJob.objects.get(pk=job.pk)
        self.stdout.write(
            f"{path.name}: {job.format or 'no format'}, {job.taken} taken, {job.updated} updated, "
            f"{job.unchanged} unchanged, {job.skipped} left out, {job.messages} messages"
        )
        for section in sections_of(json.loads(job.report)):
            for row in section["rows"]:
                places = f" ({'; '.join(row['places'][:3])})" if row["places"] else ""
                self.stdout.write(f"  {section['title']}: {row['label']}: {row['count']}{places}")
        return job.status == Status.DONE

"""`manage.py export_chats`: chats as JSON Lines with a trailer, and the check of such a file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import QueryDict
from django_scopes import scope

from chats.models import Corpus
from chats.queries.chats import chats, filter_of
from chats.queries.corpora import members
from chats.services.exporting import export_chats, export_versions
from eleanor_site.exports import check
from eleanor_site.tenants.commands import named_tenant


class Command(BaseCommand):
    help = (
        "Write chats in the exchange form, one a line, with a last line that proves the file to be whole; or check "
        "such a file. Exit status 1 when the file isn't what it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="where to write; the standard output when left out")
        parser.add_argument("--tenant", help="slug of the tenant")
        parser.add_argument(
            "--search", default="", help="filters as in the address of the chat list: 'q=refund&lang=fr'"
        )
        parser.add_argument("--corpus", help="the name of a frozen corpus instead of filters")
        parser.add_argument("--verify", type=Path, metavar="FILE", help="check an export of any kind instead")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verify"]:
            self._verify(options["verify"])
            return
        tenant = named_tenant(options["tenant"])
        with scope(tenant=tenant):
            if options["corpus"]:
                corpus = Corpus.objects.filter(name=options["corpus"]).first()
                if corpus is None:
                    raise CommandError(f"There is no corpus {options['corpus']!r}.")
                lines = export_versions(tenant=tenant, versions=members(corpus))
            else:
                lines = export_chats(tenant=tenant, chats=chats(filter_of(QueryDict(options["search"]))))
        if options["file"] is None:
            for line in lines:
                sys.stdout.buffer.write(line)
            return
        with options["file"].open("wb") as target:
            for line in lines:
                target.write(line)

    def _verify(self, path: Path) -> None:
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        with path.open("rb") as stream:
            found = check(stream)
        if found.flaw:
            raise CommandError(f"{path.name} isn't what was exported: {found.flaw.replace('_', ' ')}.")
        self.stdout.write(f"{path.name}: {found.rows} rows, SHA-256 {found.sha256}, whole")

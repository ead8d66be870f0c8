"""`manage.py load_corpus DIR --tenant SLUG`: files of this machine into chats and columns, at full speed."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from chats.services.searches import index_missing
from eleanor_site.tenants.models import Tenant
from rules.queries.segments import corpus_view
from rules.services.loading import load_folder, usual_processes


class Command(BaseCommand):
    help = "Load a folder of conversation files with their points and columns. A load that is repeated adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, metavar="DIR", help="a folder, or one file")
        parser.add_argument("--tenant", required=True, help="slug of the tenant; made when there is none")
        parser.add_argument("--processes", type=int, default=usual_processes(), help="default: one a core")
        parser.add_argument("--index", action="store_true", help="make the search index of these chats too")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        if not path.exists():
            raise CommandError(f"There is nothing at {path}.")
        slug = options["tenant"]
        tenant, made = Tenant.objects.get_or_create(slug=slug, defaults={"name": slug.title()})
        if made:
            self.stdout.write(f"Tenant {slug} made; it has no members yet.")
        with scope(tenant=tenant):
            try:
                loaded = load_folder(tenant, path, processes=max(1, options["processes"]), say=self._say)
            except FileNotFoundError:
                raise CommandError(f"There is no file to load in {path}.") from None
            except RuntimeError as error:
                raise CommandError(str(error)) from None
            view = corpus_view()
            indexed = index_missing(tenant) if options["index"] else 0
        rate = loaded.points / loaded.seconds if loaded.seconds else 0
        self.stdout.write(
            f"{loaded.chats:,} chats taken, {loaded.unchanged:,} unchanged, {loaded.left_out:,} left out; "
            f"{loaded.messages:,} messages, {loaded.points:,} points in {loaded.seconds:.1f} s, "
            f"{rate:,.0f} points a second."
        )
        self.stdout.write(
            f"The tenant has {view.points:,} points of {view.chats:,} chats in {len(view.parts)} segments"
            + (f"; {view.missing:,} chats are without columns, workers make them." if view.missing else ".")
        )
        if indexed:
            self.stdout.write(f"{indexed:,} chats indexed for search.")
        if not loaded.chats and not loaded.unchanged:
            raise CommandError("Nothing was taken.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

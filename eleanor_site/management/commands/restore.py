"""`manage.py restore FILE`: put a backup into an empty site, and check the change log."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from eleanor_site.backups import BackupError, put_back


class Command(BaseCommand):
    help = "Put a backup into an empty site. The file is checked first, and the change log afterwards."
    # The database may have no tables yet.
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file made by `manage.py backup`")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = put_back(options["file"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        rows = sum(manifest.rows.values())
        self.stdout.write(f"Restored as of {manifest.made_at}: {rows} rows, {len(manifest.files)} files")
        call_command("verify_log", stdout=self.stdout)

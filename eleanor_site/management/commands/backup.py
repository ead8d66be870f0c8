"""`manage.py backup FILE`: everything in one file, while everybody works."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eleanor_site.backups import BackupError, make_backup


class Command(BaseCommand):
    help = "Write the database, as of one moment, and the media files to one new file. Nobody has to stop working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file that doesn't exist yet, for example eleanor-2026-03-31.tar")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = make_backup(options["file"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        rows, files = sum(manifest.rows.values()), len(manifest.files)
        self.stdout.write(f"{options['file']}: {rows} rows in {len(manifest.rows)} tables, {files} files")

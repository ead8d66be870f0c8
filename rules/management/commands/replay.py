"""`manage.py replay MANIFEST --tenant SLUG` runs a manifest again; `--verify N` looks for altered rows of a result."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope
from pydantic import ValidationError

from eleanor_site.problems import Refused
from eleanor_site.tenants.commands import named_tenant
from eleanor_site.tenants.models import Tenant
from rules.chunks.replays import run_here
from rules.domain.manifest import ENGINE_VERSION, Manifest
from rules.domain.phrases import HELPER_VERSIONS
from rules.domain.turns import WALKER_VERSION
from rules.models import Replay
from rules.queries.replay_exports import FORMAT, versions_of
from rules.services.replays import start_again


class Command(BaseCommand):
    help = "Run a downloaded manifest again, here and now. Exit status 1 when the result is another one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("manifest", nargs="?", type=Path, metavar="MANIFEST", help="the file of the replay's page")
        parser.add_argument("--tenant", required=True, help="slug of the tenant that has the chats")
        parser.add_argument("--verify", type=int, metavar="N", help="check the stored result of replay N instead")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = named_tenant(options["tenant"])
        with scope(tenant=tenant):
            if options["verify"] is not None:
                self._verify(options["verify"])
            elif options["manifest"] is None:
                raise CommandError("Name a manifest, or a replay with --verify.")
            else:
                self._again(tenant, options["manifest"])

    def _verify(self, number: int) -> None:
        from rules.queries.replay_findings import flaws  # numeric libraries, on first use

        replay = Replay.objects.filter(pk=number).first()
        if replay is None:
            raise CommandError(f"There is no replay {number}.")
        found = flaws(replay)
        if found:
            raise CommandError("\n".join([f"Replay {number} isn't what was written:", *found]))
        self.stdout.write(f"Replay {number}: {replay.chunks_done} chunks, {replay.points} points, all as written.")

    def _again(self, tenant: Tenant, path: Path) -> None:
        document, manifest = self._read(path)
        for what, then, now in (
            ("engine", manifest.engine, ENGINE_VERSION),
            ("walker", manifest.walker, WALKER_VERSION),
            ("helpers", manifest.helpers, dict(HELPER_VERSIONS)),
        ):
            if then != now:
                self.stderr.write(f"The version of the {what} was {then} and is {now}: the result may differ.")
        versions = versions_of(document["chats"])
        if len(versions) != len(document["chats"]):
            missing = len(document["chats"]) - len(versions)
            raise CommandError(f"{missing} of the {len(document['chats'])} chats are not in this tenant.")
        title = f"{document.get('title') or path.name} again"
        try:
            replay = start_again(tenant=tenant, by=None, manifest=manifest, versions=versions, title=title, send=False)
        except Refused as refused:
            raise CommandError(str(refused)) from None
        replay = run_here(replay)
        if replay.status != Replay.Status.DONE:
            raise CommandError(f"Replay {replay.pk} ended as {replay.status}.")
        self.stdout.write(f"Replay {replay.pk}: {replay.points} points, {replay.fires} firings, {replay.result_digest}")
        if replay.result_digest != document["result_digest"]:
            raise CommandError(f"The manifest's result was {document['result_digest']}: another one.")
        self.stdout.write("The same result as in the manifest.")

    def _read(self, path: Path) -> tuple[dict[str, Any], Manifest]:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT or not isinstance(document["chats"], list):
                raise ValueError
            return document, Manifest.model_validate(document["manifest"])
        except OSError as error:
            raise CommandError(f"{path} can't be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, ValidationError):
            raise CommandError(f"{path} is no manifest of a replay.") from None

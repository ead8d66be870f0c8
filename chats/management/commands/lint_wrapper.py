"""`manage.py lint_wrapper --tenant SLUG [WRAPPER…]`: the findings of the editor, for continuous integration."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from chats.queries.wrapper_lint import Lint, lint_of
from chats.queries.wrappers import WrapperRow, recipe_of, wrapper_row, wrapper_rows
from eleanor_site.tenants.commands import named_tenant


class Command(BaseCommand):
    help = "Lint wrappers of a tenant. Exit status 1 when there is an error that nobody answered for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("wrappers", nargs="*", metavar="WRAPPER", help="short names; all of them if none is given")
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument("--draft", action="store_true", help="look at drafts where there are some")
        parser.add_argument("--strict", action="store_true", help="count warnings as errors")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = named_tenant(options["tenant"])
        failing = {"error", "warning"} if options["strict"] else {"error"}
        failed = []
        with scope(tenant=tenant):
            for row in self._rows(options["wrappers"]):
                content = row.newest if options["draft"] else row.content
                lint = lint_of(recipe_of(content), None, json.loads(content.silenced or "{}"))
                self._print(row, lint)
                if lint.problem or failing & {item.severity for item in lint.items}:
                    failed.append(row.wrapper.slug)
        if failed:
            raise CommandError("Findings in: " + ", ".join(failed))

    def _rows(self, slugs: list[str]) -> list[WrapperRow]:
        if not slugs:
            return wrapper_rows()
        rows = []
        for slug in slugs:
            row = wrapper_row(slug)
            if row is None:
                raise CommandError(f"There is no wrapper {slug!r}.")
            rows.append(row)
        return rows

    def _print(self, row: WrapperRow, lint: Lint) -> None:
        if lint.problem:
            self.stdout.write(f"{row.wrapper.slug}: {lint.problem}")
        for item in lint.items:
            where = item.path or (f"line {item.line}" if item.line else "")
            self.stdout.write(f"{row.wrapper.slug}: {item.severity}: {where + ': ' if where else ''}{item.sentence}")
        self.stdout.write(f"{row.wrapper.slug}: {len(lint.items)} findings, {len(lint.silenced)} silenced")

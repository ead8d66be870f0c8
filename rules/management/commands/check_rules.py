"""`manage.py check_rules --tenant SLUG`: what the editor would say of the rules, for continuous integration."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_scopes import scope

from eleanor_site.tenants.commands import named_tenant
from eleanor_site.tenants.models import Tenant
from rules.diagnostic_sentences import sentence
from rules.domain.language import check
from rules.models.rules import RuleContent
from rules.queries.codes import known_codes, later_codes
from rules.queries.rule_tests import run_tests
from rules.queries.rules import RuleRow, edited_set, rule_rows, stage_of


class Command(BaseCommand):
    help = "Check the live rules, or with --drafts the drafts in their places: errors, warnings, and their tests."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument("--drafts", action="store_true", help="take a rule's draft where it has one")
        parser.add_argument("--strict", action="store_true", help="warnings count as errors")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = named_tenant(options["tenant"])
        with scope(tenant=tenant):
            rows = [row for row in rule_rows() if row.version or options["drafts"]]
            bad = [row for row in rows if not self._check(tenant, row, options)]
        if bad:
            raise CommandError(f"{len(bad)} of {len(rows)} rules are not in order.")
        self.stdout.write(f"{len(rows)} rules are in order.")

    def _check(self, tenant: Tenant, row: RuleRow, options: dict[str, Any]) -> bool:
        """Print what is found; False when the rule isn't in order."""
        content: RuleContent | None = (row.draft if options["drafts"] else None) or row.version
        if content is None:
            return True
        code = row.rule.code
        checked = check(
            content.expression, stage=stage_of(content), known_codes=known_codes(), later_codes=later_codes(row.rule)
        )
        for diagnostic in checked.diagnostics:
            self.stdout.write(f"{code}:{diagnostic.start}: {diagnostic.severity}: {sentence(diagnostic)}")
        good = not checked.errors and not (options["strict"] and checked.diagnostics)
        if not (content.prompt_en.strip() or content.prompt_fr.strip()):
            self.stdout.write(f"{code}: error: there is no prompt")
            good = False
        if checked.errors:
            return False
        for result in run_tests(tenant, row.rule, edited_set(tenant, code, content)):
            if not result.passed:
                wanted = "fire" if result.test.should_fire else "not fire"
                self.stdout.write(f"{code}: test {result.test.pk} should {wanted}: {result.word}")
                good = False
        return good

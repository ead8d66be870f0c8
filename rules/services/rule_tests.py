"""Keeping tests with a rule: points that it should, or should not, fire on."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext as _

from chats.models import ChatVersion
from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.language.environment import MAX_CHARACTERS
from rules.models import Rule, RuleTest
from rules.models.rules import Stage
from rules.queries.points import PointName
from rules.queries.rule_tests import MOST_TESTS, context_problem

BUTTONS = ("fire", "not", "remove")
LONGEST_CONTEXT = 20 * MAX_CHARACTERS


@transaction.atomic
def add_point(
    *,
    tenant: Tenant,
    rule: Rule,
    by: User,
    version: ChatVersion,
    message: int,
    stage: str,
    should_fire: bool,
    note: str = "",
) -> RuleTest:
    """Keep a stored point. The same point again changes what is expected there."""
    if stage not in Stage.values:
        raise Refused(_("There is no such stage."))
    if not 0 <= message < version.chat.message_count:
        raise Refused(_("This point isn't there any more."))
    _require_room(rule)
    test, _made = RuleTest.objects.update_or_create(
        tenant=tenant,
        rule=rule,
        chat_version=version,
        message=message,
        stage=stage,
        defaults={"should_fire": should_fire, "note": note[:200], "by": by},
    )
    _record(tenant, by, "rule.test", rule, test)
    return test


@transaction.atomic
def add_context(
    *, tenant: Tenant, rule: Rule, by: User, context: str, stage: str, should_fire: bool, note: str = ""
) -> RuleTest:
    """Keep a written context: a JSON object with fields of the turn context; those that are left out have defaults."""
    if len(context) > LONGEST_CONTEXT:
        raise Refused(_("A written context has at most %(n)s characters.") % {"n": LONGEST_CONTEXT})
    problem = context_problem(context)
    if problem:
        raise Refused(problem)
    _require_room(rule)
    test = RuleTest.objects.create(
        tenant=tenant,
        rule=rule,
        by=by,
        context=context,
        stage=stage if stage in Stage.values else Stage.FINAL,
        should_fire=should_fire,
        note=note[:200],
    )
    _record(tenant, by, "rule.test", rule, test)
    return test


@transaction.atomic
def remove(*, tenant: Tenant, rule: Rule, by: User, test: RuleTest) -> None:
    _record(tenant, by, "rule.test_remove", rule, test)
    test.delete()


def _require_room(rule: Rule) -> None:
    if RuleTest.objects.filter(rule=rule).count() >= MOST_TESTS:
        raise Refused(_("A rule keeps at most %(n)s tests.") % {"n": MOST_TESTS})


def _record(tenant: Tenant, by: User, action: str, rule: Rule, test: RuleTest) -> None:
    place = f"{test.chat_version_id} {test.message}-{test.stage}" if test.chat_version_id else test.context
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="rule",
        object_id=rule.pk,
        object_label=rule.code,
        after={"should_fire": test.should_fire, "point": place, "note": test.note},
    )


def act(*, tenant: Tenant, rule: Rule, by: User, pressed: Mapping[str, str]) -> None:
    """Do what a button beside the tests says: `fire` or `not` with a point's name or "context", or `remove` with an id.

    A written context is in `test_context`. Refused with a sentence when it isn't one, or the point is gone.
    """
    if pressed.get("remove", "").isdecimal():
        test = RuleTest.objects.filter(rule=rule, pk=pressed["remove"][:18]).first()
        if test is not None:
            remove(tenant=tenant, rule=rule, by=by, test=test)
        return
    wanted = pressed.get("fire") or pressed.get("not") or ""
    should_fire = "fire" in pressed
    if wanted == "context":
        context = pressed.get("test_context", "")
        stage = pressed.get("stage", Stage.FINAL)
        add_context(tenant=tenant, rule=rule, by=by, context=context, stage=stage, should_fire=should_fire)
        return
    name = PointName.parse(wanted)
    version = name.find() if name else None
    if name is None or version is None:
        raise Refused(_("This point isn't there any more."))
    add_point(
        tenant=tenant,
        rule=rule,
        by=by,
        version=version,
        message=name.message,
        stage=name.stage,
        should_fire=should_fire,
    )

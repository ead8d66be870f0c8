"""Small builders with sensible defaults, keyword-only where there is a choice. They go through the services."""

from __future__ import annotations

import json
from typing import Any

from django.core.files.base import ContentFile
from django_scopes import scope

from chats.chunks import run_import
from chats.domain.recipes import Recipe, recipe_to_texts
from chats.models import Chat, ImportJob, Wrapper
from chats.services import wrappers
from chats.services.importing import start_import
from eleanor_site.tenants.models import Membership, Role, Tenant, User
from rules.chunks.replays import run_here
from rules.models import Release, Replay, ReplaySchedule, Rule, ScheduledRun
from rules.queries.rules import live_number, rule_set
from rules.services.drafts import create_rule
from rules.services.publishing import publish_drafts
from rules.services.replays import Scope, start_replay
from rules.services.schedules import add_schedule, judge_run, start_due

ALWAYS = 'ctx.final_text != ""'


def make_tenant(slug: str) -> Tenant:
    return Tenant.objects.create(slug=slug, name=slug.title())


def make_person(name: str, tenant: Tenant, role: Role) -> User:
    user = User.objects.create_user(f"{name}@example.org", "pw", name=name.title())
    Membership.objects.create(tenant=tenant, user=user, role=role)
    return user


def some_author(tenant: Tenant) -> User:
    return User.objects.filter(memberships__tenant=tenant).order_by("pk").first() or make_person(
        f"author-{tenant.slug}", tenant, Role.ADMIN
    )


def exchange_chat(*messages: dict[str, Any], **chat: Any) -> dict[str, Any]:
    """A chat in the exchange form; messages default to one question and one answer."""
    given = list(messages) or [
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "I will compute it now.", "finish_reason": "stop"},
    ]
    return {"format": "eleanor-chat", "version": 1, **chat, "chat": {"messages": given}}


def import_text(tenant: Tenant, text: str, *, name: str = "chats.jsonl", chosen_format: str = "") -> ImportJob:
    """Import this text as a file, here and now."""
    with scope(tenant=tenant):
        job = start_import(
            tenant=tenant,
            by=some_author(tenant),
            file=ContentFile(text.encode(), name=name),
            name=name,
            chosen_format=chosen_format,
            send=False,
        )
        run_import(job.pk)
        return ImportJob.objects.get(pk=job.pk)


def make_chat(tenant: Tenant, *messages: dict[str, Any], **chat: Any) -> Chat:
    chat.setdefault("external_id", "chat-1")
    job = import_text(tenant, json.dumps(exchange_chat(*messages, **chat)))
    with scope(tenant=tenant):
        return Chat.objects.get(imports__job=job)


def make_rule(tenant: Tenant, code: str = "ACME-01", **content: Any) -> Rule:
    """A rule with a draft only."""
    with scope(tenant=tenant):
        return create_rule(
            tenant=tenant,
            by=some_author(tenant),
            code=code,
            content={"expression": ALWAYS, "prompt_en": f"Go on, says {code}.", **content},
        )


def publish(tenant: Tenant, *rules: Rule) -> Release:
    with scope(tenant=tenant):
        return publish_drafts(
            tenant=tenant, rules=rules, by=some_author(tenant), note="test", seen_release=live_number()
        )


def make_replay(tenant: Tenant, *, run: bool = True, drafts: bool = True) -> Replay:
    with scope(tenant=tenant):
        replay = start_replay(
            tenant=tenant,
            by=some_author(tenant),
            scope=Scope(),
            rules=rule_set(tenant, drafts=drafts),
            send=False,
        )
        return run_here(replay) if run else Replay.objects.get(pk=replay.pk)


def make_schedule(tenant: Tenant, replay: Replay) -> ReplaySchedule:
    with scope(tenant=tenant):
        return add_schedule(
            tenant=tenant, by=some_author(tenant), replay=replay, name="0", rules=ReplaySchedule.Rules.LIVE, hour=3
        )


def next_run(tenant: Tenant, schedule: int) -> ScheduledRun:
    """What the beat does at the schedule's next time: its run, done and compared."""
    with scope(tenant=tenant):
        due = ReplaySchedule.objects.get(pk=schedule).due_at
        run = start_due(tenant=tenant, schedule=schedule, now=due)
        assert run is not None
        assert run.replay is not None
        run.replay = run_here(run.replay)
        judge_run(tenant=tenant, run=run)
        return ScheduledRun.objects.get(pk=run.pk)


def make_wrapper(tenant: Tenant, slug: str = "mine", *, base: str = "QwenChatWrapper", **recipe: Any) -> Wrapper:
    """A wrapper with one version and, on top of it, a draft that changes a setting."""
    by = some_author(tenant)
    with scope(tenant=tenant):
        first = recipe_to_texts(Recipe(base=base, **recipe))
        wrapper = wrappers.create_wrapper(tenant=tenant, by=by, name=slug.title(), slug=slug, content=first)
        wrappers.make_wrapper_version(tenant=tenant, wrapper=wrapper, by=by, revision=1, note="The first")
        changed = recipe_to_texts(Recipe(base=base, **{**recipe, "changes": {"supportsSystemMessages": False}}))
        wrappers.save_wrapper_draft(tenant=tenant, wrapper=wrapper, by=by, revision=0, content=changed)
        return wrapper

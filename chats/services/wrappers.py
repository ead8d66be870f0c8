"""Writing wrapper records: each has one draft on the server, saved as it is typed, and immutable versions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from chats.domain.wrappers import WRAPPERS
from chats.models import Wrapper, WrapperDraft, WrapperRevision, WrapperVersion
from chats.models.wrappers import CONTENT_FIELDS
from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User

# Words that stand where a slug stands in an address (product.md section 4), and the ids of built-ins.
RESERVED_SLUGS: Final = frozenset({"new", "which", "preview", *(name.lower() for name in WRAPPERS)})
SLUG_LIMIT: Final = 60
CONTENT_LIMIT: Final = 400_000
KEPT_REVISIONS: Final = 100
_SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")


@dataclass
class WrapperConflict(Conflict):
    """Somebody else saved the draft meanwhile, or it is gone: the revision that holds now (0: there is no draft), what
    is in it, and what the person began with (empty: not known)."""

    revision: int
    theirs: dict[str, str]
    by: User | None
    base: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return _("Somebody else changed this draft meanwhile.")


def slug_problem(slug: str) -> str:
    """Why this text can't stand in a wrapper's address, as a sentence; empty when it can."""
    if not slug:
        return _("A wrapper needs a short name for its address.")
    if len(slug) > SLUG_LIMIT:
        return _("A short name has at most %(n)s characters.") % {"n": SLUG_LIMIT}
    if not _SLUG.fullmatch(slug):
        return _("A short name has small letters, digits, and single hyphens between them.")
    if slug in RESERVED_SLUGS:
        return _("“%(slug)s” is a word of our addresses. Choose another one.") % {"slug": slug}
    return ""


def slug_for(name: str) -> str:
    """A short name made from a name, for a start; it may be taken."""
    return slugify(name)[:SLUG_LIMIT].strip("-_")


@transaction.atomic
def create_wrapper(*, tenant: Tenant, by: User, name: str, slug: str, content: dict[str, str]) -> Wrapper:
    """A new wrapper with a draft. `content` holds texts by field. Refused when the slug doesn't fit or is taken."""
    problem = slug_problem(slug)
    if problem:
        raise Refused(problem)
    chosen = _checked(content)
    kind = Wrapper.Kind.SETTINGS if chosen.get("base") else Wrapper.Kind.TEMPLATE
    try:
        with transaction.atomic():
            wrapper = Wrapper.objects.create(tenant=tenant, slug=slug, name=name, kind=kind, by=by)
    except IntegrityError as error:
        raise Refused(_("There is a wrapper with the short name %(slug)s already.") % {"slug": slug}) from error
    draft = WrapperDraft(tenant=tenant, wrapper=wrapper, by=by, **chosen)
    _save_revision(draft)
    _record(tenant, by, "wrapper.create", wrapper, after=content_of(draft))
    return wrapper


@transaction.atomic
def save_wrapper_draft(
    *, tenant: Tenant, wrapper: Wrapper, by: User, revision: int, content: dict[str, str], name: str = ""
) -> WrapperDraft:
    """Save the draft, which is made from the newest version when there is none.

    `revision` is the one that the person saw (0: there was no draft). Raises WrapperConflict when somebody else saved
    since; nothing is overwritten then.
    """
    draft = WrapperDraft.objects.select_for_update().filter(wrapper=wrapper).first()
    if draft is None:
        newest = newest_wrapper_version(wrapper)
        draft = WrapperDraft(tenant=tenant, wrapper=wrapper, revision=0, based_on=newest.number if newest else 0)
        for field, value in content_of(newest).items() if newest else ():
            setattr(draft, field, value)
    before = content_of(draft)
    if draft.revision != revision:
        base = base_of(wrapper, revision, draft.based_on)
        raise WrapperConflict(draft.revision, before, draft.by if draft.pk else None, base)
    after = {**before, **_checked(content)}
    if name and name != wrapper.name:
        _record(tenant, by, "wrapper.rename", wrapper, before={"name": wrapper.name}, after={"name": name})
        wrapper.name = name
        wrapper.save(update_fields=["name"])
    if after == before:
        return draft
    for field, value in after.items():
        setattr(draft, field, value)
    draft.by = by
    _save_revision(draft)
    changed = [field for field in after if after[field] != before[field]]
    _record(
        tenant,
        by,
        "wrapper.draft",
        wrapper,
        before={field: before[field] for field in changed},
        after={field: after[field] for field in changed},
    )
    return draft


@transaction.atomic
def discard_wrapper_draft(*, tenant: Tenant, wrapper: Wrapper, by: User) -> bool:
    """Throw the draft away; a wrapper without versions disappears with it (True then)."""
    draft = WrapperDraft.objects.select_for_update().filter(wrapper=wrapper).first()
    if draft is None:
        return False
    _record(tenant, by, "wrapper.discard", wrapper, before=content_of(draft))
    draft.delete()
    if WrapperVersion.objects.filter(wrapper=wrapper).exists():
        return False
    wrapper.delete()
    return True


@transaction.atomic
def make_wrapper_version(*, tenant: Tenant, wrapper: Wrapper, by: User, revision: int, note: str) -> WrapperVersion:
    """Make an immutable version of the draft. `revision` is the draft that the person saw."""
    if not note.strip():
        raise Refused(_("Say in the note what changed and why: readers of the history will thank you."))
    Wrapper.objects.select_for_update().get(pk=wrapper.pk)
    draft = WrapperDraft.objects.select_for_update().filter(wrapper=wrapper).first()
    if draft is None:
        raise Refused(_("There is no draft to make a version of."))
    if draft.revision != revision:
        base = base_of(wrapper, revision, draft.based_on)
        raise WrapperConflict(draft.revision, content_of(draft), draft.by, base)
    newest = newest_wrapper_version(wrapper)
    if newest is not None and newest.number != draft.based_on:
        raise Refused(
            _("Version %(n)s was made after this draft was begun. Compare them, and save the draft again on top of it.")
            % {"n": newest.number}
        )
    version = _add_version(tenant, wrapper, by, note, content_of(draft))
    draft.delete()
    return version


@transaction.atomic
def begin_again_on_newest(*, tenant: Tenant, wrapper: Wrapper, by: User) -> None:
    """Keep the draft's content, on top of the newest version: the person has seen what that one changed."""
    draft = WrapperDraft.objects.select_for_update().filter(wrapper=wrapper).first()
    newest = newest_wrapper_version(wrapper)
    if draft is None or newest is None:
        return
    draft.based_on = newest.number
    draft.save(update_fields=["based_on"])
    _record(tenant, by, "wrapper.rebase", wrapper, after={"based_on": newest.number})


@transaction.atomic
def roll_back_wrapper(*, tenant: Tenant, wrapper: Wrapper, by: User, number: int, note: str) -> WrapperVersion:
    """A new version with the content of an old one. A draft stays as it is, on top of the new version."""
    Wrapper.objects.select_for_update().get(pk=wrapper.pk)
    old = WrapperVersion.objects.filter(wrapper=wrapper, number=number).first()
    newest = newest_wrapper_version(wrapper)
    if old is None or newest is None:
        raise Refused(_("There is no version %(n)s.") % {"n": number})
    if content_of(old) == content_of(newest):
        raise Refused(_("Version %(n)s is what holds now; there is nothing to roll back.") % {"n": number})
    text = note.strip() or _("Back to version %(n)s") % {"n": number}
    return _add_version(tenant, wrapper, by, text, content_of(old))


@transaction.atomic
def archive_wrapper(*, tenant: Tenant, wrapper: Wrapper, by: User) -> None:
    wrapper.archived_at = timezone.now()
    wrapper.save(update_fields=["archived_at"])
    _record(tenant, by, "wrapper.archive", wrapper)


@transaction.atomic
def restore_wrapper(*, tenant: Tenant, wrapper: Wrapper, by: User) -> None:
    wrapper.archived_at = None
    wrapper.save(update_fields=["archived_at"])
    _record(tenant, by, "wrapper.restore", wrapper)


def content_of(row: WrapperDraft | WrapperVersion) -> dict[str, str]:
    return {name: getattr(row, name) for name in CONTENT_FIELDS}


def newest_wrapper_version(wrapper: Wrapper) -> WrapperVersion | None:
    return WrapperVersion.objects.filter(wrapper=wrapper).order_by("-number").first()


def base_of(wrapper: Wrapper, revision: int, based_on: int) -> dict[str, str]:
    """The content of that revision; for 0 the version that a draft is begun from. Empty if it isn't known any more."""
    if revision == 0:
        version = WrapperVersion.objects.filter(wrapper=wrapper, number=based_on).first()
        return content_of(version) if version else {}
    kept = WrapperRevision.objects.filter(wrapper=wrapper, number=revision).first()
    return dict(json.loads(kept.content)) if kept else {}


def _save_revision(draft: WrapperDraft) -> None:
    """Save the draft under the next number, with its content on record."""
    wrapper = Wrapper.objects.select_for_update().get(pk=draft.wrapper_id)
    draft.revision = wrapper.last_revision + 1
    draft.save()
    Wrapper.objects.filter(pk=wrapper.pk).update(last_revision=draft.revision)
    content = json.dumps(content_of(draft), ensure_ascii=False)
    WrapperRevision.objects.create(tenant=draft.tenant, wrapper=wrapper, number=draft.revision, content=content)
    WrapperRevision.objects.filter(wrapper=wrapper, number__lte=draft.revision - KEPT_REVISIONS).delete()


def _add_version(tenant: Tenant, wrapper: Wrapper, by: User, note: str, content: dict[str, str]) -> WrapperVersion:
    newest = newest_wrapper_version(wrapper)
    version = WrapperVersion.objects.create(
        tenant=tenant, wrapper=wrapper, number=newest.number + 1 if newest else 1, note=note, by=by, **content
    )
    before = content_of(newest) if newest else {}
    changed = [name for name in content if content[name] != before.get(name)]
    _record(
        tenant,
        by,
        "wrapper.version",
        wrapper,
        before={name: before.get(name) for name in changed},
        after={"number": version.number, **{name: content[name] for name in changed}},
        note=note,
    )
    return version


def _checked(content: dict[str, str]) -> dict[str, str]:
    """Only known fields, within bounds that every page can work with."""
    chosen = {name: content[name] for name in CONTENT_FIELDS if name in content}
    if sum(map(len, chosen.values())) > CONTENT_LIMIT:
        raise Refused(
            _("This wrapper is too large: settings and templates may have %(n)s characters in all.")
            % {"n": CONTENT_LIMIT}
        )
    for name in ("options", "settings", "wording", "named_templates", "template_tokens", "template_kwargs", "silenced"):
        if name in chosen and not isinstance(json.loads(chosen[name] or "{}"), dict):
            raise ValueError(f"{name} must be an object")
    return chosen


def _record(tenant: Tenant, by: User, action: str, wrapper: Wrapper, **rest: Any) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="wrapper",
        object_id=wrapper.pk,
        object_label=wrapper.slug,
        **rest,
    )

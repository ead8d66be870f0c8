"""Drafts, conflicts, versions and roll back of wrappers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chats.domain.recipes import Recipe, recipe_to_texts
from chats.models import Wrapper, WrapperDraft, WrapperVersion
from chats.queries.wrappers import choice, recipe_of, wrapper_row
from chats.services import wrappers as services
from chats.services.wrappers import WrapperConflict
from eleanor_site.audit.models import Entry
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User

Everybody = dict[str, User]


def texts(**changes: Any) -> dict[str, str]:
    return recipe_to_texts(Recipe(base="QwenChatWrapper", changes=changes))


def create(tenant: Tenant, by: User, slug: str = "qwen", **changes: Any) -> Wrapper:
    return services.create_wrapper(tenant=tenant, by=by, name="Qwen", slug=slug, content=texts(**changes))


def save(tenant: Tenant, wrapper: Wrapper, by: User, revision: int, **changes: Any) -> WrapperDraft:
    return services.save_wrapper_draft(
        tenant=tenant, wrapper=wrapper, by=by, revision=revision, content=texts(**changes)
    )


def test_the_second_of_two_people_overwrites_nothing(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"])
    save(in_acme, wrapper, people["admin"], 1, supportsSystemMessages=False)
    with pytest.raises(WrapperConflict) as caught:
        save(in_acme, wrapper, people["author"], 1, segments={"$absent": True})
    assert (caught.value.revision, caught.value.by) == (2, people["admin"])
    assert json.loads(caught.value.theirs["settings"]) == {"supportsSystemMessages": False}
    assert json.loads(WrapperDraft.objects.get().settings) == {"supportsSystemMessages": False}


def test_a_conflict_tells_what_both_began_with(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"], supportsSystemMessages=True)
    save(in_acme, wrapper, people["admin"], 1, supportsSystemMessages=False)
    save(in_acme, wrapper, people["admin"], 2, segments={"$absent": True})
    with pytest.raises(WrapperConflict) as caught:
        save(in_acme, wrapper, people["author"], 1)
    assert json.loads(caught.value.base["settings"]) == {"supportsSystemMessages": True}


def test_a_draft_made_after_a_version_is_not_the_one_that_was_seen(in_acme: Tenant, people: Everybody) -> None:
    """Somebody has the first draft open; it becomes a version, and another draft is begun."""
    wrapper = create(in_acme, people["author"])
    services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=people["admin"], revision=1, note="First")
    save(in_acme, wrapper, people["admin"], 0, supportsSystemMessages=False)
    with pytest.raises(WrapperConflict) as caught:
        save(in_acme, wrapper, people["author"], 1, segments={"$absent": True})
    assert json.loads(caught.value.base["settings"]) == {}
    assert json.loads(WrapperDraft.objects.get().settings) == {"supportsSystemMessages": False}
    # Who saw no draft began with the version.
    with pytest.raises(WrapperConflict) as caught:
        save(in_acme, wrapper, people["author"], 0, segments={"$absent": True})
    assert json.loads(caught.value.base["settings"]) == {}


def test_only_the_newest_revisions_are_kept(
    in_acme: Tenant, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "KEPT_REVISIONS", 3)
    wrapper = create(in_acme, people["author"])
    for revision in range(1, 6):
        save(in_acme, wrapper, people["author"], revision, supportsSystemMessages=bool(revision % 2))
    assert list(wrapper.revisions.order_by("number").values_list("number", flat=True)) == [4, 5, 6]
    with pytest.raises(WrapperConflict) as caught:
        save(in_acme, wrapper, people["author"], 1, segments={"$absent": True})
    assert caught.value.base == {}


def test_saving_the_same_again_is_no_change(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"])
    entries = Entry.objects.count()
    assert save(in_acme, wrapper, people["author"], 1).revision == 1
    assert Entry.objects.count() == entries


def test_a_version_never_changes_and_rolling_back_makes_another(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"], supportsSystemMessages=False)
    first = services.make_wrapper_version(
        tenant=in_acme, wrapper=wrapper, by=people["author"], revision=1, note="First"
    )
    assert not WrapperDraft.objects.exists()
    second = save(in_acme, wrapper, people["author"], 0)
    services.make_wrapper_version(
        tenant=in_acme, wrapper=wrapper, by=people["author"], revision=second.revision, note="Second"
    )
    third = services.roll_back_wrapper(tenant=in_acme, wrapper=wrapper, by=people["admin"], number=1, note="")
    assert [v.number for v in WrapperVersion.objects.order_by("number")] == [1, 2, 3]
    assert services.content_of(third) == services.content_of(first)
    assert recipe_of(third).changes == {"supportsSystemMessages": False}
    with pytest.raises(Refused):
        services.roll_back_wrapper(tenant=in_acme, wrapper=wrapper, by=people["admin"], number=3, note="")


def test_a_version_needs_a_note_and_the_draft_that_was_seen(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"])
    for revision, note in ((1, " "), (7, "A note")):
        with pytest.raises(Refused):
            services.make_wrapper_version(
                tenant=in_acme, wrapper=wrapper, by=people["author"], revision=revision, note=note
            )
    assert not WrapperVersion.objects.exists()


def test_a_draft_under_a_newer_version_has_to_be_put_on_top_first(in_acme: Tenant, people: Everybody) -> None:
    by = people["author"]
    wrapper = create(in_acme, by)
    services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=by, revision=1, note="First")
    save(in_acme, wrapper, by, 0, supportsSystemMessages=False)
    services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=by, revision=2, note="Second")
    draft = save(in_acme, wrapper, by, 0)
    services.roll_back_wrapper(tenant=in_acme, wrapper=wrapper, by=by, number=1, note="")
    with pytest.raises(Refused):
        services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=by, revision=draft.revision, note="Third")
    services.begin_again_on_newest(tenant=in_acme, wrapper=wrapper, by=by)
    made = services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=by, revision=draft.revision, note="Third")
    assert made.number == 4


def test_discarding_the_only_draft_takes_the_wrapper_away(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"])
    assert services.discard_wrapper_draft(tenant=in_acme, wrapper=wrapper, by=people["author"])
    assert not Wrapper.objects.exists()


@pytest.mark.parametrize("slug", ["", "new", "which", "preview", "chatmlchatwrapper", "Qwen", "a b", "é", "x" * 61])
def test_short_names_fit_into_addresses(in_acme: Tenant, people: Everybody, slug: str) -> None:
    with pytest.raises(Refused):
        create(in_acme, people["author"], slug=slug)


def test_a_short_name_is_taken_once(in_acme: Tenant, people: Everybody) -> None:
    create(in_acme, people["author"])
    with pytest.raises(Refused):
        create(in_acme, people["author"])


def test_what_is_too_large_is_refused(in_acme: Tenant, people: Everybody) -> None:
    wrapper = create(in_acme, people["author"])
    with pytest.raises(Refused):
        services.save_wrapper_draft(
            tenant=in_acme, wrapper=wrapper, by=people["author"], revision=1, content={"template": "x" * 500_000}
        )


def test_what_holds_is_the_newest_version_and_addresses_name_any_state(in_acme: Tenant, people: Everybody) -> None:
    by = people["author"]
    wrapper = create(in_acme, by)
    found = choice("qwen")
    assert found is not None
    assert found.key == "qwen@draft"
    services.make_wrapper_version(tenant=in_acme, wrapper=wrapper, by=by, revision=1, note="First")
    save(in_acme, wrapper, by, 0, supportsSystemMessages=False)
    states = {key: choice(key) for key in ("qwen", "qwen@1", "qwen@draft", "ChatMLChatWrapper", "qwen@2", "nobody")}
    assert {key: found.recipe.changes for key, found in states.items() if found} == {
        "qwen": {},
        "qwen@1": {},
        "qwen@draft": {"supportsSystemMessages": False},
        "ChatMLChatWrapper": {},
    }
    row = wrapper_row("qwen")
    assert row is not None
    assert isinstance(row.content, WrapperVersion)

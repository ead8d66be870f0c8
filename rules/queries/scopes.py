"""Which chats an effect is looked at on, as addresses and forms name them."""

from __future__ import annotations

from chats.models import Corpus, SavedSearch
from rules.queries.segments import Scope


def scope_of(text: str) -> Scope:
    """The chats that an address names; all of them for anything that names none."""
    try:
        found = Scope.parse(text or "all")
    except ValueError:
        return Scope()
    return found if found.exists() else Scope()


def scope_choices() -> list[tuple[str, str]]:
    """Which chats an effect can be looked at on."""
    found = [(str(Scope()), Scope().name())]
    found += [(str(Scope("search", row.pk)), row.name) for row in SavedSearch.objects.order_by("name")[:100]]
    found += [(str(Scope("corpus", row.pk)), row.name) for row in Corpus.objects.order_by("name")[:100]]
    return found

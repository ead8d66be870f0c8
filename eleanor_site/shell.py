"""What the frame of every page needs: navigation, tenants, theme, shortcuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import Tenant


@dataclass(frozen=True)
class Section:
    """One entry of the navigation. `key` is the letter after `g`, and names its icon and its first path part."""

    key: str
    label: str | Promise
    url_name: str
    icon: str
    path: str


SECTIONS = (
    Section("o", _("Overview"), "overview", "layout-dashboard", ""),
    Section("r", _("Rules"), "rules:list", "list-ordered", "rules"),
    Section("w", _("Wrappers"), "chats:wrappers", "scroll-text", "wrappers"),
    Section("c", _("Chats"), "chats:list", "messages-square", "chats"),
    Section("p", _("Replays"), "rules:replays", "play", "replays"),
    Section("n", _("Nudges"), "rules:nudges", "flag", "nudges"),
    Section("v", _("Review"), "rules:review", "clipboard-check", "review"),
    Section("h", _("Changes"), "audit:changes", "history", "changes"),
    Section("s", _("Settings"), "tenants:settings", "settings", "settings"),
)

# Keys, what they do, and the name of the visible control that they press (or one of eleanor.js's own actions).
SHORTCUTS: tuple[tuple[str | Promise, tuple[tuple[str, str | Promise, str], ...]], ...] = (
    (
        _("Everywhere"),
        (
            ("?", _("Show the keys"), "help"),
            ("Mod+k", _("Go to a page by name"), "palette"),
            ("/", _("Search"), "search"),
            *((f"g {s.key}", s.label, f"go-{s.key}") for s in SECTIONS),
        ),
    ),
    (
        _("Lists"),
        (
            ("j", _("Next row"), "list-next"),
            ("k", _("Previous row"), "list-previous"),
            ("o", _("Open the row"), "list-open"),
            ("x", _("Select the row"), "list-toggle"),
        ),
    ),
    (
        _("Editor"),
        (
            ("Mod+s", _("Save the draft"), "save"),
            ("Mod+Enter", _("Replay everything"), "full-replay"),
            ("F8", _("Next problem"), "next-problem"),
            ("Shift+F8", _("Previous problem"), "previous-problem"),
            ("Mod+Space", _("Complete"), "complete"),
            *((f"Alt+{n}", format_lazy(_("Set {n}"), n=n), f"set-{n}") for n in range(1, 8)),
        ),
    ),
    (
        _("Chat"),
        (
            ("[", _("Previous point"), "previous-point"),
            ("]", _("Next point"), "next-point"),
            ("n", _("Next nudge"), "next-nudge"),
            ("v", _("Change the view"), "change-view"),
        ),
    ),
    (
        _("Review"),
        (
            ("1", _("Right"), "verdict-right"),
            ("2", _("Wrong"), "verdict-wrong"),
            ("3", _("Unsure"), "verdict-unsure"),
            ("4", _("Missed"), "verdict-missed"),
            ("u", _("Undo"), "verdict-undo"),
            ("n", _("Note"), "verdict-note"),
            ("j", _("Next item"), "review-next"),
            ("k", _("Previous item"), "review-previous"),
        ),
    ),
)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of every template. Makes at most one query, and none on pages without a person."""
    user = getattr(request, "user", None)
    tenant: Tenant | None = getattr(request, "tenant", None)
    context: dict[str, Any] = {
        "tenant": tenant,
        "role": getattr(request, "role", None),
        "theme": getattr(user, "theme", None) or request.COOKIES.get("theme", "system"),
        "single_keys": "on" if getattr(user, "single_key_shortcuts", True) else "off",
        "languages": settings.LANGUAGES,
        "time_zone": timezone.get_current_timezone_name(),
        "shortcuts": [
            {"label": group, "rows": [{"keys": k, "label": label, "action": action} for k, label, action in rows]}
            for group, rows in SHORTCUTS
        ],
        "nav": [],
        "tenants": [],
    }
    if user is None or not user.is_authenticated:
        return context
    context["tenants"] = list(Tenant.objects.filter(memberships__user=user).order_by("name"))
    if tenant is not None:
        context["nav"] = list(_navigation(request, tenant))
    return context


def _navigation(request: HttpRequest, tenant: Tenant) -> list[dict[str, Any]]:
    here = request.path.removeprefix(f"/t/{tenant.slug}/").split("/")[0]
    found = []
    for section in SECTIONS:
        try:
            url = reverse(section.url_name, args=[tenant.slug])
        except NoReverseMatch:
            continue
        found.append(
            {
                "key": section.key,
                "label": section.label,
                "url": url,
                "icon": section.icon,
                "current": here == section.path,
                "shortcut": f"g {section.key}",
            }
        )
    return found

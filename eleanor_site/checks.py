"""System checks: a view without a mark would be open to everybody by accident."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.urls import URLPattern, URLResolver, get_resolver


def marked_views(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every route with its view, the API's apart (its keys are checked by the API itself)."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "ninja":
                yield from marked_views(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route, pattern.callback


@register()
def every_view_is_marked(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    return [
        Error(f"The view of {route!r} has no access mark.", hint="Mark it with eleanor_site.access.", id="eleanor.E001")
        for route, view in marked_views()
        if not hasattr(view, "access") and not route.startswith("api/")
    ]

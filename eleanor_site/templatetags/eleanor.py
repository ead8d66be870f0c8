"""Small template helpers that every page uses; loaded as built-ins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from eleanor_site.tenants.models import Role

register = template.Library()


@register.simple_tag(takes_context=True)
def turl(context: dict[str, Any], name: str, *args: Any, **kwargs: Any) -> str:
    """The URL of a page of the current tenant: `{% turl 'rules:edit' rule.code %}`."""
    tenant = context["tenant"]
    if kwargs:
        return reverse(name, kwargs={"tenant": tenant.slug, **kwargs})
    return reverse(name, args=[tenant.slug, *args])


@register.simple_tag(takes_context=True)
def with_query(context: dict[str, Any], **changes: Any) -> str:
    """The current address with some query parameters changed; a parameter set to nothing disappears."""
    request: HttpRequest = context["request"]
    query = request.GET.copy()
    for key, value in changes.items():
        if value in (None, ""):
            query.pop(key, None)
        else:
            query[key] = str(value)
    text = query.urlencode()
    return f"{request.path}?{text}" if text else request.path


@register.filter
def has_role(role: Any, wanted: str) -> bool:
    """`{% if role|has_role:'author' %}`: the person's role includes that one."""
    return role is not None and Role(role).includes(Role(wanted))


@register.filter
def get_item(mapping: Any, key: Any) -> Any:
    """`mapping[key]`, or None."""
    return mapping.get(key) if mapping else None


MOMENT_FORMATS = {
    "short": "SHORT_DATETIME_FORMAT",
    "long": "DATETIME_FORMAT",
    "day": "SHORT_DATE_FORMAT",
    "clock": "H:i:s",
}


@register.filter
def moment(value: datetime | None, style: str = "short") -> str | SafeString:
    """A time as `<time>`, in the reader's zone and way of writing, with UTC on hover. `style`: see MOMENT_FORMATS."""
    if value is None:
        return "—"
    in_utc = value.astimezone(UTC)
    try:
        shown = date_format(timezone.localtime(value), MOMENT_FORMATS[style])
    except OverflowError:  # the first hours of the calendar, west of Greenwich
        shown = date_format(in_utc, MOMENT_FORMATS[style])
    title = in_utc.replace(tzinfo=None).isoformat(" ", "seconds")
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', in_utc.isoformat(), title, shown)

"""Small template helpers that every page uses; loaded as built-ins."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import reverse
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


@register.filter
def moment(value: datetime | None, style: str = "short") -> str | SafeString:
    """A time in UTC as `<time>`, in the reader's way of writing; eleanor.js tells the person's own zone on hover."""
    if value is None:
        return "—"
    shown = date_format(value, "DATETIME_FORMAT" if style == "long" else "SHORT_DATETIME_FORMAT")
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), shown)

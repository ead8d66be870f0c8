"""Reading recorded nudges."""

from __future__ import annotations

from django.db.models import QuerySet

from rules.models import RecordedNudge

PAGE = 50


def nudges(*, code: str = "", language: str = "", model: str = "") -> QuerySet[RecordedNudge]:
    found: QuerySet[RecordedNudge] = RecordedNudge.objects.select_related("chat").order_by("-id")
    if code:
        found = found.filter(code=code)
    if language:
        found = found.filter(language=language)
    if model:
        found = found.filter(model=model)
    return found


def codes() -> list[str]:
    return list(RecordedNudge.objects.order_by("code").values_list("code", flat=True).distinct())

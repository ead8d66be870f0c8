"""The zone in which a person reads times. Days of filters and charts are UTC days for everybody, and say so."""

from __future__ import annotations

from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

COOKIE = "zone"
# Regions of the names that people know; the database holds older and abbreviated ones besides.
REGIONS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones()) | {"UTC"}


@cache
def zones_by_region() -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """What a person can choose: regions, each with (name, place) by name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(_known()):
        region, _slash, place = name.partition("/")
        if place and region in REGIONS:
            found.setdefault(region, []).append((name, place.replace("_", " ").replace("/", " / ")))
    return tuple((region, tuple(zones)) for region, zones in found.items())


def is_zone(name: str) -> bool:
    return name in _known()


def zone_of(user: Any, told_by_browser: str) -> ZoneInfo:
    """The zone that the person chose, else the browser's, else UTC."""
    for name in (getattr(user, "time_zone", ""), told_by_browser):
        if is_zone(name):
            return ZoneInfo(name)
    return ZoneInfo("UTC")

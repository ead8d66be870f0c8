"""What fields are at the stored points, in a few words for completion (product.md 5.3)."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from eleanor_site.tenants.models import Tenant
from rules.queries import effects

if TYPE_CHECKING:
    from rules.domain.corpus_findings import Observed

_KEPT: Final = 64
_SECONDS: Final = 30.0
_SHOWN_VALUES: Final = 4

_lines: OrderedDict[tuple[int, str, str], tuple[float, Mapping[str, str]]] = OrderedDict()
_lock = threading.Lock()


def observed_lines(tenant: Tenant, stage: str) -> Mapping[str, str]:
    """For each field a line such as "stop 81 %, length 12 %, unknown 7 %", at most half a minute old."""
    key = (tenant.pk, stage, get_language() or "en")
    with _lock:
        kept = _lines.get(key)
        if kept is not None and kept[0] > time.monotonic() - _SECONDS:
            return kept[1]
    found = {name: _line(values) for name, values in effects.observed(tenant, stage).items() if values}
    with _lock:
        _lines[key] = (time.monotonic(), found)
        _lines.move_to_end(key)
        while len(_lines) > _KEPT:
            _lines.popitem(last=False)
    return found


def _line(values: tuple[Observed, ...]) -> str:
    total = sum(value.count for value in values)
    parts = [f"{_word(value.value)} {_share(value.count, total)}" for value in values[:_SHOWN_VALUES]]
    return ", ".join(parts)


def _word(value: object) -> str:
    if value is None:
        return _("unknown")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _share(count: int, total: int) -> str:
    share = 100 * count / total
    return _("%(n)s %%") % {"n": "<1" if 0 < share < 1 else round(share)}

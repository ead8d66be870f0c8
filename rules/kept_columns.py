"""What a process keeps of its tenants' columns: unpacked segments and the bits of text terms, bounded in bytes.

Bits that are completed here are stored, so that no other process finds them again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from eleanor_site.tenants.models import Tenant
from rules import text_files
from rules.domain.atoms import Atoms, atoms_of
from rules.domain.columns import Columns
from rules.domain.language import check
from rules.domain.language.tree import Node
from rules.domain.masks import Points
from rules.domain.points import Defaults
from rules.domain.rule_set import BrokenRule, RuleSpec
from rules.domain.segment_cache import SegmentCache
from rules.domain.settling import Rule
from rules.models import Segment, SegmentAtom
from rules.queries.segments import Part

# Unpacked columns, and what else of a segment stays in memory, in bytes a point.
_POINT_BYTES: Final = 24
_cache: Final = SegmentCache()


def views_of(tenant: Tenant, parts: Sequence[Part], defaults: Defaults) -> list[Points]:
    """The segments of a corpus as the engine reads them, each with the chats that belong to it."""
    loaded = _load(tenant, parts, defaults)
    return [_scoped(*loaded[part.segment], part) for part in parts]


def _load(tenant: Tenant, parts: Sequence[Part], defaults: Defaults) -> dict[int, tuple[Columns, Atoms]]:
    """Columns by segment; those that aren't kept are read in one query."""
    found: dict[int, tuple[Columns, Atoms]] = {}
    missing = []
    for part in parts:
        kept = _cache.peek(tenant.pk, (part.digest, defaults))
        if kept is None:
            missing.append(part.segment)
        else:
            found[part.segment] = kept
    if not missing:
        return found
    for segment in Segment.objects.filter(pk__in=missing).defer("people", "contents", "strays", "tools", "sequels"):
        key = (segment.digest, defaults)
        load = functools.partial(_unpacked, segment, defaults)
        found[segment.pk] = _cache.get(tenant.pk, key, load)
    return found


def _unpacked(segment: Segment, defaults: Defaults) -> tuple[tuple[Columns, Atoms], int]:
    columns = Columns(bytes(segment.scalars), defaults)
    named = Segment(pk=segment.pk, tenant_id=segment.tenant_id, text_hash=segment.text_hash)
    atoms = Atoms(columns, functools.partial(text_files.open_texts, named))
    return (columns, atoms), segment.point_count * _POINT_BYTES


def _scoped(columns: Columns, atoms: Atoms, part: Part) -> Points:
    if part.kept is None:
        return Points(columns, atoms)
    kept = np.unpackbits(np.frombuffer(part.kept, dtype=np.uint8), count=columns.chats).view(np.bool_)
    return Points(columns, atoms, scope=np.repeat(kept, np.diff(columns.chat_starts)))


def fetch_bits(views: Sequence[Points], parts: Sequence[Part], trees: Iterable[Node]) -> bool:
    """Take over the stored bits of the trees' text terms. Whether all of them are known now, everywhere."""
    keys = {key for tree in trees for key in atoms_of(tree)}
    wanted = {
        part.segment: view.atoms
        for part, view in zip(parts, views, strict=True)
        if any(not view.atoms.is_complete(key) for key in keys)
    }
    if wanted:
        rows = SegmentAtom.objects.filter(segment__in=list(wanted), key__in=sorted(keys))
        for segment, key, bits in rows.values_list("segment", "key", "bits"):
            wanted[segment].hold({key: bytes(bits)})
    return all(atoms.is_complete(key) for atoms in wanted.values() for key in keys)


def store_bits(tenant: Tenant, views: Sequence[Points], parts: Sequence[Part]) -> int:
    """Store the bits that were completed in this process; how many rows."""
    rows = []
    for part, view in zip(parts, views, strict=True):
        rows += [
            SegmentAtom(tenant=tenant, segment_id=part.segment, key=key, bits=bits)
            for key, bits in view.atoms.take_fresh().items()
        ]
    if rows:
        SegmentAtom.objects.bulk_create(rows, ignore_conflicts=True, batch_size=100)
    return len(rows)


def drop(tenant: Tenant) -> None:
    """Forget what is kept of a tenant."""
    _cache.drop(tenant.pk)


# --- rules


@functools.lru_cache(maxsize=2048)
def _tree(expression: str, stage: str) -> Node | None:
    checked = check(expression, stage="round" if stage == "round" else "final")
    if any(found.severity == "error" for found in checked.diagnostics):
        return None
    return checked.tree


def engine_rules(specs: Sequence[RuleSpec]) -> list[Rule]:
    """The rules as the engine takes them. Raises BrokenRule for the first with an error."""
    rules = []
    for spec in specs:
        tree = _tree(spec.expression, spec.stage)
        if tree is None:
            raise BrokenRule(spec.code)
        rules.append(Rule(spec.code, spec.stage, spec.max_nudges, tree))
    return rules

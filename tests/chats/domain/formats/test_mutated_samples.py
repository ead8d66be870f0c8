"""Recorded files with random damage: whatever comes out is storable, whatever doesn't is a documented problem.

Mutations are drawn from a fixed seed. `MUTATIONS` a file keeps this short; set it higher to search for longer.
"""

import copy
import json
import random

import pytest

from chats.domain.exchange import from_json, to_json
from chats.domain.formats import PROBLEM_CODES, identity_key, state_hash
from chats.domain.formats.text_protocols import PROTOCOLS
from tests.chats.domain.formats.uploads import imported
from tests.shared_data import SHARED, needs_shared

MUTATIONS = 20
LARGEST = 60_000
RECORDS = 30
SAMPLES = SHARED / "samples"
ENTRIES = json.loads((SAMPLES / "index.json").read_text())["files"] if SAMPLES.is_dir() else []
NAMES = sorted({e["format"] for e in ENTRIES if e["bytes"] <= LARGEST})
PACKED = (".zip", ".eval", ".parquet", ".gz")
ODD = [
    None,
    True,
    0,
    -1,
    1e308,
    10**40,
    float("nan"),
    "",
    "user",
    "tool",
    "\ud800",
    "\x00",
    "²²²²²²²²²²",
    "9" * 12,
    "[{",
    '{"a": "\\ud800"}',
    [],
    {},
    [None],
    [[]],
    {"a": None},
    {"type": "text"},
    {"type": None},
    {"role": "user", "content": "q"},
]
PIECES = [b"\x00", b"\xff", b"{", b"}", b"[", b"]", b'"', b"\n", b",", b"NaN", b"1" * 200, b"[" * 100, b"\\ud800"]
KEYS = ["role", "content", "type", "id", "messages", "parts", "extra"]


def slots(value, found):
    """Every place in a JSON value: its holder and its key or index."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []:
        found.append((value, key))
        slots(value[key], found)
    return found


def with_other_values(value, draw):
    box = [value]
    for _ in range(draw.choice([1, 1, 2, 5, 20])):
        places = slots(box, [])
        if not places:
            break
        holder, key = draw.choice(places)
        change = draw.randrange(6)
        if change == 0:
            holder[key] = copy.deepcopy(draw.choice(ODD))
        elif change == 1:
            del holder[key]
        elif change == 2:
            other, at = draw.choice(places)
            if len(json.dumps(other)) < LARGEST:
                holder[key] = copy.deepcopy(other[at])
        elif change == 3 and isinstance(holder, dict):
            holder[draw.choice(KEYS)] = holder.pop(key)
        elif change == 4:
            holder[key] = json.dumps(holder[key])
        else:
            holder[key] = [holder[key]]
    return box[0] if box else None


def with_other_bytes(data, draw):
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 3, 10])):
        start = draw.randrange(len(changed) + 1)
        end = min(len(changed), start + draw.choice([1, 2, 8, 64, 1000]))
        change = draw.randrange(5)
        if change == 0:
            del changed[start:end]
        elif change == 1:
            changed[start:start] = changed[start:end]
        elif change == 2:
            changed[start:end] = draw.randbytes(end - start)
        elif change == 3:
            del changed[start:]
        else:
            changed[start:start] = draw.choice(PIECES)
    return bytes(changed)


def mutated(path, data, draw):
    if path.endswith(PACKED) or draw.random() < 0.35:
        return with_other_bytes(data, draw)
    try:
        text = data.decode("utf-8-sig")
        try:
            records = [json.loads(text)]
        except ValueError:
            records = [json.loads(line) for line in text.splitlines() if line.strip()][:RECORDS]
    except ValueError:
        return with_other_bytes(data, draw)
    if not records:
        return with_other_bytes(data, draw)
    at = draw.randrange(len(records))
    records[at] = with_other_values(records[at], draw)
    return "\n".join(map(json.dumps, records)).encode()


@needs_shared
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_no_damage_is_a_crash(name):
    draw = random.Random(name)
    entries = [e for e in ENTRIES if e["format"] == name and e["bytes"] <= LARGEST]
    for _ in range(MUTATIONS):
        path = draw.choice(entries)["path"]
        upload = mutated(path, (SAMPLES / path).read_bytes(), draw)
        known = name if draw.random() < 0.4 and name not in ("containers", "hostile") else None
        protocol = draw.choice([None, *PROTOCOLS])
        found = imported(upload, known, all_branches=draw.random() < 0.5, text_protocol=protocol)
        for record in found.chats:
            kept = to_json(record)
            kept.encode()
            assert "\x00" not in kept
            assert from_json(kept).chat == record.chat
            assert len(state_hash(record)) == 64
            assert identity_key(record)
        for problem in found.problems:
            assert problem.code in PROBLEM_CODES
            json.dumps(dict(problem.args))

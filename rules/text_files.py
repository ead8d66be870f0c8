"""Where the texts of segments lie: Arrow files in media storage, one a segment, named by their hash.

A file is only a copy of what the chats say. One that is missing or damaged is noticed when it is opened and made anew
by a worker. Nothing is read from a file before its hash has been checked; a note beside it says for which state of the
file that was done, so that a web process that has just started doesn't read hundreds of megabytes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings

from rules.models import Segment

_checked: dict[str, str] = {}
_CHECKED_LIMIT = 10_000
_BLOCK = 1 << 20


class TextsGone(OSError):
    """The file isn't there, or isn't what was written."""


def path_of(segment: Segment) -> Path:
    """No two tenants share a file, equal texts notwithstanding."""
    return Path(settings.MEDIA_ROOT) / "segments" / str(segment.tenant_id) / f"{segment.text_hash}.arrow"


def write(segment: Segment, texts: bytes) -> None:
    """Put the texts in their place, whole or not at all. Raises OSError, when the disk is full for example."""
    path = path_of(segment)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(texts)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _note(path, _state(path))


def remove(segment: Segment) -> None:
    """Delete the file, unless another segment of the tenant has the same texts."""
    if not Segment.objects.filter(text_hash=segment.text_hash).exclude(pk=segment.pk).exists():
        path_of(segment).unlink(missing_ok=True)
        _note_of(path_of(segment)).unlink(missing_ok=True)


def remove_orphans(tenant_id: int, before: float) -> int:
    """Delete the tenant's files that no segment names and that were written before this time (POSIX); how many.

    They are left by a process that was killed between a transaction and the deletion of its files.
    """
    folder = Path(settings.MEDIA_ROOT) / "segments" / str(tenant_id)
    if not folder.is_dir():
        return 0
    named = set(Segment.objects.values_list("text_hash", flat=True))
    count = 0
    for path in folder.iterdir():
        if path.stem not in named and path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
            count += 1
    return count


def is_whole(segment: Segment) -> bool:
    """Whether the file is there and is what was written."""
    try:
        _check(path_of(segment), segment.text_hash)
    except OSError:
        return False
    return True


def open_texts(segment: Segment) -> Any:
    """The texts, memory-mapped. Raises TextsGone."""
    from rules.domain.texts import open_texts as open_arrow  # numeric libraries, on first use

    path = path_of(segment)
    _check(path, segment.text_hash)
    return open_arrow(path)


def _check(path: Path, text_hash: str) -> None:
    try:
        state = _state(path)
        if _checked.get(str(path)) == state or _is_noted(path, state):
            return
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise TextsGone(str(error)) from error
    if digest.hexdigest() != text_hash:
        raise TextsGone(f"{path.name} is damaged")
    _note(path, state)


def _state(path: Path) -> str:
    """What changes whenever somebody writes to the file."""
    status = os.stat(path)
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def _note_of(path: Path) -> Path:
    return path.with_suffix(".checked")


def _is_noted(path: Path, state: str) -> bool:
    try:
        return _note_of(path).read_text(encoding="ascii") == state
    except (OSError, UnicodeDecodeError):
        return False


def _note(path: Path, state: str) -> None:
    if len(_checked) >= _CHECKED_LIMIT:
        _checked.clear()
    _checked[str(path)] = state
    # Without the note the next process checks again.
    with contextlib.suppress(OSError):
        _note_of(path).write_text(state, encoding="ascii")

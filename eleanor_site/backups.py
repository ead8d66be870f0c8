"""A backup of the whole site in one file, made while everybody works, and putting one back.

The file is a tar archive: the database, the media files, and at its end a manifest with the number of rows of each
table and the SHA-256 of each file. The database is one moment of it; media are copied afterwards, so that every file
that a row names is there: files are written before their row and never change.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from eleanor_site.tenants.models import Tenant

FORMAT: Final = 1
_DATABASE: Final = "database"
_MEDIA: Final = "media"
_MANIFEST: Final = "manifest.json"
_TABLE: Final = re.compile(r"[a-z0-9_]{1,63}")
_BLOCK: Final = 1 << 20


class BackupError(Exception):
    """Why a backup can't be made or put back, as a sentence that says what to do."""


@dataclass
class Manifest:
    """What a backup holds. `migrations` are those that the database had, as `app.name`."""

    format: int
    made_at: str
    vendor: str
    migrations: list[str]
    rows: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


# --- making one


def make_backup(target: Path) -> Manifest:
    """Write a backup to `target`, which must not exist. Half of one never stands there."""
    if target.exists():
        raise BackupError(f"{target} exists already: choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(FORMAT, timezone.now().isoformat(), connection.vendor, _applied())
    with tempfile.TemporaryDirectory(prefix="backup-", dir=target.parent) as folder:
        draft = Path(folder) / "draft.tar"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
            if connection.vendor == "sqlite":
                _add_sqlite(archive, manifest, Path(folder))
            else:
                _add_postgresql(archive, manifest, Path(folder))
            _add_media(archive, manifest)
            _add_bytes(archive, _MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
            stream.flush()
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(draft, target)
    return manifest


def _applied() -> list[str]:
    return sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())


def _add_sqlite(archive: tarfile.TarFile, manifest: Manifest, folder: Path) -> None:
    """A copy by SQLite itself, which is one moment of the database however many write meanwhile."""
    copy = folder / "copy.sqlite3"
    connection.ensure_connection()
    with _closing(sqlite3.connect(copy)) as into:
        connection.connection.backup(into)
        names = [row[0] for row in into.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in sorted(names):
            with suppress(sqlite3.OperationalError):  # the inner tables of a full-text index
                manifest.rows[name] = into.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
    _add_file(archive, manifest, f"{_DATABASE}/eleanor.sqlite3", copy)


def _add_postgresql(archive: tarfile.TarFile, manifest: Manifest, folder: Path) -> None:
    """Each table as PostgreSQL's own copy of it, all of them read in one transaction."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for table in sorted(connection.introspection.table_names()):
            part = folder / "table"
            with part.open("wb") as stream, connection.connection.cursor() as raw:
                with raw.copy(f"COPY {connection.ops.quote_name(table)} TO STDOUT") as copy:
                    for data in copy:
                        stream.write(data)
                manifest.rows[table] = raw.rowcount
            _add_file(archive, manifest, f"{_DATABASE}/{table}.copy", part)


def _add_media(archive: tarfile.TarFile, manifest: Manifest) -> None:
    root = Path(settings.MEDIA_ROOT)
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        # What was removed between the list and now belongs to no row any more, or can be made again.
        with suppress(FileNotFoundError):
            _add_file(archive, manifest, f"{_MEDIA}/{path.relative_to(root).as_posix()}", path)


def _add_file(archive: tarfile.TarFile, manifest: Manifest, name: str, path: Path) -> None:
    with path.open("rb") as stream:
        info = tarfile.TarInfo(name)
        info.size = os.fstat(stream.fileno()).st_size
        info.mode = 0o600
        hashing = _Hashing(stream)
        archive.addfile(info, hashing)
        manifest.files[name] = hashing.hexdigest()


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o600
    archive.addfile(info, io.BytesIO(content))


class _Hashing(io.RawIOBase):
    """Reads through, and knows the SHA-256 of what was read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def _closing(opened: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield opened
    finally:
        opened.close()


# --- putting one back


def put_back(source: Path) -> Manifest:
    """Put a backup into this site, which must be empty. The whole file is checked before anything is touched."""
    media = Path(settings.MEDIA_ROOT)
    media.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="restore-", dir=media.parent) as folder:
        manifest = _unpack(source, Path(folder))
        if manifest.vendor != connection.vendor:
            raise BackupError(f"The backup is of {manifest.vendor}, and this site uses {connection.vendor}.")
        unknown = sorted(set(manifest.migrations) - _known_migrations())
        if unknown:
            raise BackupError(f"The backup was made by a newer version: {unknown[0]} isn't known here.")
        call_command("migrate", verbosity=0, interactive=False)
        if Tenant.objects.exists():
            raise BackupError("This site isn't empty: restore into a new database and a new var folder.")
        if manifest.vendor == "sqlite":
            _put_back_sqlite(manifest, Path(folder))
        else:
            _put_back_postgresql(manifest, Path(folder))
        _put_back_media(Path(folder) / _MEDIA, media)
    return manifest


def _unpack(source: Path, folder: Path) -> Manifest:
    """Every file of the archive under `folder`, checked. Raises BackupError for one that isn't whole."""
    found: dict[str, str] = {}
    manifest: Manifest | None = None
    try:
        with tarfile.open(source, mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member)
                if stream is None or not _fits(member.name):
                    raise BackupError(f"{source} holds {member.name!r}, which no backup of ours has.")
                if member.name == _MANIFEST:
                    manifest = Manifest(**json.load(stream))
                    continue
                into = folder / member.name
                into.parent.mkdir(parents=True, exist_ok=True)
                with into.open("xb") as written:
                    found[member.name] = _copied(stream.read, written)
    except (OSError, tarfile.TarError, ValueError, TypeError) as error:
        raise BackupError(f"{source} can't be read as a backup: {error}") from error
    if manifest is None or manifest.format != FORMAT:
        raise BackupError(f"{source} has no manifest at its end: it isn't whole, or no backup of ours.")
    if found != manifest.files:
        wrong = sorted(name for name in {*found, *manifest.files} if found.get(name) != manifest.files.get(name))
        raise BackupError(f"{source} is damaged: {wrong[0]} isn't what was backed up.")
    return manifest


def _fits(name: str) -> bool:
    parts = name.split("/")
    if name == _MANIFEST:
        return True
    return parts[0] in (_DATABASE, _MEDIA) and len(parts) > 1 and not {"", ".", ".."} & set(parts)


def _copied(read: Callable[[int], bytes], into: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while data := read(_BLOCK):
        digest.update(data)
        into.write(data)
    return digest.hexdigest()


def _known_migrations() -> set[str]:
    from django.db.migrations.loader import MigrationLoader

    return {f"{app}.{name}" for app, name in MigrationLoader(connection).disk_migrations}


def _put_back_sqlite(manifest: Manifest, folder: Path) -> None:
    connection.ensure_connection()
    with _closing(sqlite3.connect(folder / _DATABASE / "eleanor.sqlite3")) as copy:
        [(answer,)] = copy.execute("PRAGMA integrity_check").fetchall()
        if answer != "ok":
            raise BackupError(f"The database in the backup is damaged: {answer}")
        copy.backup(connection.connection)
    connection.close()
    # A backup of an older version gets what came since.
    call_command("migrate", verbosity=0, interactive=False)


def _put_back_postgresql(manifest: Manifest, folder: Path) -> None:
    if manifest.migrations != _applied():
        raise BackupError("The backup was made by an older version: restore it with that version, then migrate.")
    tables = sorted(manifest.rows)
    if any(not _TABLE.fullmatch(table) for table in tables):
        raise BackupError("The backup names a table that can be none.")
    quote = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        # What triggers would write is in the backup already; keys between tables are checked at the end.
        for table in tables:
            cursor.execute(f"ALTER TABLE {quote(table)} DISABLE TRIGGER USER")
        for table in tables:
            cursor.execute(f"DELETE FROM {quote(table)}")
        for table in tables:
            with connection.connection.cursor() as raw:
                with raw.copy(f"COPY {quote(table)} FROM STDIN") as copy, _table(folder, table) as stream:
                    while data := stream.read(_BLOCK):
                        copy.write(data)
                if raw.rowcount != manifest.rows[table]:
                    raise BackupError(f"{table} has {raw.rowcount} rows instead of {manifest.rows[table]}.")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(f"ALTER TABLE {quote(table)} ENABLE TRIGGER USER")
        for statement in connection.ops.sequence_reset_sql(no_style(), list(_models())):
            cursor.execute(statement)


def _table(folder: Path, table: str) -> IO[bytes]:
    return (folder / _DATABASE / f"{table}.copy").open("rb")


def _models() -> Iterator[Any]:
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy:
            yield model


def _put_back_media(unpacked: Path, media: Path) -> None:
    for path in sorted(unpacked.rglob("*")):
        if path.is_file():
            into = media / path.relative_to(unpacked)
            into.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o600)
            os.replace(path, into)

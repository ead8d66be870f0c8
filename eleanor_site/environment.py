"""What the settings read from the environment: each value is understood or refused with one sentence, never guessed.

Every function raises ``ImproperlyConfigured`` with a sentence that names the variable and says what to write instead;
no sentence repeats a password or a key.
"""

import contextlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})

SECRET_KEY_LENGTH = 50  # what Django's own deployment check (security.W009) asks for

POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")
POSTGRESQL_FORM = "postgresql://user:password@host:5432/name"


def flag(name: str, default: bool) -> bool:
    """Return the switch ``name``: 1, true, yes, on or 0, false, no, off, in any case; ``default`` when unset."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    word = raw.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0 (true, yes, on, false, no and off do as well), not {raw!r}.")


def number(name: str, default: int, *, at_least: int = 0) -> int:
    """Return the whole number ``name``, which is ``at_least`` that much; ``default`` when unset."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
    if value < at_least:
        raise ImproperlyConfigured(f"{name} must be {at_least} or more, not {value}.")
    return value


def text(name: str, default: str, *, choices: Sequence[str] = ()) -> str:
    """Return the text ``name`` without surrounding blanks, one of ``choices`` if given; ``default`` when unset."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    value = raw.strip()
    if choices and value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {raw!r}.")
    return value


def words(name: str, default: Sequence[str]) -> list[str]:
    """Return the comma-separated list ``name`` without blanks and empty items; ``default`` when unset."""
    raw = os.environ.get(name)
    if raw is None:
        return list(default)
    return [word for word in (part.strip() for part in raw.split(",")) if word]


def secret(var_dir: Path, *, required: bool = False) -> str:
    """Return SECRET_KEY, or the key kept in ``var_dir/secret_key``, which is made at the first call with mode 0600.

    Processes that start at the same moment all get the same key. ``required`` is for sites that others can reach:
    they bring a key of their own.
    """
    given = os.environ.get("SECRET_KEY")
    if given is None and required:
        raise ImproperlyConfigured(
            f"SECRET_KEY must be set, to {SECRET_KEY_LENGTH} random characters or more, where ALLOWED_HOSTS names "
            "anything but this machine."
        )
    if given is not None:
        if len(given) < SECRET_KEY_LENGTH:
            raise ImproperlyConfigured(f"SECRET_KEY must have {SECRET_KEY_LENGTH} characters or more.")
        return given
    path = var_dir / "secret_key"
    try:
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(SECRET_KEY_LENGTH))
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(
            f"The secret key can't be kept in {path} ({_reason(error)}): make that folder writable or set SECRET_KEY."
        ) from error
    if len(key) < SECRET_KEY_LENGTH:
        raise ImproperlyConfigured(f"{path} holds no usable key: delete it, and the next start makes a new one.")
    return key


# What a web process of eight threads is started with. It keeps connections; and it answers questions about columns of
# a million points from many threads, so memory that one of them gives back must serve the others: with an arena a
# thread, and a pool of Arrow's own, a fifth of what the points take was held for nothing.
WEB_PROCESS: Final[Mapping[str, str]] = MappingProxyType(
    {"DATABASE_CONN_MAX_AGE": "600", "MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
)


def database(url: str | None, var_dir: Path) -> dict[str, Any]:
    """Return Django's database settings: the PostgreSQL server at ``url``, or SQLite in ``var_dir`` without one.

    SQLite begins every transaction with the write lock: a transaction that reads first and then writes would
    otherwise fail at once with "database is locked" whenever another one wrote in between (architecture.md 5.5).
    """
    # A command or a task closes its connection when it is done; the web process asks for 600 seconds.
    lifetime = {"CONN_MAX_AGE": number("DATABASE_CONN_MAX_AGE", 0), "CONN_HEALTH_CHECKS": True}
    if url is None:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(var_dir / "eleanor.sqlite3"),
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                # A page cache for each thread of the web process; the system's own cache does the rest.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-1000;",
            },
            **lifetime,
        }
    return {"ENGINE": "django.db.backends.postgresql", **_postgresql(url), **lifetime}


def _postgresql(url: str) -> dict[str, Any]:
    if not url.startswith(POSTGRESQL_SCHEMES):
        scheme = url.partition("://")[0] if "://" in url else "no scheme"
        raise ImproperlyConfigured(
            f"DATABASE_URL must look like {POSTGRESQL_FORM}, not start with {scheme[:20]!r}; "
            "without it the database is SQLite in var/."
        )
    # Only here: without DATABASE_URL nobody pays for loading the driver.
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except (ProgrammingError, UnicodeError):
        # The driver's own sentence repeats the address, and with it the password.
        raise ImproperlyConfigured(
            f"DATABASE_URL can't be read: write {POSTGRESQL_FORM}, with special characters in the password "
            "percent-encoded and nothing but PostgreSQL's connection options after a question mark."
        ) from None
    name = parts.pop("dbname", None)
    if not name:
        raise ImproperlyConfigured(f"DATABASE_URL names no database: write {POSTGRESQL_FORM}.")
    return {
        "NAME": name,
        "USER": parts.pop("user", "") or "",
        "PASSWORD": parts.pop("password", "") or "",
        "HOST": parts.pop("host", "") or "",
        "PORT": str(parts.pop("port", "") or ""),
        "OPTIONS": {"connect_timeout": 10, **parts},
    }


def _write_once(path: Path, content: str) -> None:
    """Write ``content`` to ``path`` unless somebody else has just done so; nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(content + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "not a text file"

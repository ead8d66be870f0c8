"""Makes and refreshes ``.venv``, then re-runs the command inside it (architecture.md section 5.2).

Standard library only: this runs before anything is installed. Every failure is a ``SetupError`` with one sentence
that says what to do.
"""

import ast
import contextlib
import errno
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NoReturn

Lock = Literal["base", "dev"]

ENVIRONMENT = ".venv"
STAMP = "eleanor-stamp"
LOCKS = Path("eleanor_site", "requirements")

# What installers print, in the order in which to look for it, and what it means to the person at the terminal.
FAILURES: tuple[tuple[str, str], ...] = (
    (
        r"hash mismatch|do not match the hashes",
        "A downloaded package isn't the one pinned in {lock} (its hash differs), so nothing was installed: "
        "restore that file or ask who runs your package mirror, then try again.",
    ),
    (
        r"no space left on device|os error 28\b|disk quota exceeded",
        "The disk is full: free about 1 GB for {folder} and its download cache, then try again.",
    ),
    (
        r"read-only file system|permission denied|operation not permitted|os error (13|30)\b",
        "The packages can't be written to {folder} or to the download cache: make both writable, then try again.",
    ),
    (
        r"no usable wheels|no wheels? with a matching|no matching distribution found for .*\(from -r|"
        r"requires a different python|not compatible with this python",
        "A pinned package has no ready-made wheel for this Python ({python}) on this machine: "
        "use Python 3.11, 3.12 or 3.13 on 64-bit Linux or macOS.",
    ),
    (
        r"error sending request|failed to fetch|dns error|name resolution|name or service not known|"
        r"connection (refused|reset|aborted)|network is unreachable|timed? ?out|newconnectionerror|proxyerror|"
        r"could not connect|sslerror|certificate|no matching distribution found",
        "The package index can't be reached: check the network (behind a proxy set HTTPS_PROXY, for a mirror "
        "UV_DEFAULT_INDEX or PIP_INDEX_URL), then try again.",
    ),
)

# pip's settings that uv must share to find the same index, under uv's names.
PIP_SETTINGS = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}


class SetupError(Exception):
    """The environment can't be made; the message is one sentence for the person at the terminal."""


def ensure_environment(root: Path, *, lock: Lock) -> None:
    """Re-run this command inside a current ``.venv``; return only when that is not wanted.

    It isn't inside an active virtual environment and with ``ELEANOR_NO_BOOTSTRAP=1``: whoever made that environment
    looks after it.
    """
    if sys.prefix != sys.base_prefix or os.environ.get("ELEANOR_NO_BOOTSTRAP") == "1":
        return
    try:
        python = refresh(root, lock=lock)
    except OSError as error:
        raise SetupError(folder_sentence(error, root / ENVIRONMENT)) from error
    except KeyboardInterrupt:
        raise SetupError("Stopped while setting up; the next command starts the set-up again.") from None
    # With it set, every process start would compile all of Django again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    become(sys.orig_argv[1:], python=str(python))


def refresh(root: Path, *, lock: Lock) -> Path:
    """Return the Python of a ``.venv`` that holds what ``lock`` pins, made or brought up to date first if need be."""
    folder = root / ENVIRONMENT
    python = folder / "bin" / "python"
    if _is_current(root, lock):
        return python
    with _alone(root):
        if _is_current(root, lock):  # somebody else made it while we waited
            return python
        if lock == "dev" and _is_current(root, "base"):
            print("Installing what the tests need …", file=sys.stderr, flush=True)
            uv, environment = _uv(root, folder)
        else:
            print(f"Setting up {ENVIRONMENT} (only when the pinned packages changed) …", file=sys.stderr, flush=True)
            _remove(folder)
            uv, environment = _new_environment(root, folder)
        _install(uv, environment, root, lock)
        (folder / STAMP).write_text(_stamp(root, lock), encoding="ascii")
    return python


def become(arguments: Sequence[str], *, python: str = sys.executable) -> NoReturn:
    """Replace this process by ``python`` with these arguments."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(python, [python, *arguments])


def require(module: str, root: Path, *, lock: Lock) -> None:
    """Raise ``SetupError`` when the environment that was given to us lacks ``module``."""
    if importlib.util.find_spec(module) is None:
        raise SetupError(
            f"This Python environment ({sys.prefix}) has no {module}: install {_lock_file(root, lock)} into it, "
            "or leave it (deactivate, unset ELEANOR_NO_BOOTSTRAP) and let the command make its own."
        )


def folder_sentence(error: OSError, folder: Path) -> str:
    """Say in one sentence why ``folder`` can't be written."""
    if error.errno == errno.ENOSPC:
        return f"The disk is full: free about 1 GB for {folder}, then try again."
    return (
        f"{folder} can't be written ({error.strerror or error}): make the folder writable, "
        "or clone into one that is, then try again."
    )


def _is_current(root: Path, lock: Lock) -> bool:
    folder = root / ENVIRONMENT
    if not os.access(folder / "bin" / "python", os.X_OK):
        return False
    try:
        found = (folder / STAMP).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return False
    # What the tests need includes what the product needs.
    enough: tuple[Lock, ...] = ("base", "dev") if lock == "base" else ("dev",)
    return any(found == _stamp(root, each) for each in enough)


def _stamp(root: Path, lock: Lock) -> str:
    digest = hashlib.sha256(_lock_file(root, lock).read_bytes())
    digest.update(f"{lock} {sys.implementation.cache_tag}".encode())
    return digest.hexdigest()


def _lock_file(root: Path, name: str) -> Path:
    return root / LOCKS / f"{name}.txt"


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the checkout's folder itself as a lock: two first commands must not make one environment."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _new_environment(root: Path, folder: Path) -> tuple[str, dict[str, str]]:
    uv = _uv_on_path()
    if uv is None:
        _venv(folder, with_pip=not _has_pip())
        return _uv(root, folder)
    made = _run([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)], os.environ)
    if made.returncode:
        raise _setup_error(made.stderr, root, "uv")
    return uv, dict(os.environ)


def _venv(folder: Path, *, with_pip: bool) -> None:
    try:
        import venv

        if with_pip:
            import ensurepip  # noqa: F401 - Debian ships it apart
    except ModuleNotFoundError as error:
        raise SetupError(
            f"This Python lacks its {error.name} module: install it (on Debian and Ubuntu: apt install python3-venv), "
            "then try again."
        ) from None
    try:
        venv.create(folder, symlinks=True, with_pip=with_pip)
    except subprocess.CalledProcessError as error:
        raise SetupError(
            "This Python can't make a virtual environment (on Debian and Ubuntu: apt install python3-venv): "
            f"{_last_line(str(error.output or error))}"
        ) from None


def _uv(root: Path, folder: Path) -> tuple[str, dict[str, str]]:
    """Return uv and the environment to run it in; the pinned one is installed beside the packages if there is none."""
    uv = _uv_on_path()
    if uv is not None:
        return uv, dict(os.environ)
    pip = [sys.executable if _has_pip() else str(folder / "bin" / "python"), "-m", "pip"]
    own = folder / "uv"
    if not (own / "bin" / "uv").exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:"]
        lock = _lock_file(root, "uv")
        fetched = _run(
            [*pip, "install", *options, "--require-hashes", "--target", str(own), "-r", str(lock)], os.environ
        )
        if fetched.returncode:
            raise _setup_error(fetched.stdout + fetched.stderr, root, "uv")
    # pip has just reached its index, so uv asks there too.
    return str(own / "bin" / "uv"), {**_pip_settings(pip), **os.environ}


def _uv_on_path() -> str | None:
    uv = shutil.which("uv")
    # A version manager's shim may stand there with nothing behind it.
    return uv if uv is not None and _run([uv, "--version"], os.environ).returncode == 0 else None


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _pip_settings(pip: Sequence[str]) -> dict[str, str]:
    lines = _run([*pip, "config", "list"], os.environ).stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    settings = {}
    for name, uv_name in PIP_SETTINGS.items():
        for section in (":env:", "install", "global"):  # pip's own order
            value = found.get(f"{section}.{name}")
            if value is not None:
                settings[uv_name] = str(ast.literal_eval(value))
                break
    return settings


def _install(uv: str, environment: Mapping[str, str], root: Path, lock: Lock) -> None:
    python = root / ENVIRONMENT / "bin" / "python"
    options = ["--quiet", "--require-hashes", "--only-binary", ":all:", "--python", str(python)]
    done = _run([uv, "pip", "install", *options, "-r", str(_lock_file(root, lock))], environment)
    if done.returncode:
        raise _setup_error(done.stdout + done.stderr, root, lock)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", errors="replace")


def _setup_error(output: str, root: Path, lock: str) -> SetupError:
    for pattern, sentence in FAILURES:
        if re.search(pattern, output, re.IGNORECASE):
            return SetupError(
                sentence.format(lock=LOCKS / f"{lock}.txt", folder=root / ENVIRONMENT, python=sys.version.split()[0])
            )
    return SetupError(f"The packages can't be installed: {_last_line(output)}")


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else "the installer gave no reason"

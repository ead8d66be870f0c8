"""The set-up with real installers, on a small checkout whose lock files name a package that the test builds itself.

Nothing is downloaded: the installers are pointed at a folder of wheels.
"""

import ast
import base64
import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
HOST_PYTHON = str(getattr(sys, "_base_executable", sys.executable))

# Stands in for manage.py: the same call, then what the environment looks like from inside. HIDE names modules that
# this Python shall lack.
PROBE = """
import os, pathlib, sys
if sys.prefix == sys.base_prefix:
    for name in os.environ.get("HIDE", "").split():
        sys.modules[name] = None
from eleanor_site import bootstrap
try:
    bootstrap.ensure_environment(pathlib.Path(__file__).resolve().parent, lock=sys.argv[1])
except bootstrap.SetupError as error:
    sys.exit(str(error))
try:
    import eleanor_toy
    version = eleanor_toy.VERSION
except ModuleNotFoundError:
    version = None
print("inside", sys.prefix != sys.base_prefix)
print("toy", version)
print("arguments", sys.argv[1:])
print("bytecode", os.environ.get("PYTHONDONTWRITEBYTECODE"))
"""


def found_uv() -> str | None:
    own = Path(sys.prefix, "uv", "bin", "uv")
    return shutil.which("uv") or (str(own) if own.exists() else None)


needs_uv = pytest.mark.skipif(found_uv() is None, reason="no uv: neither on the PATH nor in .venv/uv")
needs_pip = pytest.mark.skipif(
    subprocess.run([HOST_PYTHON, "-c", "import pip"], capture_output=True).returncode != 0,
    reason="the Python behind this environment has no pip",
)


def uv_wheel(folder: Path) -> str:
    """Put the real uv into a wheel in ``folder``, for pip to install, and return its line for a lock file."""
    uv = found_uv()
    assert uv is not None
    return build_wheel(folder, "uv", "0.0.1", {"uv-0.0.1.data/scripts/uv": Path(uv).read_bytes()})


def build_wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> str:
    """Write a wheel of these files into ``folder`` and return its line for a lock file."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
        for path, data in content.items()
    )
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in content.items():
            entry = zipfile.ZipInfo(inner)
            entry.external_attr = (stat.S_IFREG | 0o755) << 16
            archive.writestr(entry, data)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@dataclass
class Checkout:
    root: Path
    wheels: Path
    environment: dict[str, str] = field(default_factory=dict)

    def lock(self, name: str, content: str) -> None:
        (self.root / "eleanor_site" / "requirements" / f"{name}.txt").write_text(content)

    def start(self, lock: str = "base", *more: str, python: str = HOST_PYTHON) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, "probe.py", lock, *more],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, lock: str = "base", *more: str, python: str = HOST_PYTHON) -> subprocess.CompletedProcess[str]:
        process = self.start(lock, *more, python=python)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def mark(self) -> None:
        (self.root / ".venv" / "mark").touch()

    def is_marked(self) -> bool:
        return (self.root / ".venv" / "mark").exists()

    def toy(self, version: str, name: str = "eleanor_toy") -> str:
        return build_wheel(self.wheels, name, version, {f"{name}.py": f"VERSION = {version!r}\n".encode()})


with_and_without_uv = pytest.mark.parametrize(
    "prepared",
    [pytest.param("uv on the path", marks=needs_uv), pytest.param("uv by pip", marks=[needs_uv, needs_pip])],
    indirect=True,
)


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    """A checkout with no uv on the PATH, and a host whose pip finds no wheels but those of the test."""
    root, wheels = tmp_path / "a clone é", tmp_path / "wheels"
    (root / "eleanor_site" / "requirements").mkdir(parents=True)
    wheels.mkdir()
    shutil.copy(ROOT / "manage.py", root)
    for name in ("__init__.py", "bootstrap.py"):
        shutil.copy(ROOT / "eleanor_site" / name, root / "eleanor_site")
    (root / "probe.py").write_text(PROBE)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "VIRTUAL_ENV", "ELEANOR_"))}
    found = Checkout(root, wheels)
    found.environment = {
        **kept,
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": wheels.as_uri(),
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": wheels.as_uri(),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    found.lock("base", found.toy("1.0"))
    found.lock("dev", found.toy("1.0") + found.toy("3.0", "eleanor_toy_tests"))
    found.lock("uv", "uv==0.0.1 --hash=sha256:" + "0" * 64 + "\n")
    return found


@pytest.fixture(params=[pytest.param("uv on the path", marks=needs_uv)])
def prepared(request, checkout) -> Checkout:
    """The checkout with uv on the PATH, or without it: then the host's pip installs it from a wheel."""
    if request.param == "uv on the path":
        uv = found_uv()
        assert uv is not None
        checkout.environment["PATH"] = f"{Path(uv).parent}:{checkout.environment['PATH']}"
    else:
        checkout.lock("uv", uv_wheel(checkout.wheels))
    return checkout


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The command failed with one line that holds these words, after at most the line on what it was doing."""
    lines = [line for line in done.stderr.splitlines() if not line.endswith("…")]
    assert done.returncode == 1, done.stderr
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in lines[0]


@with_and_without_uv
def test_first_command_sets_up_and_runs_inside(prepared):
    done = prepared.run("base", "--port", "8001", "a b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "inside True",
        "toy 1.0",
        "arguments ['base', '--port', '8001', 'a b']",
        "bytecode None",
    ]
    assert done.stderr.startswith("Setting up .venv")


@with_and_without_uv
def test_second_command_changes_nothing(prepared):
    assert prepared.run().returncode == 0
    prepared.mark()
    done = prepared.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert prepared.is_marked()


def test_changed_lock_is_installed_by_the_next_command(prepared):
    assert prepared.run().returncode == 0
    prepared.mark()
    prepared.lock("base", prepared.toy("2.0"))
    assert "toy 2.0" in prepared.run().stdout
    assert not prepared.is_marked()


@with_and_without_uv
def test_tests_add_to_what_is_there(prepared):
    assert prepared.run("base").returncode == 0
    prepared.mark()
    done = prepared.run("dev")
    assert done.returncode == 0, done.stderr
    assert "Installing what the tests need" in done.stderr
    assert prepared.is_marked()
    assert list((prepared.root / ".venv").glob("lib/*/site-packages/eleanor_toy_tests.py"))
    done = prepared.run("base")
    assert (done.returncode, done.stderr) == (0, ""), "what the tests need is enough for the product"


@pytest.mark.parametrize("damage", ["stamp", "python"])
def test_unfinished_environment_is_made_anew(prepared, damage):
    assert prepared.run().returncode == 0
    prepared.mark()
    (prepared.root / ".venv" / ("eleanor-stamp" if damage == "stamp" else "bin/python")).unlink()
    assert prepared.run().returncode == 0
    assert not prepared.is_marked()


def test_two_first_commands_make_one_environment(prepared):
    both = [prepared.start(), prepared.start()]
    ends = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    assert sum("Setting up" in errors for _, errors in ends) == 1


@needs_uv
def test_broken_uv_on_the_path_is_passed_over(checkout, tmp_path):
    shim = tmp_path / "shims" / "uv"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'uv: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    checkout.environment["PATH"] = f"{shim.parent}:{checkout.environment['PATH']}"
    uv = found_uv()
    assert uv is not None
    checkout.lock("uv", uv_wheel(checkout.wheels))
    done = checkout.run()
    assert done.returncode == 0, done.stderr


def test_inside_an_environment_nothing_is_made(checkout):
    done = checkout.run(python=sys.executable)
    assert done.stdout.splitlines()[:2] == ["inside True", "toy None"]
    assert not (checkout.root / ".venv").exists()


def test_without_bootstrap_nothing_is_made(checkout):
    checkout.environment["ELEANOR_NO_BOOTSTRAP"] = "1"
    done = checkout.run()
    assert done.stdout.splitlines()[0] == "inside False"
    assert not (checkout.root / ".venv").exists()


@pytest.mark.parametrize(("command", "module"), [("up", "django"), ("test", "pytest")])
def test_foreign_environment_without_the_packages_is_named(checkout, command, module):
    checkout.environment["ELEANOR_NO_BOOTSTRAP"] = "1"
    bare = subprocess.run(
        [HOST_PYTHON, "-S", "manage.py", command],
        cwd=checkout.root,
        env=checkout.environment,
        capture_output=True,
        text=True,
    )
    assert_one_sentence(bare, f"has no {module}", "requirements/")


@with_and_without_uv
def test_wrong_hash(prepared):
    prepared.lock("base", "eleanor_toy==1.0 --hash=sha256:" + "0" * 64 + "\n")
    assert_one_sentence(prepared.run(), "isn't the one pinned in eleanor_site/requirements/base.txt")
    assert "toy 1.0" not in prepared.run().stdout, "a second try must not run without the package"


@needs_pip
def test_wrong_hash_of_the_installer(checkout):
    build_wheel(checkout.wheels, "uv", "0.0.1", {"uv.py": b""})
    assert_one_sentence(checkout.run(), "isn't the one pinned in eleanor_site/requirements/uv.txt")


def test_package_without_hash(prepared):
    prepared.lock("base", "eleanor_toy==1.0\n")
    assert_one_sentence(prepared.run(), "all requirements must have a hash")


@needs_uv
def test_no_network_for_uv(checkout):
    uv = found_uv()
    assert uv is not None
    del checkout.environment["UV_OFFLINE"], checkout.environment["UV_FIND_LINKS"]
    checkout.environment["PATH"] = f"{Path(uv).parent}:{checkout.environment['PATH']}"
    checkout.environment |= {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    assert_one_sentence(checkout.run(), "can't be reached", "check the network")


@needs_pip
def test_no_network_for_pip(checkout):
    del checkout.environment["PIP_NO_INDEX"], checkout.environment["PIP_FIND_LINKS"]
    checkout.environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    assert_one_sentence(checkout.run(), "can't be reached", "check the network")


@needs_uv
@needs_pip
def test_uv_asks_where_pip_asks(checkout):
    """A host whose pip knows a mirror has no settings for uv."""
    mirror = checkout.wheels.parent / "mirror"
    for name in ("eleanor-toy", "uv"):
        (mirror / name).mkdir(parents=True)
    checkout.lock("uv", uv_wheel(mirror / "uv"))
    shutil.copy(checkout.wheels / "eleanor_toy-1.0-py3-none-any.whl", mirror / "eleanor-toy")
    for name in ("eleanor-toy", "uv"):
        links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in (mirror / name).glob("*.whl"))
        (mirror / name / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    configuration = checkout.wheels.parent / "pip.conf"
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "UV_OFFLINE", "UV_FIND_LINKS"):
        del checkout.environment[name]
    with served(mirror) as url:
        configuration.write_text(f"[global]\nindex-url = {url}\n")
        checkout.environment["PIP_CONFIG_FILE"] = str(configuration)
        done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert "toy 1.0" in done.stdout


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine."""
    log = folder.parent / "served.log"
    with open(log, "w") as output:
        server = subprocess.Popen(
            [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)],
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: "http://127.0.0.1:" in log.read_text(), what="the server")
        yield log.read_text().partition("(")[2].partition(")")[0].rstrip("/")
    finally:
        server.terminate()
        server.wait()


def test_read_only_folder(prepared):
    prepared.root.chmod(0o555)
    try:
        command = [HOST_PYTHON, "probe.py", "base"]
        if os.getuid() == 0:  # root writes anywhere, unless it gives up that very right
            if shutil.which("setpriv") is None:
                pytest.skip("as root this needs setpriv")
            rights = "-dac_override,-dac_read_search"
            command = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
        done = subprocess.run(command, cwd=prepared.root, env=prepared.environment, capture_output=True, text=True)
    finally:
        prepared.root.chmod(0o755)
    assert_one_sentence(done, ".venv", "writable")


@pytest.mark.parametrize("kilobytes", [16, 600])
def test_full_disk(prepared, kilobytes, tmp_path):
    """Too small for an environment, and too small for what goes into it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        shutil.copytree(prepared.root, disk / "clone")
        big = build_wheel(
            prepared.wheels, "eleanor_toy", "9.0", {"eleanor_toy.py": b"VERSION = 9\n#" + b"x" * 2_000_000}
        )
        prepared.root = disk / "clone"
        prepared.lock("base", big)
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "filling").write_bytes(b"x" * max(0, free - kilobytes * 1024))
        assert_one_sentence(prepared.run(), "The disk is full")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_python_without_venv(checkout):
    checkout.environment["HIDE"] = "venv"
    assert_one_sentence(checkout.run(), "lacks its venv module", "apt install python3-venv")


def test_python_without_pip_and_ensurepip(checkout):
    checkout.environment["HIDE"] = "pip ensurepip"
    assert_one_sentence(checkout.run(), "lacks its ensurepip module", "apt install python3-venv")


@needs_uv
def test_python_without_pip_makes_its_own(checkout):
    checkout.environment["HIDE"] = "pip"
    checkout.lock("uv", uv_wheel(checkout.wheels))
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert "toy 1.0" in done.stdout


def test_anything_else_is_passed_on_in_one_line(prepared):
    prepared.lock("base", "eleanor_toy == one point zero\n")
    assert_one_sentence(prepared.run(), "The packages can't be installed: ")


def test_interrupted_set_up(checkout, tmp_path):
    """Ctrl-C while the installer works: one sentence, and no half environment that passes for a whole one."""
    uv = tmp_path / "slow" / "uv"
    uv.parent.mkdir()
    uv.write_text(f"#!/bin/sh\n[ $1 = --version ] && exit\necho $$ > '{tmp_path}/started'\nexec sleep 600\n")
    uv.chmod(0o755)
    checkout.environment["PATH"] = f"{uv.parent}:{checkout.environment['PATH']}"
    process = checkout.start()
    until((tmp_path / "started").exists, what="the start of the installer")
    process.send_signal(2)
    output, errors = process.communicate(timeout=30)
    assert_one_sentence(
        subprocess.CompletedProcess([], process.returncode, output, errors), "the next command starts the set-up again"
    )
    assert not (checkout.root / ".venv" / "eleanor-stamp").exists()


@pytest.mark.parametrize("version", ["3.10.14", "3.6.15", "4.0"])
def test_python_version(checkout, version):
    numbers = tuple(map(int, version.split(".")))
    script = (
        f"import runpy, sys; sys.version_info = {(*numbers, 0)[:3]!r} + ('final', 0);"
        f"sys.version = {version + ' (x)'!r}; sys.argv = ['manage.py', 'help'];"
        "runpy.run_path('manage.py', run_name='__main__')"
    )
    checkout.environment["ELEANOR_NO_BOOTSTRAP"] = "1"
    done = subprocess.run(
        [HOST_PYTHON, "-S", "-c", script], cwd=checkout.root, env=checkout.environment, capture_output=True, text=True
    )
    if numbers < (3, 11):
        assert_one_sentence(done, f"needs Python 3.11 or newer, and this is Python {version}")
    else:
        assert "needs Python" not in done.stderr


def test_old_pythons_can_read_the_entry_point():
    """They must get as far as the sentence, so nothing newer than they are may stand in the file."""
    ast.parse((ROOT / "manage.py").read_text(encoding="utf-8"), feature_version=(3, 6))

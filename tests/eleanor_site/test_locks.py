"""The lock files: what pyproject.toml asks for, pinned and hashed, with no address in them."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "eleanor_site" / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DIRECT = f"{PROJECT['name']} (pyproject.toml)"

lock_names = pytest.mark.parametrize("name", ["base", "dev", "uv"])


@dataclass(frozen=True)
class Pin:
    requirement: Requirement
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "==", self.requirement
        return specifier.version


def pins(name: str) -> list[Pin]:
    """Return the entries of a lock file: a requirement, its hashes, and the comments that say who wants it."""
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    found = []
    for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE):
        if entry.startswith("#") or not entry.strip():
            continue
        requirement = re.split(r"\s*\\$|\s*#|\s+--hash", entry, maxsplit=1, flags=re.MULTILINE)[0].strip()
        comments = [
            line.strip().lstrip("# ").removeprefix("via ").strip() for line in entry.splitlines() if "#" in line
        ]
        found.append(Pin(Requirement(requirement), tuple(re.findall(r"--hash=(\S+)", entry)), tuple(comments)))
    return found


def asked_for(*extras: str) -> dict[str, list[Requirement]]:
    """Return what pyproject.toml asks for, by name: its dependencies and those of these extras."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    found: dict[str, list[Requirement]] = {}
    for requirement in map(Requirement, lines):
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


@lock_names
def test_no_lock_holds_an_address(name):
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    assert not re.search(
        r"://|\bfile:|^\s*(-i|-f|--\w*index\w*(-url)?|--find-links|--trusted-host)\b", text, re.MULTILINE
    )


@lock_names
def test_every_package_is_pinned_and_hashed(name):
    for pin in pins(name):
        assert pin.version
        assert pin.hashes, pin.name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in pin.hashes), pin.name


@pytest.mark.parametrize(("name", "extras"), [("base", []), ("dev", ["dev"])])
def test_lock_and_project_agree(name, extras):
    wanted = asked_for(*extras)
    direct = [pin for pin in pins(name) if any(DIRECT in comment for comment in pin.wanted_by)]
    direct_names = {pin.name for pin in direct}
    assert direct_names == set(wanted), "run uv pip compile again"
    for pin in direct:
        for requirement in wanted[pin.name]:
            assert requirement.specifier.contains(pin.version, prereleases=True), f"{requirement}, but {pin.version}"


def test_tests_run_on_what_the_product_runs_on():
    base, dev = ({(pin.name, pin.version) for pin in pins(name)} for name in ("base", "dev"))
    assert base <= dev


def test_only_uv_installs():
    assert [pin.name for pin in pins("uv")] == ["uv"]

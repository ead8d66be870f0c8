"""Checkers of recorded wrapper results, one module a kind of file.

Each module has `PATTERN`, the file's path inside the folder (a glob), and `check(path, folder)`, which yields the name
of every case with None, or with what is wrong. `JINJA = True` lists the file apart, since the template engine isn't
the original's and only its agreement is reported.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.golden._wrapper_cases.folder import GoldenFolder

Outcome = tuple[str, str | None]
Check = Callable[[Path, GoldenFolder], Iterator[Outcome]]
NOT_CHECKERS = {"folder", "reference_wording"}


@dataclass(frozen=True)
class Checker:
    pattern: str
    check: Check
    jinja: bool


def checkers() -> list[Checker]:
    """All of them, exact names before globs."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name in NOT_CHECKERS:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        found.append(Checker(module.PATTERN, module.check, getattr(module, "JINJA", False)))
    return sorted(found, key=lambda checker: ("*" in checker.pattern, checker.pattern))


def checker_for(relative: str, among: list[Checker]) -> Checker | None:
    return next((checker for checker in among if fnmatchcase(relative, checker.pattern)), None)

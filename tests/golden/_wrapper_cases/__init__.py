"""Checkers of recorded wrapper results, one module a kind of file.

Each module has `PATTERN`, the file's path inside the folder (a glob), and `check(path, folder)`, which yields the name
of every case with None, or with what is wrong. `JINJA = True` lists the file apart, since the template engine isn't
the original's and only its agreement is reported; `is_apart(name)` does so for some cases of a file.
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
    is_apart: Callable[[str], bool]


def checkers() -> list[Checker]:
    """All of them, exact names before globs."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name in NOT_CHECKERS:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        whole_file = getattr(module, "JINJA", False)
        is_apart = getattr(module, "is_apart", lambda name, whole_file=whole_file: whole_file)
        found.append(Checker(module.PATTERN, module.check, is_apart))
    return sorted(found, key=lambda checker: ("*" in checker.pattern, checker.pattern))


def checker_for(relative: str, among: list[Checker]) -> Checker | None:
    return next((checker for checker in among if fnmatchcase(relative, checker.pattern)), None)

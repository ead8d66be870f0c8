"""`python -m tests.golden wrappers DIR [--only NAME] [--show N]`: recorded results of chat wrappers.

DIR holds `settings.json`, `render/` and so on, or a folder `golden` with them. Every file is checked by the module of
`tests.golden._wrapper_cases` whose pattern fits. Files of the template engine are listed apart: the product uses
another engine, so their agreement is reported and doesn't count.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden._wrapper_cases import Checker, checker_for, checkers
from tests.golden._wrapper_cases.folder import GoldenFolder

INPUTS = {"meta.json", "histories.json", "functions.json", "jinja-templates.json"}


@dataclass
class Tally:
    """What came out of one file."""

    relative: str
    jinja: bool
    passed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.passed + len(self.failures)


def tallies(golden: Path, only: str | None = None) -> Iterator[Tally]:
    """Each golden file with its passed and failed cases; a file that no checker knows fails as one case."""
    known = checkers()
    folder = GoldenFolder(golden)
    for path in sorted(golden.rglob("*.json")):
        relative = path.relative_to(golden).as_posix()
        if relative in INPUTS or (only is not None and only not in relative):
            continue
        yield from _tallies(path, relative, checker_for(relative, known), folder)


def _tallies(path: Path, relative: str, checker: Checker | None, folder: GoldenFolder) -> list[Tally]:
    """The counted cases of a file and those listed apart, as far as there are any."""
    if checker is None:
        return [Tally(relative, False, failures=[(relative, "no checker knows this file")])]
    counted, apart = Tally(relative, False), Tally(relative, True)
    for name, wrong in _cases(path, checker, folder):
        tally = apart if checker.is_apart(name) else counted
        if wrong is None:
            tally.passed += 1
        else:
            tally.failures.append((name, wrong))
    return [tally for tally in (counted, apart) if tally.total]


def _cases(path: Path, checker: Checker, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    """What a checker says of each case; a case it stumbles over fails and ends this file, not the other ones."""
    try:
        yield from checker.check(path, folder)
    except Exception as error:
        yield "the next case and those behind it", f"{type(error).__name__}: {error}"


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden wrappers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="files whose path has this in it")
    parser.add_argument("--show", type=int, default=20, help="failing cases printed a file")
    arguments = parser.parse_args(argv)
    golden = arguments.folder / "golden" if (arguments.folder / "golden").is_dir() else arguments.folder
    found = list(tallies(golden, arguments.only))
    if not found:
        print(f"no recorded results in {golden}")
        return 2
    for tally in found:
        for name, wrong in tally.failures[: arguments.show]:
            print(f"FAIL {tally.relative} {name}\n  {wrong}")
        if len(tally.failures) > arguments.show:
            print(f"FAIL {tally.relative} … and {len(tally.failures) - arguments.show} more")
    counted = [tally for tally in found if not tally.jinja]
    apart = [tally for tally in found if tally.jinja]
    for title, group in (("template engine, agreement only", apart), ("counted", counted)):
        if group:
            print(f"\n{title}:")
        for tally in group:
            print(f"  {tally.relative}: {tally.passed} of {tally.total}")
    passed, total = sum(tally.passed for tally in counted), sum(tally.total for tally in counted)
    print(f"\n{passed} of {total}")
    return 0 if passed == total else 1

"""Shared by `python -m tests.golden`, `tests.bench`: the first word names the module that runs."""

import importlib
import io
import pkgutil
import sys


def dispatch(package: str, argv: list[str]) -> int:
    """Run `<package>.<name>.run(rest)` and return its exit status; 2 when there is no such name."""
    found = importlib.import_module(package)
    names = sorted(m.name for m in pkgutil.iter_modules(found.__path__) if not m.name.startswith("_"))
    if not argv or argv[0] not in names:
        print(f"usage: python -m {package} NAME …   NAME is one of: {', '.join(names)}")
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # half of an emoji in a case must not end the report
    module = importlib.import_module(f"{package}.{argv[0]}")
    status: int = module.run(argv[1:])
    return status

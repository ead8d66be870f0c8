#!/usr/bin/env python3
"""Entry point. ``up`` and ``test`` work in a fresh clone, before anything is installed."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the very case this line is for; no newer syntax in this file
    sys.exit(
        "Eleanor Console needs Python 3.11 or newer, and this is Python "
        + sys.version.split()[0]
        + ": install a newer one and run it instead, for example python3.11 manage.py up."
    )

import os
import pathlib

from eleanor_site import bootstrap


def main() -> None:
    root = pathlib.Path(__file__).resolve().parent
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    try:
        bootstrap.ensure_environment(root, lock="dev" if command == "test" else "base")
        if command == "test":
            run_tests(root, sys.argv[2:])
        run_command(root)
    except bootstrap.SetupError as error:
        sys.exit(str(error))


def run_tests(root: pathlib.Path, arguments: "list[str]") -> None:
    """Become pytest. Not a Django command: that would run under the product's settings, whatever pytest is told."""
    bootstrap.require("pytest", root, lock="dev")
    os.chdir(root)
    from tests import chromium

    chromium.provide()
    bootstrap.become(["-m", "pytest", *arguments])


def run_command(root: pathlib.Path) -> None:
    bootstrap.require("django", root, lock="base")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eleanor_site.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        settings.is_overridden("DEBUG")  # loads them
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(bootstrap.folder_sentence(error, pathlib.Path(error.filename or root / "var")))
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

"""What a newcomer relies on: modules that say what they are, names that mean something, and nothing left over."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from eleanor_site.celery import app

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("chats", "rules", "eleanor_site")
# What a project of this kind always has; their names say all.
SELF_EXPLAINING = ("apps.py", "urls.py", "account_urls.py")
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base_utils"}
DYNAMIC = re.compile(r"([a-zA-Z][\w-]*-)(?:\{\{|\{%|\$\{)")


def modules(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def files(folder: str, *endings: str) -> dict[str, str]:
    found = (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings)
    return {path.relative_to(ROOT / folder).as_posix(): path.read_text() for path in found}


TEMPLATES = files("templates", ".html", ".txt")
SCRIPTS = files("static", ".js")
SHEETS = files("static", ".css")


@cache
def product_text() -> str:
    """All that names a template, a class or a file: code, templates and scripts."""
    code = [path.read_text() for path in modules(*PACKAGES)]
    return "\n".join([*code, *TEMPLATES.values(), *SCRIPTS.values()])


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(*PACKAGES)
        if "migrations" not in path.parts
        and path.name not in SELF_EXPLAINING
        and (text := path.read_text())
        and ast.get_docstring(ast.parse(text)) is None
    ]
    assert silent == []


def test_no_name_says_nothing() -> None:
    parts = {(part, path) for path in modules(*PACKAGES) for part in (path.stem, *path.relative_to(ROOT).parts[:-1])}
    assert [str(path) for part, path in parts if part in EMPTY_NAMES] == []


def test_migrations_import_nothing_of_the_product() -> None:
    """What they need of a later state of the code would be gone, or another, when they run."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules(*PACKAGES)
        if "migrations" in path.parts
        and re.search(rf"^\s*(?:from|import) ({'|'.join(PACKAGES)})\b", path.read_text(), re.M)
    ]
    assert wrong == []


def test_places_that_the_readme_names_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    built = text[text.index("## How it is built") :]
    named = set(re.findall(r"`((?:eleanor_site|chats|rules|templates|static|tests)/[\w/]*(?:\.py)?)`", built))
    assert len(named) > 10
    assert sorted(place for place in named if not (ROOT / place).exists()) == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_is_rendered_or_included(name: str) -> None:
    assert product_text().count(name) > TEMPLATES[name].count(name), "nothing names it"


def test_every_class_of_the_sheets_is_used() -> None:
    text = product_text()
    words, stems = set(re.findall(r"[\w-]+", text)), tuple(set(DYNAMIC.findall(text)))
    unused = set()
    for name, sheet in SHEETS.items():
        selectors = re.sub(r"\{[^{}]*\}", "{}", re.sub(r"/\*.*?\*/", "", sheet, flags=re.S))
        for found in set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors)):
            if found not in words and not found.startswith(("htmx-", *stems)):
                unused.add(f"{name}: {found}")
    assert unused == set()


def test_every_static_file_is_used() -> None:
    text = product_text() + "".join(SHEETS.values()) + (ROOT / "README.md").read_text()
    names = [path.name for path in (ROOT / "static").rglob("*") if path.is_file()]
    assert [name for name in names if name not in text] == []


def test_scheduled_and_routed_tasks_exist() -> None:
    app.loader.import_default_modules()
    named = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} | set(settings.CELERY_TASK_ROUTES)
    assert named <= set(app.tasks)

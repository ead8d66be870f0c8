"""What the structure promises, checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.template import engines
from django.template.loader import get_template

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(str(p.relative_to(ROOT / "templates")) for p in (ROOT / "templates").rglob("*.html"))
DOORS = ("tenants.Membership", "tenants.APIKey")
DOMAINS = ["chats.domain", "chats.domain.formats", "chats.domain.wrappers", "rules.domain", "rules.domain.language"]


def test_import_contracts() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", DOMAINS)
def test_the_domain_needs_no_django(package: str) -> None:
    found = "[m for m in sys.modules if m.split('.')[0] in ('django', 'celery', 'redis')]"
    code = f"import sys, {package}; print({found})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_compile_and_hold_no_inline_script_or_style(name: str) -> None:
    get_template(name)
    text = (ROOT / "templates" / name).read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*[^<\s]", text), "inline script"
    assert not re.search(r"<style|\sstyle=", text), "inline style"
    assert not re.search(r"\son[a-z]+=|hx-on|javascript:|hx-vals=['\"]js:", text), "inline handler"


def test_no_migration_is_missing(db: None) -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_every_template_engine_is_ours() -> None:
    assert [engine.name for engine in engines.all()] == ["django"]


def test_every_model_of_a_tenant_is_scoped() -> None:
    """A model with a tenant is scoped, but for what decides whose scope may be opened."""
    from django_scopes.manager import DisabledQuerySet

    for model in apps.get_models():
        fields = {field.name for field in model._meta.get_fields()}
        if "tenant" not in fields or model._meta.label in DOORS:
            continue
        assert isinstance(model._default_manager.get_queryset(), DisabledQuerySet), model._meta.label

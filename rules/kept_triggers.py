"""SQLite changes a table by building it anew, which drops its triggers. After every migration they are looked after."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.db import connections, transaction


def keep_counting_nudges(sender: Any, using: str, **rest: Any) -> None:
    """Receiver of `post_migrate`: where the triggers of the nudge counts are gone, count again and make them again."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return
    # The migration that made them is the one place that says what they are.
    made = import_module("rules.migrations.0002_nudge_days")
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        there = {name for (name,) in cursor.fetchall()}
        if "rules_nudgeday" not in tables or there.issuperset(made.SQLITE):
            return
        with transaction.atomic(using=using):
            for name in made.SQLITE:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            cursor.execute("DELETE FROM rules_nudgeday")
            for statement in made.SQLITE_START:
                cursor.execute(statement)

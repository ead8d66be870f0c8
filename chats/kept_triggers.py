"""SQLite changes a table by building it anew, which drops its triggers. After every migration they are looked after."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.db import connections, transaction


def keep_indexing_texts(sender: Any, using: str, **rest: Any) -> None:
    """Receiver of `post_migrate`: where the triggers of the search index are gone, make them and the index again."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return
    # The migration that made them is the one place that says what they are.
    table, *triggers = import_module("chats.migrations.0002_search_index").SQLITE
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'chats_search_%'")
        there = {name for (name,) in cursor.fetchall()}
        if "chats_chattext" not in tables or len(there) == len(triggers):
            return
        with transaction.atomic(using=using):
            for name in there:
                cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute("DROP TABLE IF EXISTS chats_search")
            for statement in (table, *triggers):
                cursor.execute(statement)
            cursor.execute("INSERT INTO chats_search(chats_search) VALUES ('rebuild')")

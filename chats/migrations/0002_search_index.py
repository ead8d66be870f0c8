"""The search index: a full-text index on the stems of the texts, in each database's own way.

SQLite keeps an FTS5 table in step by triggers; PostgreSQL has an index on an expression. Both take the stems as they
are, so that both find the same chats. When a later migration makes SQLite build `chats_chattext` anew, the triggers
are made again (`chats.kept_triggers`).
"""

from django.db import migrations

SQLITE = (
    "CREATE VIRTUAL TABLE chats_search USING fts5("
    "stems, content='chats_chattext', content_rowid='chat_id', tokenize='ascii', detail='none')",
    "CREATE TRIGGER chats_search_added AFTER INSERT ON chats_chattext BEGIN "
    "INSERT INTO chats_search(rowid, stems) VALUES (new.chat_id, new.stems); END",
    "CREATE TRIGGER chats_search_removed AFTER DELETE ON chats_chattext BEGIN "
    "INSERT INTO chats_search(chats_search, rowid, stems) VALUES ('delete', old.chat_id, old.stems); END",
    "CREATE TRIGGER chats_search_changed AFTER UPDATE ON chats_chattext BEGIN "
    "INSERT INTO chats_search(chats_search, rowid, stems) VALUES ('delete', old.chat_id, old.stems); "
    "INSERT INTO chats_search(rowid, stems) VALUES (new.chat_id, new.stems); END",
)
POSTGRESQL = ("CREATE INDEX chats_search ON chats_chattext USING gin (array_to_tsvector(string_to_array(stems, ' ')))",)


def make_index(apps, schema_editor):
    for statement in POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX chats_search")
        return
    for name in ("added", "removed", "changed"):
        schema_editor.execute(f"DROP TRIGGER chats_search_{name}")
    schema_editor.execute("DROP TABLE chats_search")


class Migration(migrations.Migration):
    dependencies = [("chats", "0001_initial")]

    operations = [
        migrations.RunPython(make_index, drop_index),
    ]

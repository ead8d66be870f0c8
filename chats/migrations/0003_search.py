"""The search index: the table of texts, and a full-text index on their stems in each database's own way.

SQLite keeps an FTS5 table in step by triggers; PostgreSQL has an index on an expression. Both take the stems as they
are, so that both find the same chats. When a later migration makes SQLite build `chats_chattext` anew, the triggers
are made again (`chats.kept_triggers`).
"""

import django.db.models.deletion
from django.db import migrations, models

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
POSTGRESQL = (
    "CREATE INDEX chats_search ON chats_chattext USING gin (array_to_tsvector(string_to_array(stems, ' ')))",
)


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
    dependencies = [
        ("tenants", "0001_initial"),
        ("chats", "0002_wrapper_templates_and_serving"),
    ]

    operations = [
        migrations.CreateModel(
            name="ChatText",
            fields=[
                (
                    "chat",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="text",
                        serialize=False,
                        to="chats.chat",
                    ),
                ),
                ("stems", models.TextField()),
                ("words", models.TextField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.RunPython(make_index, drop_index),
    ]

"""The database itself refuses to change or remove a row of the change log."""

from django.db import migrations

SQLITE = {
    "audit_no_update": "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit_entry "
    "BEGIN SELECT RAISE(ABORT, 'the change log is append only'); END",
    "audit_no_delete": "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit_entry "
    "BEGIN SELECT RAISE(ABORT, 'the change log is append only'); END",
}
POSTGRESQL = {
    "audit_no_change": "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit_entry "
    "FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "audit_no_truncate": "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_entry "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
}
FUNCTION = (
    "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the change log is append only'; END $$"
)


def refuse_changes(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION)
        for statement in POSTGRESQL.values():
            schema_editor.execute(statement)
        return
    for statement in SQLITE.values():
        schema_editor.execute(statement)


def allow_changes(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name in POSTGRESQL:
            schema_editor.execute(f"DROP TRIGGER {name} ON audit_entry")
        schema_editor.execute("DROP FUNCTION audit_refuse()")
        return
    for name in SQLITE:
        schema_editor.execute(f"DROP TRIGGER {name}")


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(refuse_changes, allow_changes)]

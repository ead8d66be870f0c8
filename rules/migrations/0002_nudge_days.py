"""Triggers that keep the counts by day in step with the recorded nudges, in each database's own way.

SQLite counts row by row; PostgreSQL once a statement, under a lock of the tenant that keeps two imports from waiting
for each other in a circle. Each nudge counts on its day and in the sum over all days, whose `day` is a star. When a
later migration makes SQLite build `rules_recordednudge` anew, they are made again (`rules.kept_triggers`).
"""

from django.db import migrations

KEYS = ("tenant_id", "day", "code", "version", "model", "language", "source", "stage", "outcome")
REST = KEYS[4:]
NAMES = ", ".join(KEYS)


def sqlite_values(row, day=None):
    return [
        f"{row}.tenant_id",
        day or f"coalesce(substr({row}.at, 1, 10), '')",
        f"{row}.code",
        f"coalesce({row}.version_id, 0)",
        *(f"{row}.{name}" for name in REST),
    ]


def sqlite_change(row, sign):
    return " ".join(sqlite_change_of(sqlite_values(row, day), sign) for day in (None, "'*'"))


def sqlite_change_of(values, sign):
    same = " AND ".join(f"{name} = {value}" for name, value in zip(KEYS, values))
    # Without an upsert, since an outer INSERT OR IGNORE would take its place.
    make = (
        f"INSERT INTO rules_nudgeday ({NAMES}, count) SELECT {', '.join(values)}, 0 "
        f"WHERE NOT EXISTS (SELECT 1 FROM rules_nudgeday WHERE {same}); "
    )
    return f"{make if sign == '+' else ''}UPDATE rules_nudgeday SET count = count {sign} 1 WHERE {same};"


WATCHED = "at, code, version_id, model, language, source, stage, outcome"
SQLITE = {
    "nudge_day_added": f"AFTER INSERT ON rules_recordednudge BEGIN {sqlite_change('new', '+')} END",
    "nudge_day_removed": f"AFTER DELETE ON rules_recordednudge BEGIN {sqlite_change('old', '-')} END",
    "nudge_day_changed": f"AFTER UPDATE OF {WATCHED} ON rules_recordednudge "
    f"BEGIN {sqlite_change('old', '-')} {sqlite_change('new', '+')} END",
}

# Count what is there, then watch.
SQLITE_START = (
    *(
        f"INSERT INTO rules_nudgeday ({NAMES}, count) SELECT {', '.join(sqlite_values('n', day))}, count(*) "
        "FROM rules_recordednudge n GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
        for day in (None, "'*'")
    ),
    *(f"CREATE TRIGGER {name} {body}" for name, body in SQLITE.items()),
)

COUNTED = (
    "SELECT tenant_id, d.day, code, "
    f"coalesce(version_id, 0) AS version, {', '.join(REST)}, count(*) AS n "
    "FROM {table}, LATERAL (VALUES (coalesce(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), '')), ('*')) AS d(day) "
    "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
)
LOCK = (
    "PERFORM pg_advisory_xact_lock(826103, t.tenant_id::int) "
    "FROM (SELECT DISTINCT tenant_id FROM {table} ORDER BY tenant_id) t;"
)
ADD = (
    f"INSERT INTO rules_nudgeday ({NAMES}, count) {COUNTED.format(table='added')} "
    f"ON CONFLICT ({NAMES}) DO UPDATE SET count = rules_nudgeday.count + excluded.count;"
)
REMOVE = (
    "UPDATE rules_nudgeday d SET count = d.count - r.n "
    f"FROM ({COUNTED.format(table='removed')}) r WHERE " + " AND ".join(f"d.{name} = r.{name}" for name in KEYS) + ";"
)
FUNCTIONS = {
    "rules_nudges_added": LOCK.format(table="added") + ADD,
    "rules_nudges_removed": LOCK.format(table="removed") + REMOVE,
    "rules_nudges_changed": LOCK.format(table="added") + REMOVE + ADD,
}
POSTGRESQL = {
    "rules_nudges_added": "AFTER INSERT ON rules_recordednudge REFERENCING NEW TABLE AS added",
    "rules_nudges_removed": "AFTER DELETE ON rules_recordednudge REFERENCING OLD TABLE AS removed",
    "rules_nudges_changed": "AFTER UPDATE ON rules_recordednudge REFERENCING OLD TABLE AS removed NEW TABLE AS added",
}


def count_from_now_on(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # One statement each; ON CONFLICT has nothing to do while the table is empty.
        schema_editor.execute(
            f"INSERT INTO rules_nudgeday ({NAMES}, count) {COUNTED.format(table='rules_recordednudge')}"
        )
        for name, body in FUNCTIONS.items():
            schema_editor.execute(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$"
            )
            schema_editor.execute(
                f"CREATE TRIGGER {name} {POSTGRESQL[name]} FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
            )
        return
    for statement in SQLITE_START:
        schema_editor.execute(statement)


def count_no_more(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name in FUNCTIONS:
            schema_editor.execute(f"DROP TRIGGER {name} ON rules_recordednudge")
            schema_editor.execute(f"DROP FUNCTION {name}()")
    else:
        for name in SQLITE:
            schema_editor.execute(f"DROP TRIGGER {name}")
    schema_editor.execute("DELETE FROM rules_nudgeday")


class Migration(migrations.Migration):
    dependencies = [("rules", "0001_initial")]

    operations = [migrations.RunPython(count_from_now_on, count_no_more)]

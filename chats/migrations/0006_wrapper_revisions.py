import django.db.models.deletion
from django.db import migrations, models


def number_drafts(apps, schema_editor):
    """Numbers go on from those of the drafts that are open."""
    # The managers of the models ask for a tenant.
    wrappers = models.QuerySet(apps.get_model("chats", "Wrapper"))
    for draft in models.QuerySet(apps.get_model("chats", "WrapperDraft")):
        wrappers.filter(pk=draft.wrapper_id).update(last_revision=draft.revision)


class Migration(migrations.Migration):
    dependencies = [("chats", "0005_import_deletions")]

    operations = [
        migrations.AddField("wrapper", "last_revision", models.PositiveIntegerField(default=0)),
        migrations.CreateModel(
            name="WrapperRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.TextField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "wrapper",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="revisions", to="chats.wrapper"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("wrapper", "number"), name="wrapper_revision_number_unique")
                ],
            },
        ),
        migrations.RunPython(number_drafts, migrations.RunPython.noop),
    ]

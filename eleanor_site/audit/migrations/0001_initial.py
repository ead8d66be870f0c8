import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField()),
                ("actor_label", models.CharField(max_length=254)),
                ("action", models.CharField(max_length=60)),
                ("object_type", models.CharField(max_length=40)),
                ("object_id", models.CharField(max_length=64)),
                ("object_label", models.CharField(max_length=200)),
                ("before", models.TextField(default="")),
                ("after", models.TextField(default="")),
                ("note", models.TextField(default="")),
                ("request_id", models.CharField(default="", max_length=64)),
                ("previous_hash", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ["tenant", "number"],
                "indexes": [
                    models.Index(fields=["tenant", "object_type", "object_id"], name="audit_entry_tenant__bcf719_idx")
                ],
                "constraints": [models.UniqueConstraint(fields=("tenant", "number"), name="entry_number_unique")],
            },
        ),
    ]

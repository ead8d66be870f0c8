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
            name="Chat",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("format", models.CharField(max_length=40)),
                ("external_id", models.CharField(blank=True, default="", max_length=300)),
                ("identity", models.CharField(max_length=64)),
                ("title", models.CharField(blank=True, default="", max_length=300)),
                ("version_count", models.PositiveIntegerField(default=0)),
                ("message_count", models.PositiveIntegerField(default=0)),
                ("turn_count", models.PositiveIntegerField(default=0)),
                ("round_points", models.PositiveIntegerField(default=0)),
                ("final_points", models.PositiveIntegerField(default=0)),
                ("nudge_count", models.PositiveIntegerField(default=0)),
                ("language", models.CharField(blank=True, default="", max_length=5)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ChatVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.TextField()),
                ("content_hash", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "chat",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="chats.chat"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Corpus",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("digest", models.CharField(max_length=64)),
                ("members", models.TextField(default="[]")),
                ("chat_count", models.PositiveIntegerField(default=0)),
                ("missing", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "Queued"), ("running", "Running"), ("done", "Done"), ("failed", "Failed")],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("file", models.FileField(blank=True, upload_to="imports/%Y/%m/")),
                ("file_name", models.CharField(max_length=255)),
                ("file_size", models.PositiveBigIntegerField(default=0)),
                ("chosen_format", models.CharField(blank=True, default="", max_length=40)),
                ("format", models.CharField(blank=True, default="", max_length=40)),
                ("options", models.TextField(default="{}")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("taken", models.PositiveIntegerField(default=0)),
                ("updated", models.PositiveIntegerField(default=0)),
                ("unchanged", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("messages", models.PositiveIntegerField(default=0)),
                ("bytes_read", models.PositiveBigIntegerField(default=0)),
                ("report", models.TextField(default="{}")),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportedChat",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "outcome",
                    models.CharField(
                        choices=[("taken", "Taken"), ("updated", "Updated"), ("unchanged", "Unchanged")], max_length=10
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="imports", to="chats.chat"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chats.chatversion"
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="chats", to="chats.importjob"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportDeletion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "Queued"), ("running", "Running"), ("done", "Done"), ("failed", "Failed")],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("number", models.PositiveBigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("total", models.PositiveIntegerField(default=0)),
                ("chats", models.PositiveIntegerField(default=0)),
                ("kept", models.PositiveIntegerField(default=0)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="deletion",
                        to="chats.importjob",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedSearch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("query", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Wrapper",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("settings", "Settings over a built-in wrapper"), ("template", "Chat template")],
                        default="settings",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("last_revision", models.PositiveIntegerField(default=0)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WrapperDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model_name", models.CharField(blank=True, default="", max_length=200)),
                ("base", models.CharField(blank=True, default="", max_length=60)),
                ("settings", models.TextField(blank=True, default="{}")),
                ("options", models.TextField(blank=True, default="{}")),
                ("wording", models.TextField(blank=True, default="{}")),
                ("template", models.TextField(blank=True, default="")),
                ("named_templates", models.TextField(blank=True, default="{}")),
                ("template_tokens", models.TextField(blank=True, default="{}")),
                ("template_kwargs", models.TextField(blank=True, default="{}")),
                ("template_profile", models.CharField(blank=True, default="current", max_length=10)),
                ("serving", models.TextField(blank=True, default="{}")),
                ("silenced", models.TextField(blank=True, default="{}")),
                ("revision", models.PositiveIntegerField(default=1)),
                ("based_on", models.PositiveIntegerField(default=0)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "wrapper",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="draft", to="chats.wrapper"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
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
        ),
        migrations.CreateModel(
            name="WrapperVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model_name", models.CharField(blank=True, default="", max_length=200)),
                ("base", models.CharField(blank=True, default="", max_length=60)),
                ("settings", models.TextField(blank=True, default="{}")),
                ("options", models.TextField(blank=True, default="{}")),
                ("wording", models.TextField(blank=True, default="{}")),
                ("template", models.TextField(blank=True, default="")),
                ("named_templates", models.TextField(blank=True, default="{}")),
                ("template_tokens", models.TextField(blank=True, default="{}")),
                ("template_kwargs", models.TextField(blank=True, default="{}")),
                ("template_profile", models.CharField(blank=True, default="current", max_length=10)),
                ("serving", models.TextField(blank=True, default="{}")),
                ("silenced", models.TextField(blank=True, default="{}")),
                ("number", models.PositiveIntegerField()),
                ("note", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "wrapper",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="chats.wrapper"
                    ),
                ),
            ],
        ),
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
            options={
                "abstract": False,
            },
        ),
        migrations.AddIndex(
            model_name="chat",
            index=models.Index(fields=["tenant", "-id"], name="chats_chat_tenant__187fbe_idx"),
        ),
        migrations.AddIndex(
            model_name="chat",
            index=models.Index(fields=["tenant", "model"], name="chats_chat_tenant__90f8e2_idx"),
        ),
        migrations.AddIndex(
            model_name="chat",
            index=models.Index(fields=["tenant", "started_at"], name="chats_chat_tenant__9f8669_idx"),
        ),
        migrations.AddConstraint(
            model_name="chat",
            constraint=models.UniqueConstraint(fields=("tenant", "identity"), name="chat_identity_unique"),
        ),
        migrations.AddConstraint(
            model_name="chatversion",
            constraint=models.UniqueConstraint(fields=("chat", "number"), name="chat_version_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="chatversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="chat_version_number_counts_from_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="corpus",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="corpus_name_unique"),
        ),
        migrations.AddIndex(
            model_name="importjob",
            index=models.Index(fields=["tenant", "-id"], name="chats_impor_tenant__436f1c_idx"),
        ),
        migrations.AddConstraint(
            model_name="importedchat",
            constraint=models.UniqueConstraint(fields=("job", "chat"), name="imported_chat_once"),
        ),
        migrations.AddConstraint(
            model_name="importdeletion",
            constraint=models.UniqueConstraint(fields=("tenant", "number"), name="import_deleted_once"),
        ),
        migrations.AddConstraint(
            model_name="savedsearch",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="saved_search_name_unique"),
        ),
        migrations.AddConstraint(
            model_name="wrapper",
            constraint=models.UniqueConstraint(fields=("tenant", "slug"), name="wrapper_slug_unique"),
        ),
        migrations.AddConstraint(
            model_name="wrapperrevision",
            constraint=models.UniqueConstraint(fields=("wrapper", "number"), name="wrapper_revision_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="wrapperversion",
            constraint=models.UniqueConstraint(fields=("wrapper", "number"), name="wrapper_version_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="wrapperversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="wrapper_version_counts_from_one"
            ),
        ),
    ]

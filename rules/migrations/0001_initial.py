import django.db.models.deletion
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("chats", "0001_initial"),
        ("tenants", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Release",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("status", models.CharField(choices=[("live", "Live"), ("superseded", "Superseded")], max_length=10)),
                ("note", models.TextField(blank=True, default="")),
                ("based_on", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("published_at", models.DateTimeField(blank=True, null=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
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
            name="Proposal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("requested", "Approval requested"),
                            ("approved", "Approved"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                            ("published", "Published"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("note", models.TextField(blank=True, default="")),
                ("order", models.TextField(blank=True, default="")),
                ("based_on", models.PositiveIntegerField(default=0)),
                ("decision_note", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
                    "decided_by",
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
                    "release",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="rules.release"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("stopped", "Stopped"),
                            ("incomplete", "Incomplete"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("manifest", models.TextField()),
                ("scope", models.TextField(default="{}")),
                ("compared_with", models.TextField(blank=True, default="")),
                ("name_digest", models.CharField(max_length=64)),
                ("result_digest", models.CharField(blank=True, default="", max_length=64)),
                ("chunks_total", models.PositiveIntegerField(default=0)),
                ("chunks_done", models.PositiveIntegerField(default=0)),
                ("chats_total", models.PositiveIntegerField(default=0)),
                ("points_total", models.PositiveIntegerField(default=0)),
                ("points", models.PositiveIntegerField(default=0)),
                ("fires", models.PositiveIntegerField(default=0)),
                ("counts", models.TextField(default="{}")),
                ("baseline", models.BooleanField(default=False)),
                ("aftermath_wanted", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
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
            name="ReplayChunk",
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
                ("number", models.PositiveIntegerField()),
                ("chats", models.TextField(default="[]")),
                ("scope", models.BinaryField(blank=True, null=True)),
                ("result", models.BinaryField(blank=True, null=True)),
                ("compared", models.BinaryField(blank=True, null=True)),
                ("removed_chats", models.PositiveIntegerField(default=0)),
                ("removed_digest", models.CharField(blank=True, default="", max_length=64)),
                ("result_hash", models.CharField(blank=True, default="", max_length=64)),
                ("counts", models.TextField(default="{}")),
                ("aftermath", models.TextField(blank=True, default="")),
                ("points", models.PositiveIntegerField(default=0)),
                (
                    "replay",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="chunks", to="rules.replay"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.CreateModel(
            name="RemovedFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField(blank=True, null=True)),
                ("code", models.CharField(max_length=64)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("language", models.CharField(blank=True, default="", max_length=5)),
                ("status", models.CharField(max_length=14)),
                ("count", models.PositiveIntegerField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "chunk",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="removed_findings",
                        to="rules.replaychunk",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ReplaySchedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200)),
                ("scope", models.CharField(max_length=40)),
                (
                    "rules",
                    models.CharField(
                        choices=[
                            ("live", "The live release of that time"),
                            ("drafts", "The drafts of that time in their places"),
                            ("baseline", "The baseline's rules, as they were"),
                        ],
                        default="live",
                        max_length=10,
                    ),
                ),
                ("weekday", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("hour", models.PositiveSmallIntegerField()),
                ("active", models.BooleanField(default=True)),
                ("due_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "baseline",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="rules.replay"),
                ),
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
            name="ReviewQueue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("search", "Chats of a search"), ("firings", "New firings of a rule")], max_length=10
                    ),
                ),
                ("source", models.TextField(default="{}")),
                ("item_count", models.PositiveIntegerField(default=0)),
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
            name="ReviewItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message", models.PositiveIntegerField()),
                ("turn", models.PositiveIntegerField(default=0)),
                ("stage", models.CharField(choices=[("final", "Final answer"), ("round", "Tool round")], max_length=5)),
                ("code", models.CharField(blank=True, default="", max_length=64)),
                ("version", models.PositiveIntegerField(default=0)),
                ("position", models.PositiveIntegerField()),
                ("recorded", models.BooleanField(default=False)),
                (
                    "chat",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="chats.chat"
                    ),
                ),
                (
                    "chat_version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chats.chatversion",
                    ),
                ),
                (
                    "replay",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="rules.replay"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="items", to="rules.reviewqueue"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProposalItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.PositiveIntegerField(null=True)),
                (
                    "mode",
                    models.CharField(
                        choices=[("live", "Live"), ("observe", "Observe"), ("paused", "Paused")],
                        default="live",
                        max_length=10,
                    ),
                ),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                (
                    "proposal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="items", to="rules.proposal"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="rules.rule"),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="DraftRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.TextField()),
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
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="revisions", to="rules.rule"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RuleDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title_en", models.CharField(blank=True, default="", max_length=120)),
                ("title_fr", models.CharField(blank=True, default="", max_length=120)),
                ("explanation_en", models.TextField(blank=True, default="")),
                ("explanation_fr", models.TextField(blank=True, default="")),
                (
                    "stage",
                    models.CharField(
                        choices=[("final", "Final answer"), ("round", "Tool round")], default="final", max_length=5
                    ),
                ),
                ("max_nudges", models.PositiveSmallIntegerField(default=1)),
                ("expression", models.TextField(blank=True, default="")),
                ("prompt_en", models.TextField(blank=True, default="")),
                ("prompt_fr", models.TextField(blank=True, default="")),
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
                    "rule",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="draft", to="rules.rule"
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
            name="RuleTest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("should_fire", models.BooleanField()),
                ("note", models.CharField(blank=True, default="", max_length=200)),
                ("message", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "stage",
                    models.CharField(
                        choices=[("final", "Final answer"), ("round", "Tool round")], default="final", max_length=5
                    ),
                ),
                ("context", models.TextField(blank=True, default="")),
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
                    "chat_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chats.chatversion",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tests", to="rules.rule"
                    ),
                ),
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
        migrations.CreateModel(
            name="RuleVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title_en", models.CharField(blank=True, default="", max_length=120)),
                ("title_fr", models.CharField(blank=True, default="", max_length=120)),
                ("explanation_en", models.TextField(blank=True, default="")),
                ("explanation_fr", models.TextField(blank=True, default="")),
                (
                    "stage",
                    models.CharField(
                        choices=[("final", "Final answer"), ("round", "Tool round")], default="final", max_length=5
                    ),
                ),
                ("max_nudges", models.PositiveSmallIntegerField(default=1)),
                ("expression", models.TextField(blank=True, default="")),
                ("prompt_en", models.TextField(blank=True, default="")),
                ("prompt_fr", models.TextField(blank=True, default="")),
                ("number", models.PositiveIntegerField()),
                ("note", models.TextField(blank=True, default="")),
                ("points", models.PositiveIntegerField(null=True)),
                ("fires", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
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
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="rules.rule"
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
            name="ReleaseEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                (
                    "mode",
                    models.CharField(
                        choices=[("live", "Live"), ("observe", "Observe"), ("paused", "Paused")],
                        default="live",
                        max_length=10,
                    ),
                ),
                ("observe_until", models.DateTimeField(blank=True, null=True)),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="entries", to="rules.release"
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
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="rules.ruleversion"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="RecordedNudge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.CharField(max_length=64)),
                (
                    "source",
                    models.CharField(
                        choices=[("import", "Import"), ("live", "Live"), ("observe", "Observe")], max_length=10
                    ),
                ),
                ("message", models.PositiveIntegerField(blank=True, null=True)),
                ("point", models.PositiveIntegerField(blank=True, null=True)),
                ("turn", models.PositiveIntegerField(blank=True, null=True)),
                ("stage", models.CharField(blank=True, default="", max_length=5)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("language", models.CharField(blank=True, default="", max_length=5)),
                ("outcome", models.CharField(blank=True, default="", max_length=10)),
                ("at", models.DateTimeField(blank=True, null=True)),
                ("external_key", models.CharField(blank=True, default="", max_length=200)),
                ("chat_key", models.CharField(blank=True, max_length=300, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "sorted_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.functions.comparison.Coalesce("at", "created_at"),
                        output_field=models.DateTimeField(),
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chats.chat",
                    ),
                ),
                (
                    "chat_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chats.chatversion",
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
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="rules.ruleversion",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduledRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("due_at", models.DateTimeField()),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("same", "as the baseline"),
                            ("differs", "differs from the baseline"),
                            ("apart", "no chat in common with the baseline"),
                            ("refused", "could not be started"),
                        ],
                        default="",
                        max_length=10,
                    ),
                ),
                ("changed", models.TextField(default="[]")),
                ("shared_chats", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "baseline",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="rules.replay"),
                ),
                (
                    "replay",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="rules.replay"
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="rules.replayschedule"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("point_count", models.PositiveIntegerField()),
                ("chat_count", models.PositiveIntegerField()),
                ("catalogue", models.CharField(max_length=64)),
                ("walker_version", models.PositiveIntegerField()),
                ("prompts", models.PositiveBigIntegerField(default=0)),
                ("scalars", models.BinaryField()),
                ("people", models.BinaryField(default=bytes)),
                ("contents", models.BinaryField(default=bytes)),
                ("strays", models.TextField(default="[]")),
                ("tools", models.TextField(default="{}")),
                ("sequels", models.BinaryField(default=bytes)),
                ("text_hash", models.CharField(max_length=64)),
                ("text_size", models.PositiveBigIntegerField(default=0)),
                ("digest", models.CharField(max_length=64)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="replaychunk",
            name="segment",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="rules.segment"
            ),
        ),
        migrations.CreateModel(
            name="SegmentAtom",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("bits", models.BinaryField()),
                ("used_at", models.DateTimeField(auto_now_add=True)),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="atoms", to="rules.segment"
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
            name="SegmentChat",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first_point", models.PositiveIntegerField()),
                ("point_count", models.PositiveIntegerField()),
                ("superseded", models.BooleanField(default=False)),
                ("gaps", models.TextField(blank=True, default="")),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="chats", to="rules.segment"
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
            ],
        ),
        migrations.CreateModel(
            name="ToolEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                ("pattern", models.CharField(max_length=200)),
                ("argument", models.CharField(blank=True, default="", max_length=100)),
                ("argument_pattern", models.CharField(blank=True, default="", max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("read", "Read: only looks"),
                            ("verify", "Verify: checks"),
                            ("other", "Other: may change something"),
                            ("finish", "Finish: ends the work"),
                        ],
                        default="other",
                        max_length=6,
                    ),
                ),
                ("repeatable", models.BooleanField(default=False)),
                ("success_pattern", models.CharField(blank=True, default="", max_length=200)),
                ("failure_pattern", models.CharField(blank=True, default="", max_length=200)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message", models.PositiveIntegerField()),
                ("turn", models.PositiveIntegerField(default=0)),
                ("stage", models.CharField(choices=[("final", "Final answer"), ("round", "Tool round")], max_length=5)),
                ("code", models.CharField(blank=True, default="", max_length=64)),
                ("version", models.PositiveIntegerField(default=0)),
                (
                    "value",
                    models.CharField(
                        choices=[("right", "Right"), ("wrong", "Wrong"), ("unsure", "Unsure"), ("missed", "Missed")],
                        max_length=6,
                    ),
                ),
                ("note", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="chats.chat"
                    ),
                ),
                (
                    "chat_version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chats.chatversion",
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
            name="KnownPrompt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text_hash", models.CharField(max_length=64)),
                ("code", models.CharField(max_length=64)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("tenant", "text_hash"), name="known_prompt_once")],
            },
        ),
        migrations.CreateModel(
            name="NudgeDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.CharField(blank=True, default="", max_length=10)),
                ("code", models.CharField(max_length=64)),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("model", models.CharField(blank=True, default="", max_length=200)),
                ("language", models.CharField(blank=True, default="", max_length=5)),
                ("source", models.CharField(max_length=10)),
                ("stage", models.CharField(blank=True, default="", max_length=5)),
                ("outcome", models.CharField(blank=True, default="", max_length=10)),
                ("count", models.PositiveIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "day", "code", "version", "model", "language", "source", "stage", "outcome"),
                        name="nudge_day_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Preparation",
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
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("segments", "Columns of chats"),
                            ("atoms", "Text terms of rules"),
                            ("aftermath", "What came after firings"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("tenant", "kind"), name="preparation_once")],
            },
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(fields=("tenant", "number"), name="release_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "live")), fields=("tenant",), name="one_live_release_per_tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(fields=["tenant", "status", "-id"], name="rules_propo_tenant__d89cef_idx"),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "open")), fields=("tenant",), name="one_open_proposal_per_tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="replay",
            index=models.Index(fields=["tenant", "-id"], name="rules_repla_tenant__af25aa_idx"),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.CheckConstraint(
                condition=models.Q(("chunks_done__lte", models.F("chunks_total"))), name="replay_done_within_total"
            ),
        ),
        migrations.AddIndex(
            model_name="replayschedule",
            index=models.Index(fields=["tenant", "id"], name="rules_repla_tenant__961971_idx"),
        ),
        migrations.AddIndex(
            model_name="replayschedule",
            index=models.Index(fields=["active", "due_at"], name="rules_repla_active_9c3e16_idx"),
        ),
        migrations.AddConstraint(
            model_name="replayschedule",
            constraint=models.CheckConstraint(condition=models.Q(("hour__lte", 23)), name="schedule_hour_of_a_day"),
        ),
        migrations.AddConstraint(
            model_name="replayschedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("weekday__isnull", True), ("weekday__lte", 6), _connector="OR"),
                name="schedule_weekday_of_a_week",
            ),
        ),
        migrations.AddIndex(
            model_name="reviewqueue",
            index=models.Index(fields=["tenant", "-id"], name="rules_revie_tenant__ef7bdd_idx"),
        ),
        migrations.AddConstraint(
            model_name="reviewitem",
            constraint=models.UniqueConstraint(fields=("queue", "position"), name="review_item_position_once"),
        ),
        migrations.AddConstraint(
            model_name="rule",
            constraint=models.UniqueConstraint(fields=("tenant", "code"), name="rule_code_unique_in_tenant"),
        ),
        migrations.AddConstraint(
            model_name="rule",
            constraint=models.CheckConstraint(
                condition=models.Q(("code", ""), _negated=True), name="rule_code_not_empty"
            ),
        ),
        migrations.AddConstraint(
            model_name="proposalitem",
            constraint=models.UniqueConstraint(fields=("proposal", "rule"), name="proposal_rule_once"),
        ),
        migrations.AddConstraint(
            model_name="draftrevision",
            constraint=models.UniqueConstraint(fields=("rule", "number"), name="draft_revision_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="ruledraft",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage__in", ["final", "round"])), name="rule_draft_stage_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="ruleversion",
            constraint=models.UniqueConstraint(fields=("rule", "number"), name="rule_version_number_unique"),
        ),
        migrations.AddConstraint(
            model_name="ruleversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="rule_version_counts_from_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="ruleversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage__in", ["final", "round"])), name="rule_version_stage_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="releaseentry",
            constraint=models.UniqueConstraint(fields=("release", "position"), name="release_position_unique"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "-sorted_at", "-id"], name="nudge_by_time"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "code", "-sorted_at", "-id"], name="nudge_by_code"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "model", "-sorted_at", "-id"], name="nudge_by_model"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "language", "-sorted_at", "-id"], name="nudge_by_language"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "source", "-sorted_at", "-id"], name="nudge_by_source"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["tenant", "outcome", "-sorted_at", "-id"], name="nudge_by_outcome"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(fields=["chat_version", "point"], name="nudge_by_point"),
        ),
        migrations.AddIndex(
            model_name="recordednudge",
            index=models.Index(
                condition=models.Q(("chat_key__isnull", False)),
                fields=["tenant", "chat_key"],
                name="nudge_without_chat",
            ),
        ),
        migrations.AddConstraint(
            model_name="recordednudge",
            constraint=models.UniqueConstraint(
                condition=models.Q(("chat_version__isnull", False)),
                fields=("chat_version", "message"),
                name="recorded_nudge_once_in_history",
            ),
        ),
        migrations.AddConstraint(
            model_name="recordednudge",
            constraint=models.UniqueConstraint(
                condition=models.Q(("external_key", ""), _negated=True),
                fields=("tenant", "external_key"),
                name="recorded_nudge_once_by_key",
            ),
        ),
        migrations.AddIndex(
            model_name="scheduledrun",
            index=models.Index(fields=["outcome", "id"], name="rules_sched_outcome_d8fe54_idx"),
        ),
        migrations.AddConstraint(
            model_name="scheduledrun",
            constraint=models.UniqueConstraint(fields=("schedule", "due_at"), name="scheduled_run_once"),
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(fields=["tenant", "retired_at", "id", "digest"], name="segment_state"),
        ),
        migrations.AddConstraint(
            model_name="replaychunk",
            constraint=models.UniqueConstraint(fields=("replay", "number"), name="replay_chunk_once"),
        ),
        migrations.AddConstraint(
            model_name="segmentatom",
            constraint=models.UniqueConstraint(fields=("segment", "key"), name="segment_atom_once"),
        ),
        migrations.AddConstraint(
            model_name="segmentchat",
            constraint=models.UniqueConstraint(fields=("segment", "number"), name="segment_chat_once"),
        ),
        migrations.AddConstraint(
            model_name="toolentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["read", "verify", "other", "finish"])), name="tool_kind_known"
            ),
        ),
        migrations.AddIndex(
            model_name="verdict",
            index=models.Index(fields=["tenant", "code", "version"], name="rules_verdi_tenant__08e0c6_idx"),
        ),
        migrations.AddIndex(
            model_name="verdict",
            index=models.Index(fields=["tenant", "value"], name="rules_verdi_tenant__0abc93_idx"),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.UniqueConstraint(
                fields=("chat_version", "message", "stage", "code", "by"), name="verdict_once_a_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.CheckConstraint(
                condition=models.Q(("value__in", ["right", "wrong", "unsure", "missed"])), name="verdict_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage__in", ["final", "round"])), name="verdict_stage_known"
            ),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chats", "0003_search")]

    operations = [
        migrations.AddField("corpus", "missing", models.PositiveIntegerField(default=0)),
        migrations.AlterField(
            "importjob", "file", models.FileField(upload_to="imports/%Y/%m/", blank=True)
        ),
    ]

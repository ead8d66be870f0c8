from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_api_keys")]

    operations = [
        migrations.AddField("tenant", "keep_chats_days", models.PositiveIntegerField(blank=True, null=True)),
    ]

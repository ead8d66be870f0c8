from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_retention")]

    operations = [
        migrations.AddField("user", "time_zone", models.CharField(blank=True, default="", max_length=64)),
    ]

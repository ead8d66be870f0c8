"""The Celery application. It is loaded in `SiteConfig.ready`, so that web and workers use the same broker."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eleanor_site.settings")

app = Celery("eleanor_site")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["chats", "rules", "eleanor_site", "eleanor_site.webhooks"])

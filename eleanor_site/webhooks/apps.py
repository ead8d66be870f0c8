from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "eleanor_site.webhooks"
    label = "webhooks"

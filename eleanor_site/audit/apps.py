from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "eleanor_site.audit"
    label = "audit"

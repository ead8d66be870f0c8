from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "eleanor_site.tenants"
    label = "tenants"

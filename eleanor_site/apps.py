from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "eleanor_site"

    def ready(self) -> None:
        # Nobody else loads the Celery app in the web process; without it tasks would go to a default AMQP broker.
        from eleanor_site import (
            celery,  # noqa: F401
            checks,  # noqa: F401
        )

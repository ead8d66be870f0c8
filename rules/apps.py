from django.apps import AppConfig


class RulesConfig(AppConfig):
    name = "rules"

    def ready(self) -> None:
        from chats.signals import versions_stored
        from rules.services.ingesting import ingest_versions

        versions_stored.connect(ingest_versions, dispatch_uid="rules.ingest_versions")

from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from chats.kept_triggers import keep_indexing_texts
        from chats.services.searches import index_versions
        from chats.signals import versions_stored

        versions_stored.connect(index_versions, dispatch_uid="chats.index_versions")
        post_migrate.connect(keep_indexing_texts, sender=self, dispatch_uid="chats.keep_indexing_texts")

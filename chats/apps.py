from django.apps import AppConfig


class ChatsConfig(AppConfig):
    name = "chats"

    def ready(self) -> None:
        from chats.services.searches import index_versions
        from chats.signals import versions_stored

        versions_stored.connect(index_versions, dispatch_uid="chats.index_versions")

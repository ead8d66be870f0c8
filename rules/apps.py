from django.apps import AppConfig


class RulesConfig(AppConfig):
    name = "rules"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate, post_save

        from chats.nudge_texts import register
        from chats.signals import import_read, versions_stored
        from rules.kept_triggers import keep_counting_nudges
        from rules.queries.chat_narrowings import add_narrowings
        from rules.queries.nudge_texts import rule_nudges
        from rules.services import ingesting
        from rules.services.segments import prompt_saved

        versions_stored.connect(ingesting.ingest_versions, dispatch_uid="rules.ingest_versions")
        import_read.connect(ingesting.import_read, dispatch_uid="rules.import_read")
        post_save.connect(prompt_saved, sender="rules.KnownPrompt", dispatch_uid="rules.prompt_saved")
        register("rules", rule_nudges)
        add_narrowings()
        post_migrate.connect(keep_counting_nudges, sender=self, dispatch_uid="rules.keep_counting_nudges")

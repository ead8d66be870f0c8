from django.apps import AppConfig


class RulesConfig(AppConfig):
    name = "rules"

    def ready(self) -> None:
        from django.core.signals import request_finished
        from django.db.models.signals import post_migrate, post_save

        from chats.nudge_texts import register
        from chats.signals import import_read, versions_removing, versions_stored
        from rules import webhook_events
        from rules.kept_triggers import keep_counting_nudges
        from rules.queries.chat_narrowings import add_narrowings
        from rules.queries.nudge_texts import rule_nudges
        from rules.queries.release_effects import add_extras
        from rules.services import ingesting, live_nudges, removal
        from rules.services import segments as segment_services
        from rules.signals import gate_failed, release_published

        versions_stored.connect(ingesting.ingest_versions, dispatch_uid="rules.ingest_versions")
        import_read.connect(ingesting.import_read, dispatch_uid="rules.import_read")
        post_save.connect(segment_services.prompt_saved, sender="rules.KnownPrompt", dispatch_uid="rules.prompt_saved")
        # After the history's own nudges are written.
        versions_stored.connect(live_nudges.join_live_nudges, dispatch_uid="rules.join_live_nudges")
        versions_removing.connect(removal.remove_from_rules, dispatch_uid="rules.remove_versions")
        release_published.connect(webhook_events.release_published, dispatch_uid="rules.tell_release")
        release_published.connect(segment_services.release_published, dispatch_uid="rules.prepare_release")
        gate_failed.connect(webhook_events.gate_failed, dispatch_uid="rules.tell_gate")
        request_finished.connect(webhook_events.tell_refusals, dispatch_uid="rules.tell_refusals")
        register("rules", rule_nudges)
        add_narrowings()
        add_extras()
        post_migrate.connect(keep_counting_nudges, sender=self, dispatch_uid="rules.keep_counting_nudges")

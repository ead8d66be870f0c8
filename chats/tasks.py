"""Tasks of the conversation side: each opens nothing and calls one function that a test can call too."""

from celery import shared_task

from chats import chunks, import_removal, removing, retention


@shared_task(name="chats.tasks.run_import")
def run_import(job_id: int) -> None:
    chunks.run_import(job_id)


@shared_task(name="chats.tasks.run_deletion")
def run_deletion(deletion_id: int) -> None:
    import_removal.run_deletion(deletion_id)


@shared_task(name="chats.tasks.sweep")
def sweep() -> None:
    for job_id in chunks.imports_to_send_again():
        run_import.apply_async(args=(job_id,), retry=False)
    for deletion_id in import_removal.deletions_to_send_again():
        run_deletion.apply_async(args=(deletion_id,), retry=False)


@shared_task(name="chats.tasks.delete_old_chats")
def delete_old_chats() -> None:
    retention.delete_old_chats()
    removing.delete_orphaned_uploads()

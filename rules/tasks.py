"""Tasks of the deciding side: each calls one function that a test can call too."""

from celery import shared_task

from rules import chunks, switching


@shared_task(name="rules.tasks.run_chunk")
def run_chunk(chunk_id: int) -> None:
    if chunks.run_chunk(chunk_id):
        run_chunk.apply_async(args=(chunk_id,), retry=False)


@shared_task(name="rules.tasks.sweep")
def sweep() -> None:
    for chunk_id in chunks.chunks_to_send_again():
        run_chunk.apply_async(args=(chunk_id,), retry=False)


@shared_task(name="rules.tasks.end_observations")
def end_observations() -> None:
    switching.end_observations()

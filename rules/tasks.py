"""Tasks of the deciding side: each calls one function that a test can call too.

The work needs the numeric libraries, and this module is loaded by the web process as well: so they are imported inside.
"""

from celery import shared_task


@shared_task(name="rules.tasks.run_chunk")
def run_chunk(chunk_id: int) -> None:
    from rules.chunks import replays

    for pk in replays.run_chunk_and_next(chunk_id):
        run_chunk.apply_async(args=(pk,), retry=False)


@shared_task(name="rules.tasks.derive_segments")
def derive_segments(preparation_id: int) -> None:
    from rules.chunks import preparing

    if preparing.run(preparation_id):
        derive_segments.apply_async(args=(preparation_id,), retry=False)


@shared_task(name="rules.tasks.derive_atoms")
def derive_atoms(preparation_id: int) -> None:
    from rules.chunks import preparing

    if preparing.run(preparation_id):
        derive_atoms.apply_async(args=(preparation_id,), retry=False)


@shared_task(name="rules.tasks.count_aftermath")
def count_aftermath(preparation_id: int) -> None:
    from rules.chunks import preparing

    if preparing.run(preparation_id):
        count_aftermath.apply_async(args=(preparation_id,), retry=False)


@shared_task(name="rules.tasks.sweep")
def sweep() -> None:
    from rules.chunks import preparing, replays

    for chunk_id in replays.chunks_to_send_again():
        run_chunk.apply_async(args=(chunk_id,), retry=False)
    for kind, preparation_id in preparing.to_send_again():
        task = {"segments": derive_segments, "atoms": derive_atoms, "aftermath": count_aftermath}[kind]
        task.apply_async(args=(preparation_id,), retry=False)


@shared_task(name="rules.tasks.end_observations")
def end_observations() -> None:
    from rules import switching

    switching.end_observations()


@shared_task(name="rules.tasks.delete_orphaned_texts")
def delete_orphaned_texts() -> None:
    from rules.chunks import pruning

    pruning.delete_orphaned_texts()

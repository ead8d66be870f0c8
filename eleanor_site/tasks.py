"""Tasks of the site itself: each calls one function that a test can call too."""

from celery import shared_task

from eleanor_site import limits


@shared_task(name="eleanor_site.tasks.forget_full_buckets")
def forget_full_buckets() -> None:
    limits.forget_full_buckets()

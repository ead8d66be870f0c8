"""Tasks of the deliveries: each calls one function that a test can call too."""

from celery import shared_task

from eleanor_site.tenants.services import forget_old_answers
from eleanor_site.webhooks import deliveries


@shared_task(name="eleanor_site.webhooks.tasks.deliver")
def deliver(delivery_id: int) -> None:
    deliveries.deliver(delivery_id)


@shared_task(name="eleanor_site.webhooks.tasks.sweep")
def sweep() -> None:
    for delivery_id in deliveries.deliveries_to_send():
        deliver.apply_async(args=(delivery_id,), retry=False)


@shared_task(name="eleanor_site.webhooks.tasks.forget")
def forget() -> None:
    deliveries.forget_old_deliveries()
    forget_old_answers()

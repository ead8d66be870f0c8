"""The WSGI entry point: what each web process does once before it answers."""

import os
import threading

from django.core.wsgi import get_wsgi_application

from eleanor_site.collecting import keep_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eleanor_site.settings")

application = get_wsgi_application()


def _start_template_workers() -> None:
    from chats.template_pool import shared_pool

    shared_pool().start()


# The first template preview would wait for a worker otherwise; starting one must not hold up the first page.
threading.Thread(target=_start_template_workers, name="template-workers", daemon=True).start()

keep_what_is_loaded()

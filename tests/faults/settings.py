"""The settings of the tests with a sweeper that comes every second, and the visibility timeout that a run asks for."""

import os

from tests.settings import *  # noqa: F403

CELERY_BROKER_TRANSPORT_OPTIONS = {
    **CELERY_BROKER_TRANSPORT_OPTIONS,  # noqa: F405
    "visibility_timeout": int(os.environ.get("FAULT_VISIBILITY", "3600")),
}
CELERY_BEAT_SCHEDULE = {"sweep-rules": {"task": "rules.tasks.sweep", "schedule": 1.0}}

"""The real settings with what makes tests fast or strict."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("ELEANOR_VAR", str(Path(tempfile.gettempdir()) / f"eleanor-tests-{os.getpid()}"))

from eleanor_site.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

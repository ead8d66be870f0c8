"""The real settings with what makes tests fast or strict."""

import atexit
import os
import shutil
import tempfile

if "ELEANOR_VAR" not in os.environ:
    os.environ["ELEANOR_VAR"] = tempfile.mkdtemp(prefix="eleanor-tests-")
    atexit.register(shutil.rmtree, os.environ["ELEANOR_VAR"], ignore_errors=True)

from eleanor_site.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

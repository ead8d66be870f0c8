"""All settings in one file, read from the environment; `environment` refuses what it doesn't understand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import django_stubs_ext
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from eleanor_site import broker, environment
from eleanor_site.logging import logging_settings

# Generic forms and managers are written with their type; Django itself can't be subscripted everywhere.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("ELEANOR_VAR") or BASE_DIR / "var")
VAR_DIR.mkdir(parents=True, exist_ok=True)

DEBUG = environment.flag("DEBUG", False)
ALLOWED_HOSTS = environment.words("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
# Anything that isn't loopback is production: it must bring its own secret and TLS (architecture.md section 5.3).
PRODUCTION = any(host not in ("127.0.0.1", "localhost", "[::1]") for host in ALLOWED_HOSTS)
SECRET_KEY = environment.secret(VAR_DIR, required=PRODUCTION)
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "eleanor_site.apps.SiteConfig",
    "eleanor_site.tenants.apps.TenantsConfig",
    "eleanor_site.audit.apps.AuditConfig",
    "eleanor_site.webhooks.apps.WebhooksConfig",
    "chats.apps.ChatsConfig",
    "rules.apps.RulesConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "django_structlog",
    "template_partials",
    "csp",
    "ninja",
    "lucide",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "eleanor_site.metrics.measured",
    "eleanor_site.api_problems.problems_as_documents",
    "eleanor_site.middleware.upload_ceiling",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "eleanor_site.middleware.person_language",
    "eleanor_site.middleware.person_zone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "eleanor_site.request_log.RequestLog",
    "eleanor_site.api_problems.request_id_header",
    "eleanor_site.middleware.storable_address",
    "eleanor_site.middleware.private_pages",
]

ROOT_URLCONF = "eleanor_site.urls"
WSGI_APPLICATION = "eleanor_site.wsgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.messages.context_processors.messages",
                "eleanor_site.shell.shell",
            ],
            "builtins": [
                "django.templatetags.l10n",
                "template_partials.templatetags.partials",
                "eleanor_site.templatetags.eleanor",
                "chats.templatetags.masking",
            ],
        },
    }
]

DATABASES = {"default": environment.database(os.environ.get("DATABASE_URL"), VAR_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "tenants.User"
LOGIN_URL = "account:sign_in"
LOGIN_REDIRECT_URL = "/"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

SESSION_COOKIE_AGE = environment.number("SESSION_HOURS", 12) * 3600
SESSION_SAVE_EVERY_REQUEST = False
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "eleanor_site.errors.csrf_failure"
if PRODUCTION:
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    SECURE_SSL_REDIRECT = environment.flag("SECURE_SSL_REDIRECT", True)
    SECURE_HSTS_SECONDS = environment.number("SECURE_HSTS_SECONDS", 31_536_000)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
PERMISSIONS_POLICY: dict[str, list[str]] = {
    name: [] for name in ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("fr", _("French"))]
LOCALE_PATHS = [BASE_DIR / "eleanor_site" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
USE_THOUSAND_SEPARATOR = True
FORMAT_MODULE_PATH = "eleanor_site.formats"

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
MEDIA_ROOT = VAR_DIR / "media"
FILE_UPLOAD_TEMP_DIR = None
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
FILE_UPLOAD_HANDLERS = [
    "eleanor_site.uploads.CountingUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000
UPLOAD_LIMIT = environment.number("UPLOAD_LIMIT_MB", 512) * 1024 * 1024

# A tenant's webhook must not reach what only this machine can reach; a site on loopback has nothing else to try.
WEBHOOKS_TO_PRIVATE_ADDRESSES = environment.flag("WEBHOOKS_TO_PRIVATE_ADDRESSES", not PRODUCTION)
METRICS_TOKEN = os.environ.get("METRICS_TOKEN", "")

BROKER = broker.broker_settings(VAR_DIR)
CELERY_BROKER_URL = BROKER.url
# A page that hands work over must not wait for a broker that is down: one more try, at once.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    **BROKER.transport_options,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "imports"
CELERY_TASK_ROUTES = {
    "rules.tasks.run_chunk": {"queue": "replays"},
    "rules.tasks.derive_atoms": {"queue": "interactive"},
}
CELERY_IMPORTS = ["rules.scheduled_replays"]
CELERY_BEAT_SCHEDULE = {
    "tell-events": {"task": "rules.webhook_events.tell_due", "schedule": 30.0},
    "sweep-webhooks": {"task": "eleanor_site.webhooks.tasks.sweep", "schedule": 30.0},
    "forget-old-answers": {"task": "eleanor_site.webhooks.tasks.forget", "schedule": 3600.0},
    "forget-full-buckets": {"task": "eleanor_site.tasks.forget_full_buckets", "schedule": 3600.0},
    "sweep-chats": {"task": "chats.tasks.sweep", "schedule": 30.0},
    "scheduled-replays": {"task": "rules.scheduled_replays.run_due", "schedule": 30.0},
    "sweep-rules": {"task": "rules.tasks.sweep", "schedule": 30.0},
    "delete-old-chats": {"task": "chats.tasks.delete_old_chats", "schedule": 3600.0},
    "delete-orphaned-texts": {"task": "rules.tasks.delete_orphaned_texts", "schedule": 3600.0},
    "end-observations": {"task": "rules.tasks.end_observations", "schedule": 300.0},
}
CELERY_TIMEZONE = "UTC"

LOGGING = logging_settings(level=environment.text("LOG_LEVEL", "INFO"), lines_as_json=PRODUCTION)
DJANGO_STRUCTLOG_CELERY_ENABLED = False
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
TESTING = "pytest" in sys.modules

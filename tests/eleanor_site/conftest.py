"""The real servers and the browser, for the tests of set-up and running."""

from tests.chromium import browser_context, chromium, console, page
from tests.postgres_server import postgres_url
from tests.redis_server import redis_url

__all__ = ["browser_context", "chromium", "console", "page", "postgres_url", "redis_url"]

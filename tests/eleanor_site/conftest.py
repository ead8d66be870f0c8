"""The real servers, for the tests of set-up and running."""

from tests.postgres_server import postgres_url
from tests.redis_server import redis_url

__all__ = ["postgres_url", "redis_url"]

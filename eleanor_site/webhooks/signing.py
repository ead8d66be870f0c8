"""How a delivery is signed: the scheme of Standard Webhooks, so that receivers find ready-made libraries.

The headers are `webhook-id` (the same for each try, so that a receiver can drop what it has seen), `webhook-timestamp`
(seconds, of this try) and `webhook-signature`: `v1,` and the base64 of HMAC-SHA-256 over `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signature(secret: str, name: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def headers(secret: str, name: str, timestamp: int, body: bytes) -> dict[str, str]:
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, name, timestamp, body),
    }

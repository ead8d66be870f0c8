"""API keys as text: `ek_PREFIX_SECRET`. The prefix finds the row, the secret proves that the caller has the key."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

_FORM: Final = re.compile(r"ek_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_PREFIX_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, slots=True)
class KeyText:
    """A whole key. It is shown once, when it is made, and stored nowhere."""

    prefix: str
    secret: str

    @property
    def text(self) -> str:
        return f"ek_{self.prefix}_{self.secret}"

    @property
    def secret_hash(self) -> str:
        # The secret has 256 random bits: nothing is gained by a slow hash, and every request has to pay for it.
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def fits(self, secret_hash: str) -> bool:
        return hmac.compare_digest(self.secret_hash, secret_hash)


def new_key() -> KeyText:
    prefix = "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(12))
    return KeyText(prefix, secrets.token_urlsafe(32))


def read_key(text: str) -> KeyText | None:
    """The parts of a key, or None for a text that can't be one."""
    found = _FORM.fullmatch(text)
    return KeyText(found[1], found[2]) if found else None

"""What lists hide of texts that people wrote: e-mail addresses, keys and tokens (import-formats.md section 7).

A mask leaves the beginning of what it hides, so that two hidden things can be told apart, and never enough to use it.
It errs on the side of hiding: a chat's own page shows everything.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

MASK: Final = "•••"

# No token of any kind is longer; what lists show is cut anyway.
_LONGEST: Final = 4096

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
# user:password@host in an address.
_ADDRESS_WITH_PASSWORD: Final = re.compile(
    r"(?P<kept>\b[a-z][a-z0-9+.-]{1,15}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@", re.I
)
_EMAIL: Final = re.compile(
    r"(?<![\w.+%-])(?P<kept>\w)[\w.!#$%&'*+/=?^`{|}~-]{0,63}@[^\W_](?:[\w-]{0,62}\.){1,8}[^\W\d_][\w-]{1,62}"
)
_BEARER: Final = re.compile(r"\b(?P<kept>(?:bearer|basic)\s+)[A-Za-z0-9._~+/-]{8,4096}={0,2}", re.I)
# A name that says that a secret follows, and the secret.
_NAMED: Final = re.compile(
    r"""(?P<kept>(?:api[_ -]?key|apikey|access[_ -]?key|secret(?:[_ -]?key)?|(?:auth|access|refresh|session)[_ -]?token
        |token|password|passwd|passphrase|pwd|client[_ -]?secret
        |mot\ de\ passe|mdp|jeton|cl[ée]\ (?:d['’]\ ?)?(?:api|secr[eè]te))
        ["'’]?\s{0,3}(?:[:=]|=>|\bis\b|\best\b)\s{0,3}["'‘“«]?\s?)
        (?P<secret>[^\s"'’”»,;)\]}<>]{4,4096})""",
    re.I | re.X,
)
# Beginnings that issuers give their keys, so that they can be found.
_ISSUED: Final = re.compile(
    r"""(?<![A-Za-z0-9])(?P<kept>
        sk-(?:ant-|proj-|or-|lf-)?|pk-lf-|[rsp]k_(?:live|test)_|whsec_|gh[oprsu]_|github_pat_|glpat-|gl[a-z]{2,5}-
        |xox[abeoprs]-|xapp-|hf_|npm_|pypi-|dop_v1_|shp(?:at|ss|ca|pa)_|SG\.|ya29\.|AIza|lsv2_(?:pt|sk)_|gsk_|r8_|nvapi-|pplx-|tvly-
        |ek_|eyJ|(?:AKIA|ASIA|AROA)(?=[A-Z0-9]{12,20}\b)
        )[A-Za-z0-9][A-Za-z0-9_.~+/=-]{7,4096}""",
    re.X,
)
_LONG_WORD: Final = re.compile(r"(?<![A-Za-z0-9_+/-])[A-Za-z0-9_+/-]{24,4096}={0,2}")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_LEAST_ENTROPY: Final = 3.6


def masked(text: str) -> str:
    """The text with e-mail addresses, keys, tokens and passwords hidden. Texts without any come back as they are."""
    return _LONG_WORD.sub(_mask_if_random, masked_id(text))


def masked_id(text: str) -> str:
    """The same for an id that a source gave: long random words stay, since ids are just that."""
    found = _PRIVATE_KEY.sub(MASK, text)
    found = _ADDRESS_WITH_PASSWORD.sub(rf"\g<kept>{MASK}@", found)
    found = _BEARER.sub(rf"\g<kept>{MASK}", found)
    found = _NAMED.sub(_mask_named, found)
    found = _ISSUED.sub(rf"\g<kept>{MASK}", found)
    return _EMAIL.sub(rf"\g<kept>{MASK}@{MASK}", found)


def _mask_named(found: re.Match[str]) -> str:
    """A plain word after "token is" is prose, not a secret; one after "password:" is hidden whatever it looks like."""
    secret = found["secret"]
    prose = found["kept"].rstrip("\"'‘“« ").lower().endswith(("is", "est"))
    if secret.startswith(MASK) or (prose and not any(char.isdigit() for char in secret)):
        return found[0]
    return found["kept"] + MASK


def _mask_if_random(found: re.Match[str]) -> str:
    word = found[0]
    return f"{word[:4]}{MASK}" if _is_random(word) else word


def _is_random(word: str) -> bool:
    """Whether a long word looks drawn by lot: hexadecimal, or letters of both cases and digits, evenly spread."""
    if _UUID.fullmatch(word):
        return False
    if len(word) >= 32 and _HEX.fullmatch(word) and any(c.isdigit() for c in word) and any(c.isalpha() for c in word):
        return True
    mixed = any(c.isdigit() for c in word) and any(c.isupper() for c in word) and any(c.islower() for c in word)
    if not mixed or word.count("/") > 2 or word.count("-") > 3 or word.count("_") > 3:
        return False
    return _entropy(word[:_LONGEST]) >= _LEAST_ENTROPY


def _entropy(word: str) -> float:
    """Bits a character, from how often each occurs in the word."""
    return -sum(n / len(word) * math.log2(n / len(word)) for n in Counter(word).values())

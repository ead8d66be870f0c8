"""Lists hide addresses, keys and tokens, and leave prose alone. The keys are examples of the shapes that issuers print
in their documentation, put together here so that no scanner takes this file for a leak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.masking import MASK, masked, masked_id

A = "AbCdEfGhIjKlMnOpQrStUvWxYz"
D = "0123456789"

SECRETS = {
    "openai": "sk-" + A + D,
    "openai project": "sk-proj-" + A + "_" + D + "-" + A,
    "anthropic": "sk-ant-" + "api03-" + A + D,
    "stripe": "sk_live_" + D + A,
    "github": "ghp_" + A + D,
    "github fine": "github_pat_" + D + A + "_" + A,
    "gitlab": "glpat-" + A[:20],
    "slack": "xoxb-" + D + "-" + D + "-" + A,
    "hugging face": "hf_" + A,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA-1234567_abcdefghijklmnopqrstuvw",
    "ours": "ek_abcdefghijkm_" + A + D + "abcdefg",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + A,
    "random": "q7Zp" + "T3vXw9LkR2mNb8Yc5HdF6gJ1",
    "hex": "9f86d081884c7d659a2feaa0c55ad015",
    "bearer": "aVeryPlainTokenOfLetters",
    "named": "correct-horse",
    "url": "hunter22",
}


@pytest.mark.parametrize("kind", [k for k in SECRETS if k not in ("bearer", "named", "url")])
def test_keys_and_tokens_are_hidden_wherever_they_stand(kind: str) -> None:
    secret = SECRETS[kind]
    for text in (secret, f"Use {secret} please.", f'{{"key": "{secret}"}}', f"key={secret}&x=1", f"({secret})"):
        shown = masked(text)
        assert secret not in shown
        assert MASK in shown
        assert secret[12:] not in shown


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer aVeryPlainTokenOfLetters", SECRETS["bearer"]),
        ("password: correct-horse", SECRETS["named"]),
        ("my password is hunter22, ok?", SECRETS["url"]),
        ("le mot de passe est hunter22", SECRETS["url"]),
        ('{"client_secret":"correct-horse"}', SECRETS["named"]),
        ("API_KEY=correct-horse", SECRETS["named"]),
        ("postgres://admin:hunter22@db.example.org/x", SECRETS["url"]),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- bye", "MIIE"),
    ],
)
def test_what_is_called_a_secret_is_hidden(text: str, secret: str) -> None:
    assert secret not in masked(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Write to jane.doe+x@mail.example.org today", f"Write to j{MASK}@{MASK} today"),
        ("<élodie@exemple.fr>, bob@example.com", f"<é{MASK}@{MASK}>, b{MASK}@{MASK}"),
        ("mailto:jane@example.com?x=1", f"mailto:j{MASK}@{MASK}?x=1"),
    ],
)
def test_addresses_keep_their_first_letter(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Mend the parser, the token is missing and the password is wrong.",
        "La clé est dans le tiroir; le jeton est perdu.",
        "See src/rules/domain/language/patterns.py and https://example.org/a/b/c/d?page=12",
        "RuntimeError in test_a_replay_keeps_its_counts_and_the_findings_of_the_chats",
        "550e8400-e29b-41d4-a716-446655440000",
        "a = b @ c.T; @decorator.with_arguments()",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "2026-03-01T10:00:00Z 1234567890123456789012345678",
        "",
    ],
)
def test_prose_code_and_ids_stay(text: str) -> None:
    assert masked(text) == text


def test_ids_of_a_source_stay_readable_and_addresses_in_them_do_not() -> None:
    trace = "9f86d081884c7d659a2feaa0c55ad015"
    assert masked_id(trace) == trace
    assert "jane" not in masked_id("session-jane@example.com")
    assert SECRETS["github"] not in masked_id(SECRETS["github"])


@given(st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@given(st.text(alphabet="ab@.- :=/_+1"), st.sampled_from(["jane@example.com", "ghp_" + A + D]))
def test_a_secret_between_blanks_never_shows(around: str, secret: str) -> None:
    assert secret not in masked(f"{around} {secret} {around}")

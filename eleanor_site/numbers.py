"""Numbers that come as text from addresses and forms."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def whole_number(text: str, *, otherwise: T, most: int = 10**9) -> int | T:
    """The number that the text writes in ordinary digits, or `otherwise` when it is none or above `most`."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return otherwise
    number = int(text)
    return number if number <= most else otherwise

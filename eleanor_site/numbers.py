"""Numbers that come as text from addresses and forms."""

from __future__ import annotations


def whole_number(text: str, *, otherwise: int, most: int = 10**9) -> int:
    """The number that the text writes in ordinary digits, or `otherwise` when it is none or above `most`."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return otherwise
    number = int(text)
    return number if number <= most else otherwise

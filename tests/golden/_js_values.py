"""JSON values as JavaScript holds them."""

from typing import Any


def js_values(value: Any) -> Any:
    """Every number a double, as JavaScript has no other: recorded integers may be spelled either way."""
    if isinstance(value, dict):
        return {key: js_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [js_values(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

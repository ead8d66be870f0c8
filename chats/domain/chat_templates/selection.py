"""Which of several named templates is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def select_template(
    templates: Mapping[str, str], name: str | None = None, tools: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """The template that `apply_chat_template` takes from several named ones.

    The one asked for; else, with tools (an empty list counts), `tool_use`; else `default`. Raises ValueError with the
    names there are.
    """
    if name is not None and name in templates:
        return templates[name]
    if name is None and tools is not None and "tool_use" in templates:
        return templates["tool_use"]
    if name is None and "default" in templates:
        return templates["default"]
    raise ValueError(
        "This model has multiple chat templates with no default specified! Please either pass a chat template or the "
        "name of the template you wish to use to the `chat_template` argument. Available template names are "
        f"{sorted(templates)}."
    )

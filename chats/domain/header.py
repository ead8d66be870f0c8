"""The Eleanor header: hints that a client sends as a system message and no model ever sees."""

from __future__ import annotations

import json
import re

from pydantic import ConfigDict

from chats.domain.base import BaseDataModel

HEADER_PATTERN = r"^ELEANOR_SYSTEM\s*({.+})$"
_HEADER = re.compile(r"ELEANOR_SYSTEM\s*(\{.*)", re.DOTALL)
_ANY_HEADER = re.compile(r"ELEANOR_SYSTEM\s*\{.*\}", re.DOTALL)


def is_header(content: str) -> bool:
    """Whether a system message is meant as a header, so that no model may see it: also a broken or an empty one."""
    return _ANY_HEADER.fullmatch(content.strip()) is not None


class SessionResourceSettings(BaseDataModel):
    """Overrides of a session's resources. Its fields are not documented, so all keys are kept."""

    model_config = ConfigDict(extra="allow")


class EleanorFrameworkHeader(BaseDataModel):
    """Hints of a client such as SillyTavern (canonical-chat.md section 4). All fields are optional."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, use_enum_values=True, strict=True)

    source: str | None = None
    user: str | None = None
    char: str | None = None
    session: str | None = None
    chat_type: str | None = None
    session_settings: SessionResourceSettings | None = None

    def to_header(self) -> str:
        """The content of a system message that carries this header: one line, nulls included, non-ASCII as it is.

        Empty braces are never written, because the reference's pattern needs a character between them.
        """
        return "ELEANOR_SYSTEM " + json.dumps(self.model_dump(mode="json"), ensure_ascii=False)

    @staticmethod
    def from_header(header: str) -> EleanorFrameworkHeader:
        """Read the content of a system message; outer white space doesn't count.

        Raises ValueError when the text is no header, and its subclass ValidationError when the JSON in it is wrong,
        goes on after the object, or does not fit.
        """
        found = _HEADER.fullmatch(header.strip())
        if found is None:
            raise ValueError("not an Eleanor header: expected ELEANOR_SYSTEM and one JSON object")
        return EleanorFrameworkHeader.model_validate_json(found.group(1))

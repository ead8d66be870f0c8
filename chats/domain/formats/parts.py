"""Content that is a list of parts: the text, and placeholders for what is no text (import-formats.md section 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.values import mapping, text

TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text", "summary_text", "refusal", "plain_text"})
IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image", "image_file", "image_asset_pointer"})
AUDIO_TYPES: Final = frozenset(
    {"audio", "input_audio", "output_audio", "audio_url", "audio_transcription", "audio_asset_pointer"}
)
FILE_TYPES: Final = frozenset(
    {"file", "input_file", "document", "document_url", "video", "video_url", "container_upload"}
)
REASONING_TYPES: Final = frozenset({"reasoning", "thinking"})
_BYTES: Final = frozenset({"data", "base64", "bytes", "file_data", "fileData", "inlineData", "blob", "signature"})
_LONGEST = 500


def placeholder(kind: str, part: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text that stands for a part, and what is known of it without its bytes."""
    known = described(part)
    if kind != "file":
        return f"[{kind}]", {"placeholder": kind, **known}
    name = file_name(part)
    return f"[file: {name}]" if name else "[file]", {"placeholder": kind, **known}


def kind_of(part: dict[str, Any]) -> str | None:
    """`image`, `audio` or `file` for a part that isn't text, by its type or its media type."""
    given = part.get("type")
    if not isinstance(given, str):
        return None
    if given in IMAGE_TYPES:
        return "image"
    if given in AUDIO_TYPES:
        return "audio"
    if given in FILE_TYPES:
        media = media_type(part)
        return "image" if media.startswith("image/") else "audio" if media.startswith("audio/") else "file"
    return None


def media_type(part: dict[str, Any]) -> str:
    for holder in _holders(part):
        for key in ("mimeType", "mime_type", "mediaType", "media_type", "content_type", "contentType"):
            found = text(holder.get(key))
            if found and "/" in found:
                return found
    return ""


def file_name(part: dict[str, Any]) -> str | None:
    """The name that a file part carries, in one of the usual keys."""
    for holder in _holders(part):
        for key in ("filename", "file_name", "fileName", "name", "title"):
            if found := text(holder.get(key)):
                return found
    for holder in _holders(part):
        for key in ("file_id", "fileId", "fileUri", "file_uri", "id", "url", "file_url", "video_url"):
            found = text(holder.get(key))
            if found and not found.startswith("data:") and len(found) <= _LONGEST:
                return found
    return None


def _holders(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield part
    for value in part.values():
        if isinstance(value, dict):
            yield value


def described(part: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a part: short scalars of it and of the objects in it; never bytes, data addresses or blobs."""
    known: dict[str, Any] = {}
    for key, value in part.items():
        if key in _BYTES:
            if isinstance(value, dict):
                known.update(described(value))
        elif isinstance(value, dict):
            inner = described(value)
            if inner:
                known[key] = inner
        elif isinstance(value, str):
            if len(value) <= _LONGEST and not value.startswith("data:"):
                known[key] = value
        elif isinstance(value, (int, float, bool)):
            known[key] = value
    return known


class Content:
    """The text of a list of parts, its placeholders, and the thinking text among them."""

    __slots__ = ("parts", "reasoning", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.parts: list[dict[str, Any]] = []
        self.reasoning: list[str] = []

    def add_text(self, value: str) -> None:
        self.texts.append(value)

    def add_placeholder(self, kind: str, part: dict[str, Any]) -> None:
        shown, known = placeholder(kind, part)
        self.texts.append(shown)
        self.parts.append(known)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def thinking(self) -> str | None:
        return "\n".join(self.reasoning) or None


def read_content(value: Any, not_understood: list[str] | None = None) -> Content:
    """Text, null, or a list of parts in any of the usual spellings; the types nobody knows are added to the list."""
    content = Content()
    if isinstance(value, str):
        content.texts.append(value)
        return content
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        if value is not None:
            content.texts.append(str(value))
        return content
    for part in value:
        read_part(content, part, not_understood)
    return content


def read_part(content: Content, part: Any, not_understood: list[str] | None = None) -> None:
    if isinstance(part, str):
        content.texts.append(part)
        return
    if not isinstance(part, dict):
        return
    kind = part.get("type") if isinstance(part.get("type"), str) else None
    if kind in TEXT_TYPES or kind is None:
        for key in ("text", "value", "content", "refusal"):
            if isinstance(part.get(key), str):
                content.texts.append(part[key])
                return
        if isinstance(mapping(part.get("text")).get("value"), str):
            content.texts.append(part["text"]["value"])
            return
    if kind in REASONING_TYPES:
        for key in ("thinking", "reasoning", "text", "value"):
            if text(part.get(key)):
                content.reasoning.append(part[key])
                return
        return
    other = kind_of(part)
    if other is not None:
        content.add_placeholder(other, part)
        return
    if isinstance(part.get("text"), str):
        content.texts.append(part["text"])
    elif not_understood is not None:
        not_understood.append(f"content[].{kind}" if kind is not None else "content[]")


def plain_text(value: Any) -> str:
    """Only the text of a content value."""
    return read_content(value).text

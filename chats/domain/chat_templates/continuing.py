"""Continuing the final message: a tag behind it, where the text is cut off after rendering."""

from __future__ import annotations

from typing import Any

from chats.domain.chat_templates.requests import REASONING_FIELDS, Profile, RenderRequest

CONTINUE_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


def tag_message(request: RenderRequest, messages: list[dict[str, Any]]) -> str:
    """Put the tag behind the value to continue, in place; returns the value without it."""
    last = messages[-1]
    if request.profile == "classic":
        # Any field name counts as true here, and a missing content is a KeyError.
        fields, value = ["content"], last["content"]
    else:
        wanted = request.continue_final_message if isinstance(request.continue_final_message, str) else "content"
        value = last.get(wanted)
        if value is None:
            raise ValueError(f'continue_final_message is set but the final message has no "{wanted}" to continue!')
        fields = [wanted]
        if wanted in REASONING_FIELDS:
            fields = [name for name in REASONING_FIELDS if last.get(name) == value]
        if not any(name in request.template for name in fields):
            raise ValueError(
                f'continue_final_message is set to "{wanted}" but this is not an accepted field in the chat_template'
            )
    if isinstance(value, list):
        return _tag_last_text_part(value)
    for name in fields:
        last[name] = last[name] + CONTINUE_TAG
    return str(value)


def _tag_last_text_part(parts: list[Any]) -> str:
    for part in reversed(parts):
        if "text" in part:
            text: str = part["text"]
            part["text"] = text + CONTINUE_TAG
            return text
    raise ValueError("continue_final_message is set but we could not find any text to continue in the final message!")


def cut_at_tag(text: str, value: str, profile: Profile) -> str:
    tag = CONTINUE_TAG.strip()
    if value.strip() not in text or tag not in text:
        message = (
            "continue_final_message is set but the final message does not appear in the chat after applying the chat "
            "template! This can happen if the chat template deletes portions of the final message. Please verify the "
            "chat template and final message in your chat to ensure they are compatible."
        )
        if profile == "current":
            message += f"Final message to continue: {value.strip()}\nRendered chat:\n{text}"
        raise ValueError(message)
    at = text.rindex(tag)
    if text.startswith(CONTINUE_TAG, at):
        return text[:at]
    # The template trimmed the message, and with it the tag's blank: what stood before the tag would be trimmed, too.
    return text[:at].rstrip()

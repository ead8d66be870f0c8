"""Options of a chat wrapper made from a chat template (chat-wrappers.md section 12.1)."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from chats.domain.wrappers.base import WrapperOptions
from chats.domain.wrappers.template import FunctionCallTemplate, SegmentTemplates

MESSAGE: Final = "{{message}}"
DEFAULT_FORMAT: Final = "### System message\n\n{{message}}\n\n----"


class SystemConversion(WrapperOptions):
    """How system messages become user messages for templates that have none."""

    format: str = DEFAULT_FORMAT
    use: Literal["ifNeeded", "always"] = "ifNeeded"


class JinjaOptions(WrapperOptions):
    """Section 12.1. The two internal ones are for comparing templates with wrappers."""

    template: str
    reasoning: bool | None = True
    model_role_name: str = "assistant"
    user_role_name: str = "user"
    system_role_name: str = "system"
    convert_unsupported_system_messages_to_user_messages: bool | Literal["auto"] | SystemConversion = SystemConversion()
    function_call_message_template: Literal["auto", "noJinja"] | FunctionCallTemplate = "auto"
    join_adjacent_messages_of_the_same_type: bool = True
    trim_leading_whitespace_in_responses: bool = True
    keep_only_last_thought: bool | None = None
    additional_render_parameters: dict[str, Any] | None = None
    segments: SegmentTemplates | None = None
    require_calls: bool = Field(default=False, alias="_requireFunctionCallSettingsExtraction")
    examine_non_first: bool = Field(default=False, alias="_functionCallExtractionExamineNonFirst")


CONVERSION_KEY: Final = "convertUnsupportedSystemMessagesToUserMessages"


def conversion_of(option: bool | str | SystemConversion) -> SystemConversion | None:
    if isinstance(option, SystemConversion):
        return option
    if option is False:
        return None
    return SystemConversion(use="always" if option is True else "ifNeeded")

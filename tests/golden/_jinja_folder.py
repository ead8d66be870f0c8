"""Jinja wrappers of a folder of recorded results: built with the product's own engine, in this process."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chats.domain import wording as words
from chats.domain.chat_templates import Rendered, RenderRequest, TemplateFailure, render_or_explain
from chats.domain.wrappers.jinja import JinjaOptions, JinjaTemplateChatWrapper
from chats.domain.wrappers.jinja.rendering import Render
from tests.golden._wrapper_cases.folder import GoldenFolder

EMPTY = "EmptyChatWrapper"


def renderer(folder: GoldenFolder) -> Render:
    """Renders at the frozen moment of the recording."""
    now = folder.clock.now().replace(tzinfo=None)

    def render(request: RenderRequest) -> Rendered | TemplateFailure:
        return render_or_explain(replace(request, now=now))

    return render


def jinja_wrapper(
    folder: GoldenFolder, template: str, options: dict[str, Any], special_tokens: Sequence[str] | None = None
) -> JinjaTemplateChatWrapper:
    """`template` names a recorded template. The functions block has the base wrapper's wording."""
    base = folder.wrapper(EMPTY, {})
    return JinjaTemplateChatWrapper(
        JinjaOptions.model_validate({**options, "template": folder.load("jinja-templates.json")[template]}),
        renderer(folder),
        wording={words.FUNCTIONS: base.wording[words.FUNCTIONS]},
        clock=folder.clock,
        special_tokens=special_tokens,
    )


def internals(wrapper: JinjaTemplateChatWrapper) -> dict[str, Any]:
    """What was found out about a template, in the original's names."""
    found = {
        "stringifyFunctionParams": wrapper.stringify_function_params,
        "stringifyFunctionResult": wrapper.stringify_function_result,
        "combineJinjaModelMessageAndToolCalls": wrapper.combine_jinja_model_message_and_tool_calls,
        "endJinjaMessagesWithUserMessage": wrapper.end_jinja_messages_with_user_message,
    }
    if wrapper.wrap_function_params_inside_map_key is not None:
        found["wrapFunctionParamsInsideMapKey"] = wrapper.wrap_function_params_inside_map_key
    return found

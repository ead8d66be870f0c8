"""Which wrapper was chosen, with its options and settings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain import wording as words
from chats.domain.resolving import JinjaTrial, Resolution, resolve
from chats.domain.wrappers.base import ChatWrapper
from chats.domain.wrappers.general import AlpacaChatWrapper
from chats.domain.wrappers.jinja import JinjaOptions, JinjaTemplateChatWrapper
from tests.golden._jinja_folder import EMPTY, internals, renderer
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "resolve-chat-wrapper.json"
_TEMPLATE = "(template) "


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        prefix = _TEMPLATE if "jinja" in case or "metadataJinja" in case else ""
        yield prefix + case["note"], _difference(case, folder)


def is_apart(name: str) -> bool:
    """Whether one of the recorded templates is rendered, so that the engines' differences show."""
    return name.startswith(_TEMPLATE)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    given = json.loads(json.dumps(case["input"]))
    templates = folder.load("jinja-templates.json")
    custom = given.get("customWrapperSettings") or {}
    if "jinja" in case:
        custom = {**custom, "jinjaTemplate": {**custom.get("jinjaTemplate", {}), "template": templates[case["jinja"]]}}
    metadata = dict((given.get("fileInfo") or {}).get("metadata") or {})
    if "metadataJinja" in case:
        metadata["tokenizer"] = {"chat_template": templates[case["metadataJinja"]]}
    tokens = (case.get("tokenizer") or {}).get("specialTokens")
    template = custom.get("jinjaTemplate", {}).get("template", metadata.get("tokenizer", {}).get("chat_template"))
    trial = None
    if template is not None:
        options = {key: value for key, value in custom.get("jinjaTemplate", {}).items() if key != "template"}
        trial = JinjaTrial(template, renderer(folder), options, tokens, folder.clock)
    try:
        resolution = resolve(
            given.get("filename"),
            given.get("architecture"),
            None,
            metadata,
            bos_text=given.get("bosString"),
            special_tokens=tokens,
            wrapper_type=given.get("type"),
            custom_options=custom,
            trial=trial,
            use_template_itself=not given.get("noJinja", False),
            fall_back=given.get("fallbackToOtherWrappersOnJinjaError", True),
        )
        wrapper = _built(resolution, folder, tokens)
    except ValueError as error:
        return None if "error" in case else f"failed: {error}"
    if "error" in case:
        return f"should fail: {case['error']['message']}"
    expected = case["output"]
    got = None if wrapper is None else _to_json(wrapper)
    if got is not None and expected is not None:
        # The original has no internal names for some options.
        got["internal"] = {name: value for name, value in got["internal"].items() if name in expected["internal"]}
    return mismatch(got, expected)


def _built(resolution: Resolution, folder: GoldenFolder, tokens: list[str] | None) -> ChatWrapper | None:
    if resolution.wrapper_id is None:
        return None
    if resolution.wrapper == "jinjaTemplate":
        wording = {words.FUNCTIONS: folder.wrapper(EMPTY, {}).wording[words.FUNCTIONS]}
        chosen = JinjaOptions.model_validate(resolution.options)
        return JinjaTemplateChatWrapper(
            chosen, renderer(folder), wording=wording, clock=folder.clock, special_tokens=tokens
        )
    return folder.wrapper(resolution.wrapper_id, dict(resolution.options))


def _to_json(wrapper: ChatWrapper) -> dict[str, Any]:
    properties = wrapper.properties_to_json()
    properties.pop("template", None)
    return {
        "class": type(wrapper).__name__,
        "wrapperName": wrapper.wrapper_name,
        "properties": properties,
        "internal": _internal(wrapper),
        "settings": wrapper.settings.to_json(),
    }


def _internal(wrapper: ChatWrapper) -> dict[str, Any]:
    if isinstance(wrapper, JinjaTemplateChatWrapper):
        return {
            **{f"_{name}": value for name, value in internals(wrapper).items()},
            "_usingJinjaFunctionCallTemplate": wrapper.using_jinja_function_call_template,
            "_templateKeepOnlyLastThought": wrapper.template_keeps_only_last_thought,
        }
    fields = type(wrapper.options).model_fields
    named = {(info.alias or name): getattr(wrapper.options, name) for name, info in fields.items()}
    found = {f"_{name.lstrip('_')}": value for name, value in named.items() if isinstance(value, bool | str | int)}
    if isinstance(wrapper, AlpacaChatWrapper):
        return {name: wrapper.title_text(value) if name.endswith("Title") else value for name, value in found.items()}
    return found

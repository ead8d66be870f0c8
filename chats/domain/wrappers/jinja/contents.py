"""Rendering a history with placeholders, and putting its contents back (chat-wrappers.md section 12.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chats.domain.history_items import HistoryItem, ModelItem
from chats.domain.js_json import ABSENT, js_trim
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText
from chats.domain.openai_format import Message
from chats.domain.wrapper_settings import ChatWrapperSettings, OpenedOnStart
from chats.domain.wrappers.jinja.options import JinjaOptions
from chats.domain.wrappers.jinja.rendering import Placeholders, TemplateFailed, TemplateRenderer, first_success


@dataclass(frozen=True)
class Way:
    """One combination of alternatives to render a history with (section 12.2)."""

    format: str | None
    end_with_user: bool
    embedded_tools: bool = False


class ContentRendering:
    """One render of a history with placeholders, and putting its contents back (section 12.5)."""

    def __init__(
        self,
        items: Sequence[HistoryItem],
        messages: Sequence[Message],
        way: Way,
        *,
        options: JinjaOptions,
        settings: ChatWrapperSettings,
        renderer: TemplateRenderer,
        opened: OpenedOnStart | None,
        calls_share_message: bool,
        avoided: str,
    ) -> None:
        self._options = options
        self._settings = settings
        self._renderer = renderer
        self._opened = opened
        self._calls_share_message = calls_share_message
        self._ends_with_model = bool(items) and isinstance(items[-1], ModelItem)
        contents = [str(message.content) for message in messages if message.content not in (ABSENT, None)]
        self._placeholders = Placeholders("\n".join([avoided, way.format or "", *contents]))
        self._contents: dict[str, LlamaText] = {}
        self._message_ids: set[str] = set()
        self._model_ids: set[str] = set()
        self._last_model_ids: set[str] = set()
        # The id of a reasoning, and the id of the content it belongs to.
        self._reasonings: dict[str, str] = {}
        self._roles = {
            "system": options.system_role_name,
            "user": options.user_role_name,
            "assistant": options.model_role_name,
        }
        self._shown = self._with_placeholders(messages)
        self._tokens = {}
        for name, role in (("bos_token", "BOS"), ("eos_token", "EOS"), ("eot_token", "EOT")):
            self._tokens[name] = self._placeholders.make()
            self._contents[self._tokens[name]] = LlamaText(SpecialToken(role))
        self._erased_after: str | None = None
        self._finish_messages(way)

    def _with_placeholders(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        shown = []
        may_reason = True
        after_calls = bool(self._opened and self._opened.after_function_calls)
        share = self._calls_share_message
        for message in messages:
            json = message.to_json()
            json["role"] = self._roles.get(message.role, message.role)
            shown.append(json)
            if message.content is ABSENT or message.content is None:
                continue
            content_id = self._placeholders.make(digits=message.role == "tool")
            json["content"] = content_id
            self._contents[content_id] = LlamaText(message.content)
            self._message_ids.add(content_id)
            if message.role in ("assistant", "tool"):
                self._model_ids.add(content_id)
                self._last_model_ids.add(content_id)
            elif message.role == "user":
                self._last_model_ids.clear()
            if self._opened and may_reason and message.role == "assistant" and (share or not message.tool_calls):
                reasoning_id = self._placeholders.make()
                json["reasoning_content"] = reasoning_id
                self._reasonings[reasoning_id] = content_id
                may_reason = False
            elif message.role == "user" or (after_calls and message.role == "tool"):
                may_reason = True
        return shown

    def _finish_messages(self, way: Way) -> None:
        last = self._shown[-1] if self._shown else None
        options = self._options
        open_answer = open_answer_of(last, options.model_role_name) if last is not None else None
        if way.end_with_user and open_answer is not None:
            self._erased_after = open_answer
            self._shown.append({"role": options.user_role_name, "content": self._placeholders.make()})
            return
        content = last.get("content") if last is not None else None
        if last is not None and self._opened and last["role"] == options.model_role_name and isinstance(content, str):
            last["reasoning_content"] = content
            last["content"] = ""

    def result(self, tools: Sequence[Mapping[str, Any]] | None) -> tuple[LlamaText, LlamaText | None]:
        """The context text and the stop part, if there is one."""
        renderer, reasoning = self._renderer, self._options.reasoning
        variables = {} if reasoning is None else {"enable_thinking": reasoning}
        text = first_success(
            [
                lambda prompt=prompt: renderer(  # type: ignore[misc]
                    self._shown, self._tokens, tools, add_generation_prompt=prompt, **variables
                )
                for prompt in (False, True)
            ]
        )
        parts = self._placeholders.split(cut_after(text, self._erased_after))
        end = self._end_of_context(parts) if self._ends_with_model else len(parts)
        context = self._with_contents(parts[:end])
        stop = self._stop_part(parts[end:])
        return context, stop or None

    def _end_of_context(self, parts: Sequence[str]) -> int:
        """Behind the last content, which must be one of the model."""
        for index in range(len(parts) - 2, 0, -2):
            part = parts[index]
            if part in self._model_ids:
                return index + 1
            if part in self._message_ids:
                self._check_all_used(parts)
                raise TemplateFailed("Last message was expected to be a model message, but it was not")
        self._check_all_used(parts)
        raise TemplateFailed("A model message was expected to be the last message, but it was not found")

    def _check_all_used(self, parts: Sequence[str]) -> None:
        if not self._message_ids.issubset(parts[1::2]):
            raise TemplateFailed("Some input messages are not present in the generated Jinja template output")

    def _stop_part(self, parts: Sequence[str]) -> LlamaText:
        pieces: list[Piece] = []
        for part in parts:
            content = self._contents.get(part)
            if content is None:
                pieces.append(SpecialTokensText(part))
            else:
                pieces.extend(content.values)
        return LlamaText.of(pieces)

    def _with_contents(self, parts: Sequence[str]) -> LlamaText:
        self._check_all_used(parts)
        pieces: list[Piece] = []
        empty_thought = self._empty_thought_finder()
        in_last_answer = False
        index = 0
        while index < len(parts):
            part = parts[index]
            index += 1
            if index % 2 == 1:
                if part:
                    pieces.append(SpecialTokensText(part))
            elif part in self._reasonings:
                index = self._behind_reasoning(parts, index, self._reasonings[part])
            elif part in self._contents:
                in_last_answer = in_last_answer or part in self._last_model_ids
                if in_last_answer and pieces and isinstance(pieces[-1], SpecialTokensText):
                    pieces[-1] = SpecialTokensText(empty_thought(pieces[-1].value))
                pieces.extend(self._contents[part].values)
            else:
                pieces.append(SpecialTokensText(part))
        return LlamaText.of(pieces)

    def _behind_reasoning(self, parts: Sequence[str], index: int, content_id: str) -> int:
        """Where to go on behind a reasoning: at its content, if that follows at once and no call begins before it."""
        if index + 1 >= len(parts) or parts[index + 1] != content_id:
            return index
        starts = [text for text in map(_only_text, _call_starts(self._settings)) if text is not None]
        return index if any(start in parts[index] for start in starts) else index + 1

    def _empty_thought_finder(self) -> Callable[[str], str]:
        segments = self._settings.segments
        thought = segments.thought if segments else None
        prefix = _only_text(thought.printed_prefix) if thought and thought.printed_prefix else None
        suffix = _only_text(thought.suffix) if thought and thought.suffix else None
        if thought is None or prefix is None or suffix is None or thought.open_on_response_start is not True:
            return lambda text: text

        def without_empty_thought(text: str) -> str:
            start = text.find(prefix)
            end = text.find(suffix, start + len(prefix)) if start >= 0 else -1
            if end < 0 or js_trim(text[start + len(prefix) : end]):
                return text
            return text[:start] + text[end + len(suffix) :]

        return without_empty_thought


def _call_starts(settings: ChatWrapperSettings) -> list[LlamaText]:
    call, parallelism = settings.functions.call, settings.functions.parallelism
    sections = [LlamaText()]
    if parallelism is not None:
        sections = [parallelism.call.section_prefix, *(parallelism.call.section_prefix_alternate_matches or ())]
    prefixes = [call.prefix, *(call.prefix_alternate_matches or ())]
    return [LlamaText(section, prefix) for section in sections for prefix in prefixes]


def _only_text(text: LlamaText) -> str | None:
    """The text, unless there is a token in it that is known by role only."""
    return None if any(isinstance(piece, SpecialToken) for piece in text.values) else str(text)


def open_answer_of(message: Mapping[str, Any], role: str) -> str | None:
    """The content of a message with that role, if it has one and no calls."""
    content = message.get("content")
    if message["role"] != role or message.get("tool_calls") or not isinstance(content, str):
        return None
    return content or None


def cut_after(text: str, ending: str | None) -> str:
    at = text.rfind(ending) if ending is not None else -1
    return text if ending is None or at < 0 else text[: at + len(ending)]

"""Following a model while it generates an answer (chat-wrappers.md section 14.1).

The original drives a model: it renders the history, reads tokens, switches to reading a call when one begins, renders
again where a wrapper asks for that, and so on. `Generation` does the same over tokens that come from elsewhere, so that
it shows how an answer is understood token by token, and which context each part of it was generated in.

While it generates calls, the original forces a model to a form: a line break ends a function's name, four line breaks
end its params. For output without them see `whole_text`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import Literal

from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    Segment,
    SegmentType,
)
from chats.domain.js_json import ABSENT, js_trim, json_dumps, parse_json, replace_marker
from chats.domain.llama_text import LlamaText, SpecialToken, TextInput
from chats.domain.output_parsing.generated import (
    Generated,
    GeneratedCall,
    GenerationError,
    GenerationOptions,
    with_response,
)
from chats.domain.output_parsing.params_schema import check_params
from chats.domain.output_parsing.segments import SegmentStream, StreamEvent, merged_events
from chats.domain.output_parsing.start_texts import StartTexts
from chats.domain.output_parsing.triggers import HeldTokens, TriggerDetector
from chats.domain.output_parsing.vocabulary import END_OF_GENERATION, Token, Vocabulary, described, plain_text
from chats.domain.wrapper_settings import ParallelismSettings, ThoughtSegment
from chats.domain.wrappers.base import ChatWrapper
from chats.domain.wrappers.context_state import ContextState, NoPrefixTrigger, PrefixTrigger

_PARAMS_END = "\n" * 4


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Where generation goes on: ordinary text, or calls: first finding out whether it's one, or with a name.
_Mode = Literal["text", "disengage", "name"]
_Trigger = PrefixTrigger | NoPrefixTrigger
_Steps = Generator[None, Token, "Generated | None"]


class Generation:
    """One answer: `feed` takes what the model emits, and gives what became known of it.

    `result` is set once the answer has ended; what comes after that is left alone. A token costs time by the size of
    the wrapper's triggers; rendering again (Harmony, Muse) costs what rendering the history costs.
    """

    def __init__(
        self,
        wrapper: ChatWrapper,
        history: Sequence[HistoryItem],
        functions: Functions | None = None,
        document_params: bool = True,
        vocabulary: Vocabulary | None = None,
        options: GenerationOptions | None = None,
        now: Callable[[], str] = _now,
    ) -> None:
        self._wrapper = wrapper
        self._settings = wrapper.settings
        self._functions = functions or {}
        self._document_params = document_params
        self._vocabulary = vocabulary or Vocabulary()
        self._options = options or GenerationOptions()
        for name in self._functions:
            _check_name(name)
        self._history = list(history)
        last = self._history[-1] if self._history else None
        if not isinstance(last, ModelItem):
            last = ModelItem(())
            self._history.append(last)
        response = last.response
        self._events: list[StreamEvent] = []
        self._segments = SegmentStream(
            self._settings.segments,
            self._vocabulary,
            response,
            self._options.budgets_include_response,
            now,
            self._events.append,
        )
        self._held = HeldTokens()
        self._pending: list[Token] = []
        self._released = False
        self._start_texts = StartTexts()
        self._stops = TriggerDetector()
        self._own_stops = TriggerDetector([self._vocabulary.tokenize(text) for text in self._options.stop_triggers])
        self._call_starts = TriggerDetector(self._call_start_spellings())
        self._detect_calls = True
        self._rerenders = TriggerDetector()
        self._space_locks: list[int] = []
        self._window: list[Token] = []
        self._prefix_tokens: list[Token] = []
        self._generated = 0
        self._calls: list[GeneratedCall] = []
        self._calling = False
        self._name_start = ""
        self._released_before_call = False
        self.contexts: list[LlamaText] = []
        self.consumed = 0
        self.result: Generated | None = None
        self._state = ContextState(LlamaText(), ())
        self._steps = self._run(response)
        self._advance(None)

    def feed(self, chunk: TextInput) -> list[StreamEvent]:
        """Take a piece of output. Plain text is characters, whatever it looks like; special pieces are tokens.

        Raises GenerationError if a call names an unknown function or its params don't fit the schema.
        """
        return self.feed_tokens(
            [piece for part in LlamaText(chunk).values for piece in (part if isinstance(part, str) else [part])]
        )

    def feed_tokens(self, tokens: Sequence[Token]) -> list[StreamEvent]:
        """As `feed`, with tokens of the vocabulary."""
        for token in tokens:
            if self.result is not None:
                break
            self.consumed += 1
            self._advance(token)
        events = merged_events(self._events)
        self._events.clear()
        return events

    def history(self) -> list[HistoryItem]:
        """The history with the answer so far in it."""
        return with_response(self._history, self.result.entries if self.result else self._segments.entries())

    @property
    def finished_calls(self) -> list[GeneratedCall]:
        return list(self._calls)

    def _advance(self, token: Token | None) -> None:
        try:
            if token is None:
                next(self._steps)
            else:
                self._steps.send(token)
        except StopIteration as stop:
            self.result = stop.value

    # The loop of the original, one token at a time.

    def _run(self, response: Sequence[ResponseEntry]) -> _Steps:
        if self._reopens_thought(response):
            self._segments.open("thought")
        first = render_again = True
        while True:
            self._load_context(render_again)
            if first and self._opens_thought(response):
                self._segments.open("thought")
                self._load_context(render_again)
            first = False
            for trigger in self._state.stop_generation_triggers:
                self._stops.add(self._vocabulary.tokenize(trigger))
            mode: _Mode = "text"
            if self._generated == 0:
                self._start_texts.add(self._tokenized(self._state.ignore_start_text))
                mode = self._initial_mode()
            if render_again:
                ended, mode = yield from self._read_prefix(mode)
                if ended is not None:
                    return ended
            if mode != "text" and self._functions:
                ended = yield from self._read_calls(mode)
                if ended is not None:
                    return ended
            self._begin_evaluation()
            ended = yield from self._read_text()
            if ended is not None:
                return ended
            render_again = True

    def _read_text(self) -> _Steps:
        """Read ordinary output; returns None when the history has to be rendered again."""
        while True:
            token = yield
            self._generated += 1
            if self._is_ordinary(token):
                self._segments.feed((token,))
                continue
            position = self._held.add(token)
            self._wait_on_space(token, position)
            if self._detect_calls:
                self._call_starts.record(token, position)
                if self._functions and self._call_starts.triggered:
                    self._hold_call_start(token, position)
                    return (yield from self._read_calls("name"))
            self._record_stops(token, position)
            self._pending += self._release()
            self._pending = self._start_texts.cut(self._pending)
            ended = self._stopped(token)
            if ended is not None:
                return ended
            self._look_at_start()
            self._move_pending()
            if self._max_tokens_reached():
                return self._cut_off()
            if self._rerenders.triggered:
                self._held.clear()
                self._close_response_item()
                return None
            if self._close_spent_segments():
                self._held.clear()
                return None

    def _is_ordinary(self, token: Token) -> bool:
        """Whether the token can't be part of anything but text, so that nothing has to be waited for."""
        options = self._options
        return (
            self._released
            and isinstance(token, str)
            and not options.trim_end
            and options.max_tokens is None
            and not options.budgets
            and not self._pending
            and self._held.is_empty
            and self._stops.ignores(token)
            and self._own_stops.ignores(token)
            and self._rerenders.ignores(token)
            and (not self._detect_calls or self._call_starts.ignores(token))
        )

    def _record_stops(self, token: Token, position: int) -> None:
        self._rerenders.record(token, position)
        self._stops.record(token, position)
        self._own_stops.record(token, position)
        if token in END_OF_GENERATION:
            self._held.lock(position)

    def _release(self) -> list[Token]:
        return self._held.release(self._call_starts, self._rerenders, self._stops, self._own_stops)

    def _wait_on_space(self, token: Token, position: int) -> None:
        if self._options.trim_end and (not isinstance(token, str) or not js_trim(token)):
            if isinstance(token, str):
                self._space_locks.append(position)
                self._held.lock(position)
            return
        for locked in self._space_locks:
            self._held.unlock(locked)
        self._space_locks = []

    def _stopped(self, token: Token) -> Generated | None:
        end_of_generation = token in END_OF_GENERATION
        detected = self._stops.triggered or self._own_stops.triggered or end_of_generation
        if not detected or self._rerenders.triggered:
            return None
        self._stops.forget_progress()
        self._own_stops.forget_progress()
        self._pending += self._release()
        self._pending = self._start_texts.cut(self._pending, force=True)
        self._push_pending()
        self._segments.finish()
        entries = self._segments.entries(self._options.trim_end)
        if end_of_generation:
            return Generated(entries, "eogToken")
        if self._stops.triggered:
            return Generated(entries, "stopGenerationTrigger")
        return Generated(entries, "customStopTrigger", stop_trigger=described(self._own_stops.first_found or ()))

    def _max_tokens_reached(self) -> bool:
        limit = self._options.max_tokens
        return limit is not None and 0 < limit <= self._generated

    def _cut_off(self) -> Generated:
        self._segments.finish()
        return Generated(self._segments.entries(self._options.trim_end), "maxTokens", list(self._calls))

    def _look_at_start(self) -> None:
        if not self._released:
            self._start_texts.look_at(self._pending)

    def _move_pending(self) -> None:
        if self._pending and (self._max_tokens_reached() or not self._start_texts.must_wait):
            if not self._released:
                self._pending = self._start_texts.cut(self._pending)
            self._push_pending()

    def _push_pending(self) -> None:
        if self._pending:
            self._segments.feed(self._pending)
            self._released = True
            self._pending = []

    # Rendering and contexts.

    def _load_context(self, render_again: bool) -> None:
        # Only the end of an answer decides how it goes on; all of it is rendered when contexts are asked for.
        record = self._options.record_contexts
        entries = self._segments.entries() if record else self._segments.last_entry()
        history = with_response(self._history, entries)
        state = self._wrapper.generate_context_state(history, self._functions or None, self._document_params)
        self._state = state
        if record:
            self._window = self._vocabulary.tokenize(state.context_text)
        if not render_again:
            return
        self._prefix_tokens = []
        self._detect_calls = state.detect_function_calls is not False
        if not self._detect_calls:
            self._call_starts.forget_progress()
        self._rerenders = TriggerDetector(self._tokenized(state.rerender.triggers if state.rerender else ()))

    def _begin_evaluation(self, call_tokens: Callable[[], Sequence[Token]] | None = None) -> None:
        if not self._options.record_contexts:
            return
        self.contexts.append(
            LlamaText.of(
                [
                    *self._window,
                    *(self._start_texts.removed or ()),
                    *self._prefix_tokens,
                    *self._pending,
                    *self._held.tokens,
                    *(call_tokens() if call_tokens else ()),
                ]
            )
        )

    def _tokenized(self, texts: Sequence[LlamaText] | None) -> list[list[Token]]:
        return [self._vocabulary.tokenize(text) for text in texts or ()]

    # Segments that open and close without a tag.

    def _reopens_thought(self, response: Sequence[ResponseEntry]) -> bool:
        thought = self._thought_settings()
        if thought is None or thought.reopen_after_function_calls is not True:
            return False
        if not response or not isinstance(response[-1], FunctionCall) or "thought" in self._segments.stack:
            return False
        return any(
            isinstance(entry, Segment) and entry.segment_type == "thought"
            for item in self._history
            if isinstance(item, ModelItem)
            for entry in item.response
        )

    def _opens_thought(self, response: Sequence[ResponseEntry]) -> bool:
        thought = self._thought_settings()
        if thought is None or response:
            return False
        return thought.printed_prefix is None or thought.open_on_response_start is True

    def _thought_settings(self) -> ThoughtSegment | None:
        return self._settings.segments.thought if self._settings.segments else None

    def _close_response_item(self) -> None:
        rerender = self._state.rerender
        if rerender is not None and rerender.action == "closeResponseItem" and self._segments.stack:
            self._segments.close(self._segments.stack[-1])

    def _close_spent_segments(self) -> bool:
        spent = [kind for kind in reversed(self._segments.opened_here) if self._is_spent(kind)]
        for kind in spent:
            self._segments.close(kind)
        return bool(spent)

    def _is_spent(self, kind: SegmentType) -> bool:
        budget = self._options.budgets.get(kind)
        return budget is not None and self._segments.token_count(kind) >= budget

    # Prefix triggers.

    def _read_prefix(self, mode: _Mode) -> Generator[None, Token, tuple[Generated | None, _Mode]]:
        """Read the tokens that say what the next part of the answer is."""
        detectors = self._prefix_detectors()
        read: list[Token] = []
        while detectors:
            if not read:
                self._begin_evaluation()
            token = yield
            self._generated += 1
            position = self._held.add(token)
            read.append(token)
            for detector, trigger, inject in list(detectors):
                detector.record(token, position, start=len(read) == 1)
                if detector.triggered:
                    self._held.clear()
                    if trigger.type != "functionCall" or trigger.replace_trigger is False:
                        self._prefix_tokens += read
                    return None, self._enter(trigger, inject, mode)
                if not detector.in_progress:
                    detectors.remove((detector, trigger, inject))
            if not detectors:
                break
            if self._max_tokens_reached():
                return self._cut_off(), mode
        otherwise = self._state.no_prefix_trigger
        if otherwise is not None and self._is_possible(otherwise):
            self._held.clear()
            return None, self._enter(otherwise, otherwise.inject, mode)
        return None, mode

    def _prefix_detectors(self) -> list[tuple[TriggerDetector, PrefixTrigger, LlamaText | None]]:
        detectors: list[tuple[TriggerDetector, PrefixTrigger, LlamaText | None]] = []
        for trigger in self._state.prefix_triggers or ():
            if not self._is_possible(trigger):
                continue
            detectors.append((TriggerDetector(self._tokenized(trigger.triggers)), trigger, trigger.inject))
            if trigger.inject:
                whole = [LlamaText(text, trigger.inject) for text in trigger.triggers]
                detectors.append((TriggerDetector(self._tokenized(whole)), trigger, None))
        return detectors

    def _is_possible(self, trigger: _Trigger) -> bool:
        if trigger.type == "functionCall":
            return bool(self._functions)
        kind = trigger.segment_type
        return kind is None or kind in self._segments.stack or not self._is_spent(kind)

    def _enter(self, trigger: _Trigger, inject: LlamaText | None, mode: _Mode) -> _Mode:
        if inject is not None:
            self._prefix_tokens += self._vocabulary.tokenize(inject)
        if trigger.segment_type is not None:
            self._segments.open(trigger.segment_type)
        return "name" if trigger.type == "functionCall" else mode

    # Calls.

    def _call_start_spellings(self) -> list[list[Token]]:
        if not self._functions:
            return []
        call = self._settings.functions.call
        parallelism = self._settings.functions.parallelism
        sections: list[TextInput] = [""]
        if parallelism is not None:
            sections = [parallelism.call.section_prefix, *(parallelism.call.section_prefix_alternate_matches or ())]
        prefixes = [call.prefix, *(call.prefix_alternate_matches or ())]
        return [self._vocabulary.tokenize([section, prefix]) for section in sections for prefix in prefixes]

    def _initial_mode(self) -> _Mode:
        start = self._state.function_call
        if not self._functions or start is None or not start.initially_engaged:
            return "text"
        return "disengage" if any(self._tokenized(start.disengage_initially_engaged)) else "name"

    def _hold_call_start(self, token: Token, position: int) -> None:
        if isinstance(token, str):
            self._held.lock(position)
        self._stops.forget_progress()
        self._stops.forget_found()
        self._own_stops.forget_progress()
        self._own_stops.forget_found()
        self._pending += self._release()
        self._pending = self._start_texts.cut(self._pending)
        self._look_at_start()
        self._move_pending()
        self._release_before_call(self._call_starts.first_found)
        self._load_context(render_again=False)

    def _release_before_call(self, syntax: Sequence[Token] | None = None) -> None:
        if self._released_before_call:
            return
        self._released_before_call = True
        self._stops.forget_progress()
        self._own_stops.forget_progress()
        self._pending += self._release()
        self._pending = self._start_texts.cut(self._pending, force=True)
        self._push_pending()
        if syntax is not None:
            self._segments.feed_syntax(syntax)
        self._held.clear()

    def _read_calls(self, mode: Literal["disengage", "name"]) -> _Steps:
        if mode == "disengage":
            ended, engaged = yield from self._read_disengagement()
            if ended is not None or not engaged:
                return ended
        while True:
            self._stops.forget_progress()
            self._own_stops.forget_progress()
            prefix = self._settings.functions.call.prefix
            tokens = self._vocabulary.tokenize(self._take_name_start())
            if (yield from self._read_until("\n", tokens, prefix)) is not None:
                return self._cut_off()
            name = self._function_name(plain_text(tokens))
            ended = yield from self._read_params(name)
            if ended is not None:
                return ended
            parallelism = self._settings.functions.parallelism
            limit = self._options.max_parallel_calls
            if parallelism is None or (limit is not None and limit <= len(self._calls)):
                return self._finish_calls()
            ended = yield from self._read_section_end(parallelism)
            if ended is not None:
                return ended

    def _read_until(
        self, end: str, tokens: list[Token], before: LlamaText
    ) -> Generator[None, Token, Literal["max"] | None]:
        """Read into `tokens` until the text `end`, or as many tokens as are allowed."""
        done = TriggerDetector([end])
        for token in tokens:
            done.record(token)
        self._begin_evaluation(lambda: self._call_context(before, tokens))
        while True:
            token = yield
            self._generated += 1
            tokens.append(token)
            done.record(token)
            # The limit is looked at after the end, too.
            if self._max_tokens_reached():
                return "max"
            if done.triggered:
                return None

    def _call_context(self, before: TextInput, tokens: Sequence[Token]) -> list[Token]:
        parallel = self._settings.functions.parallelism
        parts: list[TextInput] = [parallel.call.section_prefix] if parallel is not None else []
        between: TextInput = (parallel.call.between_calls if parallel is not None else None) or ""
        for index, call in enumerate(self._calls):
            parts += [between, call.raw] if index else [call.raw]
        return [*self._vocabulary.tokenize([*parts, before]), *tokens]

    def _take_name_start(self) -> str:
        start = self._name_start
        if start and any(name.startswith(start) for name in self._functions):
            self._name_start = ""
            return start
        return ""

    def _function_name(self, text: str) -> str:
        if self._settings.functions.call.optional_prefix_space:
            text = text.removeprefix(" ")
        name = text.partition("\n")[0]
        if name not in self._functions:
            raise GenerationError(f'Function name "{name}" is not in the supplied functions object')
        return name

    def _read_params(self, name: str) -> _Steps:
        call = self._settings.functions.call
        params_prefix = _named(call.params_prefix, name)
        schema = (self._functions[name] or {}).get("params")
        if schema is None:
            params = copy.deepcopy(call.empty_call_params_placeholder)
            if params == "":
                params = ABSENT
            text = "" if params is ABSENT else json_dumps(params)
        else:
            tokens: list[Token] = []
            before = LlamaText(call.prefix, name, params_prefix)
            if (yield from self._read_until(_PARAMS_END, tokens, before)) is not None:
                return self._cut_off()
            text = plain_text(tokens).rpartition(_PARAMS_END)[0]
            if not js_trim(text):
                raise GenerationError(f'Expected function call params for function "{name}" to not be empty')
            try:
                params = parse_json(text)
                check_params(params, schema)
            except ValueError as error:
                raise GenerationError(str(error)) from error
        raw = LlamaText(call.prefix, name, params_prefix, text, _named(call.suffix, name))
        self._calls.append(GeneratedCall(name, params, raw))
        return None

    def _read_section_end(self, parallelism: ParallelismSettings) -> _Steps:
        """Read what follows a call; returns None if another call follows."""
        suffix: TextInput = parallelism.call.section_suffix or ""
        result_prefix: TextInput = (parallelism.result.section_prefix if parallelism.result else None) or ""
        ends = TriggerDetector(
            [self._vocabulary.tokenize(text) for text in (suffix, SpecialToken("EOS"), SpecialToken("EOT"))]
        )
        results = TriggerDetector(
            [
                self._vocabulary.tokenize([suffix, result_prefix]),
                self._vocabulary.tokenize([suffix, result_prefix, self._settings.functions.result.prefix]),
            ]
        )
        read: list[Token] = []
        self._begin_evaluation(lambda: self._call_context("", ()))
        while not read or (ends.in_progress and not ends.triggered):
            token = yield
            self._generated += 1
            read.append(token)
            ends.record(token, start=len(read) == 1)
            results.record(token, start=len(read) == 1)
            if self._max_tokens_reached():
                return self._cut_off()
        ended = len(read) == 1 and read[0] in END_OF_GENERATION
        if ends.triggered or ended or results.triggered or results.in_progress:
            return self._finish_calls()
        return None

    def _finish_calls(self) -> Generated:
        self._release_before_call()
        self._segments.finish()
        return Generated(self._segments.entries(self._options.trim_end), "functionCalls", list(self._calls))

    def _read_disengagement(self) -> Generator[None, Token, tuple[Generated | None, bool]]:
        """Find out whether the model calls a function or answers; true if it calls one."""
        start = self._state.function_call
        answers = TriggerDetector(self._tokenized(start.disengage_initially_engaged if start else ()))
        prefix_tokens = self._vocabulary.tokenize(self._settings.functions.call.prefix)
        prefix = TriggerDetector([prefix_tokens])
        read: list[Token] = []
        after_prefix: list[Token] = []

        def record(token: Token) -> None:
            read.append(token)
            answers.record(token, start=len(read) == 1)
            if prefix.triggered:
                after_prefix.append(token)
            else:
                prefix.record(token, start=len(read) == 1)

        for token in prefix_tokens:
            if answers.lost_by(token, start=not read) > 0:
                break
            record(token)
        self._begin_evaluation(lambda: read)
        while True:
            token = yield
            self._generated += 1
            if token in END_OF_GENERATION:
                return self._stopped(token), False
            record(token)
            if self._max_tokens_reached():
                return self._cut_off(), False
            if answers.triggered or not answers.in_progress:
                break
        if answers.triggered:
            for token in read:
                self._record_stops(token, self._held.add(token))
            return None, False
        self._name_start = plain_text(after_prefix) if prefix.triggered else ""
        return None, True


def _named(text: LlamaText, name: str) -> LlamaText:
    """The text with the function's name in its plain pieces."""
    return text.map_values(
        lambda piece: replace_marker(piece, "{{functionName}}", name) if isinstance(piece, str) else piece
    )


def _check_name(name: str) -> None:
    if name == "":
        raise GenerationError("Function name cannot be an empty string")
    if any(space in name for space in " \n\t"):
        raise GenerationError(f'Function name "{name}" contains spaces, new lines or tabs')

"""Lint of wrapper settings: what would go wrong, as codes with paths (product.md 5.4).

Findings come from the settings themselves, from rendering a small conversation, and from what is known of the stored
chats. Nothing here judges style: each finding is something that a model reads wrong, or that can't be read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chats.domain.history_items import FunctionCall
from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText
from chats.domain.output_parsing.whole_text import parse_output
from chats.domain.recipes import Recipe
from chats.domain.record import ChatRecord
from chats.domain.sample_chat import sample_record
from chats.domain.spans import RenderedPiece, render_record
from chats.domain.wrapper_settings import TEMPLATE_PARAMETERS, ChatWrapperSettings, SettingsPart
from chats.domain.wrappers import ChatWrapper

Severity = Literal["error", "warning", "info"]
Path = tuple[str | int, ...]

TOKEN_ROLES: Final = ("BOS", "EOS", "NL", "EOT", "SEP")
BOS_TEXTS: Final = ("<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<｜begin▁of▁sentence｜>")
_NAME, _PARAMS = TEMPLATE_PARAMETERS
_PARAMETER: Final = re.compile(r"\{\{\s*function(?:Name|Params)\s*\}\}", re.IGNORECASE)
# Which parameters are replaced in a text of the settings.
_REPLACED: Final[Mapping[Path, frozenset[str]]] = {
    ("functions", "call", "paramsPrefix"): frozenset([_NAME]),
    ("functions", "call", "suffix"): frozenset([_NAME]),
    ("functions", "result", "prefix"): frozenset([_NAME, _PARAMS]),
    ("functions", "result", "suffix"): frozenset([_NAME, _PARAMS]),
}
_TRIED_CALLS: Final = (
    FunctionCall("get_weather", {"city": "Lyon", "days": 3}),
    FunctionCall("search", {"query": 'a "quoted" (word)', "options": {"limit": 5, "tags": ["x", "y"]}}),
    FunctionCall("now", {}),
)


@dataclass(frozen=True)
class SettingsFinding:
    """Something wrong at a place of the settings. `path` goes by JSON names, and is empty for the whole record.

    Codes: `two_bos` (places), `no_end` (what), `parameter_in_special_part` (parameter), `parameter_not_replaced`
    (parameter), `call_not_parsed_back` (call, written, read), `empty_call_prefix`, `system_unsupported` (chats),
    `token_in_chats` (token, chats, chat, message), `unknown_token_role` (role).
    """

    code: str
    severity: Severity
    path: Path = ()
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dotted_path(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def key(self) -> str:
        """Names the finding when it is silenced: the same mistake at another place isn't."""
        where = str(self.args.get("token", "")) if self.code == "token_in_chats" else self.dotted_path
        return f"{self.code}:{where}" if where else self.code


@dataclass(frozen=True)
class TokenSeen:
    """A special token that stands in stored chats as text: in how many of those looked at, and in which one."""

    token: str
    chats: int
    chat: int
    message: int | None = None


@dataclass(frozen=True)
class CorpusFacts:
    """What was found in the tenant's chats: those looked at, those with a system message, tokens typed into texts."""

    chats: int = 0
    with_system: int = 0
    tokens: Sequence[TokenSeen] = ()


def lint_settings(
    recipe: Recipe, corpus: CorpusFacts | None = None, record: ChatRecord | None = None
) -> tuple[SettingsFinding, ...]:
    """All findings for a record over a built-in base. Raises RecipeError for one that can't be built.

    `record` is the conversation that is rendered to count begin-of-sequence tokens; the sample by default.
    """
    wrapper = recipe.wrapper()
    settings = wrapper.settings
    return (
        *_two_bos(recipe, wrapper, record or sample_record()),
        *_missing_ends(settings),
        *_parameters(settings),
        *_token_roles(settings),
        *_round_trip(wrapper),
        *_empty_call_prefix(settings),
        *_corpus(settings, corpus or CorpusFacts()),
    )


def texts_of(settings: SettingsPart, path: Path = ()) -> Iterator[tuple[Path, LlamaText]]:
    """Every text of the settings with its path by JSON names."""
    for name, info in type(settings).model_fields.items():
        value = getattr(settings, name)
        below = (*path, info.alias or name)
        if isinstance(value, LlamaText):
            yield below, value
        elif isinstance(value, SettingsPart):
            yield from texts_of(value, below)
        elif isinstance(value, tuple):
            yield from (((*below, i), item) for i, item in enumerate(value) if isinstance(item, LlamaText))


def special_tokens_of(settings: ChatWrapperSettings, pattern: re.Pattern[str]) -> list[str]:
    """Control tokens that the settings spell out in special pieces, for looking them up in stored chats."""
    found: dict[str, None] = {}
    for _, text in texts_of(settings):
        for piece in text.values:
            if isinstance(piece, SpecialTokensText):
                found.update(dict.fromkeys(pattern.findall(piece.value)))
    return list(found)


def _two_bos(recipe: Recipe, wrapper: ChatWrapper, record: ChatRecord) -> Iterator[SettingsFinding]:
    """More begin-of-sequence tokens than the base writes, or two in a row."""
    places = [path for path, text in texts_of(wrapper.settings) if any(_is_bos(piece) for piece in text.values)]
    written = render_record(record, wrapper).pieces
    usual = render_record(record, recipe.unchanged().wrapper()).pieces
    if _count_bos(written) <= max(1, _count_bos(usual)) and not _bos_in_a_row(written):
        return
    path = places[0] if places else ()
    yield SettingsFinding("two_bos", "error", path, {"places": [".".join(map(str, place)) for place in places]})


def _is_bos(piece: object) -> bool:
    if isinstance(piece, SpecialToken):
        return piece.value == "BOS"
    return isinstance(piece, SpecialTokensText) and any(bos in piece.value for bos in BOS_TEXTS)


def _count_bos(pieces: Sequence[RenderedPiece]) -> int:
    return sum(_bos_count_in(piece) for piece in pieces)


def _bos_count_in(piece: RenderedPiece) -> int:
    if piece.kind == "special_token":
        return int(piece.text == "BOS")
    return sum(piece.text.count(bos) for bos in BOS_TEXTS) if piece.kind == "special_text" else 0


def _bos_in_a_row(pieces: Sequence[RenderedPiece]) -> bool:
    previous = False
    for piece in pieces:
        here = piece.kind == "special_token" and piece.text == "BOS"
        starts = here or (piece.kind == "special_text" and piece.text.startswith(BOS_TEXTS))
        if previous and starts:
            return True
        previous = here or (piece.kind == "special_text" and piece.text in BOS_TEXTS)
    return False


def _missing_ends(settings: ChatWrapperSettings) -> Iterator[SettingsFinding]:
    """Beginnings without an end, after which nothing says where the next part starts."""
    functions = settings.functions
    call, result, parallelism = functions.call, functions.result, functions.parallelism
    section_of_results = parallelism.result if parallelism else None
    after_call: list[LlamaText | None] = [result.prefix]
    after_result: list[LlamaText | None] = []
    if parallelism is not None:
        section = [parallelism.call.section_suffix, section_of_results.section_prefix if section_of_results else None]
        after_call = [*section, result.prefix]
        after_result = [section_of_results.section_suffix] if section_of_results else []
        if parallelism.call.section_prefix and not any([*section, result.prefix]):
            yield _no_end(("functions", "parallelism", "call", "sectionSuffix"), "section")
    if (call.prefix or call.params_prefix) and not call.suffix and not any(after_call):
        yield _no_end(("functions", "call", "suffix"), "call")
    if result.prefix and not result.suffix and not any(after_result):
        yield _no_end(("functions", "result", "suffix"), "result")
    segments = settings.segments
    if segments is None or segments.close_all_segments:
        return
    for name, part in (("thought", segments.thought), ("comment", segments.comment)):
        if part is not None and part.printed_prefix and not part.suffix:
            yield _no_end(("segments", name, "suffix"), name)


def _no_end(path: Path, what: str) -> SettingsFinding:
    return SettingsFinding("no_end", "warning", path, {"what": what})


def _parameters(settings: ChatWrapperSettings) -> Iterator[SettingsFinding]:
    for path, text in texts_of(settings):
        replaced = _REPLACED.get(path, frozenset())
        for index, piece in enumerate(text.values):
            if isinstance(piece, SpecialToken):
                continue
            for parameter in dict.fromkeys(_PARAMETER.findall(str(piece))):
                args = {"parameter": parameter}
                if isinstance(piece, SpecialTokensText):
                    yield SettingsFinding("parameter_in_special_part", "warning", (*path, index), args)
                elif parameter not in replaced:
                    yield SettingsFinding("parameter_not_replaced", "warning", (*path, index), args)


def _token_roles(settings: ChatWrapperSettings) -> Iterator[SettingsFinding]:
    for path, text in texts_of(settings):
        for index, piece in enumerate(text.values):
            if isinstance(piece, SpecialToken) and piece.value not in TOKEN_ROLES:
                yield SettingsFinding("unknown_token_role", "error", (*path, index), {"role": piece.value})


def _round_trip(wrapper: ChatWrapper) -> Iterator[SettingsFinding]:
    """A call that is written and read back must be the same call; the first one that isn't is told.

    The names aren't told to the reader, as they aren't where an answer calls something that was never offered.
    """
    for call in _TRIED_CALLS:
        written = str(wrapper.generate_function_calls_and_results([call]))
        only_call = str(wrapper.generate_function_call(call.name, call.params))
        parallelism = wrapper.settings.functions.parallelism
        if parallelism is not None:
            end = parallelism.call.section_suffix
            only_call = f"{parallelism.call.section_prefix}{only_call}{end if end is not None else ''}"
        read = [entry.entry for entry in parse_output(only_call, wrapper.settings)]
        calls = [entry for entry in read if isinstance(entry, FunctionCall)]
        if len(calls) == 1 and (calls[0].name, calls[0].params) == (call.name, call.params):
            continue
        found = ", ".join(one.name for one in calls)
        args = {"call": call.name, "written": written[:400], "read": found}
        yield SettingsFinding("call_not_parsed_back", "error", ("functions", "call", "prefix"), args)
        return


def _empty_call_prefix(settings: ChatWrapperSettings) -> Iterator[SettingsFinding]:
    parallelism = settings.functions.parallelism
    if settings.functions.call.prefix or (parallelism is not None and parallelism.call.section_prefix):
        return
    yield SettingsFinding("empty_call_prefix", "error", ("functions", "call", "prefix"))


def _corpus(settings: ChatWrapperSettings, corpus: CorpusFacts) -> Iterator[SettingsFinding]:
    if not settings.supports_system_messages and corpus.with_system:
        counts = {"chats": corpus.with_system, "of": corpus.chats}
        yield SettingsFinding("system_unsupported", "warning", ("supportsSystemMessages",), counts)
    for seen in corpus.tokens:
        args: dict[str, Any] = {"token": seen.token, "chats": seen.chats, "chat": seen.chat, "message": seen.message}
        yield SettingsFinding("token_in_chats", "info", (), args)

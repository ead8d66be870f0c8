"""Operations on LlamaTexts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText, TextInput
from chats.domain.output_parsing.vocabulary import Token, Vocabulary, described
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "llama-text.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for index, case in enumerate(json.loads(path.read_text("utf-8"))["cases"]):
        yield f"{case['op']}/{index}", _difference(case)


def _difference(case: Any) -> str | None:
    try:
        got = _OPERATIONS[case["op"]](case["input"])
    except ValueError as error:
        expected = case.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    if "error" in case:
        return f"should fail: {case['error']['message']}"
    return mismatch(got, case["output"])


def _decoded(value: Any) -> TextInput:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        if value["type"] == "llamaText":
            return LlamaText(*[_decoded(item) for item in value["values"]])
        kind = SpecialTokensText if value["type"] == "specialTokensText" else SpecialToken
        return kind(value["value"])
    return value


def _text(values: Any) -> LlamaText:
    return LlamaText(*[_decoded(value) for value in values])


def _described(text: LlamaText) -> Any:
    values = [value if isinstance(value, str) else value.to_json() for value in text.values]
    return {"json": text.to_json(), "values": values, "string": str(text)}


def _tokenize(given: Any) -> Any:
    tokens = Vocabulary(given["specialTokens"]).tokenize(_text(given["values"]))
    return [token if isinstance(token, str) else _special(token) for token in tokens]


def _trigger(given: Any) -> Any:
    parts = described(Vocabulary(given["specialTokens"]).tokenize(_text(given["values"])))
    return [{"text": part} if isinstance(part, str) else {"token": _special(part)} for part in parts]


def _special(token: Token) -> dict[str, str]:
    return {"builtin" if isinstance(token, SpecialToken) else "special": str(token)}


_OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "construct": lambda given: _described(_text(given["values"])),
    "constructFromArray": lambda given: _described(LlamaText([_decoded(value) for value in given["values"]])),
    "trim": lambda given: _described(_text(given["values"]).trim()),
    "trimStart": lambda given: _described(_text(given["values"]).trim_start()),
    "trimEnd": lambda given: _described(_text(given["values"]).trim_end()),
    "roundTrip": lambda given: _described(LlamaText.from_json(_text(given["values"]).to_json())),
    "joinValuesOfInstance": lambda given: _described(_text(given["values"]).join_pieces(_decoded(given["separator"]))),
    "concat": lambda given: _described(_text(given["values"]).concat(_decoded(given["value"]))),
    "compare": lambda given: LlamaText.compare(_text(given["a"]), _text(given["b"])),
    "fromJSON": lambda given: _described(LlamaText.from_json(given["json"])),
    "joinValues": lambda given: _described(
        LlamaText.join(_decoded(given["separator"]), [_decoded(value) for value in given["values"]])
    ),
    "includes": lambda given: _text(given["a"]).includes(_text(given["b"])),
    "tokenize": _tokenize,
    "resolveStopTrigger": _trigger,
}

"""Each rule of the settings' lint has one example that breaks it, and no built-in wrapper breaks any."""

from __future__ import annotations

from typing import Any

import pytest

from chats.domain.recipes import Recipe
from chats.domain.settings_lint import CorpusFacts, TokenSeen, lint_settings
from chats.domain.wrappers import WRAPPERS

BASE = "ChatMLChatWrapper"


def special(text: str) -> dict[str, str]:
    return {"type": "specialTokensText", "value": text}


def found(changes: dict[str, Any], corpus: CorpusFacts | None = None, base: str = BASE) -> dict[str, str]:
    """Codes with their paths."""
    return {f.code: f.dotted_path for f in lint_settings(Recipe(base=base, changes=changes), corpus)}


@pytest.mark.parametrize("base", [id for id in WRAPPERS if id != "TemplateChatWrapper"])
def test_built_ins_are_clean(base: str) -> None:
    assert found({}, base=base) == {}


def test_a_second_begin_of_sequence_token() -> None:
    prefix = [{"type": "specialToken", "value": "BOS"}, "call: "]
    assert found({"functions": {"call": {"prefix": prefix}}})["two_bos"] == "functions.call.prefix"


def test_a_second_begin_of_sequence_token_spelled_out() -> None:
    suffix = [special(")<s>")]
    assert found({"functions": {"call": {"suffix": suffix}}})["two_bos"] == "functions.call.suffix"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"functions": {"result": {"suffix": ""}}}, "functions.result.suffix"),
        ({"functions": {"call": {"suffix": ""}, "result": {"prefix": ""}}}, "functions.call.suffix"),
        ({"segments": {"thought": {"prefix": [special("<think>")]}}}, "segments.thought.suffix"),
        ({"segments": {"comment": {"prefix": [special("<note>")]}}}, "segments.comment.suffix"),
    ],
)
def test_a_beginning_without_an_end(changes: dict[str, Any], path: str) -> None:
    assert found(changes)["no_end"] == path


def test_segments_may_share_one_end() -> None:
    changes = {"segments": {"thought": {"prefix": [special("<think>")]}, "closeAllSegments": [special("<end>")]}}
    assert "no_end" not in found(changes)


def test_a_parameter_in_a_special_part() -> None:
    changes = {"functions": {"result": {"prefix": ["result of ", special("{{functionName}}"), ": "]}}}
    assert found(changes) == {"parameter_in_special_part": "functions.result.prefix.1"}


def test_a_parameter_where_it_is_not_replaced() -> None:
    assert found({"functions": {"call": {"prefix": "call {{functionName}}: "}}})["parameter_not_replaced"]
    assert "parameter_not_replaced" not in found({"functions": {"result": {"prefix": "{{functionName}}: "}}})


def test_a_call_that_is_not_read_back() -> None:
    # The parameters' prefix can be part of a name.
    changes = {"functions": {"call": {"prefix": "x", "paramsPrefix": "_", "suffix": "_"}}}
    assert found(changes)["call_not_parsed_back"] == "functions.call.prefix"


def test_an_empty_call_prefix() -> None:
    assert found({"functions": {"call": {"prefix": ""}}})["empty_call_prefix"] == "functions.call.prefix"


def test_system_messages_in_the_corpus_of_a_model_without() -> None:
    corpus = CorpusFacts(chats=10, with_system=3)
    assert found({"supportsSystemMessages": False}, corpus)["system_unsupported"] == "supportsSystemMessages"
    assert "system_unsupported" not in found({"supportsSystemMessages": False})
    assert "system_unsupported" not in found({}, corpus)


def test_a_token_typed_into_a_stored_chat() -> None:
    corpus = CorpusFacts(chats=10, tokens=(TokenSeen("<|im_end|>", 2, 7),))
    (finding,) = lint_settings(Recipe(base=BASE), corpus)
    assert (finding.code, finding.key) == ("token_in_chats", "token_in_chats:<|im_end|>")


def test_a_token_role_that_no_model_has() -> None:
    changes = {"functions": {"call": {"suffix": [")", {"type": "specialToken", "value": "EOFF"}]}}}
    assert found(changes)["unknown_token_role"] == "functions.call.suffix.1"

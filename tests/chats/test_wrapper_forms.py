"""The editor's form says what the settings say, and nothing is lost on the way through a browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.recipes import Recipe
from chats.domain.wrapper_settings import ChatWrapperSettings, difference
from chats.domain.wrappers import WRAPPERS
from chats.queries.wrappers import NOT_CHOSEN
from chats.wrapper_forms import options, parts, settings, templates
from chats.wrapper_forms.conflicts import conflict_rows, merged_content
from chats.wrapper_forms.operations import field_of_operation, operate
from chats.wrapper_forms.shown import change_rows, group_views
from chats.wrapper_forms.state import posted_state, state_of

BUILT_INS = [id for id in WRAPPERS if id != NOT_CHOSEN]

# Everything that JSON can hold, with the characters that forms mangle more often than chance would have it.
characters = st.one_of(st.characters(), st.sampled_from('\r\n\t\0\x1b\ud800\u2028\ufeff"\\{}<|>'))
words = st.text(characters, max_size=12)
part = st.one_of(
    words,
    st.builds(lambda value: {"type": "specialTokensText", "value": value}, words),
    st.builds(lambda value: {"type": "specialToken", "value": value}, st.sampled_from(["BOS", "EOS", "NL", "a b"])),
)
text = st.one_of(words, st.lists(part, max_size=5))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)


def _some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


call = _some(
    {"optionalPrefixSpace": st.booleans(), "prefix": text, "paramsPrefix": text, "suffix": text},
    {"emptyCallParamsPlaceholder": json_values, "prefixAlternateMatches": st.lists(text, max_size=3)},
)
parallelism = _some(
    {
        "call": _some(
            {"sectionPrefix": text},
            {
                "sectionPrefixAlternateMatches": st.lists(text, max_size=2),
                "betweenCalls": text,
                "sectionSuffix": text,
            },
        )
    },
    {"result": _some({}, {"sectionPrefix": text, "betweenResults": text, "sectionSuffix": text})},
)
opened = _some({"type": st.just("openedOnStart")}, {"afterFunctionCalls": st.booleans()})
segments = _some(
    {},
    {
        "closeAllSegments": text,
        "reiterateStackAfterFunctionCalls": st.booleans(),
        "thought": _some(
            {"prefix": st.one_of(text, opened)},
            {"suffix": text, "openOnResponseStart": st.booleans(), "reopenAfterFunctionCalls": st.booleans()},
        ),
        "comment": _some({"prefix": text}, {"suffix": text}),
    },
)
all_settings = _some(
    {
        "supportsSystemMessages": st.booleans(),
        "functions": _some(
            {"call": call, "result": st.fixed_dictionaries({"prefix": text, "suffix": text})},
            {"parallelism": parallelism},
        ),
    },
    {"segments": segments},
)


def through_a_browser(data: dict[str, str]) -> dict[str, str]:
    """What the server gets of a form: line breaks as CRLF, everything as UTF-8."""
    form = QueryDict(mutable=True)
    for name, value in data.items():
        value.encode()  # a lone surrogate could be neither shown nor sent
        assert "\0" not in value
        normal = value.replace("\r\n", "\n").replace("\r", "\n")
        form[name] = normal.replace("\n", "\r\n")
    return parts.posted_data(form)


@given(all_settings)
def test_a_form_says_what_the_settings_say(value: dict[str, Any]) -> None:
    expected = ChatWrapperSettings.from_json(value)
    posted = through_a_browser(settings.encoded(expected.to_json()))
    read = ChatWrapperSettings.from_json(settings.decoded(posted))
    assert json.dumps(read.to_json()) == json.dumps(expected.to_json())


@given(all_settings)
def test_the_json_tab_says_what_the_settings_say(value: dict[str, Any]) -> None:
    stored = Recipe(base="QwenChatWrapper")
    expected = ChatWrapperSettings.from_json(value)
    recipe = Recipe(base=stored.base, changes=difference(stored.base_settings(), expected))
    shown = state_of(recipe, "json")
    posted = through_a_browser({**shown.data, "tab": "json", "settings_json": shown.json_text})
    state = posted_state(posted, stored)
    assert state.is_good, (state.problems, state.json_problem)
    assert json.dumps(state.recipe.wrapper().settings.to_json()) == json.dumps(expected.to_json())


@pytest.mark.parametrize(
    "text",
    ["", "[", "[" * 100_000, "NaN", '{"a": Infinity}', '{"supportsSystemMessages": true}', "7", "[" * 60 + "]" * 60],
)
def test_json_that_is_no_settings_is_told_and_nothing_is_lost(text: str) -> None:
    stored = Recipe(base="QwenChatWrapper", changes={"supportsSystemMessages": False})
    data = {**state_of(stored, "json").data, "tab": "json", "settings_json": text}
    state = posted_state(data, stored)
    assert state.json_problem is not None
    assert state.recipe == stored


@pytest.mark.parametrize("base", BUILT_INS)
def test_an_unchanged_form_of_a_built_in_changes_nothing(base: str) -> None:
    state = state_of(Recipe(base=base))
    posted = posted_state(through_a_browser(state.data), Recipe(base=base))
    assert posted.is_good, posted.problems
    assert posted.recipe == Recipe(base=base)
    assert change_rows(posted.recipe) == []
    assert not any(field.is_changed for group in group_views(posted) for field in group.fields)


def test_the_json_tab_and_the_form_are_one_value() -> None:
    recipe = Recipe(base="QwenChatWrapper")
    data = through_a_browser(state_of(recipe).data)
    data["s.functions.call.prefix.0.text"] = "<my_call>"
    changed = posted_state(data, recipe).recipe
    as_json = state_of(changed, "json")
    posted = posted_state(
        {**through_a_browser(as_json.data), "tab": "json", "settings_json": as_json.json_text}, recipe
    )
    assert posted.recipe == changed
    assert [row.path for row in change_rows(posted.recipe)] == ["functions.call.prefix"]


def test_broken_json_keeps_the_last_good_value_and_marks_the_place() -> None:
    recipe = Recipe(base="QwenChatWrapper")
    state = state_of(recipe, "json")
    lines = state.json_text.split("\n")
    lines[3] = lines[3].replace(":", "", 1)
    posted = posted_state({**state.data, "tab": "json", "settings_json": "\n".join(lines)}, recipe)
    assert posted.json_problem is not None
    assert posted.json_problem.line == 4
    assert posted.recipe == recipe


def test_a_wrong_value_in_json_is_told_by_path_and_place() -> None:
    recipe = Recipe(base="ChatMLChatWrapper")
    state = state_of(recipe, "json")
    wrong = state.json_text.replace('"supportsSystemMessages": true', '"supportsSystemMessages": "yes", "extra": 1')
    posted = posted_state({**state.data, "tab": "json", "settings_json": wrong}, recipe)
    assert posted.json_problem is not None
    assert "supportsSystemMessages" in posted.json_problem.message
    assert posted.json_problem.line == 2


def test_parts_are_added_moved_removed_and_reset() -> None:
    recipe = Recipe(base="QwenChatWrapper")
    data = dict(state_of(recipe).data)
    name = "s.functions.call.prefix"
    before = parts.decode_text(name, data)
    assert operate(data, f"add:{name}", recipe) == f"{name}.2.text"
    data[f"{name}.2.text"] = "third"
    assert operate(data, f"up:{name}.2", recipe) == f"{name}.1.up"
    assert [view.text for view in parts.part_views(name, data)][1] == "third"
    operate(data, f"remove:{name}.0", recipe)
    assert [view.text for view in parts.part_views(name, data)] == ["third", before[1]]
    operate(data, f"reset:{name}", recipe)
    assert parts.decode_text(name, data) == before
    assert field_of_operation(f"up:{name}.2") == name


def test_changed_settings_move_to_what_an_option_makes_of_the_base() -> None:
    recipe = Recipe(base="Llama3ChatWrapper")
    data = dict(state_of(recipe).data)
    data["s.functions.call.prefix.0.text"] = "CALL "
    data["o.parallelFunctionCalling.is"], data["o.parallelFunctionCalling"] = "own", "false"
    posted = posted_state(data, recipe)
    assert posted.is_good, posted.problems
    assert posted.base_changed
    assert posted.recipe.changes == {"functions": {"call": {"prefix": "CALL "}}}
    written = posted.recipe.wrapper().settings
    assert written.functions.parallelism is None
    assert str(written.functions.call.prefix) == "CALL "


@pytest.mark.parametrize("base", BUILT_INS)
def test_options_go_through_the_form(base: str) -> None:
    model = WRAPPERS[base].options_model
    values: dict[str, Any] = {}
    for one in options.option_fields(model):
        shown = {"bool": True, "number": 7, "date": "2025-03-01", "text": "w", "long_text": "w"}
        value: Any = one.choices[-1] if one.kind == "choice" else shown[one.kind]
        there = values
        for key in one.path[:-1]:
            there = there.setdefault(key, {})
        there[one.path[-1]] = None if one.nullable else value
    assert options.decoded(model, through_a_browser(options.encoded(model, values))) == values


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_an_unedited_template_keeps_its_bytes(line_end: str) -> None:
    template = line_end.join(["", "{% for m in messages %}", "{{ m.content }} ", "{% endfor %}", ""])
    recipe = Recipe(template=template, kwargs={"enable_thinking": False, "n": 1.0, "s": "a", "deep": {"b": [1]}})
    assert templates.decoded(through_a_browser(templates.encoded(recipe)), recipe) == recipe


def test_arguments_that_are_never_read_are_flagged() -> None:
    views = templates.argument_views(templates.encoded(Recipe(kwargs={"enabel_thinking": True})), ())
    assert [(view.name, view.known) for view in views] == [("enabel_thinking", False), ("", True)]


def test_a_conflict_is_settled_path_by_path() -> None:
    theirs = {"settings": '{"functions": {"call": {"prefix": "A"}}}', "model_name": "one"}
    mine = {"settings": '{"functions": {"call": {"suffix": "Z"}}}', "model_name": "two"}
    rows = {row.key: (row.theirs, row.mine) for row in conflict_rows(theirs, mine)}
    assert rows == {
        "settings.functions.call.prefix": ("A", None),
        "settings.functions.call.suffix": (None, "Z"),
        "model_name": ("one", "two"),
    }
    merged = merged_content(theirs, mine, {"settings.functions.call.suffix"})
    assert json.loads(merged["settings"]) == {"functions": {"call": {"prefix": "A", "suffix": "Z"}}}
    assert merged["model_name"] == "one"


def test_what_only_they_changed_is_theirs_until_somebody_says_otherwise() -> None:
    base = {"settings": '{"functions": {"call": {"prefix": "A", "suffix": "Y"}}}', "model_name": "zero"}
    theirs = {"settings": '{"functions": {"call": {"prefix": "B", "suffix": "Y"}}}', "model_name": "one"}
    mine = {"settings": '{"functions": {"call": {"prefix": "A"}}}', "model_name": "two"}
    rows = {row.key: row for row in conflict_rows(theirs, mine, base)}
    shown = {key: (row.base, row.chosen, row.both) for key, row in rows.items()}
    assert shown == {
        "settings.functions.call.prefix": ("A", "theirs", False),
        "settings.functions.call.suffix": ("Y", "mine", False),
        "model_name": ("zero", "mine", True),
    }
    unknown = conflict_rows(theirs, mine)[0]
    assert (unknown.has_base, unknown.chosen, unknown.both) == (False, "mine", False)

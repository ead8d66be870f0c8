"""Each problem with its code, its exact place, its arguments and its repair (rule-engine.md section 2.5)."""

from __future__ import annotations

import json

import pytest

from rules.domain.language import check
from rules.domain.language.diagnostics import MESSAGE_ARGUMENTS

ANY = object()

# Source with «the place» marked, code, arguments, repair.
ERRORS = [
    # syntax
    ("«»", "expected", {"expected": ["expression"], "found": ""}, None),
    ("(ctx.mutated«»", "expected", {"expected": [")"], "found": ""}, None),
    ("ctx.mutated &&«»", "expected", {"expected": ["expression"], "found": ""}, None),
    ("ctx.«»", "expected", {"expected": ["name"], "found": ""}, None),
    ("ctx.mutated ? true«»", "expected", {"expected": [":"], "found": ""}, None),
    ("true ? true «?» 1 : 2 : 3", "expected", {"expected": [":"], "found": "?"}, None),
    ("ctx.tool_calls_total in [1,«]»", "expected", {"expected": ["expression"], "found": "]"}, None),
    ("is_go_ahead(ctx.user_text«]»", "expected", {"expected": [",", ")"], "found": "]"}, None),
    ("(ctx.mutated «or» ctx.budget_low)", "expected", {"expected": [")"], "found": "or"}, "||"),
    ("«not» ctx.mutated", "expected", {"expected": ["expression"], "found": "not"}, "!"),
    ("ctx.mutated «and» ctx.budget_low", "trailing", {"found": "and"}, "&&"),
    ("ctx.mutated «AND» ctx.budget_low", "trailing", {"found": "AND"}, "&&"),
    ("ctx.mutated «et» ctx.budget_low", "trailing", {"found": "et"}, "&&"),
    ("ctx.mutated «)»", "trailing", {"found": ")"}, None),
    ("ctx.mutated «ctx».budget_low", "trailing", {"found": "ctx"}, None),
    ('ctx.final_text == «"abc»', "unterminated-string", {"quote": '"'}, '"abc"'),
    ("ctx.final_text == «'abc»\n'", "unterminated-string", {"quote": "'"}, "'abc'"),
    ("ctx.final_text == «'abc\\»\n'", "unterminated-string", {"quote": "'"}, None),
    ("ctx.final_text == '«\\d»'", "bad-escape", {"escape": "\\d", "reason": "unknown"}, "\\\\d"),
    ("ctx.final_text == '😀«\\ud83d»'", "bad-escape", {"escape": "\\ud83d", "reason": "surrogate"}, None),
    ("ctx.final_text == '«\\U00110000»'", "bad-escape", {"escape": "\\U00110000", "reason": "range"}, None),
    ("ctx.final_text == '«\\x4»g'", "bad-escape", {"escape": "\\x4", "reason": "short"}, None),
    ("ctx.final_text == '«\\4»00'", "bad-escape", {"escape": "\\4", "reason": "octal"}, None),
    ("ctx.mutated «=» true", "bad-char", {"char": "="}, "=="),
    ("ctx.mutated «===» true", "bad-char", {"char": "==="}, "=="),
    ("ctx.mutated «&» ctx.budget_low", "bad-char", {"char": "&"}, "&&"),
    ("ctx.mutated «|» ctx.budget_low", "bad-char", {"char": "|"}, "||"),
    ("ctx.mutated «≠» true", "bad-char", {"char": "≠"}, "!="),
    ("ctx.final_text.contains(«“»a”)", "bad-char", {"char": "“"}, '"'),
    ("ctx.mutated «#»", "bad-char", {"char": "#"}, None),
    ("ctx.mutated «\0»", "bad-char", {"char": "U+0000"}, None),
    ("ctx.final_text == 'a«\0»'", "bad-char", {"char": "U+0000"}, None),
    ("«é» > 1", "bad-char", {"char": "é"}, None),
    ("ctx.final_text == '«\ud83d»'", "bad-char", {"char": "U+D83D"}, None),
    ("1«_000» > 2", "bad-char", {"char": "_000"}, None),
    # CEL outside the subset
    ("«1.5» < ctx.tool_calls_total", "unsupported", {"feature": "float", "found": "1.5"}, None),
    ("«2.0» < ctx.tool_calls_total", "unsupported", {"feature": "float", "found": "2.0"}, "2"),
    ("«1e3» < ctx.tool_calls_total", "unsupported", {"feature": "float", "found": "1e3"}, None),
    ("«3u» < ctx.tool_calls_total", "unsupported", {"feature": "unsigned", "found": "3u"}, "3"),
    ('«b"x"» == ctx.final_text', "unsupported", {"feature": "bytes", "found": 'b"x"'}, '"x"'),
    ('«"""x"""» == ctx.final_text', "unsupported", {"feature": "triple-quotes", "found": '"""x"""'}, '"x"'),
    ("«R'a'» == ctx.final_text", "unsupported", {"feature": "raw-prefix", "found": "R'a'"}, "r'a'"),
    ("ctx.tool_calls_total «*» 2 > 3", "unsupported", {"feature": "*", "found": "*"}, None),
    ("ctx.tool_calls_total «/» 2 > 3", "unsupported", {"feature": "/", "found": "/"}, None),
    ("ctx.tool_calls_total «%» 2 == 0", "unsupported", {"feature": "%", "found": "%"}, None),
    ('«ctx.nudges["X"]» > 0', "unsupported", {"feature": "index", "found": 'ctx.nudges["X"]'}, 'nudged("X")'),
    ("«ctx['mutated']»", "unsupported", {"feature": "index", "found": "ctx['mutated']"}, "ctx.mutated"),
    ("ctx.final_text«[»0] == 'a'", "unsupported", {"feature": "index", "found": "["}, None),
    ("«ctx.nudges.X» > 0", "unsupported", {"feature": "map-field", "found": "ctx.nudges.X"}, 'nudged("X")'),
    ("«{»'a': 1}", "unsupported", {"feature": "map", "found": "{"}, None),
    ("«Context{»a: 1}", "unsupported", {"feature": "message", "found": "Context{"}, None),
    ("«has»(ctx.mutated)", "unsupported", {"feature": "macro", "found": "has"}, None),
    ("['a'].«exists»(x, x == 'a')", "unsupported", {"feature": "macro", "found": "exists"}, None),
    ("«int»('1') > 0", "unsupported", {"feature": "conversion", "found": "int"}, None),
    ("ctx.«`»mutated`", "unsupported", {"feature": "quoted-name", "found": "`"}, None),
    (
        "«1 < ctx.tool_calls_total <= 3»",
        "chained",
        {"first": "<", "second": "<="},
        "1 < ctx.tool_calls_total && ctx.tool_calls_total <= 3",
    ),
    # limits
    ("«9999999999» > 1", "too-big", {"what": "integer", "found": "9999999999", "limit": 2**31}, None),
    ("«0x80000001» > 1", "too-big", {"what": "integer", "found": "0x80000001", "limit": 2**31}, None),
    # names
    ("«ctx.no_progres»", "unknown-field", {"name": "no_progres"}, "ctx.no_progress_rounds"),
    ("«ctx.__class__» == 1", "unknown-field", {"name": "__class__"}, None),
    ("«ctx.final_text.size» > 3", "unknown-field", {"name": "size"}, "size(ctx.final_text)"),
    ("ctx.final_text.«__len__» > 3", "unknown-field", {"name": "__len__"}, None),
    ("«mutated»", "unknown-name", {"name": "mutated"}, "ctx.mutated"),
    ("«context».mutated", "unknown-name", {"name": "context"}, "ctx"),
    ("«True»", "unknown-name", {"name": "True"}, "true"),
    ("ctx.finish_reason == «None»", "unknown-name", {"name": "None"}, "null"),
    ("«zzz»", "unknown-name", {"name": "zzz"}, None),
    ("«isgoahead»(ctx.user_text)", "unknown-function", {"name": "isgoahead"}, "is_go_ahead"),
    ("«not»(ctx.mutated)", "unknown-function", {"name": "not"}, "!"),
    ("ctx.final_text.«startswith»('a')", "unknown-function", {"name": "startswith"}, "startsWith"),
    (
        "«contains(ctx.final_text, 'a')»",
        "unknown-function",
        {"name": "contains"},
        "ctx.final_text.contains('a')",
    ),
    ("«ctx.user_text.is_go_ahead()»", "unknown-function", {"name": "is_go_ahead"}, "is_go_ahead(ctx.user_text)"),
    ("«eval»('1')", "unknown-function", {"name": "eval"}, None),
    # types
    ("ctx.mutated == «1»", "type", {"expected": "bool", "found": "int"}, "true"),
    ("ctx.tool_calls_total == «'3'»", "type", {"expected": "int", "found": "string constant"}, "3"),
    ("ctx.final_text == «3»", "type", {"expected": "string constant or null", "found": "int"}, '"3"'),
    ("ctx.final_text == «ctx.user_text»", "type", {"expected": "string constant or null", "found": "string"}, None),
    ("«ctx.finish_reason» < 1", "type", {"expected": "int", "found": "string?"}, None),
    (
        "ctx.mutated && «ctx.tool_calls_total»",
        "type",
        {"expected": "bool", "found": "int"},
        "(ctx.tool_calls_total > 0)",
    ),
    ("!«ctx.final_text»", "type", {"expected": "bool", "found": "string"}, '(ctx.final_text != "")'),
    ("ctx.tool_calls_total + «'a'» == 1", "type", {"expected": "int", "found": "string"}, None),
    ("-«ctx.mutated» == 1", "type", {"expected": "int", "found": "bool"}, None),
    ("ctx.mutated ? 1 : «true»", "type", {"expected": "int", "found": "bool"}, None),
    ("ctx.mutated ? true : «'a'»", "type", {"expected": "bool or int", "found": "string"}, None),
    ("«ctx.mutated» in [1]", "type", {"expected": "int or text", "found": "bool"}, None),
    ("«'a'» in ['a']", "type", {"expected": "int or text", "found": "string constant"}, None),
    ("1 in «ctx.tool_calls_total»", "type", {"expected": "list or map", "found": "int"}, None),
    ("«'a' in ctx.final_text»", "type", {"expected": "list or map", "found": "string"}, "ctx.final_text.contains('a')"),
    ("«'abc'».contains('a')", "type", {"expected": "text", "found": "string constant"}, None),
    ("«ctx.finish_reason».contains('a')", "type", {"expected": "text", "found": "string?"}, None),
    ("is_go_ahead(«ctx.mutated»)", "type", {"expected": "text or null", "found": "bool"}, None),
    ("size(«ctx.nudges») > 0", "type", {"expected": "text", "found": "map"}, None),
    ("last_paragraph(«ctx.finish_reason») == 'a'", "type", {"expected": "text", "found": "string?"}, None),
    ("«is_go_ahead()»", "arity", {"name": "is_go_ahead", "expected": 1, "found": 0}, None),
    ("«ctx.final_text.size(1)» > 0", "arity", {"name": "size", "expected": 0, "found": 1}, None),
    ("«ctx.tool_calls_total»", "not-bool", {"found": "int"}, "ctx.tool_calls_total > 0"),
    ("«ctx.finish_reason»", "not-bool", {"found": "string?"}, "ctx.finish_reason != null"),
    ("«ctx»", "not-bool", {"found": "ctx"}, None),
    ("«(1 + 2)»", "not-bool", {"found": "int"}, None),
    ("ctx.final_text.contains(«ctx.user_text»)", "literal", {"expected": "string constant", "found": "string"}, None),
    ("nudged(«ctx.tool_calls_total») > 0", "literal", {"expected": "string constant", "found": "int"}, None),
    ("«1» in ctx.nudges", "literal", {"expected": "string constant", "found": "int"}, None),
    ("ctx.tool_calls_total in [1, «1 + 1»]", "literal", {"expected": "int", "found": "int"}, None),
    ("ctx.tool_calls_total in [1, «'2'»]", "list", {"expected": "int", "found": "string"}, "2"),
    ("ctx.finish_reason in ['stop', «null»]", "list", {"expected": "string", "found": "null"}, None),
    ("ctx.tool_calls_total in [«true»]", "list", {"expected": "int", "found": "bool"}, None),
    ("ctx.tool_calls_total in «[]»", "empty-list", {}, None),
    # patterns
    ("ctx.final_text.matches('a«(»b')", "regex", {"reason": "missing )", "fragment": "a(b", "at": 1}, None),
    ("ctx.final_text.matches('a«)»b')", "regex", {"reason": "unexpected )", "fragment": "a)b", "at": 1}, None),
    (r"ctx.final_text.matches('\x41é«[b»')", "regex", {"reason": "missing ]", "fragment": "[b", "at": 2}, None),
    (
        "ctx.final_text.matches(r'😀a«**»')",
        "regex",
        {"reason": "bad repetition operator", "fragment": "**", "at": 2},
        None,
    ),
    (
        "ctx.final_text.matches('«(?=»a)')",
        "regex",
        {"reason": "invalid perl operator", "fragment": "(?=", "at": 0},
        None,
    ),
    (
        "ctx.final_text.matches('(a)«\\\\1»')",
        "regex",
        {"reason": "invalid escape sequence", "fragment": "\\1", "at": 3},
        None,
    ),
    (
        "ctx.final_text.matches(«'(x{0,20}){0,20}y'»)",
        "regex-too-large",
        {"what": "program", "found": ANY, "limit": 300},
        None,
    ),
    (
        "ctx.final_text.matches(«r'(\\pL?\\s?){40}y'»)",
        "regex-too-large",
        {"what": "program", "found": ANY, "limit": 300},
        None,
    ),
]

WARNINGS = [
    ("nudged(«'EAI-GOV-3'») > 0", "unknown-code", {"name": "EAI-GOV-3"}, '"EAI-GOV-03"'),
    ("«'ZZ'» in ctx.nudges", "unknown-code", {"name": "ZZ"}, None),
    ("nudged(«'LATER'») > 0", "later-counter", {"name": "LATER"}, None),
    ("«ctx.tool_calls_total >= 0» && ctx.mutated", "constant", {"value": True, "whole": False}, None),
    ("«ctx.final_text == null» || ctx.mutated", "constant", {"value": False, "whole": False}, None),
    ("«ctx.mutated && !ctx.mutated»", "constant", {"value": False, "whole": False}, None),
    (
        "«ctx.tool_calls_total == ctx.tool_calls_total» && ctx.mutated",
        "constant",
        {"value": True, "whole": False},
        None,
    ),
    ("«ctx.tool_calls_total in [-1]» || ctx.mutated", "constant", {"value": False, "whole": False}, None),
    ("«(ctx.audit_mode ? 8 : 4) > 3» && ctx.mutated", "constant", {"value": True, "whole": False}, None),
    ("«ctx.final_text.contains('')» && ctx.mutated", "constant", {"value": True, "whole": False}, None),
    ("ctx.mutated && «true»", "constant", {"value": True, "whole": False}, None),
    ("«true»", "constant", {"value": True, "whole": True}, None),
    (
        r"ctx.final_text.matches(r'«\b»étapes')",
        "regex",
        {"reason": "ascii-boundary", "fragment": r"\b", "at": 0},
        r"(?:^|[^\pL\pN_])",
    ),
    (
        r"ctx.final_text.matches('«\\b»(?:next|étapes)')",
        "regex",
        {"reason": "ascii-boundary", "fragment": r"\b", "at": 0},
        r"(?:^|[^\\pL\\pN_])",
    ),
    (
        r"ctx.final_text.matches(r'validé«\b»')",
        "regex",
        {"reason": "ascii-boundary", "fragment": r"\b", "at": 6},
        r"(?:$|[^\pL\pN_])",
    ),
    (
        r"ctx.final_text.matches('é«\b»next')",
        "regex",
        {"reason": "backspace", "fragment": r"\b", "at": 1},
        r"\\b",
    ),
]
KNOWN = ("EAI-GOV-03", "EAI-GOV-07", "LATER")


def unmarked(marked: str) -> tuple[str, int, int]:
    start = marked.index("«")
    end = marked.index("»") - 1
    return marked.replace("«", "").replace("»", ""), start, end


@pytest.mark.parametrize("before", ["", "// 😀 é\n "], ids=["plain", "after an emoji"])
@pytest.mark.parametrize(("marked", "code", "args", "repair"), ERRORS + WARNINGS)
def test_place_arguments_and_repair(before, marked, code, args, repair):
    source, start, end = unmarked(marked)
    checked = check(before + source, known_codes=KNOWN, later_codes={"LATER"})
    found = [d for d in checked.diagnostics if d.code == code]
    assert len(found) == 1, checked.diagnostics
    assert (found[0].start, found[0].end) == (start + len(before), end + len(before))
    assert set(found[0].args) == set(args)
    assert all(value is ANY or found[0].args[name] == value for name, value in args.items())
    assert found[0].replace == repair
    warning = any(marked == w[0] for w in WARNINGS)
    assert found[0].severity == ("warning" if warning else "error")
    assert (checked.tree is None) is not warning
    if not warning:
        assert [d.code for d in checked.errors] == [code]


@pytest.mark.parametrize(("marked", "code", "args", "repair"), [case for case in ERRORS if case[3]])
def test_a_repair_removes_the_problem(marked, code, args, repair):
    source, start, end = unmarked(marked)
    repaired = check(source[:start] + repair + source[end:])
    assert all((d.code, d.start) != (code, start) for d in repaired.errors), repaired.diagnostics


def test_the_table_names_every_code_and_argument():
    seen = {case[1] for case in ERRORS + WARNINGS} | {"too-long", "too-deep", "too-complex"}
    rare = {
        "overflow",
        "regex-slow",
    }  # no source within the other limits reaches the first; the second has its own test
    assert seen | rare == set(MESSAGE_ARGUMENTS)
    for _, code, args, _ in ERRORS + WARNINGS:
        assert set(args) <= set(MESSAGE_ARGUMENTS[code])


def test_all_type_problems_are_collected_in_the_order_of_the_text():
    source = "ctx.tool_call > 1 && ctx.mutated == 1 && matches(ctx.final_text) || ctx.final_text"
    assert [d.code for d in check(source).errors] == ["unknown-field", "type", "unknown-function", "type"]


def test_after_a_syntax_error_there_is_one_diagnostic():
    assert [d.code for d in check("ctx.nope && (ctx.mutated && 'a\\d'").diagnostics] == ["bad-escape"]


def test_warnings_come_after_errors():
    source = "ctx.tool_calls_total >= 0 && ctx.nope"
    assert [(d.severity, d.code) for d in check(source).diagnostics] == [
        ("error", "unknown-field"),
        ("warning", "constant"),
    ]


def test_diagnostics_are_json():
    checked = check("ctx.no_progres")
    assert json.loads(json.dumps(checked.as_json())) == [
        {
            "severity": "error",
            "code": "unknown-field",
            "start": 0,
            "end": 14,
            "args": {"name": "no_progres"},
            "hint": {"replace": "ctx.no_progress_rounds"},
        }
    ]


def test_at_a_round_there_has_been_a_call():
    assert check("ctx.tool_calls_total == 0", stage="final").diagnostics == ()
    [warning] = check("ctx.tool_calls_total == 0", stage="round").diagnostics
    assert (warning.code, warning.args["value"]) == ("constant", False)


def test_codes_are_not_warned_of_when_no_set_is_known():
    assert check("nudged('anything') > 0").diagnostics == ()
    assert [d.code for d in check("nudged('anything') > 0", known_codes=()).diagnostics] == ["unknown-code"]


@pytest.mark.parametrize(
    ("fits", "too_much", "code", "span"),
    [
        ("true" + " " * 1996, "true" + " " * 1997, "too-long", (2000, 2001)),
        ("(" * 32 + "true" + ")" * 32, "(" * 33 + "true" + ")" * 33, "too-deep", (32, 33)),
        ("!" * 32 + "true", "!" * 33 + "true", "too-deep", (32, 33)),
        ("true ? true : " * 32 + "true", "true ? true : " * 33 + "true", "too-deep", (32 * 14 + 5, 32 * 14 + 6)),
        ("1" + "+1" * 98 + " > 0", "1" + "+1" * 100 + " > 0", "too-complex", (0, 201)),
        (
            f"ctx.tool_calls_total in [{','.join('1' * 50)}]",
            f"ctx.tool_calls_total in [{','.join('1' * 51)}]",
            "too-big",
            (125, 126),
        ),
        (
            f"ctx.final_text.matches('{'a' * 200}')",
            f"ctx.final_text.matches('{'a' * 201}')",
            "regex-too-large",
            (224, 225),
        ),
    ],
)
def test_limits_are_exact(fits, too_much, code, span):
    assert check(fits).errors == ()
    [found] = check(too_much).errors
    assert (found.code, found.start, found.end) == (code, *span)


HOSTILE = [
    "(" * 3000 + "true" + ")" * 3000,
    "(" * 900 + ")" * 900,
    "!" * 6000 + "true",
    "!" * 1990 + "true",
    "-" * 1990 + "1 > 0",
    "1" + "+1" * 20000 + " > 0",
    "1" + "+1" * 990 + " > 0",
    "[" * 1000,
    "ctx" + ".a" * 990,
    "a(" * 900,
    "[1].all(x, [1].all(y, [1].all(z, true)))",
    "ctx.__class__.__mro__",
    "__import__('os').system('true')",
    "9" * 1990 + " > 1",
    "0x" + "f" * 1990 + " > 1",
    "\ud800",
    "'\udfff' == ctx.final_text",
    "true ? " * 280 + "true",
    "true?true:" * 190 + "true",
    "true && " * 240 + "true",
    "'" + "\\" * 1990,
    '"' * 1999,
    "//" * 999,
    "true // \udc00",
    "ctx.final_text.matches('(x{0,20}){0,20}y')",
    "ctx.final_text.matches(r'(\\pL?\\s?){40}y')",
    "ctx.final_text.matches(r'(\\pL{1,20}){1,20}')",
    "ctx.final_text.matches(r'((((a{1,30}){1,30}){1,30}){1,30})')",
    "ctx.final_text.matches(r'" + "(" * 199 + "')",
    "ctx.final_text.matches(r'" + "(?i)" * 49 + "')",
    "ctx.final_text.matches(r'" + "[" * 200 + "')",
    "ctx.final_text.matches('" + "é*" * 100 + "')",
    "ctx.final_text.matches('" + "(.*)" * 50 + "')",
    "ctx.final_text.matches('" + "a" * 1960 + "')",
    "аctx.mutated",  # a Cyrillic letter
    "ctx.ｍutated",
    "\u202ectx.mutated",
    "ctx\u200b.mutated",
    "١ > 0",
    "ctx.mutated\u2028&& true",
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_sources_end_in_a_diagnostic_or_a_tree(source):
    checked = check(source)
    assert (checked.tree is None) == bool(checked.errors)
    assert len(json.dumps(checked.as_json())) < 5000

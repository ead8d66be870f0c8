"""Kinds of tools and outcomes of checks beyond the worked cases."""

import pytest

from rules.domain.tools import ToolCatalogue, ToolEntry, outcome

BUILT_IN = ToolCatalogue()


def kind(name, arguments=None, *entries):
    catalogue = ToolCatalogue(entries) if entries else BUILT_IN
    return catalogue.entry_for(name, arguments).kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_latest_price", "read"), ("Get_Order", "read"), ("searchFlights", "read"), ("openai.search", "read"),
        ("functions/list_tables", "read"), ("ns:view", "read"), ("mcp__db__write_row", "other"), ("glob", "read"),
        ("grep_replace", "other"), ("validate_schema", "verify"), ("unit_test", "verify"), ("my_tests_now", "verify"),
        ("contest_entry", "other"), ("protest", "other"), ("LINT", "verify"), ("check", "other"),
        ("check_order", "verify"),
        ("final_answer", "finish"), ("submit_order", "other"), ("waiting", "read"), ("sleep", "read"),
        ("poll_status", "read"),
        ("attempt_completion", "finish"), ("list_", "read"), ("", "other"), ("é_test", "verify"), ("\ud800", "other"),
    ],
)  # fmt: skip
def test_kind_by_name(name, expected):
    assert kind(name) == expected


def test_own_entries_come_first_and_the_first_that_fits_decides():
    assert kind("get_test_results") == "verify"
    assert kind("get_test_results", {}, ToolEntry("get_*", "read")) == "read"
    entries = (
        ToolEntry("db", "read", "sql", "(?i)^select"),
        ToolEntry("db", "verify", "sql"),
        ToolEntry("db", "other"),
    )
    assert kind("db", {"sql": "SELECT 1"}, *entries) == "read"
    assert kind("db", {"sql": ["update", "x"]}, *entries) == "verify"
    assert kind("db", {"sql": 1}, *entries) == "other"
    assert kind("db", None, *entries) == "other"


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("a?c", "abc", True), ("a?c", "ac", False), ("[ab]*", "bash", True), ("[!ab]*", "bash", False),
        ("[a-c]x", "bx", True),
        ("[z-a]x", "zx", True), ("a.c", "abc", False), ("*[", "x[", True), ("[]]", "]", True),
        ("RUN_*", "x__run_it", True), ("a[!]", "a[!]", True), ("a[^]", "a[^]", True), ("[!]]x", "ax", True),
        ("[!]]x", "]x", False), ("[^]a]x", "ax", False), ("[!", "[!", True), ("[]", "[]", True),
        ("a+b", "aab", False), ("*", "anything\nat all", True), ("été*", "Été_1", True),
    ],
)  # fmt: skip
def test_wildcards_are_those_of_a_shell(pattern, name, fits):
    assert (kind(name, {}, ToolEntry(pattern, "finish")) == "finish") is fits


def test_a_tool_is_a_check_if_some_call_of_it_is_one():
    assert BUILT_IN.can_verify("bash")
    assert BUILT_IN.can_verify("run_tests")
    assert not BUILT_IN.can_verify("edit_file")
    assert not ToolCatalogue([ToolEntry("bash", "other")]).can_verify("bash")
    assert ToolCatalogue([ToolEntry("bash", "read", "command", "^ls")]).can_verify("bash")


def test_patterns_of_entries_have_the_limits_of_predicates():
    bad = ToolEntry("x", "verify", "a", "(x", success_pattern="(x{0,20}){0,20}y", failure_pattern="fine")
    assert {part: problem.code for part, problem in bad.problems().items()} == {
        "argument_pattern": "regex",
        "success_pattern": "regex-too-large",
    }
    with pytest.raises(ValueError, match=r"entry 1 .*argument_pattern"):
        ToolCatalogue([bad])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[Request interrupted by user for tool use]", "not_run"), ("  Tool call was denied.", "not_run"),
        ("tool call was canceled", "not_run"), ("The user doesn’t want to proceed", "not_run"),
        ("It said: rejected by the user", "ok"), ("3 tests failed", "failed"), ("10 errors", "failed"),
        ("0 errors, 0 failures", "ok"),
        ("no errors found", "ok"), ("FAILED tests/a.py::b", "failed"), ("it FAILED", "ok"), ("failed", "ok"),
        ("test result: ok. 0 failed", "ok"), ("test result: failed.", "ok"), ("BUILD FAILURE", "failed"),
        ("build failure", "ok"),
        ("E   assert 1 == 2", "failed"), ("E assert", "ok"), ("a.b.MyTypeError: x", "failed"),
        ("ModuleNotFoundError", "failed"),
        ("Error: x", "failed"), ("error[E0308]: x", "failed"), ("no error: x", "ok"), ("npm ERR! code 1", "failed"),
        ("npm err! code", "ok"), ("cat: a: No such file or directory", "failed"), ("exit code: 1\nexit code: 0", "ok"),
        ("exited with code 1", "failed"), ("exit status 2", "failed"), ("return code 0, 3 failed", "ok"),
        ("exit code -9", "failed"),
        ('{"exitCode": 0, "stdout": "3 failed"}', "ok"), ('{"returncode": 1}', "failed"), ('{"return_code": 0}', "ok"),
        ('{"passed": false}', "failed"), ('{"is_error": true}', "failed"), ('{"error": ""}', "ok"),
        ('{"error": "x"}', "failed"),
        ('{"error": null, "status": "failure"}', "failed"), ('{"failed": 0, "failures": 2}', "failed"),
        ('{"failed": 0}', "ok"),
        ('{"note": "3 failed"}', "ok"), ('{"exit_code": true, "success": false}', "failed"),
        ('["3 failed"]', "failed"),
        ('{"exit_code": 1', "ok"), ("{" * 100_000 + "}" * 100_000, "ok"), ("\ud800 1 failed", "failed"),
    ],
)  # fmt: skip
def test_outcome_of_a_text(content, expected):
    assert outcome(content) == expected


def test_stored_status_and_exit_code_come_first():
    assert outcome("1 failed", "ok", 1) == "ok"
    assert outcome("fine", "not_run") == "not_run"
    assert outcome("The user doesn't want to proceed", None, 0) == "ok"
    assert outcome("fine", None, 2) == "failed"


def test_patterns_of_the_entry_come_before_the_signs():
    entry = ToolEntry("x", "verify", success_pattern="(?i)green", failure_pattern="RED")
    assert outcome("1 failed, but green", entry=entry) == "ok"
    assert outcome("RED and green", entry=entry) == "failed"
    assert outcome("nothing", entry=entry) == "failed"
    assert outcome("rejected by the user, RED", entry=entry) == "not_run"
    assert outcome("fine", entry=ToolEntry("x", "verify", failure_pattern="RED")) == "ok"

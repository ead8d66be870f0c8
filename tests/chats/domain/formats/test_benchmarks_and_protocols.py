"""Benchmark runs, text protocols, foreign nudges (import-formats.md section 4, 17 to 20, 26 to 28, and section 6)."""

import json

import pytest

from chats.domain.formats.foreign_nudges import DEFAULT_CODES, FOREIGN_NUDGES, RALPH
from chats.domain.formats.text_protocols import PROTOCOLS, converted
from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported


def user(content):
    return {"role": "user", "content": content}


def answer(content, **more):
    return {"role": "assistant", "content": content, **more}


class TestTauBench:
    def test_runs_marks_and_failures(self):
        runs = [
            {
                "task_id": 3,
                "reward": 1.0,
                "trial": 0,
                "info": {"source": "user"},
                "traj": [
                    {"role": "system", "content": "say ###STOP### at the end"},
                    user("q"),
                    answer("a"),
                    user("Thanks! ###STOP###"),
                    user("###STOP###"),
                    answer("###TRANSFER###"),
                ],
            },
            {"task_id": 4, "reward": 0.0, "info": {"error": "boom"}, "traj": [], "trial": 0},
        ]
        for upload in (as_json(runs), as_json({"metrics": {}, "results": runs})):
            found = imported(upload)
            assert found.source.format == "tau-bench"
            assert brief(found.chat) == [
                "system: say ###STOP### at the end",
                "user: q",
                "assistant: a",
                "user: Thanks!",
            ]
            assert found.codes == ["failed_run"]
            assert (found.chat.external_id, found.chat.identity_by_content) == ("3", True)
            assert found.chat.metadata == {"task_id": 3, "reward": 1.0, "trial": 0, "source": "user"}
            assert found.report.skipped["control_mark"].count == 2

    def test_display_rows(self):
        display = "user: q\nsecond line\nassistant: None\ntool: r\nassistant: None"
        found = imported(as_lines({"messages_display": display}, {"messages_display": display}))
        assert found.source.format == "tau-bench"
        assert brief(found.chats[0]) == [
            "user: q\nsecond line",
            "assistant:  +unknown{}",
            "tool[call-1-0]: r",
            "assistant: None",
        ]


class TestTau2Bench:
    def test_simulations(self):
        messages = [
            answer("hello"),
            user("q"),
            answer(
                None,
                tool_calls=[
                    {"id": "c1", "name": "f", "arguments": {"a": 1}, "requestor": "assistant"},
                    {"id": "", "name": "g", "arguments": {}, "requestor": "assistant"},
                ],
                raw_data={"choices": [{"finish_reason": "tool_calls"}], "model": "m"},
            ),
            {
                "role": "tool",
                "tool_messages": [
                    {"id": "c1", "role": "tool", "content": "r1", "requestor": "assistant", "error": False},
                    {"id": "", "role": "tool", "content": "r2", "requestor": "assistant", "error": True},
                ],
            },
            {
                "role": "user",
                "content": None,
                "tool_calls": [{"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}],
            },
            {"id": "u1", "role": "tool", "content": "on", "requestor": "user", "error": False},
            answer("end", raw_data={"finish_reason": "stop"}),
        ]
        simulation = {
            "id": "s1",
            "task_id": "5",
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0},
            "messages": messages,
        }
        results = {
            "info": {"max_steps": 30, "environment_info": {"policy": "P", "domain_name": "d"}},
            "simulations": [simulation],
        }
        found = imported(as_json(results))
        assert found.source.format == "tau2-bench"
        expected = [
            "assistant: hello",
            "user: q",
            'assistant:  +f{"a": 1} +g{} =tool_calls',
            "tool[c1 ok]: r1",
            "tool[call-N-1 error]: r2",
            "assistant: end =stop",
        ]
        assert brief(found.chat) == ["system: P", *[e.replace("N", "3") for e in expected]]
        assert (found.chat.external_id, found.chat.step_budget, found.chat.metadata["max_steps"]) == ("s1", None, 30)
        assert {k: n.count for k, n in found.report.skipped.items()} == {"customer_call": 1, "customer_result": 1}
        single = imported(as_json(simulation))
        assert (single.source.format, brief(single.chat)) == ("tau2-bench", [e.replace("N", "2") for e in expected])


class TestSweAgent:
    def trajectory(self, history, **more):
        return as_json(
            {"trajectory": [], "history": history, "info": {"exit_status": "submitted", "submission": "diff"}, **more}
        )

    def test_actions_become_calls(self):
        refused = "Your proposed edit has introduced new syntax error(s). Please read this"
        history = [
            {"role": "system", "content": "S", "agent": "primary"},
            {"role": "user", "content": "demo", "agent": "primary", "is_demo": True},
            {"role": "user", "content": "request", "agent": "primary"},
            {
                "role": "assistant",
                "content": "T\n```\nls -a\n```",
                "thought": "T\n",
                "action": "ls -a\n",
                "agent": "primary",
            },
            {"role": "user", "content": "a.py", "agent": "primary"},
            {
                "role": "assistant",
                "content": "x",
                "thought": "",
                "action": "edit 1:1\nfoo\nend_of_edit",
                "agent": "primary",
            },
            {"role": "user", "content": refused, "agent": "primary"},
            {"role": "assistant", "content": "no action", "thought": "no action", "action": "", "agent": "primary"},
            {"role": "user", "content": "Your output was not formatted correctly. You must", "agent": "primary"},
        ]
        found = imported(self.trajectory(history))
        assert found.source.format == "swe-agent"
        assert brief(found.chat) == [
            "system: S",
            "user: request",
            'assistant: T\n +bash{"command": "ls -a\\n"}',
            "tool[call-2-0]: a.py",
            'assistant:  +edit{"command": "edit 1:1\\nfoo\\nend_of_edit"}',
            f"tool[call-4-0 not_run]: {refused}",
            "assistant: no action",
            "user[EXT-SWEAGENT-FORMAT]: Your output was not formatted correctly. You must",
        ]
        assert found.chat.metadata["exit_status"] == "submitted"

    def test_native_calls(self):
        call = {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        history = [
            {"role": "user", "content": [{"type": "text", "text": "request"}]},
            {"role": "assistant", "content": "c", "thought": "c", "action": "ls", "tool_calls": [call]},
            {"role": "tool", "content": [{"type": "text", "text": "OBSERVATION:\na"}], "tool_call_ids": ["t1"]},
        ]
        assert brief(imported(self.trajectory(history)).chat) == [
            "user: request",
            'assistant: c +bash{"command": "ls"}',
            "tool[t1]: OBSERVATION:\na",
        ]


class TestOpenHands:
    def test_events(self):
        def known(call_id, name, answer_id):
            choice = {"finish_reason": "tool_calls", "message": {}}
            return {
                "tool_call_id": call_id,
                "function_name": name,
                "model_response": {"id": answer_id, "model": "m", "choices": [choice]},
            }

        nudge = "Please continue working on the task on whatever approach you think is suitable.\nIf you think"
        events = [
            {
                "id": 0,
                "source": "agent",
                "action": "system",
                "args": {"content": "S", "tools": [{"type": "function", "function": {"name": "execute_bash"}}]},
            },
            {"id": 1, "source": "user", "action": "message", "args": {"content": "q"}},
            {"id": 2, "source": "user", "action": "recall", "args": {"query": "q"}},
            {
                "id": 3,
                "source": "agent",
                "action": "run",
                "args": {"command": "ls", "thought": "T"},
                "tool_call_metadata": known("c1", "execute_bash", "m1"),
            },
            {
                "id": 4,
                "source": "agent",
                "observation": "run",
                "cause": 3,
                "content": "a",
                "extras": {"metadata": {"exit_code": 0}},
                "tool_call_metadata": known("c1", "execute_bash", "m1"),
            },
            {
                "id": 5,
                "source": "agent",
                "action": "read",
                "args": {"path": "a", "thought": ""},
                "tool_call_metadata": known("c2", "str_replace_editor", "m1"),
            },
            {"id": 6, "source": "agent", "observation": "error", "cause": 5, "content": "E"},
            {"id": 7, "source": "agent", "observation": "agent_state_changed", "content": ""},
            {"id": 8, "source": "user", "action": "message", "args": {"content": nudge}},
            {
                "id": 9,
                "source": "agent",
                "action": "finish",
                "args": {"final_thought": "done", "thought": ""},
                "tool_call_metadata": known("c3", "finish", "m2"),
            },
        ]
        row = {
            "instance_id": "i",
            "metadata": {"max_iterations": 50, "llm_config": {"model": "m", "api_key": "SECRET"}},
            "history": events,
        }
        found = imported(as_lines(row))
        assert found.source.format == "openhands"
        assert brief(found.chat) == [
            "system: S",
            "user: q",
            'assistant: T +execute_bash{"command": "ls"} +str_replace_editor{"path": "a"} =tool_calls',
            "tool[c1 0]: a",
            "tool[c2 error]: E",
            f"user[EXT-OPENHANDS-CONTINUE]: {nudge}",
            'assistant: done +finish{"final_thought": "done"} =tool_calls',
        ]
        assert (found.chat.step_budget, [t.name for t in found.chat.tools]) == (50, ["execute_bash"])
        assert "SECRET" not in json.dumps(found.chat.metadata)
        assert imported(as_json(events)).source.format == "openhands"
        assert imported(as_lines(*events)).source.format == "openhands"

    def test_pairs_and_flat_fields(self):
        pairs = [
            [{"action": "message", "content": "q", "wait_for_response": False}, {"observation": "null", "content": ""}],
            [
                {"action": "run", "command": "ls", "thought": "T"},
                {"observation": "run", "content": "a", "exit_code": 1},
            ],
        ]
        assert brief(imported(as_json({"history": pairs, "metadata": {}})).chat) == [
            "user: q",
            'assistant: T +run{"command": "ls"}',
            "tool[call-1-0 1]: a",
        ]

    def test_sdk_events(self):
        def action(own, call_id, thought):
            return {
                "kind": "ActionEvent",
                "id": own,
                "source": "agent",
                "thought": [{"type": "text", "text": thought}],
                "tool_name": "terminal",
                "tool_call_id": call_id,
                "tool_call": {"id": call_id, "name": "terminal", "arguments": '{"command": "ls"}'},
                "llm_response_id": "m1",
            }

        events = [
            {
                "kind": "SystemPromptEvent",
                "id": "0",
                "source": "agent",
                "system_prompt": {"type": "text", "text": "S"},
                "tools": [],
            },
            {
                "kind": "MessageEvent",
                "id": "1",
                "source": "user",
                "llm_message": {"role": "user", "content": [{"type": "text", "text": "q"}]},
            },
            {"kind": "ConversationStateUpdateEvent", "id": "2", "source": "environment", "key": "x", "value": 1},
            action("3", "c1", "T"),
            action("4", "c2", ""),
            {
                "kind": "ObservationEvent",
                "id": "5",
                "source": "environment",
                "tool_name": "terminal",
                "tool_call_id": "c1",
                "action_id": "3",
                "observation": {"content": [{"type": "text", "text": "a"}], "is_error": False, "exit_code": 0},
            },
            {
                "kind": "AgentErrorEvent",
                "id": "6",
                "source": "agent",
                "tool_name": "terminal",
                "tool_call_id": "c2",
                "error": "E",
            },
        ]
        assert brief(imported(as_lines(*events)).chat) == [
            "system: S",
            "user: q",
            'assistant: T +terminal{"command": "ls"} +terminal{"command": "ls"}',
            "tool<terminal>[c1 ok 0]: a",
            "tool<terminal>[c2 error]: E",
        ]


class TestInspect:
    def test_samples_with_attachments_and_pools(self):
        reference = "0123456789abcdef0123456789abcdef"
        messages = [
            {"role": "user", "content": f"attachment://{reference}"},
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "reasoning": "T"}, {"type": "text", "text": "a"}],
                "tool_calls": [{"id": "c", "function": "f", "arguments": {"p": 1}}],
            },
            {
                "role": "tool",
                "content": "",
                "tool_call_id": "c",
                "function": "f",
                "error": {"type": "timeout", "message": "late"},
            },
            {"role": "assistant", "content": "end"},
        ]
        sample = {
            "id": 1,
            "epoch": 2,
            "target": "",
            "messages": messages,
            "attachments": {reference: "long text"},
            "output": {"model": "m", "choices": [{"stop_reason": "stop"}]},
            "scores": {"s": {"value": 1}},
        }
        pooled = {**sample, "messages": [0, [1, 4]], "message_pool": messages}
        only_events = {
            **sample,
            "messages": [],
            "message_pool": messages,
            "events": [{"event": "model", "input_refs": [[0, 3]], "output": {"choices": [{"message": messages[3]}]}}],
        }
        log = {
            "version": 2,
            "eval": {"task": "t", "run_id": "r"},
            "samples": [sample, pooled, only_events, {**sample, "messages": [9]}],
        }
        found = imported(as_json(log))
        assert found.source.format == "inspect"
        expected = ["user: long text", 'assistant: a (T) +f{"p": 1}', "tool<f>[c error]: late", "assistant: end =stop"]
        assert [brief(c) for c in found.chats] == [expected] * 3
        assert found.codes == ["unreadable"]
        assert found.chats[0].external_id == "r/1/2"


class TestMiniSweAgent:
    def test_commands_return_codes_and_exit(self):
        fenced = "THOUGHT: look\n\n```bash\nls -la\n```"
        nudge = "Please always provide EXACTLY ONE action in triple backticks, found 0"
        row = {
            "trajectory_format": "mini-swe-agent-1",
            "info": {"exit_status": "Submitted", "submission": "d", "config": {"agent": {"step_limit": 30}}},
            "messages": [
                {"role": "system", "content": "S"},
                user("task"),
                answer(fenced, extra={"response": {"choices": [{"finish_reason": "stop"}], "model": "m"}}),
                user("<returncode>2</returncode>\n<output>\nx\n</output>"),
                answer("no command"),
                user(nudge),
                {"role": "exit", "content": "Submitted"},
            ],
        }
        found = imported(as_json(row))
        assert found.source.format == "mini-swe-agent"
        assert brief(found.chat) == [
            "system: S",
            "user: task",
            'assistant: THOUGHT: look +bash{"command": "ls -la"} =stop',
            "tool[call-2-0 2]: <returncode>2</returncode>\n<output>\nx\n</output>",
            "assistant: no command",
            f"user[EXT-MINISWE-FORMAT]: {nudge}",
        ]
        assert found.chat.step_budget == 30
        assert (found.chat.metadata["exit_status"], found.chat.metadata["exit"]) == ("Submitted", "Submitted")


class TestAtif:
    def test_steps_and_continuation_files(self):
        def document(steps, **more):
            return {
                "schema_version": "ATIF-v1.4",
                "session_id": "s",
                "agent": {"name": "x", "tool_definitions": [{"name": "f"}]},
                "steps": steps,
                **more,
            }

        first = document(
            [
                {"step_id": 1, "source": "user", "message": "q"},
                {
                    "step_id": 2,
                    "source": "agent",
                    "message": "a",
                    "reasoning_content": "T",
                    "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"p": 1}}],
                    "observation": {"results": [{"source_call_id": "c", "content": "r"}]},
                },
            ]
        )
        second = document(
            [
                {"step_id": 1, "source": "user", "message": "q", "is_copied_context": True},
                {"step_id": 2, "source": "agent", "message": "end"},
            ]
        )
        found = imported(as_lines(first, second))
        assert found.source.format == "atif"
        assert brief(found.chat) == ["user: q", 'assistant: a (T) +f{"p": 1}', "tool[c]: r", "assistant: end"]


class TestOthers:
    def test_invariant_and_grok(self):
        call = {"type": "function", "function": {"name": "f", "arguments": {"p": 1}}}
        rows = [
            {"metadata": {"x": 1}},
            {"messages": [user("q"), answer("", tool_calls=[call]), {"role": "tool", "content": "r"}]},
            {"messages": [user("q")], "annotations": []},
        ]
        found = imported(as_lines(*rows))
        assert found.source.format == "invariant"
        assert brief(found.chats[0]) == ["user: q", 'assistant:  +f{"p": 1}', "tool[call-1-0]: r"]
        responses = [
            {"response": {"response_id": "1", "sender": "human", "message": "q", "parent_response_id": None}},
            {
                "response": {
                    "response_id": "2",
                    "sender": "ASSISTANT",
                    "message": "a",
                    "parent_response_id": "1",
                    "thinking_trace": "T",
                }
            },
            {"response": {"response_id": "3", "sender": "assistant", "message": "b", "parent_response_id": "1"}},
        ]
        export = {
            "conversations": [
                {
                    "conversation": {"conversation_id": "c", "title": "T", "leaf_response_id": "2"},
                    "responses": responses,
                }
            ]
        }
        grok = imported(as_json(export))
        assert (grok.source.format, brief(grok.chat)) == ("grok-export", ["user: q", "assistant: a (T)"])
        assert grok.report.other_branches == 1


class TestTextProtocols:
    @pytest.mark.parametrize(
        ("protocol", "told", "came_back", "expected"),
        [
            (
                "xml-calls",
                "look\n<function=bash>\n<parameter=command>\nls\n-a\n</parameter>\n</function>",
                "OBSERVATION:\na.py",
                ['assistant: look +bash{"command": "ls\\n-a"}', "tool[call-1-0]: a.py"],
            ),
            (
                "xml-calls",
                "<function=finish></function>",
                "EXECUTION RESULT of [finish]:\nok",
                ["assistant:  +finish{}", "tool[call-1-0]: ok"],
            ),
            (
                "fenced-bash",
                "T\n```bash\nls\n```",
                "out",
                ['assistant: T +bash{"command": "ls"}', "tool[call-1-0]: out"],
            ),
            (
                "execute-blocks",
                "T <execute>\n1+1\n</execute>",
                "Observation:\n2",
                ['assistant: T +execute{"code": "1+1"}', "tool[call-1-0]: 2"],
            ),
            (
                "act-bash",
                "Think: T\n\nAct: bash\n\n```bash\nls\n```",
                "out",
                ['assistant: Think: T +bash{"command": "ls"}', "tool[call-1-0]: out"],
            ),
            (
                "react",
                'Thought: T\nAction: find\nAction Input: {"q": 1}',
                "Observation: hit",
                ['assistant: Thought: T +find{"q": 1}', "tool[call-1-0]: hit"],
            ),
            (
                "hermes",
                'T<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
                '<tool_call>{"name": "g", "arguments": {}}</tool_call>',
                "<tool_response>\nr1\n</tool_response><tool_response>r2</tool_response> and more",
                ['assistant: T +f{"a": 1} +g{}', "tool[call-1-0]: r1", "tool[call-1-1]: r2", "user: and more"],
            ),
        ],
    )
    def test_each(self, protocol, told, came_back, expected):
        upload = as_json([user("q"), answer(told), user(came_back), answer("end"), user("thanks")])
        plain = imported(upload)
        assert plain.report.protocols[protocol] == 1
        assert plain.report.offered_protocol is not None
        before = brief(plain.chat)
        assert brief(converted(plain.chat, protocol)) == ["user: q", *expected, "assistant: end", "user: thanks"]
        assert brief(plain.chat) == before
        assert brief(imported(upload, text_protocol=protocol).chat) == [
            "user: q",
            *expected,
            "assistant: end",
            "user: thanks",
        ]

    def test_every_protocol_is_tried_above(self):
        marks = next(m for m in self.test_each.pytestmark if m.name == "parametrize")
        assert {p[0] for p in marks.args[1]} == set(PROTOCOLS)

    def test_nothing_is_offered_below_half(self):
        upload = as_json([user("q"), answer("<execute>1</execute>"), user("2"), answer("a"), user("b"), answer("c")])
        assert imported(upload).report.offered_protocol is None

    def test_a_reminder_of_the_harness_stays_a_nudge(self):
        reminder = "Your output was not formatted correctly."
        upload = as_json([user("q"), answer("T\n```bash\nls\n```"), user(reminder)])
        assert brief(imported(upload, text_protocol="fenced-bash").chat)[2] == f"user[EXT-SWEAGENT-FORMAT]: {reminder}"

    def test_several_blocks_are_no_single_command(self):
        upload = as_json([user("q"), answer("```bash\na\n```\n```bash\nb\n```"), user("r")])
        assert brief(imported(upload, text_protocol="fenced-bash").chat)[1].endswith("b\n```")


class TestForeignNudges:
    @pytest.mark.parametrize("nudge", [n for n in FOREIGN_NUDGES if n.beginning], ids=lambda n: n.code)
    def test_after_an_answer_only_and_white_space_aside(self, nudge):
        told = "\n  " + nudge.beginning.replace(" ", "\n", 1) + ("" if nudge.whole else " and so on")
        found = imported(
            as_json([user(told), answer("a"), user(told), user(told + "?" if nudge.whole else "x" + told)])
        )
        assert [d.nudge_code for d in found.chat.details] == [None, None, nudge.code, None]
        assert found.report.nudges == {nudge.code: 1}

    def test_codes_can_be_switched_off(self):
        upload = as_json([user("q"), answer("a"), user("Please continue.")])
        assert imported(upload, nudge_codes=DEFAULT_CODES - {"EXT-GEMINI-CONTINUE"}).report.nudges == {}

    def test_the_repeated_request_is_off_by_default(self):
        upload = as_json([user("do it"), answer("a"), user("do it"), answer("b"), user("do it ")])
        assert imported(upload).report.nudges == {}
        found = imported(upload, nudge_codes=DEFAULT_CODES | {RALPH})
        assert [d.nudge_code for d in found.chat.details] == [None, None, RALPH, None, None]

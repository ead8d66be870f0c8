"""Formats that are lists of provider messages (import-formats.md section 4, 1 to 3, 6, 9, 11 to 13, 25)."""

import json

import pytest

from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported


def user(content, **more):
    return {"role": "user", "content": content, **more}


def answer(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(call_id, name, arguments, **more):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


class TestOpenAIChat:
    def test_messages_calls_and_results(self):
        found = imported(
            as_json(
                [
                    {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                    user("hi"),
                    answer(None, tool_calls=[call("c1", "read", '{"p": 1}'), call("c2", "bad", "{oops")]),
                    {"role": "tool", "tool_call_id": "c1", "content": "x"},
                    {"role": "narrator", "content": "meanwhile"},
                    answer("bye", reasoning_content="hm", refusal=None),
                ]
            )
        )
        assert found.source.format == "openai-chat"
        assert brief(found.chat) == [
            "system: a\nb",
            "user: hi",
            'assistant:  +read{"p": 1} +bad!{oops',
            "tool[c1]: x",
            "narrator: meanwhile",
            "assistant: bye (hm)",
        ]
        assert found.report.arguments_not_json.count == 1
        assert found.report.calls_without_result.count == 1
        assert found.report.unknown_roles == {"narrator": 1}

    def test_legacy_function_calls(self):
        found = imported(
            as_json(
                [
                    user("go"),
                    answer(None, function_call={"name": "f", "arguments": "{}"}),
                    {"role": "function", "name": "f", "content": "1"},
                ]
            )
        )
        assert brief(found.chat)[1:] == ["assistant:  +f{}", "tool<f>[fc-1]: 1"]
        assert found.report.results_without_call.count == 0

    def test_few_shot_messages(self):
        found = imported(
            as_json(
                [
                    {"role": "system", "name": "example_user", "content": "2+2"},
                    {"role": "system", "name": "example_assistant", "content": "4"},
                    {"role": "system", "name": "other", "content": "rule"},
                ]
            )
        )
        assert brief(found.chat) == [
            "user<example_user>[few-shot]: 2+2",
            "assistant<example_assistant>[few-shot]: 4",
            "system<other>: rule",
        ]

    def test_parts_that_are_no_text(self):
        parts = [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ]
        found = imported(as_json([user(parts)]))
        assert brief(found.chat) == ["user: see\n[image]\n[audio]\n[file: a.pdf]"]
        assert found.chat.details[0].parts == [
            {"placeholder": "image", "type": "image_url", "image_url": {"detail": "low"}},
            {"placeholder": "audio", "type": "input_audio", "input_audio": {"format": "wav"}},
            {"placeholder": "file", "type": "file", "file": {"filename": "a.pdf"}},
        ]

    def test_a_log_with_its_response(self):
        response = {
            "object": "chat.completion",
            "model": "m-1",
            "created": 1700000000,
            "usage": {"total_tokens": 3},
            "choices": [
                {"message": answer("A"), "finish_reason": "length"},
                {"message": answer("B"), "finish_reason": "stop"},
            ],
        }
        tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
        log = {"messages": [user("q")], "tools": tools, "response": response}
        found = imported(as_json(log))
        assert brief(found.chat) == ["user: q", "assistant: A =length"]
        details = found.chat.details[1]
        assert (details.model, details.usage, details.finish_reason_raw) == ("m-1", {"total_tokens": 3}, "length")
        assert details.created_at.isoformat() == "2023-11-14T22:13:20+00:00"
        assert [t.model_dump() for t in found.chat.tools] == [
            {"name": "f", "description": "d", "parameters": {"type": "object"}}
        ]
        assert found.report.other_branches == 1
        every = imported(as_json(log), all_branches=True)
        assert [brief(c)[1] for c in every.chats] == ["assistant: A =length", "assistant: B =stop"]

    def test_a_response_alone_and_unknown_tools(self):
        found = imported(as_json({"object": "chat.completion", "choices": [{"message": answer("A")}]}))
        assert brief(found.chat) == ["assistant: A"]
        assert found.chat.tools is None
        assert imported(as_json({"model": "m", "messages": [user("x")], "tools": []})).chat.tools == []

    def test_other_columns_are_kept_or_told(self):
        found = imported(
            as_json(
                {
                    "model": "m",
                    "messages": [user("q")],
                    "metadata": {"a": [1]},
                    "response": {"choices": []},
                    "seed": 4,
                    "stop": ["x"],
                }
            )
        )
        assert found.chat.metadata == {"model": "m", "seed": 4, "a": [1]}
        assert found.report.not_understood == {"stop": 1, "response": 1}

    def test_exchanges_keep_the_longest_history(self):
        def exchange(messages, text):
            return {
                "request": {"model": "m", "messages": messages},
                "response": {"choices": [{"message": answer(text), "finish_reason": "stop"}]},
            }

        run = [exchange([user("1")], "a"), exchange([user("1"), answer("a"), user("2")], "b")]
        joined = ["user: 1", "assistant: a", "user: 2", "assistant: b =stop"]
        assert brief(imported(as_json({"exchanges": run})).chat) == joined
        assert brief(imported(as_lines(*run)).chat) == joined
        other = exchange([user("else")], "c")
        found = imported(as_json({"exchanges": [*run, other]}))
        assert [brief(c)[0] for c in found.chats] == ["user: 1", "user: else"]
        assert found.report.side_chats == {"other_exchange": 1}


class TestRows:
    def test_columns_in_their_order_of_trust(self):
        for column in ("messages", "conversation", "conversations", "chat", "trajectory", "traj", "history"):
            row = {column: [user("hi"), answer("yo")], "score": 0.5, "nested": {"a": 1}}
            found = imported(as_lines(row, row))
            assert brief(found.chats[0]) == ["user: hi", "assistant: yo"], column
            assert found.chats[0].metadata == {"score": 0.5}
        both = {"history": [user("old")], "messages": [user("new")], "x": 1}
        assert brief(imported(as_lines(both, both)).chats[0]) == ["user: new"]

    def test_json_text_columns(self):
        row = {"messages": json.dumps([user("hi")]), "tools": json.dumps([{"name": "f"}]), "k": "v"}
        found = imported(as_lines(row, row))
        assert found.source.format == "hf-messages"
        assert brief(found.chats[0]) == ["user: hi"]
        assert [t.name for t in found.chats[0].tools] == ["f"]

    def test_typed_parts_with_calls(self):
        parts = [
            {"type": "reasoning", "value": "think"},
            {"type": "text", "value": "say"},
            {"type": "tool_call", "value": '{"id": "c", "name": "f", "arguments": {"a": 1}}'},
        ]
        row = {"messages": [user([{"type": "text", "value": "hi"}]), answer(parts)]}
        found = imported(as_lines(row, row))
        assert found.source.format == "hf-messages"
        assert brief(found.chats[0]) == ["user: hi", 'assistant: say (think) +f{"a": 1}']

    @pytest.mark.parametrize(
        ("column", "by_content"),
        [("id", False), ("uuid", False), ("traj_id", False), ("instance_id", True), ("task_id", True)],
    )
    def test_ids(self, column, by_content):
        row = {"messages": [user("x")], column: 7, "other": "y"}
        found = imported(as_lines(row))
        assert (found.chat.external_id, found.chat.identity_by_content) == ("7", by_content)

    def test_system_prompt_and_text_fields(self):
        row = {
            "instance_id": "i",
            "trajectory": [
                {"role": "system", "system_prompt": "S", "text": None},
                {"role": "user", "text": "U", "system_prompt": None},
                {"role": "ai", "text": "A"},
            ],
        }
        assert brief(imported(as_lines(row)).chat) == ["system: S", "user: U", "assistant: A"]


class TestAnthropic:
    def test_blocks(self):
        request = {
            "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
            "max_tokens": 9,
            "messages": [
                user("hi"),
                answer(
                    [
                        {"type": "thinking", "thinking": "T", "signature": "x"},
                        {"type": "redacted_thinking", "data": "x"},
                        {"type": "text", "text": "a"},
                        {"type": "text", "text": "b"},
                        {"type": "tool_use", "id": "t1", "name": "f", "input": {"p": 1}},
                        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
                    ]
                ),
                user(
                    [
                        {"type": "text", "text": "and now"},
                        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "r1"}]},
                        {"type": "tool_result", "tool_use_id": "t2", "content": "r2", "is_error": True},
                    ]
                ),
            ],
        }
        response = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "end"}],
            "stop_reason": "max_tokens",
        }
        found = imported(as_json({"request": request, "response": response}))
        assert found.source.format == "anthropic-messages"
        assert brief(found.chat) == [
            "system: S",
            "user: hi",
            'assistant: a\nb (T) +f{"p": 1} +g{}',
            "tool[t1 ok]: r1",
            "tool[t2 error]: r2",
            "user: and now",
            "assistant: end =length",
        ]

    @pytest.mark.parametrize("more", [{"max_tokens": 5}, {"model": "claude-x"}])
    def test_a_request_of_texts_is_known_by_its_system_text(self, more):
        found = imported(as_json({"system": "S", "messages": [user("hi")], **more}))
        assert (found.source.format, brief(found.chat)) == ("anthropic-messages", ["system: S", "user: hi"])

    def test_only_results_make_no_user_message(self):
        found = imported(
            as_json(
                [
                    answer([{"type": "tool_use", "id": "t", "name": "f", "input": {}}]),
                    user([{"type": "tool_result", "tool_use_id": "t", "content": "r"}]),
                ]
            )
        )
        assert [line.split(":")[0] for line in brief(found.chat)] == ["assistant", "tool[t ok]"]

    def test_server_tools_split_the_answer(self):
        blocks = [
            {"type": "text", "text": "let me look"},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s1",
                "content": {"type": "web_search_tool_result_error", "error_code": "max"},
            },
            {"type": "text", "text": "found"},
        ]
        message = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "pause_turn"}
        assert brief(imported(as_json(message)).chat) == [
            'assistant: let me look +web_search{"q": "x"}',
            'tool[s1 error]: {"type": "web_search_tool_result_error", "error_code": "max"}',
            "assistant: found",
        ]


class TestLangChain:
    def test_all_three_spellings(self):
        constructor = {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "AIMessageChunk"],
            "kwargs": {"content": "c", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "k"}]},
        }
        messages = [
            {"type": "system", "data": {"content": "S"}},
            {"type": "human", "content": [{"type": "text", "text": "h"}], "name": "Ann"},
            constructor,
            {"type": "tool", "content": "r", "tool_call_id": "k", "status": "error"},
            {"type": "chat", "data": {"content": "x", "role": "critic"}},
            {
                "type": "ai",
                "content": "",
                "invalid_tool_calls": [{"name": "g", "args": "{bad", "id": "i"}],
                "response_metadata": {"stop_reason": "tool_use", "model_name": "m"},
                "usage_metadata": {"total_tokens": 2},
            },
        ]
        found = imported(as_json(messages))
        assert found.source.format == "langchain"
        assert brief(found.chat) == [
            "system: S",
            "user<Ann>: h",
            'assistant: c +f{"a": 1}',
            "tool[k error]: r",
            "critic: x",
            "assistant:  +g!{bad =tool_calls",
        ]
        assert found.chat.details[5].usage == {"total_tokens": 2}

    def test_raw_calls_count_only_without_parsed_ones(self):
        raw = {"tool_calls": [call("c", "raw", "{}")]}
        both = {
            "type": "ai",
            "content": "",
            "additional_kwargs": raw,
            "tool_calls": [{"name": "f", "args": {}, "id": "c"}],
        }
        only = {"type": "ai", "content": "", "additional_kwargs": raw}
        assert brief(imported(as_json([both, only])).chat) == ["assistant:  +f{}", "assistant:  +raw{}"]

    def test_removals_are_applied_and_the_thread_is_the_id(self):
        state = {
            "thread_id": "th",
            "values": {
                "messages": [
                    {"type": "human", "content": "a", "id": "1"},
                    {"type": "human", "content": "b", "id": "2"},
                    {"type": "remove", "content": "", "id": "1"},
                ]
            },
        }
        found = imported(as_json(state))
        assert (brief(found.chat), found.chat.external_id) == (["user: b"], "th")


class TestShareGPTAndAlpaca:
    def test_calls_and_observations(self):
        row = {
            "system": "S",
            "tools": '[{"name": "f"}]',
            "conversations": [
                {"from": "human", "value": "q"},
                {
                    "from": "function_call",
                    "value": '[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": "x"}]',
                },
                {"from": "observation", "value": "r1"},
                {"from": "observation", "value": "r2"},
                {"from": "gpt", "value": "one"},
                {"from": "gpt", "value": "two"},
            ],
        }
        found = imported(as_json([row]))
        assert found.source.format == "sharegpt"
        assert brief(found.chat) == [
            "system: S",
            "user: q",
            'assistant:  +f{"a": 1} +g!x',
            "tool[call-2-0]: r1",
            "tool[call-2-1]: r2",
            "assistant: one",
            "assistant: two",
        ]

    def test_other_key_pairs(self):
        row = {"conversations": [{"user": "human", "text": "q"}, {"user": "bot", "text": "a"}]}
        assert brief(imported(as_json([row])).chat) == ["user: q", "assistant: a"]

    def test_alpaca_with_history(self):
        row = {"instruction": "I", "input": "X", "output": "O", "system": "S", "history": [["q", "a"]]}
        found = imported(as_json([row, {"instruction": "I", "input": "", "output": ""}]))
        assert brief(found.chats[0]) == ["system: S", "user: q", "assistant: a", "user: I\n\nX", "assistant: O"]
        assert brief(found.chats[1]) == ["user: I", "assistant: "]


class TestResponses:
    def test_items(self):
        items = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "T"}], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"p": 1}'},
            {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "r1"},
            {"type": "function_call_output", "call_id": "call_2", "output": "r2"},
            {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
            {"role": "assistant", "type": "message", "content": "done"},
        ]
        found = imported(as_json(items))
        assert found.source.format == "openai-responses"
        assert brief(found.chat) == [
            "user: q",
            'assistant: a (T) +f{"p": 1} +g{}',
            "tool[call_1]: r1",
            "tool[call_2]: r2",
            'assistant:  +code_interpreter{"code": "1+1"}',
            "tool[ci ok]: 2",
            "assistant: done",
        ]

    def test_chains_are_joined_and_a_missing_parent_is_told(self):
        def pair(given, text, own, previous=None):
            return {
                "request": {"model": "m", "input": given, "instructions": "I", "previous_response_id": previous},
                "response": {
                    "object": "response",
                    "id": own,
                    "status": "completed",
                    "output": [
                        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
                    ],
                },
            }

        first, second = pair("one", "a", "r1"), pair("two", "b", "r2", "r1")
        found = imported(as_json({"exchanges": [first, second]}))
        assert brief(found.chat) == ["system: I", "user: one", "assistant: a", "user: two", "assistant: b =stop"]
        lost = imported(as_json({"exchanges": [second]}))
        assert brief(lost.chat)[1:] == ["user: two", "assistant: b =stop"]
        assert lost.report.problems["parent_missing"].count == 1

    def test_an_answer_that_was_cut(self):
        response = {
            "object": "response",
            "id": "r",
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}],
        }
        assert brief(imported(as_json(response)).chat) == ["assistant: a =length"]


class TestGemini:
    def test_contents(self):
        request = {
            "system_instruction": {"parts": [{"text": "S"}]},
            "tools": [{"function_declarations": [{"name": "f"}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "q"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "go"},
                        {"functionCall": {"name": "f", "args": {"a": 1}}},
                        {"functionCall": {"name": "f", "args": {"a": 2}}},
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "f", "response": {"output": "r1"}}},
                        {"functionResponse": {"name": "f", "response": {"x": 2}}},
                    ],
                },
            ],
        }
        parts = [
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "so"},
        ]
        response = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        found = imported(as_json({**request, "response": response}))
        assert found.source.format == "gemini-contents"
        assert brief(found.chat) == [
            "system: S",
            "user: q\n[image]",
            'assistant: go (hm) +f{"a": 1} +f{"a": 2}',
            "tool<f>[g-2]: r1",
            'tool<f>[g-2-1]: {"x": 2}',
            'assistant:  +code_execution{"language": "PYTHON", "code": "1"}',
            "tool[g-5 ok]: 1",
            "assistant: so =stop",
        ]

    def test_stop_with_a_call_means_the_call(self):
        response = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]}
        found = imported(as_json(response))
        assert brief(found.chat) == ["assistant:  +f{} =tool_calls"]
        assert found.chat.details[0].finish_reason_raw == "STOP"


class TestVercel:
    def test_steps(self):
        parts = [
            {"type": "step-start"},
            {"type": "reasoning", "text": "T"},
            {"type": "text", "text": "a"},
            {"type": "tool-f", "toolCallId": "c1", "state": "output-available", "input": {"p": 1}, "output": {"r": 1}},
            {
                "type": "dynamic-tool",
                "toolName": "g",
                "toolCallId": "c2",
                "state": "output-error",
                "input": {},
                "errorText": "E",
            },
            {"type": "step-start"},
            {"type": "tool-h", "toolCallId": "c3", "state": "input-available", "input": {}},
            {
                "type": "tool-h",
                "toolCallId": "c4",
                "state": "output-denied",
                "input": {},
                "approval": {"id": "x", "approved": False},
            },
            {"type": "text", "text": "end"},
        ]
        row = {
            "id": "ch",
            "messages": [
                {"id": "u", "role": "user", "parts": [{"type": "text", "text": "q"}]},
                {"id": "a", "role": "assistant", "parts": parts},
            ],
        }
        found = imported(as_lines(row))
        assert found.source.format == "vercel-ui-messages"
        assert brief(found.chat) == [
            "user: q",
            'assistant: a (T) +f{"p": 1} +g{}',
            'tool<f>[c1 ok]: {"r": 1}',
            "tool<g>[c2 error]: E",
            "assistant: end +h{} +h{}",
            "tool<h>[c4 not_run]: ",
        ]

    def test_without_marks_a_text_after_a_tool_starts_a_step(self):
        old = {
            "role": "assistant",
            "content": "done",
            "parts": [
                {"type": "text", "text": "look"},
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "c",
                        "toolName": "f",
                        "args": {},
                        "result": "r",
                    },
                },
                {"type": "text", "text": "done"},
            ],
        }
        expected = ["assistant: look +f{}", "tool<f>[c ok]: r", "assistant: done"]
        assert brief(imported(as_json([old])).chat) == expected
        older = {"role": "assistant", "content": "done", "toolInvocations": [old["parts"][1]["toolInvocation"]]}
        assert brief(imported(as_json([older])).chat) == ["assistant:  +f{}", *expected[1:]]

"""Optional and unusual parts of the published definitions, which recorded files seldom show."""

import json

import pytest

from chats.domain.formats import identity_key, state_hash
from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported

Q = {"role": "user", "content": "q"}


def call(name, arguments, call_id=None):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class TestOpenAi:
    def chunk(self, delta, finish=None, index=0, own="c1"):
        choice = {"index": index, "delta": delta, "finish_reason": finish}
        return {"id": own, "object": "chat.completion.chunk", "model": "m", "created": 1700000000, "choices": [choice]}

    def chunks(self):
        def part(index, arguments, **more):
            return {"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]}

        return [
            self.chunk({"role": "assistant", "content": ""}),
            self.chunk({"content": "he"}),
            self.chunk({"content": "llo", "reasoning_content": "T"}),
            self.chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]}),
            self.chunk(part(0, '{"x"')),
            self.chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]}),
            self.chunk(part(0, ": 1}")),
            self.chunk({}, "tool_calls"),
            {"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 7}},
        ]

    def test_a_stream_is_one_answer(self):
        answer = 'assistant: hello (T) +f{"x": 1} +g{} =tool_calls'
        events = "".join(f"data: {json.dumps(c)}\n\n" for c in self.chunks()) + "data: [DONE]\n\n"
        request = {"model": "m", "messages": [Q], "stream": True}
        for response in (self.chunks(), events):
            found = imported(as_json({"exchanges": [{"request": request, "response": response}]}))
            assert (found.source.format, brief(found.chat)) == ("openai-chat", ["user: q", answer])
            assert found.chat.details[1].usage == {"total_tokens": 7}
        for upload in (as_lines(*self.chunks()), as_json(self.chunks())):
            assert brief(imported(upload).chat) == [answer]

    def test_results_of_batches(self):
        completion = {"object": "chat.completion", "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
        row = {"id": "b", "custom_id": "1", "response": {"status_code": 200, "body": completion}, "error": None}
        found = imported(as_lines(row, row))
        assert (found.source.format, [brief(c) for c in found.chats]) == ("openai-chat", [["assistant: a =stop"]] * 2)

    def test_a_whole_log_may_have_keys_of_its_own(self):
        assert imported(as_json({"messages": [Q], "session": {"a": 1}, "cost": 2})).source.format == "openai-chat"
        row = {"model": "m", "messages": [Q], "temperature": 0, "provider": {"order": []}}
        assert imported(as_lines(row, row)).source.format == "openai-chat"
        assert imported(
            as_lines({"messages": [Q], "model": "m", "score": 1}, {"messages": [Q], "score": 2})
        ).source.format == ("hf-messages")

    def test_results_and_calls_without_ids_are_matched_in_order(self):
        messages = [
            Q,
            {"role": "assistant", "content": None, "tool_calls": [call("f", "{}"), call("g", "{}")]},
            {"role": "tool", "name": "g", "content": "rg"},
            {"role": "tool", "content": "rf"},
            {"role": "tool", "content": "more"},
        ]
        found = imported(as_json(messages))
        assert brief(found.chat)[2:] == ["tool<g>[call-1-1]: rg", "tool[call-1-0]: rf", "tool[?]: more"]
        assert (found.report.results_without_call.count, found.report.calls_without_result.count) == (1, 0)

    def test_the_next_function_message_is_the_result(self):
        messages = [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            Q,
            {"role": "function", "name": "f", "content": "r"},
        ]
        assert brief(imported(as_json(messages)).chat)[-1] == "tool<f>[fc-0]: r"

    def test_calls_as_json_text_and_parts_of_the_core(self):
        rows = {"messages": [Q, {"role": "assistant", "content": "", "tool_calls": json.dumps([call("f", "{}", "c")])}]}
        assert brief(imported(as_lines(rows, rows)).chats[0])[1] == "assistant:  +f{}"
        messages = [
            Q,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c",
                        "toolName": "f",
                        "output": {"type": "text", "value": "r"},
                    }
                ],
            },
        ]
        assert brief(imported(as_json(messages)).chat)[1:] == ['assistant: t +f{"a": 1}', "tool<f>[c ok]: r"]

    def test_most_of_the_messages_need_to_fit(self):
        found = imported(as_lines(Q, None, {"note": 1}, {"role": "assistant", "content": "a"}, Q))
        assert found.source.format == "openai-chat"
        assert [m.role for m in found.chat.chat.messages].count("user") == 2
        assert found.report.skipped["no_record"].count == 1

    def test_thinking_in_blocks(self):
        blocks = [{"type": "thinking", "thinking": "T", "signature": "s"}]
        messages = [Q, {"role": "assistant", "content": "a", "thinking_blocks": blocks}]
        assert brief(imported(as_json(messages)).chat)[1] == "assistant: a (T)"
        details = [{"type": "reasoning.text", "text": "U"}, {"type": "reasoning.encrypted", "data": "x"}]
        messages = [Q, {"role": "assistant", "content": "a", "reasoning_details": details}]
        assert brief(imported(as_json(messages)).chat)[1] == "assistant: a (U)"


class TestRows:
    def test_json_text_columns_may_be_indented(self):
        row = {"messages": json.dumps([Q], indent=2), "source": "s"}
        found = imported(as_lines(row, row))
        assert (found.source.format, brief(found.chats[0])) == ("hf-messages", ["user: q"])
        row = {"conversations": json.dumps([{"from": "human", "value": "q"}], indent=2)}
        found = imported(as_lines(row, row))
        assert (found.source.format, brief(found.chats[0])) == ("sharegpt", ["user: q"])

    def test_columns_named_like_other_formats_are_columns(self):
        row = {"messages": [Q], "sessionId": "s", "schema_version": 2}
        assert imported(as_lines(row, row)).source.format == "hf-messages"

    def test_maps_of_parquet_are_objects(self):
        import io

        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        kind = arrow.list_(arrow.struct([("role", arrow.string()), ("content", arrow.string())]))
        file = io.BytesIO()
        columns = {
            "messages": arrow.array([[Q]], kind),
            "metadata": arrow.array([[("k", "v")]], arrow.map_(arrow.string(), arrow.string())),
        }
        parquet.write_table(arrow.table(columns), file)
        assert imported(file.getvalue()).chat.metadata == {"k": "v"}


class TestAnthropic:
    def events(self):
        def block(index, start, *deltas):
            yield {"type": "content_block_start", "index": index, "content_block": start}
            yield from ({"type": "content_block_delta", "index": index, "delta": d} for d in deltas)
            yield {"type": "content_block_stop", "index": index}

        message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude-x"}
        return [
            {"type": "message_start", "message": {**message, "usage": {"input_tokens": 3}}},
            *block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "T"}),
            *block(
                1,
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": "he"},
                {"type": "ping"},
                {"type": "text_delta", "text": "llo"},
            ),
            *block(
                2,
                {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"a"'},
                {"type": "input_json_delta", "partial_json": ": 1}"},
            ),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]

    def test_a_stream_is_one_answer(self):
        answer = 'assistant: hello (T) +f{"a": 1} =tool_calls'
        request = {"model": "claude-x", "max_tokens": 9, "messages": [Q], "stream": True}
        found = imported(as_json({"exchanges": [{"request": request, "response": self.events()}]}))
        assert (found.source.format, brief(found.chat)) == ("anthropic-messages", ["user: q", answer])
        assert found.chat.details[1].usage == {"input_tokens": 3, "output_tokens": 5}
        found = imported(as_lines(*self.events()))
        assert (found.source.format, brief(found.chat)) == ("anthropic-messages", [answer])


class TestResponses:
    def pair(self, own, told, previous=None):
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"to {told}"}]}]
        request = {"model": "m", "input": told, **({"previous_response_id": previous} if previous else {})}
        return {"request": request, "response": {"id": own, "object": "response", "output": output}}

    def test_chains_side_by_side_are_joined_by_id(self):
        pairs = [
            self.pair("a1", "one"),
            self.pair("b1", "uno"),
            self.pair("a2", "two", "a1"),
            self.pair("b2", "due", "b1"),
            self.pair("a3", "three", "a2"),
        ]
        found = imported(as_lines(*pairs))
        assert found.codes == []
        assert [[t for t in brief(c) if t.startswith("user")] for c in found.chats] == [
            ["user: uno", "user: due"],
            ["user: one", "user: two", "user: three"],
        ]

    def test_what_is_asked_again_from_an_earlier_answer_is_a_branch(self):
        pairs = [self.pair("1", "one"), self.pair("2", "two", "1"), self.pair("3", "other", "1")]
        found = imported(as_lines(*pairs))
        assert [t for t in brief(found.chat) if t.startswith("user")] == ["user: one", "user: other"]
        assert (found.report.other_branches, found.codes) == (1, [])
        many = imported(as_lines(*pairs), all_branches=True)
        assert [brief(c)[2] for c in many.chats] == ["user: two", "user: other"]
        assert dict(many.report.side_chats) == {"branch": 1}

    def test_a_stream_is_its_last_event(self):
        whole = self.pair("1", "q")["response"]
        events = [
            {"type": "response.created", "response": {"id": "1", "object": "response", "output": []}},
            {"type": "response.output_text.delta", "delta": "to q"},
            {"type": "response.output_item.done", "item": whole["output"][0]},
            {"type": "response.completed", "response": {**whole, "status": "completed"}},
        ]
        request = {"model": "m", "input": "q", "stream": True}
        for response in (events, events[:-1]):
            chat = imported(as_json({"exchanges": [{"request": request, "response": response}]})).chat
            assert [t.split(" =")[0] for t in brief(chat)] == ["user: q", "assistant: to q"]

    def test_approvals_among_the_items(self):
        items = [
            {"type": "message", "role": "user", "content": "q"},
            {"type": "mcp_approval_request", "id": "r", "name": "f", "arguments": "{}", "server_label": "s"},
            {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
            {"type": "mcp_call", "id": "c", "name": "f", "arguments": "{}", "output": "r", "server_label": "s"},
        ]
        found = imported(as_json({"model": "m", "input": items}))
        assert brief(found.chat) == ["user: q", "assistant:  +f{}", "tool[c ok]: r"]
        assert [a["type"] for a in found.chat.metadata["approvals"]] == [
            "mcp_approval_request",
            "mcp_approval_response",
        ]


class TestCodex:
    def test_messages_that_only_tell_the_surroundings(self):
        def message(content, role="user"):
            payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": content}]}
            return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}

        where = "<environment_context>\n<cwd>x</cwd>\n</environment_context>"
        agents = "# AGENTS.md instructions for x\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>"
        told = [where, f"{agents}\n{where}", f"<user_instructions>u</user_instructions>\n{where}", f"{where}\nfix it"]
        records = [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}}]
        found = imported(as_lines(*records, *map(message, told), message("ok", "assistant")))
        assert [m.role for m in found.chat.chat.messages] == ["system", "system", "system", "user", "assistant"]


class TestClaudeCode:
    def test_a_sub_agents_own_file_is_not_its_session(self):
        def record(uuid, parent, role, **more):
            said = {"role": role, "content": [{"type": "text", "text": "x"}]}
            return {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": said, **more}

        main = imported(as_lines(record("1", None, "user"), record("2", "1", "assistant"))).chat
        side = {"isSidechain": True, "agentId": "a1"}
        agent = imported(as_lines(record("1", None, "user", **side), record("2", "1", "assistant", **side))).chat
        assert (main.external_id, agent.external_id) == ("s", "s/a1")
        assert agent.metadata["parent_session"] == "s"

    def test_a_long_preface_without_messages(self):
        preface = [{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}] * 25
        said = {"role": "user", "content": "q"}
        found = imported(as_lines(*preface, {"type": "user", "uuid": "1", "sessionId": "s", "message": said}))
        assert (found.source.format, brief(found.chat)) == ("claude-code", ["user: q"])


class TestLangChain:
    def test_chunks_of_one_answer(self):
        def chunk(content, *pieces):
            return {"type": "AIMessageChunk", "id": "run-1", "content": content, "tool_call_chunks": list(pieces)}

        messages = [
            {"type": "human", "content": "q"},
            chunk("he"),
            chunk("llo", {"index": 0, "id": "c", "name": "f", "args": '{"a"'}),
            {
                **chunk("", {"index": 0, "id": None, "name": None, "args": ": 1}"}),
                "usage_metadata": {"total_tokens": 2},
            },
        ]
        chat = imported(as_json(messages)).chat
        assert brief(chat) == ["user: q", 'assistant: hello +f{"a": 1}']
        assert chat.details[1].usage == {"total_tokens": 2}


class TestTraces:
    OBSERVATION = {
        "id": "1",
        "type": "GENERATION",
        "trace_id": "t",
        "start_time": "2026-01-01T00:00:00Z",
        "output": "a",
    }

    def test_observations_named_as_columns_and_pages_of_lists(self):
        rows = [{**self.OBSERVATION, "input": [Q]}]
        for upload in (as_lines(*rows, *rows), as_json(rows), as_json({"data": rows, "meta": {"page": 1}})):
            found = imported(upload)
            assert (found.source.format, brief(found.chat)) == ("langfuse", ["user: q", "assistant: a"])
            assert found.chat.external_id == "t"

    def test_finish_reasons_as_json_text(self):
        attributes = {
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "q"}]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]),
            "gen_ai.response.finish_reasons": '["length"]',
        }
        listed = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
        span = {"traceId": "t", "spanId": "1", "attributes": listed, "startTimeUnixNano": "²"}
        found = imported(as_json({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
        assert brief(found.chat) == ["user: q", "assistant: a =length"]


class TestBenchmarks:
    def test_nothing_but_objects_are_messages(self):
        run = {"task_id": 1, "reward": 0, "traj": [Q, None, "x", {"role": "assistant", "content": "a"}]}
        found = imported(as_json([run]))
        assert brief(found.chat) == ["user: q", "assistant: a"]
        assert found.report.skipped["no_record"].count == 2

    @pytest.mark.parametrize("upload", [{"simulations": []}, {"eval": {}, "version": 2, "status": "error"}])
    def test_a_file_of_a_known_format_without_chats_says_so(self, upload):
        found = imported(as_json(upload))
        assert (found.codes, found.report.chats_lost) == (["no_messages"], 0)

    def test_arguments_of_an_action_are_all_but_its_thought(self):
        events = [
            {"id": 1, "source": "user", "action": "message", "args": {"content": "q"}},
            {"id": 2, "source": "agent", "action": "think", "args": {"thought": "T"}},
            {"id": 3, "source": "agent", "action": "run", "args": {"command": "ls", "timeout": 5, "thought": "U"}},
        ]
        assert brief(imported(as_json(events)).chat)[1:] == [
            "assistant: T +think{}",
            'assistant: U +run{"command": "ls", "timeout": 5}',
        ]

    def test_observations_of_steps_that_no_agent_took(self):
        results = {"results": [{"content": "r"}]}
        steps = [{"step_id": 1, "source": "user", "message": "q"}, {"step_id": 2, "source": "system", "message": "s"}]
        found = imported(
            as_json({"schema_version": "ATIF-v1.5", "steps": [steps[0], {**steps[1], "observation": results}]})
        )
        assert brief(found.chat) == ["user: q", "system: s", "tool[?]: r"]


class TestSameness:
    def test_key_order_and_white_space_are_no_change(self):
        arguments = {"b": 1, "a": {"d": 2, "c": [1]}}
        messages = [Q, {"role": "assistant", "content": "", "tool_calls": [call("f", arguments, "c")]}]
        rows = [{"messages": messages, "score": 1, "tools": [{"name": "f", "parameters": {"y": {}, "x": {}}}]}]
        one = imported(json.dumps(rows).encode()).chat
        other = imported(json.dumps(rows, sort_keys=True, indent=3).encode()).chat
        assert (identity_key(one), state_hash(one)) == (identity_key(other), state_hash(other))
        rows[0]["messages"][1]["tool_calls"][0]["function"]["arguments"] = {**arguments, "b": 2}
        assert identity_key(imported(json.dumps(rows).encode()).chat) != identity_key(one)


class TestGemini:
    def chunk(self, *parts, finish=None):
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}

    def test_pieces_of_a_stream_go_on_and_parts_are_lines(self):
        request = {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}
        stream = [
            self.chunk({"text": "Let me ", "thought": True}),
            self.chunk({"text": "think", "thought": True}),
            self.chunk({"text": "he"}, {"text": "new"}),
            self.chunk({"text": " line"}),
            self.chunk({"functionCall": {"name": "f", "args": {}}}, finish="STOP"),
        ]
        found = imported(as_json({"exchanges": [{"request": request, "response": stream}]}))
        assert (found.source.format, brief(found.chat)) == (
            "gemini-contents",
            ["user: q", "assistant: he\nnew line (Let me think) +f{} =tool_calls"],
        )

    def test_contents_as_text_and_a_bad_record_among_contents(self):
        found = imported(as_json({"model": "gemini-x", "contents": "q"}))
        assert (found.source.format, brief(found.chat)) == ("gemini-contents", ["user: q"])
        content = {"role": "user", "parts": [{"text": "q"}]}
        found = imported(as_lines(content, content) + b"{\n" + as_lines({"role": "model", "parts": [{"text": "a"}]}))
        assert brief(found.chat) == ["user: q", "user: q", "assistant: a"]
        assert (found.codes, found.report.chats_lost) == (["invalid_json"], 0)


class TestBatches:
    def test_requests_and_results_of_messages(self):
        request = {"custom_id": "1", "params": {"model": "claude-x", "max_tokens": 9, "system": "S", "messages": [Q]}}
        found = imported(as_lines(request, request))
        assert (found.source.format, brief(found.chats[0])) == ("anthropic-messages", ["system: S", "user: q"])
        assert found.chats[0].external_id == "1"
        message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}
        result = {"custom_id": "1", "result": {"type": "succeeded", "message": message}}
        found = imported(as_lines(result, result))
        assert (found.source.format, brief(found.chats[0])) == ("anthropic-messages", ["assistant: a"])

    def test_requests_of_responses(self):
        request = {"custom_id": "1", "method": "POST", "url": "/v1/responses", "body": {"model": "m", "input": "q"}}
        found = imported(as_lines(request, request))
        assert (found.source.format, brief(found.chats[0])) == ("openai-responses", ["user: q"])


class TestNudges:
    def test_white_space_of_any_length_around_the_whole_text(self):
        messages = [
            Q,
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": " " * 5000 + "Please continue.\n"},
        ]
        assert imported(as_json(messages)).chat.details[2].nudge_code == "EXT-GEMINI-CONTINUE"


class TestNothingIsLostSilently:
    @pytest.mark.parametrize(
        "upload",
        [
            {"traj": [Q, 1], "reward": 0},
            {"simulations": [{"id": "s", "messages": [Q, 1]}]},
            {"trajectory": [], "history": [Q, 1]},
            {"history": [{"source": "user", "action": "message", "args": {"content": "q"}}, [1]]},
            {"messages": [{"role": "user", "parts": [{"type": "text", "text": "q"}]}, 1]},
            {"projectHash": "h", "messages": [{"type": "user", "content": "q"}, 1]},
            {"chunkedPrompt": {"chunks": [{"role": "user", "text": "q"}, 1]}},
            {"schema_version": "x", "steps": [{"source": "user", "message": "q"}, 1]},
            {
                "messages": [
                    {"versions": [{"role": "user", "type": "singleStep", "content": [{"type": "text", "text": "q"}]}]},
                    1,
                ]
            },
        ],
    )
    def test_what_is_no_record_is_counted(self, upload):
        found = imported(as_json(upload))
        assert brief(found.chat) == ["user: q"]
        assert found.report.skipped["no_record"].count == 1


class TestRecordedRequests:
    """Recordings of a program's requests hold more than those for answers."""

    UPLOAD = {"request": None, "response": {"id": "file-1", "object": "file"}}
    ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}

    @pytest.mark.parametrize(
        ("format", "pairs"),
        [
            (
                "openai-chat",
                [
                    {
                        "request": {"model": "m", "messages": [Q]},
                        "response": {"choices": [{"message": {"content": "a"}}]},
                    }
                ],
            ),
            (
                "anthropic-messages",
                [
                    {"request": {"model": "claude-x", "messages": [Q]}, "response": {"input_tokens": 5}},
                    {
                        "request": {"model": "claude-x", "messages": [Q]},
                        "response": {
                            "type": "message",
                            "role": "assistant",
                            "content": [{"type": "text", "text": "a"}],
                        },
                    },
                ],
            ),
            (
                "gemini-contents",
                [
                    {
                        "request": {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
                        "response": {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
                    }
                ],
            ),
            (
                "openai-responses",
                [
                    {
                        "request": {"model": "m", "input": "q", "background": True},
                        "response": {"id": "r", "object": "response", "status": "queued", "output": []},
                    },
                    {"request": None, "response": {"id": "r", "object": "response", "output": [ANSWER]}},
                ],
            ),
        ],
    )
    def test_other_requests_are_skipped_and_counted(self, format, pairs):
        found = imported(as_json({"exchanges": [self.UPLOAD, *pairs, self.UPLOAD]}))
        assert (found.source.format, brief(found.chat)) == (format, ["user: q", "assistant: a"])
        assert found.report.skipped["no_chat_request"].count == 2

    def test_chunks_as_the_output_of_a_step(self):
        chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "a"}}]}
        run = {"id": "1", "trace_id": "t", "run_type": "llm", "inputs": {"messages": [Q]}, "outputs": [chunk, chunk]}
        assert brief(imported(as_json(run)).chat) == ["user: q", "assistant: aa"]

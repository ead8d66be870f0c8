"""Sessions on disk, consumer exports and traces (import-formats.md section 4, 4, 5, 7, 8, 10, 14 to 16, 21, 23, 24)."""

import json

from chats.domain.header import EleanorFrameworkHeader
from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported


class TestClaudeCode:
    SESSION = {"sessionId": "s1", "cwd": "/w", "gitBranch": "main", "version": "2"}

    def record(self, uuid, parent, kind, content, **more):
        message = {"role": kind, "content": content, **more.pop("message", {})}
        return {**self.SESSION, "uuid": uuid, "parentUuid": parent, "type": kind, "message": message, **more}

    def test_answers_over_records_and_parallel_results_beside_the_path(self):
        def part(uuid, parent, block, stop=None):
            return self.record(
                uuid, parent, "assistant", [block], message={"id": "m1", "model": "c", "stop_reason": stop}
            )

        records = [
            {"type": "summary", "summary": "Title", "leafUuid": "z"},
            self.record("u1", None, "user", "fix it"),
            self.record("meta", "u1", "user", "hidden", isMeta=True),
            part("a1", "meta", {"type": "thinking", "thinking": "T", "signature": "x"}),
            part("a2", "a1", {"type": "text", "text": "on it"}),
            part("a3", "a2", {"type": "tool_use", "id": "t1", "name": "Read", "input": {"f": 1}}),
            self.record("r1", "a3", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "one"}]),
            part("a4", "a3", {"type": "tool_use", "id": "t2", "name": "Edit", "input": {}}, "tool_use"),
            self.record(
                "r2",
                "a4",
                "user",
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "is_error": True,
                        "content": "The user doesn't want to proceed with this tool use. STOP",
                    }
                ],
            ),
            self.record("h", "r2", "user", "Stop hook feedback:\nrun the tests", isMeta=True),
            self.record("i", "h", "user", [{"type": "text", "text": "[Request interrupted by user]"}]),
            self.record("c", "i", "user", "<command-name>/model</command-name>"),
        ]
        found = imported(as_lines(*records))
        assert found.source.format == "claude-code"
        assert brief(found.chat) == [
            "user: fix it",
            'assistant: on it (T) +Read{"f": 1} +Edit{} =tool_calls',
            "tool[t1 ok]: one",
            "tool[t2 not_run]: The user doesn't want to proceed with this tool use. STOP",
            "user[EXT-CLAUDE-STOPHOOK]: Stop hook feedback:\nrun the tests",
            "system: [Request interrupted by user]",
            "system: <command-name>/model</command-name>",
        ]
        assert (found.chat.title, found.chat.external_id) == ("Title", "s1")
        assert found.chat.metadata == {"cwd": "/w", "gitBranch": "main", "version": "2"}
        assert found.report.other_branches == 0

    def test_branches_sub_agents_and_compaction(self):
        task = [{"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look around"}}]
        records = [
            self.record("u1", None, "user", "first"),
            self.record("a1", "u1", "assistant", "old answer"),
            self.record("a2", "u1", "assistant", task),
            self.record("s1", None, "user", "look around", isSidechain=True),
            self.record("s2", "s1", "assistant", "seen", isSidechain=True),
            self.record("r", "a2", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]),
            {
                **self.SESSION,
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": "b",
                "parentUuid": None,
                "logicalParentUuid": "r",
            },
            self.record("k", "b", "user", "Summary of it all", isCompactSummary=True),
            self.record("a3", "k", "assistant", "going on"),
        ]
        found = imported(as_lines(*records))
        main, side = found.chats
        assert brief(main) == [
            "user: first",
            'assistant:  +Task{"prompt": "look around"}',
            "tool[t1 ok]: seen",
            "system: Summary of it all",
            "assistant: going on",
        ]
        assert brief(side) == ["user: look around", "assistant: seen"]
        assert side.metadata["tool_call_id"] == "t1"
        assert (found.report.other_branches, found.report.side_chats) == (1, {"sub-agent": 1})
        every = imported(as_lines(*records), all_branches=True)
        assert ["user: first", "assistant: old answer"] in [brief(c) for c in every.chats]

    def test_circles_and_missing_parents_end_the_walk(self):
        records = [
            self.record("a", "b", "user", "x"),
            self.record("b", "a", "assistant", "y"),
            self.record("c", "gone", "user", "z"),
        ]
        assert [brief(c) for c in imported(as_lines(*records)).chats] == [["user: z"]]


class TestCodex:
    META = {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": "s", "cwd": "/w", "git": {"branch": "b"}},
    }

    def item(self, **payload):
        return {"timestamp": "2026-01-01T00:00:01Z", "type": "response_item", "payload": payload}

    def said(self, role, text):
        return self.item(type="message", role=role, content=[{"type": "input_text", "text": text}])

    def test_a_rollout(self):
        records = [
            self.META,
            {"type": "turn_context", "payload": {"model": "gpt-x", "sandbox_policy": {"mode": "read-only"}}},
            self.said("developer", "rules"),
            self.said("user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
            self.said("user", "# Context from my IDE setup:\n\n## My request for Codex:\nfix the bug\nplease"),
            {"type": "event_msg", "payload": {"type": "agent_message", "message": "again"}},
            self.item(type="message", role="assistant", content=[{"type": "output_text", "text": "looking"}]),
            self.item(type="reasoning", summary=[{"type": "summary_text", "text": "T"}]),
            self.item(type="function_call", name="shell", call_id="c1", arguments='{"command": ["ls"]}'),
            self.item(type="custom_tool_call", name="apply_patch", call_id="c2", input="*** Begin Patch"),
            self.item(
                type="function_call_output", call_id="c1", output='{"output": "a.py", "metadata": {"exit_code": 2}}'
            ),
            self.item(type="custom_tool_call_output", call_id="c2", output="plain"),
            self.item(type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
            {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}},
        ]
        found = imported(as_lines(*records))
        assert found.source.format == "codex-rollout"
        assert brief(found.chat) == [
            "system: rules",
            "system: <environment_context>\n<cwd>/w</cwd>\n</environment_context>",
            "user: # Context from my IDE setup:\n\n## My request for Codex:\nfix the bug\nplease",
            'assistant: looking (T) +shell{"command": ["ls"]} +apply_patch!*** Begin Patch',
            "tool[c1 2]: a.py",
            "tool[c2]: plain",
            "assistant: done",
        ]
        chat = found.chat
        assert (chat.title, chat.external_id, chat.details[3].model) == ("fix the bug", "s", "gpt-x")
        assert chat.metadata["interrupted"] is True
        assert (chat.metadata["sandbox"], chat.metadata["git_branch"]) == ("read-only", "b")

    def test_a_compaction_starts_a_part(self):
        records = [
            self.META,
            self.said("user", "one"),
            {
                "type": "compacted",
                "payload": {
                    "message": "",
                    "replacement_history": [
                        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "short"}]}
                    ],
                },
            },
            self.said("assistant", "two"),
        ]
        found = imported(as_lines(*records))
        assert [brief(c) for c in found.chats] == [["user: one"], ["user: short", "assistant: two"]]
        assert [c.external_id for c in found.chats] == ["s", "s/1"]
        assert found.report.side_chats == {"earlier_part": 1}

    def test_older_bare_items(self):
        records = [
            {"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        ]
        found = imported(as_lines(*records))
        assert (found.source.format, brief(found.chat), found.chat.external_id) == (
            "codex-rollout",
            ["user: q", "assistant: a"],
            "old",
        )

    def test_the_output_of_exec(self):
        records = [
            {"type": "thread.started", "thread_id": "th"},
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"id": "i1", "type": "reasoning", "text": "T"}},
            {
                "type": "item.completed",
                "item": {
                    "id": "i2",
                    "type": "command_execution",
                    "command": "ls",
                    "aggregated_output": "x",
                    "exit_code": 1,
                    "status": "failed",
                },
            },
            {
                "type": "item.completed",
                "item": {
                    "id": "i3",
                    "type": "mcp_tool_call",
                    "server": "s",
                    "tool": "find",
                    "arguments": {"q": 1},
                    "result": {"content": [{"type": "text", "text": "hit"}]},
                    "status": "completed",
                },
            },
            {"type": "item.completed", "item": {"id": "i4", "type": "agent_message", "text": "bye"}},
            {"type": "turn.completed", "usage": {"input_tokens": 1}},
        ]
        assert brief(imported(as_lines(*records)).chat) == [
            'assistant:  (T) +command_execution{"command": "ls"}',
            "tool[i2 1]: x",
            'assistant:  +find{"q": 1}',
            "tool[i3 ok]: hit",
            "assistant: bye",
        ]


def otlp(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def span(own, parent=None, events=(), status=None, **attributes):
    values = []
    for key, value in attributes.items():
        typed = (
            {"intValue": str(value)}
            if isinstance(value, int)
            else {"stringValue": value if isinstance(value, str) else json.dumps(value)}
        )
        values.append({"key": key, "value": typed})
    return {
        "traceId": "t",
        "spanId": own,
        "parentSpanId": parent,
        "startTimeUnixNano": f"17672256{own.zfill(2)}000000000",
        "endTimeUnixNano": f"17672256{own.zfill(2)}500000000",
        "attributes": values,
        "events": list(events),
        "status": status or {},
    }


def said(role, text):
    return {"role": role, "parts": [{"type": "text", "content": text}]}


class TestOTel:
    def test_the_longest_span_of_each_agent_and_tool_outcomes(self):
        called = {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "T"},
                {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}},
            ],
        }
        result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "r"}]}
        spans = [
            span(
                "1",
                "9",
                **{
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": [said("user", "q")],
                    "gen_ai.output.messages": [called],
                },
            ),
            span("2", "9", status={"code": 2}, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c"}),
            span(
                "3",
                "9",
                **{
                    "gen_ai.operation.name": "chat",
                    "gen_ai.system_instructions": [{"type": "text", "content": "S"}],
                    "gen_ai.input.messages": [said("user", "q"), called, result],
                    "gen_ai.output.messages": [said("assistant", "end")],
                    "gen_ai.response.model": "m",
                    "gen_ai.usage.output_tokens": 7,
                },
            ),
            span(
                "4",
                "8",
                **{
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": [said("user", "judge")],
                    "gen_ai.output.messages": [said("assistant", "ok")],
                },
            ),
            span("8", "9", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "judge"}),
            span(
                "9",
                **{
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.id": "main",
                    "gen_ai.conversation.id": "conv",
                },
            ),
        ]
        found = imported(as_lines(*(otlp(s) for s in spans)))
        assert found.source.format == "otel-genai"
        main = next(c for c in found.chats if c.external_id == "conv")
        assert brief(main) == [
            "system: S",
            "user: q",
            'assistant:  (T) +f{"a": 1}',
            "tool[c error]: r",
            "assistant: end",
        ]
        assert (main.details[-1].model, main.details[-1].usage) == ("m", {"output_tokens": 7})
        assert [brief(c) for c in found.chats if c is not main] == [["user: judge", "assistant: ok"]]
        assert found.report.side_chats == {"sub-agent": 1}

    def test_events(self):
        events = [
            {"name": "gen_ai.system.message", "attributes": [{"key": "content", "value": {"stringValue": "S"}}]},
            {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "q"}}]},
            {
                "name": "gen_ai.choice",
                "attributes": [
                    {"key": "message", "value": {"stringValue": '{"content": "a"}'}},
                    {"key": "finish_reason", "value": {"stringValue": "stop"}},
                ],
            },
        ]
        assert brief(imported(as_json(otlp(span("1", events=events)))).chat) == [
            "system: S",
            "user: q",
            "assistant: a =stop",
        ]

    def test_logs_before_and_after_their_span(self):
        def log(name, **body):
            values = [{"key": k, "value": {"stringValue": v}} for k, v in body.items()]
            record = {"traceId": "t", "spanId": "1", "eventName": name, "body": {"kvlistValue": {"values": values}}}
            return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}

        logs = [log("gen_ai.user.message", content="q"), log("gen_ai.choice", content="a", finish_reason="stop")]
        for rows in ([*logs, otlp(span("1"))], [otlp(span("1")), *logs]):
            assert brief(imported(as_lines(*rows)).chat) == ["user: q", "assistant: a =stop"]

    def test_numbered_attributes_of_vendors(self):
        first = span(
            "1",
            **{
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "q",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.tool_calls.0.id": "c",
                "gen_ai.completion.0.tool_calls.0.name": "f",
                "gen_ai.completion.0.tool_calls.0.arguments": '{"a": 1}',
                "gen_ai.completion.0.finish_reason": "tool_calls",
            },
        )
        assert brief(imported(as_json(otlp(first))).chat) == ["user: q", 'assistant:  +f{"a": 1} =tool_calls']
        second = span(
            "1",
            **{
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "q",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
            },
        )
        assert brief(imported(as_json(otlp(second))).chat) == ["user: q", "assistant:  +f{}"]


class TestTraceProducts:
    def test_langfuse(self):
        def generation(own, given, out, start):
            return {
                "id": own,
                "traceId": "t",
                "type": "GENERATION",
                "input": given,
                "output": out,
                "startTime": f"2026-01-01T00:00:0{start}Z",
                "model": "m",
            }

        history = [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "r"},
        ]
        trace = {
            "trace": {"id": "t", "sessionId": "s", "name": "run"},
            "observations": [
                generation("2", json.dumps({"messages": history}), {"role": "assistant", "content": "b"}, 2),
                generation("1", history[:1], "a", 1),
                {"id": "3", "traceId": "t", "type": "SPAN", "input": "x"},
            ],
        }
        found = imported(as_json(trace))
        assert (found.source.format, found.chat.external_id) == ("langfuse", "s")
        assert brief(found.chat) == ["user: q", "assistant: a", "user: r", "assistant: b"]
        assert imported(as_json(trace["observations"])).source.format == "langfuse"

    def test_langsmith_merges_patches_and_lists_of_lists(self):
        constructor = {"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "q"}}
        generated = {
            "generations": [
                [
                    {
                        "text": "a",
                        "message": {
                            "lc": 1,
                            "type": "constructor",
                            "id": ["x", "AIMessage"],
                            "kwargs": {"content": "a"},
                        },
                    }
                ]
            ]
        }
        batches = [
            {
                "post": [
                    {
                        "id": "r",
                        "trace_id": "t",
                        "run_type": "llm",
                        "name": "n",
                        "inputs": {"messages": [[constructor]]},
                        "outputs": {},
                    }
                ]
            },
            {"patch": [{"id": "r", "outputs": generated, "end_time": "2026-01-01T00:00:00+00:00"}]},
        ]
        found = imported(as_lines(*batches))
        assert (found.source.format, brief(found.chat)) == ("langsmith", ["user: q", "assistant: a"])


class TestSillyTavern:
    HEADER = {"user_name": "Ann", "character_name": "Quill", "create_date": "2026-03-02@14h05m07s", "chat_metadata": {}}

    def test_lines(self):
        lines = [
            self.HEADER,
            {
                "name": "Quill",
                "is_user": False,
                "mes": "Welcome.",
                "swipes": ["Hello.", "Welcome!"],
                "swipe_id": 1,
                "send_date": "March 2, 2026 2:05pm",
            },
            {"name": "Ann", "is_user": True, "mes": "hi", "send_date": 1772460300},
            {"name": "Note", "is_system": True, "mes": "hidden"},
            {"name": "Voice", "mes": "it rains", "is_user": False, "extra": {"type": "narrator"}},
            {
                "name": "Quill",
                "is_user": False,
                "is_system": True,
                "mes": "",
                "extra": {"tool_invocations": [{"id": "i", "name": "dice", "parameters": '{"n": 6}', "result": "4"}]},
            },
            {
                "name": "Quill",
                "is_user": False,
                "mes": "ok",
                "send_date": "2026-03-02T14:06:00.000Z",
                "extra": {"reasoning": "T", "model": "m"},
            },
        ]
        found = imported(as_lines(*lines))
        assert found.source.format == "sillytavern"
        assert brief(found.chat) == [
            "assistant<Quill>: Welcome.",
            "user<Ann>: hi",
            "system<Note>: hidden",
            "system<Voice>: it rains",
            'assistant:  +dice{"n": 6}',
            "tool[i]: 4",
            "assistant<Quill>: ok (T)",
        ]
        times = [d.created_at for d in found.chat.details]
        assert times[0] is None
        assert times[1].isoformat() == "2026-03-02T14:05:00+00:00"
        assert found.chat.header == EleanorFrameworkHeader(source="ST", user="Ann", char="Quill", chat_type="single")
        assert found.report.other_branches == 1
        every = imported(as_lines(*lines), all_branches=True)
        assert brief(every.chats[0]) == ["assistant<Quill>: Hello."]

    def test_groups(self):
        lines = [
            {"chat_metadata": {}},
            {"name": "A", "is_user": False, "mes": "1", "original_avatar": "a.png"},
            {"name": "B", "is_user": False, "mes": "2", "original_avatar": "b.png"},
            {"name": "Ann", "is_user": True, "mes": "3"},
        ]
        for upload in (as_lines(*lines), as_json(lines[1:])):
            found = imported(upload)
            assert (found.source.format, found.chat.chat_type) == ("sillytavern", "group")
            assert found.chat.header == EleanorFrameworkHeader(source="ST", user="Ann", chat_type="group")


class TestConsumerExports:
    def node(self, own, parent, role, parts, kind="text", **more):
        content = {"content_type": kind, "parts": parts, **more.pop("content", {})}
        return {
            own: {
                "id": own,
                "parent": parent,
                "children": [],
                "message": {
                    "id": own,
                    "author": {"role": role},
                    "content": content,
                    "recipient": "all",
                    "metadata": {},
                    **more,
                },
            }
        }

    def test_chatgpt(self):
        nodes = {"root": {"id": "root", "parent": None, "message": None}}
        nodes |= self.node("e", "root", "system", [""])
        nodes |= self.node("h", "e", "user", ["secret"], metadata={"is_visually_hidden_from_conversation": True})
        nodes |= self.node("w", "h", "assistant", ["weightless"], weight=0.0)
        nodes |= self.node("c", "w", "user", [], "user_editable_context", content={"user_profile": "P"})
        nodes |= self.node(
            "u",
            "c",
            "user",
            ["q", {"content_type": "image_asset_pointer", "width": 2}],
            "multimodal_text",
            create_time="soon",
        )
        nodes |= self.node("x", "u", "assistant", ["old"])
        nodes |= self.node(
            "t", "u", "assistant", [], "thoughts", content={"thoughts": [{"summary": "T1", "content": "T2"}]}
        )
        nodes |= self.node("k", "t", "assistant", [], "code", content={"text": '{"a": 1}'}, recipient="python")
        nodes |= self.node("r", "k", "tool", [], "execution_output", content={"text": "1"})
        nodes |= self.node(
            "a", "r", "assistant", ["end"], metadata={"finish_details": {"type": "max_tokens"}, "model_slug": "g"}
        )
        export = [{"title": "T", "conversation_id": "c1", "mapping": nodes, "current_node": "a"}]
        found = imported(as_json(export))
        assert found.source.format == "chatgpt-export"
        assert brief(found.chat) == [
            "system: P",
            "user: q\n[image]",
            'assistant:  (T1\nT2) +python{"a": 1}',
            "tool[call-2-0]: 1",
            "assistant: end =length",
        ]
        assert (found.chat.title, found.chat.external_id, found.report.other_branches) == ("T", "c1", 1)
        assert found.chat.details[1].created_at is None

    def test_chatgpt_circles(self):
        nodes = self.node("a", "b", "user", ["x"]) | self.node("b", "a", "assistant", ["y"])
        found = imported(as_json([{"mapping": nodes, "current_node": "a"}]))
        assert brief(found.chat) == ["assistant: y", "user: x"]

    def test_claude_ai(self):
        def message(own, parent, sender, content, **more):
            return {
                "uuid": own,
                "parent_message_uuid": parent,
                "sender": sender,
                "text": "plain",
                "content": content,
                **more,
            }

        blocks = [
            {"type": "text", "text": "look"},
            {"type": "tool_use", "name": "f", "input": {}},
            {"type": "tool_result", "name": "f", "content": [{"type": "text", "text": "r"}], "is_error": False},
            {"type": "text", "text": "end"},
        ]
        files = [{"file_name": "a.txt", "file_size": 3, "extracted_content": "SECRET"}]
        conversation = {
            "uuid": "c",
            "name": "N",
            "current_leaf_message_uuid": "3",
            "chat_messages": [
                message("1", "0", "human", [{"type": "text", "text": "q"}], attachments=files),
                message("2", "1", "assistant", [{"type": "text", "text": "old"}]),
                message("3", "1", "assistant", blocks),
            ],
        }
        found = imported(as_json([conversation]))
        assert found.source.format == "claude-ai-export"
        assert brief(found.chat) == [
            "user: q\n[file: a.txt]",
            "assistant: look +f{}",
            "tool[block-1 ok]: r",
            "assistant: end",
        ]
        assert found.chat.details[0].parts == [{"placeholder": "file", "file_name": "a.txt", "file_size": 3}]
        assert (found.chat.title, found.report.other_branches) == ("N", 1)

    def test_open_webui(self):
        told = (
            '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n'
            "&gt; T1\n&gt; T2\n</details>\nlook\n"
            '<details type="tool_calls" done="true" id="c1" name="f" '
            'arguments="&quot;{\\&quot;a\\&quot;: 1}&quot;" result="&quot;r&quot;">\n'
            "<summary>x</summary>\n</details>\nend"
        )
        nodes = {
            "1": {"id": "1", "parentId": None, "role": "user", "content": "q", "timestamp": 1700000000},
            "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "old"},
            "3": {"id": "3", "parentId": "1", "role": "assistant", "content": told, "model": "m"},
        }
        export = [
            {
                "id": "x",
                "title": "T",
                "chat": {"history": {"messages": nodes, "currentId": "3"}, "messages": list(nodes.values())},
            }
        ]
        found = imported(as_json(export))
        assert found.source.format == "open-webui"
        assert brief(found.chat) == ["user: q", 'assistant: look (T1\nT2) +f{"a": 1}', "tool[c1]: r", "assistant: end"]
        assert (found.chat.external_id, found.report.other_branches) == ("x", 1)


class TestLocalFiles:
    def test_ollama_chunks(self):
        chunks = [
            {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False},
            {
                "model": "m",
                "message": {
                    "role": "assistant",
                    "content": "b",
                    "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}],
                },
                "done": False,
            },
            {
                "model": "m",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "length",
                "eval_count": 3,
            },
        ]
        request = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
        found = imported(as_json({"exchanges": [{"request": request, "response": chunks}]}))
        assert found.source.format == "ollama"
        assert brief(found.chat) == ["user: q", 'assistant: ab +f{"x": 1} =length']
        assert brief(imported(as_lines(*chunks)).chat) == ['assistant: ab +f{"x": 1} =length']

    def test_lm_studio(self):
        steps = [
            {"type": "contentBlock", "content": [{"type": "text", "text": "T"}], "style": {"type": "thinking"}},
            {
                "type": "contentBlock",
                "content": [{"type": "toolCallRequest", "toolCallRequestId": "1", "name": "f", "parameters": {"a": 1}}],
            },
            {"type": "contentBlock", "content": [{"type": "toolCallResult", "toolCallRequestId": "1", "content": "r"}]},
            {
                "type": "contentBlock",
                "content": [{"type": "text", "text": "end"}],
                "genInfo": {"stats": {"stopReason": "maxPredictedTokensReached"}},
            },
        ]
        chat = {
            "name": "N",
            "systemPrompt": "S",
            "messages": [
                {
                    "versions": [
                        {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": t}]}
                        for t in ("old", "q")
                    ],
                    "currentlySelected": 1,
                },
                {"versions": [{"type": "multiStep", "role": "assistant", "steps": steps}], "currentlySelected": 0},
            ],
        }
        found = imported(as_json(chat))
        assert found.source.format == "lmstudio"
        assert brief(found.chat) == [
            "system: S",
            "user: q",
            'assistant:  (T) +f{"a": 1}',
            "tool[1]: r",
            "assistant: end =length",
        ]
        assert found.report.other_branches == 1

    def test_gemini_cli(self):
        calls = [
            {
                "id": "1",
                "name": "f",
                "args": {"a": 1},
                "status": "success",
                "result": [{"functionResponse": {"id": "1", "name": "f", "response": {"output": "r"}}}],
            },
            {"id": "2", "name": "g", "args": {}, "status": "cancelled", "result": None},
            {"id": "3", "name": "h", "args": {}, "status": "error", "resultDisplay": "E"},
        ]
        session = {
            "sessionId": "s",
            "projectHash": "p",
            "messages": [
                {"id": "u", "type": "user", "content": "q"},
                {"id": "i", "type": "info", "content": "note"},
                {
                    "id": "g",
                    "type": "gemini",
                    "content": "a",
                    "thoughts": [{"subject": "S", "description": "D"}],
                    "toolCalls": calls,
                },
                {"id": "n", "type": "user", "content": " Please continue. \n"},
            ],
        }
        found = imported(as_json(session))
        assert found.source.format == "gemini-cli"
        assert brief(found.chat) == [
            "user: q",
            'assistant: a (S: D) +f{"a": 1} +g{} +h{}',
            "tool<f>[1 ok]: r",
            "tool<g>[2 not_run]: ",
            "tool<h>[3 error]: E",
            "user[EXT-GEMINI-CONTINUE]:  Please continue. \n",
        ]

    def test_ai_studio(self):
        chunks = [
            {"role": "user", "text": "q"},
            {"role": "user", "driveImage": {"id": "d"}},
            {"role": "model", "text": "T", "isThought": True},
            {"role": "model", "text": "a"},
            {"role": "model", "text": "b", "finishReason": "STOP"},
        ]
        prompt = {
            "runSettings": {"model": "m"},
            "systemInstruction": {"parts": [{"text": "S"}]},
            "chunkedPrompt": {"chunks": chunks},
        }
        found = imported(as_json(prompt))
        assert found.source.format == "aistudio"
        assert brief(found.chat) == ["system: S", "user: q", "user: [image]", "assistant: a\nb (T) =stop"]

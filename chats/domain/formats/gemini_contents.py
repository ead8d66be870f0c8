"""Gemini contents: requests, responses, exchanges (section 4, 12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import Exchanges, run_of_exchanges, set_aside, with_key
from chats.domain.formats.parts import Content, media_type, read_part
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.values import label, mapping, mappings, moment, sequence, shown, text

FORMAT: Final = "gemini-contents"
_PART_KEYS: Final = frozenset(
    {
        "text",
        "functionCall",
        "function_call",
        "functionResponse",
        "function_response",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
        "executableCode",
        "executable_code",
        "codeExecutionResult",
        "code_execution_result",
    }
)
_PASSED_OVER: Final = frozenset({"thoughtSignature", "thought_signature", "videoMetadata", "video_metadata"})
_TEXT_KEYS: Final = frozenset({"text", "thought", "thoughtSignature", "thought_signature"})
_SETTINGS: Final = ("model", "modelVersion")


def recognise(head: Head) -> float:
    if head.rows and all(is_content(r) for r in head.rows):
        return 1.0
    if head.rows and all(isinstance(r, list) and r and all(is_content(c) for c in r) for r in head.rows):
        return 1.0
    return share(head, _fits)


def is_content(value: Any) -> bool:
    """An object of role and parts, or a lone list of parts."""
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        return False
    if value.get("role") not in ("user", "model", "function", "system", "tool", None):
        return False
    parts = value["parts"]
    if not all(isinstance(p, dict) and "type" not in p and "content" not in p for p in parts):
        return False
    return not parts or any(p.keys() & _PART_KEYS for p in parts)


def _fits(row: dict[str, Any]) -> bool:
    if "exchanges" in row:
        pairs = with_key(row["exchanges"], "contents")
        return bool(pairs) and all(_is_request(mapping(p["request"])) for p in pairs)
    if isinstance(row.get("request"), dict):
        return _is_request(row["request"])
    return _is_request(row) or _is_response(row)


def _is_request(row: dict[str, Any]) -> bool:
    contents = row.get("contents")
    if isinstance(contents, str):
        return bool(contents) and ("model" in row or "config" in row)
    if isinstance(contents, dict):
        contents = [contents]
    return isinstance(contents, list) and bool(contents) and all(map(is_content, contents))


def _is_response(row: dict[str, Any]) -> bool:
    return isinstance(row.get("candidates"), list) and all("content" in c for c in mappings(row["candidates"]))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if rows and all(is_content(r) for r in rows):
        yield from read_whole(document, reading, lambda contents: completed({"contents": contents}, None, reading))
        return
    chain = Exchanges(reading, "contents", lambda request, response: completed(request, response, reading))
    yield from read_rows(document.rows(), reading, lambda row: _convert(row, reading, chain))
    yield from chain.finish()


def _convert(row: Any, reading: Reading, chain: Exchanges) -> Iterator[Item]:
    if isinstance(row, list):
        row = {"contents": row}
    if not isinstance(row, dict):
        raise ReadingProblem("wrong_type", expected="object", found=type(row).__name__)
    if "exchanges" in row:
        yield from run_of_exchanges(
            row["exchanges"], reading, "contents", lambda request, response: completed(request, response, reading)
        )
    elif isinstance(row.get("request"), dict):
        yield from chain.add(row["request"], row.get("response"))
    elif "contents" in row:
        yield from completed(row, row.get("response", row if "candidates" in row else None), reading)
    else:
        yield from completed({}, row, reading)


def completed(request: dict[str, Any], response: Any, reading: Reading) -> Iterator[Item]:
    """A request's contents with the first candidate appended; further candidates are alternatives."""
    answers = chunks_joined(response)
    reading.report.other_branches += max(0, len(answers) - 1)
    if response is not None and not answers:
        reading.report.note_unknown_field("response")
    count = len(answers) if reading.options.all_branches else 1
    for n in range(max(1, count)):
        draft = ChatDraft(reading, FORMAT)
        contents = ContentReader(draft)
        fill_request(contents, request)
        if n < len(answers):
            contents.add_candidate(answers[n])
        record = draft.record()
        if n > 0:
            record.identity_by_content = True
            set_aside(record, "branch", reading)
        yield record


def chunks_joined(response: Any) -> list[dict[str, Any]]:
    """The candidates of a response; a stream of responses is joined into one."""
    responses = mappings(response) if isinstance(response, list) else [mapping(response)]
    joined: dict[int, dict[str, Any]] = {}
    texts: dict[int, list[str]] = {}
    for chunk in responses:
        for position, candidate in enumerate(mappings(chunk.get("candidates"))):
            given = candidate.get("index")
            index = given if isinstance(given, int) else position
            known = joined.setdefault(index, {"parts": []})
            for n, part in enumerate(sequence(mapping(candidate.get("content")).get("parts"))):
                last = known["parts"][-1] if known["parts"] else None
                if last is not None and n == 0 and _goes_on(last, part):
                    texts.setdefault(id(last), [last["text"]]).append(part["text"])
                    continue
                known["parts"].append(dict(part) if isinstance(part, dict) else part)
            finish = text(candidate.get("finishReason")) or text(candidate.get("finish_reason"))
            known["finish"] = finish or known.get("finish")
            known["model"] = text(chunk.get("modelVersion")) or text(chunk.get("model_version")) or known.get("model")
            usage = mapping(chunk.get("usageMetadata")) or mapping(chunk.get("usage_metadata"))
            known["usage"] = usage or known.get("usage")
            known["created"] = chunk.get("createTime") or known.get("created")
    for candidate in joined.values():
        for part in candidate["parts"]:
            if id(part) in texts:
                part["text"] = "".join(texts[id(part)])
    return [joined[i] for i in sorted(joined)]


def _goes_on(last: Any, part: Any) -> bool:
    """Whether a part of the next chunk of a stream goes on with the text, or the thought, of the one before."""
    both = [mapping(last), mapping(part)]
    return all(isinstance(p.get("text"), str) and p.keys() <= _TEXT_KEYS for p in both) and (
        both[0].get("thought") == both[1].get("thought")
    )


def fill_request(contents: ContentReader, request: dict[str, Any]) -> None:
    draft = contents.draft
    config = mapping(request.get("config"))
    draft.tools = offered_tools(request.get("tools", config.get("tools")), draft.reading.cleaner)
    draft.external_id = label(request.get("id"))
    for key in _SETTINGS:
        if isinstance(request.get(key), str):
            draft.metadata[key] = request[key]
    for holder in (request, config):
        for key in ("systemInstruction", "system_instruction"):
            if holder.get(key):
                contents.add_system(holder[key])
    given = request.get("contents")
    for content in [given] if isinstance(given, (dict, str)) else sequence(given):
        contents.add(content)


class ContentReader:
    """Adds contents; results find their call by id, else by name in order."""

    def __init__(self, draft: ChatDraft) -> None:
        self.draft = draft
        self._open: dict[str, deque[str]] = {}

    def add_system(self, value: Any) -> None:
        self.draft.add_parts("system", mapping(value).get("parts", value))

    def add(self, value: Any) -> None:
        """Add one content: role and parts."""
        if isinstance(value, str):
            self.draft.add("user", value)
            return
        content = mapping(value)
        parts = sequence(content.get("parts"))
        role = label(content.get("role")) or "user"
        if role == "model" or any(mapping(p).keys() & {"functionCall", "function_call"} for p in parts):
            self._add_answer(parts)
        else:
            self._add_input(role, parts)

    def add_candidate(self, candidate: dict[str, Any]) -> None:
        self._add_answer(
            candidate["parts"],
            finish=candidate.get("finish"),
            model=candidate.get("model"),
            usage=candidate.get("usage"),
            created_at=moment(candidate.get("created")),
        )

    def _add_input(self, role: str, parts: list[Any]) -> None:
        rest, results, unknown = Content(), 0, list[str]()
        for part in parts:
            response = mapping(mapping(part).get("functionResponse", mapping(part).get("function_response")))
            if response:
                self._add_result(response)
                results += 1
            else:
                _read(rest, part, unknown)
        self._note(unknown)
        if rest.texts or not results:
            self.draft.add(role, rest)

    def _add_result(self, response: dict[str, Any]) -> None:
        name = label(response.get("name"))
        call_id = label(response.get("id"))
        waiting = self._open.get(name or "")
        if call_id is None and waiting:
            call_id = waiting.popleft()
        elif waiting and call_id is not None and call_id in waiting:
            waiting.remove(call_id)
        value = response.get("response")
        known = mapping(value)
        for key in ("output", "result", "content"):
            if known.keys() == {key}:
                value = known[key]
        failed = known.keys() == {"error"}
        if failed:
            value = known["error"]
        self.draft.add("tool", shown(value), name=name, tool_call_id=call_id, status="error" if failed else None)

    def _add_answer(self, parts: list[Any], **given: Any) -> None:
        """One answer; code that the server ran splits it, as other server tools do."""
        answer, calls, unknown = Content(), list[Call](), list[str]()
        finish = given.pop("finish", None)
        index = len(self.draft)
        added = False
        for part in parts:
            known = mapping(part)
            call = mapping(known.get("functionCall", known.get("function_call")))
            server = mapping(known.get("toolCall", known.get("tool_call")))
            answered = mapping(known.get("toolResponse", known.get("tool_response")))
            code = mapping(known.get("executableCode", known.get("executable_code")))
            result = mapping(known.get("codeExecutionResult", known.get("code_execution_result")))
            if call:
                calls.append(self._call(call, index, len(calls)))
            elif server:
                name = label(server.get("toolType")) or label(server.get("tool_type")) or "unknown"
                calls.append(Call(label(server.get("id")) or _made_up(index, len(calls)), name, server.get("args")))
            elif answered:
                self._flush(answer, calls, given)
                self.draft.add(
                    "tool",
                    shown(answered.get("response")),
                    name=label(answered.get("toolType")),
                    tool_call_id=label(answered.get("id")) or self._last_call(),
                    status="ok",
                )
                answer, calls, index, added = Content(), [], len(self.draft), True
            elif code:
                call_id = label(code.get("id")) or _made_up(index, len(calls))
                calls.append(Call(call_id, "code_execution", {k: v for k, v in code.items() if k != "id"}))
            elif result:
                self._flush(answer, calls, given)
                failed = result.get("outcome") not in (None, "OUTCOME_OK", "OK", 1)
                self.draft.add(
                    "tool",
                    shown(result.get("output")),
                    tool_call_id=label(result.get("id")) or self._last_call(),
                    status="error" if failed else "ok",
                )
                answer, calls, index, added = Content(), [], len(self.draft), True
            elif known.get("thought") is True:
                if told := text(known.get("text")):
                    answer.reasoning.append(told)
            else:
                _read(answer, part, unknown)
        self._note(unknown)
        if answer.texts or calls or answer.reasoning or not added:
            self._flush(answer, calls, given, finish)
        elif finish is not None:
            self.draft.set_finish(finish)

    def _flush(self, answer: Content, calls: list[Call], given: dict[str, Any], finish: str | None = None) -> None:
        self.draft.add("assistant", answer, calls=calls, finish=finish, **given)

    def _call(self, call: dict[str, Any], index: int, n: int) -> Call:
        name = label(call.get("name")) or "unknown"
        call_id = label(call.get("id")) or _made_up(index, n)
        self._open.setdefault(name, deque()).append(call_id)
        return Call(call_id, name, call.get("args", call.get("arguments")))

    def _last_call(self) -> str | None:
        for details in reversed(self.draft.details):
            if details.tool_calls:
                return details.tool_calls[-1].id
        return None

    def _note(self, unknown: list[str]) -> None:
        for name in unknown:
            self.draft.reading.report.note_unknown_field(f"parts[].{name}")


def _made_up(index: int, n: int) -> str:
    """The id of a call that has none: one a message, more with their number."""
    return f"g-{index}" if n == 0 else f"g-{index}-{n}"


def _read(content: Content, part: Any, unknown: list[str]) -> None:
    known = mapping(part)
    for key in ("inlineData", "inline_data", "fileData", "file_data"):
        if isinstance(known.get(key), dict):
            media = media_type(known)
            kind = "image" if media.startswith("image/") else "audio" if media.startswith("audio/") else "file"
            content.add_placeholder(kind, known[key])
            return
    if "text" in known or isinstance(part, str):
        read_part(content, {"type": "text", "text": known.get("text")} if known else part, unknown)
        return
    for key in known:
        if key not in _PASSED_OVER:
            unknown.append(key)

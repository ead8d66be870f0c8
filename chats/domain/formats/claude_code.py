"""Claude Code sessions: a tree of records, sub-agents beside it, answers spread over records (section 4, 4)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from chats.domain.formats.anthropic_messages import result_of
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.exchanges import set_aside
from chats.domain.formats.parts import Content, plain_text, read_content, read_part
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_whole, share
from chats.domain.formats.values import label, mapping, mappings, moment, sequence, text

FORMAT: Final = "claude-code"
_OTHER_TYPES: Final = frozenset({"summary", "system", "file-history-snapshot", "queue-operation", "progress"})
_REFUSALS: Final = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_COMMAND_TAGS: Final = (
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
)
_INTERRUPTIONS: Final = frozenset({"[Request interrupted by user]", "[Request interrupted by user for tool use]"})
_STOP_HOOK: Final = "Stop hook feedback"
_SMALL_RESULT: Final = 500
_RESULTS_KEPT: Final = 100
_OUTSIDE: Final = 1000  # so many records of others may stand between two of one chat


def recognise(head: Head) -> float:
    """Records with a session, of which at least one is a message of a person or the model."""
    if head.shape not in ("lines", "object", "values", "array"):
        return 0.0
    messages = any(isinstance(r, dict) and _is_message(r) and ("uuid" in r or "sessionId" in r) for r in head.rows)
    others = all(text(mapping(r).get("type")) in _OTHER_TYPES for r in head.rows)
    if not messages and not (others and any("sessionId" in r or "leafUuid" in r for r in head.rows)):
        return 0.0
    return share(head, lambda r: "sessionId" in r or "uuid" in r or text(r.get("type")) in _OTHER_TYPES)


def _is_message(record: dict[str, Any]) -> bool:
    return record.get("type") in ("user", "assistant") and "message" in record


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_whole(document, reading, lambda records: _session(records, reading))


@dataclass(slots=True)
class _Tree:
    """The messages of one file in file order, with their links."""

    records: list[dict[str, Any]] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    parent: list[int | None] = field(default_factory=list)


def _session(records: list[Any], reading: Reading) -> Iterator[Item]:
    kept = _messages_and_links(records, reading)
    tree = _linked(kept)
    side = [i for i, r in enumerate(tree.records) if r.get("isSidechain") is True]
    only_side = len(side) == sum(_counts(r) for r in tree.records)
    beside = frozenset(side)
    main = list(range(len(tree.records))) if only_side else [i for i in range(len(tree.records)) if i not in beside]
    title = _title(records)
    drafts: list[tuple[ChatDraft, str]] = []
    ends = _ends(tree, main)
    if not ends:
        raise ReadingProblem("no_messages")
    reading.report.other_branches += len(ends) - 1
    for end in ends if reading.options.all_branches else ends[-1:]:
        chat = _chat(tree, _whole_path(tree, end, main), reading, title)
        if only_side and chat.external_id is not None and (agent := label(chat.metadata.get("agentId"))) is not None:
            # A sub-agent's file of its own names the session that it belongs to.
            chat.metadata["parent_session"] = chat.external_id
            chat.external_id = f"{chat.external_id}/{agent}"
        drafts.append((chat, "" if end == ends[-1] else "branch"))
    calls = {c.id: c for d, _ in drafts for known in d.details for c in known.tool_calls}
    if not only_side:
        for group in _side_groups(tree, side):
            if side_ends := _ends(tree, group):
                path = _whole_path(tree, side_ends[-1], group)
                drafts.append((_side_chat(tree, path, reading, calls), "sub-agent"))
    for draft, relation in drafts:
        if not len(draft):
            if not relation:
                raise ReadingProblem("no_messages")
            continue
        record = draft.record()
        if relation == "branch":
            record.external_id = None
        yield set_aside(record, relation, reading) if relation else record


def _messages_and_links(records: list[Any], reading: Reading) -> list[dict[str, Any]]:
    """Messages, and the records between them that carry only a link of the tree."""
    kept: list[dict[str, Any]] = []
    for record in records:
        if not isinstance(record, dict):
            reading.report.note_skipped("no_record", reading.place)
            continue
        if not _counts(record):
            reason = "meta" if record.get("isMeta") else label(record.get("type")) or "unknown"
            reading.report.note_skipped(f"record:{reason}"[:60], reading.place)
            if label(record.get("uuid")) is None:
                continue
        kept.append(record)
    return kept


def _counts(record: dict[str, Any]) -> bool:
    """Whether a record is a message that is taken in."""
    if record.get("type") not in ("user", "assistant") or not isinstance(record.get("message"), dict):
        return False
    if record.get("isMeta") is True:
        return plain_text(record["message"].get("content")).lstrip().startswith(_STOP_HOOK)
    return True


def _linked(records: list[dict[str, Any]]) -> _Tree:
    """Resolve the links; a file without any is one line of records."""
    tree = _Tree(records)
    for i, record in enumerate(records):
        if (uuid := label(record.get("uuid"))) is not None:
            tree.at.setdefault(uuid, i)
    for i, record in enumerate(records):
        found = None
        for key in ("parentUuid", "logicalParentUuid"):
            linked = tree.at.get(label(record.get(key)) or "")
            if found is None and linked is not None and linked != i:
                found = linked
        if found is None and i > 0 and record.get("isCompactSummary") is True:
            found = i - 1
        tree.parent.append(found)
    for chain in (True, False):
        members = [i for i, r in enumerate(records) if (r.get("isSidechain") is True) is chain]
        if all(tree.parent[i] is None for i in members):
            for earlier, later in pairwise(members):
                tree.parent[later] = earlier
    return tree


def _ends(tree: _Tree, members: list[int]) -> list[int]:
    """The leaf of each branch, the chosen one (the last) at the end.

    Results and parts of an answer that hang beside a branch, as parallel calls leave them, belong to it. Takes time in
    proportion to the members: of each further branch only what is new in it is walked.
    """
    inside = set(members)
    has_child = {p for i in members if (p := tree.parent[i]) is not None}
    telling = _with_message_above(tree)
    leaves = [i for i in members if i not in has_child and telling[i]]
    if not leaves:
        return []
    ends: list[int] = []
    seen: set[int] = set()
    answers: set[str] = set()
    unanswered: set[str] = set()
    for leaf in reversed(leaves):
        results = _result_ids(tree.records[leaf])
        hangs_beside = results and results <= unanswered and _only_results(tree.records[leaf])
        if leaf in seen or _answer_id(tree.records[leaf]) in answers or hangs_beside:
            continue
        way = _path(tree, leaf, inside, seen) if ends else _whole_path(tree, leaf, members)
        ends.append(leaf)
        seen.update(way)
        answers.update(a for i in way if (a := _answer_id(tree.records[i])) is not None)
        unanswered.update(c for i in way for c in _call_ids(tree.records[i]))
        unanswered.difference_update(c for i in way for c in _result_ids(tree.records[i]))
    return ends[::-1]


def _with_message_above(tree: _Tree) -> list[bool]:
    """For each record whether it or one above it is a message that is taken in."""
    known: list[bool | None] = [None] * len(tree.records)
    for start in range(len(tree.records)):
        way: list[int] = []
        step: int | None = start
        while step is not None and known[step] is None:
            known[step] = False  # while on the way: a circle ends there
            way.append(step)
            step = tree.parent[step]
        found = step is not None and known[step] is True
        for i in reversed(way):
            found = found or _counts(tree.records[i])
            known[i] = found
    return [k is True for k in known]


def _whole_path(tree: _Tree, leaf: int, members: list[int]) -> list[int]:
    """The branch of a leaf with what hangs beside it."""
    return _with_siblings(tree, _path(tree, leaf, set(members)), members)


def _path(tree: _Tree, leaf: int, inside: set[int], until: set[int] | None = None) -> list[int]:
    """The members on the way from the root, or from a record in `until`, to a leaf."""
    path: list[int] = []
    seen: set[int] = set()
    step: int | None = leaf
    outside = 0
    while step is not None and step not in seen and (until is None or step not in until) and outside < _OUTSIDE:
        seen.add(step)
        if step in inside:
            path.append(step)
            outside = 0
        else:
            outside += 1
        step = tree.parent[step]
    return path[::-1]


def _with_siblings(tree: _Tree, path: list[int], members: list[int]) -> list[int]:
    on_path = set(path)
    answers = {a for i in path if (a := _answer_id(tree.records[i])) is not None}
    added = {i for i in members if i not in on_path and _answer_id(tree.records[i]) in answers}
    calls = {c for i in on_path | added for c in _call_ids(tree.records[i])}
    answered = {c for i in path for c in _result_ids(tree.records[i])}
    for i in members:
        ids = _result_ids(tree.records[i])
        if i not in on_path and ids and ids <= calls - answered and _only_results(tree.records[i]):
            added.add(i)
            answered |= ids
    return sorted(on_path | added) if added else path


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    return mappings(mapping(record.get("message")).get("content"))


def _answer_id(record: dict[str, Any]) -> str | None:
    return label(mapping(record.get("message")).get("id")) if record.get("type") == "assistant" else None


def _call_ids(record: dict[str, Any]) -> set[str]:
    return {i for b in _blocks(record) if b.get("type") == "tool_use" and (i := label(b.get("id")))}


def _result_ids(record: dict[str, Any]) -> set[str]:
    return {i for b in _blocks(record) if b.get("type") == "tool_result" and (i := label(b.get("tool_use_id")))}


def _only_results(record: dict[str, Any]) -> bool:
    return all(b.get("type") == "tool_result" for b in _blocks(record))


def _side_groups(tree: _Tree, side: list[int]) -> list[list[int]]:
    """The records of each sub-agent: one tree, or one agent id."""
    groups: dict[Any, list[int]] = defaultdict(list)
    root: dict[int, int] = {}
    inside = set(side)
    for i in side:
        parent = tree.parent[i]
        root[i] = root.get(parent, parent) if parent is not None and parent in inside else i
        agent = label(tree.records[i].get("agentId"))
        groups[agent if agent is not None else root[i]].append(i)
    return list(groups.values())


def _chat(tree: _Tree, path: list[int], reading: Reading, title: str | None) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    draft.title = title
    answers: dict[str, int] = {}
    for i in path:
        record = tree.records[i]
        if not _counts(record):
            continue
        session = label(record.get("sessionId"))
        draft.external_id = session or draft.external_id
        for key in ("cwd", "gitBranch", "version", "slug", "agentId"):
            if (value := label(record.get(key))) is not None:
                draft.metadata[key] = value
        if record["type"] == "assistant":
            _add_answer(draft, record, answers)
        else:
            _add_user(draft, record)
    return draft


def _side_chat(tree: _Tree, path: list[int], reading: Reading, calls: dict[str, Any]) -> ChatDraft:
    draft = _chat(tree, path, reading, None)
    session, agent = draft.external_id, draft.metadata.get("agentId")
    draft.metadata["parent_session"] = session
    draft.external_id = f"{session}/{agent or tree.records[path[0]].get('uuid')}" if session else None
    first = next((m.content.strip() for m in draft.messages if m.role == "user"), None)
    for call_id, call in calls.items():
        prompt = text(mapping(call.arguments).get("prompt"))
        if first and prompt is not None and prompt.strip() == first:
            draft.metadata["tool_call_id"] = call_id
            break
    return draft


def _add_answer(draft: ChatDraft, record: dict[str, Any], answers: dict[str, int]) -> None:
    message = record["message"]
    content = Content()
    calls: list[Call] = []
    unknown: list[str] = []
    results: list[dict[str, Any]] = []
    given = message.get("content")
    for block in given if isinstance(given, list) else [given]:
        known = mapping(block)
        kind = known.get("type")
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            calls.append(Call(label(known.get("id")), label(known.get("name")) or "unknown", known.get("input")))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            results.append(known)
        elif kind != "redacted_thinking":
            read_part(content, block, unknown)
    for name in unknown:
        draft.reading.report.note_unknown_field(f"message.{name}")
    answer = label(message.get("id"))
    index = answers.get(answer) if answer is not None else None
    finish = text(message.get("stop_reason"))
    usage = mapping(message.get("usage")) or None
    if index is not None:
        draft.extend_answer(index, content.text, calls, reasoning=content.thinking, finish=finish, usage=usage)
    else:
        index = draft.add(
            "assistant",
            content,
            calls=calls,
            finish=finish,
            model=text(message.get("model")),
            usage=usage,
            created_at=moment(record.get("timestamp")),
            ref=label(record.get("uuid")),
        )
        if answer is not None:
            answers[answer] = index
    for block in results:
        _add_result(draft, block, record)


def _add_user(draft: ChatDraft, record: dict[str, Any]) -> None:
    content = record["message"].get("content")
    rest: list[Any] = []
    results = 0
    for block in content if isinstance(content, list) else []:
        if mapping(block).get("type") == "tool_result":
            _add_result(draft, block, record)
            results += 1
        else:
            rest.append(block)
    left = read_content(rest if isinstance(content, list) else content)
    if results and not left.texts:
        return
    role = "user"
    told = left.text.strip()
    if record.get("isCompactSummary") is True or told.startswith(_COMMAND_TAGS) or told in _INTERRUPTIONS:
        role = "system"
    draft.add(role, left, created_at=moment(record.get("timestamp")), ref=label(record.get("uuid")))


def _add_result(draft: ChatDraft, block: dict[str, Any], record: dict[str, Any]) -> None:
    content, status, exit_code = result_of(block)
    told = content.text if isinstance(content, Content) else content
    if told.lstrip().startswith(_REFUSALS):
        status = "not_run"
    call_id = label(block.get("tool_use_id"))
    draft.add(
        "tool",
        content,
        tool_call_id=call_id,
        status=status,
        exit_code=exit_code,
        created_at=moment(record.get("timestamp")),
        ref=label(record.get("uuid")),
    )
    extra = record.get("toolUseResult")
    kept = draft.metadata.setdefault("tool_use_results", {}) if isinstance(extra, dict) and call_id else {}
    if isinstance(extra, dict) and len(kept) < _RESULTS_KEPT and len(json.dumps(extra)) <= _SMALL_RESULT:
        kept[call_id] = extra
    if draft.metadata.get("tool_use_results") == {}:
        del draft.metadata["tool_use_results"]


def _title(records: list[Any]) -> str | None:
    """The last summary or title that the file holds."""
    for record in reversed(sequence(records)):
        known = mapping(record)
        for kind, key in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
            if known.get("type") == kind and (found := text(known.get(key))):
                return found
    return None

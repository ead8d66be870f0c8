"""The original's wording, read from recorded results: sentences are data there, and settings here.

The blocks that introduce functions are in `fixed-texts.json`; the other sentences stand in recorded prompts. Each is
turned into a text with the slots that `chats.domain.wording` fills.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from chats.domain import wording as words
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrappers import WRAPPERS, ChatWrapper, build_wrapper

BASE = "EmptyChatWrapper"


class ReferenceWording:
    """`load` reads a file of the folder or gives None; `options` are those of each variant."""

    def __init__(self, load: Callable[[str], Any], options: dict[tuple[str, str], dict[str, Any]]) -> None:
        self._load = load
        self._options = options
        rows = (load("fixed-texts.json") or {"cases": []})["cases"]
        self._rows = [row for row in rows if "output" in row]
        self._sentences: dict[str, dict[str, LlamaText]] = {}

    def of(self, wrapper_id: str, options: dict[str, Any]) -> dict[str, LlamaText] | None:
        """The wording of a wrapper with these options; None if the options are no good."""
        entry = WRAPPERS[wrapper_id]
        try:
            own = entry.wrapper_class.default_wording(entry.options(options))
        except ValueError:
            return None
        except (KeyError, AttributeError):
            return None
        found = dict(self._sentences_of(wrapper_id))
        row = self._row(wrapper_id, own)
        if row is not None:
            found |= _from_row(row)
        initial = [one["output"]["initialHistory"] for one in self._rows if one["wrapper"] == BASE]
        if initial and initial[0]:
            found[words.SYSTEM_PROMPT] = LlamaText.from_json(initial[0][0]["text"])
        return {name: text for name, text in found.items() if name in own}

    def _row(self, wrapper_id: str, own: dict[str, LlamaText]) -> Any:
        """The recorded row for the same block: variants that share ours share the original's."""
        for wanted in (wrapper_id, BASE):
            for row in self._rows:
                if row["wrapper"] != wanted:
                    continue
                entry = WRAPPERS[wanted]
                theirs = entry.wrapper_class.default_wording(entry.options(row["options"]))
                if theirs.get(words.FUNCTIONS) == own.get(words.FUNCTIONS):
                    return row
        return None

    def _sentences_of(self, wrapper_id: str) -> dict[str, LlamaText]:
        if wrapper_id not in self._sentences:
            finder = _FINDERS.get(wrapper_id)
            self._sentences[wrapper_id] = dict(finder(self)) if finder is not None else {}
        return self._sentences[wrapper_id]

    def cases(self, wrapper_id: str) -> Iterator[tuple[dict[str, Any], Any, list[Piece]]]:
        """Options, case and pieces of every recorded prompt of a wrapper."""
        data = self._load(f"render/{wrapper_id}.json") or {"cases": []}
        for case in data["cases"]:
            if "output" in case:
                pieces = list(LlamaText.from_json(case["output"]["contextText"]).values)
                yield self._options[wrapper_id, case["variant"]], case, pieces

    def starts_with_system(self, case: Any) -> bool:
        history = self._load("histories.json")[case["history"]]["history"]
        return bool(history) and history[0]["type"] == "system"

    def settings_rows(self, wrapper_id: str) -> Iterator[Any]:
        for row in (self._load("settings.json") or {"variants": []})["variants"]:
            if row["wrapper"] == wrapper_id and "properties" in row:
                yield row


def _from_row(row: Any) -> dict[str, LlamaText]:
    wrapper = build_wrapper(row["wrapper"], row["options"])
    output = row["output"]
    text = LlamaText.from_json(output["functionsText"])
    for slot, content in _slots(wrapper, row):
        text = _with_slot(text, LlamaText(*content), slot)
    found = {words.FUNCTIONS: text}
    if row["wrapper"] == "FunctionaryChatWrapper":
        found[words.FUNCTIONS_NOTE] = LlamaText.from_json(output["historyWithFunctions"][1]["text"])
    return found


def _slots(wrapper: ChatWrapper, row: Any) -> Iterator[tuple[str, Any]]:
    functions = row["functions"]
    if row["wrapper"] == "MuseChatWrapper":
        name, definition = next(iter(functions.items()))
        params, description = definition["params"], definition["description"]
        yield (
            words.SLOT_FUNCTIONS,
            [f'{{"name": "{name}", "description": "{description}", "parameters": {{"const": "{params["const"]}"}}}}'],
        )
        yield words.SLOT_NAMESPACES, [f'{{"name": "{name}", "description": ""}}']
        return
    yield words.SLOT_FUNCTIONS, wrapper.functions_documentation(functions, True)
    if words.SLOT_EXAMPLE_CALL in str(wrapper.wording.get(words.FUNCTIONS, "")):
        yield words.SLOT_EXAMPLE_CALL, wrapper.example_call()


def _with_slot(text: LlamaText, content: LlamaText, slot: str) -> LlamaText:
    """The text with the first occurrence of `content` replaced by a slot."""
    sought = content.values
    for index in range(len(text.values) - len(sought) + 1):
        there = text.values[index : index + len(sought)]
        if len(sought) == 1:
            if isinstance(there[0], str) and str(sought[0]) in there[0]:
                replaced = there[0].replace(str(sought[0]), slot, 1)
                return LlamaText(list(text.values[:index]), replaced, list(text.values[index + 1 :]))
            continue
        first, last = str(there[0]), str(there[-1])
        if there[1:-1] == sought[1:-1] and first.endswith(str(sought[0])) and last.startswith(str(sought[-1])):
            if not isinstance(there[-1], str):
                last = "" if there[-1] == sought[-1] else last
            else:
                last = last[len(str(sought[-1])) :]
            before = first[: len(first) - len(str(sought[0]))]
            return LlamaText(list(text.values[:index]), before, slot, last, list(text.values[index + len(sought) :]))
    return text


def _line_after(text: str, start: str, ends: tuple[str, ...]) -> str | None:
    _, found, rest = text.partition(start)
    if not found:
        return None
    return min([rest.partition(end)[0] for end in ends], key=len)


def _llama_3_1(reference: ReferenceWording) -> Iterator[tuple[str, LlamaText]]:
    for _, _, pieces in reference.cases("Llama3_1ChatWrapper"):
        line = _line_after("".join(map(str, pieces)), "# Tool Instructions\n", ("\n",))
        if line is not None:
            yield words.TOOL_INSTRUCTIONS, LlamaText(line)
            return


def _harmony(reference: ReferenceWording) -> Iterator[tuple[str, LlamaText]]:
    for row in reference.settings_rows("HarmonyChatWrapper"):
        if "modelIdentity" not in row["options"]:
            yield words.MODEL_IDENTITY, LlamaText(row["properties"]["modelIdentity"])
            break
    start = "Channel must be included for every message.\n"
    for _, _, pieces in reference.cases("HarmonyChatWrapper"):
        line = _line_after("".join(map(str, pieces)), start, ("<|end|>", "\n"))
        if line is not None:
            yield words.COMMENTARY_CHANNEL, LlamaText(line)
            return


def _seed(reference: ReferenceWording) -> Iterator[tuple[str, LlamaText]]:
    found: dict[str, LlamaText] = {}
    for options, case, pieces in reference.cases("SeedChatWrapper"):
        budget = options.get("thinkingBudget")
        for before, piece in pairwise(pieces):
            if str(before).endswith("<seed:cot_budget_reflect>"):
                found[words.NO_THINKING_THOUGHT] = LlamaText(str(piece))
        if reference.starts_with_system(case):
            continue
        if "functions" in case:
            sentence, is_there, _ = str(pieces[1]).partition("\nTool List:")
            if is_there:
                found[words.DEFAULT_SYSTEM] = LlamaText(sentence)
        elif budget == 0:
            found[words.NO_THINKING] = LlamaText(str(pieces[1]))
        elif budget is not None and budget > 0 and str(budget) != "1024":
            text = re.sub(rf"\b{budget}\b", words.SLOT_BUDGET, str(pieces[1]))
            found[words.THINKING_BUDGET] = LlamaText(re.sub(r"\b1024\b", words.SLOT_INTERVAL, text))
    yield from found.items()


def _muse(reference: ReferenceWording) -> Iterator[tuple[str, LlamaText]]:
    ends = ("\nKnowledge cutoff:", "\nCurrent date:", "\nReasoning strength:")
    for _, case, pieces in reference.cases("MuseChatWrapper"):
        if not reference.starts_with_system(case):
            sentence = _line_after("".join(map(str, pieces)), "<|start|>system<|message|>", ends)
            yield words.DEFAULT_SYSTEM, LlamaText(sentence or "")
            return


_FINDERS: dict[str, Callable[[ReferenceWording], Iterator[tuple[str, LlamaText]]]] = {
    "Llama3_1ChatWrapper": _llama_3_1,
    "HarmonyChatWrapper": _harmony,
    "SeedChatWrapper": _seed,
    "MuseChatWrapper": _muse,
}

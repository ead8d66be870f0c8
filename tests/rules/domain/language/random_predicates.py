"""Seeded random predicates over all operators and functions, and contexts to try them on."""

from __future__ import annotations

import random
from typing import Any, get_args

from rules.domain.context import FinishReason, TurnContext
from rules.domain.language.environment import FIELDS, PHRASE_FUNCTIONS

CODES = ("EAI-GOV-03", "EAI-GOV-07", "USER-01", "é")
WORDS = ("ok", "vas-y", "next steps", "il reste", "I will", "étapes", "É", "😀", " ", "\n", "a", "?", "cannot ", "```")
PATTERNS = (
    "(?i)(unable to|cannot|je ne peux pas|impossible de) ",
    r"^\s*ok\b",
    r"(?:^|[^\pL\pN_])étapes",
    r"(\w+\s?)+:$",
    r"(?i)é|😀$",
    "a.b",
    r"(a+)+$",
    r"\x41|\.",
    "",
)
TEXTS = (
    "",
    "ok",
    "Vas-y.",
    "I will now run the test suite.",
    "Next steps: add a test.\n\nI cannot go on. Shall I?",
    "Il reste à traiter l'écran. Prochaines étapes : livrer.",
    "😀 a\nb É",
    "aaaa",
    "A.",
    "Je vais lancer la suite.\n\nDites-moi.",
    "e\u0301tapes étapes",
)


class Predicates:
    """Draws sources of well-typed predicates; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, depth: int = 4) -> str:
        """A predicate short enough for all limits; deep ones are drawn again."""
        while len(source := self.bool(depth)) > 700:
            pass
        return source

    def bool(self, depth: int) -> str:
        pick = self.random.choice
        if depth <= 0 or self.random.random() < 0.2:
            return pick((self.flag, self.phrase, self.text_method, self.counter))()
        match self.random.randrange(10):
            case 0 | 1:
                return self.joined("&&", depth)
            case 2 | 3:
                return self.joined("||", depth)
            case 4:
                return "!" + self.enclosed(self.bool(depth - 1))
            case 5:
                return f"{self.int(depth - 1)} {pick(('<', '<=', '>', '>=', '==', '!='))} {self.int(depth - 1)}"
            case 6:
                return self.equality(depth)
            case 7:
                return self.membership(depth)
            case 8:
                parts = [self.enclosed(self.bool(depth - 1)) for _ in range(3)]
                return f"{parts[0]} ? {parts[1]} : {parts[2]}"
            case _:
                return self.enclosed(self.bool(depth - 1))

    def joined(self, operator: str, depth: int) -> str:
        count = self.random.randint(2, 4)
        return f" {operator} ".join(self.enclosed(self.bool(depth - 1)) for _ in range(count))

    def enclosed(self, source: str) -> str:
        return source if source.isidentifier() else f"({source})"

    def flag(self) -> str:
        names = [name for name, type_ in FIELDS.items() if type_ == "bool"]
        return self.random.choice([*(f"ctx.{name}" for name in names), "true", "false"])

    def phrase(self) -> str:
        argument = self.random.choice((self.text(), "ctx.finish_reason"))
        return f"{self.random.choice(PHRASE_FUNCTIONS)}({argument})"

    def text(self) -> str:
        field = self.random.choice(("ctx.final_text", "ctx.user_text", "ctx . final_text"))
        return f"last_paragraph({field})" if self.random.random() < 0.3 else field

    def text_method(self) -> str:
        name = self.random.choice(("contains", "startsWith", "endsWith", "matches"))
        constant = self.random.choice(PATTERNS if name == "matches" else WORDS)
        return f"{self.text()}.{name}({self.literal(constant)})"

    def counter(self) -> str:
        code = self.literal(self.random.choice(CODES))
        return f"{code} in ctx.nudges" if self.random.random() < 0.3 else f"nudged({code}) > {self.random.randrange(3)}"

    def int(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.4:
            return self.small_int()
        left, right = self.int(depth - 1), self.int(depth - 1)
        match self.random.randrange(4):
            case 0:
                return f"({left} + ({right}))"
            case 1:
                return f"({left} - ({right}))"
            case 2:
                return f"-({left})"
            case _:
                return f"(({self.bool(depth - 1)}) ? {left} : {right})"

    def small_int(self) -> str:
        names = [name for name, type_ in FIELDS.items() if type_ == "int"]
        number = self.random.randrange(-3, 9)
        return self.random.choice(
            (
                f"ctx.{self.random.choice(names)}",
                str(number),
                hex(abs(number)),
                f"nudged({self.literal(self.random.choice(CODES))})",
                f"size({self.text()})",
                f"{self.text()}.size()",
            )
        )

    def equality(self, depth: int) -> str:
        operator = self.random.choice(("==", "!="))
        match self.random.randrange(4):
            case 0:
                return f"({self.bool(depth - 1)}) {operator} ({self.bool(depth - 1)})"
            case 1:
                return f"ctx.finish_reason {operator} {self.random.choice(('null', self.reason()))}"
            case 2:
                return f"{self.literal(self.random.choice(TEXTS))} {operator} {self.text()}"
            case _:
                return f"{self.text()} {operator} {self.literal(self.random.choice(TEXTS))}"

    def reason(self) -> str:
        return self.literal(self.random.choice([*get_args(FinishReason), "other"]))

    def membership(self, depth: int) -> str:
        if self.random.random() < 0.5:
            values = ", ".join(str(self.random.randrange(-2, 9)) for _ in range(self.random.randint(1, 4)))
            return f"{self.int(depth - 1)} in [{values}]"
        item = self.random.choice((self.text(), "ctx.finish_reason"))
        pool = [self.reason() if "finish" in item else self.literal(self.random.choice(TEXTS)) for _ in range(3)]
        return f"{item} in [{', '.join(pool)}]"

    def literal(self, value: str) -> str:
        """The value in one of the ways in which a CEL string can be written."""
        quote = self.random.choice("\"'")
        if self.random.random() < 0.3 and quote not in value and "\n" not in value:
            return f"r{quote}{value}{quote}"
        return quote + "".join(self.character(char, quote) for char in value) + quote

    def character(self, char: str, quote: str) -> str:
        if char in ("\\", quote):
            return "\\" + char
        if char == "\n":
            return "\\n"
        code = ord(char)
        if self.random.random() < 0.9 or char in "\\'\"":
            return char
        forms = [f"\\U{code:08x}"]
        if code < 0x10000:
            forms.append(f"\\u{code:04X}")
        if code < 0x100:
            forms += [f"\\x{code:02x}", f"\\X{code:02X}", f"\\{code:03o}"]
        return self.random.choice(forms)


def random_context(rng: random.Random) -> TurnContext:
    """A context whose fields take few values, so that comparisons fall both ways."""

    def flag() -> Any:
        return rng.random() < 0.5

    nudges = {code: rng.randint(1, 3) for code in CODES if rng.random() < 0.4}
    return TurnContext(
        final_text=rng.choice(TEXTS),
        finish_reason=rng.choice([None, *get_args(FinishReason)]),
        user_text=rng.choice(TEXTS),
        tools_available=flag(),
        tool_calls_total=rng.randrange(9),
        tool_calls_since_user=rng.randrange(4),
        mutated=flag(),
        verified_after_mutation=flag(),
        verify_failed=flag(),
        no_progress_rounds=rng.randrange(4),
        read_only_rounds=rng.randrange(9),
        budget_low=flag(),
        require_delivery=flag(),
        audit_mode=flag(),
        nudges=nudges,
    )

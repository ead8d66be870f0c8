"""`python -m tests.golden lint DIR`: the facts of every template in `lint.json`, as the lint finds them."""

import json
from pathlib import Path

from chats.domain.chat_templates.lint import lint


def failing(folder: Path) -> tuple[list[str], int]:
    """What differs, a line a template, and how many templates were looked at."""
    entries = {e["name"]: e for e in json.loads((folder / "index.json").read_text("utf-8"))["templates"]}
    expected = json.loads((folder / "lint.json").read_text("utf-8"))
    lines = []
    for name, facts in expected.items():
        entry = entries[name]
        text = (folder / entry["file"]).read_bytes().decode("utf-8")
        found = lint(text, entry["special_tokens"]).facts
        wrong = {key: (found.get(key), value) for key, value in facts.items() if found.get(key) != value}
        if wrong:
            lines.append(f"{name}: " + "; ".join(f"{k} is {f!r}, not {v!r}" for k, (f, v) in wrong.items()))
    return lines, len(expected)


def run(argv: list[str]) -> int:
    lines, total = failing(Path(argv[0]))
    print("\n".join(lines), end="\n" if lines else "")
    print(f"{total - len(lines)} of {total}")
    return 1 if lines else 0

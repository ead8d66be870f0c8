"""The French catalogue without gettext's tools: what the code says, what is translated, and the compiled file.

`python -m tests.translations` lists what is missing; with `--write` it renews the catalogue (new entries come in empty,
unused ones go) and compiles it. The compiled file is committed, since a fresh machine has no msgfmt.
"""

from __future__ import annotations

import ast
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "eleanor_site" / "locale" / "fr" / "LC_MESSAGES" / "django.po"
PACKAGES = ("eleanor_site", "chats", "rules")

# Name of the function without `_lazy` and `_noop` → what its leading arguments are.
FUNCTIONS = {
    "gettext": ("text",),
    "ngettext": ("text", "plural"),
    "pgettext": ("context", "text"),
    "npgettext": ("context", "text", "plural"),
}
PLACEHOLDER = re.compile(r"%%s?|%\(\w+\)[sd]|%[sd]|\{\w*\}")

Key = tuple[str, str]  # context, text


@dataclass(frozen=True)
class Message:
    """One entry: `plural` is empty for most; `translations` has one text, or one a plural form."""

    text: str
    context: str = ""
    plural: str = ""
    translations: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    fuzzy: bool = False

    @property
    def key(self) -> Key:
        return (self.context, self.text)

    @property
    def is_complete(self) -> bool:
        wanted = 2 if self.plural else 1
        return not self.fuzzy and len(self.translations) == wanted and all(self.translations)

    def wrong_placeholders(self) -> list[str]:
        """The translations whose placeholders aren't those of the text; the singular may leave its number out."""
        wanted = sorted(PLACEHOLDER.findall(self.text))
        allowed = [wanted] if not self.plural else [wanted, sorted(PLACEHOLDER.findall(self.plural))]
        return [t for t in self.translations if sorted(PLACEHOLDER.findall(t)) not in allowed]


@dataclass
class Catalogue:
    """A .po file: the comment at its top, its header, and its messages by key."""

    comment: str = ""
    header: str = ""
    messages: dict[Key, Message] = field(default_factory=dict)


def messages_in_code() -> dict[Key, Message]:
    """Everything that templates and Python mark for translation, in the order of files and lines."""
    found: dict[Key, Message] = {}
    for path in sorted((ROOT / "templates").rglob("*.html")):
        _collect(found, messages_in_template(path.read_text()), path)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                _collect(found, messages_in_python(path.read_text()), path)
    return found


def _collect(found: dict[Key, Message], messages: Iterable[Message], path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    for message in messages:
        known = found.get(message.key, message)
        places = known.places if place in known.places else (*known.places, place)
        found[message.key] = replace(known, plural=known.plural or message.plural, places=places)


def messages_in_template(source: str) -> Iterator[Message]:
    """Django's own reader of templates writes calls for xgettext; between them stands text that is no Python."""
    calls = re.finditer(r"(?<![\w.])(_|n?p?gettext)\(", templatize(source))
    text = templatize(source)
    for call in calls:
        kinds = FUNCTIONS["gettext" if call[1] == "_" else call[1]]
        literals, at = [], call.end()
        while literal := re.compile(r"\s*u?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*,?", re.S).match(text, at):
            literals.append(ast.literal_eval(literal[1]))
            at = literal.end()
        yield _message(kinds, literals)


def messages_in_python(source: str) -> Iterator[Message]:
    tree = ast.parse(source)
    names: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
            for alias in node.names:
                plain = re.sub(r"_(lazy|noop)$", "", alias.name)
                if plain in FUNCTIONS:
                    names[alias.asname or alias.name] = FUNCTIONS[plain]
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    for call in sorted(calls, key=lambda n: (n.lineno, n.col_offset)):
        assert isinstance(call.func, ast.Name)
        kinds = names.get(call.func.id)
        if kinds is None:
            continue
        literals = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if len(literals) >= len(kinds):
            yield _message(kinds, literals)


def _message(kinds: tuple[str, ...], literals: list[str]) -> Message:
    given = dict(zip(kinds, literals, strict=False))
    return Message(text=given["text"], context=given.get("context", ""), plural=given.get("plural", ""))


def read_catalogue(path: Path = CATALOGUE) -> Catalogue:
    """The entries of a .po file, each separated by an empty line."""
    catalogue = Catalogue()
    if not path.exists():
        return catalogue
    for block in re.split(r"\n{2,}", path.read_text().strip()):
        values: dict[str, str] = {}
        current = ""
        for line in block.split("\n"):
            if line.startswith("#"):
                continue
            keyword = re.match(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?) ", line)
            if keyword:
                current = keyword[1]
                values[current] = ""
                line = line[keyword.end() :]
            values[current] += ast.literal_eval(line)
        if values.get("msgid") == "":
            catalogue.comment = "\n".join(line for line in block.split("\n") if line.startswith("#"))
            catalogue.header = values["msgstr"]
        elif "msgid" in values:
            message = Message(
                text=values["msgid"],
                context=values.get("msgctxt", ""),
                plural=values.get("msgid_plural", ""),
                translations=tuple(text for name, text in values.items() if name.startswith("msgstr")),
                places=tuple(re.findall(r"^#: (.+)$", block, re.M)),
                fuzzy=bool(re.search(r"^#,.*\bfuzzy\b", block, re.M)),
            )
            catalogue.messages[message.key] = message
    return catalogue


def write_catalogue(catalogue: Catalogue, path: Path = CATALOGUE) -> None:
    """The .po file, and beside it the compiled one."""
    blocks = [f'{catalogue.comment}\nmsgid ""\nmsgstr {_quoted(catalogue.header)}']
    for message in catalogue.messages.values():
        lines = [f"#: {place}" for place in message.places]
        lines += ["#, fuzzy"] if message.fuzzy else []
        lines += [f"msgctxt {_quoted(message.context)}"] if message.context else []
        lines += [f"msgid {_quoted(message.text)}"]
        if message.plural:
            lines += [f"msgid_plural {_quoted(message.plural)}"]
            lines += [f"msgstr[{n}] {_quoted(text)}" for n, text in enumerate(message.translations or ("", ""))]
        else:
            lines += [f"msgstr {_quoted(message.translations[0] if message.translations else '')}"]
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n")
    path.with_suffix(".mo").write_bytes(compiled(catalogue))


def _quoted(text: str) -> str:
    def one(line: str) -> str:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'

    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return one(text) if len(lines) < 2 else "\n".join(['""', *map(one, lines)])


def compiled(catalogue: Catalogue) -> bytes:
    """The catalogue as a .mo file (GNU gettext manual, "The Format of GNU MO Files"), the same bytes every time."""
    pairs = {b"": catalogue.header.encode()}
    for message in catalogue.messages.values():
        if message.is_complete:
            name = (f"{message.context}\x04" if message.context else "") + message.text
            name += f"\0{message.plural}" if message.plural else ""
            pairs[name.encode()] = "\0".join(message.translations).encode()
    ordered = sorted(pairs.items())
    at = 28 + 16 * len(ordered)
    tables: list[bytes] = []
    for column in (0, 1):
        for pair in ordered:
            tables.append(struct.pack("<II", len(pair[column]), at))
            at += len(pair[column]) + 1
    head = struct.pack("<7I", 0x950412DE, 0, len(ordered), 28, 28 + 8 * len(ordered), 0, 28 + 16 * len(ordered))
    return head + b"".join(tables) + b"".join(pair[column] + b"\0" for column in (0, 1) for pair in ordered)


def renewed(catalogue: Catalogue, wanted: dict[Key, Message]) -> Catalogue:
    """The catalogue with exactly the wanted messages, in their order, and the translations that it has."""
    messages = {}
    for key, message in wanted.items():
        known = catalogue.messages.get(key)
        fits = known is not None and bool(known.plural) == bool(message.plural)
        messages[key] = replace(message, translations=known.translations if known and fits else ())
    return Catalogue(catalogue.comment, catalogue.header, messages)


def main(arguments: list[str]) -> int:
    catalogue = read_catalogue()
    wanted = messages_in_code()
    if "--write" in arguments:
        catalogue = renewed(catalogue, wanted)
        write_catalogue(catalogue)
    known = {key for key, message in catalogue.messages.items() if message.is_complete}
    missing = [message for key, message in wanted.items() if key not in known]
    for message in missing:
        print(f"{message.places[0]}: {message.text!r}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} translated")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

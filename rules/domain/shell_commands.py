"""What a shell command does, judged by its words: checking or only looking (continuation.md section 5).

No shell grammar: commands are the parts between `;`, `&`, `|` and line ends, whatever quotes say. All in linear time.
"""

from __future__ import annotations

import re
from typing import Final

_CHECKS: Final = frozenset(
    [
        "pytest",
        "tox",
        "nox",
        "unittest",
        "jest",
        "vitest",
        "mocha",
        "ruff",
        "flake8",
        "mypy",
        "pyright",
        "eslint",
        "tsc",
        "ctest",
        "test",
        "tests",
        "check",
        "lint",
        "typecheck",
        "build",
        "rspec",
        "phpunit",
    ]
)
_CHECKS_WITH_TARGET: Final[dict[str, frozenset[str]]] = {
    "cargo": frozenset({"test", "check", "clippy", "build"}),
    "go": frozenset({"test", "vet", "build"}),
    "make": frozenset({"test", "check", "lint", "build"}),
    "mvn": frozenset({"test", "verify"}),
    "gradle": frozenset({"test", "check", "build"}),
    "gradlew": frozenset({"test", "check", "build"}),
    "dotnet": frozenset({"test", "build"}),
}
_RUNNERS: Final[dict[str, str]] = {"uv": "run", "poetry": "run"}
_PYTHON: Final = re.compile(r"python3?(?:\.\d+)?")
_PACKAGE_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_READS: Final = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "grep",
        "rg",
        "find",
        "wc",
        "file",
        "stat",
        "tree",
        "pwd",
        "which",
        "sort",
        "uniq",
        "cut",
        "tr",
        "awk",
        "jq",
        "diff",
        "nl",
        "less",
        "echo",
    ]
)
_GIT_READS: Final = frozenset({"status", "diff", "log", "show", "blame", "grep", "ls-files"})

_SEPARATORS: Final = re.compile(r"[;&|\r\n]")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_SHELL: Final = re.compile(r"\s*(?:[^\s]*/)?(?:bash|sh|zsh)\s+-l?c\s+(['\"]?)")
_SETTING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_WRITES: Final = re.compile(r">|(?<![\w-])tee(?![\w-])|(?<!\S)-(?:delete|exec)")


def verifies(command: str) -> bool:
    """Whether one of its commands is a test, linter, type check, build or the like."""
    return any(_is_check(part.split()) for part in _parts(command))


def reads_only(command: str) -> bool:
    """Whether every one of its commands only looks, and nothing in it writes, deletes or runs something else."""
    parts = [words for part in _parts(command) if (words := part.split()) and not words[0].startswith("#")]
    if not parts or _WRITES.search(command) is not None:
        return False
    return all(words[0] == "cd" or _is_read(words) for words in parts)


def _parts(command: str) -> list[str]:
    return _SEPARATORS.split(_CONTINUED.sub(" ", _without_shell(command)))


def _without_shell(command: str) -> str:
    """The command inside `bash -lc "…"`, without that beginning and its quotes."""
    shell = _SHELL.match(command)
    if shell is None:
        return command
    inside = command[shell.end() :].rstrip()
    quote = shell[1]
    return inside[:-1] if quote and inside.endswith(quote) else inside


def _is_check(words: list[str]) -> bool:
    at = 0
    while at < len(words) and _SETTING.match(words[at]):
        at += 1
    while at < len(words):
        word = _name(words[at])
        following = words[at + 1].rstrip(")") if at + 1 < len(words) else ""
        if word == "npx":
            at += 1
        elif word in _PACKAGE_MANAGERS:
            at += 2 if following == "run" else 1
        elif _RUNNERS.get(word) == following or (following == "-m" and _PYTHON.fullmatch(word)):
            at += 2
        else:
            return word in _CHECKS or following in _CHECKS_WITH_TARGET.get(word, ())
    return False


def _is_read(words: list[str]) -> bool:
    word = _name(words[0])
    following = words[1] if len(words) > 1 else ""
    if word == "sed":
        return following == "-n"
    if word == "git":
        return following in _GIT_READS
    return word in _READS


def _name(word: str) -> str:
    """The last part of a path; a bracket that ends a group does not belong to it."""
    return word.rstrip(")").rsplit("/", 1)[-1]

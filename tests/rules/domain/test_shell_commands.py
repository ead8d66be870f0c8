"""Which shell commands check something, and which only look."""

import pytest

from rules.domain.shell_commands import reads_only, verifies


@pytest.mark.parametrize(
    "command",
    [
        "pytest", "FOO=1 BAR='x' pytest -q", "uv run pytest", "poetry run mypy .", "npx jest --ci", "python -m pytest",
        "python3 -m unittest", ".venv/bin/python -m pytest", "uv run python -m pytest", "npm test", "npm run lint",
        "pnpm build",
        "yarn run typecheck", "bun test", "cargo clippy", "go vet ./...", "make check", "mvn verify",
        "./gradlew build",
        "/usr/bin/make test", "dotnet test", "cd a; tox", "ls | tee x && ruff check .", "false || eslint .",
        "(cd app && pytest)",
        "bash -lc 'pytest -q'", 'sh -c "make test"', "zsh -lc pytest", "/bin/bash -c 'go test ./...'",
        "echo a\n  flake8 src",
        "echo a\r\ntsc", "python -m \\\n  pytest", "sleep 1 & ctest",
    ],
)  # fmt: skip
def test_a_check(command):
    assert verifies(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "  ", "echo pytest", "pip install pytest", "python test.py", "cat tests", "cargo run", "go build_all",
        "make", "npm install",
        "npm run start", "uv pip install ruff", "mypytest", "git commit -m 'test'", "python pytest.py",
        "rm -rf build", "uv", "FOO=1",
    ],
)  # fmt: skip
def test_no_check(command):
    assert not verifies(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls", "/bin/ls -la", "cat a | grep b | head -3", "cd src && rg foo", "sed -n 1,5p a", "git status",
        "git ls-files | wc -l",
        "pwd; which python", "find . -name x", "cat a\nls b\n\n# done\n", "bash -lc 'cat a.py'", "cat guarantee.txt",
        "cd src",
        "awk '{print $1}' a", "echo done", "grep foo \\\n  src/a.py", "cat pre-delete.txt",
    ],
)  # fmt: skip
def test_only_looking(command):
    assert reads_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "# nothing", "rm a", "ls; rm a", "ls > a", "ls | tee a", "find . -exec rm {} ;", "find . -delete",
        "sed -i s/a/b/ f", "sed",
        "git commit", "git", "git push", "cat a\npython b.py", "mv a b", "FOO=1 ls", "cat a | xargs rm", "lsof",
        "bash -c 'rm a'",
    ],
)  # fmt: skip
def test_more_than_looking(command):
    assert not reads_only(command)

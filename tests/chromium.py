"""A headless Chromium for tests, and a guard that fails a test for anything on the browser's console.

``provide`` is for the test command: it installs Debian's Chromium once where it may, and says what is missing where
it may not. REQUIRE_BROWSER=1 turns a missing browser from a skip into a failure.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# The browser fetches lists and updates of its own otherwise, and what it prints about them isn't ours.
OPTIONS = ("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage")
FONTS = "fonts-liberation"  # without any, text has no width and layouts lie
# How long a page may take to show what it must: a limit for what never comes, not a measure of speed.
PATIENCE = 20_000  # milliseconds
MISSING = "no Chromium: install the package chromium, or run .venv/bin/playwright install chromium"


@dataclass
class ConsoleGuard:
    """Collects what a page prints, throws or reports; ``allowed`` patterns are searched for in each line."""

    lines: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        self.allowed.append(pattern)

    def watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", self._on_error)

    def unexpected(self) -> list[str]:
        return [line for line in self.lines if not any(re.search(pattern, line) for pattern in self.allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        self.lines.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_error(self, error: Error) -> None:
        self.lines.append(f"script error: {error.message}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one test module.

    Not for the session: Playwright's event loop runs in this thread as long as it lives, and Django refuses to touch
    the database beside a running loop.
    """
    with sync_playwright() as playwright:
        path = find(playwright)
        if path is None:
            _missing()
        browser = launch(playwright, str(path))
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def console() -> ConsoleGuard:
    """What the test's pages printed; ``console.allow(pattern)`` for what the test expects there."""
    return ConsoleGuard()


@pytest.fixture
def browser_context(chromium: Browser, console: ConsoleGuard) -> Iterator[BrowserContext]:
    """A fresh profile, whose pages are all watched: any line on the console that isn't allowed fails the test."""
    context = chromium.new_context()
    context.on("page", console.watch)
    yield context
    context.close()
    unexpected = console.unexpected()
    assert not unexpected, "the browser's console: " + "; ".join(unexpected)


@pytest.fixture
def page(browser_context: BrowserContext) -> Page:
    return browser_context.new_page()


def launch(playwright: Playwright, path: str) -> Browser:
    # Chromium refuses its sandbox to root.
    options = [*OPTIONS, "--no-sandbox"] if os.getuid() == 0 else list(OPTIONS)
    return playwright.chromium.launch(executable_path=path, args=options, headless=True)


def find(playwright: Playwright) -> Path | None:
    """Return the Chromium of this machine, else the one that Playwright downloaded, else None."""
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    own = Path(playwright.chromium.executable_path)
    return own if own.exists() else None


def provide() -> None:
    """Install Chromium as root on Debian or Ubuntu if there is none; say what is missing otherwise."""
    if any(shutil.which(name) for name in NAMES):
        return
    with sync_playwright() as playwright:
        if find(playwright) is not None:
            return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        _say(f"The browser tests can't run: {MISSING}.")
        return
    _say("Installing Chromium for the browser tests (once) …")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "--yes", "--no-install-recommends", "chromium", FONTS],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            _say(f"Chromium can't be installed ({' '.join(command)}: {' '.join(last)}). {MISSING}.")
            return


def _missing() -> NoReturn:
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(MISSING)
    pytest.skip(MISSING)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

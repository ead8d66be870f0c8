"""The guard that fails a browser test for anything on the console."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chromium import ConsoleGuard

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("html", "line"),
    [
        ("<script>console.log('hello')</script>", "log: hello"),
        ("<script>console.error('broken')</script>", "error: broken"),
        ("<script>throw new Error('thrown')</script>", "script error: thrown"),
        (
            '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'"><script>1</script>',
            "Content Security Policy",
        ),
        ('<img src="http://127.0.0.1:9/nothing.png">', "ERR_"),
    ],
)
def test_what_the_guard_sees(chromium, html, line):
    guard = ConsoleGuard()
    context = chromium.new_context()
    context.on("page", guard.watch)
    context.new_page().set_content(f"<!DOCTYPE html><title>t</title>{html}", wait_until="load")
    context.close()
    assert any(line in seen for seen in guard.unexpected()), guard.lines
    guard.allow(line)
    assert not guard.unexpected()


def test_silent_page_passes(page):
    page.set_content("<!DOCTYPE html><title>t</title><p lang=en>Nothing to report</p>")
    assert page.inner_text("p") == "Nothing to report"


def test_missing_browser_is_a_skip_or_a_failure(tmp_path):
    """REQUIRE_BROWSER=1 is for machines where the browser tests must have run."""
    test = tmp_path / "test_with_browser.py"
    test.write_text(
        "from tests.chromium import browser_context, chromium, console, page\ndef test_page(page):\n    pass\n"
    )
    ends = {}
    for required in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", "-rs", test.name],
            cwd=tmp_path,
            env={
                "PATH": "/nonexistent",
                "PYTHONPATH": str(ROOT),
                "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path),
                "REQUIRE_BROWSER": required,
            },
            capture_output=True,
            text=True,
        )
        ends[required] = done
        assert "install the package chromium" in done.stdout, done.stdout + done.stderr
    assert (ends["0"].returncode, ends["1"].returncode) == (0, 1)

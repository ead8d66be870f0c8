"""A replay is started, watched, left, found again, compared, opened at a nudge, and exported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_main_journey import sign_in
from tests.running_site import RunningSite

pytestmark = pytest.mark.browser


def test_a_replay_from_start_to_export(page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site, "author")
    page.goto(f"{running_site.url}/t/demo/replays/new")
    page.get_by_label("Title").fill("Once more")
    page.get_by_role("button", name="Start replay").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Once more")

    # The page is closed, and the replay goes on without it.
    page.goto(f"{running_site.url}/t/demo/chats/")
    page.goto(f"{running_site.url}/t/demo/replays/")
    page.get_by_role("link", name="Once more").first.click()
    expect(page.locator("#replay-progress")).to_contain_text("done", timeout=60_000)
    expect(page.locator("#findings tbody a[data-open]").first).to_be_visible()
    rows = page.locator("#replay-progress tbody tr")
    fired = {row.locator("th").inner_text(): row.locator("td").nth(3).inner_text() for row in rows.all()}
    assert fired["EAI-GOV-01"] == "6"

    page.get_by_role("link", name="EAI-GOV-01").first.click()
    page.locator("#findings tbody a[data-open]").first.click()
    inspector = page.get_by_label("Inspector of a point")
    expect(inspector).to_contain_text('ctx.finish_reason == "length"')
    page.go_back()

    address = re.sub(r"\?.*|#.*", "", page.url)
    with page.expect_download() as started:
        page.evaluate(
            "url => { const a = document.createElement('a'); a.href = url; a.click(); }",
            f"{address}export?format=jsonl",
        )
    lines = Path(started.value.path()).read_text().splitlines()
    [trailer] = json.loads(lines[-1]).values()
    assert trailer["rows"] == len(lines) - 1 > 0

    page.goto(f"{running_site.url}/t/demo/replays/compare?a=1&b={address.rstrip('/').rpartition('/')[2]}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("EAI-GOV-01")

"""The main job, as a person does it: import, write a rule, replay through a real worker, read the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.chromium import ConsoleGuard
from tests.factories import exchange_chat
from tests.running_site import RunningSite

pytestmark = pytest.mark.browser


def sign_in(page: Page, site: RunningSite, role: str = "publisher") -> None:
    page.goto(f"{site.url}/account/sign-in")
    page.get_by_label("E-mail address").fill(f"{role}@demo.example")
    page.get_by_label("Password").fill(site.password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


def test_from_a_file_to_a_report(page: Page, running_site: RunningSite, tmp_path: Path, console: ConsoleGuard) -> None:
    chats = [
        exchange_chat(
            {"role": "user", "content": f"Please water plant {n}."},
            {"role": "assistant", "content": "The watering can is in the shed.", "finish_reason": "stop"},
            external_id=f"plant-{n}",
            tools=["water"],
        )
        for n in range(3)
    ]
    file = tmp_path / "plants.jsonl"
    file.write_text("\n".join(json.dumps(chat) for chat in chats))
    # In a tenant of its own: other journeys ask for what the demo's newest replay found.
    sign_in(page, running_site, "admin")

    page.goto(f"{running_site.url}/t/sandbox/chats/import")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import file").click()
    replay_these = page.get_by_role("link", name="Replay these chats")
    expect(replay_these).to_be_visible(timeout=30_000)
    expect(page.get_by_text("plants.jsonl").first).to_be_visible()

    page.goto(f"{running_site.url}/t/sandbox/rules/new")
    page.get_by_label("Code", exact=True).fill("PLANT-01")
    page.get_by_role("textbox", name="Expression").fill('ctx.final_text.contains("watering can")')
    page.get_by_label("Prompt, English").fill("Water the plant now.")
    page.locator(".sticky-bar").get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("PLANT-01")

    page.goto(f"{running_site.url}/t/sandbox/chats/import")
    page.get_by_role("link", name="plants.jsonl").first.click()
    page.get_by_role("link", name="Replay these chats").click()
    page.get_by_label("Rules", exact=True).select_option("drafts")
    page.get_by_role("button", name="Start replay").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="PLANT-01")).first
    expect(row.get_by_role("cell").nth(3)).to_have_text("3", timeout=30_000)

    page.reload()
    page.get_by_role("link", name="PLANT-01").first.click()
    page.locator("#findings tbody").get_by_role("link", name="PLANT-01").first.click()
    expect(page.get_by_label("Inspector of a point")).to_contain_text("PLANT-01")
    expect(page.get_by_label("Inspector of a point")).to_contain_text("watering can")


@pytest.mark.parametrize(
    "path", ["", "rules/", "chats/", "replays/", "nudges/", "changes/", "settings/", "rules/catalogue"]
)
def test_pages_work_without_script(chromium: object, running_site: RunningSite, path: str) -> None:
    context = chromium.new_context(java_script_enabled=False)  # type: ignore[attr-defined]
    page = context.new_page()
    sign_in(page, running_site, "viewer")
    page.goto(f"{running_site.url}/t/demo/{path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    context.close()

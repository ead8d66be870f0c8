"""A nudge found in the history, explained and judged; chats searched and walked; a queue reviewed. By keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.running_site import RunningSite

pytestmark = pytest.mark.browser


def sign_in(page: Page, site: RunningSite, role: str = "reviewer") -> None:
    page.goto(f"{site.url}/account/sign-in")
    page.get_by_label("E-mail address").fill(f"{role}@demo.example")
    page.get_by_label("Password").fill(site.password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


def test_a_nudge_is_found_explained_and_judged(page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site)
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nudges")
    expect(page.get_by_role("img", name=re.compile("nudges from"))).to_be_visible()

    page.get_by_label("Rule", exact=True).select_option("EAI-GOV-04")
    expect(page).to_have_url(re.compile("rule=EAI-GOV-04"))
    rows = page.get_by_role("table").last.get_by_role("row")
    expect(rows.filter(has_text="EAI-GOV-03")).to_have_count(0)

    page.get_by_role("link", name="EAI-GOV-04").last.click()
    inspector = page.get_by_label("Inspector of a point")
    expect(inspector).to_contain_text("Rules in order")
    expect(inspector).to_contain_text("ctx.mutated")
    expect(page.locator('.message[aria-current="true"]')).to_be_visible()

    page.keyboard.press("1")
    expect(page.get_by_text("Your verdict is saved.")).to_be_visible()
    expect(inspector).to_contain_text("Demo Reviewer")
    page.goto(f"{running_site.url}/t/demo/nudges/?verdict=right")
    expect(page.get_by_role("table").last).to_contain_text("EAI-GOV-04")


def test_chats_are_searched_and_walked_by_keys(page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site)
    page.keyboard.press("/")
    page.keyboard.type("filtres")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"chats/\?q=filtres"))
    # Another inflection of the word in another capitalisation.
    expect(page.get_by_role("table")).to_contain_text("le filtre de dates")
    expect(page.get_by_role("table")).not_to_contain_text("the date filter")
    page.get_by_label("Text").fill('"fail on empty"')
    expect(page.get_by_text("No chat fits these filters")).to_be_visible()
    page.get_by_label("Text").fill("failing inputs")
    expect(page.get_by_role("table")).to_contain_text("fails on empty input")

    page.get_by_label("Text").fill("")
    page.get_by_label("Rule fired").select_option("EAI-GOV-02")
    expect(page).to_have_url(re.compile(r"/chats/\?fired=EAI-GOV-02$"))
    page.locator("[data-open]").first.click()
    expect(page.get_by_text("would fire").first).to_be_visible()
    inspector = page.get_by_label("Inspector of a point")
    page.keyboard.press("n")
    expect(inspector).to_contain_text("EAI-GOV-02")
    there = page.url
    page.keyboard.press("[")
    expect(page).not_to_have_url(there)
    page.keyboard.press("]")
    expect(page).to_have_url(there)
    page.keyboard.press("v")
    expect(page).to_have_url(re.compile("view=rendered"))


def test_a_queue_is_reviewed_with_one_hand(page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site)
    page.goto(f"{running_site.url}/t/demo/review/")
    page.get_by_label("Rule", exact=True).select_option("EAI-GOV-01")
    page.get_by_role("button", name="Make queue of firings").click()
    place = page.locator(".lead")
    expect(place).to_contain_text("Item 1 of")
    expect(page.get_by_text("added by EAI-GOV-01")).to_be_visible()

    page.keyboard.press("j")
    expect(place).to_contain_text("Item 2 of")
    page.keyboard.press("k")
    expect(place).to_contain_text("Item 1 of")
    page.keyboard.press("1")
    expect(place).to_contain_text("Item 2 of")
    page.keyboard.press("u")
    expect(place).to_contain_text("Item 1 of")
    expect(page.get_by_text("Your last verdict is taken back.")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.type("cut in the middle")
    page.get_by_role("button", name="Wrong").click()
    expect(place).to_contain_text("Item 2 of")
    for _rest in range(20):
        if page.get_by_text("You have judged all").is_visible():
            break
        at = place.inner_text()
        page.keyboard.press("3")
        expect(page.locator("main")).not_to_contain_text(at)
    expect(page.get_by_text("You have judged all")).to_be_visible()
    page.goto(f"{running_site.url}/t/demo/review/")
    expect(page.get_by_role("table").first).to_contain_text("New firings of EAI-GOV-01")
    expect(page.get_by_role("table").last).to_contain_text("too few")

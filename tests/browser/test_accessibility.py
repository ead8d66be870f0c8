"""Every page as people with other eyes, hands, screens and languages meet it (product.md sections 8 to 10)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from django.urls import Resolver404, resolve
from playwright.sync_api import Browser, Page, expect

from tests.chromium import ConsoleGuard
from tests.running_site import RunningSite
from tests.security.test_access_matrix import ROUTES

pytestmark = pytest.mark.browser

AXE = AXE_FILE_PATH.read_text()
# What depends on the theme; the rest of a page is the same in both.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
# Colours that change with the theme are measured when they have arrived.
SETTLED = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
}"""
# Answers for scripts and parts of pages, which have no page of their own.
NOT_PAGES = re.compile(r"/check/|/export$|/check$|/lint$")
# The overview, and what a button leads to.
STARTS = ("/t/demo/", "/t/demo/rules/EAI-GOV-07/effect")
SIGNED_OUT = ("/account/sign-in", "/help/", "/no-such-page")
NOTHING_FOUND = ("rules/?q=zzzz", "chats/?q=zzzz", "nudges/?rule=ZZZZ", "changes/?actor=999999", "no-such-page")
LANGUAGES = ("en", "fr")


@dataclass(frozen=True)
class Kind:
    """Pages of one kind: the route, and which parameters the address carries."""

    route: str
    parameters: tuple[str, ...] = ()


@dataclass
class Visit:
    """One person's look around: the pages that links lead to, one address for each kind."""

    addresses: dict[Kind, str] = field(default_factory=dict)

    @property
    def routes(self) -> set[str]:
        return {kind.route for kind in self.addresses}


@pytest.fixture(scope="module")
def furnished(chromium: Browser, running_site: RunningSite) -> RunningSite:
    """The demo site with one of each thing that people make later."""
    context = chromium.new_context(locale="en")
    page = context.new_page()
    sign_in(page, running_site, "admin")
    demo = f"{running_site.url}/t/demo"
    _furnish(page, demo)
    context.close()
    return running_site


def _furnish(page: Page, demo: str) -> None:
    page.goto(f"{demo}/chats/corpora/freeze")
    page.get_by_label("Name of the corpus").fill("Everything")
    page.get_by_role("button", name="Freeze corpus").click()
    page.goto(f"{demo}/chats/?lang=fr")
    page.get_by_label("Save this search as").fill("French")
    page.get_by_role("button", name="Save search").click()
    page.goto(f"{demo}/wrappers/new")
    page.get_by_label("Name", exact=True).fill("Support")
    page.get_by_role("button", name="Create wrapper").click()
    page.goto(f"{demo}/wrappers/support/versions/")
    page.get_by_label("Note", exact=True).fill("The first version.")
    page.get_by_role("button", name="Make the version").click()
    page.goto(f"{demo}/settings/webhooks/")
    page.get_by_label("Address", exact=True).and_(page.get_by_role("textbox")).fill("https://hooks.example.org/eleanor")
    page.get_by_label("A replay finished").check()
    page.get_by_role("button", name="Add webhook").click()
    page.goto(f"{demo}/rules/EAI-GOV-07/edit")
    page.get_by_label("Title, English").fill("Announced and left at that")
    page.get_by_role("button", name="Save draft").click()


@pytest.fixture(scope="module")
def visit(chromium: Browser, furnished: RunningSite) -> Visit:
    """Follow links from the overview until no new kind of page turns up."""
    context = chromium.new_context(locale="en")
    page = context.new_page()
    sign_in(page, furnished, "admin")
    found = Visit()
    waiting = list(STARTS)
    while waiting:
        path = waiting.pop(0)
        kind = _kind(path)
        if kind is None or kind in found.addresses:
            continue
        answer = context.request.get(furnished.url + path)
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        assert answer.status == 200, f"{path}: {answer.status}"
        found.addresses[kind] = path
        waiting += re.findall(r'<a\b[^>]*?\bhref="(/[^"#]*)', html.unescape(answer.text()))
    context.close()
    return found


def _kind(path: str) -> Kind | None:
    parts = urlsplit(path)
    try:
        route = resolve(parts.path).route
    except Resolver404:
        return None
    if route.startswith("api/"):
        return None
    # Lists page by key and filter by value; one of each parameter is enough, in whatever company.
    return Kind(route, tuple(sorted(parse_qs(parts.query))[:1]))


@contextmanager
def a_person(chromium: Browser, site: RunningSite, guard: ConsoleGuard, **options: Any) -> Iterator[Page]:
    """A signed-in page whose console is watched; nothing but answers with an error status may be written there."""
    context = chromium.new_context(reduced_motion="reduce", **options)
    context.on("page", guard.watch)
    page = context.new_page()
    sign_in(page, site, "admin")
    yield page
    context.close()


def sign_in(page: Page, site: RunningSite, role: str) -> None:
    """In whatever language the page speaks."""
    page.goto(f"{site.url}/account/sign-in")
    page.locator("[name=email]").fill(f"{role}@demo.example")
    page.locator("[name=password]").fill(site.password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe finds, one line a place."""
    page.evaluate(SETTLED)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE)
    options: dict[str, Any] = {"resultTypes": ["violations"], "iframes": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def both_themes(page: Page) -> list[str]:
    """What axe finds in light, and what it finds about colours in dark."""
    page.emulate_media(color_scheme="light")
    light = violations(page)
    page.emulate_media(color_scheme="dark")
    return light + [f"dark: {line}" for line in violations(page, COLOUR_RULES)]


def test_links_lead_to_every_page(visit: Visit) -> None:
    wanted = {
        "t/<str:tenant>/" + re.sub(r"<\w+>", "<>", route.path)
        for route in ROUTES
        if route.get == 200 and not NOT_PAGES.search(route.path)
    }
    reached = {re.sub(r"<\w+:(?!tenant)\w+>", "<>", route) for route in visit.routes}
    assert sorted(wanted - reached) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_finds_nothing(
    chromium: Browser,
    furnished: RunningSite,
    visit: Visit,
    console: ConsoleGuard,
    language: str,
    subtests: pytest.Subtests,
) -> None:
    console.allow("status of 404")
    addresses = [*visit.addresses.values(), *(f"/t/demo/{path}" for path in NOTHING_FOUND)]
    with a_person(chromium, furnished, console, locale=language) as page:
        for address in addresses:
            with subtests.test(address):
                page.goto(furnished.url + address)
                expect(page.locator("html")).to_have_attribute("lang", language)
                assert both_themes(page) == []
    assert console.unexpected() == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_finds_nothing_before_the_sign_in(
    chromium: Browser, furnished: RunningSite, console: ConsoleGuard, language: str, subtests: pytest.Subtests
) -> None:
    console.allow("status of 404")
    context = chromium.new_context(locale=language, reduced_motion="reduce")
    context.on("page", console.watch)
    page = context.new_page()
    for address in SIGNED_OUT:
        with subtests.test(address):
            page.goto(furnished.url + address)
            assert both_themes(page) == []
    context.close()
    assert console.unexpected() == []

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
NOT_PAGES = re.compile(r"/check/|/(export|manifest|check|lint)$")
# The overview, and what only buttons lead to.
STARTS = (
    "/t/demo/",
    "/t/demo/rules/EAI-GOV-07/effect",
    "/t/demo/rules/EAI-GOV-07/versions/compare?a=1&b=1",
    "/t/demo/wrappers/support/versions/compare",
    "/t/demo/tools/try?pattern=read_*&kind=read&repeatable=False",
)
SIGNED_OUT = ("/account/sign-in", "/help/", "/no-such-page")
# Forms that are sent as they stand, without the browser's own checks.
WRONG_FORMS = ("rules/new", "chats/import", "wrappers/new", "settings/keys/", "settings/webhooks/")
NOTHING_FOUND = ("rules/?q=zzzz", "chats/?q=zzzz", "nudges/?rule=ZZZZ", "changes/?actor=999999", "no-such-page")
LANGUAGES = ("en", "fr")


@dataclass(frozen=True, order=True)
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

    def one_a_route(self) -> list[str]:
        """The plainest address of each route."""
        plainest = {kind.route: address for kind, address in sorted(self.addresses.items(), reverse=True)}
        return list(plainest.values())


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
    page.goto(f"{demo}/replays/schedules/new")
    page.get_by_label("Name", exact=True).fill("Every night")
    page.get_by_role("button", name="Add schedule").click()
    page.goto(f"{demo}/rules/EAI-GOV-07/edit")
    page.get_by_label("Title, English").fill("Announced and left at that")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".sticky-bar")).to_contain_text(re.compile(r"Draft \d+ saved"))
    page.goto(f"{demo}/rules/EAI-GOV-07/publish")
    page.get_by_label("Note").fill("The title says more.")
    page.get_by_role("button", name="Add to the open release").click()
    page.goto(f"{demo}/review/")
    page.get_by_label("Also those that the history holds").check()
    page.get_by_role("button", name="Make queue of firings").click()


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
    addresses = visit.addresses.values() if language == "en" else visit.one_a_route()
    addresses = [*addresses, *(f"/t/demo/{path}" for path in NOTHING_FOUND)]
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_finds_nothing_in_refused_forms(
    chromium: Browser, furnished: RunningSite, console: ConsoleGuard, language: str, subtests: pytest.Subtests
) -> None:
    console.allow("status of 422")
    with a_person(chromium, furnished, console, locale=language) as page:
        for path in WRONG_FORMS:
            with subtests.test(path):
                page.goto(f"{furnished.url}/t/demo/{path}")
                form = page.locator("main form[method=post]").filter(has=page.locator(".button-primary")).first
                form.evaluate("(form) => { form.noValidate = true; }")
                form.locator(".button-primary").first.click()
                expect(page.locator(".form-errors, .errorlist, [aria-invalid=true]").first).to_be_visible()
                assert both_themes(page) == []
    assert console.unexpected() == []


def test_pages_fit_a_narrow_screen(
    chromium: Browser, furnished: RunningSite, visit: Visit, console: ConsoleGuard, subtests: pytest.Subtests
) -> None:
    """At 320 pixels nothing but tables and code scrolls sideways (WCAG 1.4.10), in the language of longer words."""
    with a_person(chromium, furnished, console, locale="fr", viewport={"width": 320, "height": 640}) as page:
        for address in visit.one_a_route():
            with subtests.test(address):
                page.goto(furnished.url + address)
                wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert page.evaluate(wide) <= 0


def test_pages_read_without_script(
    chromium: Browser, furnished: RunningSite, visit: Visit, console: ConsoleGuard, subtests: pytest.Subtests
) -> None:
    with a_person(chromium, furnished, console, locale="en", java_script_enabled=False) as page:
        for address in visit.one_a_route():
            with subtests.test(address):
                page.goto(furnished.url + address)
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                assert page.locator(".js-only:visible").count() == 0


@pytest.fixture
def at_the_rules(chromium: Browser, furnished: RunningSite, console: ConsoleGuard) -> Iterator[Page]:
    with a_person(chromium, furnished, console, locale="en") as page:
        page.goto(f"{furnished.url}/t/demo/rules/")
        yield page
    assert console.unexpected() == []


def test_the_first_tab_skips_to_the_content(at_the_rules: Page) -> None:
    at_the_rules.keyboard.press("Tab")
    skip = at_the_rules.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    at_the_rules.keyboard.press("Enter")
    expect(at_the_rules.locator("#main")).to_be_focused()


def test_focus_is_always_seen(at_the_rules: Page) -> None:
    """Each stop of the Tab key has an outline, and nothing lies over it (WCAG 2.4.7, 2.4.11)."""
    stop = """() => {
      const element = document.activeElement;
      const box = element.getBoundingClientRect();
      const over = document.elementFromPoint(box.left + Math.min(box.width, 40) / 2, box.top + box.height / 2);
      const style = getComputedStyle(element);
      return {
        name: element.outerHTML.slice(0, 120),
        outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        covered: Boolean(over) && !element.contains(over) && !over.contains(element),
      };
    }"""
    for _ in range(45):
        at_the_rules.keyboard.press("Tab")
        at_the_rules.evaluate(SETTLED)
        found = at_the_rules.evaluate(stop)
        assert found["outlined"], found["name"]
        assert not found["covered"], found["name"]


def test_escape_closes_menus_and_dialogs(at_the_rules: Page) -> None:
    theme = at_the_rules.get_by_text("Theme", exact=True)
    summary = at_the_rules.locator("summary").filter(has=theme)
    summary.focus()
    at_the_rules.keyboard.press("Enter")
    expect(at_the_rules.get_by_role("button", name="Dark")).to_be_visible()
    at_the_rules.keyboard.press("Escape")
    expect(at_the_rules.get_by_role("button", name="Dark")).to_be_hidden()
    expect(summary).to_be_focused()
    for key, name in (("?", "Keyboard shortcuts"), ("Control+k", "Go to or do")):
        at_the_rules.keyboard.press(key)
        dialog = at_the_rules.get_by_role("dialog", name=name)
        expect(dialog).to_be_visible()
        assert both_themes(at_the_rules) == []
        at_the_rules.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


def test_a_change_of_page_moves_focus_to_its_heading(at_the_rules: Page) -> None:
    at_the_rules.keyboard.press("g")
    at_the_rules.keyboard.press("c")
    expect(at_the_rules).to_have_title(re.compile("^Chats"))
    expect(at_the_rules.get_by_role("heading", level=1)).to_be_focused()


def test_single_letters_leave_fields_alone(at_the_rules: Page) -> None:
    at_the_rules.keyboard.press("/")
    search = at_the_rules.get_by_role("searchbox", name="Search chats")
    expect(search).to_be_focused()
    at_the_rules.keyboard.type("gc?")
    expect(search).to_have_value("gc?")
    expect(at_the_rules).to_have_title(re.compile("^Rules"))


def test_the_narrow_navigation_opens_and_closes_by_keyboard(
    chromium: Browser, furnished: RunningSite, console: ConsoleGuard
) -> None:
    with a_person(chromium, furnished, console, locale="en", viewport={"width": 390, "height": 800}) as page:
        page.goto(f"{furnished.url}/t/demo/rules/")
        button = page.get_by_role("button", name="Navigation")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Wrappers")).to_be_visible()
        assert both_themes(page) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("link", name="Wrappers")).to_be_hidden()
        expect(button).to_be_focused()

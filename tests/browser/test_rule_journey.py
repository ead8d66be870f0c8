"""From a bad answer to a published rule and back, by keyboard only, in both languages (product.md section 10)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect

from tests.chromium import ConsoleGuard
from tests.running_site import ROOT, RunningSite
from tests.shared_data import SHARED, needs_shared

pytestmark = pytest.mark.browser

SAMPLE = SHARED / "samples" / "tau-bench" / "llama-retail-a.json"
EXPRESSION = "announces_action(last_paragraph(ctx.final_text)) && !asks_user(ctx.final_text)"
FIRST_RELEASE = """
from django_scopes import scope
from eleanor_site.tenants.models import Tenant, User
from rules.services.catalogue import install
from rules.services.publishing import publish_drafts
tenant = Tenant.objects.get(slug="sandbox")
by = User.objects.get(email="admin@demo.example")
with scope(tenant=tenant):
    rules = install(tenant=tenant, by=by, codes=["EAI-GOV-01"])
    if rules:
        publish_drafts(tenant=tenant, rules=rules, by=by, note="First", seen_release=0)
"""


@dataclass
class Hands:
    """A keyboard, and what it took: presses of keys, texts typed, and what the server needed for each answer."""

    page: Page
    presses: int = 0
    texts: int = 0
    answers: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("requestfinished", self._answered)

    def _answered(self, request: Request) -> None:
        timing = request.timing
        if timing["responseStart"] > 0 and "/t/" in request.url:
            self.answers.append(timing["responseStart"] - timing["requestStart"])

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.presses += 1

    def type(self, text: str) -> None:
        self.page.keyboard.insert_text(text)
        self.texts += 1

    def go(self, selector: str, key: str = "Tab", most: int = 120) -> None:
        """Tab to the first control that fits. A person sees where that is; what counts is that Tab comes there."""
        for _number in range(most):
            self.press(key)
            if self.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{key} never came to {selector}")

    @property
    def report(self) -> str:
        slowest = max(self.answers, default=0)
        mean = sum(self.answers) / max(1, len(self.answers))
        did = f"{self.presses} keys, {self.texts} texts, {len(self.answers)} answers"
        return f"{did} in {mean:.0f} ms each, {slowest:.0f} ms at most"


def manage(site: RunningSite, *arguments: str) -> None:
    environment = {**os.environ, "ELEANOR_VAR": str(site.var), "DJANGO_SETTINGS_MODULE": "eleanor_site.settings"}
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, check=True, timeout=120)


def sign_in(page: Page, site: RunningSite, role: str) -> None:
    page.goto(f"{site.url}/account/sign-in")
    page.locator("[name=email]").fill(f"{role}@demo.example")
    page.locator("[name=password]").fill(site.password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


@pytest.fixture(scope="module")
def samples(running_site: RunningSite) -> RunningSite:
    """The site with real conversations and a first release in its second tenant."""
    manage(running_site, "import_chats", "--tenant", "sandbox", str(SAMPLE))
    manage(running_site, "shell", "-c", FIRST_RELEASE)
    return running_site


@pytest.fixture(params=["en", "fr"])
def reader(request: pytest.FixtureRequest, chromium: Browser, console: ConsoleGuard) -> Iterator[tuple[str, Page]]:
    context = chromium.new_context(locale=request.param, viewport={"width": 1440, "height": 900})
    context.on("page", console.watch)
    yield request.param, context.new_page()
    context.close()
    assert console.unexpected() == []


@needs_shared
def test_from_a_bad_answer_to_a_live_rule_and_back(
    reader: tuple[str, Page], samples: RunningSite, record_property: Callable[[str, object], None]
) -> None:
    language, page = reader
    code = f"ANNOUNCED-{language.upper()}"
    sign_in(page, samples, "admin")
    page.goto(f"{samples.url}/t/sandbox/")
    assert page.locator("html").get_attribute("lang") == language
    hands = Hands(page)

    # Find the turn where the agent announced something and stopped.
    hands.press("/")
    hands.type('"Let me check the other orders"')
    hands.press("Enter")
    expect(page.locator("tr[data-item]").first).to_be_visible()
    hands.press("j", "Enter")
    expect(page.locator("#inspector")).to_be_visible()
    for _point in range(60):
        if "Let me check the other orders" in page.locator("#inspector").inner_text():
            break
        hands.press("]")
        page.wait_for_load_state()
    expect(page.locator("#inspector")).to_contain_text("Let me check the other orders")

    # Write a rule for it.
    hands.press("g", "r")
    page.wait_for_url("**/rules/")
    hands.go("a[href$='/rules/new']")
    hands.press("Enter")
    page.wait_for_url("**/rules/new")
    hands.go("#id_code")
    hands.type(code)
    hands.go("#id_expression")
    hands.type(EXPRESSION)
    expect(page.locator("#headline-fires, #effect-numbers .headline-value").first).to_have_text("10")
    hands.press("Escape")
    hands.go("#id_prompt_en")
    hands.type("Do it now with a tool call.")
    page.wait_for_load_state("networkidle")
    hands.press("Control+s")
    page.wait_for_url(f"**/rules/{code}/edit*")

    # See the effect, point by point, and keep one as a test.
    expect(page.locator("#headline-fires .headline-value")).to_have_text("10")
    expect(page.locator(".set-row").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    hands.press("Alt+4")
    page.wait_for_url("**set=fires**")
    expect(page.locator("#tab-fires")).to_have_attribute("aria-current", "true")
    expect(page.locator(".set-row")).to_have_count(10)
    hands.press("j", "Enter")
    expect(page.locator("#why-title")).to_be_focused()
    expect(page.locator("#why .why mark, #why .message-text mark").first).to_be_visible()
    expect(page.locator("#preview .added")).to_contain_text("Do it now with a tool call.")
    hands.go("#test-fire")
    hands.press("Enter")
    expect(page.locator("#tests .test-list .state-good")).to_have_count(1)

    # Publish, and see it live.
    page.wait_for_load_state("networkidle")
    hands.go("#to-publish")
    hands.press("Enter")
    page.wait_for_url("**/publish")
    expect(page.locator("#gate-tests .state-good")).to_be_visible()
    hands.go("#id_note")
    hands.type("It announces an action and stops.")
    hands.go("button[value=now]")
    hands.press("Enter")
    page.wait_for_url(f"**/rules/{code}/")
    hands.press("g", "r")
    row = page.locator("tr[data-item]").filter(has=page.locator("code", has_text=code))
    expect(row.locator(".state-good")).to_be_visible()

    # Take it back.
    hands.go("a[href$='/releases/']")
    hands.press("Enter")
    page.wait_for_url("**/releases/")
    hands.press("j", "j", "Enter")
    page.wait_for_url("**/releases/*/")
    hands.go("form[action$='roll-back'] button")
    hands.press("Enter")
    page.wait_for_load_state()
    expect(page.locator("tr[data-item]")).not_to_contain_text([code])
    record_property("journey", hands.report)
    print(f"\n{language}: {hands.report}")


def test_a_typo_is_found_and_mended(page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site, "author")
    page.goto(f"{running_site.url}/t/demo/rules/new")
    area = page.locator("#id_expression")
    area.focus()
    page.keyboard.insert_text("ctx.mutated && ctx.no_progres > 2")
    problem = page.locator("#id_expression_diagnostics [data-caret]")
    expect(problem).to_have_count(1)
    problem.click()
    expect(area).to_be_focused()
    assert page.evaluate("[document.activeElement.selectionStart, document.activeElement.selectionEnd]") == [15, 29]
    page.locator("[data-repair]").click()
    expect(area).to_have_value("ctx.mutated && ctx.no_progress_rounds > 2")
    expect(problem).to_have_count(0)
    expect(page.locator("#effect-numbers .headline-value").first).to_have_text("0")


def test_two_browsers_on_one_rule_lose_nothing(
    chromium: Browser, running_site: RunningSite, console: ConsoleGuard
) -> None:
    console.allow("409")
    contexts: list[BrowserContext] = [chromium.new_context() for _person in range(2)]
    for context in contexts:
        context.on("page", console.watch)
    hers, his = (context.new_page() for context in contexts)
    sign_in(hers, running_site, "author")
    hers.goto(f"{running_site.url}/t/demo/rules/new")
    hers.locator("#id_code").fill("PAIR-01")
    hers.locator("#id_expression").fill("ctx.mutated")
    hers.locator("#id_prompt_en").fill("First.")
    hers.keyboard.press("Control+s")
    hers.wait_for_url("**/rules/PAIR-01/edit*")
    sign_in(his, running_site, "publisher")
    his.goto(f"{running_site.url}/t/demo/rules/PAIR-01/edit")

    hers.locator("#id_prompt_en").fill("Her words.")
    expect(hers.locator("#saved")).to_contain_text("Draft 2")
    his.locator("#id_title_en").fill("His title")
    his.locator("#id_prompt_en").fill("His words.")
    compare = his.get_by_role("button", name="Compare and choose")
    expect(compare).to_be_visible()
    compare.click()
    expect(his.locator("#conflict")).to_contain_text("Her words.")
    expect(his.locator("#conflict")).to_contain_text("His words.")
    expect(his.locator("#conflict")).to_contain_text("First.")
    his.locator("#both-prompt_en-choice").check()
    his.locator("#both-prompt_en").fill("Her words. His words.")
    his.get_by_role("button", name="Save what is chosen").click()
    his.wait_for_url("**/edit*")
    expect(his.locator("#id_title_en")).to_have_value("His title")
    expect(his.locator("#id_prompt_en")).to_have_value("Her words. His words.")

    # What she typed meanwhile meets the same question.
    hers.locator("#id_title_fr").fill("Son titre")
    expect(hers.get_by_role("button", name="Compare and choose")).to_be_visible()
    hers.reload()
    expect(hers.locator("#id_title_fr")).to_have_value("Son titre")
    for context in contexts:
        context.close()
    assert console.unexpected() == []


def test_a_slow_save_is_no_conflict_with_oneself(page: Page, running_site: RunningSite, console: ConsoleGuard) -> None:
    """What is saved while another save is on its way waits for it, and goes on from what that one came to."""
    # The page is left while numbers and samples are on their way.
    console.allow("htmx:(sendAbort|sendError|afterRequest|oobErrorNoTarget)")
    sign_in(page, running_site, "author")
    page.goto(f"{running_site.url}/t/demo/rules/new")
    page.locator("#id_code").fill("SLOW-01")
    page.locator("#id_expression").fill("ctx.mutated")
    page.locator("#id_prompt_en").fill("Go on.")
    page.keyboard.press("Control+s")
    page.wait_for_url("**/rules/SLOW-01/edit*")

    held: list[Route] = []
    sent: list[str] = []

    def hold_the_first(route: Route) -> None:
        if route.request.method == "POST":
            sent.append(route.request.post_data or "")
            if not held:
                held.append(route)
                return
        route.continue_()

    page.route("**/rules/SLOW-01/edit", hold_the_first)
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/SLOW-01/edit")):
        page.locator("#id_title_en").fill("One")
    page.locator("#id_title_en").fill("One two")
    page.keyboard.press("Control+s")
    page.locator("#id_title_fr").fill("Un deux")
    page.keyboard.press("Control+s")
    assert len(sent) == 1
    held[0].continue_()
    expect(page.locator("#saved")).to_contain_text("Draft 3")
    expect(page.get_by_role("button", name="Compare and choose")).to_have_count(0)
    assert len({body.split("revision=")[1].split("&")[0] for body in sent[:2]}) == 2
    page.unroute("**/rules/SLOW-01/edit")
    page.reload()
    expect(page.locator("#id_title_en")).to_have_value("One two")
    expect(page.locator("#id_title_fr")).to_have_value("Un deux")

    # What was typed a moment ago is saved before the page that shows the draft is opened.
    page.locator("#id_prompt_en").fill("Go on, please.")
    page.locator("#to-publish").click()
    page.wait_for_url("**/SLOW-01/publish")
    page.goto(f"{running_site.url}/t/demo/rules/SLOW-01/edit")
    expect(page.locator("#id_prompt_en")).to_have_value("Go on, please.")


def test_the_address_shows_a_colleague_the_same_rows(chromium: Browser, page: Page, running_site: RunningSite) -> None:
    sign_in(page, running_site, "author")
    page.goto(f"{running_site.url}/t/demo/rules/EAI-GOV-07/edit")
    page.locator("#id_expression").fill('ctx.final_text.contains("I will fix it now")')
    expect(page.locator("#saved")).to_contain_text("Draft")
    page.locator("#tab-fires").click()
    expect(page.locator("#tab-fires")).to_have_attribute("aria-current", "true")
    rows = page.locator(".set-row").all_inner_texts()
    assert rows
    page.wait_for_url("**draft=*set=fires*")
    address = page.url.replace("/edit?", "/effect?")

    context = chromium.new_context(java_script_enabled=False)
    colleague = context.new_page()
    sign_in(colleague, running_site, "viewer")
    colleague.goto(address)
    assert colleague.locator(".set-row").all_inner_texts() == rows
    colleague.locator(".set-row").first.click()
    expect(colleague.locator("#why-title")).to_be_visible()
    context.close()
    page.goto(f"{running_site.url}/t/demo/rules/EAI-GOV-07/edit")
    page.get_by_role("button", name="Discard the draft").click()
    page.wait_for_url("**/rules/")

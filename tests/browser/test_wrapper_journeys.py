"""A wrapper tuned and compared: while typing, by keyboard alone, two at once, with broken templates."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_main_journey import sign_in
from tests.chromium import ConsoleGuard
from tests.running_site import RunningSite

pytestmark = pytest.mark.browser

TEMPLATE = (
    "{% for m in messages %}\n<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\n"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Answers with an error status are meant here, and the browser writes a line about each.
REFUSALS = r"status of 4\d\d"


@pytest.fixture
def author_page(page: Page, running_site: RunningSite) -> Page:
    sign_in(page, running_site, "author")
    return page


def new_wrapper(page: Page, site: RunningSite, name: str, *, source: str = "Qwen", template: str = "") -> str:
    """The address of the editor of a new wrapper, which is open then."""
    page.goto(f"{site.url}/t/demo/wrappers/new")
    page.get_by_label("Name", exact=True).fill(name)
    if template:
        page.get_by_label("Chat template").fill(template)
    else:
        page.get_by_label("Start with").select_option(label=source)
    page.get_by_role("button", name="Create wrapper").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_label("Chat", exact=True).select_option("sample")
    expect(page.locator("#message-list")).to_contain_text("warmer in Lyon")
    return page.url


def test_an_edit_is_previewed_while_typing_and_saved_by_itself(author_page: Page, running_site: RunningSite) -> None:
    page = author_page
    address = new_wrapper(page, running_site, "Typed")
    prefix = page.get_by_role("group", name="Prefix").first
    prefix.get_by_label("Text of part 1").fill("<my_call>")
    expect(page.locator("#rendered")).to_contain_text("<my_call>")
    expect(page.locator("#rendered").get_by_role("img", name="special token <my_call>").first).to_be_visible()
    expect(prefix.get_by_text("changed")).to_be_visible()
    expect(page.locator("#saved")).to_contain_text("Draft 2")
    page.goto(address)
    expect(page.get_by_role("group", name="Prefix").first.get_by_label("Text of part 1")).to_have_value("<my_call>")
    page.get_by_role("button", name="Reset Prefix").first.click()
    expect(page.get_by_role("group", name="Prefix").first.get_by_text("inherited")).to_be_visible()
    expect(page.locator("#rendered")).not_to_contain_text("<my_call>")


def test_broken_json_marks_the_place_and_keeps_the_preview(
    author_page: Page, running_site: RunningSite, console: ConsoleGuard
) -> None:
    console.allow(REFUSALS)
    page = author_page
    new_wrapper(page, running_site, "In JSON")
    page.get_by_role("button", name="JSON", exact=True).click()
    area = page.get_by_label("Settings as JSON")
    good = area.input_value()
    area.fill(good.replace('"supportsSystemMessages":', '"supportsSystemMessages"'))
    problem = page.locator("#id_settings_json_diagnostics").get_by_role("listitem")
    expect(problem).to_contain_text("a colon is missing here")
    expect(problem).to_contain_text("line 2")
    expect(page.locator("#preview-status")).to_contain_text("the last value that could be read")
    expect(page.locator("#rendered")).to_contain_text("warmer in Lyon")
    area.fill(good.replace("<tool_call>", "<json_call>"))
    expect(page.locator("#rendered")).to_contain_text("<json_call>")
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_role("group", name="Prefix").first.get_by_label("Text of part 1")).to_have_value("<json_call>")


def test_parts_are_written_by_keyboard_alone(author_page: Page, running_site: RunningSite) -> None:
    page = author_page
    new_wrapper(page, running_site, "By keyboard")
    suffix = page.get_by_role("group", name="Suffix").first
    suffix.get_by_role("button", name="Add a part").focus()
    page.keyboard.press("Enter")
    added = suffix.get_by_label(re.compile("Text of part")).last
    expect(added).to_be_focused()
    page.keyboard.type("typed")
    expect(page.locator("#rendered")).to_contain_text("typed")
    page.keyboard.press("Tab")
    expect(suffix.get_by_role("button", name=re.compile("Move part . of Suffix up")).last).to_be_focused()
    page.keyboard.press("Enter")
    expect(suffix.get_by_label("Text of part 1")).not_to_have_value("")
    moved = suffix.get_by_label(re.compile("Text of part")).nth(-2)
    expect(moved).to_have_value("typed")
    page.keyboard.press("Control+s")
    expect(page.locator("#saved")).to_contain_text(re.compile("Draft [2-9]"))


def test_an_error_in_a_template_is_shown_at_its_line_and_mended(author_page: Page, running_site: RunningSite) -> None:
    page = author_page
    new_wrapper(page, running_site, "A template", template=TEMPLATE)
    area = page.get_by_label("Chat template")
    expect(page.locator("#rendered")).to_contain_text("warmer in Lyon")
    area.press("Control+End")
    page.keyboard.type("\n{% endfor %}")
    problem = page.locator("#id_template_diagnostics").get_by_role("listitem")
    expect(problem).to_contain_text("line 7")
    expect(page.locator("#preview-status")).to_contain_text("Below is the last preview that worked.")
    expect(page.locator("#rendered")).to_contain_text("warmer in Lyon")
    for _ in "\n{% endfor %}":
        page.keyboard.press("Backspace")
    expect(problem).to_have_count(0)
    expect(page.locator("#preview-status .stale")).to_have_count(0)


def test_a_template_without_end_shows_its_limit_and_the_next_keystroke_works(
    author_page: Page, running_site: RunningSite
) -> None:
    page = author_page
    new_wrapper(page, running_site, "Without end", template=TEMPLATE)
    area = page.get_by_label("Chat template")
    area.fill("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
    expect(page.locator("#preview-status")).to_contain_text("second of computing time")
    expect(page.locator("#rendered")).to_contain_text("warmer in Lyon")
    area.fill("BACK " + TEMPLATE)
    expect(page.locator("#rendered")).to_contain_text("BACK")
    expect(page.locator("#preview-status .stale")).to_have_count(0)


def test_line_span_and_message_light_up_together(author_page: Page, running_site: RunningSite) -> None:
    page = author_page
    new_wrapper(page, running_site, "Provenance", template=TEMPLATE)
    message = page.locator("#message-list").get_by_role("link").nth(1)
    message.focus()
    span = page.locator("#rendered [data-lit]", has_text="warmer in Lyon")
    expect(span).to_be_visible()
    line = span.first.get_attribute("data-line")
    expect(page.locator(f".code-lines [data-line='{line}']")).to_have_attribute("data-lit", "")
    span.first.click()
    expect(page.get_by_label("Chat template")).to_be_focused()
    expect(page.locator(f".code-lines [data-line='{line}']")).to_have_attribute("data-lit", "")


def test_two_people_lose_nothing(
    author_page: Page, chromium: Browser, running_site: RunningSite, console: ConsoleGuard
) -> None:
    console.allow(REFUSALS)
    mine = author_page
    address = new_wrapper(mine, running_site, "Shared")
    other = chromium.new_context()
    theirs = other.new_page()
    sign_in(theirs, running_site, "publisher")
    theirs.goto(address)
    theirs.get_by_label("Model", exact=True).fill("their model")
    theirs.get_by_role("button", name="Save draft").last.click()
    expect(theirs.locator("#saved")).to_contain_text("Draft 2")
    other.close()
    mine.get_by_role("group", name="Prefix").first.get_by_label("Text of part 1").fill("<mine>")
    expect(mine.locator("#saved")).to_contain_text("Nothing is overwritten")
    mine.get_by_role("button", name="Compare and decide").click()
    expect(mine.get_by_role("heading", level=1)).to_contain_text("Two versions of Shared")
    mine.get_by_role("group", name="model_name").get_by_label("Theirs").check()
    mine.get_by_role("button", name="Save this choice").click()
    expect(mine.get_by_label("Model", exact=True)).to_have_value("their model")
    expect(mine.get_by_role("group", name="Prefix").first.get_by_label("Text of part 1")).to_have_value("<mine>")


def test_side_by_side_on_one_chat(author_page: Page, running_site: RunningSite) -> None:
    page = author_page
    page.goto(f"{running_site.url}/t/demo/wrappers/preview?m=ChatMLChatWrapper&chat=sample&canonical=1")
    page.get_by_label("Wrapper 2").select_option(label="Llama 3 (built-in)")
    expect(page.locator("#column-2")).to_contain_text("<|eot_id|>")
    expect(page).to_have_url(re.compile("m=Llama3ChatWrapper"))
    assert page.locator("#column-1 mark.differs").count() > 0
    message = page.locator("#columns .message[data-message='1']")
    message.focus()
    for column in ("#column-1", "#column-2"):
        expect(page.locator(f"{column} [data-message='1'][data-active]").first).to_be_visible()
    page.get_by_label("White space everywhere").check()
    assert page.locator("#column-1 .space-mark").count() > 0
    page.get_by_label("or words of your own").fill("Go on.")
    expect(page.locator("#column-1 .added")).to_contain_text("Go on.")


@pytest.mark.parametrize("path", ["", "new", "which", "preview", "QwenChatWrapper/"])
def test_pages_work_without_script(chromium: Browser, running_site: RunningSite, path: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, running_site, "author")
    page.goto(f"{running_site.url}/t/demo/wrappers/{path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    context.close()

"""Contrast of every pair of colours that carries text or shapes, in both themes (look.md; WCAG 2.2)."""

import gzip
import re
from pathlib import Path

import django_htmx
import pytest

ROOT = Path(__file__).resolve().parents[2]
CSS = ROOT / "static" / "css"
JS = ROOT / "static" / "js"
TOKENS = (CSS / "tokens.css").read_text()
THEMES = ("light", "dark")

SURFACES = ("bg", "panel", "sunken", "hover", "selected")
TEXT_PAIRS = [
    *((text, surface) for text in ("text", "muted") for surface in SURFACES),
    *((text, surface) for text in ("accent", "fires", "capped", "error") for surface in ("bg", "panel", "sunken")),
    *(("shadowed", surface) for surface in ("bg", "panel", "sunken")),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("accent-strong", "panel"),
    ("fires", "nudge"),
    ("text", "nudge"),
    ("muted", "nudge"),
    ("capped", "capped-surface"),
    ("error", "error-surface"),
    ("text", "error-surface"),
    ("special", "special-surface"),
    ("special", "panel"),
    ("special", "sunken"),
    ("text", "match"),
    ("bg", "text"),
]
# On the selected row the state colours stand beside a word in the text colour; 4.5 is the floor for all of them.
SELECTED_PAIRS = [(text, "selected") for text in ("accent", "fires", "capped", "error", "shadowed")]
SHAPE_PAIRS = [
    *((f"series-{number}", surface) for number in range(1, 9) for surface in ("panel", "bg")),
    *(("control-line", surface) for surface in ("bg", "panel", "sunken")),
    *(("accent", surface) for surface in (*SURFACES, "nudge")),
]


def colours() -> dict[str, tuple[str, str]]:
    """Token → (light, dark), from the first, unconditional block of tokens.css."""
    block = TOKENS.split("}", 1)[0]
    found = re.findall(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)", block)
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def contrast_of(text: str, surface: str, theme: str) -> float:
    at = THEMES.index(theme)
    known = colours()
    return contrast(known[text][at], known[surface][at])


def test_contrast_of_published_examples():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("text", "surface"), TEXT_PAIRS)
def test_text_reads_on_its_surface(text, surface, theme):
    assert contrast_of(text, surface, theme) >= 5.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("text", "surface"), SELECTED_PAIRS)
def test_state_words_read_on_a_selected_row(text, surface, theme):
    assert contrast_of(text, surface, theme) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("shape", "surface"), SHAPE_PAIRS)
def test_shapes_and_control_borders_stand_out(shape, surface, theme):
    assert contrast_of(shape, surface, theme) >= 3.0


def test_the_agreed_colours_are_the_ones_in_use():
    agreed = {
        "bg": ("#fbfaf8", "#15171b"),
        "panel": ("#ffffff", "#1c1f25"),
        "sunken": ("#f3f1ec", "#111317"),
        "text": ("#1f2328", "#e8e6e1"),
        "muted": ("#5b616b", "#a3a9b4"),
        "accent": ("#3b4cca", "#9aa8ff"),
        "fires": ("#0f6e4f", "#5fd0a4"),
        "error": ("#b3261e", "#ff8a80"),
    }
    assert {name: colours()[name] for name in agreed} == agreed


@pytest.mark.parametrize("sheet", ["base.css", "components.css", "pages.css"])
def test_colours_come_from_tokens_only(sheet):
    rules = re.sub(r"/\*.*?\*/", "", (CSS / sheet).read_text(), flags=re.S)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*;)|\brgba?\(|\bhsla?\(", rules) == []


@pytest.mark.parametrize("sheet", ["base.css", "components.css", "pages.css"])
def test_every_token_that_is_used_exists(sheet):
    defined = set(re.findall(r"(--[\w-]+):", TOKENS))
    assert set(re.findall(r"var\((--[\w-]+)", (CSS / sheet).read_text())) <= defined


def test_nothing_is_fetched_from_elsewhere():
    for path in (*CSS.glob("*.css"), *JS.glob("*.js")):
        assert not re.search(r"url\(|@import|https?://", path.read_text()), path.name


def test_first_page_weighs_at_most_60_kilobytes():
    htmx = Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js"
    files = [*CSS.glob("*.css"), *JS.glob("*.js"), htmx]
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) <= 60_000


def test_scripts_hold_nothing_that_the_policy_forbids():
    for path in JS.glob("*.js"):
        text = path.read_text()
        assert not re.search(
            r"\beval\(|new Function|innerHTML\s*=|outerHTML\s*=|insertAdjacentHTML|\.style\s*=", text
        ), path.name

"""English and French are equal: everything that is marked for translation is translated, and compiled."""

from __future__ import annotations

import gettext
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.template import Context, Template
from django.utils import translation

from tests.translations import (
    CATALOGUE,
    Catalogue,
    Message,
    compiled,
    messages_in_code,
    messages_in_template,
    read_catalogue,
    write_catalogue,
)

CODE = messages_in_code()
FRENCH = read_catalogue()


def test_every_message_has_a_french_entry() -> None:
    missing = [message.text for key, message in CODE.items() if key not in FRENCH.messages]
    assert missing == []


def test_no_entry_is_empty_or_fuzzy() -> None:
    assert [message.text for message in FRENCH.messages.values() if not message.is_complete] == []


def test_plural_forms_are_where_the_code_asks_for_them() -> None:
    wrong = [m.text for key, m in CODE.items() if key in FRENCH.messages and FRENCH.messages[key].plural != m.plural]
    assert wrong == []


def test_placeholders_are_the_same_in_both_languages() -> None:
    wrong = {m.text: m.wrong_placeholders() for m in FRENCH.messages.values() if m.wrong_placeholders()}
    assert wrong == {}


def test_tags_are_the_same_in_both_languages() -> None:
    def tags(text: str) -> list[str]:
        return sorted(re.findall(r"</?\w+[^>]*>", text))

    wrong = [m.text for m in FRENCH.messages.values() for t in m.translations if tags(t) != tags(m.text)]
    assert wrong == []


def test_french_typography() -> None:
    """No ordinary space before double signs or inside of guillemets, and no typewriter apostrophe."""
    wrong = re.compile(r" [:;!?»](?!\w)|« |\w'\w")
    assert [t for m in FRENCH.messages.values() for t in m.translations if wrong.search(t)] == []


def test_the_compiled_file_is_the_catalogue() -> None:
    assert CATALOGUE.with_suffix(".mo").read_bytes() == compiled(FRENCH)


def test_the_compiled_file_reads_as_the_catalogue() -> None:
    """Python's own reader finds each translation, and French takes zero for singular."""
    found = gettext.GNUTranslations(io.BytesIO(compiled(FRENCH)))
    for message in (m for m in FRENCH.messages.values() if m.is_complete):
        if message.plural:
            assert found.ngettext(message.text, message.plural, 0) == message.translations[0]
            assert found.ngettext(message.text, message.plural, 2) == message.translations[1]
        elif message.context:
            assert found.pgettext(message.context, message.text) == message.translations[0]
        else:
            assert found.gettext(message.text) == message.translations[0]


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="no msgfmt on this machine; it is only a second opinion")
def test_gettexts_own_tools_accept_the_catalogue(tmp_path: Path) -> None:
    done = subprocess.run(
        ["msgfmt", "--check-format", "--check-header", "-o", str(tmp_path / "out.mo"), str(CATALOGUE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out.mo").open("rb") as theirs:
        ours = gettext.GNUTranslations(io.BytesIO(compiled(FRENCH)))
        assert vars(gettext.GNUTranslations(theirs))["_catalog"] == vars(ours)["_catalog"]


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    texts = ["plain", 'quotes " and \\ and \t', "two\nlines\n", "line\n", "%(n)s <b>é</b>\u00a0:", "a\u2028b\x85c"]
    messages = [Message(text, translations=(text.upper(),), places=("a.py", "b.py")) for text in texts]
    messages.append(Message("one", context="c", plural="%(n)s", translations=("un", "deux"), fuzzy=True))
    path = tmp_path / "django.po"
    header = "Language: fr\nContent-Type: text/plain; charset=UTF-8\n"
    written = Catalogue("# a comment", header, {m.key: m for m in messages})
    write_catalogue(written, path)
    assert read_catalogue(path) == written


def test_a_page_finds_its_words() -> None:
    """What the reader of templates takes out is what templates ask for, percent signs and trimmed blocks included."""
    source = """{% load i18n %}{% translate "100 % sure" %}|{% blocktranslate trimmed count n=n %}
        One of {{ total }} %
        {% plural %}
        {{ n }} of {{ total }} %
    {% endblocktranslate %}|{{ _("plain") }}|{% translate "as" context "word" %}"""
    keys = [(m.context, m.text, m.plural) for m in messages_in_template(source)]
    assert keys == [
        ("", "100 %% sure", ""),
        ("", "One of %(total)s %%", "%(n)s of %(total)s %%"),
        ("", "plain", ""),
        ("word", "as", ""),
    ]
    with translation.override("fr"):
        assert Template(source).render(Context({"n": 2, "total": 3})) == "100 % sure|2 of 3 %|plain|as"

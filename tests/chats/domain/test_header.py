"""The Eleanor header (canonical-chat.md section 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chats.domain import CanonicalChat, EleanorFrameworkHeader, SessionResourceSettings
from chats.domain.header import HEADER_PATTERN

text = st.text(st.characters(exclude_categories=("Cs",)))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
settings_objects = st.dictionaries(text.filter(lambda k: k.isidentifier() and not k.startswith("model_")), json_values)
headers = st.builds(
    EleanorFrameworkHeader,
    source=st.none() | text,
    user=st.none() | text,
    char=st.none() | text,
    session=st.none() | text,
    chat_type=st.none() | st.sampled_from(["single", "group", "trio"]),
    session_settings=st.none() | settings_objects.map(SessionResourceSettings.model_validate),
)


@given(headers)
def test_round_trip(header):
    assert EleanorFrameworkHeader.from_header(header.to_header()) == header


@given(headers)
def test_a_written_header_is_one_that_chats_find(header):
    chat = CanonicalChat()
    chat.append_header(header)
    message, value, index = chat.parse_system_message(
        HEADER_PATTERN, None, lambda groups: EleanorFrameworkHeader.model_validate_json(groups[0])
    )
    assert (message, value, index) == (chat.messages[0], header, 0)


def test_all_fields_stand_on_one_line_in_order_and_unescaped():
    header = EleanorFrameworkHeader(user="Zoë", session_settings=SessionResourceSettings.model_validate({"a": [1]}))
    assert header.to_header() == (
        'ELEANOR_SYSTEM {"source": null, "user": "Zoë", "char": null, "session": null, "chat_type": null, '
        '"session_settings": {"a": [1]}}'
    )
    assert EleanorFrameworkHeader().to_header().count("null") == 6


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ("ELEANOR_SYSTEM {}", None),
        ('ELEANOR_SYSTEM{"source": "ST"}', "ST"),
        ('\n ELEANOR_SYSTEM \n {"source":\n"ST"} \n', "ST"),
        ('ELEANOR_SYSTEM {"source": "first", "source": "last"}', "last"),
        ('ELEANOR_SYSTEM {"source": "{{user}}"}', "{{user}}"),
    ],
)
def test_accepted(given, source):
    assert EleanorFrameworkHeader.from_header(given) == EleanorFrameworkHeader(source=source)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "ELEANOR_SYSTEM",
        "eleanor_system {}",
        "Say ELEANOR_SYSTEM {}",
        "ELEANOR_SYSTEM []",
        'ELEANOR_SYSTEM "text"',
        "ELEANOR_SYSTEM {} and more",
        "ELEANOR_SYSTEM {} {}",
    ],
)
def test_no_header(given):
    with pytest.raises(ValueError, match=r"header|JSON|Header"):
        EleanorFrameworkHeader.from_header(given)


@pytest.mark.parametrize(
    "given",
    [
        "ELEANOR_SYSTEM {source: 1}",
        "ELEANOR_SYSTEM {“source”: “ST”}",
        'ELEANOR_SYSTEM {"source": "ST"',
        'ELEANOR_SYSTEM {"sauce": "ST"}',
        'ELEANOR_SYSTEM {"source": 7}',
        'ELEANOR_SYSTEM {"session_settings": []}',
        'ELEANOR_SYSTEM {"session_settings": "text"}',
    ],
)
def test_wrong_json_keys_and_types_are_validation_errors(given):
    with pytest.raises(ValidationError):
        EleanorFrameworkHeader.from_header(given)


def test_construction_is_strict_and_closed():
    with pytest.raises(ValidationError):
        EleanorFrameworkHeader(source=1)
    with pytest.raises(ValidationError):
        EleanorFrameworkHeader(unknown="x")
    assert EleanorFrameworkHeader(chat_type="choir").chat_type == "choir"


def test_session_settings_keep_unknown_keys():
    header = EleanorFrameworkHeader.from_header('ELEANOR_SYSTEM {"session_settings": {"depth": 3, "x": {"y": null}}}')
    assert header.session_settings is not None
    assert header.session_settings.model_dump() == {"depth": 3, "x": {"y": None}}

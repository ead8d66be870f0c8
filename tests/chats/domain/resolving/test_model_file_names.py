"""Parts of model file names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.resolving.model_file_names import parse_model_file_name


def test_all_parts_of_a_name() -> None:
    assert parse_model_file_name("acme-coder-7b-32k-v1.5-instruct-Q4_K_M-00001-of-00003.gguf").to_json() == {
        "name": "acme",
        "subType": "coder",
        "parameters": "7B",
        "contextSize": "32K",
        "version": "v1.5",
        "otherInfo": ["instruct"],
        "quantization": "Q4_K_M",
        "fileType": "gguf",
        "parts": {"part": "00001", "parts": "00003"},
    }


@pytest.mark.parametrize(
    ("file_name", "quantization"),
    [
        ("a-7B.q8_0.gguf", "Q8_0"),
        ("a-7B.unknown.gguf", None),
        ("a IQ3_XXS b.gguf", "IQ3_XXS"),
        ("a-7B.f16.x.gguf", "F16"),
        ("COPY-7b.COPY.gguf", None),
    ],
)
def test_quantizations_are_known_names_only(file_name: str, quantization: str | None) -> None:
    assert parse_model_file_name(file_name).quantization == quantization


@given(st.text())
def test_any_text_has_an_answer(file_name: str) -> None:
    parsed = parse_model_file_name(file_name)
    assert (parsed.part is None) == (parsed.parts is None)

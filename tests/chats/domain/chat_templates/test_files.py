"""Templates out of model files. GGUF files are written by the gguf package itself."""

import json

import pytest
from gguf import GGUFEndian, GGUFWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.domain.chat_templates import MAX_TEMPLATE_BYTES
from chats.domain.chat_templates.files import TemplateFileError, read_file, read_folder, read_gguf, read_pasted

TEXT = "  {{ bos_token }}é\r\n{% for m in messages %}{{ m.content }}{% endfor %}\n\n"


def config(**fields):
    return json.dumps(fields, ensure_ascii=False).encode()


def code_of(call, *arguments):
    with pytest.raises(TemplateFileError) as caught:
        call(*arguments)
    return caught.value.code


def result_code(content):
    try:
        read_gguf(content)
    except TemplateFileError as error:
        return error.code
    return "read"


def test_a_template_file_is_kept_byte_for_byte():
    assert read_file("anything.jinja", TEXT.encode()).templates == {"default": TEXT}


def test_pasted_text_loses_nothing_but_the_carriage_returns_of_forms():
    assert read_pasted(TEXT).templates == {"default": TEXT.replace("\r\n", "\n")}
    assert read_pasted("a\rb").templates == {"default": "a\rb"}


def test_a_configuration_has_a_template_and_tokens_in_both_forms():
    found = read_file(
        "tokenizer_config.json",
        config(chat_template=TEXT, bos_token="<s>", eos_token={"content": "</s>", "lstrip": False}, pad_token=None),
    )
    assert found.templates == {"default": TEXT}
    assert found.tokens == {"bos_token": "<s>", "eos_token": "</s>"}


def test_a_configuration_has_named_templates():
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    assert read_file("tokenizer_config.json", config(chat_template=named)).templates == {
        "default": "d",
        "tool_use": "t",
    }


def test_template_files_win_over_the_configuration_and_keep_its_tokens():
    found = read_folder(
        {
            "tokenizer_config.json": config(chat_template="old", bos_token="<s>"),
            "chat_template.jinja": b"new",
            "additional_chat_templates/rag.jinja": b"rag",
            "model.safetensors": b"\xff",
        }
    )
    assert found.templates == {"default": "new", "rag": "rag"}
    assert found.tokens == {"bos_token": "<s>"}
    assert [r.code for r in found.remarks] == ["config_template_replaced"]


def test_the_file_of_older_processors():
    assert read_file("chat_template.json", config(chat_template="p")).templates == {"default": "p"}


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("tokenizer_config.json", b"{", "not_json"),
        ("tokenizer_config.json", b"[" * 100_000, "not_json"),
        ("tokenizer_config.json", b"[]", "wrong_shape"),
        ("tokenizer_config.json", b"{}", "no_template"),
        ("tokenizer.json", config(model={"vocab": {}}), "no_template"),
        ("tokenizer_config.json", config(chat_template=3), "wrong_shape"),
        ("tokenizer_config.json", config(chat_template=[{"name": "a"}]), "wrong_shape"),
        ("tokenizer_config.json", b'{"chat_template": "a\\ud800"}', "lone_surrogate"),
        ("tokenizer_config.json", b'{"chat_template": "a\\u0000"}', "nul_character"),
        ("chat_template.jinja", b"a\xffb", "not_utf8"),
        ("chat_template.jinja", b"", "empty"),
        ("chat_template.jinja", b"x" * 10_000_000, "too_large"),
        ("tokenizer_config.json", config(chat_template="é" * (MAX_TEMPLATE_BYTES // 2 + 1)), "too_large"),
        ("model.gguf", b"GGUF", "gguf_truncated"),
        ("model.gguf", b"GGUF" + b"\x09\0\0\0" + b"\0" * 16, "gguf_damaged"),
    ],
)
def test_wrong_files_say_what_is_wrong(name, content, code):
    assert code_of(read_file, name, content) == code


def test_marks_of_direction_are_pointed_at():
    found = read_file("a.jinja", "x\n{# \u202e #}".encode())
    assert [(r.code, r.args) for r in found.remarks] == [("direction_marks", {"template": "default", "line": 2})]


@pytest.fixture(params=[GGUFEndian.LITTLE, GGUFEndian.BIG], ids=["little", "big"])
def model(request, tmp_path):
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "llama", endianess=request.param)
    writer.add_name("Test model")
    writer.add_token_list([*(f"tok{i}é" for i in range(50)), "<s>", "</s>"])
    writer.add_token_scores([0.0] * 52)
    writer.add_token_merges(["a b", "c d"])
    writer.add_bos_token_id(50)
    writer.add_eos_token_id(51)
    writer.add_pad_token_id(1_000_000)
    writer.add_chat_template([{"name": "default", "template": TEXT}, {"name": "rag", "template": "r"}])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf_has_templates_tokens_and_the_model(model):
    found = read_gguf(model)
    assert found.templates == {"default": TEXT, "rag": "r"}
    assert found.tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert [(r.code, r.args) for r in found.remarks] == [("token_skipped", {"token": "pad_token"})]
    assert found.model == {"general.name": "Test model", "general.architecture": "llama"}


def test_gguf_is_recognised_by_content_and_read_to_the_end_of_its_header_only(model):
    with model.open("r+b") as file:
        # A sparse file as large as a model: only its header is there to be read.
        file.truncate(20 * 1024**3)
    assert read_file("tokenizer_config.json", model).templates == {"default": TEXT, "rag": "r"}


def test_gguf_cut_off_anywhere_is_said_to_be(model):
    whole = model.read_bytes()
    header = whole.rindex(b"rag") + len(b"rag") + 4 + 8 + 1
    end = max(header, whole.rindex(TEXT.encode()) + len(TEXT.encode()))
    for size in range(4, end, 13):
        assert code_of(read_gguf, whole[:size]) in ("gguf_truncated", "gguf_damaged")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_gguf_gives_an_error_or_a_result(data):
    counts = st.integers(0, 2**64 - 1).map(lambda n: n.to_bytes(8, "little"))
    pieces = st.one_of(counts, st.binary(max_size=20), st.sampled_from([b"\x09\0\0\0", b"\x08\0\0\0", b"\x04\0\0\0"]))
    content = b"GGUF\x03\0\0\0" + b"".join(data.draw(st.lists(pieces, max_size=12)))
    assert result_code(content).startswith(("gguf_", "no_template", "not_utf8", "empty", "read"))


def test_gguf_counts_are_not_believed(tmp_path):
    one_field = b"GGUF\x03\0\0\0" + (0).to_bytes(8, "little") + (1).to_bytes(8, "little")
    key = (1).to_bytes(8, "little") + b"k" + b"\x09\0\0\0"
    strings = key + b"\x08\0\0\0" + (2**40).to_bytes(8, "little")
    nested = key + (b"\x09\0\0\0" + (1).to_bytes(8, "little")) * 50
    assert code_of(read_gguf, one_field + strings) == "gguf_too_large"
    assert code_of(read_gguf, one_field + nested) == "gguf_too_large"

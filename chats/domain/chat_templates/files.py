"""Chat templates out of model files: tokenizer_config.json, chat_template.jinja, chat_template.json, GGUF, pasted text.

Texts are kept byte for byte, since every blank reaches the prompt (chat-templates.md, "Which template"). What a file
gives is told together with the special tokens that it defines.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from chats.domain.chat_templates import MAX_TEMPLATE_BYTES, SPECIAL_TOKEN_NAMES

DEFAULT = "default"
MAX_JSON_BYTES = 32 * 1024 * 1024
GGUF_MAGIC = b"GGUF"

TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
PROCESSOR_TEMPLATE = "chat_template.json"
TEMPLATE_FILE = "chat_template.jinja"
ADDITIONAL_FOLDER = "additional_chat_templates"

# Marks that change the order in which text is shown, so that a template reads otherwise than it works.
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")


class TemplateFileError(ValueError):
    """A file that gives no template. `code` and `args_by_name` make the sentence that is shown:

    "not_utf8" (at), "not_json" (line), "wrong_shape" (where), "no_template", "empty", "too_large" (bytes, allowed),
    "nul_character" and "lone_surrogate" (line), "gguf_truncated" and "gguf_damaged" (at), "gguf_too_large" (at).
    """

    def __init__(self, code: str, **args: str | int) -> None:
        super().__init__(code)
        self.code = code
        self.args_by_name = args


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know about a file that was read all the same; `code` and `args` make the sentence.

    "direction_marks" (template, line), "config_template_replaced", "token_skipped" (token), "name_repeated" (name).
    """

    code: str
    args: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TemplateFiles:
    """Templates by name (a single one is called "default"), the special tokens of the model, and what GGUF says about
    the model (`general.name`, `general.architecture`)."""

    templates: Mapping[str, str]
    tokens: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    model: Mapping[str, str] = field(default_factory=dict)


def read_pasted(text: str) -> TemplateFiles:
    """A text typed or pasted in a browser, where forms send CRLF for every line break: those become LF, no more."""
    text = text.replace("\r\n", "\n")
    return TemplateFiles({DEFAULT: _accepted(text)}, remarks=_remarks({DEFAULT: text}))


def read_file(name: str, content: bytes | Path) -> TemplateFiles:
    """One file of any of the kinds, told apart by content and name. Raises TemplateFileError."""
    if _head(content) == GGUF_MAGIC:
        return read_gguf(content)
    return read_folder({PurePosixPath(name).name: content})


def read_folder(files: Mapping[str, bytes | Path]) -> TemplateFiles:
    """The files of a model by their path in its folder; others than those named above are passed over.

    As transformers does it: templates of their own (`chat_template.jinja`, `additional_chat_templates/NAME.jinja`)
    replace all that the configuration has. A single file that has another name counts as what it looks like.
    Raises TemplateFileError.
    """
    config = _object(files, TOKENIZER_CONFIG) or {}
    more_tokens = _object(files, SPECIAL_TOKENS_MAP) or {}
    processor = _object(files, PROCESSOR_TEMPLATE) or {}
    own = {name: _text(files[path]) for path, name in _own_templates(files)}
    if len(files) == 1 and not own and not (config or more_tokens or processor):
        ((path, content),) = files.items()
        if path.endswith(".json"):
            config = _parsed(path, content)
        else:
            own = {DEFAULT: _text(content)}
    remarks: list[Remark] = []
    templates = own
    configured = _configured(config, remarks) or _configured(processor, remarks)
    if own and configured:
        remarks.append(Remark("config_template_replaced"))
    if not own:
        templates = configured
    if not templates:
        raise TemplateFileError("no_template")
    accepted = {name: _accepted(text) for name, text in templates.items()}
    tokens = {**_tokens(more_tokens, remarks), **_tokens(config, remarks)}
    return TemplateFiles(accepted, tokens, (*remarks, *_remarks(accepted)))


def read_gguf(content: bytes | Path) -> TemplateFiles:
    """Templates, tokens and name from the header of a GGUF file; the rest of the file is never looked at.

    A part of the file is enough if the header is in it. Raises TemplateFileError.
    """
    if isinstance(content, bytes):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(content)
            file.flush()
            return read_gguf(Path(file.name))
    from chats.domain import gguf_header

    try:
        header = gguf_header.read_header(content)
        templates = {}
        for key in header.fields:
            name = _template_name(key, gguf_header.TEMPLATE)
            raw = header.string(key) if name is not None else None
            if name is not None and raw is not None:
                templates[name] = _accepted(_decoded(raw))
        tokens, remarks = _gguf_tokens(header, gguf_header.TOKEN_IDS)
    except gguf_header.DamagedHeader as error:
        raise TemplateFileError(f"gguf_{error.code}", at=error.at) from error
    if not templates:
        raise TemplateFileError("no_template")
    model = {
        key: raw.decode("utf-8", "replace")
        for key in ("general.name", "general.architecture")
        if (raw := header.string(key)) is not None
    }
    return TemplateFiles(templates, tokens, (*remarks, *_remarks(templates)), model)


def _template_name(key: str, template_key: str) -> str | None:
    if key == template_key:
        return DEFAULT
    prefix = template_key + "."
    return key[len(prefix) :] if key.startswith(prefix) and key != prefix else None


def _gguf_tokens(header: Any, ids: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, str], list[Remark]]:
    tokens, remarks = {}, []
    for name, keys in ids.items():
        numbers = [number for key in keys if (number := header.number(key)) is not None]
        if not numbers:
            continue
        raw = header.token(numbers[0])
        try:
            if raw is None:
                raise ValueError
            tokens[name] = raw.decode("utf-8")
        except ValueError:
            remarks.append(Remark("token_skipped", {"token": name}))
    return tokens, remarks


def _head(content: bytes | Path) -> bytes:
    if isinstance(content, bytes):
        return content[: len(GGUF_MAGIC)]
    with content.open("rb") as file:
        return file.read(len(GGUF_MAGIC))


def _bytes(content: bytes | Path, allowed: int) -> bytes:
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    if size > allowed:
        raise TemplateFileError("too_large", bytes=size, allowed=allowed)
    return content if isinstance(content, bytes) else content.read_bytes()


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TemplateFileError("not_utf8", at=error.start) from error


def _text(content: bytes | Path) -> str:
    return _decoded(_bytes(content, MAX_TEMPLATE_BYTES))


def _object(files: Mapping[str, bytes | Path], name: str) -> dict[str, Any] | None:
    return _parsed(name, files[name]) if name in files else None


def _parsed(name: str, content: bytes | Path) -> dict[str, Any]:
    text = _decoded(_bytes(content, MAX_JSON_BYTES)).removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise TemplateFileError("not_json", file=name, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, brackets in brackets without end.
        raise TemplateFileError("not_json", file=name, line=1) from error
    if not isinstance(value, dict):
        raise TemplateFileError("wrong_shape", file=name, where="")
    return value


def _own_templates(files: Mapping[str, bytes | Path]) -> list[tuple[str, str]]:
    """Path and name of each template that has a file of its own."""
    found = []
    for path in sorted(files):
        parts = PurePosixPath(path).parts
        if parts == (TEMPLATE_FILE,):
            found.append((path, DEFAULT))
        elif len(parts) == 2 and parts[0] == ADDITIONAL_FOLDER and path.endswith(".jinja"):
            found.append((path, PurePosixPath(path).stem))
    return found


def _configured(config: dict[str, Any], remarks: list[Remark]) -> dict[str, str]:
    value = config.get("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {DEFAULT: value}
    if isinstance(value, dict):
        value = [{"name": name, "template": text} for name, text in value.items()]
    if not isinstance(value, list):
        raise TemplateFileError("wrong_shape", where="chat_template")
    templates: dict[str, str] = {}
    for index, entry in enumerate(value):
        name, text = (entry.get("name"), entry.get("template")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(text, str):
            raise TemplateFileError("wrong_shape", where=f"chat_template[{index}]")
        if name in templates:
            remarks.append(Remark("name_repeated", {"name": name}))
        templates[name] = text
    return templates


def _tokens(config: dict[str, Any], remarks: list[Remark]) -> dict[str, str]:
    tokens = {}
    for name in SPECIAL_TOKEN_NAMES:
        value = config.get(name)
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str) and not _SURROGATES.search(value) and "\0" not in value:
            tokens[name] = value
        elif value is not None:
            remarks.append(Remark("token_skipped", {"token": name}))
    return tokens


def _accepted(text: str) -> str:
    """The text as it is. Refused is what can't be stored exactly, in any database, or is too long to compile."""
    if not text:
        raise TemplateFileError("empty")
    surrogate = _SURROGATES.search(text)
    if surrogate:
        raise TemplateFileError("lone_surrogate", line=_line_at(text, surrogate.start()))
    size = len(text.encode("utf-8"))
    if size > MAX_TEMPLATE_BYTES:
        raise TemplateFileError("too_large", bytes=size, allowed=MAX_TEMPLATE_BYTES)
    nul = text.find("\0")
    if nul >= 0:
        raise TemplateFileError("nul_character", line=_line_at(text, nul))
    return text


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _remarks(templates: Mapping[str, str]) -> tuple[Remark, ...]:
    return tuple(
        Remark("direction_marks", {"template": name, "line": _line_at(text, mark.start())})
        for name, text in templates.items()
        if (mark := _DIRECTION_MARKS.search(text))
    )

"""What a person reads about wrappers: codes of the domain as sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chats.domain.chat_templates import TemplateFailure
from chats.domain.chat_templates.files import Remark, TemplateFileError
from chats.domain.history import LeftOut
from chats.domain.recipes import RecipeProblem
from chats.domain.resolving import Reason

Sentences = Mapping[str, str | Promise]

_LEFT_OUT: Sentences = {
    "header": gettext_lazy("a header of the framework, which no model reads"),
    "name": gettext_lazy("the participant's name: this kind of prompt has no place for names"),
    "role": gettext_lazy("the whole message: its role “%(role)s” has no place in this kind of prompt"),
    "result_without_call": gettext_lazy("a tool result that belongs to no call"),
    "second_result": gettext_lazy("another result for a call that has one already"),
}

_PROBLEMS: Sentences = {
    "unknown_key": gettext_lazy("this key isn't known"),
    "missing_key": gettext_lazy("this key is needed and missing"),
    "not_an_object": gettext_lazy("an object is needed here"),
    "not_a_boolean": gettext_lazy("true or false is needed here"),
    "not_a_text": gettext_lazy("a text is needed here: a string, or a list of parts"),
    "unknown_text_part": gettext_lazy(
        "no part of a text: a part is a string, or an object with the type specialTokensText or specialToken and a "
        "value"
    ),
    "not_a_list": gettext_lazy("a list is needed here"),
    "null_value": gettext_lazy("null is no value here; leave the key out"),
    "unknown_value": gettext_lazy("this value isn't known here"),
    "unknown_base": gettext_lazy("there is no built-in wrapper with this name"),
    "unknown_wording": gettext_lazy("this wrapper has no such wording"),
    "invalid_options": gettext_lazy("these options don't go together: %(message)s"),
    # Codes of options are pydantic's own.
    "extra_forbidden": gettext_lazy("this option isn't known"),
    "missing": gettext_lazy("this option is needed"),
    "bool_type": gettext_lazy("true or false is needed here"),
    "bool_parsing": gettext_lazy("true or false is needed here"),
    "string_type": gettext_lazy("a text is needed here"),
    "literal_error": gettext_lazy("this value isn't one of those that are possible"),
    "date_type": gettext_lazy("a date is needed here, for example 2025-03-01"),
    "int_type": gettext_lazy("a whole number is needed here"),
    "int_parsing": gettext_lazy("a whole number is needed here"),
    "float_type": gettext_lazy("a number is needed here"),
    "float_parsing": gettext_lazy("a number is needed here"),
    "not_json": gettext_lazy("this is no JSON"),
}

_LIMITS: Sentences = {
    "time": gettext_lazy("The template was stopped: it took more than its second of computing time."),
    "memory": gettext_lazy("The template was stopped: it asked for more memory than it may have."),
    "depth": gettext_lazy("The template was stopped: its parts are nested too deeply."),
    "output": gettext_lazy("The template was stopped: its text grew past two million characters."),
    "template_size": gettext_lazy("This template is too large: 128 KB are the limit."),
    "request_size": gettext_lazy("This chat is too large to preview with a template."),
    "busy": gettext_lazy("All workers for templates are busy. Try again in a moment."),
    "stopped": gettext_lazy("The worker for templates was stopped. Try again."),
}

_FILES: Sentences = {
    "not_utf8": gettext_lazy("The file isn't UTF-8: byte %(at)s belongs to no character."),
    "not_json": gettext_lazy("Line %(line)s of the file is no JSON."),
    "wrong_shape": gettext_lazy("The file has another shape than a tokenizer's configuration (%(where)s)."),
    "no_template": gettext_lazy("There is no chat template in this file."),
    "empty": gettext_lazy("The template is empty."),
    "too_large": gettext_lazy("The file is too large: %(bytes)s bytes, and %(allowed)s are the limit."),
    "nul_character": gettext_lazy("Line %(line)s holds a NUL character."),
    "lone_surrogate": gettext_lazy("Line %(line)s holds half of a character pair, which can't be stored."),
    "gguf_truncated": gettext_lazy("The file ends inside of its header, at byte %(at)s."),
    "gguf_damaged": gettext_lazy("This is no whole GGUF header."),
    "gguf_too_large": gettext_lazy("The header names more than a model has (byte %(at)s)."),
}

_REMARKS: Sentences = {
    "direction_marks": gettext_lazy(
        "Line %(line)s of the template “%(template)s” holds marks that turn the writing direction: it reads otherwise "
        "than it works."
    ),
    "config_template_replaced": gettext_lazy("The template file replaces the template in the configuration."),
    "token_skipped": gettext_lazy("The value of %(token)s can't be read and is left out."),
    "name_repeated": gettext_lazy("There are several templates named “%(name)s”; the last one is taken."),
}

_REASONS: Sentences = {
    "type_given": gettext_lazy("The type %(type)s was asked for."),
    "type_unknown": gettext_lazy("The type %(type)s that was asked for isn't known."),
    "type_incomplete": gettext_lazy("For the type %(type)s that was asked for, something is missing."),
    "template_equals": gettext_lazy("The chat template writes exactly as this wrapper does."),
    "template_equals_none": gettext_lazy("The chat template writes as no built-in wrapper does."),
    "template_kept": gettext_lazy("So the chat template itself is used."),
    "template_broken": gettext_lazy("The chat template can't be used: %(message)s"),
    "template_not_rendered": gettext_lazy("The chat template wasn't tried out."),
    "model_name": gettext_lazy("The model's name “%(name)s” contains “%(found)s”."),
    "template_mark": gettext_lazy("The chat template contains %(marks)s."),
    "bos_text": gettext_lazy("The text of the model's first token is “%(text)s”."),
    "architecture": gettext_lazy("The architecture is %(architecture)s."),
    "nothing_known": gettext_lazy("Nothing that was given says which format the model reads."),
}
_FILE_NAME_PARTS: Sentences = {
    "name": gettext_lazy("The file name says that the model is “%(value)s”."),
    "sub_type": gettext_lazy("The file name says that the model's kind is “%(value)s”."),
    "word": gettext_lazy("The file name contains the word “%(value)s”."),
}


def left_out_sentences(left_out: Iterable[LeftOut]) -> list[str]:
    """One line a message, those of one reason together once there are many."""
    by_reason: dict[tuple[str, str], list[int]] = {}
    for one in left_out:
        by_reason.setdefault((one.code, str(one.args.get("role", ""))), []).append(one.message_index)
    lines = []
    for (code, role), places in by_reason.items():
        what = _LEFT_OUT[code] % {"role": role}
        shown = ", ".join(str(place + 1) for place in places[:12])
        if len(places) > 12:
            shown += " …"
        lines.append(
            ngettext("Message %(places)s: %(what)s", "Messages %(places)s: %(what)s", len(places))
            % {"places": shown, "what": what}
        )
    return lines


def problem_sentence(problem: RecipeProblem) -> str:
    """The path and what is wrong there."""
    template = str(_PROBLEMS.get(problem.code, gettext_lazy("this value doesn't fit here")))
    sentence = template % problem.args if "%(" in template else template
    expected = problem.args.get("expected")
    if expected:
        sentence += " " + _("(possible: %(values)s)") % {"values": expected}
    path = ".".join(map(str, problem.path))
    return f"{path}: {sentence}" if path else sentence[:1].upper() + sentence[1:]


def failure_sentence(failure: TemplateFailure) -> str:
    """Why a template gave no text."""
    if failure.kind == "limit":
        return str(_LIMITS.get(failure.limit or "", failure.limit or ""))
    if failure.kind == "message":
        return _("The template refuses this chat: %(message)s") % {"message": failure.message}
    if failure.kind == "syntax":
        return _("Syntax error: %(message)s") % {"message": failure.message}
    return f"{failure.error_class}: {failure.message}"


def file_sentence(error: TemplateFileError) -> str:
    return _filled(_FILES.get(error.code, error.code), {"at": "?", "where": "?", **error.args_by_name})


def remark_sentence(remark: Remark) -> str:
    return _filled(_REMARKS.get(remark.code, remark.code), remark.args)


def reason_sentence(reason: Reason) -> str:
    args: dict[str, Any] = dict(reason.args)
    if reason.code == "file_name":
        return _filled(_FILE_NAME_PARTS.get(str(args.get("part")), _FILE_NAME_PARTS["word"]), args)
    if isinstance(args.get("marks"), list):
        args["marks"] = ", ".join(args["marks"])
    return _filled(_REASONS.get(reason.code, reason.code), args)


def _filled(sentence: str | Promise, args: Mapping[str, Any]) -> str:
    text = str(sentence)
    return text % args if "%(" in text else text

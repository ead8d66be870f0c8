"""Findings of the lints as sentences: what the model will see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from chats.domain.chat_templates.lint import Finding
from chats.domain.settings_lint import SettingsFinding

Sentences = Mapping[str, str | Promise]

SETTINGS: Sentences = {
    "two_bos": _("The prompt gets one begin-of-sequence token too many: the wrapper writes its own already."),
    "no_end": _("There is a beginning without an end: nothing tells the model where %(what)s stops."),
    "parameter_in_special_part": _(
        "%(parameter)s stands in a part for special tokens, where it isn't replaced: the model reads it as it is. "
        "Move it "
        "to a text part."
    ),
    "parameter_not_replaced": _("%(parameter)s isn't replaced here: the model reads it as it is."),
    "call_not_parsed_back": _(
        "A call that is written and read back isn't the same call: of a call to %(call)s, what is read is “%(read)s”."
    ),
    "empty_call_prefix": _("Calls have no prefix, so nothing tells them from text in an answer."),
    "system_unsupported": _(
        "System messages are switched off, but %(chats)s of the newest %(of)s chats have one: it moves into a user "
        "message "
        "or is lost."
    ),
    "token_in_chats": _(
        "%(token)s stands as ordinary text in %(chats)s of the newest chats. It stays text here; a server that "
        "turns the "
        "whole prompt into tokens would read it as a token."
    ),
    "unknown_token_role": _("No model knows a token with the role “%(role)s”: known are BOS, EOS, NL, EOT and SEP."),
}
ENDS: Sentences = {
    "section": _("a section of calls"),
    "call": _("a call"),
    "result": _("a result"),
    "thought": _("a thought"),
    "comment": _("a comment"),
}

TEMPLATE: Sentences = {
    "does_not_compile": _("The template has a syntax error, so there is no prompt at all."),
    "user_turn_refused": _("Not even one user message can be written."),
    "generation_prompt_ignored": _(
        "The prompt doesn't open the assistant's turn: asking for a generation prompt changes nothing, and the "
        "model may "
        "go on writing for the user."
    ),
    "generation_prompt_changes_text": _("Asking for a generation prompt changes text before it."),
    "starts_with_bos": _(
        "The text begins with the begin-of-sequence token: tokenise it without adding special tokens, else the "
        "model sees "
        "two."
    ),
    "bos_twice": _("The begin-of-sequence token stands twice at the start."),
    "bos_never_written": _("The model has the begin-of-sequence token %(token)s, which the template never writes."),
    "system_dropped": _("The model doesn't see the system message: it is dropped without a word."),
    "system_refused": _("A chat with a system message is refused."),
    "late_system_refused": _("A system message that isn't the first message is refused."),
    "late_system_dropped": _("The model doesn't see a system message that isn't the first message."),
    "developer_dropped": _("The model doesn't see messages of the role developer."),
    "developer_refused": _("Messages of the role developer are refused."),
    "tools_ignored": _("The model isn't told which tools there are."),
    "tools_refused": _("A chat with tools is refused."),
    "tool_name_missing": _("Tools are written without their names, so the model can't call them."),
    "call_dropped": _("The model doesn't see its earlier calls."),
    "call_refused": _("A chat with an earlier call is refused."),
    "tool_result_dropped": _("The model doesn't see the results of its calls."),
    "text_arguments_encoded_twice": _("Arguments given as JSON text reach the model encoded twice, with backslashes."),
    "text_arguments_refused": _("A call whose arguments are JSON text is refused; as an object it is written."),
    "text_arguments_differ": _("Arguments given as JSON text look different from the same arguments as an object."),
    "null_content_refused": _("A call without content (null) is refused."),
    "null_content_printed": _("For a call without content the model reads the word “None”."),
    "text_parts_refused": _("A content that is a list of parts is refused."),
    "text_parts_printed": _("A content that is a list of parts is printed as Python data."),
    "text_parts_dropped": _("The model doesn't see a content that is a list of parts."),
    "two_users_refused": _("Two user messages in a row are refused, so a nudge after an unanswered question is, too."),
    "assistant_first_refused": _("A chat that begins with the assistant is refused."),
    "unstable_with_generation_prompt": _(
        "The prompt of a turn isn't the start of the next turn's prompt: the server's cache misses, and the model "
        "reads a "
        "past that it never wrote."
    ),
    "unstable_without_generation_prompt": _(
        "Even without the generation prompt, the prompt of a turn isn't the start of the next turn's prompt."
    ),
    "unstable_after_closed_turn": _("A finished turn is written otherwise once another turn follows."),
    "reasoning_dropped": _("The model doesn't see its reasoning of earlier turns. Many models want that."),
    "reasoning_dropped_in_tool_loop": _(
        "Between calls of one turn the model doesn't see its own reasoning: it has to think everything again."
    ),
    "content_trimmed": _("White space around a message is cut off."),
    "depends_on_clock": _("The text depends on the time of day or date: the server's cache misses from tomorrow on."),
    "prefill_refused": _("An answer can't be continued: a chat that ends inside of an answer is refused."),
    "prefill_not_at_end": _("A continued answer doesn't stand at the end of the text."),
    "html_escapes": _("The model reads HTML escapes, for example %(found)s, instead of the characters."),
    "python_data": _("The model reads Python data where JSON is expected."),
    "own_system_prompt": _("The template adds a system prompt of its own: “%(text)s”"),
    "argument_never_read": _("The template never reads the argument %(name)s: it does nothing. Is it spelled right?"),
    "variables_not_passed": _("The template reads arguments that aren't given: %(names)s."),
    "prompt_ends_in_blanks": _("The prompt ends in blanks, which many tokenizers can't continue well."),
    "final_line_break_lost": _("The line break at the end of the template is lost: the language drops it."),
    "tokens_glued": _("After %(token)s a line break is eaten by a “-”, so two control tokens stick together."),
    "no_generation_tags": _("There are no generation tags: masks of the assistant's text would be empty in training."),
    "control_tokens_pass": _(
        "Control tokens that somebody types into a message, for example %(token)s, reach the model as real ones."
    ),
    "typed_token": _(
        "Message %(message)s of this chat contains %(token)s: in this prompt it is a real control token, whoever "
        "typed it."
    ),
}

SAMPLES: Sentences = {
    "template": _("The error"),
    "user": _("One question, without generation prompt"),
    "user_prompt": _("One question"),
    "system": _("With a system message"),
    "late_system": _("With a late system message"),
    "developer": _("With a developer message"),
    "closed_turn": _("One finished turn"),
    "second_turn": _("With a second question"),
    "two_users": _("Two user messages in a row"),
    "assistant_first": _("The assistant begins"),
    "tools": _("With tools"),
    "call": _("With a call and its result"),
    "call_as_text": _("The call's arguments as JSON text"),
    "call_without_content": _("A call without content"),
    "text_parts": _("A content in parts"),
    "reasoning": _("With reasoning of an earlier turn"),
    "reasoning_in_tool_loop": _("With reasoning before a call"),
    "inline_reasoning": _("With reasoning inside of the content"),
    "padded": _("A message with white space around it"),
    "markup": _("A message with markup"),
    "prefill": _("A begun answer"),
    "typed_token": _("A message with a control token"),
}


def settings_sentence(finding: SettingsFinding) -> str:
    args = dict(finding.args)
    if finding.code == "no_end":
        args["what"] = ENDS[str(args["what"])]
    return _filled(SETTINGS, finding.code, args)


def template_sentence(finding: Finding) -> str:
    args = {key: ", ".join(value) if isinstance(value, list) else value for key, value in finding.args.items()}
    if isinstance(args.get("text"), str):
        args["text"] = str(args["text"])[:160]
    return _filled(TEMPLATE, finding.code, args)


def _filled(sentences: Sentences, code: str, args: Mapping[str, Any]) -> str:
    text = str(sentences.get(code, code))
    return text % args if "%(" in text else text

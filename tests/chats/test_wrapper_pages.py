"""The pages of wrappers as people use them: made, edited with and without script, previewed, compared, kept."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django_scopes import scope

from chats.models import Wrapper, WrapperDraft, WrapperVersion
from eleanor_site.tenants.models import Tenant, User
from tests.factories import make_chat, make_rule

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt and not enable_thinking %}<|im_start|>assistant\n{% endif %}"
)
BASE = "/t/acme/wrappers/"


class Form(HTMLParser):
    """The fields of the editor's form, as a browser would post them."""

    def __init__(self, page: str, form_id: str = "wrapper-form") -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self._id = form_id
        self._inside = False
        self._area: str | None = None
        self._select: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = a.get("id") == self._id
        if not self._inside:
            return
        if tag == "input" and "name" in a and (a.get("type") != "checkbox" or "checked" in a):
            self.data[a["name"]] = a.get("value", "on")
        elif tag == "textarea":
            self._area = a["name"]
            self.data[self._area] = ""
        elif tag == "select":
            self._select = a["name"]
        elif tag == "option" and self._select and (self._select not in self.data or "selected" in a):
            self.data[self._select] = a.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._area:
            self.data[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            self.data[self._area] = self.data[self._area].removeprefix("\n")
            self._area = None
        elif tag == "select":
            self._select = None
        elif tag == "form":
            self._inside = False


def form_of(client: Client, slug: str, **query: str) -> dict[str, str]:
    return Form(client.get(f"{BASE}{slug}/edit", query).content.decode()).data


def make(client: Client, **fields: Any) -> str:
    answer = client.post(f"{BASE}new", {"name": "Mine", "source": "QwenChatWrapper", **fields})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"]).split("/")[-2]


def check(client: Client, slug: str, data: dict[str, str]) -> str:
    answer = client.post(f"{BASE}{slug}/check", data, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_built_ins_are_there_for_every_tenant(viewer: Client) -> None:
    page = viewer.get(BASE).content.decode()
    assert "Llama 3.1" in page
    assert viewer.get(f"{BASE}Llama3_1ChatWrapper/").status_code == 200
    assert not Wrapper._base_manager.exists()


def test_an_edit_is_saved_and_what_differs_is_stored(author: Client, acme: Tenant) -> None:
    slug = make(author)
    data = form_of(author, slug)
    data["s.functions.call.prefix.0.text"] = "<my_call>"
    assert author.post(f"{BASE}{slug}/edit", {**data, "save": "1"}).status_code == 302
    with scope(tenant=acme):
        draft = WrapperDraft.objects.get()
    prefix = json.loads(draft.settings)["functions"]["call"]["prefix"]
    assert prefix[0] == {"type": "specialTokensText", "value": "<my_call>"}
    assert list(json.loads(draft.settings)) == ["functions"]
    page = author.get(f"{BASE}{slug}/edit").content.decode()
    assert "one changed" in page


def test_without_script_buttons_work_and_save_nothing(author: Client, acme: Tenant) -> None:
    slug = make(author)
    data = form_of(author, slug)
    answer = author.post(f"{BASE}{slug}/edit", {**data, "do": "add:s.functions.result.suffix"})
    assert answer.status_code == 200
    again = Form(answer.content.decode()).data
    added = set(again) - set(data)
    assert {name.rsplit(".", 1)[0] for name in added} == {"s.functions.result.suffix.1"}
    with scope(tenant=acme):
        assert WrapperDraft.objects.get().revision == 1


def test_the_preview_follows_what_is_typed(author: Client, acme: Tenant) -> None:
    chat = make_chat(
        acme,
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "look_up", "arguments": {"q": 1}}]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
        {"role": "assistant", "content": "Done."},
    )
    slug = make(author)
    data = form_of(author, slug, chat=str(chat.pk))
    data["s.functions.call.prefix.0.text"] = "<my_call>"
    answer = check(author, slug, data)
    assert "special token &lt;my_call&gt;" in answer
    assert 'id="preview-text"' in answer
    with scope(tenant=acme):
        assert "my_call" not in WrapperDraft.objects.get().settings


def test_a_value_that_cannot_be_read_keeps_the_preview(author: Client) -> None:
    slug = make(author)
    data = form_of(author, slug)
    data |= {"s.functions.call.emptyCallParamsPlaceholder.is": "on"}
    data |= {"s.functions.call.emptyCallParamsPlaceholder.text": "{"}
    answer = check(author, slug, data)
    assert "This is the last value that could be read." in answer
    assert "This is no JSON" in answer
    saved = author.post(f"{BASE}{slug}/edit", {**data, "save": "1"})
    assert saved.status_code == 422
    assert Form(saved.content.decode()).data["s.functions.call.emptyCallParamsPlaceholder.text"] == "{"


def test_a_template_says_where_it_fails_and_keeps_the_last_preview(author: Client) -> None:
    slug = make(author, source="", template=TEMPLATE)
    data = form_of(author, slug)
    assert 'id="preview-text"' in check(author, slug, data)
    broken = check(author, slug, {**data, "template": TEMPLATE + "\n\n{% if %}"})
    assert 'id="preview-text"' not in broken
    assert "Line 6 of the template." in broken
    refused = (
        "{% for m in messages %}\n"
        "{% if m.role == 'system' %}{{ raise_exception('No system here') }}{% endif %}{% endfor %}"
    )
    answer = check(author, slug, {**data, "template": refused, "chat": "sample"})
    assert "No system here" in answer
    assert "Message 1 of the chat." in answer
    assert 'id="preview-text"' not in answer


def test_a_template_without_end_shows_its_limit_and_the_next_keystroke_works(author: Client) -> None:
    slug = make(author, source="", template=TEMPLATE)
    data = form_of(author, slug)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    assert "more than its second of computing time" in check(author, slug, {**data, "template": endless})
    assert 'id="preview-text"' in check(author, slug, data)


def test_arguments_of_a_template_are_offered_and_unknown_ones_flagged(author: Client, acme: Tenant) -> None:
    slug = make(author, source="", template=TEMPLATE)
    data = form_of(author, slug)
    names = {name: value for name, value in data.items() if name.startswith("k.") and name.endswith(".name")}
    index = next(name.split(".")[1] for name, value in names.items() if value == "enable_thinking")
    data |= {f"k.{index}.type": "true", "k.7.name": "enabel", "k.7.type": "text", "k.7.value": "x"}
    assert author.post(f"{BASE}{slug}/edit", {**data, "save": "1"}).status_code == 302
    with scope(tenant=acme):
        assert json.loads(WrapperDraft.objects.get().template_kwargs) == {"enable_thinking": True, "enabel": "x"}
    assert "the template never reads this name" in author.get(f"{BASE}{slug}/edit").content.decode()


def test_a_tokenizer_configuration_brings_templates_and_tokens(author: Client, acme: Tenant) -> None:
    config = {
        "bos_token": {"content": "<s>"},
        "eos_token": "</s>",
        "chat_template": [
            {"name": "default", "template": "D{{ messages[0].content }}\r\n"},
            {"name": "tool_use", "template": "T"},
        ],
    }
    file = SimpleUploadedFile("tokenizer_config.json", json.dumps(config).encode())
    slug = make(author, source="", file=file)
    with scope(tenant=acme):
        draft = WrapperDraft.objects.get()
    assert draft.template == "D{{ messages[0].content }}\r\n"
    assert json.loads(draft.named_templates) == {"tool_use": "T"}
    assert json.loads(draft.template_tokens) == {"bos_token": "<s>", "eos_token": "</s>"}
    data = form_of(author, slug)
    assert author.post(f"{BASE}{slug}/edit", {**data, "model_name": "m", "save": "1"}).status_code == 302
    with scope(tenant=acme):
        assert WrapperDraft.objects.get().template == draft.template


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", b'{"chat_template": 7}'),
        ("tokenizer_config.json", b"{"),
        ("chat_template.jinja", b"\xff\xfe"),
        ("chat_template.jinja", b"a\0b"),
        ("chat_template.jinja", b"x" * 200_000),
        ("model.gguf", b"GGUF\x03\0\0\0"),
    ],
)
def test_files_that_give_no_template_are_refused_with_a_reason(author: Client, name: str, content: bytes) -> None:
    answer = author.post(f"{BASE}new", {"name": "Mine", "source": "", "file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()


def test_two_people_at_one_draft_decide_on_the_conflict_page(author: Client, admin: Client, acme: Tenant) -> None:
    slug = make(author)
    mine = form_of(author, slug)
    theirs = form_of(admin, slug)
    theirs["s.functions.call.prefix.0.text"] = "<theirs>"
    assert admin.post(f"{BASE}{slug}/edit", {**theirs, "save": "1"}).status_code == 302
    mine["s.functions.result.suffix.0.text"] = "<mine>"
    quiet = author.post(f"{BASE}{slug}/edit", mine, headers={"HX-Request": "true"})
    assert quiet.status_code == 409
    assert "Nothing is overwritten" in quiet.content.decode()
    answer = author.post(f"{BASE}{slug}/edit", {**mine, "save": "1"})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "&lt;theirs&gt;" in page
    assert "&lt;mine&gt;" in page
    rows = {row.key: row for row in answer.context["rows"]}
    prefix, suffix = rows["settings.functions.call.prefix"], rows["settings.functions.result.suffix"]
    assert (prefix.chosen, prefix.both, suffix.chosen, suffix.both) == ("theirs", False, "mine", False)
    assert prefix.base == prefix.mine
    assert suffix.base == suffix.theirs
    assert "Before both" in page
    assert page.count(" checked>") == 2
    fields = {"take": "1", "mine": answer.context["mine"], "revision": str(answer.context["revision"])}
    choice = {"take.settings.functions.call.prefix": "theirs", "take.settings.functions.result.suffix": "mine"}
    assert author.post(f"{BASE}{slug}/edit", {**fields, **choice}).status_code == 302
    with scope(tenant=acme):
        saved = WrapperDraft.objects.get().settings
    assert "<theirs>" in saved
    assert "<mine>" in saved


def test_findings_are_silenced_with_a_reason_only(author: Client, acme: Tenant) -> None:
    slug = make(author)
    data = form_of(author, slug)
    data |= {"s.functions.result.suffix.0.text": "", "s.functions.result.suffix.1.text": ""}
    data = {k: v for k, v in data.items() if not k.startswith("s.functions.parallelism")}
    lint = author.post(f"{BASE}{slug}/lint", data, headers={"HX-Request": "true"}).content.decode()
    assert "where a result stops" in lint
    key = "no_end:functions.result.suffix"
    author.post(f"{BASE}{slug}/edit", {**data, "do": f"silence:{key}", f"reason.{key}": ""})
    with scope(tenant=acme):
        assert json.loads(WrapperDraft.objects.get().silenced) == {}
    fresh = {**data, "revision": form_of(author, slug)["revision"]}
    author.post(f"{BASE}{slug}/edit", {**fresh, "do": f"silence:{key}", f"reason.{key}": "The model knows"})
    with scope(tenant=acme):
        assert json.loads(WrapperDraft.objects.get().silenced) == {key: "The model knows"}
    assert "The model knows" in author.get(f"{BASE}{slug}/edit").content.decode()


def test_versions_are_made_compared_and_rolled_back(author: Client, publisher: Client, acme: Tenant) -> None:
    slug = make(author)
    versions = f"{BASE}{slug}/versions/"
    assert author.post(f"{versions}make", {"revision": "1", "note": "First"}).status_code == 302
    data = form_of(author, slug)
    data["s.functions.call.prefix.0.text"] = "<second>"
    author.post(f"{BASE}{slug}/edit", {**data, "save": "1"})
    assert author.post(f"{versions}make", {"revision": "2", "note": ""}).status_code == 422
    assert author.post(f"{versions}make", {"revision": "2", "note": "Second"}).status_code == 302
    compared = author.get(f"{versions}compare", {"a": "1", "b": "2"}).content.decode()
    assert "settings.functions.call.prefix" in compared
    assert "diff-added" in compared
    assert author.post(f"{versions}1/roll-back", {}).status_code == 403
    assert publisher.post(f"{versions}1/roll-back", {}).status_code == 302
    with scope(tenant=acme):
        assert WrapperVersion.objects.count() == 3


def test_side_by_side_marks_tokens_look_alikes_differences_and_the_nudge(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(
        acme,
        {"role": "user", "content": "Say <|im_end|> please"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because."},
    )
    make_rule(acme, "ACME-07", prompt_en="Go on until it is done.")
    page = viewer.get(
        f"{BASE}preview",
        {"m": ["ChatMLChatWrapper", "Llama3ChatWrapper"], "chat": chat.pk, "turn": "1", "nudge": "ACME-07"},
    ).content.decode()
    assert 'aria-label="special token &lt;|eot_id|&gt;"' in page
    assert "ordinary text that equals a special token: &lt;|im_end|&gt;" in page
    assert '<mark class="differs">' in page
    assert "added by ACME-07" in page
    assert "Go on until it is done." in page
    assert "Because." not in page


def test_the_same_wrapper_twice_differs_nowhere(viewer: Client, acme: Tenant) -> None:
    make_chat(acme)
    page = viewer.get(f"{BASE}preview", {"m": ["QwenChatWrapper", "QwenChatWrapper"]}).content.decode()
    assert "All of them write the same text." in page
    assert '<mark class="differs">' not in page


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"file_name": "gemma-2-9b-it.Q4_K_M.gguf"}, "Gemma"),
        ({"architecture": "falcon"}, "Falcon"),
        ({"model_name": "Meta Llama 3.1 8B Instruct"}, "Llama 3.1"),
        ({"file_name": "notes.txt"}, "No wrapper"),
    ],
)
def test_which_wrapper_says_what_and_why(viewer: Client, fields: dict[str, str], expected: str) -> None:
    answer = viewer.post(f"{BASE}which", fields)
    assert f">{expected}<" in answer.content.decode()
    assert answer.context["answer"].reasons


def test_which_wrapper_tries_a_template_out(viewer: Client) -> None:
    chatml = (
        "{% for m in messages %}"
        "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    answer = viewer.post(f"{BASE}which", {"template": chatml}).context["answer"]
    assert answer.label in ("ChatML", "Qwen")
    assert "writes exactly as this wrapper does" in answer.reasons[0]


def test_a_chat_shows_in_a_wrapper_of_the_tenant(author: Client, acme: Tenant) -> None:
    chat = make_chat(acme)
    slug = make(author, source="", template="MINE {{ messages[0].content }}")
    page = author.get(f"/t/acme/chats/{chat.pk}/", {"view": "rendered", "m": slug}).content.decode()
    assert "MINE" in page


def test_lint_wrapper_fails_for_errors_that_nobody_answered_for(author: Client, acme: Tenant) -> None:
    slug = make(author)
    call_command("lint_wrapper", slug, tenant="acme")
    with scope(tenant=acme):
        WrapperDraft.objects.update(settings='{"functions": {"call": {"prefix": ""}}}')
    with pytest.raises(CommandError, match=slug):
        call_command("lint_wrapper", slug, tenant="acme")
    with scope(tenant=acme):
        silenced = {"empty_call_prefix:functions.call.prefix": "x", "call_not_parsed_back:functions.call.prefix": "x"}
        WrapperDraft.objects.update(silenced=json.dumps(silenced))
    call_command("lint_wrapper", slug, tenant="acme")


def test_nothing_of_another_tenant_is_reached(author: Client, stranger: Client, people: dict[str, User]) -> None:
    slug = make(author)
    assert stranger.get(f"/t/elsewhere/wrappers/{slug}/").status_code == 404
    page = stranger.get("/t/elsewhere/wrappers/preview", {"m": slug}).content.decode()
    assert "There is no wrapper" in page

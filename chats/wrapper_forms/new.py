"""Forms of the page for a new wrapper and of the page that finds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django import forms
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.utils.translation import gettext_lazy as _

from chats.domain.chat_templates import MAX_TEMPLATE_BYTES
from chats.domain.chat_templates.files import Remark, TemplateFiles, read_file, read_pasted
from chats.domain.recipes import DEFAULT_TEMPLATE, Recipe
from chats.queries.wrappers import choice, choice_labels

HEADER_BYTES = 64 * 1024 * 1024


class NewWrapperForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("Shown in lists, for example “Qwen 3, support”.")
    )
    slug = forms.CharField(
        label=_("Short name"),
        required=False,
        max_length=60,
        help_text=_("Stands in addresses: small letters, digits and hyphens. Made from the name when left empty."),
    )
    model_name = forms.CharField(label=_("Model"), required=False, max_length=200)
    source = forms.ChoiceField(
        label=_("Start with"),
        required=False,
        help_text=_("A built-in wrapper or a copy of one of yours. A chat template given below wins over it."),
    )
    template = forms.CharField(
        label=_("Chat template"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono", "spellcheck": "false", "autocapitalize": "off"}),
        help_text=_("Jinja, as it stands in tokenizer_config.json. At most 128 KB."),
    )
    file = forms.FileField(
        label=_("Or a file"),
        required=False,
        allow_empty_file=True,
        help_text=_(
            "tokenizer_config.json, chat_template.jinja, chat_template.json, or a GGUF file, of which only the header "
            "is read. Its special tokens and named templates come with it."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = choice_labels()
        own = [(key, label) for key, label, group in labels if group == "own"]
        built_in = [(key, label) for key, label, group in labels if group == "built_in"]
        choices: list[Any] = [("", _("A chat template, given below"))]
        if own:
            choices.append((_("A copy of"), own))
        choices.append((_("Built-in"), built_in))
        self.fields["source"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not data.get("source") and not data.get("template") and not data.get("file"):
            self.add_error("source", _("Choose what to start with, or give a chat template."))
        return data

    def recipe(self) -> tuple[Recipe, tuple[Remark, ...]]:
        """What was chosen. Raises TemplateFileError for a file or text that gives no template."""
        data = self.cleaned_data
        if data.get("file"):
            files = read_upload(data["file"])
        elif data.get("template"):
            files = read_pasted(data["template"])
        else:
            found = choice(data["source"])
            return (found.recipe if found else Recipe(base=data["source"])), ()
        named = dict(files.templates)
        first = named.pop(DEFAULT_TEMPLATE, "")
        return Recipe(template=first, named_templates=named, tokens=dict(files.tokens)), files.remarks


def read_upload(file: UploadedFile[Any]) -> TemplateFiles:
    """Read an uploaded file where the server put it; of a large GGUF file only the header is looked at."""
    name = file.name or ""
    if isinstance(file, TemporaryUploadedFile):
        return read_file(name, Path(file.temporary_file_path()))
    return read_file(name, file.read(HEADER_BYTES))


class WhichForm(forms.Form):
    file_name = forms.CharField(
        label=_("Name of the model's file"),
        required=False,
        max_length=300,
        help_text="Mistral-7B-Instruct-v0.3.Q4_K_M.gguf",
    )
    architecture = forms.CharField(
        label=_("Architecture"), required=False, max_length=100, help_text="llama, qwen3, gemma2 …"
    )
    model_name = forms.CharField(
        label=_("Name in its metadata"), required=False, max_length=300, help_text="Meta Llama 3.1 8B Instruct"
    )
    template = forms.CharField(
        label=_("Chat template"),
        required=False,
        strip=False,
        max_length=MAX_TEMPLATE_BYTES,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono", "spellcheck": "false"}),
    )
    file = forms.FileField(
        label=_("Or a file"),
        required=False,
        allow_empty_file=True,
        help_text=_("A tokenizer's configuration, a template, or a GGUF file."),
    )

    def facts(self) -> dict[str, Any]:
        """The arguments of `which_wrapper`. Raises TemplateFileError."""
        data = self.cleaned_data
        template = data.get("template", "").replace("\r\n", "\n")
        metadata: dict[str, Any] = {}
        tokens: dict[str, str] = {}
        file_name = data.get("file_name", "")
        if data.get("file"):
            files = read_upload(data["file"])
            template = files.templates.get(DEFAULT_TEMPLATE) or next(iter(files.templates.values()))
            metadata.update(files.model)
            tokens = dict(files.tokens)
            file_name = file_name or (data["file"].name if str(data["file"].name).endswith(".gguf") else "")
        if data.get("model_name"):
            metadata["general.name"] = data["model_name"]
        return {
            "file_name": file_name,
            "architecture": data.get("architecture", ""),
            "template": template,
            "metadata": metadata,
            "tokens": tokens,
        }

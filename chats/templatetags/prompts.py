"""A rendered prompt as markup. Prompts have thousands of runs, so they are written in one go and not by a template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chats.domain.shown_prompt import Run
from chats.domain.visible_text import encodable

register = template.Library()


@register.simple_tag
def prompt_runs(runs: Iterable[Run], added_by: str = "") -> SafeString:
    """`{% prompt_runs preview.runs added_by=code %}`: chips, marks, data attributes for message and template line."""
    words = {
        "token": escape(_("special token")),
        "look_alike": escape(_("ordinary text that equals a special token:")),
        "differs": escape(_("differs")),
        "added": escape(_("added by %(code)s") % {"code": added_by or _("you")}),
        "hidden": escape(_("hidden character")),
    }
    parts: list[str] = []
    for added, group in groupby(runs, key=lambda run: run.added):
        if added:
            parts.append(f'<span class="added"><span class="added-by" data-not-copied>{words["added"]}</span>')
        parts += (_markup(run, words) for run in group)
        if added:
            parts.append("</span>")
    return mark_safe(encodable("".join(parts)))


def _markup(run: Run, words: Mapping[str, str]) -> str:
    text = str(escape(run.text))
    origin = "".join(_origin(run))
    if run.kind == "token":
        inner = f'<span class="token" role="img" aria-label="{words["token"]} {text}"{origin}>{text}</span>'
    elif run.look_alike:
        label = f"{words['look_alike']} {text}"
        inner = f'<span class="token token-text" role="img" aria-label="{label}" title="{label}"{origin}>{text}</span>'
    elif run.kind == "hidden":
        label = f"{words['hidden']} {escape(run.name)}"
        inner = f'<span class="hidden-character" role="img" aria-label="{label}" title="{label}"{origin}>{text}</span>'
    elif run.kind == "special":
        inner = f'<span class="special-text"{origin}>{text}</span>'
    elif origin:
        inner = f'<span class="span"{origin}>{text}</span>'
    else:
        inner = text
    return f'<mark class="differs">{inner}</mark>' if run.differs else inner


def _origin(run: Run) -> Iterator[str]:
    if run.message is not None:
        yield f' data-message="{run.message}"'
    if run.line is not None:
        yield f' data-line="{run.line}"'

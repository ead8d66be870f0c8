"""The jinja2 sandbox that chat templates are written for: its tag, filters, globals and options."""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from chats.domain.chat_templates.requests import PROFILES, LimitExceeded, Profile

_MAX_SPANS = 20_000


@dataclass(slots=True)
class RunningRender:
    """What the running render shares with the tag and the global that are called from inside it."""

    now: datetime | None
    classic: bool = False
    pieces: int = 0
    length: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def overlooks_span(self) -> bool:
        """Older versions took "nothing put out yet" for "not asked for spans"."""
        return self.classic and not self.pieces and not self.spans


running_render: ContextVar[RunningRender | None] = ContextVar("rendering", default=None)


class GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`: the body unchanged, its place noted.

    A CallBlock, so that the trimming of blanks around the tag is what transformers has. As there, the start counts
    what was put out before: inside a macro or a captured block that is not where the text ends up.
    """

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as an instance attribute of the base class

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_note_span"), [], [], body).set_lineno(line)

    def _note_span(self, caller: Macro) -> str:
        text: str = caller()
        rendering = running_render.get()
        if rendering is not None and not rendering.overlooks_span():
            if len(rendering.spans) >= _MAX_SPANS:
                raise LimitExceeded("output", allowed=_MAX_SPANS)
            rendering.spans.append((rendering.length, rendering.length + len(text)))
        return text


class LineKeepingGenerator(CodeGenerator):
    """Marks the line of plain template text, too, which jinja2 leaves with the line of what stood before it."""

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        for line, children in groupby(node.nodes, key=lambda child: child.lineno):
            part = nodes.Output(list(children), lineno=line)
            self.newline(part)
            super().visit_Output(part, frame)


class TemplateDict:
    """`dict` for templates: can be called, can be asked for `fromkeys`, and nothing else."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


def _check_namespace_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(
            "Chat templates cannot store underscore-prefixed attributes on a namespace, but got "
            f"{name!r}. Please rename the attribute."
        )


class TemplateNamespace(Namespace):
    """`namespace` for templates: refuses names that start with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_namespace_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_namespace_name(name)
        super().__setitem__(name, value)


def raise_exception(message: str) -> None:
    raise jinja2.exceptions.TemplateError(message)


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON in Python's form: no HTML escapes, and keys stay in their order."""
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format: str) -> str:
    rendering = running_render.get()
    now = rendering.now if rendering is not None else None
    return (now or datetime.now()).strftime(format)


def make_environment(profile: Profile) -> ImmutableSandboxedEnvironment:
    """The sandbox with the options, filters and globals that chat templates are written for."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    # Same text, a fifth less time to compile, and no expression of the template is computed while compiling.
    environment.optimized = False
    environment.code_generator_class = LineKeepingGenerator
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    if profile == "current":
        environment.globals["dict"] = TemplateDict()
        environment.globals["namespace"] = TemplateNamespace
    return environment


ENVIRONMENTS: dict[Profile, ImmutableSandboxedEnvironment] = {p: make_environment(p) for p in PROFILES}

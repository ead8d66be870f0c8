"""The tool catalogue: the tenant's entries and the built-in ones, what a change would do, and making it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_problems import FieldProblem, Problem, wrong
from eleanor_site.api_values import Id, Strict
from eleanor_site.tenants.models import KeyScope
from rules.domain.manifest import CatalogueEntry
from rules.domain.tools import BUILT_IN_ENTRIES
from rules.forms.tools import CatalogueEntryForm, entry_of
from rules.models import ToolEntry
from rules.queries.manifests import catalogue_entries
from rules.queries.tools import EntryUse, catalogue_use, tool_effect
from rules.services import tools as services

router = KeyRouter(tags=["tools"])

Kind = Literal["read", "verify", "other", "finish"]
Step = Literal[-1, 1]
Pattern = Annotated[str, Field(max_length=200)]


class ToolIn(Strict):
    """An entry. The patterns of argument, success and failure are RE2."""

    pattern: str = Field(min_length=1, max_length=200, examples=["run_tests"])
    kind: Kind
    argument: str = Field(default="", max_length=100, description="Only where this argument …")
    argument_pattern: Pattern = Field(default="", description="… matches this pattern.")
    repeatable: bool = False
    success_pattern: Pattern = ""
    failure_pattern: Pattern = ""


class ToolOut(BaseModel):
    """An entry. Built-in ones have no id; the tenant's own stand before them, in this order."""

    id: int | None
    pattern: str
    kind: Kind
    argument: str
    argument_pattern: str
    repeatable: bool
    success_pattern: str
    failure_pattern: str

    @classmethod
    def of(cls, entry: Any, pk: int | None = None) -> ToolOut:
        return cls(id=pk, **{name: getattr(entry, name) for name in cls.model_fields if name != "id"})


class ToolList(BaseModel):
    items: list[ToolOut]
    built_in: list[ToolOut]


class StoredTool(BaseModel):
    """A tool of the stored chats: how often it is called, and how many chats offer or call it."""

    name: str
    calls: int
    chats: int


class ToolUse(BaseModel):
    """Which stored names each entry takes, in the order of the catalogue; and those that no entry takes."""

    own: list[list[StoredTool]]
    built_in: list[list[StoredTool]]
    unknown: list[StoredTool]


class ToolMove(Strict):
    step: Step = Field(description="-1: before the entry above; 1: behind the one below.")


class ToolChange(Strict):
    """A change to try: `add` or `change` with an entry, `remove`, or `move` with a step; the last three with an id."""

    action: Literal["add", "change", "remove", "move"]
    id: Id | None = None
    entry: ToolIn | None = None
    step: Step | None = None


class ToolRuleEffect(BaseModel):
    code: str
    before: int
    after: int


class ToolEffectOut(BaseModel):
    """What the change does to points and live rules. Only chats with a tool whose entries change are looked at:
    `seen` of `concerned`. While not `exact`, numbers are estimates from those: ask again."""

    names: list[str]
    concerned: int
    seen: int
    exact: bool
    points_before: int
    points_after: int
    points_changed: int
    rules: list[ToolRuleEffect]
    missing: int


@router.operation("GET", "/tools", KeyScope.RULES_READ, answers=ToolList)
def list_tools(request: ApiRequest) -> ToolList:
    """The tenant's entries in their order, then the built-in ones."""
    return _catalogue()


@router.operation("POST", "/tools", KeyScope.RULES_WRITE, answers=ToolList, status=201, idempotent=True)
def add_tool(request: ApiRequest, body: ToolIn) -> HttpResponse:
    """Add an entry behind the tenant's others. Points hang on it: columns are made anew in the background."""
    services.add_entry(tenant=request.tenant, values=_values(body, None), by=request.person)
    return json_answer(_catalogue(), status=201)


@router.operation("GET", "/tools/use", KeyScope.RULES_READ, answers=ToolUse)
def get_tool_use(request: ApiRequest) -> ToolUse:
    """What the entries take of the stored chats."""
    use = catalogue_use(request.tenant, catalogue_entries())
    return ToolUse(
        own=[_names(one) for one in use.own],
        built_in=[_names(one) for one in use.built_in],
        unknown=_names(use.unknown),
    )


@router.operation("POST", "/tools/effect", KeyScope.RULES_READ, answers=ToolEffectOut)
def try_tool(request: ApiRequest, body: ToolChange) -> ToolEffectOut:
    """What a change of the catalogue would do, before it is made."""
    found = tool_effect(request.tenant, _changed(body))
    rules = [ToolRuleEffect(code=rule.code, before=rule.before, after=rule.after) for rule in found.rules]
    return ToolEffectOut(
        names=found.names,
        concerned=found.concerned,
        seen=found.seen,
        exact=found.exact,
        points_before=found.points_before,
        points_after=found.points_after,
        points_changed=found.points_changed,
        rules=rules,
        missing=found.missing,
    )


@router.operation("PUT", "/tools/{id}", KeyScope.RULES_WRITE, answers=ToolList)
def change_tool(request: ApiRequest, id: Id, body: ToolIn) -> ToolList:
    """Other content at the same place."""
    row = _entry(id)
    services.change_entry(tenant=request.tenant, entry=row, values=_values(body, row), by=request.person)
    return _catalogue()


@router.operation("DELETE", "/tools/{id}", KeyScope.RULES_WRITE, answers=None, status=204)
def remove_tool(request: ApiRequest, id: Id) -> HttpResponse:
    """Take an entry out."""
    services.remove_entry(tenant=request.tenant, entry=_entry(id), by=request.person)
    return HttpResponse(status=204)


@router.operation("POST", "/tools/{id}/move", KeyScope.RULES_WRITE, answers=ToolList, idempotent=True)
def move_tool(request: ApiRequest, id: Id, body: ToolMove) -> HttpResponse:
    """One place up or down."""
    services.move_entry(tenant=request.tenant, entry=_entry(id), step=body.step, by=request.person)
    return json_answer(_catalogue())


def _catalogue() -> ToolList:
    own = [ToolOut.of(row, row.pk) for row in ToolEntry.objects.order_by("position")]
    return ToolList(items=own, built_in=[ToolOut.of(entry) for entry in BUILT_IN_ENTRIES])


def _names(use: EntryUse) -> list[StoredTool]:
    return [StoredTool(name=one.name, calls=one.calls, chats=one.chats) for one in use.names]


def _entry(pk: int) -> ToolEntry:
    found = ToolEntry.objects.filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def _values(body: ToolIn, row: ToolEntry | None, path: str = "") -> dict[str, Any]:
    """The fields as the form of the page takes them. Raises Problem with what it finds wrong."""
    form = CatalogueEntryForm(body.model_dump(), instance=row)
    if not form.is_valid():
        start = f"{path}." if path else ""
        raise Problem(
            "invalid",
            errors=[
                FieldProblem(path=f"{start}{name}", code="pattern", message=str(sentence))
                for name, sentences in form.errors.items()
                for sentence in sentences
            ],
        )
    return form.cleaned_data


def _changed(body: ToolChange) -> list[CatalogueEntry]:
    """The catalogue after the change. Raises Problem."""
    if (body.entry is not None) != (body.action in ("add", "change")):
        raise wrong("entry", "one_of", _("An entry goes with adding and changing, and only with these."))
    if (body.step is not None) != (body.action == "move"):
        raise wrong("step", "one_of", _("A step goes with moving, and only with that."))
    if (body.id is None) != (body.action == "add"):
        raise wrong("id", "one_of", _("The id of an entry goes with everything but adding."))
    entries = catalogue_entries()
    if body.action == "add":
        return [*entries, _tried(body, None)]
    rows = list(ToolEntry.objects.order_by("position"))
    at = next((n for n, row in enumerate(rows) if row.pk == body.id), None)
    if at is None:
        raise wrong("id", "unknown", _("There is nothing with this number."))
    if body.action == "change":
        entries[at] = _tried(body, rows[at])
    elif body.action == "remove":
        del entries[at]
    else:
        moved = entries.pop(at)
        entries.insert(max(0, min(at + (body.step or 0), len(entries))), moved)
    return entries


def _tried(body: ToolChange, row: ToolEntry | None) -> CatalogueEntry:
    assert body.entry is not None
    return entry_of(ToolEntry(**_values(body.entry, row, "entry")))

"""What a template does to chats such as the tenant has none of is no error there, and says so."""

from __future__ import annotations

import pytest
from django.test import Client

from chats.domain.recipes import Recipe, recipe_to_texts
from chats.models import Wrapper
from chats.queries.wrapper_lint import LintState, lint_of, lint_states
from chats.queries.wrappers import missing_cases, wrapper_row
from chats.services.wrappers import create_wrapper
from eleanor_site.tenants.models import Tenant
from tests.factories import make_chat, some_author

# Writes what is said, and knows neither tools nor calls.
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
RECIPE = Recipe(template=TEMPLATE)
CALL = [
    {"role": "user", "content": "Mend it."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "read", "arguments": {"path": "a"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "its text"},
    {"role": "assistant", "content": "Mended.", "finish_reason": "stop"},
]


def severities(recipe: Recipe) -> dict[str, tuple[str, bool]]:
    return {item.key: (item.severity, item.not_met) for item in lint_of(recipe, None, {}).items}


@pytest.fixture
def wrapper(in_acme: Tenant) -> Wrapper:
    return create_wrapper(
        tenant=in_acme, by=some_author(in_acme), name="Plain", slug="plain", content=recipe_to_texts(RECIPE)
    )


def errors_in_list(wrapper: Wrapper) -> int:
    row = wrapper_row(wrapper.slug)
    assert row is not None
    state = lint_states([row])[wrapper.pk]
    assert isinstance(state, LintState)
    return state.errors


def test_without_chats_nothing_is_known_to_be_missing(in_acme: Tenant, wrapper: Wrapper) -> None:
    assert missing_cases() == frozenset()
    assert severities(RECIPE)["call_dropped"][1] is False
    assert errors_in_list(wrapper) > 0


def test_a_case_that_no_chat_has_is_only_good_to_know(in_acme: Tenant, wrapper: Wrapper) -> None:
    before = severities(RECIPE)
    make_chat(in_acme)
    assert missing_cases() == {"system", "developer", "tools", "calls", "reasoning"}
    after = severities(RECIPE)
    assert before["call_dropped"][0] != "info"
    assert after["call_dropped"] == after["tools_ignored"] == ("info", True)
    assert after.keys() == before.keys(), "nothing is left out"
    order = [severity for severity, _not_met in after.values()]
    assert order == sorted(order, key=["error", "warning", "info"].index)
    assert errors_in_list(wrapper) == order.count("error")


def test_a_chat_with_calls_makes_them_count_again(in_acme: Tenant, wrapper: Wrapper) -> None:
    before = severities(RECIPE)
    make_chat(in_acme, *CALL)
    after = severities(RECIPE)
    assert missing_cases() == {"system", "developer", "reasoning"}
    assert after["call_dropped"] == before["call_dropped"]
    assert after["tools_ignored"] == before["tools_ignored"]


@pytest.mark.parametrize("tools", [["read"], [{"name": "read", "description": "Reads."}]])
def test_a_chat_to_which_tools_were_offered_has_tools(in_acme: Tenant, tools: list[object]) -> None:
    make_chat(in_acme, tools=[])
    assert "tools" in missing_cases()
    make_chat(in_acme, tools=tools, external_id="with tools")
    assert "tools" not in missing_cases()


def test_the_page_says_so(in_acme: Tenant, wrapper: Wrapper, author: Client) -> None:
    make_chat(in_acme)
    page = author.post(
        f"/t/acme/wrappers/{wrapper.slug}/lint",
        {"template": TEMPLATE, "kind": "template"},
        headers={"HX-Request": "true"},
    ).content.decode()
    assert "None of the newest stored chats has this case." in page

"""`python -m tests.bench previews [--json] [--rounds N]`: the wrapper editor's answer to a keystroke, on 200 messages.

Whole requests as the server answers them, on a database in memory: reading the form, the chat, the prompt, and the
markup. Each round changes the record, so that nothing is answered from a cache. Times are milliseconds; those called
`cpu` count what this process computed, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

GOAL = 100.0
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench previews")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args(argv)
    rows = _measured(options.rounds)
    for row in rows:
        if options.json:
            print(json.dumps(row))
        else:
            print(f"{row['name']:<34} {row['value']:7.1f} {row['unit']}   goal {row['baseline']:.0f}")
    return 0


def _measured(rounds: int) -> list[dict[str, Any]]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    setup_test_environment()
    databases = setup_databases(verbosity=0, interactive=False)
    from eleanor_site.collecting import keep_what_is_loaded

    keep_what_is_loaded()  # as every web process does
    try:
        return [row for kind in ("settings", "template") for row in _rows(kind, _times(kind, rounds))]
    finally:
        teardown_databases(databases, verbosity=0)


def _rows(kind: str, times: list[tuple[float, float]]) -> list[dict[str, Any]]:
    values = {}
    for name, measured in (("", [wall for wall, _cpu in times]), ("cpu_", [cpu for _wall, cpu in times])):
        ordered = sorted(measured)
        values[f"{name}median"] = statistics.median(ordered)
        values[f"{name}p95"] = ordered[int(len(ordered) * 0.95)]
    return [
        {"name": f"preview_{kind}_{name}", "value": value, "unit": "ms", "baseline": GOAL, "ratio": value / GOAL}
        for name, value in values.items()
    ]


def _times(kind: str, rounds: int) -> list[tuple[float, float]]:
    from django.test import Client
    from django_scopes import scope

    from chats.domain.recipes import Recipe, recipe_to_texts
    from chats.queries.wrappers import recipe_of, wrapper_row
    from chats.services.wrappers import create_wrapper
    from chats.wrapper_forms.state import state_of
    from eleanor_site.tenants.models import Role
    from tests.factories import make_chat, make_person, make_tenant

    tenant = make_tenant(kind)
    person = make_person(kind, tenant, Role.AUTHOR)
    chat = make_chat(tenant, *_messages(), tools=[{"name": "find_order", "parameters": {"type": "object"}}])
    recipe = Recipe(template=TEMPLATE) if kind == "template" else Recipe(base="QwenChatWrapper")
    client = Client()
    client.force_login(person)
    with scope(tenant=tenant):
        create_wrapper(tenant=tenant, by=person, name=kind, slug="bench", content=recipe_to_texts(recipe))
        row = wrapper_row("bench")
        assert row is not None
        data = {**state_of(recipe_of(row.newest)).data, "chat": str(chat.pk), "shown_chat": str(chat.pk)}
    times = []
    for number in range(rounds + 5):
        changed = "s.functions.call.prefix.0.text" if kind == "settings" else "template"
        typed = {**data, changed: f"{data[changed]}{number}"}
        started, computed = time.perf_counter(), time.process_time()
        answer = client.post(f"/t/{tenant.slug}/wrappers/bench/check", typed, headers={"HX-Request": "true"})
        times.append(((time.perf_counter() - started) * 1000, (time.process_time() - computed) * 1000))
        assert answer.status_code == 200
        assert b'id="preview-text"' in answer.content
    # The first ones compile page templates and start a worker.
    return times[5:]


def _messages() -> list[dict[str, Any]]:
    """200 messages: a system message, and rounds of question, call, result and answer."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help customers of a book shop."}]
    for n in range(49):
        call = {"id": f"c{n}", "name": "find_order", "arguments": {"number": 1000 + n}}
        messages += [
            {"role": "user", "content": f"Where is order {1000 + n}? " + "It should have been here by now. " * 6},
            {
                "role": "assistant",
                "content": "I look it up.",
                "reasoning": "Only the tool knows.",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps({"state": "sent", "days": n % 7})},
            {"role": "assistant", "content": f"It was sent and arrives in {n % 7} days.", "finish_reason": "stop"},
        ]
    thanks = [("user", "Thank you."), ("assistant", "Any time."), ("user", "One more thing.")]
    return [*messages, *({"role": role, "content": content} for role, content in thanks)]

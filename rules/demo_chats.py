"""Sixty small conversations in English and French for the demo tenant, made from a seed.

Each scene shows one way in which an agent stops well or badly; together every default rule fires somewhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.domain.catalogue import default_rule_texts

CHATS = 60
START = datetime(2026, 10, 1, 8, 0, tzinfo=UTC)
MODELS = ("north-7b-chat", "north-70b-chat", "rivage-medium")
TOOLS = [
    {"name": "read_file", "description": "Read a file of the project"},
    {"name": "search_code", "description": "Search the project"},
    {"name": "write_file", "description": "Change a file of the project"},
    {"name": "run_tests", "description": "Run the test suite"},
]
PROMPTS = {text.code: (text.prompt_en, text.prompt_fr) for text in default_rule_texts()}

WORDS: dict[str, dict[str, list[str]]] = {
    "en": {
        "thing": ["the invoice export", "the login form", "the nightly import", "the date filter", "the search index"],
        "fault": ["drops the last row", "fails on empty input", "shows the wrong month", "times out under load"],
        "file": ["export.py", "forms.py", "importer.py", "filters.py", "index.py"],
    },
    "fr": {
        "thing": ["l'export des factures", "le formulaire de connexion", "l'import de nuit", "le filtre de dates"],
        "fault": [
            "perd la dernière ligne",
            "échoue sur une entrée vide",
            "affiche le mauvais mois",
            "expire sous charge",
        ],
        "file": ["export.py", "formulaires.py", "importeur.py", "filtres.py"],
    },
}

Messages = list[dict[str, Any]]


class Scene:
    """Writes the messages of one chat, with times that go on and call ids that count."""

    def __init__(self, rng: random.Random, language: str) -> None:
        self.rng = rng
        self.language = language
        self.messages: Messages = []
        self.now = START + timedelta(minutes=rng.randrange(60 * 24 * 45))
        self.model = rng.choice(MODELS)
        self.calls = 0
        words = WORDS[language]
        self.thing, self.fault, self.file = (rng.choice(words[name]) for name in ("thing", "fault", "file"))

    def text(self, english: str, french: str) -> str:
        chosen = english if self.language == "en" else french
        return chosen.format(thing=self.thing, fault=self.fault, file=self.file)

    def add(self, role: str, content: str, **details: Any) -> None:
        self.now += timedelta(seconds=self.rng.randrange(4, 90))
        self.messages.append({"role": role, "content": content, "created_at": self.now.isoformat(), **details})

    def user(self, english: str, french: str) -> None:
        self.add("user", self.text(english, french))

    def answer(self, english: str, french: str, finish: str | None = "stop") -> None:
        self.add("assistant", self.text(english, french), finish_reason=finish, model=self.model)

    def call(self, name: str, arguments: dict[str, Any], result: str, status: str = "ok") -> None:
        self.calls += 1
        call = {"id": f"call-{self.calls}", "name": name, "arguments": arguments}
        self.add("assistant", "", tool_calls=[call], finish_reason="tool_calls", model=self.model)
        self.add("tool", result, tool_call_id=call["id"], name=name, result_status=status)

    def nudge(self, code: str) -> None:
        self.add("user", PROMPTS[code][0 if self.language == "en" else 1], nudge_code=code)

    def ask(self) -> None:
        self.user("{thing} {fault}. Please find out why and fix it.", "{thing} {fault}. Cherche pourquoi et corrige.")

    def read(self) -> None:
        self.call("read_file", {"path": self.file}, f"# {self.file}\n…")

    def change(self) -> None:
        self.call("write_file", {"path": self.file, "content": "…"}, "written")

    def test(self, passed: bool = True) -> None:
        result = "12 passed" if passed else "1 failed, 11 passed"
        self.call("run_tests", {}, result, "ok" if passed else "error")

    def done(self) -> None:
        self.answer(
            "Fixed: {file} handles that case now, and the tests pass.",
            "Corrigé : {file} traite ce cas, et les tests passent.",
        )


def good(s: Scene) -> None:
    s.ask()
    s.read()
    s.change()
    s.test()
    s.done()


def truncated(s: Scene) -> None:
    s.ask()
    s.read()
    s.answer(
        "The cause is in {file}: the loop ends one step too",
        "La cause est dans {file} : la boucle s'arrête un pas trop",
        "length",
    )


def empty(s: Scene) -> None:
    s.ask()
    s.read()
    s.answer("", "")


def check_failed(s: Scene) -> None:
    s.ask()
    s.read()
    s.change()
    s.test(passed=False)
    s.answer("I changed {file} so that the case is handled.", "J'ai modifié {file} pour traiter ce cas.")
    if s.rng.random() < 0.5:
        s.nudge("EAI-GOV-03")
        s.change()
        s.test()
        s.done()


def unchecked(s: Scene) -> None:
    s.ask()
    s.read()
    s.change()
    s.answer("Done, {file} is changed.", "C'est fait, {file} est modifié.")
    if s.rng.random() < 0.5:
        s.nudge("EAI-GOV-04")
        s.test()
        s.done()


def not_delivered(s: Scene) -> None:
    s.ask()
    s.answer(
        "You could open {file} and add a check at the top.",
        "Vous pourriez ouvrir {file} et ajouter un contrôle au début.",
    )


def not_acted_on(s: Scene) -> None:
    s.ask()
    s.answer(
        "I would add a check to {file}. Shall I go on?", "J'ajouterais un contrôle dans {file}. Dois-je continuer ?"
    )
    s.user("Go ahead, please.", "Vas-y, merci.")
    s.answer("A check in {file} is the right way.", "Un contrôle dans {file} est la bonne solution.")


def announced(s: Scene) -> None:
    s.ask()
    s.read()
    s.answer(
        "The cause is in {file}. I will fix it now.", "La cause est dans {file}. Je vais corriger cela maintenant."
    )
    if s.rng.random() < 0.5:
        s.nudge("EAI-GOV-07")
        s.change()
        s.test()
        s.done()


def work_left(s: Scene) -> None:
    s.ask()
    s.read()
    s.change()
    s.test()
    s.answer(
        "The first part of {file} works. Next steps: handle the empty list and update the docs.",
        "La première partie de {file} fonctionne. Prochaines étapes : traiter la liste vide et mettre à jour la doc.",
    )


def no_progress(s: Scene) -> None:
    s.ask()
    for _ in range(4):
        s.call("search_code", {"query": s.file}, "no match")
    s.answer("I can't find the cause.", "Je ne trouve pas la cause.")


def budget_low(s: Scene) -> None:
    s.ask()
    for n in range(5):
        s.call("search_code", {"query": f"{s.file} {n}"}, "3 matches")
    s.change()
    s.test()
    s.done()


def exploring(s: Scene) -> None:
    s.ask()
    for n in range(5):
        s.call("read_file", {"path": f"part{n}_{s.file}"}, "…")
    s.change()
    s.test()
    s.done()


SCENES: tuple[Callable[[Scene], None], ...] = (
    good,
    truncated,
    empty,
    check_failed,
    unchecked,
    not_delivered,
    not_acted_on,
    announced,
    work_left,
    no_progress,
    budget_low,
    exploring,
)


def demo_chats(seed: int = 7) -> Iterator[str]:
    """Chats in the exchange form, one JSON text each. The same seed gives the same chats."""
    rng = random.Random(seed)
    for number in range(CHATS):
        language = "fr" if number % 2 else "en"
        play = SCENES[(number // 2) % len(SCENES)]
        scene = Scene(rng, language)
        play(scene)
        chat = {
            "format": "eleanor-chat",
            "version": 1,
            "external_id": f"demo-{number:03}",
            "title": scene.messages[0]["content"],
            "tools": TOOLS,
            "metadata": {"scene": play.__name__},
            "chat": {"messages": scene.messages},
        }
        if play is budget_low:
            chat["step_budget"] = 8
        if play is not_delivered:
            chat["require_delivery"] = True
        yield json.dumps(chat, ensure_ascii=False)

"""The C++ implementation of CEL, to compare our evaluators with. Never part of the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from rules.domain import phrases
from rules.domain.context import TurnContext
from rules.domain.language.environment import FIELDS, PHRASE_FUNCTIONS

cel = pytest.importorskip("cel_expr_python.cel", reason="the C++ CEL package has no wheel here")


class Oracle:
    """CEL with our functions. `ctx` is a map of dynamic values, as `finish_reason` may be null."""

    def __init__(self) -> None:
        types = cel.Type
        self.nudges: dict[str, int] = {}

        def declared(name: str, overloads: list[tuple[Any, Any, Callable[[Any], Any]]]) -> Any:
            return cel.FunctionDecl(
                name,
                [
                    cel.Overload(id=f"{name}_{number}", parameters=[parameter], return_type=result, impl=function)
                    for number, (parameter, result, function) in enumerate(overloads)
                ],
            )

        functions = [declared("nudged", [(types.STRING, types.INT, lambda code: self.nudges.get(code, 0))])]
        for name in PHRASE_FUNCTIONS:
            helper = getattr(phrases, name)
            functions.append(declared(name, [(types.STRING, types.BOOL, helper), (types.NULL, types.BOOL, helper)]))
        functions.append(declared("last_paragraph", [(types.STRING, types.STRING, phrases.last_paragraph)]))
        self.environment = cel.NewEnv(variables={"ctx": types.Map(types.STRING, types.DYN)}, functions=functions)

    def holds(self, source: str, contexts: list[TurnContext]) -> list[bool]:
        """Whether the predicate is true at each context; errors come back as values and count as not true."""
        program = self.environment.compile(source)
        results = []
        for context in contexts:
            self.nudges = dict(context.nudges)
            values = asdict(context)
            assert set(values) == set(FIELDS)
            value = program.eval(data={"ctx": values}).value()
            assert isinstance(value, bool), f"{source!r} gives {value!r}"
            results.append(value is True)
        return results

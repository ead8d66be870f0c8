"""The predicate language: `check` reads a predicate, `print_tree` writes it (rule-engine.md section 2)."""

from rules.domain.language.checker import Checked, check
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.printer import print_tree
from rules.domain.language.tree import Node, atom_key

__all__ = ["Checked", "Diagnostic", "Node", "atom_key", "check", "print_tree"]

"""The rules for the tests' own text: names of under 60 characters, modules of one idea.

The tests are read from the source with `ast`; nothing is imported here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent.parent

LONGEST = 59
"""Characters of a name: it still fits beside its path in a line of pytest's report."""

LINES = 600
"""Of a module, as in the package (`test_layers.py`)."""


def names(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every test in a module, with the module or the class that it is in."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if is_named and child.name.lower().startswith("test"):
                yield node, child.name


def wrong_names(text: str) -> list[str]:
    """Names that are too long, and names that hide an earlier test of the same name."""
    found = Counter(names(ast.parse(text)))
    return [
        name for (_, name), count in found.items() if len(name) > LONGEST or count > 1
    ]


def test_names_of_tests_are_short_and_unique_in_their_module() -> None:
    wrong = {
        str(path.relative_to(TESTS)): wrong_names(path.read_text(encoding="utf-8"))
        for path in sorted(TESTS.rglob("*.py"))
    }
    assert {path: found for path, found in wrong.items() if found} == {}


def test_modules_of_tests_have_few_lines() -> None:
    lines = {
        str(path.relative_to(TESTS)): path.read_text(encoding="utf-8").count("\n")
        for path in sorted(TESTS.rglob("*.py"))
    }
    assert {path: count for path, count in lines.items() if count > LINES} == {}


def test_the_rules_themselves() -> None:
    short, long = "test_" + "a" * 54, "test_" + "a" * 55
    assert wrong_names(f"def {short}(): pass") == []
    assert wrong_names(f"class TestIt:\n    def {long}(self): pass") == [long]
    assert wrong_names("def test_a(): pass\ndef test_a(): pass") == ["test_a"]
    assert wrong_names("def test_a(): pass\nclass TestIt:\n    def test_a(self): pass") == []

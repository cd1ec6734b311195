"""Blocks of Python in README and the guide are Python, and name what clfuse has."""

from __future__ import annotations

import ast
import doctest
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import clfuse

TOP = Path(__file__).parent.parent.parent
DOCUMENTS = [TOP / "README.md", *sorted((TOP / "clfuse" / "guide").rglob("*.md"))]
BLOCK = re.compile(r"(?ms)^[ \t]*```python\n(.*?)^[ \t]*```$")


def programs(document: Path) -> list[str]:
    """The source of each block; of a doctest what is typed in."""
    found = map(textwrap.dedent, BLOCK.findall(document.read_text(encoding="utf-8")))
    return [doctest.script_from_examples(each) if ">>> " in each else each for each in found]


def unknown(source: str) -> list[str]:
    """Dotted names below clfuse, where `np` or `clfuse` is it, that are not there."""
    missing = []
    for node in ast.walk(ast.parse(source)):
        path: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            path.insert(0, inner.attr)
            inner = inner.value
        if path and isinstance(inner, ast.Name) and inner.id in ("np", "clfuse"):
            found: Any = clfuse
            if path[0] == "dask":
                continue  # an extra
            for name in path:
                found = getattr(found, name, missing)
            if found is missing:
                missing.append(".".join([inner.id, *path]))
    return missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_blocks_of_python_are_python_and_name_what_there_is(document):
    for source in programs(document):
        assert unknown(source) == []


def test_there_are_blocks_and_a_wrong_name_is_found():
    assert sum(len(programs(document)) for document in DOCUMENTS) > 25
    assert unknown("import clfuse as np\nnp.linalg.inverse(np.eye(2))") == ["np.linalg.inverse"]

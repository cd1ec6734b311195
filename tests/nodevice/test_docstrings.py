"""Docstrings of modules say what is in them, and what they name is there.

Nothing is imported here: the source is read.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "clfuse"

NAMES = r"(?:[\w']+\ ){0,3}`[\w.]+`(?:(?:,|\ and|,\ and)\ `[\w.]+`)*"
CALLER = re.compile(
    rf"""[;.]\ {NAMES}\ (?!(?:is|are|says?|has|have)\b)\w
    |\b(?:asked|called|used|read|filled|imported)\ by\b
    |\b(?:asks?|calls?|uses?|looks?|counts?|comes?|has|have|registers?|exports?)\ (?:it|them|here)\b
    |[;,]\ for\ `(?!`)
    |\b(?:every\ layer|all\ layers|whoever)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Clauses about who uses a module: "; `name` asks", "called by", "used by all layers" ..."""

QUOTED = re.compile(r"(?<!`)`([a-z_]\w*(?:\.\w+)+)`(?!`)")
"""A dotted name in backticks."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


MODULES = modules()


def ids(files: list[Path]) -> list[str]:
    return [str(file.relative_to(PACKAGE)) for file in files]


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def names_a_caller(text: str) -> bool:
    """Whether the first paragraph of a docstring says who uses what it is about."""
    return bool(CALLER.search(" ".join(text.split("\n\n")[0].split())))


@cache
def top_level() -> frozenset[str]:
    return frozenset(place.name for place in PACKAGE.iterdir() if (place / "__init__.py").is_file())


def is_there(name: str) -> bool:
    """Whether a dotted name is a module of the package, or something that its module's text has."""
    place, words = PACKAGE, name.removeprefix("clfuse.").split(".")
    while words and (place / words[0] / "__init__.py").is_file():
        place = place / words.pop(0)
    if words and (place / f"{words[0]}.py").is_file():
        place = place / f"{words.pop(0)}.py"
    file = place / "__init__.py" if place.is_dir() else place
    text = file.read_text(encoding="utf-8")
    return all(re.search(rf"\b{word}\b", text) for word in words)


def test_callers_are_recognised() -> None:
    assert names_a_caller("Reads of a value; `planner` asks.")
    assert names_a_caller("Parts of loops; `codegen.kernels` and\n`loops` call it.")
    assert names_a_caller("The order of passes; called by `evaluate` on a miss.")
    assert names_a_caller("Which devices there are; whoever runs something asks here.")
    assert names_a_caller("How a scan runs, whole or in pieces; for `planner`.")
    assert names_a_caller("Convolution and bits in bytes; `namespace` registers them.")
    assert names_a_caller("Every setting in one table; all layers read `settings`.")
    assert names_a_caller("Kept files; the runtime's `compiler`, `vendors` and `tuning` ask here.")
    assert not names_a_caller("A wait after every launch.\n\n`finish` is called by an evaluation.")
    assert not names_a_caller("Prefetching: loads that ask for memory before they need it.")
    assert not names_a_caller("Products and norms; `matmul` is the host's BLAS on device memory.")


@pytest.mark.parametrize("file", MODULES, ids=ids(MODULES))
def test_modules_say_what_is_in_them_and_not_who_calls(file: Path) -> None:
    text = docstring(file)
    assert text
    assert not names_a_caller(text)


@pytest.mark.parametrize("file", MODULES, ids=ids(MODULES))
def test_modules_that_texts_name_are_there(file: Path) -> None:
    for name in QUOTED.findall(file.read_text(encoding="utf-8")):
        if name.removeprefix("clfuse.").split(".")[0] in top_level() - {"dask"}:  # Dask's own
            assert is_there(name), name


COMPILED = sorted((PACKAGE / "_core").glob("*.p[yx][xi]"))


@pytest.mark.parametrize("file", COMPILED, ids=ids(COMPILED))
def test_what_texts_of_the_compiled_part_name_is_there(file: Path) -> None:
    for name in QUOTED.findall(file.read_text(encoding="utf-8")):
        if name.endswith((".pyx", ".pxi")):
            assert (file.parent / name).is_file(), name
        elif name != "object.__new__":
            first = name.removeprefix("clfuse.").split(".")[0]
            assert first in top_level() or (PACKAGE / f"{first}.py").is_file(), f"{name}: of what?"
            assert is_there(name), name

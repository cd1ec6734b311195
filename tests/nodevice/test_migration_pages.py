"""Pages for those who come from another library name what there is, there and in clfuse."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clfuse

FOLDER = Path(clfuse.__file__).parent / "guide" / "migration"
PAGES = sorted(FOLDER.glob("*.md"))
SPAN = re.compile(r"`([^`]+)`")
NAMES = re.compile(r"(?<![\w.])(np|clfuse|x)((?:\.[A-Za-z_]\w*)+)")
OTHERS = {"pyopencl": "cl", "numexpr": "ne"}
"""Page -> how its tables call the library that is installed wherever the tests run, or may be."""


def rows(page: Path) -> Iterator[list[str]]:
    """The cells of the first table of a page: its names."""
    text = page.read_text(encoding="utf-8")
    table = text[text.index("\n## Names\n"):text.index("\n## Pitfalls\n")]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def resolve(found: Any, path: str) -> Any:
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def test_there_is_a_page_for_each_library():
    assert [page.stem for page in PAGES] == ["cupy", "jax", "numba", "numexpr", "numpy", "pyopencl"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_names_something_of_clfuse_that_is_there(page):
    found = list(rows(page))
    assert len(found) >= 10
    for cells in found:
        assert len(cells) == 3, cells
        if cells[1] == "nothing":
            continue
        names = [match for span in SPAN.findall(cells[1]) for match in NAMES.findall(span)]
        assert names, cells
        for library, path in names:
            resolve(clfuse.ndarray if library == "x" else clfuse, path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_clfuse_anywhere_on_a_page_are_there(page):
    text = page.read_text(encoding="utf-8")
    for span in SPAN.findall(text):
        for library, path in NAMES.findall(span):
            if library != "x" and not (page.stem == "jax" and "jnp" in span):
                resolve(clfuse, path)


@pytest.mark.parametrize("page", OTHERS)
def test_names_of_the_other_library_are_there(page):
    library = pytest.importorskip(page)
    if page == "pyopencl":
        for name in ("array", "clmath", "clrandom", "elementwise", "reduction", "scan"):
            importlib.import_module(f"pyopencl.{name}")
    pattern = re.compile(rf"(?<![\w.]){OTHERS[page]}((?:\.[A-Za-z_]\w*)+)")
    spans = [span for cells in rows(FOLDER / f"{page}.md") for span in SPAN.findall(cells[0])]
    names = [path for span in spans for path in pattern.findall(span)]
    assert len(names) >= 5
    for path in names:
        resolve(library, path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_has_pitfalls_and_a_program(page):
    text = page.read_text(encoding="utf-8")
    pitfalls = text[text.index("\n## Pitfalls\n"):]
    assert sum(line.startswith("|") for line in pitfalls.splitlines()) >= 9
    assert "\n>>> " in pitfalls

"""Draws the packages of clfuse, in their order, into the contributor's page about architecture.

    python -m tests.architecture          # after a change of imports or of a package's docstring

The picture is Mermaid's text, which code hosts draw. It is made of the order of layers and of the
imports that `tests.nodevice.test_layers` reads, and of the first sentence of each package's
docstring. `tests/nodevice/test_architecture.py` compares the page with what this makes.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

from tests.nodevice.test_layers import MODULES, ORDER, imported_modules, rank

PAGE = Path(__file__).parent.parent / "clfuse" / "guide" / "contributing" / "architecture.md"
BEGIN = "<!-- drawn by python -m tests.architecture -->"
END = "<!-- end of the picture -->"

GROUND = "ground"
"""All that stands below the first of the packages that have a box."""

PUBLIC = "clfuse"
"""The modules that lie in the package itself, above the ground: the public names."""

COMMANDS = "__main__"

FIRST = "ops"


def place(module: str) -> int:
    """Where a module stands in the order; a package whose modules stand apart: the last of them."""
    if any(module == entry or module.startswith(f"{entry}.") for entry in ORDER):
        return rank(module)
    return max(rank(other) for other in MODULES if other.startswith(f"{module}."))


def box_of(module: str) -> str:
    """The box that a module is drawn in."""
    if place(module) < ORDER.index(FIRST):
        return GROUND
    top = module.split(".")[0]
    if top == COMMANDS:
        return "tools"
    return top if top in MODULES and MODULES[top].parent.name == top else PUBLIC


def boxes() -> list[str]:
    """Names from the ground to the roof, as the last module of each stands in the order."""
    last: dict[str, int] = {}
    for module in MODULES:
        box = box_of(module)
        last[box] = max(last.get(box, 0), place(module))
    return sorted(last, key=lambda box: last[box])


@cache
def imported_boxes(box: str) -> frozenset[str]:
    """The boxes that a box imports from."""
    others = {
        box_of(other)
        for module in MODULES if box_of(module) == box
        for other in imported_modules(module)
    }
    return frozenset(others - {box})


@cache
def below(box: str) -> frozenset[str]:
    """The boxes that a box reaches by imports."""
    found: set[str] = set()
    for other in imported_boxes(box):
        found |= {other} | below(other)
    return frozenset(found)


def arrows(box: str) -> list[str]:
    """What a box imports from, without what others of these import from already."""
    direct = imported_boxes(box)
    return [
        other for other in boxes()
        if other in direct and not any(other in below(between) for between in direct)
    ]


def caption(box: str) -> str:
    """What is in a box: the first sentence of its docstring, up to a semicolon."""
    if box == GROUND:
        inside = {module for module in MODULES if box_of(module) == GROUND}
        return " ".join(sorted({_shortest(module, inside) for module in inside}))
    path = MODULES["__init__" if box == PUBLIC else box]
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = re.split(r"\.(?:\s|$)|;\s", " ".join(text.split()))[0]
    return first.replace('"', "'").replace("`", "").replace("->", "to")


def _shortest(module: str, inside: set[str]) -> str:
    """The package that a module belongs to, if that is in the box as a whole; else the module."""
    top = module.split(".")[0]
    whole = {other for other in MODULES if other == top or other.startswith(f"{top}.")} <= inside
    return top if whole else module


def picture() -> str:
    """The picture, as it stands between its two marks in the page."""
    lines = ["```mermaid", "flowchart TB"]
    for box in reversed(boxes()):
        lines.append(f'    {box}["<b>{box}</b><br/>{caption(box)}"]')
    for box in reversed(boxes()):
        lines += [f"    {box} --> {other}" for other in arrows(box)]
    return "\n".join([BEGIN, "", *lines, "```", "", END])


def committed() -> str:
    """What stands in the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def main() -> None:
    """Put the picture into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(committed(), picture()), encoding="utf-8")
    print(f"{PAGE.name} has the picture of {len(boxes())} boxes", file=sys.stderr)


if __name__ == "__main__":
    main()

"""The array operations that a call of a kernel stands for, kept to be recorded again and again.

`arrays` writes them down once for a signature, as `Step`s; every later call of that signature
records them on its own storage cells. What changes from call to call are the cells, the offsets of
the arrays in them, and the numbers. From the second call on the steps are a function of their own
(2 us for ``a[i] = a[i] + 1``, a fifth of what walking the list takes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..api import reinterpret
from ..graph import build
from ..graph.ir import Node, rebind


class Term:
    """A value of the recipe: what step number `number` gives."""

    __slots__ = ("dtype", "number", "shape")

    def __init__(self, number: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.number = number
        self.shape = shape
        self.dtype = dtype


class Cell:
    """Stands for the present value of a storage cell."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Place:
    """Stands for the offset of an array in its storage, plus a number."""

    __slots__ = ("array", "offset")

    def __init__(self, array: int, offset: int) -> None:
        self.array = array
        self.offset = offset


class Number:
    """Stands for a number that the kernel is called with."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Step:
    """One function of `graph.build` or the like, with its arguments; `target` says what it gives.

    A cell that it gives is written: the cell has that value from here on.
    """

    __slots__ = ("arguments", "function", "target")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], target: Term | Cell
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.target = target


class Recipe:
    """Steps for one signature.

    Attributes
    ----------
    steps : list of Step
    results : list of Term or Node
        What the kernel returns.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.results: list[Any] = []
        self._terms = 0
        self._run: Callable[..., Any] | None = None
        self._called = False

    def emit(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> Term:
        """Write down a step that gives a value."""
        term = Term(self._terms, shape, dtype)
        self._terms += 1
        self.steps.append(Step(function, arguments, term))
        return term

    def write(self, cell: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Write down a step that gives a storage cell its new value."""
        self.steps.append(Step(function, arguments, Cell(cell)))

    # -- recording --------------------------------------------------------------------------------

    def run(self, cells: list[Any], offsets: list[int], numbers: list[Any]) -> list[Node]:
        """Record it: storage cells, offsets of the arrays, numbers; the nodes that it returns."""
        if self._run is not None:
            return self._run(cells, offsets, numbers)  # type: ignore[no-any-return]
        if self._called:
            self._run = self._compiled(len(cells))
            return self._run(cells, offsets, numbers)  # type: ignore[no-any-return]
        self._called = True
        return self._walked(cells, offsets, numbers)

    def _walked(self, cells: list[Any], offsets: list[int], numbers: list[Any]) -> list[Node]:
        nodes = [cell.node for cell in cells]
        values: list[Any] = [None] * self._terms

        def value(item: Any) -> Any:
            kind = type(item)
            if kind is Term:
                return values[item.number]
            if kind is Cell:
                return nodes[item.number]
            if kind is Place:
                return offsets[item.array] + item.offset
            if kind is Number:
                return numbers[item.position]
            return tuple([value(part) for part in item]) if kind is tuple else item

        written = set()
        for step in self.steps:
            found = step.function(*[value(item) for item in step.arguments])
            if type(step.target) is Cell:
                nodes[step.target.number] = found
                written.add(step.target.number)
            else:
                values[step.target.number] = found
        for number in sorted(written):
            rebind(cells[number], nodes[number])
        return [value(item) for item in self.results]

    def _compiled(self, cells: int) -> Callable[..., Any]:
        """The steps as a function: one line a step, everything constant a default argument."""
        constants: dict[int, str] = {}
        kept: list[Any] = []

        def text(item: Any) -> str:
            kind = type(item)
            if kind is Term:
                return f"t{item.number}"
            if kind is Cell:
                return f"n{item.number}"
            if kind is Place:
                base = f"offsets[{item.array}]"
                return f"{base} + {item.offset}" if item.offset else base
            if kind is Number:
                return f"numbers[{item.position}]"
            if kind is tuple and any(type(part) in _STAND_INS for part in item):
                return f"({' '.join(text(part) + ',' for part in item)})"
            name = constants.get(id(item))
            if name is None:
                name = constants[id(item)] = f"k{len(kept)}"
                kept.append(item)
            return name

        lines = []
        written = set()
        for step in self.steps:
            call = f"{text(step.function)}({', '.join(map(text, step.arguments))})"
            if type(step.target) is Cell:
                written.add(step.target.number)
            lines.append(f"    {text(step.target)} = {call}")
        used = [f"    n{number} = cells[{number}].node" for number in range(cells)]
        ends = [f"    {text(rebind)}(cells[{n}], n{n})" for n in sorted(written)]
        results = ", ".join(map(text, self.results))
        names = ", ".join([f"{name}={name}" for name in constants.values()])
        head = f"def recipe(cells, offsets, numbers{', ' if names else ''}{names}):"
        source = "\n".join([head, *used, *lines, *ends, f"    return [{results}]"])
        scope = {f"k{number}": item for number, item in enumerate(kept)}
        exec(compile(source, "<recipe of a kernel>", "exec"), scope)
        return scope["recipe"]  # type: ignore[no-any-return]


_STAND_INS: Final = (Term, Cell, Place, Number, tuple)


# -- what steps are made of ------------------------------------------------------------------------

view: Final = build.view
elementwise: Final = build.elementwise
update: Final = build.update
read: Final = reinterpret.read
write: Final = reinterpret.write
concatenate: Final = build.concatenate
cast: Final = build.cast
broadcast: Final = build.broadcast

"""Recipes: the array operations that a call of a kernel stands for, recorded again at each call.

They are written down once for a signature, as `Step`s. Every later call of that signature records
them on its own storage cells. The cells, the offsets of the arrays in them, and the numbers change
from call to call. From the second call on the steps are a compiled Python function (2 us for
``a[i] = a[i] + 1``, a fifth of what walking the list takes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays import reinterpret
from clfuse.ir import build
from clfuse.ir.nodes import Node, rebind
from clfuse.user_kernels.language.source.types import LEAST, MOST


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

    __slots__ = ("dtype", "position")
    shape = ()

    def __init__(self, position: int, dtype: np.dtype | None = None) -> None:
        self.position = position
        self.dtype = dtype


class Step:
    """One function of `ir.build` or the like, with its arguments; `target` says what it gives.

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
    """Steps for one signature of the kernel `name`.

    name (str)
    steps (list of Step)
    results (list of Term or Node): what the kernel returns.
    written (list of int): the cells that it writes to.
    numbers (list of (int, dtype)): the numbers of the call that become constants, by their places.
    alike (merged_calls.Alike or None): makes one recipe of many calls; None where they stay many.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.written: list[int] = []
        self.numbers: list[tuple[int, np.dtype]] = []
        self.alike: Any = None
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
        if cell not in self.written:
            self.written.append(cell)

    def limits(self, position: int) -> tuple[int, int]:
        """The least and the greatest integer that all dtypes take which the number at this place
        is made; of at most 64 bits, as in the tables of `merged_calls`."""
        low, high = LEAST, MOST
        for place, dtype in self.numbers:
            if place == position and dtype.kind in "iu":
                limits = np.iinfo(dtype)
                low, high = max(low, int(limits.min)), min(high, int(limits.max))
        return low, high

    # -- recording --------------------------------------------------------------------------------

    def run(self, cells: list[Any], offsets: Sequence[int], numbers: Sequence[Any]) -> list[Node]:
        """Record it: storage cells, offsets of the arrays, numbers; the nodes that it returns."""
        values, results = self.apply([cell.node for cell in cells], offsets, numbers)
        for number, value in zip(self.written, values, strict=True):
            value.kernel = self.name
            rebind(cells[number], value)
        for value in results:
            value.kernel = self.name
        return results

    def apply(
        self, nodes: list[Node], offsets: Sequence[int], numbers: Sequence[Any]
    ) -> tuple[list[Node], list[Node]]:
        """The new contents of the cells in `written`, which contained `nodes`, and what the kernel
        returns."""
        if self._run is not None:
            return self._run(nodes, offsets, numbers)  # type: ignore[no-any-return]
        if self._called:
            self._run = self._compiled()
            return self._run(nodes, offsets, numbers)  # type: ignore[no-any-return]
        self._called = True
        return self._walked(list(nodes), offsets, numbers)

    def _walked(
        self, nodes: list[Node], offsets: Sequence[int], numbers: Sequence[Any]
    ) -> tuple[list[Node], list[Node]]:
        values: list[Any] = [None] * self._terms
        at = values, nodes, offsets, numbers
        for step in self.steps:
            found = step.function(*[_standing_for(item, *at) for item in step.arguments])
            if type(step.target) is Cell:
                nodes[step.target.number] = found
            else:
                values[step.target.number] = found
        results = [_standing_for(item, *at) for item in self.results]
        return [nodes[number] for number in self.written], results

    def _compiled(self) -> Callable[..., Any]:
        """The steps as a function: one line a step, everything constant a default argument."""
        constants: dict[int, str] = {}
        kept: list[Any] = []
        cells: set[int] = set()

        def text(item: Any) -> str:
            kind = type(item)
            if kind is Term:
                return f"t{item.number}"
            if kind is Cell:
                cells.add(item.number)
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
        for step in self.steps:
            call = f"{text(step.function)}({', '.join(map(text, step.arguments))})"
            lines.append(f"    {text(step.target)} = {call}")
        written = ", ".join([f"n{number}" for number in self.written])
        results = ", ".join(map(text, self.results))
        used = [f"    n{number} = nodes[{number}]" for number in sorted(cells)]
        names = ", ".join([f"{name}={name}" for name in constants.values()])
        head = f"def recipe(nodes, offsets, numbers{', ' if names else ''}{names}):"
        end = f"    return [{written}], [{results}]"
        scope: dict[str, Any] = {f"k{number}": item for number, item in enumerate(kept)}
        exec(compile("\n".join([head, *used, *lines, end]), "<recipe of a kernel>", "exec"), scope)
        return scope["recipe"]  # type: ignore[no-any-return]


def _standing_for(
    item: Any,
    values: list[Any],
    nodes: list[Node],
    offsets: Sequence[int],
    numbers: Sequence[Any],
) -> Any:
    """An argument of a step; no closure, which would hold the nodes until the collector comes."""
    kind = type(item)
    if kind is Term:
        return values[item.number]
    if kind is Cell:
        return nodes[item.number]
    if kind is Place:
        return offsets[item.array] + item.offset
    if kind is Number:
        return numbers[item.position]
    if kind is tuple:
        return tuple([_standing_for(part, values, nodes, offsets, numbers) for part in item])
    return item


_STAND_INS: Final = (Term, Cell, Place, Number, tuple)


# -- what steps are made of ------------------------------------------------------------------------

view: Final = build.view
elementwise: Final = build.elementwise
update: Final = build.update
read: Final = reinterpret.read_as
write: Final = reinterpret.write
concatenate: Final = build.concatenate
cast: Final = build.cast
broadcast: Final = build.broadcast

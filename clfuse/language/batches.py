"""Calls of a kernel that differ only in where their arrays lie, as one call with one index more.

    for b in range(100_000):
        work(10, a[b])                   # a[b][i] = a[b][i] + 1

leaves one `Pending` node, to which every call adds a row of offsets. When somebody looks at it,
the rows become array operations: all at once, with the number of the call as a further index, where
the offsets are regular and `accesses.conflict` proves that no call touches what another one writes;
one after the other otherwise. Calls in between that somebody might tell apart end the batch: a view
that was read, another kernel, a write.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..api import handle as handles
from ..api.conversion import host_node
from ..api.launching import _ALONE as ALONE
from ..config import settings
from ..graph.ir import LateNode, Node, Op, rebind
from .accesses import Domain
from .arrays import NotArrays, Translation
from .recipe import Recipe
from .tree import Function
from .values import Array, Column, OutOfBounds

if TYPE_CHECKING:
    from .calls import Arguments

FEW: Final = 4
"""Calls that are recorded one after the other in any case: one index more is no gain for them."""

_KEPT: Final = 64
"""Batches of a recipe, by their number of calls and their steps, that are remembered."""

MOST: Final = 1 << 20
"""Calls of one batch: as many rows are in memory."""

_get: Final[dict[str, Any]] = {n: Node.__dict__[n].__get__ for n in ("op", "inputs", "param")}
_set: Final[dict[str, Any]] = {n: Node.__dict__[n].__set__ for n in ("op", "inputs", "param")}


class Pending(LateNode):
    """The contents of a storage cell after a batch of calls; what it is, is found when asked."""

    __slots__ = ("__weakref__", "_batch")
    _batch: Batch | None

    def close(self) -> None:
        """Find what it is."""
        batch = self._batch
        if batch is not None:
            batch.close()

    @property
    def op(self) -> Op:
        """As of every node."""
        self.close()
        return _get["op"](self)  # type: ignore[no-any-return]

    @op.setter
    def op(self, op: Op) -> None:
        _set["op"](self, op)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """As of every node."""
        self.close()
        return _get["inputs"](self)  # type: ignore[no-any-return]

    @inputs.setter
    def inputs(self, inputs: tuple[Node, ...]) -> None:
        _set["inputs"](self, inputs)

    @property
    def param(self) -> Any:
        """As of every node."""
        self.close()
        return _get["param"](self)

    @param.setter
    def param(self, param: Any) -> None:
        _set["param"](self, param)

    def become(self, node: Node) -> None:
        """Be what `node` is, from here on."""
        self._batch = None
        # A tuple of its own: who counts who holds the inputs sees one node a tuple.
        self.op, self.inputs, self.param = node.op, (*node.inputs,), node.param
        self.buffer = node.buffer
        self.kernel = node.kernel


class Table:
    """A number that differs from call to call: a vector, one element a call."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node


@dataclass(slots=True, eq=False)
class Alike:
    """What a recipe was made of, to make one of many calls: the same with one index more."""

    function: Function
    domain: Domain
    arrays: dict[str, Array]
    scalars: dict[str, Any]
    integers: dict[str, int]
    made: dict[Any, Recipe | None] = field(default_factory=dict)

    def together(
        self, columns: list[tuple[int, int]], count: int, numbers: list[Any]
    ) -> Recipe | None:
        """`count` calls as one; None where they depend on each other.

        `columns` has (first offset, step) of every array.
        """
        first: dict[int, int] = {}
        key: list[Any] = [count, *[isinstance(number, Table) for number in numbers]]
        for array in self.arrays.values():
            offset, step = columns[array.number]
            key += [offset - first.setdefault(array.cell, offset), step]
        known = tuple(key)
        if known not in self.made:
            if len(self.made) >= _KEPT:
                self.made.clear()
            self.made[known] = self._translated(columns, count, numbers)
        return self.made[known]

    def _translated(
        self, columns: list[tuple[int, int]], count: int, numbers: list[Any]
    ) -> Recipe | None:
        arrays = {}
        for name, array in self.arrays.items():
            offset, step = columns[array.number]
            shape, strides = (count, *array.shape), (step, *array.strides)
            arrays[name] = replace(array, offset=offset, shape=shape, strides=strides)
        scalars = {
            name: Column(given.position, given.type)
            if isinstance(numbers[given.position], Table) else given
            for name, given in self.scalars.items()
        }
        domain = ((0, count), *self.domain)
        try:
            return Translation(self.function, domain, arrays, scalars, self.integers, 1).recipe
        except (NotArrays, OutOfBounds):
            return None


class Batch:
    """Calls of one recipe on the same storage cells.

    Parameters
    ----------
    recipe : Recipe
        Of one call.
    ranges : object
        Of the first call, as it was given.
    given : Arguments
        Of the first call.
    args : tuple
        The same as they were given; None where calls are only told to be alike by all of their
        signature.
    """

    __slots__ = (
        "__weakref__", "_cells", "_check", "_expected", "_lock", "_nodes", "_numbers", "_offsets",
        "_pending", "_ranges", "_widths", "recipe",
    )  # fmt: skip

    def __init__(
        self, recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...] | None
    ) -> None:
        self.recipe = recipe
        self._lock = threading.RLock()
        self._nodes: list[Node] = [cell.node for cell in given.cells]
        self._offsets: list[int] | None = list(given.offsets)
        self._numbers = list(given.numbers)
        self._widths = len(given.offsets), len(given.numbers)
        self._pending: list[tuple[int, weakref.ref[Pending]]] = []
        self._cells = len(given.cells)
        for number in recipe.written:
            old = self._nodes[number]
            made = Pending.__new__(Pending)
            made._batch = self
            made.shape, made.dtype = old.shape, old.dtype
            made.buffer, made.computed = None, False
            self._pending.append((number, weakref.ref(made)))
            rebind(given.cells[number], made)
        self._ranges = ranges
        self._check = settings.check
        self._expected = None if args is None else self._of_first(given, args)

    def _of_first(self, given: Arguments, args: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """What `again` compares arguments with; None where that would not do."""
        if len(given.cells) < len(given.handles):
            return None  # how far the arrays lie apart counts too
        pending = dict(self._pending)
        found: list[tuple[Any, ...]] = []
        for argument, place in zip(args, given.places, strict=True):
            kind = type(argument)
            if kind in _DTYPES:
                found.append((kind, None))
            elif kind is handles.ARRAY and given.handles[place] is argument:
                view = argument._view
                layout = (None, True) if view is None else (view.strides, view.writeable)
                cell = given.cell_of[place]
                node: Any = pending.get(cell)
                if node is None:
                    # Held by the batch itself, until it is closed.
                    node = partial(self._nodes.__getitem__, cell)
                found.append((
                    kind, argument._shape, argument._dtype, *layout, node, cell in pending,
                ))
            else:
                return None
        return found

    def again(self, ranges: Any, args: tuple[Any, ...]) -> bool:
        """Take one call more whose arguments differ from the first one's in offsets and in the
        values of numbers alone, and if nobody has looked at what came before; False else."""
        expected = self._expected
        if (
            expected is None
            or len(args) != len(expected)
            or type(ranges) is not type(self._ranges)
            or ranges != self._ranges
            or settings.check is not self._check
            or settings.kernels == "python"
            or not settings.fusion
            or self._offsets is None
        ):
            return False
        offsets: list[int] = []
        numbers: list[Any] = []
        for argument, wanted in zip(args, expected):  # noqa: B905 (0.1 us; looked at above)
            if type(argument) is not wanted[0]:
                return False
            if wanted[1] is None:
                numbers.append(argument)
                continue
            _, shape, dtype, strides, writeable, node, is_written = wanted
            storage = argument._storage
            view = argument._view
            if (
                argument._shape != shape
                or argument._dtype is not dtype
                or storage.node is not node()
                or (is_written and getrefcount(storage.node) > ALONE)
            ):
                return False
            if view is None:
                if strides is not None:
                    return False
                offsets.append(0)
            elif view.strides != strides or view.writeable is not writeable:
                return False
            else:
                offsets.append(view.offset)
        return self._take(offsets, numbers)

    def append(self, given: Arguments) -> bool:
        """Take one call more of the same signature, if nobody has looked at what came before."""
        cells = given.cells
        if self._offsets is None or len(cells) != self._cells:
            return False
        for number, reference in self._pending:
            if cells[number].node is not reference() or getrefcount(cells[number].node) > ALONE:
                return False
        if len(self._pending) < self._cells:
            written = self.recipe.written
            for number, cell in enumerate(cells):
                if number not in written and cell.node is not self._nodes[number]:
                    return False
        if given.numbers:
            for value, first in zip(given.numbers, self._numbers, strict=False):
                if isinstance(first, Node) and value is not first:
                    return False
        return self._take(given.offsets, given.numbers)

    def _take(self, offsets: list[int], numbers: list[Any]) -> bool:
        with self._lock:
            taken = self._offsets
            if taken is None or len(taken) >= MOST * len(offsets):
                return False
            taken += offsets
            self._numbers += numbers
        return True

    def close(self) -> None:
        """Make every `Pending` of this batch what the calls make of it."""
        with self._lock:
            taken, self._offsets = self._offsets, None
            if taken is None:
                return
            nodes, values = self._nodes, self._numbers
            self._nodes, self._numbers, self._expected = [], [], None
            width, count = self._widths
            table = np.array(taken, np.int64).reshape(-1, width)
            columns = [values[place::count] for place in range(count)]
            found = self._regular(table, columns) if len(table) >= FEW else None
            if found is not None:
                self._apply(nodes, *found)
            else:
                rows = zip(*columns, strict=True) if columns else repeat(())
                for offsets, row in zip(table.tolist(), rows, strict=False):
                    self._apply(nodes, self.recipe, offsets, row)
            for place, reference in self._pending:
                made = reference()
                if made is not None:
                    made.become(nodes[place])

    @staticmethod
    def _apply(
        nodes: list[Node], recipe: Recipe, offsets: Sequence[int], numbers: Sequence[Any]
    ) -> None:
        written, _ = recipe.apply(nodes, offsets, numbers)
        for place, node in zip(recipe.written, written, strict=True):
            node.kernel = recipe.name
            nodes[place] = node

    def _regular(
        self, table: np.ndarray, columns: list[list[Any]]
    ) -> tuple[Recipe, tuple[int, ...], tuple[Any, ...]] | None:
        """All calls as one, if their offsets are evenly spaced and they may come in any order."""
        order = np.lexsort(table.T[::-1])
        table = table[order]
        steps = np.diff(table, axis=0)
        if (steps != steps[0]).any():
            return None
        numbers: list[Any] = []
        for column in columns:
            first = column[0]
            if all(value is first for value in column):
                numbers.append(first)
            elif type(first) in _DTYPES:
                try:
                    values: Any = np.array([column[k] for k in order], _DTYPES[type(first)])
                except OverflowError:
                    return None
                numbers.append(Table(host_node(values)))
            else:
                return None
        starts = [(int(first), int(step)) for first, step in zip(table[0], steps[0], strict=True)]
        recipe: Recipe | None = self.recipe.alike.together(starts, len(table), numbers)
        if recipe is None:
            return None
        plain = [n.node if isinstance(n, Table) else n for n in numbers]
        return recipe, tuple([first for first, _ in starts]), tuple(plain)


_DTYPES: Final = {int: np.int64, float: np.float64, complex: np.complex128, bool: np.bool_}


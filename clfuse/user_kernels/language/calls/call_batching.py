"""Batching: kernel calls that differ only in where their arrays lie, as one with one more index.

    for b in range(100_000):
        work(10, a[b])                   # a[b][i] = a[b][i] + 1
        scale(10, 0.5, a[b])

leaves one `Pending` node for every array written to, and each call adds a row of offsets to the
`Series` of its kernel. When one of the arrays is observed, `merged_calls` finds which calls may be
one; the others become array operations one after the other. Operations in between that depend on
how many of the calls are done end the batch: a view that was read, another write, a kernel on
arrays that share none with these.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from sys import getrefcount
from typing import Any, Final

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.config import settings
from clfuse.ir.launch_nodes import Part
from clfuse.ir.nodes import LateNode, Node, Op, finding, rebind
from clfuse.user_kernels.language.array_route.recipe import Recipe
from clfuse.user_kernels.opencl.record_launch import _ALONE as ALONE

from . import python_backend
from .arguments import Arguments
from .merged_calls import DTYPES, FEW, Calls, as_one, turns

MOST: Final = 1 << 20
"""Calls of one batch: as many rows are in memory."""

MOST_SERIES: Final = 16
"""Of one batch: kernels, or calls of one that differ in more than offsets and numbers."""

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
        # A tuple of its own: who counts who holds the inputs sees one node a tuple.
        self.op, self.inputs, self.param = node.op, (*node.inputs,), node.param
        self.buffer = node.buffer
        self.kernel = node.kernel
        self._batch = None  # last: other threads look no further from here on


class Series:
    """Equal calls in a batch, of one recipe on the same storage cells.

    recipe (Recipe): of one call.
    cells (tuple of int): the batch's numbers of the storage cells, in the order of the recipe.
    offsets, numbers (list): of all calls, one behind the other.
    widths (tuple of int): how many of them are one call's.
    ended (list of int): how many calls it had, once these were recorded one by one; 0 before, and
        otherwise.
    """

    __slots__ = (
        "__weakref__", "_batch", "_check", "_expected", "_number", "_ranges", "cells", "ended",
        "numbers", "offsets", "recipe", "widths",
    )  # fmt: skip

    def __init__(
        self, batch: Batch, number: int, recipe: Recipe, cells: tuple[int, ...], ranges: Any,
        given: Arguments, args: tuple[Any, ...] | None,
    ) -> None:
        self._batch = weakref.ref(batch)
        self._number = number
        self.recipe = recipe
        self.cells = cells
        self.offsets = list(given.offsets)
        self.numbers = list(given.numbers)
        self.widths = len(given.offsets), len(given.numbers)
        self.ended = [0]
        self._ranges = ranges
        self._check = settings.check
        self._expected = None if args is None else self._of_first(given, args)

    def __len__(self) -> int:
        """How many calls it has."""
        return len(self.offsets) // self.widths[0]

    def call(self, number: int) -> tuple[list[int], list[Any]]:
        """The offsets and numbers of one call."""
        wide, many = self.widths
        offsets = self.offsets[number * wide : (number + 1) * wide]
        return offsets, self.numbers[number * many : (number + 1) * many]

    def _of_first(self, given: Arguments, args: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """What `again` compares arguments with; None where that would not do."""
        if len(given.cells) < len(given.handles):
            return None  # how far the arrays lie apart counts too
        found: list[tuple[Any, ...]] = []
        for argument, place in zip(args, given.places, strict=True):
            kind = type(argument)
            if kind is int:
                found.append((kind, None, *self.recipe.limits(place)))
            elif kind in DTYPES:
                found.append((kind, None))
            elif kind is handles.ARRAY and given.handles[place] is argument:
                view = argument._view
                layout = (None, True) if view is None else (view.strides, view.writeable)
                cell = self.cells[given.cell_of[place]]
                found.append((kind, argument._shape, argument._dtype, *layout, cell))
            else:
                return None
        return found

    def again(self, ranges: Any, args: tuple[Any, ...]) -> bool:
        """Take one call more whose arguments differ from the first one's in offsets and in the
        values of numbers alone, and if nobody has looked at what came before; False else."""
        with finding:
            return self._again(ranges, args)

    def _again(self, ranges: Any, args: tuple[Any, ...]) -> bool:
        batch, expected = self._batch(), self._expected
        if (
            batch is None
            or expected is None
            or len(args) != len(expected)
            or (
                ranges is not self._ranges
                and (type(ranges) is not type(self._ranges) or ranges != self._ranges)
            )
            or settings.check is not self._check
            or settings.kernels == "python"
            or not settings.fusion
            or not batch.is_open
        ):
            return False
        present, written = batch.present, batch.written
        offsets: list[int] = []
        numbers: list[Any] = []
        for argument, wanted in zip(args, expected):  # noqa: B905 (0.1 us; looked at above)
            if type(argument) is not wanted[0]:
                return False
            if wanted[1] is None:
                if wanted[0] is int and not wanted[2] <= argument <= wanted[3]:
                    return False
                numbers.append(argument)
                continue
            _, shape, dtype, strides, writeable, cell = wanted
            storage = argument._storage
            view = argument._view
            if (
                argument._shape != shape
                or argument._dtype is not dtype
                or storage.node is not present[cell]()
                or (written[cell] and getrefcount(storage.node) > ALONE)
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
        return self._take(batch, offsets, numbers)

    def append(self, given: Arguments) -> bool:
        """Take one call more of the same signature, if nobody has looked at what came before."""
        with finding:
            batch = self._batch()
            if batch is None or batch.cells_of(given) != self.cells:
                return False
            if given.numbers:
                for value, first in zip(given.numbers, self.numbers, strict=False):
                    if isinstance(first, Node) and value is not first:
                        return False
            return self._take(batch, given.offsets, given.numbers)

    def ended_at(self, offsets: list[int]) -> bool:
        """Whether its last call had these offsets."""
        return self.offsets[-len(offsets):] == offsets

    def is_alone(self) -> bool:
        """Whether it is all of a batch that is open, and has one call: what began after it has
        written to the same storage."""
        batch = self._batch()
        return batch is not None and batch.is_open and len(batch.order) == 1

    def repeats(self, offsets: list[int]) -> bool:
        """Whether a call would be the third on the same bytes: nothing that could be one call."""
        taken, width = self.offsets, len(offsets)
        return (
            (not width or taken[-1] == offsets[-1])  # most differ there
            and taken[-width:] == offsets
            and taken[-2 * width : -width] == offsets
        )

    def _take(self, batch: Batch, offsets: list[int], numbers: list[Any]) -> bool:
        if len(batch.order) >= MOST or self.repeats(offsets):
            return False
        self.offsets += offsets
        if numbers:
            self.numbers += numbers
        batch.order.append(self._number)
        return True


class Batch:
    """Calls that nobody has looked at yet, of one kernel or of several by turns.

    present (list of callable): what each of its storage cells has to contain, so that a call may
        join.
    written (list of bool): whether the calls write to it; it contains a `Pending` then.
    order (list of int): the number of the series of every call.
    """

    __slots__ = (
        "__weakref__", "_nodes", "_pending", "_series", "_storages", "is_open", "order", "present",
        "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.is_open = True
        self.order: list[int] = []
        self.present: list[Callable[[], Any]] = []
        self.written: list[bool] = []
        self._nodes: list[Node] = []
        self._storages: list[weakref.ref[Any]] = []
        self._pending: dict[int, weakref.ref[Pending]] = {}
        self._series: list[Series] = []

    def cells_of(self, given: Arguments) -> tuple[int, ...] | None:
        """Its numbers of a call's storage cells, where -1 is one that it does not know; None where
        somebody looked at what they contain, or changed it."""
        if not self.is_open:
            return None
        storages = [reference() for reference in self._storages]
        found = []
        for cell in given.cells:
            number = next((k for k, known in enumerate(storages) if known is cell), -1)
            if number < 0:
                if type(cell.node) is Pending and cell.node._batch is self:
                    return None  # a copy of one that it knows
            elif cell.node is not self.present[number]() or (
                self.written[number] and getrefcount(cell.node) > ALONE
            ):
                return None
            found.append(number)
        return tuple(found)

    def take(
        self, recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...] | None,
        begun: list[tuple[Any, Pending]],
    ) -> Series | None:
        """Take a call that the series before did not; the series that it is in, None where it must
        not come into this batch. Storage cells that are written to for the first time are appended
        to `begun`, with what they have to contain."""
        for cell in given.cells:
            node = cell.node
            if type(node) is Pending and node._batch is not self:
                # Else a chain of batches would be closed by one call a link. It may look at what
                # this batch has written, and so close it: before it is looked at.
                node.close()
        del node
        cells = self.cells_of(given)
        if cells is None:
            return None
        for series in self._series:
            if series.recipe is recipe and series.cells == cells:
                return series if series.append(given) else None
        if len(self._series) >= MOST_SERIES:
            return None
        numbers = [
            self._known(cell) if number < 0 else number
            for cell, number in zip(given.cells, cells, strict=True)
        ]
        for place in recipe.written:
            if not self.written[numbers[place]]:
                begun.append((given.cells[place], self._write(numbers[place])))
        made = Series(self, len(self._series), recipe, tuple(numbers), ranges, given, args)
        self._series.append(made)
        self.order.append(len(self._series) - 1)
        return made

    def _known(self, cell: Any) -> int:
        number = len(self._nodes)
        self._nodes.append(cell.node)
        self._storages.append(weakref.ref(cell))
        # Held by the batch itself, until it is closed.
        self.present.append(partial(self._nodes.__getitem__, number))
        self.written.append(False)
        return number

    def _write(self, number: int) -> Pending:
        old = self._nodes[number]
        made = Pending.__new__(Pending)
        made._batch = self
        made.shape, made.dtype = old.shape, old.dtype
        made.buffer, made.computed = None, False
        self._pending[number] = self.present[number] = weakref.ref(made)
        self.written[number] = True
        return made

    def close(self) -> None:
        """Make every `Pending` of this batch what the calls make of it.

        An interrupt leaves all that this needs: the next call begins anew.
        """
        with finding:
            if not self.is_open and not self._series:
                return
            self.is_open = False
            nodes, every = self._nodes.copy(), self._series
            if max([len(series) for series in every]) < FEW:
                # None of them comes often enough for rounds: 0.03 ms to look for them.
                self._one_by_one(nodes, every)
            else:
                self._in_rounds(nodes, every)
            for place, reference in self._pending.items():
                made = reference()
                if made is not None:
                    made.become(nodes[place])
            self._nodes, self._storages, self.present = [], [], []
            self._series = []  # last: it is closed

    def _in_rounds(self, nodes: list[Node], every: list[Series]) -> None:
        for part in turns(self.order, every):
            found = as_one(part) if len(part[0].table) >= FEW else None
            if found is not None:
                for phase, one in zip(part, found, strict=True):
                    recipe = one.together.recipe
                    _apply(nodes, phase.series, recipe, one.offsets, one.numbers)
            else:
                for calls in zip(*[phase.calls() for phase in part], strict=True):
                    for phase, (offsets, row) in zip(part, calls, strict=True):
                        _apply(nodes, phase.series, phase.series.recipe, offsets, row)

    def _one_by_one(self, nodes: list[Node], every: list[Series]) -> None:
        for series in every:
            series.ended[0] = len(series)
        taken = [0] * len(every)
        for number in self.order:
            series = every[number]
            offsets, numbers = series.call(taken[number])
            taken[number] += 1
            _apply(nodes, series, series.recipe, offsets, numbers)


def accelerate(kernel: type) -> None:
    """Let calls of kernels try the compiled case of `Series.again` first, if there is one."""
    core = loading.load()
    if core is not None:
        core.connect_batches(kernel, {
            "Batch": Batch, "DTYPES": DTYPES, "MOST": MOST, "Part": Part, "Pending": Pending,
            "Series": Series, "running": python_backend.ANYWHERE,
        })


def begin(recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...] | None) -> Series:
    """The series that a call is in: of a batch that is open for it, or of a new one.

    recipe: of one call.
    ranges (object): of the first call, as it was given.
    given: of the first call.
    args: the same as they were given; None where calls are only told to be alike by all of their
        signature.
    """
    begun: list[tuple[Any, Pending]] = []
    with finding:
        series = _series_for(recipe, ranges, given, args, begun)
    for cell, pending in begun:  # last: it may evaluate everything, and so close the batch
        rebind(cell, pending)
    return series


def _series_for(
    recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...] | None,
    begun: list[tuple[Any, Pending]],
) -> Series:
    for cell in given.cells:
        batch = cell.node._batch if type(cell.node) is Pending else None
        if batch is not None:
            found = batch.take(recipe, ranges, given, args, begun)
            if found is not None:
                return found
            batch.close()
    made = Batch().take(recipe, ranges, given, args, begun)
    assert made is not None, "a new batch takes every call"
    return made


def _apply(
    nodes: list[Node], series: Calls, recipe: Recipe, offsets: Sequence[int],
    numbers: Sequence[Any],
) -> None:
    cells = series.cells
    written, _ = recipe.apply([nodes[cell] for cell in cells], offsets, numbers)
    for place, node in zip(recipe.written, written, strict=True):
        node.kernel = recipe.name
        nodes[cells[place]] = node

"""Outputs of a trace: how results and writes are made again, and which nodes they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.errors import JitError
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Storage, loop
from clfuse.ir.trace import Trace
from clfuse.ir.traced_number import Computed, TracedNumber

__all__ = ["Results"]


class Results:
    """How the results of a trace are made again, and what has to be computed for them.

    A handle is described by its class, cell, shape, dtype and view; the cell by its number, those
    that the function made after those that it met. The first handles are the arguments.
    """

    def __init__(self, trace: Trace, leaves: Sequence[Any], name: str) -> None:
        self._trace = trace
        self._name = name
        self._numbers: dict[int, int] = {id(leaf): i for i, leaf in enumerate(leaves)}
        self._kept: list[Any] = []
        self._arguments = len(leaves)
        self._made: dict[Storage, int] = {}
        self._count = len(leaves)
        self._root_numbers: dict[Node, int] = {}
        self.handles: list[tuple[Any, ...]] = []
        self.roots: list[Node] = []
        #: Numbers of cells whose value, or which themselves, are among the results.
        self.survivors: set[int] = set()
        #: What a cell gets: ("cell", number), ("root", number) or ("node", node).
        self.made: list[tuple[str, Any]] = []
        self.written = [(n, self._source(node)) for n, node in trace.written().items()]

    def _source(self, node: Node) -> tuple[str, Any]:
        if node in self._trace.placeholders:
            number = self._trace.placeholders.index(node)
            self.survivors.add(number)
            return "cell", number
        if type(node.buffer) is Computed:  # a number alone, in an array of no axes
            same = loop("positive", (node.dtype,), node.dtype)
            node = build.elementwise(same, (node,), ())
        if node.buffer is not None or node.op.kind is Kind.CONSTANT:
            return "node", node
        if node not in self._root_numbers:
            self._root_numbers[node] = len(self.roots)
            self.roots.append(node)
        return "root", self._root_numbers[node]

    def _number_of(self, cell: Storage) -> int:
        """The number of a cell from before the trace, which may meet it only now."""
        self._trace.read(cell)
        return self._trace.cells.index(cell)

    def _handle(self, handle: Any) -> int:
        known = self._numbers.get(id(handle))
        if known is not None:
            if known < self._arguments:
                self.survivors.add(self._number_of(handle._storage))
            return known
        cell = handle._storage
        if self._trace.is_own(cell):
            number = self._made.get(cell)
            if number is None:
                number = self._made[cell] = len(self._made)
                self.made.append(self._source(self._trace.read(cell)))
            number = -1 - number
        else:
            number = self._number_of(cell)
            self.survivors.add(number)
        view = handle._view
        described = None
        if view is not None:
            base = None if view.base is None else self._handle(view.base)
            described = (view.offset, view.strides, base, view.ordered, view.writeable)
        self.handles.append((type(handle), number, handle._shape, handle._dtype, described))
        self._kept.append(handle)  # its id must stay its own
        place = self._numbers[id(handle)] = self._count
        self._count += 1
        return place

    def maker(self, value: Any) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        """A function that makes `value` again from the handles and the numbers."""
        kind = type(value)
        if kind is handles.ARRAY or kind in handles.SCALARS:
            place = self._handle(value)
            return lambda made, numbers: made[place]
        if kind is TracedNumber:
            place = value.place
            return lambda made, numbers: numbers[place]
        if kind is tuple or kind is list:
            parts = [self.maker(item) for item in value]
            return lambda made, numbers: kind([part(made, numbers) for part in parts])
        if kind is dict:
            named = {name: self.maker(item) for name, item in value.items()}
            return lambda made, numbers: {name: part(made, numbers) for name, part in named.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = [self.maker(item) for item in value]
            return lambda made, numbers: kind(*[part(made, numbers) for part in parts])
        plain = (bool, int, float, complex, str, bytes, slice, range, np.generic, np.dtype, type)
        if value is None or value is Ellipsis or isinstance(value, plain):
            return lambda made, numbers: value
        raise JitError(
            f"{self._name} returns a {kind.__name__}, which a replay cannot make anew; return "
            "arrays, numbers, strings, and tuples, lists or dicts of them"
        )

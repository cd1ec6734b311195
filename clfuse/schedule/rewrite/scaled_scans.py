"""Scans on a GPU that NumPy makes one element after another: a work-item would walk a row.

    cumprod of floats     digits and exponents  ->  products, in any order  ->  floats
    quotients of floats   those of the first element, and of the others' reciprocals  ->  the same
    cumsum of halves      floats  ->  sums, in any order  ->  halves
    cumprod of complex    products, in any order

Digits and exponents are apart (`kernels/lib/scaled.cl`), so that no product of a part of a row
overflows or vanishes where the running product does not. Where the running product does, it stays
infinite or zero, as NumPy's; but where it passes the end of the range by less than a factor of two
and comes back. On a CPU such rows are walks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clfuse.ir.nodes import Kind, Op, loop, reduction, structural
from clfuse.schedule.graph import Graph
from clfuse.schedule.kinds import is_sequential
from clfuse.target.traits import DeviceTraits

from .rebuilding import Replacing

_FLOAT32: Final = np.dtype(np.float32)
_INT64: Final = np.dtype(np.int64)
_SCALED: Final[dict[str, np.dtype]] = {"f": np.dtype(np.complex64), "d": np.dtype(np.complex128)}


def scan_in_any_order(graph: Graph, traits: DeviceTraits) -> Graph:
    """`graph` with these scans on a GPU regrouped; itself where there are none."""
    if traits.schedule != "gpu" or Kind.SCAN not in graph.kinds:
        return graph
    found = {
        node: graph.ops[node] for node, kind in enumerate(graph.kinds)
        if kind is Kind.SCAN and _is_walk(graph.ops[node], graph.dtypes[node])
    }  # fmt: skip
    return _Regrouped(graph, found).result if found else graph


def _is_walk(op: Op | None, dtype: np.dtype) -> bool:
    return op is not None and (op.name == "divide" or is_sequential(op.name, dtype))


class _Regrouped(Replacing):
    """The graph with these scans in any order."""

    def _replaced(self, node: int, op: Op) -> int:
        graph = self.graph
        dtype, axes = graph.dtypes[node], graph.params[node]
        value = self._map("cast", self.moved[self._inputs(node)[0]], dtype)
        if dtype.kind == "c":
            return self._scan("multiply_regrouped", value, axes)
        wide = _FLOAT32 if dtype.char == "e" else dtype
        value = self._map("cast", value, wide)
        if op.name == "add":
            value = self._scan("add", value, axes)
        else:
            scaled = _SCALED[wide.char]
            if op.name == "divide":
                value = self._divisors(value, axes[0], scaled)
            else:
                value = self._map("to_scaled", value, scaled)
            value = self._scan("multiply_scaled", value, axes)
            made = "from_scaled_halves" if dtype.char == "e" else "from_scaled"
            value = self._map(made, value, wide)
        return self._map("cast", value, dtype)

    def _divisors(self, value: int, axis: int, scaled: np.dtype) -> int:
        """The first element along an axis, and the others' reciprocals."""
        result = self.result
        shape, source = result.shapes[value], result.dtypes[value]
        iota = structural(Kind.IOTA, "iota", _INT64)
        places = self._node(iota, (shape[axis],), ())
        view = structural(Kind.VIEW, "view", _INT64)
        param = (0, tuple([int(place == axis) for place in range(len(shape))]))
        along = self._node(view, shape, (places,), param)
        op = loop("to_scaled_divisor", (source, _INT64), scaled)
        return self._node(op, shape, (value, along))

    def _scan(self, name: str, value: int, axes: tuple[int, ...]) -> int:
        result = self.result
        shape, dtype = result.shapes[value], result.dtypes[value]
        op = reduction(Kind.SCAN, name, dtype, dtype)
        return self._node(op, shape, (value,), axes)

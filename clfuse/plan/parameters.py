"""What the kernels of a plan take as arguments, counted while `placement` fills them.

A device promises so many bytes of parameters. A buffer comes with offset and strides, a number only
with itself, so that a polynomial of a hundred coefficients is one kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from ..graph.ir import Kind
from . import cost
from .graph import Graph

_NAMED = (Kind.CONSTANT, Kind.VIEW)
"""What is an argument wherever it lies: a number, or an offset and strides."""

_LEAST_NBYTES: Final = 8
"""Bytes of a number among parameters, as they are aligned."""


class Parameters:
    """The arguments of every kernel, by the key that `placement` has for it.

    Parameters
    ----------
    graph : Graph
    sealed : list of bool, which nodes lie in memory; changed while the pass goes on
    costs : Cost
    """

    def __init__(self, graph: Graph, sealed: list[bool], costs: cost.Cost) -> None:
        self._graph = graph
        self._sealed = sealed
        self._most = costs.max_arguments
        self._most_nbytes = costs.max_parameter_nbytes
        self._named: defaultdict[Any, set[int]] = defaultdict(set)
        self._buffers: defaultdict[Any, int] = defaultdict(int)
        self._nbytes: defaultdict[Any, int] = defaultdict(int)

    def add(self, key: Any, operands: Sequence[int], buffers: Sequence[int]) -> None:
        """Note what an operation reads: its operands where they are arguments, and `buffers`."""
        for operand in self._new(key, operands, buffers):
            self._named[key].add(operand)
            if self._graph.kinds[operand] is Kind.CONSTANT:
                self._nbytes[key] += self._number_nbytes(operand)
            else:
                self._buffers[key] += 1

    def full(self, key: Any, operands: Sequence[int], buffers: Sequence[int]) -> str:
        """Why a kernel cannot read these too; empty where it can."""
        count, nbytes = self._buffers[key], self._nbytes[key]
        for operand in self._new(key, operands, buffers):
            if self._graph.kinds[operand] is Kind.CONSTANT:
                nbytes += self._number_nbytes(operand)
            else:
                count += 1
        if count > self._most:
            return f"a kernel has {self._most} arguments at most"
        if nbytes + count * cost.BUFFER_NBYTES > self._most_nbytes:
            return f"the arguments of a kernel have {self._most_nbytes} bytes at most"
        return ""

    def _new(self, key: Any, operands: Sequence[int], buffers: Sequence[int]) -> set[int]:
        known, sealed, kinds = self._named[key], self._sealed, self._graph.kinds
        new = {
            operand
            for operand in operands
            if operand not in known and (sealed[operand] or kinds[operand] in _NAMED)
        }
        if buffers:
            new.update(buffer for buffer in buffers if buffer not in known)
        return new

    def _number_nbytes(self, node: int) -> int:
        return max(self._graph.dtypes[node].itemsize, _LEAST_NBYTES)

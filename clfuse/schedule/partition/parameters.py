"""The arguments that the kernels of a plan take, counted against the device's limits.

A device promises so many bytes of parameters. A buffer comes with offset and strides, a number only
with itself, so that a polynomial of a hundred coefficients is one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from clfuse.dataclass import mutable
from clfuse.ir.nodes import Kind
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph

_NAMED = (Kind.CONSTANT, Kind.VIEW)
"""What is an argument wherever it lies: a number, or an offset and strides."""

_LEAST_NBYTES: Final = 8
"""Bytes of a number among parameters, as they are aligned."""


@mutable
class Taken:
    """What a kernel has so far: steps, the nodes that its arguments are for, how many of these are
    buffers, and the bytes of the others."""

    steps: int = 0
    named: set[int] = field(default_factory=set)
    buffers: int = 0
    nbytes: int = 0


class Parameters:
    """Counts what kernels take, in a `Taken` for each of them.

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

    def take(self, taken: Taken, operands: Sequence[int], buffers: Sequence[int]) -> str:
        """Note what an operation reads: its operands where they are arguments, and `buffers`; or
        say why the kernel cannot have these too, and note nothing. Empty where it can."""
        new = self._new(taken, operands, buffers)
        if not new:
            return ""
        count, nbytes = taken.buffers, taken.nbytes
        for operand in new:
            if self._graph.kinds[operand] is Kind.CONSTANT:
                nbytes += max(self._graph.dtypes[operand].itemsize, _LEAST_NBYTES)
            else:
                count += 1
        if count > self._most:
            return f"a kernel has {self._most} arguments at most"
        if nbytes + count * cost.BUFFER_NBYTES > self._most_nbytes:
            return f"the arguments of a kernel have {self._most_nbytes} bytes at most"
        taken.named.update(new)
        taken.buffers, taken.nbytes = count, nbytes
        return ""

    def _new(self, taken: Taken, operands: Sequence[int], buffers: Sequence[int]) -> list[int]:
        """Those that are arguments and not yet known, each once."""
        named, sealed, kinds = taken.named, self._sealed, self._graph.kinds
        new: list[int] = []
        for operand in operands:
            if (sealed[operand] or kinds[operand] in _NAMED) and operand not in named:
                new.append(operand)
        if buffers:
            new += [buffer for buffer in buffers if buffer not in named]
        return list(dict.fromkeys(new)) if len(new) > 1 else new

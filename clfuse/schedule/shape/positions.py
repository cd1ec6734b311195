"""Arg-reductions that keep no positions while they fold, but search for the best value's later.

Lanes of positions are as wide as eight bytes, and keeping them takes more than the comparison.
Without them a row of 1000 values in the cache takes .2 to .4 of the time (float32 and float64,
both runtimes of an EPYC). `codegen.kinds.searches` has the loops.
"""

from __future__ import annotations

from typing import Final

from clfuse.schedule.dataflow import operands_of
from clfuse.schedule.records import Accumulator, Index, Kernel

__all__ = ["counted", "is_searched", "sought"]

LEAST_ROW_NBYTES: Final = 1024
"""Of shorter rows, to look for the best once more takes as long as is saved."""


def is_searched(kernel: Kernel, phase: Kernel, accumulator: Accumulator) -> bool:
    """Whether a fold of one of the kernel's phases finds its position afterwards: on CPUs, of real
    numbers, where it walks along one dimension from the first element to the last.

    Not where the phase stores: that may be over what it has read, and would be read again. Nor
    where some elements are folded by another body.
    """
    dim = len(kernel.extents) - 1
    if accumulator.position is None or accumulator.dtype.kind not in "iuf":
        return False
    if kernel.where or phase.stores:
        return False
    if kernel.schedule != "cpu" or kernel.reduced != 1 or kernel.vector != dim:
        return False
    length = kernel.chunk_length if kernel.chunk == dim else kernel.extents[dim]
    if length * accumulator.dtype.itemsize < LEAST_ROW_NBYTES or phase.seams(dim):
        return False
    return any(
        isinstance(item, Index)
        and item.var == accumulator.position
        and item.access.strides[dim] > 0
        for item in phase.body
    )


def sought(kernel: Kernel, phase: Kernel) -> set[int]:
    """The registers of positions that only searched folds of a phase ask for: its loop needs none
    of them."""
    searched: set[int] = set()
    used = {store.var for store in phase.stores}
    for accumulator in phase.accumulators:
        used.add(accumulator.operand)
        position = accumulator.position
        if position is not None:
            (searched if is_searched(kernel, phase, accumulator) else used).add(position)
    for item in phase.body if searched else ():
        used.update(operands_of(item))
    return searched - used


def counted(kernel: Kernel, phase: Kernel) -> bool:
    """Whether a phase holds positions in vectors: those of elements, or of the best of them."""
    without = sought(kernel, phase)
    if any(isinstance(item, Index) and item.var not in without for item in phase.body):
        return True
    if any(isinstance(item, Index) for item in phase.epilogue):
        return True
    return any(
        accumulator.position is not None and not is_searched(kernel, phase, accumulator)
        for accumulator in phase.accumulators
    )

"""Which class a kernel is of, for the bars and the table: what it computes, and how it loads."""

from __future__ import annotations

from typing import Any, Final

from clfuse.schedule.records import (
    Access,
    FourierPass,
    Index,
    Kernel,
    Load,
    SortPass,
    Step,
    UserLaunch,
)

__all__ = ["CLASSES", "kernel_class"]

CLASSES: Final = {
    "map contiguous": "element by element; whole arrays of float32 or float64, in order",
    "map": "element by element, any other",
    "draws": "element by element, with numbers that are drawn until one is accepted",
    "gather": "element by element, with loads at computed positions",
    "reduce": "folds of rows, or of everything",
    "reduce columns": "folds across rows",
    "rows": "folds of rows, and what follows them in the same kernel",
    "scan": "running folds",
    "select": "what a mask selects",
    "scatter": "counts in local memory, and stores at computed positions",
    "tiles": "several steps over neighbours in local memory",
    "sort": "passes of a radix sort",
    "fourier": "Fourier transforms in local memory",
    "matmul": "products of matrices",
    "user": "kernels in Python, CuPy's kinds of raw kernels, OpenCL C of a user's own",
    "limit": "hand-written OpenCL C of the benchmark",
}
"""Class -> what is in it."""

_WHOLE_DTYPES: Final = frozenset("fd")


def kernel_class(step: Any, schedule: str) -> str | None:
    """The class of what `clfuse.engine.executable` builds; None for what only a CPU gets.

    Parameters
    ----------
    step : Kernel, SortPass, FourierPass, LibraryCall or UserLaunch
        What the plan says.
    schedule : str
        That of the device's traits.
    """
    if (step.schedule if isinstance(step, Kernel) else schedule) != "gpu":
        return None
    if isinstance(step, SortPass):
        return "sort"
    if isinstance(step, FourierPass):
        return "fourier"
    if isinstance(step, UserLaunch):
        return "user"
    if not isinstance(step, Kernel):
        return "matmul"
    if step.tiling is not None:
        return "tiles"
    if step.selection is not None:
        return "select"
    if step.scatter is not None:
        return "scatter"
    if step.kind.scans:
        return "scan"
    if step.kind.folds:
        if step.vector < len(step.extents) - step.reduced:
            return "reduce columns"
        return "rows" if step.then else "reduce"
    if any(isinstance(item, Load) and item.position is not None for item in step.body):
        return "gather"
    if any(isinstance(item, Step) and "_draw_" in item.op.name for item in step.body):
        return "draws"
    return "map contiguous" if _is_whole(step) else "map"


def _is_whole(kernel: Kernel) -> bool:
    """Whether a map goes through float32 or float64 arrays from their first element to the last, as
    one dimension, and calculates in nothing wider."""
    loads = [item for item in kernel.body if isinstance(item, Load)]
    touched = [*loads, *kernel.stores]
    dtypes = {one.dtype.char for one in touched}
    return (
        bool(loads)
        and len(kernel.extents) == 1
        and not kernel.then
        and not kernel.boxed
        and len(dtypes) == 1
        and dtypes <= _WHOLE_DTYPES
        and kernel.width * touched[0].dtype.itemsize == 16
        and all(_is_in_order(one.access) for one in touched)
        and not any(isinstance(item, Index) for item in kernel.body)
    )


def _is_in_order(access: Access) -> bool:
    return (
        access.strides == (1,)
        and access.offset == 0
        and not access.jumps
        and not access.within
    )

"""Bytes of global memory that a kernel moves, array by array; `explain` and `profile` ask.

Every array counts once a kernel: shifted reads of it come from the cache.
"""

from __future__ import annotations

import math

from .schedule import Kernel, Load, Prefix, Schedule

Use = tuple[int, str, int]
"""(value number, dtype name, bytes moved)."""


def reads_of(kernel: Kernel, schedule: Schedule) -> list[Use]:
    """What the kernel loads."""
    kept = kernel.extents[: len(kernel.extents) - kernel.reduced]
    moved: dict[int, tuple[str, int]] = {}
    for items, extents in ((kernel.body, kernel.extents), (kernel.epilogue, kept)):
        for item in items:
            if isinstance(item, Prefix) and item.partial is not None:
                moved[item.partial] = (str(item.dtype), schedule.values[item.partial].nbytes)
            if not isinstance(item, Load):
                continue
            elements = math.prod(
                [
                    extent
                    for extent, stride in zip(extents, item.access.strides, strict=True)
                    if stride
                ]
            )
            nbytes = min(elements * item.dtype.itemsize, schedule.values[item.value].nbytes)
            known = moved.get(item.value, ("", 0))[1]
            moved[item.value] = (str(item.dtype), max(known, nbytes))
    if kernel.selection is not None:
        starts, packed = kernel.selection.starts, kernel.selection.packed
        moved[starts] = ("int64", schedule.values[starts].nbytes)
        if packed is not None:
            moved[packed.value] = (str(packed.dtype), schedule.values[packed.value].nbytes)
    return [(value, dtype, nbytes) for value, (dtype, nbytes) in moved.items()]


def writes_of(kernel: Kernel, schedule: Schedule) -> list[Use]:
    """What the kernel stores, partial results included."""
    kept = math.prod(kernel.extents[: len(kernel.extents) - kernel.reduced])
    uses: list[Use] = []
    for stores, count in ((kernel.stores, math.prod(kernel.extents)), (kernel.results, kept)):
        for store in stores:
            nbytes = count * store.dtype.itemsize
            if kernel.kind == "compact":
                nbytes = schedule.values[store.value].nbytes
            uses.append((store.value, str(store.dtype), nbytes))
    for accumulator in kernel.accumulators:
        for value, dtype in (
            (accumulator.partial, str(accumulator.dtype)),
            (accumulator.partial_position, "int64"),
        ):
            if value is not None:
                uses.append((value, dtype, schedule.values[value].nbytes))
    return uses

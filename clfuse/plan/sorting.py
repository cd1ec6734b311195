"""Sorts as launches of our own, where the host does not share the device's memory; `planner` calls
it for the GPU schedule.

A radix sort (`kernels/radix_sort.cl.mako`) moves keys by four bits a pass, which keeps the order of
equal digits, so it is stable. What is sorted becomes keys first: unsigned integers in the order of
the elements, all NaN equal and last. ``argsort`` lets the elements' places travel with the keys,
and a stable sort of floats the elements, because 0.0 and -0.0 have one key there.
"""

from __future__ import annotations

import math
from typing import Final

from .emission import ValueTable
from .schedule import LibraryCall, SortPass, is_sortable

DIGIT_BITS: Final = 4
"""Sixteen counters a work-item are few enough to be kept in registers and caches."""

LEAST_CHUNK: Final = 32
"""Keys of a work-item at least: two for each of its counters."""

CHUNKS: Final = 8192
"""Work-items of a pass at most: one work-group goes over the counters of a row."""


def expanded(call: LibraryCall, values: ValueTable) -> list[SortPass]:
    """The launches that sort, with memory of their own for keys and counters.

    Two arrays of keys take turns.
    """
    assert is_sortable(call)
    (operand,) = call.operands
    count = math.prod(operand.shape)
    axis = sort_axis(call)
    n = operand.shape[axis]
    rows = count // n
    chunks = min(-(-n // LEAST_CHUNK), max(1, CHUNKS // rows))
    length = -(-n // chunks)
    nbits = 1 if operand.dtype.kind == "b" else 8 * operand.dtype.itemsize
    payload = _payload(call)
    key_nbytes = 8 if operand.dtype.itemsize == 8 else 4
    carried_nbytes = {"": 0, "order": 4, "bits": operand.dtype.itemsize}[payload]
    keys = [values.new(count * key_nbytes) for _ in range(2)]
    carried = [values.new(count * carried_nbytes) for _ in range(2)] if payload else []
    table = values.new(rows * chunks * 4 << DIGIT_BITS)

    def made(stage: str, reads: list[int], writes: list[int], shift: int = 0) -> SortPass:
        return SortPass(
            stage, call, rows, n, chunks, length, shift, payload, tuple(reads), tuple(writes)
        )

    passes = [made("encode", [operand.value], [keys[0], *carried[:1]])]
    now = 0
    for shift in range(0, nbits, DIGIT_BITS):
        here, there = ([side[turn] for side in (keys, carried) if side] for turn in (now, 1 - now))
        passes.append(made("count", [keys[now]], [table], shift))
        passes.append(made("scan", [table], [table]))
        passes.append(made("scatter", [*here, table], there, shift))
        now = 1 - now
    last = carried[now] if payload else keys[now]
    passes.append(made("decode", [last], [call.target]))
    return passes


def sort_axis(call: LibraryCall) -> int:
    """Along which axis a call sorts."""
    rank = len(call.operands[0].shape)
    return int(dict(call.param[-1])["axis"]) % rank


def _payload(call: LibraryCall) -> str:
    if call.name == "argsort":
        return "order"
    how = dict(call.param[-1])
    is_stable = how.get("stable") or how.get("kind") in ("stable", "mergesort")
    return "bits" if is_stable and call.dtype.kind == "f" else ""

"""Radix sorts as launches, where NumPy takes longer or cannot reach the device's memory.

A radix sort (`kernels/radix_sort.cl.mako`) moves keys by a few bits a pass, which keeps the order
of equal digits, so it is stable. The elements become keys first: unsigned integers in the order
of the elements, all NaN equal and last. ``argsort`` lets the elements' places travel with the keys,
and a stable sort of floats the elements, because 0.0 and -0.0 have one key there.

On a GPU a work-group takes a piece of a row and digits of eight bits, and brings a tile after the
other in their order in local memory, so that equal digits go to memory side by side
(`kernels/radix_tiles.cl.mako`). Rows that find room in local memory are sorted there by a network
of comparisons, in one launch (`kernels/sort_rows.cl.mako`). Of rows between, and where local memory
is small, a work-item takes a piece, and digits of four bits.

On a CPU every core has one piece of a row and digits of eight bits. NumPy keeps the sorts that it
does with vector instructions or by digits itself; its stable sorts and its ``argsort`` of wider
types take 8 to 18 times as long (2 million random elements, two cores of an EPYC, PoCL).
"""

from __future__ import annotations

import math
from typing import Final

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.records import LibraryCall, SortPass
from clfuse.schedule.shape.geometry import index_limit, round_up
from clfuse.target.traits import LEAST_SORTED, DeviceTraits

from .emission import ValueTable

DIGIT_BITS: Final = 8
SHORT_DIGIT_BITS: Final = 4
"""As many streams as 256 counters are what a core of a CPU writes without losing time (2048: half
as fast); a group of a GPU has a work-item for each. Of short rows a work-item of a GPU has counters
alone: sixteen are few enough to be kept in registers and caches."""

GROUP: Final = 256
"""Work-items that sort a tile: one for each counter."""

KEYS: Final = (16, 8, 4)
"""Keys of such a work-item, the first of these whose tile finds room: the more, the longer are the
runs of equal digits."""

LEAST_TILED: Final = 2048
"""Keys of a row from which on tiles are worth it: below, there are nearly as many counters."""

KEYS_IN_REGISTERS: Final = 8
"""Keys that a work-item sorts by itself: the more, the fewer barriers; they and their places are in
registers."""

LONGEST_IN_GROUP: Final = 2048
"""Keys of a row that one work-group sorts: a network compares a key with more others the longer the
row is, and a group has no more work-items than `GROUP`."""

GROUPS_PER_UNIT: Final = 16
"""Pieces for each multiprocessor, some three times what it works on at once: none waits long for
the last one."""

SEGMENT: Final = 32
"""Pieces whose counters one work-group goes over."""

LEAST_CHUNK: Final = 32
"""Keys of a work-item at least: two for each of its counters."""

CHUNKS: Final = 8192
"""Work-items of a pass at most: one work-group goes over the counters of a row."""

MOST_ON_CPU: Final = 1 << 30
"""Bytes that are sorted so at most: keys and what travels with them are four times as many. NumPy
sorts in place."""

DIGITS_OF_NUMPYS: Final = 2
"""Bytes up to which NumPy's stable sort goes by digits."""

SORTED_ELEMENTS: Final = 1 << 30
"""Elements from which on positions in a sort's counters do not fit 32 bits."""


def is_sortable(call: LibraryCall) -> bool:
    """Whether passes can make this call: a sort of all of an array of real numbers."""
    if call.name not in ("sort", "argsort") or len(call.operands) != 1:
        return False
    (operand,) = call.operands
    if operand.dtype.kind not in "biuf" or 0 in operand.shape or operand.shape != call.shape:
        return False
    if call.name == "sort":
        char, shape, offset, strides = call.param[0]
        whole = math.prod(shape) == math.prod(call.shape) and offset == 0
        packed = [
            (extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1
        ]
        extents = tuple([extent for extent, _ in packed])
        in_order = contiguous_strides(extents) == tuple([stride for _, stride in packed])
        if char != call.dtype.char or shape != call.shape or not whole or not in_order:
            return False
    return math.prod(operand.shape) < SORTED_ELEMENTS


def is_by_passes(call: LibraryCall, traits: DeviceTraits) -> bool:
    """Whether a library call is a sort that our launches do in less time than the host."""
    if not is_sortable(call) or not _fits_32_bits(call, traits):
        return False
    if traits.schedule == "gpu":
        return True
    (operand,) = call.operands
    itemsize = operand.dtype.itemsize
    nbytes = math.prod(operand.shape) * itemsize
    if operand.shape[sort_axis(call)] < LEAST_SORTED or nbytes > MOST_ON_CPU:
        return False
    if call.name == "argsort":
        return True
    return itemsize > DIGITS_OF_NUMPYS and (is_stable(call) or traits.sorts_slowly)


def _fits_32_bits(call: LibraryCall, traits: DeviceTraits) -> bool:
    """Whether the launches' indices do: of elements, wherever they lie, and of counters."""
    (operand,) = call.operands
    together = rows_together(call, traits)
    rows, n, chunks = _divided(call, traits)
    steps = zip(operand.shape, operand.strides, strict=True)
    reach = abs(operand.offset) + sum([abs(step) * (extent - 1) for extent, step in steps])
    counters = 0 if together else rows * chunks << _digit_bits(call, traits)
    return max(rows * n, reach, counters) < index_limit(traits)


def _divided(call: LibraryCall, traits: DeviceTraits) -> tuple[int, int, int]:
    """Rows, the elements of each, and the chunks of a row."""
    (operand,) = call.operands
    n = operand.shape[sort_axis(call)]
    rows = math.prod(operand.shape) // n
    if each := keys_of_item(call, traits):
        tiles = -(-n // (each * GROUP))
        pieces = min(tiles, max(1, GROUPS_PER_UNIT * traits.compute_units // rows))
        return rows, n, -(-tiles // -(-tiles // pieces))
    if traits.schedule == "gpu":
        return rows, n, min(-(-n // LEAST_CHUNK), max(1, CHUNKS // rows))
    return rows, n, min(-(-n // (LEAST_SORTED // 2)), -(-traits.compute_units // rows))


def rows_together(call: LibraryCall, traits: DeviceTraits) -> tuple[int, int, int] | None:
    """How many rows a work-group sorts in local memory, for how many keys there is room in each,
    and how many keys a work-item has; None where a row finds no room."""
    (operand,) = call.operands
    n = operand.shape[sort_axis(call)]
    if traits.schedule != "gpu" or n > LONGEST_IN_GROUP:
        return None
    room = max(2, 1 << (n - 1).bit_length())
    each = min(KEYS_IN_REGISTERS, room)
    payload = _payload(call)
    wide = operand.dtype.itemsize == 8
    item = (10 if payload else 8) if wide else (8 if payload else 4)
    brought = operand.dtype.itemsize if payload == "bits" else 0
    rows = math.prod(operand.shape) // n
    group = 1 << (min(GROUP, traits.max_work_group, 1 << 30).bit_length() - 1)
    # One key's room behind those of each work-item (`kernels/sort_rows.cl.mako`).
    while group * ((each + 1) * item + each * brought) > traits.local_nbytes:
        group //= 2
    while group * each // 2 >= max(room, rows * room):
        group //= 2
    return (group * each // room, room, each) if group * each >= room else None


def keys_of_item(call: LibraryCall, traits: DeviceTraits) -> int:
    """How many keys of a tile a work-item has; 0 where there are no tiles."""
    (operand,) = call.operands
    if traits.schedule != "gpu" or traits.max_work_group < GROUP:
        return 0
    if operand.shape[sort_axis(call)] < LEAST_TILED:
        return 0
    key_nbytes = 8 if operand.dtype.itemsize == 8 else 4
    for each in KEYS:
        # Keys and their order, eighteen counters a work-item, and four numbers a digit.
        nbytes = GROUP * ((each + 1) * (key_nbytes + 2) + 36 + 20)
        if nbytes <= traits.local_nbytes:
            return each
    return 0


def _digit_bits(call: LibraryCall, traits: DeviceTraits) -> int:
    is_short = traits.schedule == "gpu" and not keys_of_item(call, traits)
    return SHORT_DIGIT_BITS if is_short else DIGIT_BITS


def expand_sort(call: LibraryCall, values: ValueTable, traits: DeviceTraits) -> list[SortPass]:
    """The launches that sort, with memory of their own for keys and counters.

    Two arrays of keys take turns. Passes over tiles need neither keys before the first of them nor
    after the last.
    """
    assert is_sortable(call)
    together = rows_together(call, traits)
    if together is not None:
        (operand,) = call.operands
        n = operand.shape[sort_axis(call)]
        return [
            SortPass(
                "rows", call, math.prod(operand.shape) // n, n, together[0], together[1], 0, 0,
                _payload(call), (operand.value,), (call.target,), together[2],
            )
        ]  # fmt: skip
    digit_bits = _digit_bits(call, traits)
    each = keys_of_item(call, traits)
    (operand,) = call.operands
    rows, n, chunks = _divided(call, traits)
    count = rows * n
    length = -(-n // chunks)
    if each:
        length = round_up(length, each * GROUP)
    nbits = 1 if operand.dtype.kind == "b" else 8 * operand.dtype.itemsize
    payload = _payload(call)
    key_nbytes = 8 if operand.dtype.itemsize == 8 else 4
    carried_nbytes = {"": 0, "order": 4, "bits": operand.dtype.itemsize}[payload]
    shifts = range(0, nbits, digit_bits)
    # A single pass would overwrite what it reads, where the sort is in place.
    from_elements, to_elements = bool(each) and len(shifts) > 1, bool(each)
    sides = min(2, len(shifts) + 1 - from_elements - to_elements)
    keys = [values.new(count * key_nbytes) for _ in range(sides)]
    carried = [values.new(count * carried_nbytes) for _ in range(sides)] if payload else []
    table = values.new(rows * chunks * 4 << digit_bits)
    totals = []
    if each and chunks > SEGMENT:
        totals.append(values.new(rows * -(-chunks // SEGMENT) * 4 << digit_bits))

    def made(
        stage: str, reads: list[int], writes: list[int], shift: int = 0,
        *, is_first: bool = False, is_last: bool = False,
    ) -> SortPass:  # fmt: skip
        return SortPass(
            stage, call, rows, n, chunks, length, digit_bits, shift, payload,
            tuple(reads), tuple(writes), each, is_first, is_last,
        )  # fmt: skip

    passes = []
    here = [operand.value]
    turn = 0
    if not from_elements:
        here = [keys[0], *carried[:1]]
        passes.append(made("encode", [operand.value], here))
        turn = 1
    for shift in shifts:
        is_first = from_elements and shift == 0
        is_last = to_elements and shift == shifts[-1]
        there = [call.target]
        if not is_last:
            there = [side[turn % sides] for side in (keys, carried) if side]
        ends = {"is_first": is_first, "is_last": is_last}
        passes.append(made("count", here[:1], [table], shift, is_first=is_first))
        if totals:
            passes.append(made("sums", [table], [table, *totals]))
        scanned = totals or [table]
        passes.append(made("scan", scanned, scanned))
        passes.append(made("scatter", [*here, table, *totals], there, shift, **ends))
        here = there
        turn += 1
    if not to_elements:
        passes.append(made("decode", here[-1:], [call.target]))
    return passes


def sort_axis(call: LibraryCall) -> int:
    """Along which axis a call sorts."""
    rank = len(call.operands[0].shape)
    return int(dict(call.param[-1])["axis"]) % rank


def is_stable(call: LibraryCall) -> bool:
    """Whether equal elements have to stay in the order they were in."""
    how = dict(call.param[-1])
    return bool(how.get("stable")) or how.get("kind") in ("stable", "mergesort")


def _payload(call: LibraryCall) -> str:
    if call.name == "argsort":
        return "order"
    return "bits" if is_stable(call) and call.dtype.kind == "f" else ""

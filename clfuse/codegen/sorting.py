"""The stages of a radix sort as OpenCL C."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

import numpy as np

from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.lower import sorting
from clfuse.schedule.lower.sorting import sort_axis
from clfuse.schedule.records import SortPass
from clfuse.target.traits import DeviceTraits

from . import templates
from .arguments import Arguments
from .kernels import Rendered
from .lines.expressions import Preamble

GROUP: Final = 64
"""Work-items of a group where any number will do."""

SCAN_GROUP: Final = 256
"""Work-items that scan the counters of a row together."""

COPIES: Final = 4
"""Counters of a digit in local memory: neighbours with equal keys wait less for each other."""

GROUPS: Final = 1024
"""Groups of the stages that go over all elements, at most."""

INTEGERS: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Elements are moved as their bits: no stage needs double or half precision."""

_KINDS: Final = {"f": "FLOAT", "i": "SIGNED"}
_BITS: Final = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
_INFINITY: Final = {2: "0x7c00", 4: "0x7f800000", 8: "0x7ff0000000000000"}
_NAN: Final = {2: "0x7e00", 4: "0x7fc00000", 8: "0x7ff8000000000000"}


def render_sort(step: SortPass, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write one stage."""
    arguments = Arguments(False, root, all_offsets=True)
    (operand,) = step.call.operands
    size = operand.dtype.itemsize
    kind = _KINDS.get(operand.dtype.kind, "UNSIGNED")
    preamble = Preamble(libraries={"sort_keys.cl": None})
    key = INTEGERS[8 if size == 8 else 4]
    carried = INTEGERS[4 if step.payload == "order" else size]
    for name, number in (("rows", step.rows), ("n", step.n)):
        arguments.integer(name, number)
    stage = step.stage
    k = SimpleNamespace(
        # The stages between are the same for all sorts of keys of one size.
        name=f"{step.call.name if stage in ('encode', 'decode', 'rows') else 'radix'}_{stage}",
        stage=stage,
        payload=step.payload,
        encoded="KEY_OF_" + ("NUMBER" if kind == "FLOAT" and step.payload else kind),
        decoded=f"{kind}_OF_KEY",
        key=_BITS[key.itemsize],
        bits=_BITS[size],
        nbits=8 * size,
        infinity=_INFINITY.get(size, "0"),
        nan=_NAN.get(size, "0"),
        is_first=step.is_first,
        is_last=step.is_last,
        digit_bits=step.digit_bits,
        digits=1 << step.digit_bits,
        in_pieces=traits.schedule == "cpu",
        decode=[],
        head="".join(templates.head(preamble, False)),
    )
    if stage == "rows":
        return _rows(step, arguments, k)
    if step.each and stage not in ("encode", "decode"):
        return _tiled(step, arguments, k, key, carried)
    group = GROUP if traits.max_work_group >= GROUP and not k.in_pieces else 1
    items = step.rows * step.n
    if stage in ("encode", "decode"):
        _elementwise(step, arguments, k, key, carried)
        groups = min(-(-items // group), GROUPS)
        if k.in_pieces:
            for name, number in (("chunks", step.chunks), ("length", step.length)):
                arguments.integer(name, number)
            groups = step.rows * step.chunks
    elif stage == "scan":
        arguments.integer("chunks", step.chunks)
        k.table = arguments.buffer(step.writes[0], INTEGERS[4], written=True)
        if not k.in_pieces:
            group = min(SCAN_GROUP, 1 << (traits.max_work_group.bit_length() - 1))
        k.group = group
        groups = step.rows
    else:
        _read_digits(step, arguments, k, key)
        table = step.writes[0] if stage == "count" else step.reads[-1]
        k.table = arguments.buffer(table, INTEGERS[4], written=True)
        if stage == "scatter":
            _write_sorted(step, arguments, k, key, carried)
        groups = -(-step.rows * step.chunks // group)
    k.signature = arguments.signature
    source = templates.render("radix_sort.cl.mako", {"k": k})
    bindings = tuple(arguments.bindings)
    return Rendered(k.name, source, bindings, arguments.dtypes, (groups * group,), (group,))


def _read_digits(step: SortPass, arguments: Arguments, k: SimpleNamespace, key: np.dtype) -> None:
    """What the stages have that look at digits of keys."""
    for name, number in (("chunks", step.chunks), ("length", step.length)):
        arguments.integer(name, number)
    arguments.integer("shift", step.shift)
    if not step.is_first:
        k.keys = arguments.buffer(step.reads[0], key)


def _write_sorted(
    step: SortPass, arguments: Arguments, k: SimpleNamespace, key: np.dtype, carried: np.dtype
) -> None:
    """What the stages have that put keys, and what travels with them, into their order."""
    if step.payload and not step.is_first:
        k.carried = arguments.buffer(step.reads[1], carried)
    if step.is_last:
        return
    k.sorted_keys = arguments.buffer(step.writes[0], key, written=True)
    if step.payload:
        k.sorted_carried = arguments.buffer(step.writes[1], carried, written=True)


def _ends(step: SortPass, arguments: Arguments, k: SimpleNamespace) -> None:
    """What a pass has besides that loads elements, or that stores them."""
    (operand,) = step.call.operands
    bits = INTEGERS[operand.dtype.itemsize]
    if step.is_first:
        k.source = arguments.buffer(operand.value, bits)
        k.source_place, k.decode = _place(step, arguments, "", operand.strides, operand.offset)
    elif step.is_last and step.stage == "scatter":
        written = np.dtype(np.int64) if step.payload == "order" else bits
        k.target = arguments.buffer(step.writes[0], written, written=True)
        k.target_place, k.decode = _place(
            step, arguments, "to_", contiguous_strides(operand.shape), 0
        )


def _tiled(
    step: SortPass, arguments: Arguments, k: SimpleNamespace, key: np.dtype, carried: np.dtype
) -> Rendered:
    """A stage between where work-groups sort tiles."""
    k.group, k.each, k.tile = sorting.GROUP, step.each, step.each * sorting.GROUP
    k.segment, k.copies = sorting.SEGMENT, COPIES
    counters = INTEGERS[4]
    segments = -(-step.chunks // k.segment)
    groups = step.rows * step.chunks
    if step.stage == "sums":
        arguments.integer("chunks", step.chunks)
        k.table, k.totals = (
            arguments.buffer(value, counters, written=True) for value in step.writes
        )
        groups = step.rows * segments
    elif step.stage == "scan":
        arguments.integer("parts", segments if segments > 1 else step.chunks)
        k.table = arguments.buffer(step.writes[0], counters, written=True)
        groups = step.rows
    else:
        _ends(step, arguments, k)
        _read_digits(step, arguments, k, key)
        if step.stage == "count":
            k.table = arguments.buffer(step.writes[0], counters, written=True)
        else:
            tables = step.reads[2 if step.payload and not step.is_first else 1 :]
            k.table = arguments.buffer(tables[0], counters, written=True)
            k.totals = arguments.buffer(tables[1], counters) if segments > 1 else ""
            _write_sorted(step, arguments, k, key, carried)
    k.signature = arguments.signature
    source = templates.render("radix_tiles.cl.mako", {"k": k})
    size = (groups * k.group,)
    return Rendered(k.name, source, tuple(arguments.bindings), arguments.dtypes, size, (k.group,))


def _elementwise(
    step: SortPass, arguments: Arguments, k: SimpleNamespace, key: np.dtype, carried: np.dtype
) -> None:
    """What the first and the last stage have besides: where element ``c`` of ``row`` lies."""
    (operand,) = step.call.operands
    bits = INTEGERS[operand.dtype.itemsize]
    strides, offset = operand.strides, operand.offset
    if step.stage == "encode":
        k.source = arguments.buffer(operand.value, bits)
        k.keys = arguments.buffer(step.writes[0], key, written=True)
        if step.payload:
            k.carried = arguments.buffer(step.writes[1], carried, written=True)
    else:
        strides, offset = contiguous_strides(operand.shape), 0
        if step.payload:
            k.carried = arguments.buffer(step.reads[0], carried)
        else:
            k.keys = arguments.buffer(step.reads[0], key)
        written = np.dtype(np.int64) if step.payload == "order" else bits
        k.target = arguments.buffer(step.writes[0], written, written=True)
    k.place, k.decode = _place(step, arguments, "", strides, offset)


def _place(
    step: SortPass, arguments: Arguments, name: str, strides: tuple[int, ...], offset: int
) -> tuple[str, list[str]]:
    """Where element ``c`` of ``row`` lies, and the lines that take the row's number apart."""
    (operand,) = step.call.operands
    axis = sort_axis(step.call)
    along = arguments.integer(f"{name}along", strides[axis])
    terms, lines = [arguments.integer(f"{name}offset", offset), f"{along} * c"], []
    rest = "row"
    for dim in reversed([dim for dim in range(len(operand.shape)) if dim != axis]):
        if operand.shape[dim] == 1:
            continue
        extent = arguments.integer(f"n{dim}", operand.shape[dim])
        lines.append(f"const int i{dim} = {rest} % {extent}, q{dim} = {rest} / {extent};")
        terms.append(f"{arguments.integer(f'{name}s{dim}', strides[dim])} * i{dim}")
        rest = f"q{dim}"
    return " + ".join(terms), lines


_IN_ORDER: Final = {
    2: [(0, 1)],
    4: [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)],
    8: [
        (0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7), (0, 1), (2, 3),
        (4, 5), (6, 7), (2, 4), (3, 5), (1, 4), (3, 6), (1, 2), (3, 4), (5, 6),
    ],
}  # fmt: skip
"""Sorting networks of the fewest comparisons (Knuth, The Art of Computer Programming 3, 5.3.4)."""


def _rows(step: SortPass, arguments: Arguments, k: SimpleNamespace) -> Rendered:
    """All of the sort, where rows find room in local memory."""
    (operand,) = step.call.operands
    strides, whole = operand.strides, contiguous_strides(operand.shape)
    bits = INTEGERS[operand.dtype.itemsize]
    k.each, k.length, k.together = step.each, step.length, step.chunks
    k.group = step.chunks * step.length // step.each
    k.source = arguments.buffer(operand.value, bits)
    written = np.dtype(np.int64) if step.payload == "order" else bits
    k.target = arguments.buffer(step.writes[0], written, written=True)
    k.source_place, k.decode = _place(step, arguments, "", strides, operand.offset)
    k.target_place, _ = _place(step, arguments, "to_", whole, 0)
    # Neighbours load neighbours: of a row, or of the same place of many.
    k.rows_first = whole[sort_axis(step.call)] != 1 and k.together > 1
    k.packed = bool(step.payload) and k.key == "uint"
    k.apart = bool(step.payload) and not k.packed
    k.item = "ulong" if k.packed else "key_t"
    k.network = _IN_ORDER[step.each]
    k.merge = [
        (one, one + distance)
        for distance in (4, 2, 1)
        for one in range(step.each)
        if distance < step.each and not one & distance
    ]
    k.signature = arguments.signature
    source = templates.render("sort_rows.cl.mako", {"k": k})
    groups = -(-step.rows // step.chunks)
    return Rendered(
        k.name, source, tuple(arguments.bindings), arguments.dtypes, (groups * k.group,),
        (k.group,),
    )  # fmt: skip

"""Kernel record -> OpenCL C and its arguments; called by `evaluate` when a plan is new.

A rendered map kernel on a CPU, for ``y = x * 2.0 + 1.0``:

    __kernel void map_multiply_add(const int pieces, const int piece, const int n,
                                   __global const double* restrict a0, ...)
    {
        ... for (; j + 8 <= high; j += 8) {
                const double8 r0 = vload8(0, a0 + x0 + j);
                const double8 r2 = (r0 * (double8)(c1));
                ...
                vstore8(r4, 0, a1 + x0 + j);
            }
            for (; j < high; j++) { ... the same, one lane ... }
    }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..dtypes import memory_type, needs_fp64, register_nbytes
from ..plan.geometry import LONG_SUM
from ..plan.scans import needed
from ..plan.schedule import Accumulator, Index, Kernel, Load, Step
from ..traits import DeviceTraits
from . import templates
from .arguments import Arguments, Binding
from .body import Body
from .expressions import Expressions, Preamble, Register, vector
from .folds import Fold
from .relaxed import may_relax
from .scans import (
    PrefixFold,
    carries_across,
    carries_of_group,
    folds_of,
    group_lines,
    lane_lines,
    neutral_line,
    running_lines,
)
from .selections import write_selection


@dataclass(frozen=True, slots=True)
class Rendered:
    """One kernel as text.

    Attributes
    ----------
    name, source : str
    bindings : tuple of Binding, the arguments in order
    dtypes : tuple, a dtype a scalar argument, None a buffer
    global_size, local_size : tuple of int
    relaxed : bool, whether ``CLFUSE_FP=fast`` may relax it
    """

    name: str
    source: str
    bindings: tuple[Binding, ...]
    dtypes: tuple[np.dtype | None, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    relaxed: bool = False


def render(kernel: Kernel, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write `kernel` for a device; values with one `root` are one pointer."""
    arguments = Arguments(kernel.wide_index, root, all_offsets=kernel.boxed)
    preamble = Preamble()
    body = Body(kernel, traits, arguments, preamble)
    context = SimpleNamespace(
        name=kernel.label,
        schedule=kernel.schedule,
        width=kernel.width,
        unroll=kernel.unroll,
        index=arguments.index_type,
        compensated=kernel.compensated,
    )
    if kernel.kind == "map":
        template = "map.cl.mako"
        _map(kernel, body, context)
    elif kernel.kind == "scan" and kernel.vector == len(kernel.extents) - 1:
        template = "scan_rows.cl.mako"
        _scan_rows(kernel, body, context)
    elif kernel.kind == "scan":
        template = "reduce_columns.cl.mako"
        _scan_columns(kernel, body, context)
    elif kernel.selection is not None:
        template = "select.cl.mako"
        write_selection(kernel, body, context)
    elif kernel.vector < len(kernel.extents) - kernel.reduced:
        template = "reduce_columns.cl.mako"
        _columns(kernel, body, context)
    else:
        template = "reduce_rows.cl.mako"
        _rows(kernel, body, context)
    context.signature = arguments.signature
    context.head = templates.head(preamble, _uses_fp64(kernel))
    source = templates.render(template, {"k": context})
    group = kernel.work_group if kernel.schedule == "gpu" else 1
    return Rendered(
        kernel.label,
        source,
        tuple(arguments.bindings),
        arguments.dtypes,
        (kernel.work_items,),
        (group,),
        may_relax(kernel, traits),
    )


def _uses_fp64(kernel: Kernel) -> bool:
    dtypes = [store.dtype for store in kernel.stores + kernel.results]
    for item in kernel.body + kernel.epilogue:
        if isinstance(item, Step):
            dtypes += [item.dtype, *item.dtypes, *item.op.input_dtypes]
        elif not isinstance(item, Index):
            dtypes.append(item.dtype)
    return any(needs_fp64(dtype) for dtype in dtypes)


def _decode(
    body: Body, dims: list[int], counter: str, *, declare: Callable[[int], str] | None = None
) -> list[str]:
    """Split the running number ``counter`` into the indices ``i<dim>``, last one fastest."""
    name = declare or (lambda dim: f"i{dim}")
    index = body.arguments.index_type
    lines = []
    rest = counter
    for position, dim in enumerate(reversed(dims)):
        extent = body.arguments.integer(f"n{dim}", body.kernel.extents[dim])
        if position == len(dims) - 1:
            lines.append(f"const {index} {name(dim)} = {rest};")
        else:
            following = f"rest{dim}"
            lines.append(f"const {index} {following} = {rest} / {extent};")
            lines.append(f"const {index} {name(dim)} = {rest} - {following} * {extent};")
            rest = following
    return lines


def _compute(
    body: Body, kernel: Kernel, width: int, uniform: dict[int, Register]
) -> tuple[list[str], dict[int, Register]]:
    """The loop's lines at one width, stores included, and its registers."""
    _, inside = body.split(kernel.body)
    registers = dict(uniform)
    lines = body.lines(inside, width, registers)
    for store in kernel.stores:
        lines += body.store(store, width, registers[store.var])
    return lines, registers


def _before(body: Body, kernel: Kernel) -> tuple[list[str], dict[int, Register]]:
    same, _ = body.split(kernel.body)
    registers: dict[int, Register] = {}
    return body.lines(same, 1, registers, "c"), registers


def _map(kernel: Kernel, body: Body, k: Any) -> None:
    arguments = body.arguments
    dims = list(range(len(kernel.extents) - 1))
    if kernel.schedule == "cpu":
        arguments.integer("pieces", kernel.chunks)
        arguments.integer("piece", kernel.chunk_length)
    arguments.integer("n", kernel.extents[-1])
    k.rows = bool(dims)
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in dims]
    k.decode = _decode(body, dims, "row")
    k.before, uniform = _before(body, kernel)
    k.scalar_body, _ = _compute(body, kernel, 1, uniform)
    k.vector_body = []
    if kernel.width > 1:
        k.vector_body, _ = _compute(body, kernel, kernel.width, uniform)
    k.lead = body.first_aligned()
    k.groups = body.group_lines


def _mask_lanes(kernel: Kernel, accumulator: Accumulator) -> int:
    """The lane size of a bool accumulator: that of the widest operand in the loop."""
    if accumulator.dtype.kind != "b":
        return 4
    widest = 1
    for item in kernel.body:
        if isinstance(item, Load):
            widest = max(widest, min(register_nbytes(item.dtype), 8))
        elif isinstance(item, Step):
            for dtype in (item.dtype, *item.op.input_dtypes):
                widest = max(widest, min(register_nbytes(dtype), 8))
    return widest


def _folds(kernel: Kernel) -> list[Fold]:
    return [
        Fold(number, accumulator, _mask_lanes(kernel, accumulator))
        for number, accumulator in enumerate(kernel.accumulators)
    ]


def _folding(kernel: Kernel, fold: Fold) -> Callable[..., list[str]]:
    """How the loop folds its next element: more simply where positions only grow."""
    kept = len(kernel.extents) - kernel.reduced
    for item in kernel.body:
        if isinstance(item, Index) and item.var == fold.accumulator.position:
            strides = item.access.strides[kept:]
            if all(outer >= inner for outer, inner in pairwise(strides)):
                return fold.fold_next
    return fold.fold


def _chunk_arguments(kernel: Kernel, body: Body, k: Any) -> None:
    k.chunked = kernel.chunk >= 0
    if k.chunked:
        body.arguments.integer("chunks", kernel.chunks)
        body.arguments.integer("chunk_length", kernel.chunk_length)
        k.chunk_extent = body.arguments.integer(f"n{kernel.chunk}", kernel.extents[kernel.chunk])
    else:
        k.chunk_extent = ""


def _outer_loops(kernel: Kernel, body: Body, dims: list[int]) -> list[tuple[int, str, str]]:
    loops = []
    for dim in dims:
        extent = body.arguments.integer(f"n{dim}", kernel.extents[dim])
        loops.append((dim, "low", "high") if dim == kernel.chunk else (dim, "0", extent))
    return loops


def _rows(kernel: Kernel, body: Body, k: Any) -> None:
    arguments = body.arguments
    kept = len(kernel.extents) - kernel.reduced
    width, unroll = kernel.width, kernel.unroll
    widths = [1 << power for power in range(5) if 1 << power <= width]
    writers = {lanes: body.writer(lanes) for lanes in widths}
    folds = _folds(kernel)
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(kept)]
    _chunk_arguments(kernel, body, k)
    k.decode = _decode(body, list(range(kept)), "row")
    inner = kernel.vector
    extent = arguments.integer(f"n{inner}", kernel.extents[inner])
    k.outer_loops = _outer_loops(kernel, body, list(range(kept, inner)))
    chunked_here = kernel.chunk == inner
    k.begin, k.end = ("low", "high") if chunked_here else ("0", extent)
    k.before, uniform = _before(body, kernel)
    k.start, k.pause, k.vector_bodies = [], [], []
    k.block = f"{width * unroll * LONG_SUM // 4}"
    single = writers[1]
    for fold in folds:
        number = str(fold.number)
        k.start += fold.start(single, f"q{number}", f"z{number}")
        if width > 1 and kernel.schedule == "cpu":
            for copy in range(unroll):
                k.start += fold.start(writers[width], f"v{number}_{copy}", f"p{number}_{copy}")
        if kernel.compensated and fold.compensates:
            k.start += fold.start_total(single, f"q{number}")
            if width > 1:
                k.start += fold.start_total(writers[width], f"v{number}")
    lines, registers = _compute(body, kernel, 1, uniform)
    k.scalar_body = lines
    for fold in folds:
        item, position = fold.item(single, registers)
        if kernel.compensated and fold.compensates:
            k.scalar_body = k.scalar_body + fold.add_to_total(single, item, f"q{fold.number}")
        else:
            k.scalar_body = k.scalar_body + _folding(kernel, fold)(
                single, f"q{fold.number}", f"z{fold.number}", item, position
            )
    if width > 1:
        for copy in range(unroll):
            k.vector_bodies.append(_vector_copy(kernel, body, uniform, folds, copy))
        if kernel.compensated:
            k.pause = _pause(folds, writers[width], unroll)
    k.groups = list(body.group_lines)
    body.group_lines.clear()
    k.local_memory, k.tree, k.decode_reduced = [], [], []
    k.piece_length = ""
    finish = []
    if kernel.schedule == "gpu":
        _group_tree(kernel, body, folds, k)
    elif width > 1:
        finish += _join_lanes(kernel, folds, writers, width, unroll)
    results: dict[int, Register] = {}
    for fold in folds:
        text = f"q{fold.number}"
        if kernel.compensated and fold.compensates and kernel.schedule == "cpu":
            finish.append(f"q{fold.number} = {fold.total(f'q{fold.number}')};")
        results[fold.accumulator.var] = fold.result(f"z{fold.number}" if fold.is_argument else text)
    last = _finish_lines(kernel, body, folds, results, 1, "row", "q", "z")
    k.finish = finish + body.group_lines + last


def _vector_copy(
    kernel: Kernel, body: Body, uniform: dict[int, Register], folds: list[Fold], copy: int
) -> list[str]:
    """One unrolled copy of the vector body, folding into accumulator number `copy`."""
    width = kernel.width
    writer = body.writer(width)
    lines, registers = _compute(body, kernel, width, uniform)
    for fold in folds:
        item, position = fold.item(writer, registers)
        lines += _folding(kernel, fold)(
            writer, f"v{fold.number}_{copy}", f"p{fold.number}_{copy}", item, position
        )
    if copy:
        index = body.arguments.index_type
        later = f"const {index} j_ = j + {copy * width};"
        return [later, "{", f"const {index} j = j_;", *lines, "}"]
    return lines


def _pause(folds: list[Fold], writer: Expressions, unroll: int) -> list[str]:
    """Move the vector accumulators into their compensated totals and start them anew."""
    lines = []
    for fold in folds:
        if not fold.compensates:
            continue
        number = fold.number
        parts = [f"v{number}_{copy}" for copy in range(unroll)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [f"({parts[i]} + {parts[i + half]})" for i in range(half)]
        lines += fold.add_to_total(writer, parts[0], f"v{number}")
        for copy in range(unroll):
            lines.append(f"v{number}_{copy} = {fold.identity(writer)};")
    return lines


def _join_lanes(
    kernel: Kernel, folds: list[Fold], writers: dict[int, Expressions], width: int, unroll: int
) -> list[str]:
    """Fold the unrolled accumulators, then their lanes, then the scalar rest, into ``q``."""
    lines = []
    wide, single = writers[width], writers[1]
    for fold in folds:
        number = fold.number
        if kernel.compensated and fold.compensates:
            parts = " + ".join(f"v{number}_{copy}" for copy in range(unroll))
            lines += fold.add_to_total(wide, f"({parts})", f"v{number}")
            array = memory_type(fold.dtype) if fold.dtype.char != "e" else "float"
            lines.append(f"{array} w{number}[{2 * width}];")
            lines.append(f"vstore{width}(tv{number}, 0, w{number});")
            lines.append(f"ev{number} = isfinite(ev{number}) ? ev{number} : 0;")
            lines.append(f"vstore{width}(ev{number}, 1, w{number});")
            lines.append(f"for (int lane = 0; lane < {2 * width}; lane++)")
            lines += fold.add_to_total(single, f"w{number}[lane]", f"q{number}")
            continue
        for copy in range(1, unroll):
            lines += fold.fold(
                wide,
                f"v{number}_0",
                f"p{number}_0",
                f"v{number}_{copy}",
                f"p{number}_{copy}",
            )
        lines += fold.across_lanes(writers, width)
        lines += fold.fold(single, f"q{number}", f"z{number}", f"l{number}", f"m{number}")
    return lines


def _group_tree(kernel: Kernel, body: Body, folds: list[Fold], k: Any) -> None:
    """Local memory and the tree over it, for the GPU's schedule."""
    kept = len(kernel.extents) - kernel.reduced
    single = body.writer(1)
    dims = list(range(kept, len(kernel.extents)))
    extents = [
        "(high - low)"
        if dim == kernel.chunk
        else body.arguments.integer(f"n{dim}", kernel.extents[dim])
        for dim in dims
    ]
    index = body.arguments.index_type
    k.piece_length = " * ".join(extents)
    rest = "t"
    for position, dim in enumerate(reversed(dims)):
        name = "j" if dim == kernel.vector else f"i{dim}"
        extent = extents[len(dims) - 1 - position]
        start = " + low" if dim == kernel.chunk else ""
        if position == len(dims) - 1:
            k.decode_reduced.append(f"const {index} {name} = {rest}{start};")
        else:
            following = f"over{dim}"
            k.decode_reduced.append(f"const {index} {following} = {rest} / {extent};")
            k.decode_reduced.append(
                f"const {index} {name} = {rest} - {following} * {extent}{start};"
            )
            rest = following
    for fold in folds:
        number = fold.number
        kind = fold.type_at(single)
        k.local_memory.append(f"__local {kind} s{number}[{kernel.work_group}];")
        if fold.is_argument:
            k.local_memory.append(f"__local long y{number}[{kernel.work_group}];")
        if kernel.compensated and fold.compensates:
            k.tree.append(f"q{number} = {fold.total(f'q{number}')};")
        k.tree.append(f"s{number}[get_local_id(0)] = q{number};")
        if fold.is_argument:
            k.tree.append(f"y{number}[get_local_id(0)] = z{number};")
    k.tree.append("barrier(CLK_LOCAL_MEM_FENCE);")
    k.tree.append(f"for (int span = {kernel.work_group // 2}; span > 0; span /= 2) {{")
    k.tree.append("    if (get_local_id(0) < span) {")
    for fold in folds:
        number = fold.number
        k.tree += [
            f"        {line}"
            for line in fold.fold(
                single,
                f"q{number}",
                f"z{number}",
                f"s{number}[get_local_id(0) + span]",
                f"y{number}[get_local_id(0) + span]",
            )
        ]
        k.tree.append(f"        s{number}[get_local_id(0)] = q{number};")
        if fold.is_argument:
            k.tree.append(f"        y{number}[get_local_id(0)] = z{number};")
    k.tree += ["    }", "    barrier(CLK_LOCAL_MEM_FENCE);", "}"]


def _finish_lines(
    kernel: Kernel,
    body: Body,
    folds: list[Fold],
    results: dict[int, Register],
    width: int,
    place: str,
    value_name: str,
    position_name: str,
) -> list[str]:
    """Partial results to memory, or the epilogue and its stores, at one width."""
    lines: list[str] = []
    arguments = body.arguments
    if kernel.chunk >= 0:
        writer = body.writer(width)
        for fold in folds:
            accumulator = fold.accumulator
            assert accumulator.partial is not None
            stored = np.dtype(np.float32) if fold.dtype.char == "e" else fold.dtype
            pointer = arguments.buffer(accumulator.partial, stored, written=True)
            register = Register(f"{value_name}{fold.number}", fold.dtype, fold.lane_nbytes)
            text = (
                register.text
                if stored != fold.dtype
                else body.memory_text(writer, register, stored)
            )
            lines += _partial_store(pointer, text, memory_type(stored), width, place)
            if accumulator.partial_position is not None:
                pointer = arguments.buffer(
                    accumulator.partial_position, np.dtype(np.int64), written=True
                )
                text = f"{position_name}{fold.number}"
                lines += _partial_store(pointer, text, "long", width, place)
        return lines
    registers = dict(results)
    computed = body.lines(kernel.epilogue, width, registers, "f")
    stores = []
    for store in kernel.results:
        stores += body.store(store, width, registers[store.var])
    return computed + stores


def _partial_store(pointer: str, text: str, kind: str, width: int, place: str) -> list[str]:
    if width == 1:
        return [f"{pointer}[({place}) * chunks + piece] = {text};"]
    lines = [f"{{ const {vector(kind, width)} w = {text};"]
    for lane in range(width):
        lines.append(
            f"  {pointer}[({place} + {lane}) * chunks + piece] = w.s{'0123456789abcdef'[lane]};"
        )
    return [*lines, "}"]


def _columns(kernel: Kernel, body: Body, k: Any) -> None:
    arguments = body.arguments
    kept = len(kernel.extents) - kernel.reduced
    folds = _folds(kernel)
    arguments.integer("n", kernel.extents[kernel.vector])
    outer = list(range(kept - 1))
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in outer]
    _chunk_arguments(kernel, body, k)
    k.decode = _decode(body, outer, "row")
    k.outer_loops = _outer_loops(kernel, body, list(range(kept, len(kernel.extents))))
    k.before, uniform = _before(body, kernel)
    k.versions = []
    widths = [kernel.width, 1] if kernel.width > 1 else [1]
    groups_of_loop: list[str] = []
    groups_of_epilogue: list[str] = []
    for width in widths:
        writer = body.writer(width)
        lines, registers = _compute(body, kernel, width, uniform)
        groups_of_loop += body.group_lines
        body.group_lines.clear()
        start, finish = [], []
        results: dict[int, Register] = {}
        for fold in folds:
            number = str(fold.number)
            item, position = fold.item(writer, registers)
            start += fold.start(writer, f"q{number}", f"z{number}")
            if kernel.compensated and fold.compensates:
                start += fold.start_total(writer, f"q{number}")
                lines = lines + fold.add_to_total(writer, item, f"q{number}")
                finish.append(f"q{number} = {_column_total(fold, writer)};")
            else:
                folding = _folding(kernel, fold)
                lines = lines + folding(writer, f"q{number}", f"z{number}", item, position)
            results[fold.accumulator.var] = fold.result(
                f"z{number}" if fold.is_argument else f"q{number}"
            )
        last = _finish_lines(kernel, body, folds, results, width, "row * n + j", "q", "z")
        groups_of_epilogue += body.group_lines
        body.group_lines.clear()
        k.versions.append((width, start, lines, [*finish, *groups_of_epilogue, *last]))
    k.groups = groups_of_loop


def _column_total(fold: Fold, writer: Expressions) -> str:
    number = f"q{fold.number}"
    if fold.dtype.kind == "c" or writer.width == 1:
        return fold.total(number)
    return f"(isfinite(e{number}) ? t{number} + e{number} : t{number})"


def _scan_rows(kernel: Kernel, body: Body, k: Any) -> None:
    """Lanes, or the work-items of a group, are neighbours of a row."""
    arguments = body.arguments
    axis = kernel.vector
    width, group = kernel.width, kernel.work_group
    single = body.writer(1)
    folds = folds_of(kernel, _mask_lanes)
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(axis)]
    k.extent = arguments.integer(f"n{axis}", kernel.extents[axis])
    k.group = group
    _chunk_arguments(kernel, body, k)
    k.decode = _decode(body, list(range(axis)), "row")
    k.before, uniform = _before(body, kernel)
    k.start, k.local_memory, k.stores, k.vector_body = [], [], [], []
    _, inside = body.split(kernel.body)
    for fold in folds.values():
        k.start += fold.start(single)
        if kernel.schedule == "gpu":
            k.local_memory.append(f"__local {fold.fold.type_at(single)} s{fold.number}[{group}];")
        elif kernel.chunk >= 0:
            k.start += carries_across(fold, body, single, "row", arguments.index_type)
    if kernel.schedule == "gpu":
        every = list(folds.values())
        if kernel.chunk >= 0:
            k.start += carries_of_group(every, body, single, group)
        before = needed(inside, {fold.prefix.operand for fold in every})
        after = [item for item in inside if item not in before and item.var not in folds]
        registers = dict(uniform)
        names = [f"r{var}" for var in folds]
        k.scalar_body = body.lines(before, 1, registers)
        k.scalar_body += group_lines(every, single, registers, names, group)
        k.scalar_body += body.lines(after, 1, registers)
        for store in kernel.stores:
            k.stores += body.store(store, 1, registers[store.var])
    else:
        body.scan = _by_fold(folds, running_lines)
        k.scalar_body, _ = _compute(body, kernel, 1, uniform)
        if width > 1:
            writers = {lanes: body.writer(lanes) for lanes in (1, width)}
            k.start += [neutral_line(fold, writers, width) for fold in folds.values()]
            body.scan = _by_fold(folds, lane_lines)
            k.vector_body, _ = _compute(body, kernel, width, uniform)
    k.groups = body.group_lines


def _by_fold(folds: dict[int, PrefixFold], write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda item, writer, registers, name: write(folds[item.var], writer, registers, name)


def _scan_columns(kernel: Kernel, body: Body, k: Any) -> None:
    """Lanes are neighbouring rows, each walked from its start."""
    arguments = body.arguments
    axis = len(kernel.extents) - 1
    folds = folds_of(kernel, _mask_lanes)
    body.scan = _by_fold(folds, running_lines)
    arguments.integer("n", kernel.extents[kernel.vector])
    outer = list(range(axis - 1))
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in outer]
    _chunk_arguments(kernel, body, k)
    k.decode = _decode(body, outer, "row")
    k.outer_loops = _outer_loops(kernel, body, [axis])
    k.before, uniform = _before(body, kernel)
    k.versions = []
    for width in (kernel.width, 1) if kernel.width > 1 else (1,):
        writer = body.writer(width)
        lines, _ = _compute(body, kernel, width, uniform)
        start = []
        for fold in folds.values():
            start += fold.start(writer)
            if kernel.chunk >= 0:
                start += carries_across(fold, body, writer, "row * n + j", arguments.index_type)
        k.versions.append((width, start, lines, []))
    k.groups = body.group_lines

"""Matrix product as OpenCL C, for devices where the host's BLAS cannot reach the operands.

The epilogue that `schedule.finish.epilogues` has put behind the product (a bias, an activation) is
done on its registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from clfuse.dtypes import needs_fp64, register_type
from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.kinds import MAP
from clfuse.schedule.records import Access, Kernel, LibraryCall, Load, Operand, Store
from clfuse.schedule.shape.geometry import index_limit
from clfuse.target.products import count_of, tile_of_product
from clfuse.target.traits import DeviceTraits

from . import templates
from .arguments import Arguments
from .kernels import Rendered, uses_fp64
from .lines.body import Body
from .lines.expressions import Expressions, Preamble, Register
from .relaxed import may_relax

SIDE: Final = 16
"""Work-items along one side of a group: 256 of them, which every GPU takes."""

BLOCKS: Final = (4, 2, 1)
"""Results along one side of a work-item's block, tried in this order: 64 x 64 results a group read
each element 64 times less often than one by one; small matrices need more groups instead."""

BAND: Final = 16
"""Tiles one below the other that groups make before they go along: two rounds of groups on a
hundred multiprocessors are about 16 x 16 tiles, which read the least."""

LOCAL_SHARE: Final = 0.5
"""How much of the local memory the tiles may take, so that two groups run at once."""


def _block(call: LibraryCall, side: int, traits: DeviceTraits) -> int:
    rows, columns = call.shape[-2:]
    for block in BLOCKS:
        nbytes = 2 * side * (side * block + 1) * call.dtype.itemsize
        # A tile that is mostly outside of the matrix is work for nothing.
        fits = nbytes <= LOCAL_SHARE * traits.local_nbytes
        if fits and min(rows, columns) > side * block // 2:
            return block
    return 1


def render_matmul(call: LibraryCall, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write ``a @ b`` for matrices of any strides and broadcast batch dimensions."""
    left, right = call.operands
    rank = len(call.shape)
    rows, inner, columns = call.shape[-2], left.shape[-1], call.shape[-1]
    batch = call.shape[:-2]
    side = SIDE if traits.max_work_group >= SIDE * SIDE else 1
    shared = tile_of_product(call.shape, call.dtype, traits)
    block = _block(call, side, traits)
    tile = side * block
    tiles = -(-rows // tile) * -(-columns // tile) * math.prod(batch)
    group = side * side
    if shared is not None:
        tile, tiles = max(shared.rows, shared.columns), count_of(call.shape, shared)
        group = shared.group
    after = _after(call)
    reaches = [_reach(item.access, after.extents) for item in after.body if isinstance(item, Load)]
    reaches += [_reach(store.access, after.extents) for store in after.stores]
    reaches += [_reach(Access(o.offset, o.strides), o.shape) for o in call.operands]
    reach = max(*reaches, math.prod(call.shape) * tile)
    arguments = Arguments(reach >= index_limit(traits, tile), root, all_offsets=True)
    preamble = Preamble()
    writer = Expressions(1, traits, preamble)
    for name, extent in (("rows", rows), ("columns", columns), ("inner", inner)):
        arguments.integer(name, extent)
    index = arguments.index_type
    decode = []
    number = "stack"
    for dim in range(len(batch) - 1, -1, -1):
        count = arguments.integer(f"n{dim}", batch[dim])
        decode.append(f"const {index} i{dim} = {number} % {count};")
        decode.append(f"const {index} q{dim} = {number} / {count};")
        number = f"q{dim}"

    def placed(operand: Operand, letter: str, first: str, second: str) -> str:
        strides = operand.strides
        own = strides[:-2]
        terms = [arguments.offset(Access(operand.offset, operand.strides))[:-3]]
        for position, stride in enumerate(own):
            dim = len(batch) - len(own) + position
            terms.append(f"{arguments.integer(f'{letter}{dim}', stride)} * i{dim}")
        terms.append(f"{arguments.integer(f'{letter}_first', strides[-2])} * {first}")
        terms.append(f"{arguments.integer(f'{letter}_second', strides[-1])} * {second}")
        return " + ".join(terms)

    def loaded(operand: Operand, pointer: str, place: str) -> str:
        if operand.dtype.char == "e":
            text = writer.from_half(f"{pointer}[{place}]")
        elif operand.dtype.kind == "b":
            text = f"({pointer}[{place}] != 0)"
        else:
            text = f"{pointer}[{place}]"
        return writer.cast(Register(f"({text})", operand.dtype), call.dtype)

    def side_of(operand: Operand, letter: str, name: str, outer: int) -> SimpleNamespace:
        """How a group of the shared tile loads its part of an operand; `outer` is the axis of the
        operand that is one of the result's."""
        assert shared is not None
        pointer = arguments.buffer(operand.value, operand.dtype)
        is_along_outer = _is_along(operand, outer)
        width = _width(operand, outer if is_along_outer else -3 - outer, call, traits, shared.lanes)
        extent = shared.rows if outer == -2 else shared.columns
        place = placed(operand, letter, *(("i", "p") if outer == -2 else ("p", "j")))
        step = f"{letter}_second" if outer == -2 else f"{letter}_first"
        now = f"{name}_places[part] + {step} * start"
        type_ = register_type(call.dtype)
        if width == 1:
            load = loaded(operand, pointer, now)
        else:
            type_ += str(width)
            load = f"*(__global const {type_}*)({pointer} + {now})"
        fast, slow = (extent, shared.depth) if is_along_outer else (shared.depth, extent)
        faster = f"element % {fast // width}" + (f" * {width}" if width > 1 else "")
        slower = f"element / {fast // width}"
        return SimpleNamespace(
            parts=fast * slow // width // shared.group,
            type=type_,
            width=width,
            is_along_outer=is_along_outer,
            beside=width if is_along_outer else 1,
            inner=slower if is_along_outer else faster,
            outer=faster if is_along_outer else slower,
            place=place,
            load=load,
        )

    context: dict[str, Any] = {}
    if shared is not None:
        context |= {
            "tile": shared,
            "band": BAND,
            "left": side_of(left, "l", "left", -2),
            "right": side_of(right, "r", "right", -1),
        }
    else:
        pointers = [arguments.buffer(each.value, each.dtype) for each in (left, right)]
        along_rows, along_columns = _is_along(left, -2), _is_along(right, -1)
        context |= {
            "side": side,
            "block": block,
            "tile": tile,
            "left_inner": f"/ {tile}" if along_rows else f"% {side}",
            "left_outer": f"% {tile}" if along_rows else f"/ {side}",
            "right_inner": f"/ {tile}" if along_columns else f"% {side}",
            "right_outer": f"% {tile}" if along_columns else f"/ {side}",
            "load_left": loaded(left, pointers[0], placed(left, "l", "i", "p")),
            "load_right": loaded(right, pointers[1], placed(right, "r", "p", "j")),
        }
    body = Body(after, traits, arguments, preamble)
    lines = _epilogue(body, after, call)
    name = "matmul" if call.epilogue is None else call.epilogue.label.replace("map", "matmul", 1)
    context |= {
        "name": name,
        "index": index,
        "type": register_type(call.dtype),
        "decode": decode,
        "accumulate": _accumulate(call, traits, writer),
        "row": f"i{rank - 2}",
        "epilogue": body.group_lines + lines,
        "signature": arguments.signature,
        "head": "".join(templates.head(preamble, needs_fp64(call.dtype) or uses_fp64(after))),
    }
    template = "matmul.cl.mako" if shared is None else "matmul_tiles.cl.mako"
    source = templates.render(template, {"k": SimpleNamespace(**context)})
    return Rendered(
        name,
        source,
        tuple(arguments.bindings),
        arguments.dtypes,
        (tiles * group,),
        (group,),
        call.dtype.kind == "f" and not preamble.libraries and may_relax(after, traits),
    )


def _is_along(operand: Operand, axis: int) -> bool:
    """Whether neighbouring work-items load neighbouring elements if they go along that axis of the
    result; the other one of the operand is the inner extent."""
    if axis == -2:
        return operand.strides[-2] == 1 and operand.strides[-1] != 1
    return operand.strides[-2] != 1 or operand.strides[-1] == 1


def _width(operand: Operand, axis: int, call: LibraryCall, traits: DeviceTraits, lanes: int) -> int:
    """Elements that are loaded at once along an axis: a vector where all of them lie at multiples
    of its size."""
    others = (operand.offset, *operand.strides[: axis % len(operand.strides)])
    others += operand.strides[axis % len(operand.strides) + 1 :]
    is_whole = (
        operand.dtype == call.dtype
        and operand.strides[axis] == 1
        and operand.shape[axis] % lanes == 0
        and traits.buffer_alignment % (lanes * operand.dtype.itemsize) == 0
        and all(each % lanes == 0 for each in others)
    )
    return lanes if is_whole else 1


def _accumulate(call: LibraryCall, traits: DeviceTraits, writer: Expressions) -> str:
    """A statement that adds a product to a sum: rounded once where a GPU does that in one
    instruction."""
    if call.dtype.char in "fd" and traits.kind == "gpu":
        return "sums[a][b] = fma(l[a], r[b], sums[a][b]);"
    dtypes = [call.dtype, call.dtype]
    product = writer.formatted("multiply", dtypes, ["l[a]", "r[b]"], call.dtype, 4)
    total = writer.formatted("add", dtypes, ["sums[a][b]", "product"], call.dtype, 4)
    return f"const {register_type(call.dtype)} product = {product}; sums[a][b] = {total};"


def _after(call: LibraryCall) -> Kernel:
    """What is done with every element of the product: a loop over its shape."""
    rank = len(call.shape)
    if call.epilogue is not None:
        return replace(call.epilogue, vector=rank - 1, width=1)
    access = Access(0, contiguous_strides(call.shape))
    load = Load(0, call.target, call.dtype, access)
    store = Store(0, call.dtype, call.target, call.dtype, access)
    return Kernel(MAP, call.shape, [load], [store], vector=rank - 1)


def _epilogue(body: Body, after: Kernel, call: LibraryCall) -> list[str]:
    """Statements that compute and store what follows from the register ``total``."""
    registers = {}
    items = []
    for item in after.body:
        if isinstance(item, Load) and item.value == call.target:
            registers[item.var] = Register("total", call.dtype)
        else:
            items.append(item)
    lines = body.lines(items, 1, registers)
    for store in after.stores:
        lines += body.store(store, 1, registers[store.var])
    return lines


def _reach(access: Access, extents: tuple[int, ...]) -> int:
    return abs(access.offset) + sum(
        abs(stride) * (extent - 1)
        for stride, extent in zip(access.strides, extents, strict=True)
    )

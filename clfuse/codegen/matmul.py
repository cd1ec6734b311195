"""Matrix product as OpenCL C, for devices where the host's BLAS cannot reach the operands.

The epilogue that `schedule.finish.epilogues` has put behind the product (a bias, an activation) is
done on its registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

from clfuse.dtypes import needs_fp64, register_type
from clfuse.ir.layout import contiguous_strides
from clfuse.schedule.kinds import MAP
from clfuse.schedule.records import Access, Kernel, LibraryCall, Load, Operand, Store
from clfuse.schedule.shape.geometry import index_limit
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

LARGE_TILE: Final = 128
LARGE_DEPTH: Final = 8
"""Results along one side of a group's tile of large matrices, and products of one step."""

LARGE_WORDS: Final = 128
"""Registers of a work-item that such a tile needs."""

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


def _is_large(call: LibraryCall, traits: DeviceTraits) -> bool:
    """Whether the product is worth large tiles: enough of them for all multiprocessors, of numbers
    of four bytes."""
    *batch, rows, columns = call.shape
    tiles = math.prod(batch) * (rows // LARGE_TILE) * (columns // LARGE_TILE)
    pitch = LARGE_TILE + 4
    return (
        call.dtype.char in "fiIlL" and call.dtype.itemsize == 4
        and traits.item_words >= LARGE_WORDS
        and traits.max_work_group >= SIDE * SIDE
        and 4 * LARGE_DEPTH * pitch * 4 <= LOCAL_SHARE * traits.local_nbytes
        and tiles >= traits.compute_units
    )


def render_matmul(call: LibraryCall, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write ``a @ b`` for matrices of any strides and broadcast batch dimensions."""
    left, right = call.operands
    rank = len(call.shape)
    rows, inner, columns = call.shape[-2], left.shape[-1], call.shape[-1]
    batch = call.shape[:-2]
    side = SIDE if traits.max_work_group >= SIDE * SIDE else 1
    is_large = _is_large(call, traits)
    block = _block(call, side, traits)
    tile = LARGE_TILE if is_large else side * block
    depth = LARGE_DEPTH if is_large else side
    tiles = -(-rows // tile) * -(-columns // tile) * math.prod(batch)
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

    def loaded(operand: Operand, letter: str, first: str, second: str) -> str:
        pointer = arguments.buffer(operand.value, operand.dtype)
        strides = operand.strides
        own = strides[:-2]
        terms = [arguments.offset(Access(operand.offset, operand.strides))[:-3]]
        for position, stride in enumerate(own):
            dim = len(batch) - len(own) + position
            terms.append(f"{arguments.integer(f'{letter}{dim}', stride)} * i{dim}")
        terms.append(f"{arguments.integer(f'{letter}_first', strides[-2])} * {first}")
        terms.append(f"{arguments.integer(f'{letter}_second', strides[-1])} * {second}")
        place = " + ".join(terms)
        if operand.dtype.char == "e":
            text = writer.from_half(f"{pointer}[{place}]")
        elif operand.dtype.kind == "b":
            text = f"({pointer}[{place}] != 0)"
        else:
            text = f"{pointer}[{place}]"
        return writer.cast(Register(f"({text})", operand.dtype), call.dtype)

    load_left = loaded(left, "l", "i", "p")
    load_right = loaded(right, "r", "p", "j")
    body = Body(after, traits, arguments, preamble)
    lines = _epilogue(body, after, call)
    # Neighbouring work-items load neighbouring elements, whichever axis those lie along.
    along_rows = left.strides[-2] == 1 and left.strides[-1] != 1
    along_columns = right.strides[-2] != 1 or right.strides[-1] == 1
    name = "matmul" if call.epilogue is None else call.epilogue.label.replace("map", "matmul", 1)
    context = SimpleNamespace(
        name=name,
        index=index,
        side=side,
        block=block,
        tile=tile,
        type=register_type(call.dtype),
        decode=decode,
        depth=depth,
        pitch=tile + 4,
        group=side * side,
        loads=tile * depth // (side * side),
        left_inner=f"/ {tile}" if along_rows else f"% {depth}",
        left_outer=f"% {tile}" if along_rows else f"/ {depth}",
        right_inner=f"/ {tile}" if along_columns else f"% {depth}",
        right_outer=f"% {tile}" if along_columns else f"/ {depth}",
        load_left=load_left,
        load_right=load_right,
        accumulate=_accumulate(call, traits, writer),
        row=f"i{rank - 2}",
        epilogue=body.group_lines + lines,
        signature=arguments.signature,
        head="".join(templates.head(preamble, needs_fp64(call.dtype) or uses_fp64(after))),
    )
    template = "matmul_tiles.cl.mako" if is_large else "matmul.cl.mako"
    source = templates.render(template, {"k": context})
    return Rendered(
        name,
        source,
        tuple(arguments.bindings),
        arguments.dtypes,
        (tiles * side * side,),
        (side * side,),
        call.dtype.kind == "f" and not preamble.libraries and may_relax(after, traits),
    )


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

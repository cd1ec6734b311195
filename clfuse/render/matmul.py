"""Matrix product as OpenCL C for devices where the host's BLAS cannot reach the operands.

Used by `evaluate` instead of `runtime.host` under the GPU schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

from ..dtypes import needs_fp64, register_type
from ..plan.schedule import Access, LibraryCall, Operand
from ..traits import DeviceTraits
from . import templates
from .arguments import Arguments
from .expressions import Expressions, Preamble, Register
from .kernels import Rendered

TILE: Final = 16
"""Side of a tile: 256 work-items, and two tiles of complex128 take 8 kB of local memory."""


def is_renderable(call: LibraryCall) -> bool:
    """Whether `render_matmul` can write this call: numbers, not bools."""
    return call.name == "matmul" and call.dtype.kind in "iufc" and math.prod(call.shape) > 0


def render_matmul(call: LibraryCall, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write ``a @ b`` for operands of any strides and broadcast batch dimensions."""
    left, right = call.operands
    inner = left.shape[-1]
    left_vector, right_vector = len(left.shape) == 1, len(right.shape) == 1
    rows = 1 if left_vector else left.shape[-2]
    columns = 1 if right_vector else right.shape[-1]
    batch = call.shape[: len(call.shape) - (not left_vector) - (not right_vector)]
    side = max(TILE * TILE, 1) if traits.max_work_group >= TILE * TILE else 1
    tile = math.isqrt(side)
    tiles = -(-rows // tile) * -(-columns // tile) * math.prod(batch)
    reach = max(_reach(left), _reach(right), math.prod(call.shape) * tile)
    arguments = Arguments(reach >= 2**31 - 2**16, root, all_offsets=True)
    preamble = Preamble()
    writer = Expressions(1, traits, preamble)
    for name, extent in (("rows", rows), ("columns", columns), ("inner", inner)):
        arguments.integer(name, extent)
    index = arguments.index_type
    decode = []
    number = "row"
    for dim in range(len(batch) - 1, -1, -1):
        count = arguments.integer(f"n{dim}", batch[dim])
        decode.append(f"const {index} d{dim} = {number} % {count};")
        decode.append(f"const {index} q{dim} = {number} / {count};")
        number = f"q{dim}"

    def loaded(operand: Operand, letter: str, vector: bool, first: str, second: str) -> str:
        pointer = arguments.buffer(operand.value, operand.dtype)
        strides = operand.strides
        own = strides[: len(strides) - (1 if vector else 2)]
        terms = [arguments.offset(Access(operand.offset, operand.strides))[:-3]]
        for position, stride in enumerate(own):
            dim = len(batch) - len(own) + position
            terms.append(f"{arguments.integer(f'{letter}{dim}', stride)} * d{dim}")
        if vector:
            inner_index = second if letter == "l" else first
            terms.append(f"{arguments.integer(f'{letter}_inner', strides[-1])} * {inner_index}")
        else:
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

    load_left = loaded(left, "l", left_vector, "i", "p")
    load_right = loaded(right, "r", right_vector, "q", "j")
    dtypes = [call.dtype, call.dtype]
    target = arguments.buffer(call.target, call.dtype, written=True)
    store = f"{target}[place] = sum;"
    if call.dtype.char == "e":
        store = f"{target}[place] = {writer.to_half(writer.half('sum'))};"
    context = SimpleNamespace(
        name="matmul",
        index=index,
        tile=tile,
        type=register_type(call.dtype),
        decode=decode,
        load_left=load_left,
        load_right=load_right,
        product=writer.formatted("multiply", dtypes, ["left[y][t]", "right[t][x]"], call.dtype, 4),
        sum=writer.formatted("add", dtypes, ["sum", "product"], call.dtype, 4),
        store=store,
        signature=arguments.signature,
        head=templates.head(preamble, needs_fp64(call.dtype)),
    )
    source = templates.render("matmul.cl.mako", {"k": context})
    return Rendered(
        "matmul",
        source,
        tuple(arguments.bindings),
        arguments.dtypes,
        (tiles * tile * tile,),
        (tile * tile,),
        call.dtype.kind == "f" and not preamble.libraries,
    )


def _reach(operand: Operand) -> int:
    return abs(operand.offset) + sum(
        abs(stride) * (extent - 1)
        for stride, extent in zip(operand.strides, operand.shape, strict=True)
    )

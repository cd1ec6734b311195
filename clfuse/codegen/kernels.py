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
from types import SimpleNamespace
from typing import Any

import numpy as np

from clfuse.dtypes import needs_fp64
from clfuse.schedule.records import Index, Kernel, Load, Step
from clfuse.target.traits import DeviceTraits

from . import templates
from .arguments import Arguments, Binding
from .kinds import reductions, scan_kernels, time_tiles
from .kinds.selections import write_selection
from .lines.body import Body
from .lines.expressions import Preamble, Register
from .lines.hoisting import has_seams, hoist
from .lines.loops import before, compute, decode
from .lines.transposed_blocks import write_block
from .lines.unroll2 import pair
from .relaxed import may_relax


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
    head : tuple of str, the parts with which the source begins, before the kernel
    parameters : tuple of (type, name), of kernels that `joined` may join
    """

    name: str
    source: str
    bindings: tuple[Binding, ...]
    dtypes: tuple[np.dtype | None, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    relaxed: bool = False
    head: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()


def render(kernel: Kernel, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write `kernel` for a device; values with one `root` are one pointer."""
    arguments = Arguments(kernel.wide_index, root, all_offsets=kernel.boxed)
    preamble = Preamble()
    context = SimpleNamespace(
        name=kernel.label,
        schedule=kernel.schedule,
        width=kernel.width,
        index=arguments.index_type,
    )
    if kernel.kind == "map":
        template = "map.cl.mako"
        _map(kernel, Body(kernel, traits, arguments, preamble), context)
    elif kernel.kind == "scan":
        body = Body(kernel, traits, arguments, preamble)
        template = scan_kernels.fill(kernel, body, context)
    elif kernel.tiling is not None:
        template = "time_tiles.cl.mako"
        time_tiles.fill(kernel, kernel.tiling, traits, arguments, preamble, context)
    elif kernel.selection is not None:
        template = "select.cl.mako"
        write_selection(kernel, Body(kernel, traits, arguments, preamble), context)
    else:
        template = reductions.fill(kernel, traits, arguments, preamble, context)
    context.signature = arguments.signature
    head = templates.head(preamble, uses_fp64(kernel))
    text = templates.render(template, {"k": context}).lstrip("\n")
    group = kernel.work_group if kernel.schedule == "gpu" else 1
    return Rendered(
        kernel.label,
        "".join(head) + text,
        tuple(arguments.bindings),
        arguments.dtypes,
        (kernel.work_items,),
        (group,),
        may_relax(kernel, traits),
        head,
        tuple(arguments.parameters),
    )


def uses_fp64(kernel: Kernel) -> bool:
    """Whether anything in a kernel is of double precision."""
    dtypes: list[np.dtype] = []
    for phase in kernel.computed:
        dtypes += [store.dtype for store in phase.stores + phase.results]
        for item in phase.body + phase.epilogue:
            if isinstance(item, Step):
                dtypes += [item.dtype, *item.dtypes, *item.op.input_dtypes]
            elif not isinstance(item, Index):
                dtypes.append(item.dtype)
    return any(needs_fp64(dtype) for dtype in dtypes)


def _map(kernel: Kernel, body: Body, k: Any) -> None:
    arguments = body.arguments
    body.steps_by_vectors = kernel.schedule == "gpu"
    dims = list(range(len(kernel.extents) - 1))
    # Whole rows need no division for every row, which short ones would feel.
    k.whole_rows = bool(dims) and kernel.chunks == 1
    if kernel.schedule == "cpu" and not k.whole_rows:
        arguments.integer("pieces", kernel.chunks)
        arguments.integer("piece", kernel.chunk_length)
    arguments.integer("n", kernel.extents[-1])
    k.rows = bool(dims)
    k.tile_rows = kernel.tile_rows
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in dims]
    k.decode = decode(body, dims, "row")
    k.run_end = body.run_end("end") if body.seams else ""
    k.hoisted = None
    made: set[int] = set()
    stands: list[dict[int, Register]] = [{}, {}]
    if kernel.schedule == "cpu" and k.whole_rows and not has_seams(kernel):
        made, stands = hoist(kernel, body, k)
    overlaps = k.hoisted is None and _may_overlap(kernel, arguments)
    k.bodies = [_map_body(kernel, body, overlaps, made, stands)]
    k.block = k.bodies[0].turned
    k.together = k.row_extents[-1] if len(dims) > 1 else ""
    for sister in kernel.then:
        other = body.beside(sister)
        k.bodies.append(_map_body(sister, other, overlaps, set(), [{}, {}]))
    k.bodies[-1].test = ""  # what is left


def _map_body(
    kernel: Kernel,
    body: Body,
    overlaps: bool,
    made: set[int],
    stands: list[dict[int, Register]],
) -> SimpleNamespace:
    """The loops over a run: all of a map kernel, or what one of its bodies does in its boxes.

    `made` and `stands` are what `hoist` has prepared.
    """
    wide, single = stands
    b = SimpleNamespace(width=kernel.width, test=body.is_within(kernel.where))
    b.before, uniform = before(body, kernel)
    b.scalar_body, _ = compute(body, kernel, 1, {**uniform, **single}, made)
    b.lead = body.first_aligned()
    b.overlaps = overlaps and kernel.width > 1 and not b.lead
    b.blocks = []
    if kernel.unroll > 1:
        lines, _ = pair(body, kernel, {**uniform, **wide}, made)
        b.blocks.append((2 * kernel.width, lines))
    # What is left of a pair: most of a short row, little of a long vector.
    left = kernel.unroll == 1 or (len(kernel.extents) > 1 and not b.overlaps)
    if kernel.width > 1 and left:
        lines, _ = compute(body, kernel, kernel.width, {**uniform, **wide}, made)
        b.blocks.append((kernel.width, lines))
    b.turned = write_block(kernel, body, uniform) if kernel.block else None
    b.groups = body.group_lines
    return b


def _may_overlap(kernel: Kernel, arguments: Arguments) -> bool:
    """Whether elements may be computed twice: no result is written over what is read.

    Worth it where there are many rows, or pairs of vectors: each spares its last elements one by
    one.
    """
    bodies = kernel.phases
    loads = {item.value for body in bodies for item in body.body if isinstance(item, Load)}
    stores = {store.value for body in bodies for store in body.stores}
    return (
        kernel.schedule == "cpu"
        and (len(kernel.extents) > 1 or kernel.unroll > 1)
        and not any(arguments.shares(value, stored) for value in loads for stored in stores)
    )

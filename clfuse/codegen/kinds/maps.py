"""Element-wise kernels (maps) as the contents of their template."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from clfuse.codegen.arguments import Arguments
from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Register
from clfuse.codegen.lines.hoisting import has_seams, hoist
from clfuse.codegen.lines.loops import before, compute, decode
from clfuse.codegen.lines.transposed_blocks import write_block
from clfuse.codegen.lines.unroll2 import pair
from clfuse.schedule.records import Kernel, Load

from . import map_tiles
from .writing import Writing


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill the context of the kernel's template."""
    if any(kernel.local_tile):
        return map_tiles.fill(kernel, writing)
    body, k = writing.body(kernel), writing.context
    arguments = writing.arguments
    body.steps_by_vectors = kernel.schedule == "gpu"
    dims = list(range(len(kernel.extents) - 1))
    # Whole rows need no division for every row, which short ones would feel.
    k.whole_rows = kernel.schedule == "cpu" and bool(dims) and kernel.chunks == 1
    if kernel.schedule == "cpu" and not k.whole_rows:
        arguments.integer("pieces", kernel.chunks)
        arguments.integer("piece", kernel.chunk_length)
    arguments.integer("n", kernel.extents[-1])
    k.rows = bool(dims)
    k.tile_rows = kernel.tile_rows
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in dims]
    if kernel.schedule == "gpu":
        k.opening = []
        if dims:
            _lay_rows(kernel, body, k)
        k.lead = _lead(kernel, arguments) if kernel.width > 1 else ""
    else:
        k.decode = decode(body, dims, "row")
    k.run_end = body.run_end("end") if body.seams else ""
    k.hoisted = None
    made: set[int] = set()
    stands: list[dict[int, Register]] = [{}, {}]
    if k.whole_rows and not has_seams(kernel):
        made, stands = hoist(kernel, body, k)
    overlaps = k.hoisted is None and _may_overlap(kernel, arguments)
    k.bodies = [_map_body(kernel, body, overlaps, made, stands)]
    k.block = k.bodies[0].turned
    k.together = k.row_extents[-1] if len(dims) > 1 else ""
    for sister in kernel.then:
        other = body.beside(sister)
        k.bodies.append(_map_body(sister, other, overlaps, set(), [{}, {}]))
    k.bodies[-1].test = ""  # what is left
    return "map.cl.mako"


def _lay_rows(kernel: Kernel, body: Body, k: Any) -> None:
    """The loops over rows, of which a work-item takes one or every so many-th, and where a row's
    first vector begins."""
    *outer, down = range(len(kernel.extents) - 1)
    extents = [body.arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in outer]
    k.opening = []
    if len(outer) > 1:
        k.opening.append(_strided(k.index, "outer", " * ".join(extents), 2))
        k.opening += decode(body, outer, "outer")
    elif outer:
        k.opening.append(_strided(k.index, f"i{outer[0]}", extents[0], 2))
    extent = body.arguments.integer(f"n{down}", kernel.extents[down])
    k.opening.append(_strided(k.index, f"i{down}", extent, 1))


def _strided(index: str, name: str, extent: str, axis: int) -> str:
    first, step = f"({index})get_global_id({axis})", f"({index})get_global_size({axis})"
    return f"for ({index} {name} = {first}; {name} < {extent}; {name} += {step}) {{"


def _lead(kernel: Kernel, arguments: Arguments) -> str:
    """How many elements of a row come before its first vector; empty if there are none."""
    terms = []
    for dim, number in enumerate(kernel.lead):
        if number:
            name = arguments.integer(f"lead{dim}", number)
            terms.append(name if dim == kernel.vector else f"{name} * (uint)i{dim}")
    if not any(kernel.lead[:-1]):
        return "".join(terms)
    return f"({' + '.join(terms)}) & {kernel.width - 1}"


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

"""Parts of every kernel's loops: indices from a running number, the lines of a body at one width;
`render.kernels` and `render.reductions` put them together.
"""

from __future__ import annotations

from ..plan.schedule import Kernel
from .body import Body
from .expressions import Register


def decode(body: Body, dims: list[int], counter: str) -> list[str]:
    """Split the running number ``counter`` into the indices ``i<dim>``, last one fastest."""
    index = body.arguments.index_type
    lines = []
    rest = counter
    for position, dim in enumerate(reversed(dims)):
        extent = body.arguments.integer(f"n{dim}", body.kernel.extents[dim])
        if position == len(dims) - 1:
            lines.append(f"const {index} i{dim} = {rest};")
        else:
            following = f"rest{dim}"
            lines.append(f"const {index} {following} = {rest} / {extent};")
            lines.append(f"const {index} i{dim} = {rest} - {following} * {extent};")
            rest = following
    return lines


def compute(
    body: Body, kernel: Kernel, width: int, uniform: dict[int, Register]
) -> tuple[list[str], dict[int, Register]]:
    """The loop's lines at one width, stores included, and its registers."""
    _, inside = body.split(kernel.body)
    registers = dict(uniform)
    lines = body.lines(inside, width, registers)
    for store in kernel.stores:
        lines += body.store(store, width, registers[store.var])
    return lines, registers


def before(body: Body, kernel: Kernel) -> tuple[list[str], dict[int, Register]]:
    same, _ = body.split(kernel.body)
    registers: dict[int, Register] = {}
    return body.lines(same, 1, registers, "c"), registers

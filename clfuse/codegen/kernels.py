"""The text of a kernel: its record becomes OpenCL C with a list of arguments.

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
from types import SimpleNamespace
from typing import Final

import numpy as np

from clfuse.dataclass import frozen
from clfuse.dtypes import needs_fp64
from clfuse.schedule.kinds import (
    COMPACT,
    COUNT,
    EXPAND,
    MAP,
    REDUCE,
    SCAN,
    SCATTER,
    TALLY,
    TILES,
    KernelKind,
)
from clfuse.schedule.records import Index, Kernel, Step
from clfuse.target.traits import DeviceTraits

from . import templates
from .arguments import Arguments, Binding
from .kinds import maps, reductions, scan_kernels, scatters, selections, time_tiles
from .kinds.writing import Writing
from .lines.expressions import Preamble
from .lines.names import ROUNDS
from .lines.rounds import renumbered
from .relaxed import may_relax


@frozen
class Rendered:
    """One kernel as text.

    bindings: the arguments in order
    dtypes: a dtype a scalar argument, None a buffer
    relaxed: whether ``CLFUSE_FP=fast`` may relax it
    head: the parts with which the source begins, before the kernel
    parameters: (type, name) of kernels that may be joined (`codegen.joined`)
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


WRITERS: Final[dict[KernelKind, Callable[[Kernel, Writing], str]]] = {
    MAP: maps.fill,
    REDUCE: reductions.fill,
    COUNT: reductions.fill,
    SCAN: scan_kernels.fill,
    COMPACT: selections.fill,
    EXPAND: selections.fill,
    TALLY: scatters.fill_tally,
    SCATTER: scatters.fill_scatter,
    TILES: time_tiles.fill,
}
"""What fills the context of a template for a kernel of each kind, and says which template."""


def render(kernel: Kernel, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write `kernel` for a device; values with one `root` are one pointer."""
    arguments = Arguments(kernel.wide_index, root, all_offsets=kernel.boxed)
    preamble = Preamble()
    context = SimpleNamespace(
        name=kernel.label, schedule=kernel.schedule, width=kernel.width, index=arguments.index_type
    )
    writing = Writing(traits, arguments, preamble, context)
    template = WRITERS[kernel.kind](kernel, writing)
    context.signature = arguments.signature
    head = templates.head(preamble, uses_fp64(kernel))
    text = templates.render(template, {"k": context}).lstrip("\n")
    if arguments.has(ROUNDS):
        text = renumbered(text)
    group = kernel.work_group if kernel.schedule == "gpu" else 1
    sizes = kernel.nd_range or ((kernel.work_items,), (group,))
    return Rendered(
        kernel.label, "".join(head) + text, tuple(arguments.bindings), arguments.dtypes, *sizes,
        may_relax(kernel, traits), head, tuple(arguments.parameters),
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

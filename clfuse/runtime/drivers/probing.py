"""A probe of a listed device: builds and runs one kernel and checks its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from .compiler import compile_program

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["probe"]

PROBE_SOURCE: Final = """
__kernel void probe(__global int *out, const int factor)
{
    out[get_global_id(0)] = factor * (int)get_global_id(0) + 1;
}
"""
PROBE_ITEMS: Final = 8


def probe(queue: cl.CommandQueue, builtins_read: str = "", subgroups_read: str = "") -> str | None:
    """Build and run a kernel and check its result: None if all is well, else the cause, one line.

    That a device is listed proves nothing: the PoCL wheel lists one on CPUs that its compiler does
    not know.
    """
    from clfuse.runtime.drivers import opencl as cl

    out = np.zeros(PROBE_ITEMS, np.int32)
    context = queue.context
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, out.nbytes)
    program = compile_program(
        context, queue.device, PROBE_SOURCE, "", builtins_read, subgroups_read
    )
    kernel = cl.Kernel(program, "probe")
    kernel.set_arg(0, memory)
    kernel.set_arg(1, np.int32(3))
    cl.enqueue_nd_range_kernel(queue, kernel, (PROBE_ITEMS,), None)
    cl.enqueue_copy(queue, out, memory)
    expected = 3 * np.arange(PROBE_ITEMS, dtype=np.int32) + 1
    if not np.array_equal(out, expected):
        return f"a probe kernel gave {out.tolist()} instead of {expected.tolist()}"
    return None

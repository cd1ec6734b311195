"""Kernels written in Python: `kernel`, `device_function`, and what kernels may call.

    source text -> syntax (checked) -> lower (types) -> arrays (array operations, fused)
                                                     -> launches (OpenCL C, a launch of its own)
                                                     -> plain (the same body, in Python)

A kernel that can be array operations is recorded as such (`arrays` proves it), so there is one
fuser, the planner. All others become OpenCL C (`c`), recorded as one node that reads and writes
arrays.
"""

from .calls import call_batching, call_cache
from .calls.decorator import OPERATIONS, Kernel, device_function, kernel
from .source.intrinsics import atomic, group, local_array, philox

__all__ = [
    "Kernel",
    "atomic",
    "device_function",
    "group",
    "kernel",
    "local_array",
    "philox",
]

call_batching.accelerate(Kernel)
call_cache.accelerate(Kernel, OPERATIONS)

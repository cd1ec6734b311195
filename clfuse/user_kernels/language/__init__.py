"""Kernels written in Python: `kernel`, `device_function`, and what kernels may call.

    source text -> source.syntax (checked) -> source.lower (types)
        -> array_route (array operations, fused)
        -> launch_route (OpenCL C, a launch of its own)
        -> calls.python_backend (the same body, in Python)

A kernel that can be array operations is recorded as such (`array_route.arrays` proves it), so there
is one fuser, the planner. All others become OpenCL C, recorded as one node that reads and writes
arrays.
"""

from .calls import call_batching, call_cache
from .calls.decorator import OPERATIONS, Kernel, device_function, kernel
from .source.intrinsics import atomic, group, local_array, philox

__all__ = ["Kernel", "atomic", "device_function", "group", "kernel", "local_array", "philox"]

call_batching.accelerate(Kernel)
call_cache.accelerate(Kernel, OPERATIONS)

"""The buffer protocol: the memory that `memoryview`, `bytes`, ``file.write`` and others get.

Code that reads a buffer (``hashlib``, ``file.write``, ``bytes``, `memoryview`) gets a snapshot,
without a copy where device and host share memory. Code that writes (``file.readinto``,
``struct.pack_into``) gets memory that the array shares while the buffer exists
(`arrays.shared_storage`). A `memoryview` cannot be told from ``numpy.asarray``. If the results of
``numpy.asarray`` shared memory, every operation on our array would have to look at what was written
to them. So a `memoryview` of the array is a snapshot, and ``x.data`` shares.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_scalar, host_view
from clfuse.arrays.handle import Handle, is_contiguous, is_writeable
from clfuse.arrays.shared_storage import seen_by_numpy

from . import interrupts
from .protocols import laid_out, shares

__all__ = ["buffer", "in_bytes", "lend_memory", "shared_memory"]

WRITABLE: Final = 1
"""PyBUF_WRITABLE: https://docs.python.org/3/c-api/buffer.html"""


def lend_memory(handle: Handle, flags: int, caller: int = 1) -> np.ndarray | np.generic:
    """What NumPy is asked for a buffer of, in the place of `handle`; `caller` frames up is the code
    that asks."""
    if type(handle) in handles.SCALARS:
        return host_scalar(handle)
    interrupts.begin()
    if shares(sys._getframe(caller), handle) or (flags & WRITABLE and is_writeable(handle)):
        return seen_by_numpy(handle)
    try:
        if handle._view is None or is_contiguous(handle):
            return host_view(handle)
        # NumPy refuses by the strides what the bytes side by side would allow.
        run, offset, strides = laid_out(handle)
    except KeyboardInterrupt:
        interrupts.keep(handle, interrupts.BUFFER)
        raise
    return np.ndarray(handle._shape, handle._dtype, run, offset, strides)


def shared_memory(handle: Handle) -> np.ndarray | np.generic:
    """What ``x.data`` shows: memory that the array shares; of a scalar its number."""
    return host_scalar(handle) if type(handle) in handles.SCALARS else seen_by_numpy(handle)


def buffer(self: Handle, flags: int) -> memoryview:
    """`__buffer__`: as the compiled part exports it."""
    memory: memoryview = lend_memory(self, flags, 2).__buffer__(flags)  # type: ignore[union-attr] # of 3.12
    return memory


def in_bytes(self: Handle) -> bytes:
    """`__bytes__`: what ``bytes`` makes of NumPy's array."""
    return bytes(lend_memory(self, 0, 2))  # type: ignore[arg-type] # a scalar is a buffer, too

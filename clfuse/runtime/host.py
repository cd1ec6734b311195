"""Steps of a plan that are no kernels: copies, and library calls on the host; `evaluate` calls it.

A CPU device shares the host's memory: operands and result are mapped, not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clfuse.runtime.buffers import Buffer, mapped

Array = npt.NDArray[Any]


def _matmul(operands: Sequence[Array], out: Array, param: Any) -> None:
    np.matmul(operands[0], operands[1], out=out)


FUNCTIONS: Final[dict[str, Callable[[Sequence[Array], Array, Any], None]]] = {
    "matmul": _matmul,
}
"""Name of a LIBRARY operation -> function of (operands, result to fill, param)."""


def copy(source: Buffer, target: Buffer, nbytes: int) -> None:
    """Enqueue a copy of the first `nbytes` bytes of a buffer, on the device."""
    import pyopencl as cl

    if nbytes:
        cl.enqueue_copy(source.device.queue, target.mem, source.mem, byte_count=nbytes)


def call(
    name: str,
    operands: Sequence[tuple[Buffer, np.dtype[Any], tuple[int, ...], int, tuple[int, ...]]],
    target: tuple[Buffer, np.dtype[Any], tuple[int, ...]],
    param: Any,
) -> None:
    """Run the library function `name`; waits for the device first.

    Parameters
    ----------
    name : str
        A key of `FUNCTIONS`.
    operands : sequence of (buffer, dtype, shape, offset, strides)
        Strided views, in elements.
    target : (buffer, dtype, shape)
        Filled in C order.
    param : object
        What the node carried.
    """
    with ExitStack() as stack:
        flat: dict[int, Array] = {}
        views = []
        for buffer, dtype, shape, offset, strides in operands:
            if id(buffer) not in flat:
                count = (buffer.nbytes // dtype.itemsize,)
                flat[id(buffer)] = stack.enter_context(mapped(buffer, dtype, count, write=False))
            views.append(
                np.lib.stride_tricks.as_strided(
                    flat[id(buffer)][offset:] if 0 not in shape else flat[id(buffer)],
                    shape,
                    tuple([stride * dtype.itemsize for stride in strides]),
                    writeable=False,
                )
            )
        out = stack.enter_context(mapped(*target, write=True))
        FUNCTIONS[name](views, out, param)

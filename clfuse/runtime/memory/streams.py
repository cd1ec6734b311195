"""A second queue for transfers beside kernels, so that tiles are copied while others are computed.

On a device with memory of its own the queue of the kernels would do one after the other. So
transfers have another one, and name what they come after: what was put into the queue of the
kernels before a moment (`Transfers.now`). They are waited for, while kernels run that were put
there later. Where blocks are host memory of ours, they are copies on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clfuse.counters import counters
from clfuse.runtime.context import lost

from .blocks import pool_of
from .buffers import Buffer, HostBuffer, map_to_host, write

if TYPE_CHECKING:
    import numpy.typing as npt

    from clfuse.runtime.devices.device import Device

__all__ = ["Transfers"]


class Transfers:
    """A queue for transfers of one device, as long as this object lives."""

    def __init__(self, device: Device) -> None:
        from clfuse.runtime.drivers import opencl as cl

        self.device = device
        self._queue: Any = None
        if not (device.pool or pool_of(device)).host_backed:
            self._queue = lost.call_driver(
                device, "a queue", cl.CommandQueue, device.context, device.handle
            )

    def now(self) -> Any:
        """What to come after, to come after everything that was launched so far."""
        if self._queue is None:
            return None
        from clfuse.runtime.drivers import opencl as cl

        device = self.device
        event = lost.call_driver(device, "a marker", cl.enqueue_marker, device.queue)
        lost.call_driver(device, "a flush", device.queue.flush)
        return event

    def send(self, buffer: Buffer, array: npt.NDArray[Any], after: Any) -> None:
        """Fill a buffer that no kernel reads after that moment with an array in C order."""
        if self._queue is None:
            write(buffer, array)
            return
        counters["bytes_to_device"] += array.nbytes
        self._copy(buffer.mem, array, after, "an upload")

    def receive(self, buffer: Buffer, target: npt.NDArray[Any], after: Any) -> None:
        """Put what a buffer had at that moment into an array."""
        if type(buffer) is HostBuffer:
            target[...] = buffer.read(target.dtype, target.shape)
        elif self._queue is None:
            with map_to_host(buffer, target.dtype, target.shape, write=False) as array:
                counters["bytes_to_host"] += array.nbytes
                target[...] = array
        elif target.flags.c_contiguous and target.nbytes:
            counters["bytes_to_host"] += target.nbytes
            self._copy(target, buffer.mem, after, "a download")
        else:
            self._receive_apart(buffer, target, after)

    def _receive_apart(self, buffer: Buffer, target: npt.NDArray[Any], after: Any) -> None:
        """As `receive`, into an array that lies in parts."""
        import numpy as np

        if target.nbytes:
            array = np.empty(target.shape, target.dtype)
            self.receive(buffer, array, after)
            target[...] = array

    def _copy(self, target: Any, source: Any, after: Any, what: str) -> None:
        from clfuse.runtime.drivers import opencl as cl

        def copy() -> None:
            cl.enqueue_copy(
                self._queue, _in_bytes(target), _in_bytes(source), is_blocking=True,
                wait_for=[after],
            )  # fmt: skip

        lost.call_driver(self.device, what, copy)


def _in_bytes(side: Any) -> Any:
    return side.reshape(-1).view("u1") if hasattr(side, "reshape") else side

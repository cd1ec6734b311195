"""Zero-copy buffers: device buffers on the memory of NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from clfuse._core import loading
from clfuse.counters import counters
from clfuse.errors import DeviceError
from clfuse.runtime.context import lost
from clfuse.runtime.devices.device import Device

from .buffers import Buffer, pin

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["share"]


class _Shared:
    """Memory of a NumPy array that a device works in, as long as it is needed."""

    __slots__ = ("array", "device", "nbytes")

    def __init__(self, device: Device, array: npt.NDArray[Any]) -> None:
        self.device = device
        self.array = array
        # No call comes between the two: at one an interrupt might leave what is not counted.
        self.nbytes = nbytes = array.nbytes
        now = counters["device_bytes_now"] = counters["device_bytes_now"] + nbytes
        if now > counters["device_bytes_peak"]:
            counters["device_bytes_peak"] = now

    def __del__(
        self,
        counters: dict[str, int] = counters,
        is_finalizing: Callable[[], bool] = sys.is_finalizing,
    ) -> None:
        # Called again where an interrupt ends it.
        try:
            counters["device_bytes_now"] -= self.nbytes
            self.nbytes = 0
        except AttributeError:
            return  # half made: an interrupt has ended the constructor
        # The queues were finished when the interpreter began to end, and before a fork.
        device = self.device
        if is_finalizing() or device.forked:
            return
        # Kernels that read it may not have run yet; the array must not go before them.
        from clfuse.runtime.drivers import opencl as cl

        try:
            pin(device, cl.enqueue_marker(device.queue), self.array)
        except (cl.Error, DeviceError) as error:
            # The next use of the device raises. There is no way to wait for the kernels.
            lost.waiting(device, error)
            lost.abandon(self.array)


_core: Final = loading.load()
if _core is not None:
    _Shared.__del__ = _core.undisturbed(_Shared.__del__)  # type: ignore[method-assign]


class SharedBuffer(Buffer):
    """A buffer on memory that belongs to a NumPy array: see `share`. It stays there."""

    __slots__ = ("unchanging",)
    unchanging: npt.NDArray[Any] | None


def share(device: Device, array: npt.NDArray[Any], *, exported: bool = False) -> Buffer | None:
    """Return a buffer on a host array's own memory, or None where the device cannot.

    What either side writes the other sees, in an undefined order unless the caller waits:
    for ``asarray(..., copy=False)``, whose caller has promised not to change it.

    device: A CPU device, else the result is None.
    array: C-contiguous, not empty; the buffer keeps it alive. Marked `exported` where it is
        read-only.
    exported: mark it so in any case: it will not be written to, though it may be. A buffer that
        only can be read takes a copy where the array does not begin at a multiple of 128 bytes
        (PoCL and Intel's runtime; 0.6 ms for a megabyte), and memory from NumPy begins anywhere.
    """
    from clfuse.runtime.drivers import opencl as cl

    aligned = array.ctypes.data % array.itemsize == 0
    if (
        device.forked
        or device.traits.kind != "cpu"
        or not array.flags.c_contiguous
        or not array.nbytes
        or not aligned
    ):
        return None
    if array.nbytes > device.traits.max_alloc_nbytes:
        return None
    flags: Any = cl.mem_flags.USE_HOST_PTR
    flags |= cl.mem_flags.READ_WRITE if array.flags.writeable else cl.mem_flags.READ_ONLY
    mem = lost.call_driver(device, "an array", cl.Buffer, device.context, flags, hostbuf=array)
    buffer = SharedBuffer(device, array.nbytes, mem, _Shared(device, array))
    buffer.exported = int(exported or not array.flags.writeable)
    buffer.unchanging = None if array.flags.writeable else array
    return buffer

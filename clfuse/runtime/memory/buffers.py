"""Contents of device memory: uploads, downloads, host views, and arrays that wait on the host."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import events
from clfuse._core import loading
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.errors import AllocationError, DeviceError
from clfuse.runtime.context import lost
from clfuse.runtime.devices.device import Device

from .blocks import (
    Block,
    Buffer,
    Counted,
    allocate,
    as_bytes,
    count_memory,
    fresh_copy,
    in_c_order,
    parts_of,
    pin,
    pool_of,
)

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Block", "Buffer", "HostBuffer", "allocate", "count_memory", "download", "has_sole_memory",
    "hold", "hold_result", "host_memory", "host_view", "lend_memory", "map_to_host", "pin",
    "transfer", "upload", "write",
]  # fmt: skip

#: Up to this size an upload is staged: copied on the host, enqueued without waiting for the kernels
#: before it. Above it the second copy would cost more than the wait.
STAGED_NBYTES = 1 << 20

#: From here on copies of devices with memory of their own go through pinned chunks (`staging`): two
#: of those are the least that overlap.
CHUNKED_NBYTES = 1 << 23

#: Up to this size what waits on the host becomes a buffer of a device that works in the host's
#: memory by the driver, which copies it meanwhile: 0.5 us (PoCL) and 2 us (Intel), where a copy in
#: the queue takes 5 us, and PoCL's next kernel 40 us more to start. `malloc` asks for more.
COPIED_NBYTES = 1 << 16

#: Up to this size an upload waits on the host until a kernel needs it
#: (`clfuse.interpreter.interpret`).
HOST_NBYTES = 1 << 19

#: The same while no device is open, and may not be for long (`Device.may_wait`).
WAITING_NBYTES = 1 << 26

#: What programs do with an array on the host (`HostBuffer.use`). It came from there, and no part of
#: it was read or written.
AS_A_WHOLE = 0

#: It was written to, sliced, or calculated.
IN_PARTS = 1

#: Single rows, columns or elements of it were read: in a loop, as a rule.
BY_ROWS = 2

#: It was selected from by masks, or is what they selected.
SELECTED = 3


class HostBuffer(Buffer):
    """A host array that becomes device memory when a kernel asks for it, or is such memory.

    array (numpy.ndarray): C-contiguous, of the shape and dtype of the node that has this buffer; it
        is written to only where nothing else refers to it (`clfuse.arrays.host_array`). It stays
        when the device has its copy.
    copy (Buffer or None): what a kernel has asked for, until the array is written to.
    memory (Buffer or None): the buffer whose memory the array is (`lend_memory`): the device has no
        other copy. A write to it waits for the device first.
    use (int): what was done with it: `AS_A_WHOLE`, `IN_PARTS`, `BY_ROWS` or `SELECTED`. The choice
        where to calculate with it depends on that.
    window (numpy.ndarray or None): `array` again, for what is compiled, which keeps views of it; it
        holds `array` once, however many these are.
    """

    __slots__ = ("array", "copy", "memory", "use", "window")

    def __init__(
        self, device: Device, array: npt.NDArray[Any], memory: Buffer | None = None
    ) -> None:
        self.device = device
        self.array = array
        self.copy: Buffer | None = None
        self.memory = memory
        self.use = IN_PARTS
        self.window: npt.NDArray[Any] | None = None

    seen_by_host = True

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """What its elements take."""
        return self.array.nbytes

    @property
    def exported(self) -> int:  # type: ignore[override]
        """Whether other views may show memory that a kernel would write to."""
        if self.memory is None:
            return 0
        references = sys.getrefcount(self.array) - (self.window is not None)
        return int(references != _SOLE[0] or not has_sole_memory(self))

    def read(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the first bytes as a read-only array."""
        array = self.array
        if array.dtype != dtype or array.shape != shape:
            array = np.ndarray(shape, dtype, array) if 0 not in shape else np.empty(shape, dtype)
        else:
            array = array.view()
        array.flags.writeable = False
        return array

    def of(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        """Return the buffer for a node of this dtype and shape, which has the same bytes."""
        array = self.array
        if array.dtype == dtype and array.shape == shape:
            return self
        seen = np.ndarray(shape, dtype, array) if 0 not in shape else np.empty(shape, dtype)
        return HostBuffer(self.device, seen, self.memory)

    @property
    def mem(self) -> Any:  # type: ignore[override]
        """What a kernel takes as argument."""
        return self.on_device().mem

    def on_device(self) -> Buffer:
        """Return the copy on the device, made now if there is none."""
        if self.memory is not None:
            return self.memory
        if self.device.forked:
            self.device.require()
        if self.copy is None:
            self.copy = _copied(self.device, self.array)
        return self.copy


def upload(device: Device, array: npt.NDArray[Any]) -> Buffer:
    """Return a buffer with a snapshot of a host array, in C order.

    The array may change as soon as this returns. Small arrays do not wait for the kernels that are
    under way.

    Parameters
    ----------
    device : Device
        Where to.
    array : numpy.ndarray
        Any shape, strides and dtype; bytes in native order.

    Raises AllocationError: as `allocate`.
    """
    if device.forked:
        return HostBuffer(device, fresh_copy(array))
    buffer = allocate(device, array.nbytes)
    write(buffer, array)
    return buffer


def _copied(device: Device, array: npt.NDArray[Any]) -> Buffer:
    """`upload` of an array in C order, by the driver where that is sooner: then there is no command
    that anything waits for."""
    nbytes = array.nbytes
    pool = device.pool or pool_of(device)
    if not 0 < nbytes <= COPIED_NBYTES or not pool.host_backed or pool.is_tight:
        return upload(device, array)
    from clfuse.runtime.drivers import opencl as cl

    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    mem = lost.call_driver(device, "an upload", cl.Buffer, device.context, flags, hostbuf=array)
    counters["bytes_to_device"] += nbytes
    return Buffer(device, nbytes, mem, Block(pool, nbytes, mem, 0))


def hold(device: Device, array: npt.NDArray[Any]) -> Buffer:
    """As `upload`, for a buffer that is not written to: a small array stays on the host until a
    kernel needs it; so does one for which the device has no room, or that came before the device
    was opened."""
    if array.nbytes <= most_held(device) and settings.host_us and settings.fusion and device.fp64:
        made = HostBuffer(device, fresh_copy(array))
        made.use = AS_A_WHOLE
        return made
    try:
        return upload(device, array)
    except AllocationError:
        made = HostBuffer(device, fresh_copy(array))
        made.use = AS_A_WHOLE
        return made


def most_held(device: Device) -> int:
    """Up to how many bytes an array waits on the host."""
    return WAITING_NBYTES if device.may_wait else HOST_NBYTES


def hold_result(device: Device, array: npt.NDArray[Any]) -> HostBuffer:
    """Return a buffer for what the host has calculated in a device's place; a large one counts as
    if the device had it, so that what pending work holds is known."""
    made = HostBuffer(device, array)
    if array.nbytes > HOST_NBYTES:
        made._owned = Counted(array.nbytes)
    return made


def on_host(buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> HostBuffer:
    """Return the contents of a buffer as one on the host, once they are computed.

    It does not keep the memory on the device: other buffers or views may have it, too.
    """
    with map_to_host(buffer, dtype, shape, write=False) as array:
        return HostBuffer(buffer.device, fresh_copy(array))


class _Lent:
    """Bytes of a buffer as an array of some shape: the array holds this, and this the buffer.

    It is the array's base, so that views of that array hold the array itself, and are counted.
    """

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Buffer, address: int, dtype: str, shape: tuple[int, ...]) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": shape, "typestr": dtype,
        }  # fmt: skip


def lend_memory(buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> HostBuffer | None:
    """Return the buffer's memory itself as one on the host, once it is computed; None where the
    device does not work in the host's memory."""
    memory = host_memory(buffer)
    if memory is None or not buffer.nbytes:
        return None
    buffer.device.finish()
    address = memory.__array_interface__["data"][0]
    return HostBuffer(buffer.device, np.asarray(_Lent(buffer, address, dtype.str, shape)), buffer)


def has_sole_memory(buffer: HostBuffer) -> bool:
    """Whether only this buffer has the memory that was lent to it."""
    return sys.getrefcount(buffer.memory) == _SOLE[1] and not (
        buffer.memory is not None and buffer.memory.exported
    )


def _sole() -> tuple[int, int]:
    """The references that a look at a buffer's array and memory sees where nothing else has them.

    Without exact counts (no GIL) everything counts as shared.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    made = HostBuffer(None, np.zeros(1), object())  # type: ignore[arg-type]
    holder = [made.memory]  # as `_Lent` does

    def counts(buffer: HostBuffer) -> tuple[int, int]:
        return sys.getrefcount(buffer.array), sys.getrefcount(buffer.memory)

    found = counts(made)
    assert holder
    return found


_SOLE = _sole()


def write(buffer: Buffer, array: npt.NDArray[Any]) -> None:
    """Fill a buffer's first bytes with a snapshot of a host array, in C order: see `upload`."""
    from clfuse.runtime.drivers import opencl as cl

    device = buffer.device
    nbytes = array.nbytes
    counters["bytes_to_device"] += nbytes
    if nbytes == 0:
        return
    start_ns = time.perf_counter_ns() if events.listeners else 0
    if nbytes <= STAGED_NBYTES:
        staged = as_bytes(array.copy())
        event = lost.call_driver(
            device, "an upload", cl.enqueue_copy, device.queue, buffer.mem, staged,
            is_blocking=False,
        )  # fmt: skip
        pin(device, event, staged)
    else:
        _write_and_wait(buffer, in_c_order(array))
    _tell_copied(True, nbytes, start_ns)


def _tell_copied(is_to_device: bool, nbytes: int, start_ns: int) -> None:
    """Tell who listens; `start_ns` is 0 where nobody did when the copy began."""
    if start_ns:
        end_ns = time.perf_counter_ns()
        for listener in events.listeners:
            listener.copied(is_to_device, nbytes, start_ns, end_ns)


def _write_and_wait(buffer: Buffer, array: npt.NDArray[Any]) -> None:
    """Fill a buffer's first bytes with those of a contiguous array."""
    from clfuse.runtime.drivers import opencl as cl

    device = buffer.device
    device.finish_if_long()
    for start, part in parts_of(as_bytes(array), "copying to the device", device):
        if not _is_staged(buffer, start, part, to_device=True):
            lost.call_driver(
                device, "an upload", cl.enqueue_copy, device.queue, buffer.mem, part,
                dst_offset=start, is_blocking=True,
            )  # fmt: skip


def _is_staged(buffer: Buffer, start: int, part: npt.NDArray[Any], *, to_device: bool) -> bool:
    """Whether bytes went through pinned chunks (`staging`), which CPUs never import."""
    if len(part) < CHUNKED_NBYTES or buffer.device.traits.unified_memory:
        return False
    try:
        from .staging import move_staged
    except (ImportError, RuntimeError):  # the interpreter ends, and takes no more threads
        return False

    return move_staged(buffer.device, buffer.mem, start, part, to_device=to_device)


def download(buffer: Buffer, dtype: npt.DTypeLike, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return a fresh host array, writable, with the buffer's contents in C order.

    Raises DeviceError: the device was lost, and they are nowhere else.

    buffer: what to read; its first bytes.
    dtype: of the result.
    shape: of the result.
    """
    if type(buffer) is HostBuffer:
        return buffer.read(np.dtype(dtype), tuple(shape)).copy()
    from clfuse.runtime.drivers import opencl as cl

    result: npt.NDArray[Any] = np.empty(shape, dtype)
    if result.nbytes:
        counters["bytes_to_host"] += result.nbytes
        start_ns = time.perf_counter_ns() if events.listeners else 0
        if buffer.device.forked:
            result[...] = _left(buffer, result.dtype, shape)
            return result
        memory = _finished_memory(buffer)
        if memory is not None:
            for start, part in parts_of(as_bytes(result), "copying", buffer.device):
                part[...] = memory[start : start + len(part)]
            _tell_copied(False, result.nbytes, start_ns)
            return result
        device = buffer.device
        device.finish_if_long()
        for start, part in parts_of(as_bytes(result), "copying from the device", device):
            if not _is_staged(buffer, start, part, to_device=False):
                lost.call_driver(
                    device, "a download", cl.enqueue_copy, device.queue, part, buffer.mem,
                    src_offset=start, is_blocking=True,
                )  # fmt: skip
        if device.pinned:
            lost.check_pinned(device)
        _tell_copied(False, result.nbytes, start_ns)
    return result


class _HostMemory:
    """The bytes of a buffer: NumPy views of them hold it, and it holds the buffer and, where there
    is one, its map."""

    __slots__ = ("__array_interface__", "__weakref__", "buffer", "map")

    def __init__(self, buffer: Buffer, map_: Any, address: int) -> None:
        self.buffer = buffer
        self.map = map_
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": (buffer.nbytes,),
            "typestr": "|u1",
        }

    def __del__(self) -> None:
        # Called again where an interrupt ends it.
        if not hasattr(self, "map"):
            return  # half made: an interrupt has ended the constructor
        buffer = self.buffer
        if self.map is not None:
            device = buffer.device
            # No call comes between the two: a map is taken back once.
            map_, self.map = self.map, None
            if device.forked or device.lost:
                _maps_left.append(map_)
                return
            # The unmap must be enqueued before the memory can have a next owner, or be written to.
            try:
                map_.release()
            except lost.driver_error() as error:
                _maps_left.append(map_)
                lost.waiting(device, error)
        if buffer is not None:
            buffer.exported -= 1
            self.buffer = None  # type: ignore[assignment]


_core: Final = loading.load()
if _core is not None:
    _HostMemory.__del__ = _core.undisturbed(_HostMemory.__del__)  # type: ignore[method-assign]

_maps_left: list[Any] = []
"""Maps of lost devices, and those that this process has from the one that it was forked from:
letting go of one would enqueue a command that never runs."""


def _unmap(device: Device, map_: Any) -> None:
    """Take a map back; a device that was lost is noted, and its next use raises."""
    try:
        map_.release()
    except lost.driver_error() as error:
        _maps_left.append(map_)
        lost.waiting(device, error)


def host_view(buffer: Buffer, dtype: npt.DTypeLike, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return the contents as a read-only host array, uncopied where device and host share memory.

    Without a copy, the buffer is `exported`, and its memory has no other owner, as long as the
    array or any view of it lives.

    The parameters are `download`'s.
    """
    device = buffer.device
    dtype = np.dtype(dtype)
    if type(buffer) is HostBuffer:
        return buffer.read(dtype, tuple(shape))
    nbytes = dtype.itemsize * math.prod(shape)
    if not device.traits.unified_memory or nbytes == 0 or device.forked:
        result = download(buffer, dtype, shape)
        result.flags.writeable = False
        return result
    map_ = None
    array = _finished_memory(buffer)
    if array is None:
        array = _map(buffer, np.dtype(np.uint8), (buffer.nbytes,), write=False)
        map_ = array.base
    buffer.exported += 1
    memory = _HostMemory(buffer, map_, array.__array_interface__["data"][0])
    return np.asarray(memory)[:nbytes].view(dtype).reshape(shape)


@contextmanager
def map_to_host(
    buffer: Buffer, dtype: npt.DTypeLike, shape: Sequence[int], write: bool
) -> Iterator[npt.NDArray[Any]]:
    """Give a host array on a buffer's bytes, to libraries on the host, for the length of a block.

    The array is dead after the block. On a device with memory of its own it is a copy, written back
    at the end.

    The parameters are `download`'s, and whether the block may change the bytes.
    """
    device = buffer.device
    if type(buffer) is HostBuffer and not write:
        yield buffer.read(np.dtype(dtype), tuple(shape))
        return
    if device.forked:
        array = _left(buffer, np.dtype(dtype), shape)
        array.flags.writeable = write
        yield array
        return
    if not device.traits.unified_memory or 0 in shape:
        array = download(buffer, dtype, shape)
        array.flags.writeable = write
        yield array
        if write and array.nbytes:
            counters["bytes_to_device"] += array.nbytes
            start_ns = time.perf_counter_ns() if events.listeners else 0
            _write_and_wait(buffer, array)
            _tell_copied(True, array.nbytes, start_ns)
        return
    memory = _finished_memory(buffer)
    if memory is not None:
        array = np.ndarray(shape, dtype, memory)
        array.flags.writeable = write
        yield array
        return
    array = _map(buffer, np.dtype(dtype), shape, write)
    map_: Any = array.base
    if not write:
        array.flags.writeable = False
    try:
        yield array
    finally:
        _unmap(device, map_)


def host_memory(buffer: Buffer) -> npt.NDArray[np.uint8] | None:
    """The host memory that a buffer consists of, where the device works in it; else None.

    Wait for the device before it is touched, and let no command start meanwhile. A map would do the
    same; but right after the threads of a BLAS each costs the driver 0.1 ms.
    """
    if type(buffer) is HostBuffer:
        return as_bytes(buffer.array)
    pool = buffer.device.pool
    if pool is None or not pool.in_place:
        return None
    memory: Any = buffer.mem.hostbuf
    return None if memory is None else as_bytes(memory)


def _finished_memory(buffer: Buffer) -> npt.NDArray[np.uint8] | None:
    """`host_memory`, once the device has done what was enqueued.

    A map and what takes it back are commands: 40 to 80 us on PoCL, whose threads sleep in between,
    and 8 on Intel's runtime. Neither can be had of memory that is only read: where it is not
    aligned, Intel's runtime maps it by writing its own copy there.
    """
    if buffer.unchanging is not None:
        return as_bytes(buffer.unchanging)
    memory = host_memory(buffer)
    if memory is not None:
        buffer.device.finish()
    return memory


def _left(buffer: Buffer, dtype: np.dtype[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
    """A forked process's copy of a buffer's bytes, as an array on them."""
    memory = host_memory(buffer)
    if memory is None or (buffer.device.lost and type(buffer) is not HostBuffer):
        buffer.device.require()  # raises
    return np.ndarray(shape, dtype, memory if 0 not in shape else None)


def _map(
    buffer: Buffer, dtype: np.dtype[Any], shape: Sequence[int], write: bool
) -> npt.NDArray[Any]:
    """Wait for the queue and return the buffer's bytes as an array whose base is the map."""
    from clfuse.runtime.drivers import opencl as cl

    if not buffer.device.traits.unified_memory:
        raise DeviceError(f"map of {buffer!r}: the device has memory of its own")
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if write else cl.map_flags.READ
    array: npt.NDArray[Any]
    device = buffer.device
    device.finish_if_long()
    array, _ = lost.call_driver(
        device, "a map", cl.enqueue_map_buffer, device.queue, buffer.mem, flags, 0, tuple(shape),
        dtype, is_blocking=True,
    )  # fmt: skip
    if device.pinned:
        lost.check_pinned(device)
    return array


def transfer(buffer: Buffer, device: Device) -> Buffer:
    """Return a buffer with these contents on a device: this one if it is there, else a copy."""
    if buffer.device is device:
        return buffer
    if type(buffer) is HostBuffer:
        return HostBuffer(device, buffer.array)
    with map_to_host(buffer, np.uint8, (buffer.nbytes,), write=False) as array:
        return upload(device, array)

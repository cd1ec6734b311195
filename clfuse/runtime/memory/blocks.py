"""Buffers of device memory: what they own, and when it goes back to the pool.

A buffer's memory goes back to the pool when its `Buffer` object dies. The queue is in order, so the
next owner's commands run after all that were enqueued for the last one: nothing waits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.counters import counters
from clfuse.runtime.context import lost
from clfuse.runtime.context.pool import Pool
from clfuse.runtime.devices.device import Device

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyopencl as cl

__all__ = [
    "Block", "Buffer", "Counted", "allocate", "as_bytes", "count_memory", "fresh_copy",
    "in_c_order", "note_use", "parts_of", "pin", "pool_of",
]  # fmt: skip

#: Staged uploads that may be under way before the oldest is waited for: bounds what they pin.
STAGED_LIMIT = 64

#: Larger copies go in parts of this size: each takes some 20 ms.
COPIED_AT_ONCE = 1 << 28

#: As much to fresh memory of the host: 25 ms, and twenty times that where the system has to make
#: room for it first.
TOUCHED_AT_ONCE = 1 << 26

_clock: Final = itertools.count(1)


class Block:
    """Memory of a pool, which goes back with this object."""

    __slots__ = ("block_nbytes", "mem", "nbytes", "pool")

    def __init__(self, pool: Pool, nbytes: int, mem: cl.Buffer, block_nbytes: int) -> None:
        self.pool = pool
        self.nbytes = nbytes
        self.mem = mem
        self.block_nbytes = block_nbytes
        # No call follows: at one an interrupt might leave an object that was not counted.
        now = counters["device_bytes_now"] = counters["device_bytes_now"] + nbytes
        if now > counters["device_bytes_peak"]:
            counters["device_bytes_peak"] = now

    # A default, because the module's globals may be gone when the interpreter ends.
    def __del__(self, counters: dict[str, int] = counters) -> None:
        try:
            nbytes, size = self.nbytes, self.block_nbytes
        except AttributeError:
            return  # half made: an interrupt has ended the constructor
        counters["device_bytes_now"] -= nbytes
        self.pool.give(self.mem, size)


def count_memory(nbytes: int) -> None:
    """Count memory that a device got."""
    now = counters["device_bytes_now"] = counters["device_bytes_now"] + nbytes
    if now > counters["device_bytes_peak"]:
        counters["device_bytes_peak"] = now


class Counted:
    """Memory of the host, counted as long as this object lives."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        now = counters["device_bytes_now"] = counters["device_bytes_now"] + nbytes  # as in `Block`
        if now > counters["device_bytes_peak"]:
            counters["device_bytes_peak"] = now

    def __del__(self, counters: dict[str, int] = counters) -> None:
        try:
            counters["device_bytes_now"] -= self.nbytes
        except AttributeError:
            return  # half made


class Buffer:
    """A piece of one device's memory, owned by the holders of this object.

    What gives the memory back is another object (`Block`): buffers on the host do without.

    device (Device): where it is.
    nbytes (int): what was asked for.
    mem (pyopencl memory object): what a kernel takes as argument.
    exported (int): how many zero-copy host views are held: as long as there is one, no kernel may
        write to it. Of memory that is only lent for reading, one more.
    address: of the driver's object, ``mem.int_ptr``; for what is compiled, which asks for it once.
        Not set otherwise.
    used: when it was used last, as `note_use` counts; not set where memory is not tight.
    """

    __slots__ = ("__weakref__", "_owned", "address", "device", "exported", "mem", "nbytes", "used")
    address: int
    used: int

    def __init__(self, device: Device, nbytes: int, mem: cl.Buffer, owned: object) -> None:
        self.device = device
        self.nbytes = nbytes
        self.mem = mem
        self.exported = 0
        self._owned = owned

    def __repr__(self) -> str:
        return f"<clfuse buffer of {self.nbytes} bytes on {self.device.index}>"

    @property
    def unchanging(self) -> npt.NDArray[Any] | None:
        """The host array that it is, if nobody can write there."""
        return None

    @property
    def seen_by_host(self) -> bool:
        """Whether the host sees its bytes without a copy."""
        return self.device.traits.unified_memory

    def on_device(self) -> Buffer:
        """Return the buffer that a kernel may write to, once its contents are not needed."""
        return self

    def of(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        """Return the buffer for a node of this dtype and shape, which has the same bytes."""
        return self


def allocate(device: Device, nbytes: int) -> Buffer:
    """Return memory with undefined contents.

    device: where.
    nbytes: how much; 0 is allowed and gets a buffer that a kernel takes.

    Raises AllocationError: more than the device's largest allocation, or more than is left. Every
        earlier buffer is as it was.
    """
    pool = device.pool or pool_of(device)
    mem, block_nbytes = pool.take(nbytes)
    made = Buffer(device, nbytes, mem, Block(pool, nbytes, mem, block_nbytes))
    if pool.is_tight:
        note_use([made])
    return made


def note_use(buffers: Iterable[Buffer]) -> None:
    """Note that these are used now, where memory is tight: idle ones are moved to the host."""
    now = next(_clock)
    for buffer in buffers:
        buffer.used = now


def pool_of(device: Device) -> Pool:
    with device.lock:
        if device.pool is None:
            simulation = device.simulation
            device.pool = Pool(device) if simulation is None else simulation.pool(device)
        return device.pool


def pin(device: Device, event: Any, owner: object) -> None:
    """Keep `owner` alive until `event` is complete.

    Raises DeviceError: what was pinned before has failed: the device is lost.
    """
    pinned = device.pinned
    pinned.append((event, owner))
    # In order: what comes after one that is not complete is not complete either.
    lost.check_pinned(device)
    while len(pinned) > STAGED_LIMIT:
        try:
            oldest, memory = pinned.popleft()
        except IndexError:  # other threads took them
            return
        try:
            oldest.wait()
        except lost.driver_error() as error:
            pinned.appendleft((oldest, memory))
            raise lost.waiting(device, error) from error
        lost.check_pinned(device)


def in_c_order(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array if array.flags.c_contiguous else fresh_copy(array)


def fresh_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy in C order, in memory of its own."""
    if array.nbytes <= TOUCHED_AT_ONCE:
        return np.array(array, order="C")
    from .parts import fresh_copy

    return fresh_copy(array, TOUCHED_AT_ONCE)


def as_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def parts_of(
    content: npt.NDArray[np.uint8], what: str, device: Device
) -> Iterable[tuple[int, npt.NDArray[np.uint8]]]:
    """Bytes to copy, in parts: where each begins, and the bytes. A device that works in the host's
    memory copies to fresh pages of it."""
    most = TOUCHED_AT_ONCE if device.traits.unified_memory else COPIED_AT_ONCE
    if len(content) <= most:
        return ((0, content),)
    from .parts import parts

    return parts(content, what, most)

"""Copies between the host's arrays and a device with memory of its own, through pinned memory.

A driver copies from and to ordinary memory by a thread of its own, through pinned memory of its
own: 3 to 8 GB/s on a machine whose bus takes 50. Here several threads copy chunks on the host while
the device moves others. They also touch the pages of a fresh result, side by side.

    chunk        0         1         2         3
    host      copies >> copies >> copies >> copies        several at a time
    device             moves >>  moves >>  moves >> ...   in order

A copy that fails, or that an interrupt ends, raises when no thread and no command uses its arrays
any more.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from clfuse.errors import ClfuseError
from clfuse.process import locks
from clfuse.runtime.context import lost
from clfuse.runtime.devices.selection import when_renewed

if TYPE_CHECKING:
    import numpy.typing as npt

    from clfuse.runtime.devices.device import Device

    Bytes = npt.NDArray[np.uint8]

__all__ = ["move_staged"]

CHUNK_NBYTES: Final = 4 << 20
"""Of a chunk: the bus moves it in .1 ms, ten times what a command costs."""

MOST_THREADS: Final = 6
"""Threads that copy: one copies 5 to 10 GB/s."""

SLOTS_PER_THREAD: Final = 2
"""Pinned chunks for each of them: it copies one while the device moves another."""


class _Slot:
    """Pinned memory for one chunk, and what uses it."""

    __slots__ = ("array", "copying", "event", "memory")

    def __init__(self, device: Device) -> None:
        from clfuse.runtime.drivers import opencl as cl

        flags = cl.mem_flags.ALLOC_HOST_PTR | cl.mem_flags.READ_WRITE
        memory = lost.call_driver(
            device, "pinned memory", cl.Buffer, device.context, flags, CHUNK_NBYTES
        )
        both: Any = cl.map_flags.READ | cl.map_flags.WRITE
        self.memory = memory
        self.array: Bytes
        self.array, _ = lost.call_driver(
            device, "a map", cl.enqueue_map_buffer, device.queue, memory, both, 0,
            (CHUNK_NBYTES,), np.dtype(np.uint8), is_blocking=True,
        )  # fmt: skip
        self.event: Any = None
        self.copying: Future[None] | None = None


class _Stage:
    """The pinned chunks of a device and the threads that fill them; one copy at a time."""

    def __init__(self, device: Device) -> None:
        threads = max(1, min(MOST_THREADS, (os.cpu_count() or 1) - 1))
        self.lock = threading.Lock()  # of one move: who comes meanwhile goes another way
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="clfuse-copies")
        self.slots = [_Slot(device) for _ in range(SLOTS_PER_THREAD * threads)]

    def _copy(self, target: Bytes, source: Bytes) -> Future[None]:
        """Begin to copy; when the interpreter ends it is done then, as no thread takes it."""
        try:
            return self.pool.submit(np.copyto, target, source)
        except RuntimeError:
            np.copyto(target, source)
            done: Future[None] = Future()
            done.set_result(None)
            return done

    def upload(self, device: Device, memory: Any, start: int, content: Bytes) -> None:
        """Move bytes of the host to `memory` from byte `start` on."""
        from clfuse.runtime.drivers import opencl as cl

        copying: deque[tuple[_Slot, int, int]] = deque()

        def send() -> None:
            slot, low, nbytes = copying.popleft()
            _result(slot)
            slot.event = lost.call_driver(
                device, "an upload", cl.enqueue_copy, device.queue, memory, slot.array[:nbytes],
                dst_offset=start + low, is_blocking=False,
            )  # fmt: skip
            lost.call_driver(device, "a flush", device.queue.flush)

        for number, low in enumerate(range(0, len(content), CHUNK_NBYTES)):
            slot = self.slots[number % len(self.slots)]
            _wait(device, slot, "an upload")
            part = content[low : low + CHUNK_NBYTES]
            slot.copying = self._copy(slot.array[: len(part)], part)
            copying.append((slot, low, len(part)))
            if len(copying) * SLOTS_PER_THREAD >= len(self.slots):
                send()
        while copying:
            send()
        for slot in self.slots:
            _wait(device, slot, "an upload")

    def download(self, device: Device, memory: Any, start: int, content: Bytes) -> None:
        """Move bytes of `memory` from byte `start` on to the host."""
        from clfuse.runtime.drivers import opencl as cl

        moving: deque[tuple[_Slot, Bytes]] = deque()

        def receive() -> None:
            slot, part = moving.popleft()
            _wait(device, slot, "a download")
            slot.copying = self._copy(part, slot.array[: len(part)])

        for number, low in enumerate(range(0, len(content), CHUNK_NBYTES)):
            slot = self.slots[number % len(self.slots)]
            _result(slot)
            part = content[low : low + CHUNK_NBYTES]
            slot.event = lost.call_driver(
                device, "a download", cl.enqueue_copy, device.queue, slot.array[: len(part)],
                memory, src_offset=start + low, is_blocking=False,
            )  # fmt: skip
            lost.call_driver(device, "a flush", device.queue.flush)
            moving.append((slot, part))
            if len(moving) * SLOTS_PER_THREAD >= len(self.slots):
                receive()
        while moving:
            receive()
        for slot in self.slots:
            _result(slot)

    def settle(self) -> None:
        """Wait until nothing uses a slot, whatever became of it."""
        for slot in self.slots:
            if slot.event is not None:
                with suppress(lost.driver_error()):
                    slot.event.wait()
                slot.event = None
            if slot.copying is not None:
                slot.copying.exception()
                slot.copying = None


def _wait(device: Device, slot: _Slot, what: str) -> None:
    """Wait until the device has moved a slot's chunk."""
    if slot.event is not None:
        lost.call_driver(device, what, slot.event.wait)
        slot.event = None


def _result(slot: _Slot) -> None:
    """Wait until the host has copied a slot's chunk; what went wrong there raises."""
    if slot.copying is not None:
        slot.copying.result()
        slot.copying = None


_stages: Final[WeakKeyDictionary[Device, _Stage | None]] = WeakKeyDictionary()
"""None of a device that has no pinned memory."""

_making: Final = locks.make()


def move_staged(
    device: Device, memory: Any, start: int, content: Bytes, *, to_device: bool
) -> bool:
    """Copy the bytes `content` of the host to or from those of device memory from `start` on, after
    all that is in the queue; False where they are to be copied otherwise."""
    stage = _stage_of(device)
    if stage is None or not stage.lock.acquire(blocking=False):
        return False
    try:
        move: Callable[..., None] = stage.upload if to_device else stage.download
        move(device, memory, start, content)
    finally:
        try:
            stage.settle()
        finally:
            stage.lock.release()
    return True


def _stage_of(device: Device) -> _Stage | None:
    with _making:
        if device not in _stages:
            try:
                _stages[device] = _Stage(device)
            except (ClfuseError, lost.driver_error()):
                _stages[device] = None  # the driver has no pinned memory left: it copies by itself
        return _stages[device]


_maps_left: Final[list[Any]] = []
"""Pinned memory of lost devices: taking back its map would enqueue a command that never runs."""


def _forget(device: Device) -> None:
    """Let go of the pinned chunks of a device that was lost."""
    with _making:
        stage = _stages.pop(device, None)
    if stage is not None:
        stage.pool.shutdown(wait=False)
        _maps_left.extend([slot.array for slot in stage.slots])


when_renewed.append(_forget)

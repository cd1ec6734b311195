"""The base class of devices: their state, for modules that must not import the class `Device`.

Errors of drivers, pools and simulations are about a `DeviceBase`; `devices.device.Device` derives
from it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from clfuse.process import locks

if TYPE_CHECKING:
    import pyopencl as cl

    from clfuse.runtime.drivers.inline import Inline
    from clfuse.target.traits import DeviceTraits

__all__ = ["DeviceBase", "Memory"]


class Memory(Protocol):
    """What a device's memory does where the driver has refused something."""

    def trim(self) -> None:
        """Return blocks without an owner to the system."""

    def close(self) -> None:
        """Keep nothing any more: the device was lost."""


class DeviceBase:
    """The state of one OpenCL device.

    name, platform_name, vendor_name (str): as the driver gives them.
    index (str): ``"platform:device"``, one of the forms that `set_device` and ``CLFUSE_DEVICE``
        take.
    lock (threading.RLock): held while a kernel's arguments are set and it is enqueued: pyopencl's
        kernels are not thread-safe.
    cause (str or None): why it is not usable, once that is known.
    forked (bool): whether this process was forked from one that used it, or, of PoCL, that listed
        it: the driver's threads stayed behind, nothing can be enqueued. Its memory is still there
        where it is the host's, and NumPy calculates (`clfuse.interpreter.interpret`).
    lost (bool): whether it worked, and its context is gone (`runtime.context.lost`). It stays so;
        `set_device` puts another object in its place.
    """

    forked = False
    #: Whether it took the place of one that was lost.
    is_renewed = False
    lost = False
    #: Made by `runtime.memory` for the first buffer.
    pool: Memory | None = None
    #: What runs small kernels in the calling thread, where the driver can.
    inline: Inline | None = None
    _queue: cl.CommandQueue | None = None
    _timed_queue: cl.CommandQueue | None = None
    #: Made by `runtime.launches.launch` for the first kernel that counts its work-items.
    count: cl.Buffer | None = None
    #: Made by `runtime.context.lost`, to find out whether the context is still there.
    canary: cl.Buffer | None = None

    def __init__(
        self,
        handle: cl.Device,
        platform: cl.Platform,
        index: str,
        inline: Inline | None = None,
    ) -> None:
        self.handle = handle
        self.index = index
        self.inline = inline
        self.name: str = handle.name.strip()
        self.platform_name: str = platform.name.strip()
        self.vendor_name: str = platform.vendor.strip()
        self.lock = locks.make()
        #: What `runtime.launches.tables` keeps: a table, and the numbers in the device's memory.
        self.tables: dict[Any, cl.Buffer] = {}
        self.cause: str | None = None
        self._context: cl.Context | None = None
        #: (event, object): host memory that must live until its command is done; kept by
        #: `runtime.memory`.
        self.pinned: deque[tuple[cl.Event, object]] = deque()

    @property
    def traits(self) -> DeviceTraits:
        """The device's facts."""
        raise NotImplementedError

    @property
    def context(self) -> cl.Context:
        """The OpenCL context."""
        raise NotImplementedError

    @property
    def queue(self) -> cl.CommandQueue:
        """The one queue, in order."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until all that was enqueued is done."""
        raise NotImplementedError

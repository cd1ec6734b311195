"""``CLFUSE_DEBUG=sync``: a wait after every launch, so that a fault is reported with its kernel.

A driver reports a fault with some later call. While this is on, every launch is shown to
`launch.observers`: the paths that call the driver without pyopencl, or launch ahead, are not taken
while there is an observer. After steps that are no kernels an evaluation calls `finish`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clfuse.config import changed, settings
from clfuse.runtime.context import lost

from . import launch

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

    from .program import Program

__all__ = ["finish", "is_on"]


def is_on() -> bool:
    """Whether every step is waited for."""
    return _observer in launch.observers


def finish(device: Device, name: str) -> None:
    """Wait for a step that was enqueued just now, on a device that had done all else.

    Raises DeviceError: it has failed, and the device was lost; names it.
    """
    queue = device.queue
    try:
        queue.finish()
    except lost.driver_error() as error:
        raise lost.waiting(device, error, name) from error
    if device.pinned:
        lost.check_pinned(device)


def _observer(program: Program, event: Any) -> None:
    finish(program.device, program.name)


def _follow_settings() -> None:
    wanted = settings.__dict__.get("debug") == "sync"  # not there before the first use
    if wanted != is_on():
        (launch.observers.append if wanted else launch.observers.remove)(_observer)


changed.append(_follow_settings)
_follow_settings()

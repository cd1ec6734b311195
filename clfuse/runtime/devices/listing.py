"""The list of devices: the first call of OpenCL in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clfuse.errors import DeviceError
from clfuse.runtime.drivers import driver_cache, inline, invokers, pinning, vendors

from .device import Device

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["list_devices"]


def list_devices() -> list[Device]:
    """Return a new object for every device that the drivers name, in their order.

    Raises
    ------
    DeviceError
        pyopencl cannot be imported.
    """
    drivers = vendors.drivers()
    with (
        driver_cache.environment(),
        vendors.loader_environment(),
        inline.loader_environment(drivers),
        pinning.loader_environment(),
    ):
        try:
            import pyopencl as cl

            invokers.keep_in_memory()
        except ImportError as error:
            raise DeviceError(
                f"pyopencl cannot be imported: {error}; python -m pip install pyopencl"
            ) from error
        try:
            platforms = cl.get_platforms()
        except cl.Error:  # PLATFORM_NOT_FOUND_KHR: the loader found no driver at all
            platforms = []
        found: list[Device] = []
        for number, platform in enumerate(platforms):
            for candidate in _of_platform(number, platform):
                # Two .icd files may name one driver.
                if not any(candidate.handle == other.handle for other in found):
                    found.append(candidate)
    return found


def _of_platform(number: int, platform: cl.Platform) -> list[Device]:
    import pyopencl as cl

    try:
        found = inline.handles_of(platform)
    except cl.Error:  # DEVICE_NOT_FOUND: Mesa's Clover lists itself without any
        return []
    return [
        Device(handle, platform, f"{number}:{position}", beside)
        for position, (handle, beside) in enumerate(found)
    ]

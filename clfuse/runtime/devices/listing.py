"""The list of devices: the first call of OpenCL in a process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from clfuse.errors import DeviceError
from clfuse.runtime.drivers import driver_cache, inline, pinning, vendors

from .device import Device

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["list_devices"]


def list_devices(while_loading: Iterable[Callable[[], object]] = ()) -> list[Device]:
    """Return a new object for every device that the drivers name, in their order.

    Parameters
    ----------
    while_loading
        Functions that are called while the drivers are loaded.

    Raises DeviceError: pyopencl cannot be imported.
    """
    drivers = vendors.drivers()
    try:
        from clfuse.runtime.drivers import opencl as cl
    except ImportError as error:
        raise DeviceError(
            f"pyopencl cannot be imported: {error}; python -m pip install pyopencl"
        ) from error
    with vendors.loaded_beside(drivers.values()):
        for call in while_loading:
            call()
    with (
        driver_cache.environment(),
        vendors.loader_environment(),
        inline.loader_environment(drivers),
        pinning.loader_environment(),
    ):
        cl.load_drivers()
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
    from clfuse.runtime.drivers import opencl as cl

    try:
        found = inline.handles_of(platform)
    except cl.Error:  # DEVICE_NOT_FOUND: Mesa's Clover lists itself without any
        return []
    return [
        Device(handle, platform, f"{number}:{position}", beside)
        for position, (handle, beside) in enumerate(found)
    ]

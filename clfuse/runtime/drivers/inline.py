"""PoCL's second device, which runs kernels in the thread that launches them.

A launch and the wait for it take 30 to 40 us on PoCL's device of all cores, most of which its
threads sleep and wake; on its device of one, which sleeps nowhere, 1 us (3.1, two cores, and the
same for 1,000 elements). So a plan of some microseconds is run by that one. Both work in the same
memory and in one context; clfuse lists the first alone.

PoCL makes a device for every name that it finds in a variable of the environment when its devices
are first listed, by default one of all cores. Its drivers for other kinds of devices would have to
be named, too, and what they are called is not known before: where it has any, it is left alone.

Source: http://portablecl.org/docs/html/env_variables.html
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clfuse.config import settings

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["Inline", "handles_of", "loader_environment"]

LIBRARY: Final = "libpocl.so"

VARIABLE: Final = "POCL_DEVICES"

NAMES: Final = (("cpu", "cpu-minimal"), ("pthread", "basic"))
"""What the devices of all cores and of the caller's are called, from PoCL 4 on and before. With a
name that it does not know PoCL has no devices, until it is asked again."""

SMALL: Final = tuple(f"{pair[1]}-" for pair in NAMES)

DRIVERS: Final = frozenset(f"libpocl-devices-{name}.so" for pair in NAMES for name in pair)

MAPPED: Final = "/proc/self/maps"


class Inline:
    """The device of the calling thread beside one of all cores.

    handle (pyopencl.Device): to build for.
    queue: what is put into it is done when that returns. `runtime.launches.launch` sees to it that
        what the other queue had is done before.
    """

    queue: cl.CommandQueue

    def __init__(self, handle: cl.Device) -> None:
        self.handle = handle

    def __str__(self) -> str:
        return str(self.handle.name.strip())

    def open(self, context: cl.Context, *, profiling: bool = False) -> None:
        """Make a queue; its events hold times if asked."""
        from clfuse.runtime.drivers import opencl as cl

        if profiling:
            timed = cl.command_queue_properties.PROFILING_ENABLE
            self.queue = cl.CommandQueue(context, self.handle, timed)
        else:
            self.queue = cl.CommandQueue(context, self.handle)


@contextmanager
def loader_environment(drivers: Mapping[str, str]) -> Iterator[None]:
    """Have PoCL make both devices, if it is first asked for them in this block.

    `drivers` are .icd file name -> library, as the loader reads them.
    """
    libraries = [library for library in drivers.values() if LIBRARY in library]
    names = None
    if settings.inline and VARIABLE not in os.environ and len(libraries) == 1:
        names = _names_of(libraries[0])
    if names is None:
        yield
        return
    os.environ[VARIABLE] = " ".join(names)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def handles_of(platform: cl.Platform) -> list[tuple[cl.Device, Inline | None]]:
    """A platform's devices, and what runs kernels beside them in the calling thread.

    To be called in the block of `loader_environment`.

    Raises pyopencl.Error: there are none.
    """
    from clfuse.runtime.drivers import opencl as cl

    try:
        handles = platform.get_devices()
    except cl.Error:
        if VARIABLE not in os.environ:
            raise
        handles = []
    if not handles and VARIABLE in os.environ:
        del os.environ[VARIABLE]
        handles = platform.get_devices()
    beside = [handle for handle in handles if handle.name.startswith(SMALL)]
    if VARIABLE not in os.environ or len(beside) != 1 or len(handles) == 1:
        return [(handle, None) for handle in handles]
    return [(handle, Inline(beside[0])) for handle in handles if handle != beside[0]]


def _names_of(library: str) -> tuple[str, str] | None:
    """How PoCL calls its two devices; None where it may have others."""
    path = Path(library)
    try:
        if not path.is_absolute():
            ctypes.CDLL(library)  # which makes no devices yet
            with open(MAPPED, encoding="utf-8", errors="replace") as file:
                path = Path(next(line.split()[-1] for line in file if f"/{library}" in line))
        drivers = {driver.name for driver in (path.parent / "pocl").glob("libpocl-devices-*.so")}
        if not drivers or not drivers <= DRIVERS:
            return None
        content = path.read_bytes()
    except (OSError, StopIteration):
        return None
    return next((pair for pair in NAMES if b"\0" + pair[1].encode() + b"\0" in content), None)

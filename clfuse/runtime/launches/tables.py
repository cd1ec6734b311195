"""Tables of numbers in a device's memory, made and copied once: the roots of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clfuse.counters import counters
from clfuse.runtime.context import lost
from clfuse.runtime.devices.device import Device

if TYPE_CHECKING:
    from clfuse.schedule.fourier_tables import Table

MOST_NBYTES: Final = 64 << 20
"""Tables of a device that are kept, in bytes; plans keep theirs besides."""


def table_on(device: Device, table: Table) -> Any:
    """The device's memory with the numbers of a table.

    Raises AllocationError: there is no room for it.
    """
    with device.lock:
        kept = device.tables
        found = kept.pop(table, None)
        if found is None:
            found = _sent(device, table)
        kept[table] = found  # the last one asked for is the last one to go
        nbytes = sum([each.nbytes for each in kept])
        while nbytes > MOST_NBYTES and len(kept) > 1:
            oldest = next(iter(kept))
            nbytes -= oldest.nbytes
            del kept[oldest]
        return found


def _sent(device: Device, table: Table) -> Any:
    from clfuse.runtime.drivers import opencl as cl

    values = table.values()
    counters["bytes_to_device"] += values.nbytes
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return lost.call_driver(device, "a table", cl.Buffer, device.context, flags, hostbuf=values)

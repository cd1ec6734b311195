"""What is looked at while the interpreter ends: NumPy computes it.

The modules that plan, and make kernels, cannot be imported any more then, or a thread was left in a
call of the driver, with locks that building kernels and opening the device need.
"""

from __future__ import annotations

from clfuse.errors import DeviceError
from clfuse.ir.snapshot import Snapshot
from clfuse.runtime.devices.device import Device

from . import interpret

__all__ = ["calculate"]


def calculate(snapshot: Snapshot, device: Device, cause: Exception | None = None) -> None:
    """Have NumPy compute a snapshot.

    Parameters
    ----------
    cause : Exception, optional
        Why nobody else can.

    Raises
    ------
    DeviceError
        NumPy cannot, either.
    """
    try:
        if not interpret.needs_kernels(snapshot):
            interpret.run(snapshot, device)
            return
    except Exception as error:  # noqa: BLE001 (whatever is missing, it is missing for the same reason)
        cause = cause or error
    raise DeviceError(
        "the interpreter ends, and nothing is computed any more: call clfuse.evaluate(...) on what"
        " objects look at when they are deleted"
    ) from cause

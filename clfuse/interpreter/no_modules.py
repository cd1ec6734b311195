"""What is looked at where no module can be imported: NumPy computes it.

The modules that plan, and make kernels, are imported for the first plan. They cannot be while the
interpreter ends, nor by a destructor or a signal's handler that interrupts this import in its own
thread. Or the process ends while a thread was left in a call of the driver, with locks that
building kernels and opening the device need.
"""

from __future__ import annotations

import sys
from types import ModuleType

from clfuse.errors import DeviceError
from clfuse.ir.snapshot import Snapshot
from clfuse.runtime.devices.device import Device

from . import interpret

__all__ = ["calculate", "is_cause"]


def is_cause(error: ImportError | AttributeError) -> bool:
    """Whether an error was raised because modules cannot be imported."""
    if isinstance(error, AttributeError):
        module = error.obj
    elif sys.is_finalizing():
        return True
    else:
        module = sys.modules.get(error.name or "")
    spec = getattr(module, "__spec__", None) if isinstance(module, ModuleType) else None
    return bool(getattr(spec, "_initializing", False))


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
    except Exception as error:  # noqa: BLE001 (whatever is missing, for the same reason)
        cause = cause or error
    when = "the interpreter ends" if cause is None or sys.is_finalizing() else str(cause)
    raise DeviceError(
        f"{when}, and nothing is computed: call clfuse.evaluate(...) before on what destructors and"
        " signals' handlers look at"
    ) from cause

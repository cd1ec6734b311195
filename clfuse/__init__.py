"""NumPy's interface on OpenCL devices: what is done with arrays is recorded, fused, and run when it
is looked at.

Use it in NumPy's place: ``import clfuse as np``. Every public name of NumPy's is here
(`__version__` too: programs ask it what NumPy can do); the names in `__all__` are beyond NumPy's.

Examples
--------
>>> import clfuse as np
>>> x = np.linspace(0, 1, 5)
>>> (x ** 2).sum()
np.float64(1.875)
"""

from __future__ import annotations

from typing import Any

from . import openblas as _openblas  # noqa: F401  isort: skip  (before anything imports NumPy)
from . import automatic, config, counters

# The submodules evaluate, explain and profile are imported before the functions of the same names:
# importing a submodule later would put the module in the function's place.
from .evaluate import evaluate_all as _evaluate_all  # noqa: F401
from .explain import explain_nodes as _explain_nodes  # noqa: F401

from .profile import Profile as _Profile  # noqa: F401  isort: skip
from .api import namespace as _namespace
from .api.control import (
    device,
    devices,
    evaluate,
    explain,
    get_device,
    profile,
    set_device,
    stats,
    synchronize,
)
from .api.conversion import asnumpy
from .api.elementwise_kernel import ElementwiseKernel
from .api.jit import jit
from .api.ndarray import (
    ndarray,
    scalar,  # noqa: F401  (`scalar`: so that its pickle is found)
)
from .api.raw_kernel import RawKernel
from .api.reduction_kernel import ReductionKernel
from .api.ufunc import ufunc
from .errors import (
    AllocationError,
    ClfuseError,
    DeviceDtypeError,
    DeviceError,
    DeviceWarning,
    FallbackError,
    FallbackWarning,
    JitError,
    JitWarning,
    KernelBuildError,
    KernelError,
    SettingError,
)
from .language import atomic, device_function, group, kernel, local_array, philox

__all__ = [
    "AllocationError",
    "ClfuseError",
    "DeviceDtypeError",
    "DeviceError",
    "DeviceWarning",
    "ElementwiseKernel",
    "FallbackError",
    "FallbackWarning",
    "JitError",
    "JitWarning",
    "KernelBuildError",
    "KernelError",
    "RawKernel",
    "ReductionKernel",
    "SettingError",
    "asnumpy",
    "atomic",
    "config",
    "counters",
    "device",
    "device_function",
    "devices",
    "evaluate",
    "explain",
    "get_device",
    "group",
    "jit",
    "kernel",
    "local_array",
    "ndarray",
    "philox",
    "profile",
    "set_device",
    "stats",
    "synchronize",
    "ufunc",
]
__all__ += _namespace.exported()

_namespace.register_submodules()
automatic.start()


def __getattr__(name: str) -> Any:
    """NumPy's names: looked up when they are first asked for."""
    found = _namespace.lookup(name)
    if not name.startswith("__"):
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

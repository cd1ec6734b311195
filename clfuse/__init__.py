"""NumPy's interface on OpenCL devices: operations are recorded, fused, and run on demand.

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

import importlib as _importlib
import typing as _typing

from . import openblas as _openblas  # noqa: F401  isort: skip  (before anything imports NumPy)
from . import config, counters
from .engine import auto_flush as _auto_flush

from . import namespace as _namespace  # isort: skip
from . import tracebacks as _tracebacks
from .arrays.conversion import asnumpy
from .classes.ndarray import (
    ndarray,
    scalar,  # noqa: F401  (`scalar`: so that its pickle is found)
)
from .control import (
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
    KernelBuildWarning,
    KernelError,
    SettingError,
    SettingWarning,
)
from .errors import warn_user as _warn_user
from .functions import documenting as _documenting
from .functions.math.ufunc import ufunc

if _typing.TYPE_CHECKING:
    from .runtime.devices.watching import watch
    from .tracing.jit import jit
    from .user_kernels.language import atomic, device_function, group, kernel, local_array, philox
    from .user_kernels.opencl.elementwise import ElementwiseKernel
    from .user_kernels.opencl.raw import RawKernel
    from .user_kernels.opencl.reduction import ReductionKernel

_LATER = {
    "ElementwiseKernel": "user_kernels.opencl.elementwise",
    "RawKernel": "user_kernels.opencl.raw",
    "ReductionKernel": "user_kernels.opencl.reduction",
    "jit": "tracing.jit",
    **dict.fromkeys(
        ("atomic", "device_function", "group", "kernel", "local_array", "philox"),
        "user_kernels.language",
    ),
    "watch": "runtime.devices.watching",
}
"""Names of ours that few programs use -> their modules, which are imported when they are asked for:
a third of what there would be to import."""

_OF_IPYTHON = {"load_ipython_extension": "load", "unload_ipython_extension": "unload"}
"""What IPython asks for at ``%load_ext clfuse`` and ``%unload_ext clfuse``."""

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
    "KernelBuildWarning",
    "KernelError",
    "RawKernel",
    "ReductionKernel",
    "SettingError",
    "SettingWarning",
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
    "watch",
]
__all__ += _namespace.exported()

_namespace.register_submodules()
globals().update(
    {name: value for name, value in _namespace.at_hand().items() if name not in globals()}
)
_documenting.add_to(globals())
_auto_flush.start()
for _fault in config.environment_faults():
    _warn_user(_fault, SettingWarning)
_tracebacks.install()


_LISTED: _typing.Final = frozenset((*__all__, *_namespace.names()))


def __getattr__(name: str) -> _typing.Any:
    """NumPy's names that are not `at_hand`, and those of `_LATER`: looked up when they are first
    asked for."""
    if name in _LATER:
        found = getattr(_importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    elif name in _OF_IPYTHON:
        notebook = _importlib.import_module(f"{__name__}.tools.report.notebook")
        found = getattr(notebook, _OF_IPYTHON[name])
    else:
        found = _namespace.lookup(name)
    if not name.startswith("__"):
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    """NumPy's names and ours, without the modules that clfuse is made of and what it imports."""
    kept = {name for name in globals() if name[0] == "_" or name in _LISTED}
    return sorted(kept | _LISTED)

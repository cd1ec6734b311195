"""A package `cupy` of clfuse's functions, or NumPy's, for CuPy's own tests; ci/cupy-tests loads it
as a plugin of pytest.

The tests compare ``numpy.f(...)`` with ``cupy.f(...)``. What helps them, `cupy.testing`, is taken
from a checkout; of what concerns CUDA alone there is as much as it takes to import them.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

LIBRARY: Any = importlib.import_module(os.environ["CUPY_STAND_IN"])
CHECKOUT = Path(os.environ["CUPY_TESTS"])
SUBMODULES = ("fft", "linalg", "ma", "polynomial", "random")


class _Package(ModuleType):
    """Has what the library has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(LIBRARY, name)


class _Context:
    """Of a device or a stream: there is one."""

    id = 0
    compute_capability = "80"

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def synchronize(self) -> None:
        """Every look at an array waits."""


@contextlib.contextmanager
def _nothing(*args: Any, **named: Any) -> Iterator[None]:
    yield


def asnumpy(array: Any, *args: Any, **named: Any) -> Any:
    """An array of NumPy's."""
    return np.array(array) if isinstance(array, LIBRARY.ndarray) else np.asarray(array)


def get_array_module(*arrays: Any) -> Any:
    """NumPy for arrays of NumPy's; they count as ours, too, where `isinstance` is asked."""
    is_ours = any(type(array) is LIBRARY.ndarray for array in arrays)
    return LIBRARY if is_ours else np


def _module(name: str, **contents: Any) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    made.__dict__.update(contents)
    return made


def install() -> None:
    """Let `cupy` and `cupyx` be imported."""
    package = sys.modules["cupy"] = _Package("cupy")
    package.__path__ = [str(CHECKOUT / "cupy")]
    accelerators: dict[str, Any] = {"ACCELERATOR_CUB": 1, "ACCELERATOR_CUTENSOR": 2}
    none: dict[str, Any] = {
        f"{verb}_{kind}_accelerators": lambda *given: [] for verb in ("get", "set")
        for kind in ("routine", "reduction")
    }  # fmt: skip
    internal = _module("cupy._core.internal", prod=math.prod)
    runtime = _module(
        "cupy.cuda.runtime", is_hip=False, getDeviceCount=lambda: 1, runtimeGetVersion=lambda: 12000
    )
    package.__dict__.update(
        ndarray=LIBRARY.ndarray, asnumpy=asnumpy, get_array_module=get_array_module,
        exceptions=np.exceptions, _environment=_module("cupy._environment"),
        _util=_module("cupy._util", PerformanceWarning=type("PerformanceWarning", (Warning,), {})),
        _core=_module(
            "cupy._core", internal=internal, core=SimpleNamespace(ndarray=LIBRARY.ndarray),
            _accelerator=_module("cupy._core._accelerator", **accelerators), **none,
        ),
        cuda=_module(
            "cupy.cuda", runtime=runtime, Device=_Context, Stream=_Context, alloc=None,
            MemoryPointer=object, device=SimpleNamespace(Device=_Context),
            driver=SimpleNamespace(get_build_version=lambda: 12000),
            nvrtc=SimpleNamespace(getVersion=lambda: (12, 0)),
        ),
    )  # fmt: skip
    sys.modules["cupy.exceptions"] = np.exceptions
    for name in SUBMODULES:
        sys.modules[f"cupy.{name}"] = getattr(LIBRARY, name)
    # CuPy's own makes arrays from pointers.
    sys.modules["cupy.lib.stride_tricks"] = LIBRARY.lib.stride_tricks
    sparse = _module("cupyx.scipy.sparse", issparse=lambda value: False)
    scipy = _module("cupyx.scipy", sparse=sparse)
    _module("cupyx", scipy=scipy, errstate=_nothing, allow_synchronize=_nothing)
    package.testing = importlib.import_module("cupy.testing")  # type: ignore[attr-defined]


install()

"""``device=`` arguments, and the answers of `__array_namespace_info__`.

Source: https://data-apis.org/array-api/2024.12/API_specification/inspection.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import move_to_device
from clfuse.arrays.handle import Handle

HAS_INFO: Final = hasattr(np, "__array_namespace_info__")
"""Whether NumPy can be asked, and so clfuse (2.1)."""

_Info: Any = type(np.__array_namespace_info__()) if HAS_INFO else object


class __array_namespace_info__(_Info):  # type: ignore[misc]
    """What the array API standard lets a program ask: devices, dtypes, capabilities.

    Examples
    --------
    >>> import clfuse as np
    >>> info = np.__array_namespace_info__()
    >>> info.default_device() in info.devices()
    True
    """

    __module__ = "clfuse"

    def devices(self) -> list[Any]:
        """All usable devices, best first."""
        from clfuse.runtime.devices import selection

        return selection.devices()

    def default_device(self) -> Any:
        """The device that new work goes to."""
        from clfuse.runtime.devices import selection

        return selection.get_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of what is made without naming one; `device` as for `set_device`."""
        found = super().default_dtypes()
        return found if _has_fp64(device) else {name: _narrow(found[name]) for name in found}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The standard's dtypes that arrays on `device` may have, by name."""
        found: dict[str, np.dtype] = super().dtypes(kind=kind)
        if _has_fp64(device):
            return found
        # NumPy has a class, not a dtype, for `kind="bool"`.
        return {name: dtype for name, dtype in found.items() if dtype == _narrow(np.dtype(dtype))}


def _has_fp64(device: Any) -> bool:
    return bool(_target(device).traits.fp64)


def _narrow(dtype: np.dtype) -> np.dtype:
    """The dtype that takes the place of double precision where there is none."""
    return np.dtype({"d": "f", "D": "F"}.get(dtype.char, dtype.char))


def _target(spec: Any) -> Any:
    from clfuse.runtime.devices import selection

    if spec is None or (isinstance(spec, str) and spec == "cpu"):  # NumPy's name of where it works
        return selection.get_device()
    return selection.find(spec)


def call_on_device(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """What `function` makes, on the device that the argument ``device`` names.

    Raises DeviceError: there is none such; a ValueError, as NumPy's.
    """
    from clfuse.runtime.devices import selection

    target = _target(named.pop("device"))
    with selection.device(target):
        made = function(*args, **named)
    return move_to_device(made, target, None) if isinstance(made, Handle) else made

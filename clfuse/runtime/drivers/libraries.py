"""The libraries for devices that can be imported: CLBlast and VkFFT, of the extra ``gpu``."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from clfuse.errors import DeviceWarning, warn_user

__all__ = ["usable"]

MODULES: Final = {"clblast": "pyclblast", "vkfft": "pyvkfft.opencl"}
"""Name in `DeviceTraits.libraries` -> what has to be imported for it."""


@lru_cache(maxsize=1)
def usable() -> tuple[str, ...]:
    """The libraries that can be imported; one warning says of one that is there why it cannot."""
    found = []
    for name, module in MODULES.items():
        if find_spec(module.partition(".")[0]) is None:
            continue
        try:
            import_module(module)
        except (ImportError, OSError) as error:  # without its shared library
            warn_user(f"{name} is installed, but left aside: {error}", DeviceWarning)
        else:
            found.append(name)
    return tuple(found)

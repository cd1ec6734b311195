"""Drivers that a forked process cannot use, though nobody has opened a device of theirs.

PoCL makes the threads of its devices when these are listed. A forked process has none of them, and
would wait for ever.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["note", "spoilt"]

LIBRARIES: Final = {"Portable Computing Language": b"/libpocl"}
"""Platform -> what the name of its library begins with."""

spoilt: Final[set[str]] = set()
"""Platforms of which this process has no threads."""


def note() -> None:
    """Note what was loaded when this process was forked."""
    if "pyopencl" not in sys.modules:
        return
    from .loaded_pages import MAPS

    try:
        mapped = MAPS.read_bytes()
    except OSError:  # not Linux
        return
    spoilt.update(platform for platform, name in LIBRARIES.items() if name in mapped)

"""Imports that other threads have begun when the process is forked.

The lock of a module that is being imported stays locked in the forked process, where nobody goes on
with the import: who needs the module would wait for ever.
"""

from __future__ import annotations

import sys
import time
from typing import Final

__all__ = ["wait_for_others"]

PACKAGES: Final = ("clfuse", "pyopencl", "mako")
"""What is imported when it is first needed, in whatever thread."""

LONGEST_S: Final = 2.0
"""Seconds that imports are waited for; this thread may be in one itself."""

STEP_S: Final = 0.002


def _is_any_begun() -> bool:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES:
            spec = getattr(module, "__spec__", None)
            if getattr(spec, "_initializing", False):
                return True
    return False


def wait_for_others() -> None:
    """Wait until no module of ours, or of those that we import late, is half imported."""
    end = time.monotonic() + LONGEST_S
    while _is_any_begun() and time.monotonic() < end:
        time.sleep(STEP_S)

"""The frame of the user's program that a call came from, and warnings that name its line."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import numpy as np

__all__ = ["COMPILED", "user_frame", "user_stacklevel", "warnings_issued"]

OWN_FOLDERS: Final = tuple(
    os.path.dirname(os.path.abspath(str(path))) + os.sep
    for path in (np.__file__, __file__)
)
"""Frames in these are never the user's: NumPy's and clfuse's."""

COMPILED: Final = os.path.join("clfuse", "_core", "")
"""What files of the compiled part are named after."""

warnings_issued: Final = [0]
"""How many there were, for who remembers what a call did, and can only remember a silent one."""


def user_frame() -> tuple[Any, int]:
    """The first frame outside clfuse and NumPy, from the caller's caller up, and the `stacklevel`
    that names it where 1 is the caller's caller."""
    frame = sys._getframe(2)
    level = 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_FOLDERS):
        frame = frame.f_back
        level += 1
    return frame, level


def user_stacklevel() -> int:
    """The `stacklevel` with which a warning issued by the caller names the user's line."""
    warnings_issued[0] += 1
    return user_frame()[1]

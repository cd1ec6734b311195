"""The frame of the user's program that a call came from, and warnings that name its line."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np

__all__ = [
    "COMPILED", "counted", "passed_over", "user_frame", "user_stacklevel", "warnings_issued",
]  # fmt: skip

OWN_FOLDERS: Final = tuple(
    os.path.dirname(os.path.abspath(str(path))) + os.sep
    for path in (np.__file__, __file__)
)
"""Frames in these are never the user's: NumPy's and clfuse's."""

COMPILED: Final = os.path.join("clfuse", "_core", "")
"""What files of the compiled part are named after."""

warnings_issued: Final = [0]
"""How many there were, for who remembers what a call did, and can only remember a silent one."""


PASSED_OVER: Final = " (importlib._bootstrap)"
"""What the names of the files of functions that are `passed_over` end with. `warnings.warn` does
not count frames whose file has "importlib" and "_bootstrap" in its name."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def passed_over(function: _Function) -> _Function:
    """A function of ours that stands in the place of another, which warnings do not count: a
    package's ``warnings.warn(..., stacklevel=2)`` names the line that calls the package."""
    python = cast(types.FunctionType, function)
    python.__code__ = _passed(python.__code__)
    return function


@functools.cache
def _passed(code: types.CodeType) -> types.CodeType:
    return code.replace(co_filename=code.co_filename + PASSED_OVER)


def counted(frame: types.FrameType) -> bool:
    """Whether `stacklevel` counts a frame of ours."""
    return not frame.f_code.co_filename.endswith(PASSED_OVER)


def user_frame() -> tuple[Any, int]:
    """The first frame outside clfuse and NumPy, from the caller's caller up, and the `stacklevel`
    that names it where 1 is the caller's caller."""
    frame = sys._getframe(2)
    level = 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_FOLDERS):
        level += counted(frame)
        frame = frame.f_back
    return frame, level


def user_stacklevel() -> int:
    """The `stacklevel` with which a warning issued by the caller names the user's line."""
    warnings_issued[0] += 1
    return user_frame()[1]

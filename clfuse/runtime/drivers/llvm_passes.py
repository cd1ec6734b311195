"""A pass of LLVM in PoCL that ends the process, told not to.

PoCL 6 names LLVM's passes by text. So the one that combines instructions also checks, from LLVM 18
on, that a second run would change nothing; where it would, LLVM ends the process. That is so of one
kernel of ours in a thousand (its authors: the check is for tests). What the first run leaves are
instructions that it has moved to where they are used; it can be told to move none, which later
passes do.

Source: https://github.com/llvm/llvm-project/issues/77462
"""

from __future__ import annotations

import ctypes
import re
from typing import Final

from clfuse.process import locks

from .loaded_pages import MAPS

__all__ = ["move_nothing"]

CHECKED: Final = (18, 19)
"""The first and the last version of LLVM that was seen to take the option: others might end
the process because of that."""

OPTION: Final = b"-instcombine-code-sinking=false"

_LIBRARY: Final = re.compile(rb"(/\S*/libLLVM(?:-|\.so\.)(\d+)\S*)")
_told: Final[set[bytes]] = set()
_lock: Final = locks.make()


def move_nothing() -> None:
    """Set the option in each LLVM that the process has loaded, once: a second time is an error."""
    try:
        mapped = MAPS.read_bytes()
    except OSError:  # not Linux
        return
    with _lock:
        for path in _libraries(mapped) - _told:
            _told.add(path)
            _set_option(path)


def _libraries(mapped: bytes) -> set[bytes]:
    """The libraries of LLVM, of such versions, among what is mapped."""
    first, last = CHECKED
    return {path for path, version in _LIBRARY.findall(mapped) if first <= int(version) <= last}


def _set_option(path: bytes) -> None:
    arguments = (ctypes.c_char_p * 2)(b"clfuse", OPTION)
    ctypes.CDLL(path.decode()).LLVMParseCommandLineOptions(2, arguments, b"")

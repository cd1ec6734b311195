"""Pages of kernels that a driver has loaded as shared libraries, brought into memory.

PoCL loads a kernel from a file of its cache. A page of constants is mapped, and comes into memory
when it is first read. A vector load whose lanes are all masked off reads nothing, and brings
nothing; the processor takes a microcode assist of hundreds of cycles each time to find that out.
``x == y`` is such a load of ones where the comparison is true: of 1,000,000 elements, all of them
unequal, it took 17 ms instead of .2 (Zen 4, PoCL 3.1).
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Collection
from functools import cache
from typing import Any, Final

__all__ = ["bring_in"]

LOADED: Final = 1
"""``PT_LOAD``: a segment that is mapped from the file."""

READABLE: Final = 4
"""``PF_R``."""


class _Segment(ctypes.Structure):
    """``Elf64_Phdr``."""

    _fields_ = [
        ("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64), ("physical", ctypes.c_uint64),
        ("file_nbytes", ctypes.c_uint64), ("nbytes", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    ]  # fmt: skip


class _Object(ctypes.Structure):
    """The first members of ``struct dl_phdr_info``."""

    _fields_ = [
        ("base", ctypes.c_uint64), ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(_Segment)), ("count", ctypes.c_uint16),
    ]  # fmt: skip


_Visitor: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p
)


@cache
def _iterate() -> Any:
    """``dl_iterate_phdr``; None where there is none, or objects are of another layout."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    return getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)


def bring_in(kernels: Collection[str]) -> dict[str, set[bytes]]:
    """Read a byte of each page of the libraries that hold kernels of these names.

    Returns
    -------
    dict of str to set of bytes
        Of each kernel the paths of such libraries; several kernels may have one name.
    """
    found: dict[str, set[bytes]] = {name: set() for name in kernels}
    iterate = _iterate()
    if iterate is None:
        return found
    ends = {f"/{name}.so".encode(): name for name in kernels}

    def visit(info: Any, nbytes: int, data: Any) -> int:
        loaded = info.contents
        path = loaded.name or b""
        name = ends.get(path[path.rfind(b"/") :])
        if name is not None:
            found[name].add(path)
            for number in range(loaded.count):
                segment = loaded.segments[number]
                if segment.kind == LOADED and segment.flags & READABLE:
                    first = loaded.base + segment.address
                    for address in range(first, first + segment.file_nbytes, mmap.PAGESIZE):
                        ctypes.c_ubyte.from_address(address).value  # noqa: B018 (it is read)
        return 0

    iterate(_Visitor(visit), None)
    return found

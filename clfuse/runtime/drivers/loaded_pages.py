"""Pages of kernels that a driver has loaded as shared libraries, brought into memory.

PoCL loads a kernel from a file of its cache. A page of constants is mapped, and comes into memory
when it is first read. A vector load whose lanes are all masked off reads nothing, and brings
nothing; the processor takes a microcode assist of hundreds of cycles each time to find that out.
``x == y`` is such a load of ones where the comparison is true: of 1,000,000 elements, all of them
unequal, it took 17 ms instead of .2 (Zen 4, PoCL 3.1).
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

__all__ = ["bring_in"]

MAPS: Final = Path("/proc/self/maps")
"""What is mapped where, of Linux: a line for each mapping, with the path of its file at its end."""

MEMORY: Final = Path("/proc/self/mem")
"""The memory of this process. A library that another thread unloads meanwhile is an error there,
no crash."""

_MAPPING: Final = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) r")
"""First address, end, and that it can be read."""


def bring_in(kernels: Collection[str]) -> dict[str, set[bytes]]:
    """Read a byte of each page of the libraries that hold kernels of these names.

    ``dl_iterate_phdr`` would name them, too, but calls back under the loader's lock: for Python
    that is a deadlock with whoever imports a module, who waits for that lock with Python's own.

    Returns
    -------
    dict of str to set of bytes
        Of each kernel the paths of such libraries; several kernels may have one name. None are
        found where there is no such file, or a system lets nobody read it.
    """
    found: dict[str, set[bytes]] = {name: set() for name in kernels}
    try:
        maps = MAPS.read_bytes()
        memory = os.open(MEMORY, os.O_RDONLY)
    except OSError:
        return found
    try:
        for name, paths in found.items():
            for address, end, path in _mappings(maps, f"/{name}.so\n".encode()):
                paths.add(path)
                _touch(memory, address, end)
    finally:
        os.close(memory)
    return found


def _mappings(maps: bytes, ending: bytes) -> list[tuple[int, int, bytes]]:
    """(first address, end, path) of what can be read of files whose names end so."""
    found: list[tuple[int, int, bytes]] = []
    place = maps.find(ending)
    while place >= 0:
        line = maps[maps.rfind(b"\n", 0, place) + 1 : place + len(ending) - 1]
        mapping = _MAPPING.match(line)
        if mapping:
            path = line[line.index(b"/") :]
            found.append((int(mapping[1], 16), int(mapping[2], 16), path))
        place = maps.find(ending, place + 1)
    return found


def _touch(memory: int, address: int, end: int) -> None:
    try:
        for page in range(address, end, mmap.PAGESIZE):
            os.pread(memory, 1, page)
    except OSError:
        return  # unloaded meanwhile

"""What kernels do outside the memory that a simulated device has given them, as an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clfuse.errors import DeviceError
from clfuse.runtime.guard_memory import Access, Arena, Guarded, arena, distance
from clfuse.runtime.simulated_memory import guarded

__all__ = ["MemoryWatch"]

FAR: Final = 1 << 30
"""An access that is as many bytes away from every block was meant for none of them."""

_DONE: Final = {True: "writes", False: "reads", None: "reads or writes"}


class MemoryWatch:
    """Watches launches one after the other; one that is held back is watched with the next."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._blocks: dict[int, tuple[str, Guarded]] = {}

    def begin(self, name: str, arguments: Mapping[int, Any]) -> None:
        """A kernel is about to be launched.

        Parameters
        ----------
        name : str
            The kernel's.
        arguments : mapping
            Number -> buffer, or what else it takes.
        """
        memory = arena()
        if memory is None:
            return
        self._names.append(name)
        for number, argument in arguments.items():
            block = guarded(argument)
            if block is not None:
                self._blocks[block.address] = f"argument {number}", block
        memory.watch(" or ".join(self._names))

    def end(self, device_name: str) -> None:
        """All that was launched is done.

        Raises
        ------
        DeviceError
            A kernel has read or written outside its arrays.
        """
        memory = arena()
        if memory is None:
            return
        names = " or ".join(dict.fromkeys(self._names))
        blocks = self._blocks
        self._names, self._blocks = [], {}
        found = memory.unwatch()
        problem = _of_accesses(found, blocks, memory) if found else _of_slack(blocks)
        if problem:
            raise DeviceError(
                f"{names} {problem}, on {device_name}; the device itself would give anything, or be"
                " lost: an index of this kernel leaves its array"
            )


def _of_accesses(
    found: list[Access], blocks: Mapping[int, tuple[str, Guarded]], memory: Arena
) -> str:
    """What the first of some accesses was."""
    first = found[0]
    what = _DONE[first.wrote]
    try:
        start, end = memory.nearest(first.address)
    except LookupError:
        return f"{what} at {first.address:#x}, where no array is"
    away = distance(first.address, start, end)
    if away > FAR:
        return f"{what} at {first.address:#x}, {away:,} bytes away from every array"
    name, block = blocks.get(start, ("an array that is not its own", None))
    if first.address < start:
        return f"{what} {away:,} bytes before the start of {name}"
    used = end - start if block is None else block.used
    return f"{what} at byte {first.address - start:,} of {name}, which has {used:,} bytes"


def _of_slack(blocks: Mapping[int, tuple[str, Guarded]]) -> str:
    """What was written beside arrays, in their own pages; empty where nothing was."""
    for name, block in blocks.values():
        place = block.overwritten()
        if place is not None and place < 0:
            return f"writes {-place:,} bytes before the start of {name}"
        if place is not None:
            return f"writes at byte {place:,} of {name}, which has {block.used:,} bytes"
    return ""

"""Errors for what kernels do outside of the memory that a simulated device has given them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clfuse.dataclass import frozen
from clfuse.errors import DeviceError

from .guard_memory import Access, Arena, Guarded, arena, distance, guarded

__all__ = ["MemoryWatch"]

FAR: Final = 1 << 30
"""An access that is as many bytes away from every block was meant for none of them."""

_DONE: Final = {True: "writes", False: "reads", None: "reads or writes"}


@frozen
class _Argument:
    """A kernel's argument, and who had its memory then (`Guarded.turn`)."""

    name: str
    block: Guarded
    turn: int


class MemoryWatch:
    """Watches launches one after the other; one that is held back is watched with the next."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._blocks: dict[int, _Argument] = {}

    def begin(self, name: str, arguments: Mapping[int, Any]) -> None:
        """A kernel is about to be launched.

        name: the kernel's.
        arguments: number -> buffer, or what else it takes.
        """
        memory = arena()
        if memory is None:
            return
        self._names.append(name)
        for number, argument in arguments.items():
            block = guarded(argument)
            if block is not None:
                self._blocks[block.address] = _Argument(f"argument {number}", block, block.turn)
        memory.watch(" or ".join(self._names))

    def end(self, device_name: str) -> None:
        """All that was launched is done.

        Raises DeviceError: a kernel has read or written outside its arrays.
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


def _of_accesses(found: list[Access], blocks: Mapping[int, _Argument], memory: Arena) -> str:
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
    argument = blocks.get(start)
    name, used = "an array that is not its own", end - start
    if argument is not None:
        name, used = argument.name, argument.block.used
    if first.address < start:
        return f"{what} {away:,} bytes before the start of {name}"
    return f"{what} at byte {first.address - start:,} of {name}, which has {used:,} bytes"


def _of_slack(blocks: Mapping[int, _Argument]) -> str:
    """What was written beside arrays, in their own pages; empty where nothing was."""
    for argument in blocks.values():
        name, block = argument.name, argument.block
        if block.turn != argument.turn:  # a launch was held back, and it has another owner now
            continue
        place = block.overwritten()
        if place is not None and place < 0:
            return f"writes {-place:,} bytes before the start of {name}"
        if place is not None:
            return f"writes at byte {place:,} of {name}, which has {block.used:,} bytes"
    return ""

"""Spilling: idle arrays move from a device's memory to the host before an allocation fails.

An array is idle when only the nodes that are in its memory hold its buffer: what is being computed,
a view that the host has of it, and a transfer that is under way hold it, too. Its nodes get a
buffer on the host with the same contents (`buffers.HostBuffer`), and the memory goes back to the
pool with the old one. A kernel that needs the array brings a copy to the device; that copy is the
first to go when memory is short again, for the host still has the array.

Which arrays there are is looked up when memory is short: the objects that Python's collector knows
are gone through (some milliseconds), so that making an array costs nothing.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.counters import counters
from clfuse.dataclass import mutable
from clfuse.ir.nodes import Node, Storage

from .blocks import Block, Buffer
from .buffers import HostBuffer, download

if TYPE_CHECKING:
    import numpy.typing as npt

    from clfuse.runtime.context.pool import Pool

__all__ = ["Spilled", "spill"]

SPILLED_SHARE: Final = 16
"""A part of the limit, one in so many, that is spilled together at least: to look for idle arrays
takes as long as to copy some megabytes."""

_SLOTS: Final[dict[str, Any]] = {name: Node.__dict__[name].__get__ for name in ("buffer", "inputs")}
_put: Final[Any] = Node.__dict__["buffer"].__set__
_node_in: Final[Any] = Storage.__dict__["node"].__get__


class Spilled:
    """What a buffer on the host owns whose contents were spilled: a mark, without contents."""

    __slots__ = ()


@mutable
class _Idle:
    """A buffer that only nodes hold, and these."""

    buffer: Buffer
    nodes: list[Node]

    def used(self) -> int:
        """When it was used last."""
        return getattr(self.buffer, "used", 0)


def spill(pool: Pool, nbytes: int) -> int:
    """Give back the memory of idle arrays of a pool, those first that were not used for longest.

    nbytes: what the allocation needs.

    Returns
    -------
    int
        The bytes that were given back; 0 where no arrays are idle.
    """
    missing = nbytes + pool.used_nbytes - pool.limit_nbytes
    # The driver may refuse what the limit allows.
    wanted = max(missing if missing > 0 else nbytes, pool.limit_nbytes // SPILLED_SHARE)
    found = _idle(pool)
    freed = _drop_copies(found, wanted)
    if freed < wanted:
        freed += _move(found, wanted - freed)
    return freed


def _idle(pool: Pool) -> list[_Idle]:
    """The buffers of a pool's device that nodes hold, the one that was used last at the end."""
    if _COUNTS[0] < 0:
        return []
    device = pool.device
    by_buffer: dict[int, _Idle] = {}
    for node in _nodes():
        buffer = _value(node, "buffer")
        # What a trace has in a buffer's place is none.
        if not isinstance(buffer, Buffer) or buffer.device is not device:
            continue
        idle = by_buffer.get(id(buffer))
        if idle is None:
            by_buffer[id(buffer)] = _Idle(buffer, [node])
        else:
            idle.nodes.append(node)
    return sorted(by_buffer.values(), key=_Idle.used)  # no names for buffers: see `_is_idle`


def _nodes() -> list[Node]:
    """The nodes of all arrays, and of what these are recorded to be.

    The collector does not know all nodes (what is compiled makes some that it need not look at),
    but it knows the cells of the arrays. Who holds a node that is not found has one reference to
    its buffer more than there are nodes.
    """
    kinds = {Node, *_subclasses(Node)}
    stack: list[Node] = []
    for each in gc.get_objects():
        if type(each) is Storage:
            with suppress(AttributeError):  # half made
                stack.append(_node_in(each))
        elif type(each) in kinds:
            stack.append(each)
    del each
    found = dict.fromkeys(stack)
    while stack:
        node = stack.pop()
        if _value(node, "buffer") is not None:
            continue
        for below in _value(node, "inputs") or ():
            if below not in found:
                found[below] = None
                stack.append(below)
    return list(found)


def _value(node: Node, name: str) -> Any:
    """An attribute as it lies there: late nodes would find out what they are."""
    try:
        return _SLOTS[name](node)
    except AttributeError:
        return None


def _subclasses(kind: type) -> Iterator[type]:
    below: type
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _is_idle(idle: _Idle) -> bool:
    """Whether only its nodes have the buffer."""
    return sys.getrefcount(idle.buffer) == _COUNTS[0] + len(idle.nodes)


def _drop_copies(found: list[_Idle], wanted: int) -> int:
    """Let go of copies on the device of arrays that the host has."""
    freed = 0
    for idle in found:
        if freed >= wanted:
            break
        buffer = idle.buffer
        if type(buffer) is HostBuffer and buffer.copy is not None and buffer.memory is None:
            size = buffer.copy.nbytes
            del buffer  # references are counted
            if _is_idle(idle) and sys.getrefcount(idle.buffer.copy) == _COUNTS[1]:  # type: ignore
                idle.buffer.copy = None  # type: ignore[attr-defined]
                freed += size
    return freed


def _move(found: list[_Idle], wanted: int) -> int:
    """Have the host hold what the device holds."""
    freed = 0
    for idle in found:
        if freed >= wanted:
            break
        size = idle.buffer.nbytes
        if type(idle.buffer) is not Buffer or not size or idle.buffer.exported:
            continue
        if type(idle.buffer._owned) is not Block or not _is_idle(idle):
            continue
        first = idle.nodes[0]
        try:
            array = download(idle.buffer, first.dtype, first.shape)
        except MemoryError:
            break  # nor has the host the memory for it: it stays where it is
        if not _is_idle(idle):
            continue  # another thread has come, and may write to it
        made = _on_host(idle.buffer, array)
        for node in idle.nodes:
            # A thread that reads it now finds the one or the other: both are right.
            if _value(node, "buffer") is not idle.buffer:
                continue
            if node.dtype == first.dtype and node.shape == first.shape:
                _put(node, made)
            else:
                seen = np.ndarray(node.shape, node.dtype, array).copy()
                _put(node, _on_host(idle.buffer, seen))
        counters["spills"] += 1
        counters["bytes_spilled"] += size
        idle.nodes = []
        idle.buffer = made
        freed += size
    return freed


def _on_host(buffer: Buffer, array: npt.NDArray[Any]) -> HostBuffer:
    made = HostBuffer(buffer.device, array)
    made._owned = Spilled()
    made.used = getattr(buffer, "used", 0)
    return made


def _count_references() -> tuple[int, int]:
    """The references that `_is_idle` sees to a buffer that no node has, and `_drop_copies` to a
    copy that nothing else has.

    Without exact counts (no GIL) they always count as shared.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1

    class Copied:
        copy: Any = None

    idle = _Idle(Copied(), [])  # type: ignore[arg-type]
    idle.buffer.copy = object()  # type: ignore[attr-defined]
    one = sys.getrefcount(idle.buffer)
    return one, sys.getrefcount(idle.buffer.copy)  # type: ignore[attr-defined]


_COUNTS: Final = _count_references()

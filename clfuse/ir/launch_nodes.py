"""Nodes for launches of user kernels: opaque to the planner but for which arrays they touch.

A launch is one LAUNCH node and a PART node for every array that it writes:

    LAUNCH   inputs: the arrays (base buffers) and scalars; param: `Spec`
    PART     inputs: (launch,); param: the number of the array; the whole base buffer afterwards

A view is passed as its base buffer with offset and strides, so a launch sees and changes what the
view shares. As with every write, the storage cell of a written array gets the PART as its new node,
and nodes that read the old one still hold it: which launch comes first is decided by bytes. The
planner lets a PART lie in the bytes of the old array where nothing reads those later, else in a
copy.

A launch happens once: an evaluation of one of its arrays computes all that are held
(`add_siblings`). `user_kernels.opencl.record_launch` appends equal launches over other views of the
same buffers to the one before (`Record`); reading `param` closes the record.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.dataclass import frozen

from .nodes import Kind, Node, finding, structural

INT8: Final = np.dtype(np.int8)

Writer = Callable[[Any], tuple[str, tuple[int, ...], tuple[int, ...] | None]]
"""Device traits -> OpenCL C, global and local size; compared by itself, so one a kernel."""


@frozen
class ArrayParameter:
    """A pointer, and where `strided` one ``long`` a dimension after it: strides in elements.

    The pointer is to the view's first element (that of index 0 in every dimension). `slot` is the
    number of the base buffer; `mode` is ``r``, ``rw``, or ``w``: every element of the view is
    written, and none read.
    """

    slot: int
    mode: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    strided: bool


@frozen
class ScalarParameter:
    """A scalar, passed as `dtype`; `place` among the scalars."""

    place: int
    dtype: np.dtype


@frozen
class LocalParameter:
    """A ``__local`` pointer to so many bytes, each group's own."""

    nbytes: int


Parameter = ArrayParameter | ScalarParameter | LocalParameter


@frozen
class Slot:
    """A base buffer: `part` is the number of the PART if it is written, else -1.

    `old` is the place of its old contents among the node's inputs; -1 where they are not needed.
    """

    old: int
    part: int
    nbytes: int


@frozen
class Round:
    """Calls that happen side by side, as one launch.

    `offsets` has an entry an array parameter, in elements: a number; (first, step) where every call
    is one step further; or bytes, int64 numbers, one a call. `scalars` has an entry a scalar
    parameter: None for the node's own, else bytes of the parameter's dtype, one a call.
    """

    count: int
    offsets: tuple[int | tuple[int, int] | bytes, ...]
    scalars: tuple[bytes | None, ...]


@frozen
class Spec:
    """What a LAUNCH is, as plain data: equal specs on equal inputs are one launch.

    `source` has a kernel `name` with `parameters`; or is called with the device's traits for text
    and sizes. Inputs of the node are the slots' old contents, then the scalars.
    """

    source: str | Writer
    name: str
    parameters: tuple[Parameter, ...]
    slots: tuple[Slot, ...]
    scalars: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    rounds: tuple[Round, ...]
    reason: str

    def text(self, traits: Any) -> tuple[str, tuple[int, ...], tuple[int, ...] | None]:
        """OpenCL C, global and local size of one call."""
        if isinstance(self.source, str):
            return self.source, self.global_size, self.local_size
        return self.source(traits)


def ends_of(column: int | tuple[int, int] | bytes, count: int) -> tuple[int, int]:
    """Smallest and largest of a parameter's offsets in a round.

    >>> ends_of(3, 1), ends_of((10, -2), 4)
    ((3, 3), (4, 10))
    """
    if isinstance(column, int):
        return column, column
    if isinstance(column, bytes):
        numbers = np.frombuffer(column, np.int64)
        return int(numbers.min()), int(numbers.max())
    first, step = column
    last = first + step * (count - 1)
    return min(first, last), max(first, last)


class Part(Node):
    """A base buffer after a launch."""

    __slots__ = ("__weakref__",)


class Launch(Node):
    """A launch; `param` is its `Spec`, made by `close` when it is first read.

    parts: weak references to its PARTs.
    close: makes the spec; None once it is made.
    """

    __slots__ = ("__weakref__", "_spec", "close", "parts")
    close: Callable[[], Spec] | None
    parts: list[weakref.ref[Part]]

    @property
    def param(self) -> Spec:
        """What was launched; nothing can be appended any more."""
        if self.close is not None:
            with finding:
                if self.close is not None:  # another thread may have been faster
                    self._spec = self.close()
                    self.close = None
        return self._spec

    @param.setter
    def param(self, spec: Spec) -> None:
        self._spec = spec


_several: Final[weakref.WeakSet[Launch]] = weakref.WeakSet()
"""Launches of several parts that were not run yet."""


def launch(
    name: str, inputs: tuple[Node, ...], written: Sequence[Node], close: Callable[[], Spec]
) -> tuple[Launch, list[Part]]:
    """A LAUNCH on `inputs`, and a PART for each of the base arrays `written`."""
    made = Launch(structural(Kind.LAUNCH, name, INT8), inputs, (), INT8)
    made.close = close
    parts = []
    for number, old in enumerate(written):
        op = structural(Kind.PART, f"part of {name}", old.dtype)
        parts.append(Part(op, (made,), old.shape, old.dtype, number))
    made.parts = [weakref.ref(part) for part in parts]
    if len(parts) > 1:
        _several.add(made)
    return made, parts


def add_siblings(stack: list[Node], known: dict[Node, int]) -> bool:
    """Append PARTs that are held elsewhere, not in `known`, of launches that are in it; whether
    there are any."""
    if _several:
        for made in list(_several):
            if made in known:
                parts = [reference() for reference in made.parts]
                stack += [part for part in parts if part is not None and part not in known]
    return bool(stack)

"""Traces of functions: which storage cells a function reads and writes, on placeholders.

A trace runs a function on the caller's own arrays without touching them: in the tracing thread,
reading a cell that existed before gives a placeholder, and writing one is noted in the trace alone.
So views, arguments that are the same array, in-place writes and arrays that the function takes from
its surroundings need no rules of their own: they all are cells.

Recording reads ``cell.node`` in many places and has no time for a test there. During a trace, and
only then, the attribute is therefore a property of the class.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.errors import JitError, user_place
from clfuse.process import locks

from .nodes import Kind, Node, Storage, structural

__all__ = [
    "Drawn",
    "GivenAway",
    "Placeholder",
    "Trace",
    "active",
    "require_bytes",
    "tracing",
    "without_traced",
]


Calculation = Callable[[Sequence[Any]], Any]
"""All numbers of a call so far -> the next one."""

_alive: Final = [0]
"""How many leaves without bytes there are: none, as a rule, and then they are not looked for."""


class NoBytes:
    """Lies in a leaf in place of a buffer: reading or writing it raises an error that says why.

    `is_counted` is set where it is one of `_alive`. No call comes between the two: at one an
    interrupt might end the constructor, and what was not counted would be taken off all the same.
    """

    __slots__ = ("is_counted",)
    is_counted: bool
    device: Any
    exported = False
    seen_by_host = True  # so that the bytes are asked for

    def error(self) -> JitError:
        """Why there are no bytes."""
        raise NotImplementedError

    @property
    def mem(self) -> Any:
        """What a kernel would take."""
        raise self.error()

    nbytes = mem

    # A default, because the module's globals may be gone when the interpreter ends.
    def __del__(self, alive: list[int] = _alive) -> None:
        # Called again where an interrupt ends it.
        try:
            del self.is_counted
        except AttributeError:
            return  # half made: an interrupt has ended the constructor
        alive[0] -= 1


_core: Final = loading.load()
if _core is not None:
    NoBytes.__del__ = _core.undisturbed(NoBytes.__del__)  # type: ignore[method-assign]


class GivenAway(NoBytes):
    """Stands for the bytes of an array that was donated to a function."""

    __slots__ = ("device", "name")

    def __init__(self, name: str, device: Any) -> None:
        self.name = name
        self.device = device
        _alive[0] += 1
        self.is_counted = True

    def error(self) -> JitError:
        """Why there are no bytes."""
        return JitError(
            f"an array that was donated to {self.name} is used at {user_place()}; its memory may "
            "hold results now: use a copy, or do not name it in jit(..., donate=...)"
        )


class Placeholder(NoBytes):
    """Stands in a leaf for the bytes that a cell will have when the trace is replayed.

    It does not hold its trace, which holds it: wherever a trace ends, no cycle is left to the
    collector.
    """

    __slots__ = ("device", "name", "number", "trace")

    def __init__(self, trace: Trace, number: int) -> None:
        self.trace = trace.reference
        self.name = trace.name
        self.device = trace.device
        self.number = number
        _alive[0] += 1
        self.is_counted = True

    def error(self) -> JitError:
        """Why there are no bytes."""
        trace = self.trace()
        return _seen_outside(self.name) if trace is None else trace.observed()


def _seen_outside(name: str) -> JitError:
    return JitError(
        f"an array made while clfuse.jit traced {name} was looked at outside of it, at "
        f"{user_place()}; such an array has no value: return it from the function instead of "
        "storing it"
    )


class Drawn(Placeholder):
    """Stands for the key (`offset` None) or a position of random draws, a scalar of 64 bits.

    `number` is that of the generator in the trace, `offset` counts its draws.
    """

    __slots__ = ("offset",)

    def __init__(self, trace: Trace, number: int, offset: int | None) -> None:
        super().__init__(trace, number)
        self.offset = offset


class Trace:
    """One run of a function for its graph.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    device : runtime.devices.device.Device
        Where the arrays are said to be.
    cells : sequence of Storage
        The arguments' cells, numbered first.

    cells (list of Storage): every cell from before the trace that it read or wrote; the index is
        the cell's number.
    placeholders (list of Node): what reading each gave.
    values (dict): cell -> the node it has in the trace; another than its placeholder where it was
        written.
    generators (dict): bit generator -> its number, how often it was drawn from, and the node of its
        key.
    indices (list of (int, tuple, int)): cells whose values select: number, views of it in order,
        extent that they must lie in.
    numbers (int): how many Python numbers the arguments have.
    calculations (list of callable): what was computed of them: each step gets all numbers so far,
        and gives the next.
    looked_at (set of int): numbers among the arguments whose value the function has read.
    traced_in_vain (set of int): those that were taken for arrays: the function has to be traced
        again, with their values.
    error (JitError or None): the first refusal. The function may have caught it, but took a way
        that no replay would.
    """

    def __init__(self, name: str, device: Any, cells: Sequence[Storage]) -> None:
        self.reference = weakref.ref(self)
        self.name = name
        self.device = device
        self.thread = threading.get_ident()
        self.over = False
        self.error: JitError | None = None
        self.cells: list[Storage] = []
        self.placeholders: list[Node] = []
        self.values: dict[Storage, Node] = {}
        self.generators: dict[Any, tuple[int, int, Node]] = {}
        self.indices: list[tuple[int, tuple[Any, ...], int]] = []
        self.numbers = 0
        self.calculations: list[Calculation] = []
        self.looked_at: set[int] = set()
        self.traced_in_vain: set[int] = set()
        self._own: set[Storage] = set()
        for cell in cells:
            self._meet(cell)

    def read(self, cell: Storage) -> Node:
        """What the cell holds in the trace."""
        if cell in self._own:
            return _get_slot(cell)
        node = self.values.get(cell)
        return self._meet(cell) if node is None else node

    def is_own(self, cell: Storage) -> bool:
        """Whether the cell was made in the trace."""
        return cell in self._own

    def write(self, cell: Storage, node: Node) -> None:
        """Let the cell hold `node` in the trace."""
        if cell not in self._own:
            if cell in self.values:
                self.values[cell] = node
                return
            if _has_node(cell):
                self._meet(cell)
                self.values[cell] = node
                return
            self._own.add(cell)
        _set_slot(cell, node)

    def _meet(self, cell: Storage) -> Node:
        stored = _get_slot(cell)
        node = Node(structural(Kind.LEAF, "leaf", stored.dtype), (), stored.shape, stored.dtype)
        node.buffer = Placeholder(self, len(self.cells))
        self.cells.append(cell)
        self.placeholders.append(node)
        self.values[cell] = node
        return node

    def draw(self, generator: Any) -> tuple[Node, Node]:
        """Key and position of one draw, as nodes; a replay takes as many positions as the trace."""
        number, count, key = self.generators.get(generator, (len(self.generators), 0, None))
        if key is None:
            key = self._drawn(number, None)
        self.generators[generator] = number, count + 1, key
        return key, self._drawn(number, count)

    def _drawn(self, number: int, offset: int | None) -> Node:
        dtype = np.dtype(np.int64)
        node = Node(structural(Kind.LEAF, "leaf", dtype), (), (), dtype)
        node.buffer = Drawn(self, number, offset)
        return node

    def written(self) -> dict[int, Node]:
        """Number of every cell that the function wrote -> its last value."""
        return {
            number: self.values[cell]
            for number, cell in enumerate(self.cells)
            if self.values[cell] is not self.placeholders[number]
        }

    def forget(self) -> None:
        """Let go of everything that was traced."""
        self.error = None  # it holds the frames that hold the trace
        self.cells = []
        self.placeholders = []
        self.values = {}
        self.generators = {}
        self._own = set()

    def refused(self, what: str, instead: str) -> JitError:
        """The error for something that a replay could not do, at the user's line."""
        error = JitError(
            f"{what}, at {user_place()}, while clfuse.jit traces {self.name}; {instead}"
        )
        if self.error is None:
            self.error = error
        return error

    def observed(self) -> JitError:
        """The error for looking at a value that is not known yet."""
        if self.over or self.thread != threading.get_ident():
            return _seen_outside(self.name)
        return self.refused(
            "a value is looked at",
            "it is not known then, and would be another one at the next call: choose with "
            "np.where instead of `if`, return the value, pass what decides as a Python number, or "
            "leave this line outside of the function",
        )


class _State(threading.local):
    trace: Trace | None = None


_state: Final = _State()
_slot: Final[Any] = Storage.__dict__["node"]
_lock: Final = locks.make()
_running: Final[list[Trace]] = []
"""The traces of all threads; those that are over may be among them (`_follow`)."""

tracers: Final = [0]
"""How many threads trace now; after an interrupt one too many, until `active` is asked there."""


def _get_slot(cell: Storage) -> Node:
    return _slot.__get__(cell)  # type: ignore[no-any-return]


def _set_slot(cell: Storage, node: Node) -> None:
    _slot.__set__(cell, node)


def _has_node(cell: Storage) -> bool:
    try:
        _get_slot(cell)
    except AttributeError:  # being made
        return False
    return True


def _read(cell: Storage) -> Node:
    trace = _state.trace
    return _get_slot(cell) if trace is None or trace.over else trace.read(cell)


def _write(cell: Storage, node: Node) -> None:
    trace = _state.trace
    if trace is None or trace.over:
        _set_slot(cell, node)
    else:
        trace.write(cell, node)


def active() -> Trace | None:
    """The trace of this thread, if it is tracing."""
    if not tracers[0]:
        return None
    trace = _state.trace
    if trace is None or not trace.over:
        return trace
    _follow()  # an interrupt has ended `tracing` before it did
    _state.trace = None
    return None


def _follow(more: Sequence[Trace] = ()) -> None:
    """Have the attribute of the class and `tracers` be right for the traces that run, and `more`.

    An interrupt may end this anywhere: the next call makes up for it.
    """
    with _lock:
        _running[:] = [trace for trace in (*_running, *more) if not trace.over]
        shown = property(_read, _write) if _running else _slot
        setattr(Storage, "node", shown)  # noqa: B010 (mypy: a slot)
        tracers[0] = len(_running)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Show what this thread does with storage cells to `trace`, for the length of a block.

    An interrupt may come before this notices that the block has ended. Whoever must be sure sets
    `Trace.over` by itself: nothing is shown to a trace that is over.
    """
    try:
        _follow([trace])
        _state.trace = trace
        yield
    finally:
        trace.over = True
        _follow()
        if _state.trace is trace:
            _state.trace = None


def require_bytes(buffers: Sequence[Any]) -> None:
    """Raise JitError where one of these is no buffer: a trace's placeholder, or given away."""
    for buffer in buffers:
        if isinstance(buffer, NoBytes):
            raise buffer.error()


def without_traced(roots: Sequence[Node]) -> list[Node]:
    """Those of `roots` that do not depend on a placeholder: what evaluating everything may do."""
    if not _alive[0]:
        return list(roots)
    traced: dict[Node, bool] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in traced:
            continue
        if node.buffer is not None or not node.inputs:
            traced[node] = isinstance(node.buffer, NoBytes)
            continue
        unknown = [operand for operand in node.inputs if operand not in traced]
        if unknown:
            stack.append(node)
            stack += unknown
        else:
            traced[node] = any(traced[operand] for operand in node.inputs)
    return [root for root in roots if not traced[root]]

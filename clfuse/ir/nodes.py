"""Nodes of the recorded program, and the storage cells that arrays hold.

A node is one array-valued operation. Its value never changes. Equal nodes are merged when a plan
is made (value numbering in `schedule.graph`), not while recording: an interning table with weak
values costs as much as the rest of recording together, and the plan needs the numbers anyway.

After evaluation a node that was stored carries its `buffer` and forgets its inputs: it has become a
leaf, whatever its operation was.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final

import numpy as np

from clfuse.counters import counters
from clfuse.events import recorders
from clfuse.ops.table import UFUNCS, Ufunc
from clfuse.process import locks


class Kind(IntEnum):
    """What an operation is to the planner."""

    LEAF = 0  # bytes in a device buffer, C-contiguous
    CONSTANT = 1  # one scalar, a kernel argument; param: NumPy scalar
    IOTA = 2  # 0, 1, 2, ... as int64 in C order
    MAP = 3  # element by element; inputs broadcast
    VIEW = 4  # element offset + sum(index * stride) of the C order; param: (offset, strides)
    REDUCE = 5  # param: axes, ascending
    ARGREDUCE = 6  # param: axes; position in C order of the reduced axes, int64
    UPDATE = (
        7  # inputs (old, value): old, with value at offset + sum(index * stride); param as in VIEW
    )
    CONCATENATE = 8  # param: axis
    LIBRARY = (
        9  # a host library's or a kernel library's call on stored inputs; param: its arguments
    )
    GATHER = 10  # inputs (source, position): element position + offset + sum(index * stride) of the
    # source's C order; position broadcasts; param as in VIEW
    SCAN = 11  # every partial result of a fold along one axis; param: axes, that one alone
    COUNTS = 12  # sums of the pieces of a vector of zeros and ones; param: their length
    COMPACT = 13  # inputs (mask, value, starts): what the mask selects of value; param as COUNTS
    EXPAND = 14  # inputs (mask, other, starts, packed): packed where mask is true; param as COUNTS
    LAUNCH = 15  # a user kernel on base buffers and scalars; param: `launch_nodes.Spec`
    PART = 16  # inputs (launch,): an array that a launch has written; param: its number there
    SUSPENDED = 17  # what the rest of a plan that ended early computes; param: `resume.Rest`


TRANSFORM: Final = "transform"
"""The library operation that `functions.fft.transforms` records where VkFFT is at hand: its operand
has the dtype that VkFFT takes and lies in C order. On the host it is what ``fourier`` is
(`runtime.host.numerics`)."""

TABLE: Final = "table"
"""The library call that fills an array with scalars of the program, which are its inputs, or with
numbers of the program's structure, which are its param, as bytes: an upload."""


ONCE: Final = frozenset(["at"])
"""Library calls that change their first operand, and change it again when they are called again: on
a device with memory of its own they never do so in place (`clfuse.engine.resume`)."""


class Op:
    """What a node computes, without its inputs; one object for equal contents, so `is` compares.

    row: of MAP: the op table's row, or a function that a user wrote.
    host: of MAP: NumPy's function for it, None where there is none; not set before `interpret` has
        asked.
    plain (Op): itself, or what a `loud` one computes: plans are made of plain ones, but for library
        calls.
    called (str): what NumPy names in its warnings.
    """

    __slots__ = (
        "called", "dtype", "host", "input_dtypes", "kind", "name", "plain", "row", "weight",
    )  # fmt: skip
    host: Callable[..., Any] | None
    row: Any

    def __init__(
        self,
        kind: Kind,
        name: str,
        row: Ufunc | None = None,
        input_dtypes: tuple[np.dtype, ...] = (),
        dtype: np.dtype | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.row = row
        self.input_dtypes = input_dtypes
        self.dtype = dtype
        self.weight = 1.0 if row is None else row.weight
        self.plain = self
        self.called = name

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.input_dtypes))}) -> {self.dtype}"


@cache
def loop(name: str, input_dtypes: tuple[np.dtype, ...], dtype: np.dtype) -> Op:
    """The element-wise loop of the op-table row `name` for these dtypes."""
    return Op(Kind.MAP, name, UFUNCS[name], input_dtypes, dtype)


@cache
def loud(plain: Op, called: str) -> Op:
    """The same operation, called by the user where floating-point errors are warned of.

    What clfuse composes of operations by itself must not warn: NumPy composes otherwise.
    """
    made = Op(plain.kind, plain.name, plain.row, plain.input_dtypes, plain.dtype)
    made.plain = plain
    made.called = called
    return made


@cache
def cast_loop(source: np.dtype, target: np.dtype) -> Op:
    """Conversion of every element, by the rules of C."""
    return Op(Kind.MAP, "cast", None, (source,), target)


@cache
def bitcast_loop(source: np.dtype, target: np.dtype) -> Op:
    """The same bytes seen as a dtype of the same size."""
    return Op(Kind.MAP, "bitcast", None, (source,), target)


@cache
def reduction(kind: Kind, name: str, operand: np.dtype, dtype: np.dtype) -> Op:
    """A reduction or a scan that accumulates in `dtype` (ARGREDUCE: that compares `operand`)."""
    return Op(kind, name, None, (operand,), dtype)


@cache
def structural(kind: Kind, name: str, dtype: np.dtype) -> Op:
    """VIEW, UPDATE, CONCATENATE, IOTA, CONSTANT, LEAF, LIBRARY and GATHER operations of a dtype."""
    return Op(kind, name, None, (), dtype)


class Node:
    """One array-valued operation; immutable in value.

    op (Op)
    inputs (tuple of Node)
    shape (tuple of int)
    dtype (numpy.dtype)
    param (hashable): what `Kind` says; for a constant the NumPy scalar, which is never compared.
    buffer (runtime.memory.blocks.Buffer or None): the bytes, C-contiguous, once they exist.
    computed (bool): an earlier evaluation computed this value without storing it: the next one
        stores it.
    measured: smallest and largest element of an integer array that was looked at (`value_ranges`);
        unset until then, because setting it would cost every node time.
    tally: of a mask that selected something: how many elements it selects. Not set otherwise.
    kernel: the kernel in Python whose call has this value, for `explain`. Not set otherwise.
    line: the statement that has recorded it, as who reports numbers them (`events.recorders`). Not
        set otherwise.
    """

    __slots__ = (
        "buffer",
        "computed",
        "dtype",
        "inputs",
        "kernel",
        "line",
        "measured",
        "op",
        "param",
        "shape",
        "tally",
    )
    measured: tuple[int, int]
    tally: Any
    kernel: str
    line: int

    def __init__(
        self,
        op: Op,
        inputs: tuple[Node, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
        param: Any = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.shape = shape
        self.dtype = dtype
        self.param = param
        self.buffer: Any = None
        self.computed = False

    def place(self) -> Any:
        """What a write of this node is in `operations`: its place in the array, or that it is all
        of it."""
        return self.param if self.op.kind is Kind.UPDATE else Storage

    def __repr__(self) -> str:
        state = "stored" if self.buffer is not None else self.op.name
        return f"<Node {state} {self.dtype} {self.shape}>"


finding: Final = locks.make()
"""Held while a thread finds what late nodes are. One lock for all, as such a node may depend on
others of every kind. A thread that holds it takes no other lock that it does not hold already:
evaluations (`engine.evaluate.lock`) take this one."""


class LateNode(Node):
    """A node whose operation, inputs and parameters are made when one of them is first read.

    Code that needs only shape, dtype or buffer should read nothing else. One thread at a time finds
    what the node is (`finding`).
    """

    __slots__ = ()

    def place(self) -> Any:
        """Like no other: not known yet."""
        return object()


class Storage:
    """The cell that arrays share: writing through any of them rebinds `node`.

    node (Node)
    rows: how many rows were asked for while it was only recorded. Not set before that.
    """

    __slots__ = ("__weakref__", "node", "rows")
    rows: int

    def __init__(self, node: Node) -> None:
        self.node = node


recorded: Final[list[weakref.ref[Storage]]] = []
"""Cells that got a node since the last evaluation; dead ones are dropped when it is swept."""

operations: Final[list[Any]] = []
"""What was recorded since something was computed last, in order (`loop_detection.period`): the
operation, or of a write where it goes."""

turn: Final = [0]
"""How often something was computed: when it has changed, `operations` has begun anew."""

CHECK_EVERY: Final = 64
"""Operations between two looks at how much was recorded, unless `check_after` wants one sooner."""

check_at: Final = [CHECK_EVERY]
"""The length of `recorded` at which `check` is called."""

_check: list[Callable[..., None]] = [lambda at_boundary=False: None]


def set_check(check: Callable[..., None]) -> None:
    """Call `check` whenever `check_at` is reached; it may evaluate what was recorded.

    It is called with True between two statements.
    """
    _check[0] = check


def check() -> None:
    """What `record` does when `check_at` is reached."""
    check_at[0] = len(recorded) + CHECK_EVERY
    _check[0]()


def check_after(count: int) -> None:
    """Call `check` after so many operations more, if not sooner."""
    check_at[0] = min(check_at[0], len(recorded) + count)


def tell(node: Node) -> None:
    """Tell who wants to know that a node was recorded."""
    for each in recorders:
        each(node)


def record(
    node: Node,
    reference: Callable[..., Any] = weakref.ref,
    append: Callable[[Any], None] = recorded.append,
    note: Callable[[Any], None] = operations.append,
    cells: list[Any] = recorded,
) -> Storage:
    """A new storage cell for a recorded node."""
    storage = Storage(node)
    append(reference(storage))
    note(node.op if type(node) is Node else object())
    if recorders:
        tell(node)
    if len(cells) >= check_at[0]:
        check()
    return storage


def rebind(storage: Storage, node: Node) -> None:
    """Let the cell hold another value: what every write to an array does."""
    storage.node = node
    recorded.append(weakref.ref(storage))
    operations.append(node.place())
    if recorders:
        tell(node)
    if len(recorded) >= check_at[0]:
        check()
    if boundary.full:
        boundary.due = True


class Boundary:
    """Where recorded work that has grown enough is best cut: after a write, between statements.

    In the midst of ``a[i] = a[i] * 2 + c[i]`` a cut would keep what has no name, and the array as
    it was. So code at the beginning of a statement (subscripts, in-place operators) looks at `due`,
    and calls `reached`.

    full (bool): enough was recorded.
    due (bool): and a write has been recorded since then.
    """

    __slots__ = ("due", "full")

    def __init__(self) -> None:
        self.full = False
        self.due = False

    def reached(self) -> None:
        """Evaluate what was recorded, if it is still enough."""
        self.due = False
        _check[0](True)


boundary: Final = Boundary()


_kept = [0]
"""How many of `recorded` the last sweep put back."""

_waiting = [0]
"""Operations that waited to be computed at the last sweep."""


def recorded_count() -> int:
    """Operations recorded since the last sweep."""
    return len(recorded) - _kept[0]


def waiting_count() -> int:
    """No fewer operations than wait to be computed, unless `is_waiting` finds less."""
    return recorded_count() + _waiting[0]


def is_waiting(most: int) -> bool:
    """Whether `most` operations wait to be computed; forgets the others if not.

    What was recorded may have been computed long ago, or not be needed any more.
    """
    cells = [storage for reference in recorded if (storage := reference()) is not None]
    stack = [cell.node for cell in cells if cell.node.buffer is None]
    if len(stack) >= most:
        return True
    seen = set(stack)
    while stack and len(seen) < most:
        for operand in stack.pop().inputs:
            if operand.buffer is None and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    if len(seen) >= most:
        return True
    sweep()
    _waiting[0] = len(seen)
    return False


def begin_turn() -> None:
    """Something was computed: what is recorded from here on is looked at for loops by itself."""
    operations.clear()
    turn[0] += 1
    if len(recorded) >= forget_at[0]:
        _forget_computed()


FORGET_AT: Final = 128
"""Entries of `recorded` from which unneeded ones are dropped when something was computed: Python's
collector goes through weak references that are left again and again."""

forget_at = [FORGET_AT]


def _forget_computed() -> None:
    """As `sweep`, of which it takes a part; what waits to be computed counts as before."""
    waiting = waiting_count()
    batch = recorded[:]
    kept = pending(batch)
    recorded[: len(batch)] = kept
    counters["nodes_recorded"] += len(batch) - _kept[0]
    _kept[0] = len(kept)
    _waiting[0] = waiting if kept else 0
    if not kept:
        boundary.full = boundary.due = False
    check_at[0] = len(recorded) + CHECK_EVERY
    forget_at[0] = FORGET_AT + 2 * len(kept)


def _pending(references: list[weakref.ref[Storage]]) -> list[weakref.ref[Storage]]:
    """Those of cells that live and wait to be computed."""
    found = []
    for reference in references:
        storage = reference()
        if storage is not None and storage.node.buffer is None:
            found.append(reference)
    return found


pending = _pending
"""`_pending`, or a function in C that does the same (`known_graphs`)."""


def forget(cells: list[Storage]) -> None:
    """Do not compute these cells along with everything else."""
    unwanted = set(map(id, cells))
    recorded[:] = [reference for reference in recorded if id(reference()) not in unwanted]


def sweep() -> list[Storage]:
    """The live cells whose value was not computed yet; forgets all others.

    Other threads may record meanwhile: what they append stays.
    """
    batch = recorded[:]
    del recorded[: len(batch)]
    seen: dict[int, Storage] = {}
    for reference in batch:
        storage = reference()
        if storage is not None and storage.node.buffer is None:
            seen[id(storage)] = storage
    counters["nodes_recorded"] += len(batch) - _kept[0]
    _kept[0] = len(seen)
    _waiting[0] = 0
    boundary.full = boundary.due = False
    recorded[:0] = [weakref.ref(storage) for storage in seen.values()]
    check_at[0] = len(recorded) + CHECK_EVERY
    return list(seen.values())

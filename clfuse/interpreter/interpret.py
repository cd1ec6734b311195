"""Interprets a snapshot: NumPy computes it node by node.

The results have NumPy's bits, because its own functions compute them. Arguments and results lie in
host memory (`runtime.memory.buffers.HostBuffer`) until a kernel needs them.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import events
from clfuse._core import loading
from clfuse.counters import counters
from clfuse.errors import warn_user
from clfuse.ir.journal import journal, settle
from clfuse.ir.nodes import TABLE, Kind, Node, Op
from clfuse.ir.snapshot import LIVE, Snapshot
from clfuse.runtime.host.host_steps import FUNCTIONS
from clfuse.runtime.memory.buffers import Buffer, HostBuffer, hold_result, lend_memory, map_to_host

from .host_functions import cast, host_function
from .prepared import Prepared
from .rng import NEARLY

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

Array = Any
"""An array of NumPy's or one of its scalars."""
_kept_memory = getattr(loading.load(), "KeptMemory", nullcontext)


def run(snapshot: Snapshot, device: Device, *, sparing: bool = False, why: str = "") -> None:
    """Calculate the snapshot and give its roots, and what else somebody holds, their buffers.

    `why` says why NumPy does it, for who watches. `sparing` lets go of what nobody reads any more,
    keeps its memory for the next, and does large arrays in blocks; with small arrays that would
    take longer.

    No node changes before everything is calculated, unless an array was written to in place: what
    was calculated by then is kept if the rest fails (`_leave`). Floating-point errors in what the
    user called himself (`ir.nodes.loud`) are warned of, as the state in force wants it, when all is
    stored.
    """
    counters["host_evaluations"] += 1
    start_ns = time.perf_counter_ns() if events.watchers else 0
    with _kept_memory() if sparing else nullcontext():
        _calculate(snapshot, device, sparing)
    if events.watchers:
        end_ns = time.perf_counter_ns()
        for watcher in events.watchers:
            watcher.interpreted(snapshot, why, start_ns, end_ns)


def _calculate(snapshot: Snapshot, device: Device, sparing: bool) -> None:
    nodes, items = snapshot.nodes, snapshot.items
    values: list[Array] = [None] * len(nodes)
    known = {} if snapshot.structure is None else snapshot.structure.prepared
    prepared = known.get(sparing)
    if prepared is None:
        prepared = known[sparing] = Prepared(snapshot, sparing)
    stored, way, sums = prepared.stored, prepared.way, prepared.sums
    last = way.last
    given = _given(snapshot, stored) if last else {}
    written: dict[int, Buffer | None] = {}
    writes: list[_Write] = []
    summed = set(sums.values())
    if sums:
        from .gemv import multiply_by_blas
    op: Op | None = None
    met: dict[str, None] = {}
    modes = np.geterr()

    def meet(kind: str, flag: int) -> None:
        if op is not None and op.plain is not op:
            met[f"{kind} encountered in {op.called}"] = None

    def act(one: Op) -> None:
        nonlocal op
        op = one

    with ExitStack() as stack, np.errstate(call=meet, **_noticed(**modes)):
        sources, is_mapped = _sources(snapshot.buffers, stack)
        if given:
            left = snapshot, values, sums, device, given, written, writes, is_mapped
            journal[0] = _leave, left
        try:
            for position in way.order:
                if position < 0:
                    prepared.groups[-1 - position].calculate(values, act)
                    for number in last.get(position, ()):
                        values[number] = None
                    continue
                item = items[position]
                op = item[0]
                if op is None:
                    _, shape, number, dtype = item
                    value = sources[number]
                    if position in given:
                        sources[number] = None
                    elif value.dtype != dtype or value.shape != shape:
                        value = _reinterpreted(value, shape, dtype)
                    values[position] = value
                    continue
                if op.kind is Kind.MAP:
                    dtypes = op.input_dtypes
                    if len(item) == 5:
                        one, two = values[item[3]], values[item[4]]
                        if one.dtype is not dtypes[0]:
                            one = cast(one, dtypes[0])
                        if two.dtype is not dtypes[1]:
                            two = cast(two, dtypes[1])
                        if position in sums:
                            value = multiply_by_blas(one, two)
                        else:
                            value = op.host(one, two)  # type: ignore[misc]
                    else:
                        pairs = zip(item[3:], dtypes, strict=True)
                        operands = [cast(values[number], dtype) for number, dtype in pairs]
                        value = op.host(*operands)  # type: ignore[misc]
                    if value.shape != item[1] and position not in sums:
                        value = np.broadcast_to(value, item[1])
                elif op.kind is Kind.CONSTANT:
                    value = nodes[position].param
                elif position in summed:
                    value = values[item[3]]
                elif op.kind is Kind.UPDATE:
                    old, new = values[item[3]], values[item[4]]
                    if item[3] in given:
                        writes.append((item, old, new))
                    for number in last.get(position, ()):
                        values[number] = None
                    one = two = value = None  # names that may hold the same array
                    operands = []
                    if item[3] in given:
                        value = _changed(writes, position, item, old, new)
                        if value is old:
                            given[position] = written[position] = given[item[3]]
                        values[position] = value
                        writes.clear()  # it holds the arrays, too
                    else:
                        value = _updated(old, new, item[2])
                    old = new = None
                else:
                    operands = [values[number] for number in item[3:]]
                    value = _STRUCTURAL[op.kind](op, item[1], item[2], operands)
                    operands = []
                    if position in way.copied:
                        value = value.copy()
                values[position] = value
                if position in last:
                    for number in last[position]:
                        values[number] = None
            results = _results(snapshot, stored, values, device, written, is_mapped)
            _store(results)
            journal[0] = None
        except BaseException:
            settle()
            raise
    for message in met:
        warn_user(message, RuntimeWarning)


def _given(snapshot: Snapshot, stored: Container[int]) -> dict[int, Buffer | None]:
    """The arrays that are written to, and that nobody else has, by position: each lies on the host
    then, in the memory of a buffer or in its own (None)."""
    given: dict[int, Buffer | None] = {}
    read_later: set[int] | None = None
    for item in snapshot.items:
        if item[0] is None or item[0].kind is not Kind.UPDATE:
            continue
        below = item[3]
        found = snapshot.items[below]
        if found[0] is not None or snapshot.flags[below] & LIVE:
            continue
        node, number = snapshot.nodes[below], found[2]
        if type(node.buffer) is Buffer and not node.buffer.device.forked:
            node.buffer = lend_memory(node.buffer, node.dtype, node.shape) or node.buffer
            snapshot.buffers[number] = node.buffer
        buffer = node.buffer
        if type(buffer) is not HostBuffer or not buffer.array.flags.writeable:
            continue
        if buffer.array.dtype != node.dtype or buffer.array.shape != node.shape:
            continue
        if read_later is None:
            read_later = _read_later(snapshot, stored)
        if below in read_later:
            continue
        if buffer.array.base is None if buffer.memory is None else not buffer.exported:
            buffer.window = None  # it holds the array; views of it that are still there do, too
            given[below] = buffer.memory
    return given


def _read_later(snapshot: Snapshot, stored: Container[int]) -> set[int]:
    """The positions of what is read once more, when a value that a program holds and that is not
    stored now is computed."""
    items = snapshot.items
    stack = [
        position
        for position, flag in enumerate(snapshot.flags)
        if flag & LIVE and position not in stored and items[position][0] is not None
    ]
    found = set(stack)
    while stack:
        item = items[stack.pop()]
        if item[0] is None:
            continue
        for below in item[3:]:
            if below not in found and below not in stored:
                found.add(below)
                stack.append(below)
    return found


def _results(
    snapshot: Snapshot,
    positions: Iterable[int],
    values: list[Array],
    device: Device,
    written: dict[int, Buffer | None],
    is_mapped: bool,
) -> list[tuple[Node, HostBuffer]]:
    """Buffers for the values at these positions.

    `written` are those that lie in memory that was written to in place, and which; others that are
    only views of memory are copied, where it is such memory or is mapped."""
    results = []
    is_lent = is_mapped or bool(written)
    for position in positions:
        node, value = snapshot.nodes[position], values[position]
        if node.buffer is not None:
            continue
        if position in written:
            memory = written[position]
            made = hold_result(device, value)
            if memory is not None:  # which is counted already
                made = HostBuffer(device, value, memory)
            results.append((node, made))
            continue
        copy = True if is_lent and not value.flags.owndata else None
        array = np.array(value, order="C", copy=copy)
        if array.dtype != node.dtype or array.shape != node.shape:
            raise AssertionError(f"{node.op}: {array.dtype} {array.shape} on the host")
        results.append((node, hold_result(device, array)))
    return results


def _store(results: list[tuple[Node, HostBuffer]]) -> None:
    for node, buffer in results:
        if node.buffer is None:
            node.buffer = buffer
            node.inputs = ()


def needs_kernels(snapshot: Snapshot) -> bool:
    """Whether `run` cannot calculate the snapshot in a process that has no device."""
    for item in snapshot.items:
        op = item[0]
        if op is None or op.kind is Kind.CONSTANT:
            continue
        if op.kind is Kind.MAP and host_function(op) is None:
            op.host = NEARLY.get(op.name)
        if op.kind is Kind.LAUNCH or (op.kind is Kind.MAP and op.host is None):
            return True
    return False


def require(snapshot: Snapshot, device: Device) -> None:
    """Raise DeviceError where `run` cannot calculate the snapshot; for a forked process, in which
    nobody else can."""
    if needs_kernels(snapshot):
        device.require()


@lru_cache(maxsize=64)
def _noticed(**modes: str) -> dict[str, Any]:
    """Modes of `numpy.errstate` that call a function where those in force warn."""
    return {kind: "call" if mode == "warn" else "ignore" for kind, mode in modes.items()}


class warning_of:
    """A block whose floating-point errors are those of what the user has called by that name: they
    are warned of at his line, as the state in force wants it. Without a name they are not seen."""

    def __init__(self, called: str) -> None:
        self._called = called
        self._met: dict[str, None] = {}

    def __enter__(self) -> None:
        self._state = np.errstate(call=self._meet, **_noticed(**np.geterr()))
        self._state.__enter__()

    def _meet(self, kind: str, flag: int) -> None:
        self._met[kind] = None

    def __exit__(self, *error: Any) -> None:
        self._state.__exit__(*error)
        for kind in self._met if self._called else ():
            warn_user(f"{kind} encountered in {self._called}", RuntimeWarning)


_Write = tuple[Any, ...]
"""Of an update whose operands are no values any more: its item, and both of them. Then, where it is
made in place: its position and that of what it updates, the array, the part that is written, and
what is written there: none of what the array held before. So it may be written again."""


def _updated(old: Array, value: Array, param: Any) -> Array:
    """`old` with `value` written to a part of it; in its own memory where nobody else has it.

    The caller holds `old` and `value` by one name each.
    """
    # What NumPy has selected with index arrays need not lie in C order, and `_seen` would copy it.
    is_own = type(old) is np.ndarray and old.base is None and old.flags.c_contiguous
    if is_own and _ALONE > 0 and sys.getrefcount(old) == _ALONE:
        result = old
    else:
        result = np.array(old, order="C")
    _seen(result, value.shape, *param)[...] = value
    return result


def _changed(
    writes: list[_Write], position: int, item: tuple[Any, ...], old: Array, value: Array
) -> Array:
    """As `_updated`, of an array that its buffer holds, too; `writes` says so before."""
    if not (_CHANGED > 0 and sys.getrefcount(old) == _CHANGED):
        result = np.array(old, order="C")
        _seen(result, value.shape, *item[2])[...] = value
        return result
    part = _seen(old, value.shape, *item[2])
    writes.append((position, item[3], old, part, value))
    part[...] = value
    return old


def _leave(
    snapshot: Snapshot,
    values: list[Array],
    sums: Mapping[int, int],
    device: Device,
    given: dict[int, Buffer | None],
    written: dict[int, Buffer | None],
    writes: list[_Write],
    is_mapped: bool,
) -> None:
    """Keep what was calculated by then, if arrays were written to since: it cannot be calculated
    again. A write that has begun is made once more, for it may not have been made."""
    if len(writes) == 1:  # the write has not begun
        ((_, _, _, below, above, *_), old, new) = writes[0]
        values[below], values[above] = old, new
    elif writes:
        position, below, array, part, value = writes[-1]
        part[...] = value
        values[position] = array
        given[position] = written[position] = given[below]
    if not written:
        return
    items = snapshot.items
    done = [
        place
        for place, found in enumerate(values)
        if found is not None and place not in sums and items[place][0] is not None
        and items[place][0].kind is not Kind.CONSTANT
    ]
    _store(_results(snapshot, done, values, device, written, is_mapped))


def _references() -> int:
    """The references that `_updated` sees to an array that only its caller has, by one name.

    Without exact counts (no GIL) there is always somebody else.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1

    def count(old: Array, value: Array, param: Any) -> int:
        return sys.getrefcount(old)

    one, two = np.zeros(2), np.zeros(1)
    return count(one, two, None)


_ALONE: Final = _references()

_CHANGED: Final = _ALONE + 2 if _ALONE > 0 else -1
"""Those to one that its buffer holds, too, and the list of writes."""


def _sources(buffers: list[Buffer], stack: ExitStack) -> tuple[list[Array], bool]:
    """The bytes of the leaves, and whether some are only lent until `stack` is left."""
    arrays: list[Array] = []
    is_mapped = False
    for buffer in buffers:
        if type(buffer) is HostBuffer:
            arrays.append(buffer.array)
        else:
            is_mapped = True
            mapping = map_to_host(buffer, np.uint8, (buffer.nbytes,), False)
            arrays.append(stack.enter_context(mapping))
    return arrays, is_mapped


def _reinterpreted(array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, array)


# -- what is not element by element: functions of (operation, shape, param, operands) -------------

Operands = list[Array]


def _seen(value: Array, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Array:
    """The elements ``offset + sum(index * strides)`` of the C order of `value`, uncopied where it
    lies in that order."""
    if 0 in shape:
        return np.empty(shape, value.dtype)
    if type(value) is not np.ndarray or not value.flags.c_contiguous:
        value = np.array(value, order="C")
    size = value.itemsize
    return np.ndarray(
        shape, value.dtype, value, offset * size, tuple([stride * size for stride in strides])
    )


def _view(op: Op, shape: tuple[int, ...], param: Any, operands: Operands) -> Array:
    return _seen(operands[0], shape, *param)


def _iota(op: Op, shape: tuple[int, ...], param: Any, operands: Operands) -> Array:
    return np.arange(shape[0], dtype=op.dtype)


def _reduce(op: Op, shape: tuple[int, ...], axes: Any, operands: Operands) -> Array:
    return getattr(np, op.name).reduce(operands[0], axis=axes, dtype=op.dtype)


def _arg_reduce(op: Op, shape: tuple[int, ...], axes: Any, operands: Operands) -> Array:
    (value,) = operands
    kept = [axis for axis in range(value.ndim) if axis not in axes]
    rows = value.transpose(*kept, *axes)
    rows = rows.reshape(*shape, math.prod(rows.shape[len(kept) :]))
    return getattr(np, op.name)(rows, axis=-1)


def _scan(op: Op, shape: tuple[int, ...], axes: Any, operands: Operands) -> Array:
    return getattr(np, op.name).accumulate(operands[0], axis=axes[0], dtype=op.dtype)


def _concatenate(op: Op, shape: tuple[int, ...], axis: Any, operands: Operands) -> Array:
    return np.concatenate(operands, axis)


def _library(op: Op, shape: tuple[int, ...], param: Any, operands: Operands) -> Array:
    if op.name == TABLE:
        return np.frombuffer(param, op.dtype).reshape(shape)
    counters["library_calls"] += 1
    result = np.empty(shape, op.dtype)
    FUNCTIONS[op.name](operands, result, param)
    return result


@lru_cache(maxsize=256)
def _grid(shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Array:
    grid = np.array(offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if stride and extent > 1:
            steps = np.arange(extent, dtype=np.int64) * stride
            grid = grid + steps.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    grid.flags.writeable = False
    return grid


def _gather(op: Op, shape: tuple[int, ...], param: Any, operands: Operands) -> Array:
    source, position = operands
    found = source.reshape(-1)[position + _grid(shape, *param)]
    return found if found.shape == shape else np.broadcast_to(found, shape)


def _counts(op: Op, shape: tuple[int, ...], piece: Any, operands: Operands) -> Array:
    starts = np.arange(0, len(operands[0]), piece)
    return np.add.reduceat(operands[0], starts, dtype=op.dtype)


def _compact(op: Op, shape: tuple[int, ...], piece: Any, operands: Operands) -> Array:
    mask, value, _ = operands
    return value[mask]


def _expand(op: Op, shape: tuple[int, ...], piece: Any, operands: Operands) -> Array:
    mask, other, _, packed = operands
    result = np.array(other, order="C")
    result[mask] = packed
    return result


_STRUCTURAL: Final[dict[Kind, Callable[[Op, tuple[int, ...], Any, Operands], Array]]] = {
    Kind.VIEW: _view,
    Kind.IOTA: _iota,
    Kind.REDUCE: _reduce,
    Kind.ARGREDUCE: _arg_reduce,
    Kind.SCAN: _scan,
    Kind.CONCATENATE: _concatenate,
    Kind.LIBRARY: _library,
    Kind.GATHER: _gather,
    Kind.COUNTS: _counts,
    Kind.COMPACT: _compact,
    Kind.EXPAND: _expand,
}

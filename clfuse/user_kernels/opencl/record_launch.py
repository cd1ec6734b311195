"""`record_launch`: launches of user-written kernels, recorded beside array operations.

The recorded nodes are in `ir.launch_nodes`. Nothing runs before a written array is observed; a
launch whose results are never observed never runs. A source that does not build raises
`KernelBuildError` each time that one of the arrays that it would have written, or a value computed
from them, is observed. All other arrays are as they were.
"""

from __future__ import annotations

import math
import re
import sys
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from sys import getrefcount
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import Handle, fresh, keep_bytes, layout, node_of, write
from clfuse.arrays.promotion import constant_of
from clfuse.codegen.signatures import find
from clfuse.engine.evaluate import lock
from clfuse.ir import build
from clfuse.ir.launch_nodes import (
    ArrayParameter,
    Launch,
    LocalParameter,
    Parameter,
    ScalarParameter,
    Slot,
    Spec,
    Writer,
    launch,
)
from clfuse.ir.layout import contiguous_strides, without_unit_strides
from clfuse.ir.nodes import Kind, Node, Storage, finding, rebind
from clfuse.ir.traced_number import TracedNumber
from clfuse.schedule.rewrite.wavefronts import rounds_of

MODES: Final = ("r", "w", "rw")

MAX_DIMENSIONS: Final = 3
"""Of an index range in OpenCL: a launch of many calls has one more than a call."""

MAX_CALLS: Final = 1 << 17
"""Calls of one launch: each takes about 100 bytes until it is closed."""

LAUNCHES_KEPT: Final = 1024
"""Launches that are remembered, to be appended to."""


def record_launch(
    source: str | Writer,
    name: str,
    arguments: Sequence[Any],
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None = None,
    *,
    reason: str = "written as a kernel",
) -> None:
    """Record a launch of the kernel `name`; afterwards its arrays have what it writes.

    Parameters
    ----------
    source : str or callable
        OpenCL C; or a callable that takes the device's traits when a plan is made, and returns
        text, global and local size. Equal launches are found by it, so it should be the same object
        for the same kernel.
    name : str
        A ``__kernel void`` function in it, whose parameters are what `arguments` say, in order.
    arguments : sequence
        ``(array, mode)``: a pointer to the array's first element; its elements must lie in C order.
        ``(array, mode, "strides")``: that, then a ``long`` a dimension with the strides in
        elements (which may be 0 or negative). Modes: ``r``; ``rw``; ``w``, which promises that
        every element of the view is written and none read. NumPy scalars are passed as their
        dtype, and ``(number, dtype)`` as that dtype (the number may be a Python number of a
        function that is traced). A `LocalParameter` is local memory.
        bool is one ``uchar`` in arrays and an ``int`` as a scalar, float16 a ``half`` in arrays
        (`vload_half`) and a ``float`` as a scalar, complex64 a ``float2``.
    global_size, local_size : tuple of int
        Work-items, and those of a group (None: the driver's choice). With 0 of them nothing is
        recorded.
    reason : str
        Why it is a launch, as `explain` shows it.

    Raises ValueError: an array is read-only and written to, or does not lie in C order and has no
        strides.

    Notes
    -----
    A pointer to the middle of a buffer, and one launch of several calls, take a change of the
    kernel's parameters in its text (`codegen.signatures`). Where that cannot be done with
    certainty, views that do not begin at their buffer's first element are copied, and back if they
    are written, and every call is a launch of its own.
    """
    if 0 in global_size:
        return
    key = (name, source, *[
        id(argument[0]._storage)
        for argument in arguments
        if type(argument) is tuple and isinstance(argument[0], Handle)
    ])
    with lock:  # two launches that write to one array come one after the other
        found = _latest.get(key)
        last = None if found is None else found()
        calls = None if last is None else last.close
        if isinstance(calls, Calls) and calls.append(
            last, source, arguments, global_size, local_size
        ):
            return
        made = _record(source, name, arguments, global_size, local_size, reason)
        if made is not None:
            if len(_latest) >= LAUNCHES_KEPT:
                _latest.clear()
            _latest[key] = weakref.ref(made)


def _record(
    source: str | Writer,
    name: str,
    arguments: Sequence[Any],
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    reason: str,
) -> Launch | None:
    """A new LAUNCH; None where equal ones may not be appended to it."""
    may_change = not isinstance(source, str) or find(source, name) is not None
    back: list[tuple[Any, Any]] = []
    if not may_change:
        arguments, back = _copied(arguments)
    storages: list[Storage] = []
    written: list[bool] = []
    needed: list[bool] = []
    parameters: list[Parameter] = []
    offsets: list[int] = []
    numbers: list[Any] = []
    scalars: list[Node] = []
    for position, argument in enumerate(arguments):
        if type(argument) is tuple and isinstance(argument[0], Handle):
            handle, mode = argument[:2]
            offset, strides = _checked(handle, mode, len(argument) > 2, f"{name}: {position}")
            storage = handle._storage
            slot = next((n for n, known in enumerate(storages) if known is storage), -1)
            if slot < 0:
                slot = len(storages)
                storages.append(storage)
                written.append(False)
                needed.append(False)
            written[slot] |= mode != "r"
            needed[slot] |= mode != "w"
            parameters.append(
                ArrayParameter(slot, mode, handle._dtype, handle._shape, strides, len(argument) > 2)
            )
            offsets.append(offset)
            continue
        if isinstance(argument, LocalParameter):
            parameters.append(argument)
            continue
        number = argument
        if type(argument) is tuple:
            number, dtype = argument
            node = constant_of(number, np.dtype(dtype))
        else:
            node = build.constant(argument)
        parameters.append(ScalarParameter(len(scalars), node.dtype))
        numbers.append(number)
        scalars.append(node)
    inputs: list[Node] = []
    slots: list[Slot] = []
    results: list[Node] = []
    rebound: list[Storage] = []
    may_grow = may_change and len(global_size) < MAX_DIMENSIONS and (
        not isinstance(source, str) or _is_of_dimensions(source, len(global_size))
    )
    for number, storage in enumerate(storages):
        node = storage.node
        nbytes = math.prod(node.shape) * node.dtype.itemsize
        part = -1
        if written[number] and nbytes:
            part = len(results)
            results.append(node)
            rebound.append(storage)
        old = -1
        if needed[number] or not _covered(number, parameters, nbytes) or not nbytes:
            old = len(inputs)
            stored = _in_memory(node)
            may_grow = may_grow and stored is node
            inputs.append(stored)
        slots.append(Slot(old, part, nbytes))
    if not results:
        return None
    spec = Spec(source, name, tuple(parameters), tuple(slots), len(scalars), global_size,
                local_size, (), reason)
    calls = Calls(spec, tuple(offsets), tuple(numbers))
    made, parts = launch(name, (*inputs, *scalars), results, calls)
    for storage, value in zip(rebound, parts, strict=True):
        rebind(storage, value)
    for target, copy in back:
        write(target, node_of(copy))
    if not may_grow:
        return None
    calls.watch(made)
    return made


def _copied(arguments: Sequence[Any]) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Arguments whose arrays begin where their buffers do, and (view, copy) to be written back."""
    passed: list[Any] = []
    back: list[tuple[Any, Any]] = []
    for argument in arguments:
        handle = argument[0] if type(argument) is tuple else None
        if isinstance(handle, Handle) and layout(handle)[0]:
            copy = fresh(node_of(handle))
            if argument[1] != "r":
                back.append((handle, copy))
            argument = (copy, *argument[1:])
        passed.append(argument)
    return passed, back


_latest: Final[dict[tuple[Any, ...], weakref.ref[Launch]]] = {}
"""Kernel and storage cells (by id: `append` looks at what is in them) -> the last launch."""


class Calls:
    """Calls of one kernel, equal but for where their views begin and for scalars: one LAUNCH.

    They may overlap: `spec` makes rounds of them, in each of which no two depend on each other.
    Nodes are looked at but never held here: who holds a node decides what may be overwritten.

    spec: without rounds.
    offsets, numbers: of the first call, one an array or scalar parameter.
    """

    __slots__ = ("_expected", "_is_closed", "_rows", "_spec")

    def __init__(self, spec: Spec, offsets: tuple[int, ...], numbers: tuple[Any, ...]) -> None:
        self._spec = spec
        self._rows = [(offsets, numbers)]
        self._expected: list[Any] = []
        self._is_closed = False

    def watch(self, made: Launch) -> None:
        """Get ready for more."""
        for parameter in self._spec.parameters:
            if isinstance(parameter, ScalarParameter | LocalParameter):
                self._expected.append((getattr(parameter, "dtype", parameter),))
                continue
            slot = self._spec.slots[parameter.slot]
            part = made.parts[slot.part] if slot.part >= 0 else None
            self._expected.append(
                (parameter.shape, parameter.strides, parameter.dtype, parameter.mode,
                 parameter.strided, part, slot.old)
            )

    def append(
        self,
        made: Any,
        source: str | Writer,
        arguments: Sequence[Any],
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
    ) -> bool:
        """Take one call more, if it is of this kind and nobody has looked at what came before."""
        spec = self._spec
        if (
            (source is not spec.source and source != spec.source)
            or global_size != spec.global_size
            or local_size != spec.local_size
            or len(arguments) != len(self._expected)
        ):
            return False
        offsets = []
        numbers = []
        for argument, expected in zip(arguments, self._expected, strict=True):
            if len(expected) == 1:
                if type(argument) is tuple:
                    number, dtype = argument
                    if dtype != expected[0] or type(number) is TracedNumber:
                        return False
                    numbers.append(number)
                    continue
                if isinstance(argument, LocalParameter):
                    if argument != expected[0]:
                        return False
                    continue
                if argument.__class__ is not getattr(expected[0], "type", None):
                    return False
                numbers.append(argument)
                continue
            shape, strides, dtype, mode, strided, part, old = expected
            if type(argument) is not tuple or argument[1] != mode:
                return False
            handle = argument[0]
            if not isinstance(handle, Handle) or (len(argument) > 2) is not strided:
                return False
            view = handle._view
            if handle._shape != shape or handle._dtype is not dtype:
                return False
            storage = handle._storage
            if part is None:
                if storage.node is not made.inputs[old]:
                    return False
            elif (
                storage.node is not part()
                or getrefcount(storage.node) > _ALONE
                or (mode != "r" and view is not None and not view.writeable)
            ):
                return False
            if view is None:
                offsets.append(0)
                continue
            if view.strides != strides:
                return False
            offsets.append(view.offset)
        with finding:  # other threads may evaluate while this one records
            if self._is_closed:
                return False
            self._rows.append((tuple(offsets), tuple(numbers)))
        if len(self._rows) >= MAX_CALLS:
            made.param  # noqa: B018 (closes it)
        return True

    def __call__(self) -> Spec:
        """What has been recorded, as rounds."""
        self._is_closed = True
        spec = self._spec
        rows = self._rows
        columns = np.array([offsets for offsets, _ in rows], np.int64).reshape(len(rows), -1).T
        scalars = [parameter for parameter in spec.parameters
                   if isinstance(parameter, ScalarParameter)]
        tables = []
        for place, parameter in enumerate(scalars):
            tables.append(_table([numbers[place] for _, numbers in rows], parameter.dtype))
        return replace(spec, rounds=rounds_of(spec, columns, tables))


def _table(numbers: list[Any], dtype: np.dtype) -> Any:
    """A scalar of every call; None where it is the same in all of them."""
    if len(numbers) == 1:
        return None
    table = np.array(numbers, dtype)
    pattern = table.view(np.uint8).reshape(len(table), -1)  # NaN and -0.0 count by their bits
    return None if (pattern == pattern[0]).all() else table


def _alone() -> int:
    """What `append` sees of a node that one storage cell holds and nobody else."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1  # counts are not exact: nothing is appended
    storage = Storage(build.iota(2))
    return getrefcount(storage.node)


_ALONE: Final = _alone()


_INDEX: Final = re.compile(
    r"\bget_(?:global|local|group|enqueued_local)_(?:id|size|offset)\s*\(\s*([^()]*?)\s*\)"
    r"|\bget_num_groups\s*\(\s*([^()]*?)\s*\)|\b(get_work_dim|get_\w+_linear_id)\b"
)


@lru_cache(maxsize=1024)
def _is_of_dimensions(source: str, rank: int) -> bool:
    """Whether a kernel asks for no dimension beyond `rank`: the next one may number calls then."""
    asked = [one or other for one, other, whole in _INDEX.findall(source) if not whole]
    return all(each.isdigit() and int(each) < rank for each in asked) and not any(
        whole for _, _, whole in _INDEX.findall(source)
    )


def _checked(handle: Any, mode: str, strided: bool, what: str) -> tuple[int, tuple[int, ...]]:
    """Offset and strides of an array argument."""
    if mode not in MODES:
        raise ValueError(f"mode of argument {what}: {mode!r}; r, w and rw are known")
    view = handle._view
    if view is None:
        return 0, contiguous_strides(handle._shape)
    if mode != "r" and not view.writeable:
        raise ValueError(f"assignment destination is read-only: argument {what}")
    if mode != "r":
        keep_bytes(handle)
    offset, strides = layout(handle)
    shape = handle._shape
    in_order = without_unit_strides(shape, strides) == contiguous_strides(shape)
    if not (strided or in_order or 0 in shape):
        raise ValueError(
            f"argument {what} has shape {shape} and strides {strides}, but its kernel takes "
            "elements in C order: pass a contiguous copy"
        )
    return offset, strides


def _covered(slot: int, parameters: Sequence[Parameter], nbytes: int) -> bool:
    """Whether one of the views that are written without being read is all of the buffer."""
    for parameter in parameters:
        if isinstance(parameter, ArrayParameter) and parameter.slot == slot:
            dims = [
                (abs(stride), extent)
                for stride, extent in zip(parameter.strides, parameter.shape, strict=True)
                if extent != 1
            ]
            step = 1
            for stride, extent in sorted(dims):
                if stride != step:
                    break
                step *= extent
            else:
                if step * parameter.dtype.itemsize == nbytes:
                    return True
    return False


def _in_memory(node: Node) -> Node:
    """The same bytes as a node that has some: scalars and empty arrays have none otherwise."""
    if not math.prod(node.shape):
        return build.full(node.dtype.type(0), (1,))
    if node.op.kind is Kind.CONSTANT and node.buffer is None:
        return build.view(node, (1,), 0, (0,))
    return node

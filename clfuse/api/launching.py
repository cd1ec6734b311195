"""Kernels that somebody wrote, recorded beside array operations: `record_launch`.

What is recorded is in `graph.launch`. Nothing runs before a written array is looked at; a launch
whose results nobody looks at never runs. A source that does not build raises `KernelBuildError` at
that look, every time, for the arrays that it would have written and for what was made of them; all
others are as they were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..graph import build
from ..graph.ir import Kind, Node, Storage, rebind
from ..graph.launch import (
    ArrayParameter,
    Parameter,
    Round,
    ScalarParameter,
    Slot,
    Spec,
    Writer,
    launch,
)
from ..graph.layout import contiguous_strides
from .handle import Handle, layout
from .promotion import constant_of

MODES: Final = ("r", "w", "rw")


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
        function that is traced).
        bool is one ``uchar`` in arrays and an ``int`` as a scalar, float16 a ``half`` in arrays
        (`vload_half`) and a ``float`` as a scalar, complex64 a ``float2``.
    global_size, local_size : tuple of int
        Work-items, and those of a group (None: the driver's choice). With 0 of them nothing is
        recorded.
    reason : str
        Why it is a launch, for `explain`.

    Raises
    ------
    ValueError
        An array is read-only and written to, or does not lie in C order and has no strides.
    """
    if 0 in global_size:
        return
    storages: list[Storage] = []
    written: list[bool] = []
    needed: list[bool] = []
    parameters: list[Parameter] = []
    offsets: list[int] = []
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
        if type(argument) is tuple:
            number, dtype = argument
            node = constant_of(number, np.dtype(dtype))
        else:
            node = build.constant(argument)
        parameters.append(ScalarParameter(len(scalars), node.dtype))
        scalars.append(node)
    inputs: list[Node] = []
    slots: list[Slot] = []
    results: list[Node] = []
    rebound: list[Storage] = []
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
            inputs.append(_in_memory(node))
        slots.append(Slot(old, part, nbytes))
    if not results:
        return
    once = Round(1, tuple(offsets), (None,) * len(scalars))
    spec = Spec(source, name, tuple(parameters), tuple(slots), len(scalars), global_size,
                local_size, (once,), reason)
    _, parts = launch(name, (*inputs, *scalars), results, lambda: spec)
    for storage, part in zip(rebound, parts, strict=True):
        rebind(storage, part)


def _checked(handle: Any, mode: str, strided: bool, what: str) -> tuple[int, tuple[int, ...]]:
    """Offset and strides of an array argument."""
    if mode not in MODES:
        raise ValueError(f"mode of argument {what}: {mode!r}; r, w and rw are known")
    view = handle._view
    if view is None:
        return 0, contiguous_strides(handle._shape)
    if mode != "r" and not view.writeable:
        raise ValueError(f"assignment destination is read-only: argument {what}")
    offset, strides = layout(handle)
    shape = handle._shape
    if not strided and 0 not in shape:
        strides = tuple([0 if n == 1 else step for n, step in zip(shape, strides, strict=True)])
        if strides != contiguous_strides(shape):
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
        return build.filled(node.dtype.type(0), (1,))
    if node.op.kind is Kind.CONSTANT and node.buffer is None:
        return build.view(node, (1,), 0, (0,))
    return node

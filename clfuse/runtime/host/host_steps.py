"""Steps of a plan that are no kernels: copies, and library calls on the host.

A CPU device shares the host's memory: operands and result are mapped, not copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np

from clfuse.counters import counters
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import ONCE
from clfuse.runtime.context import lost
from clfuse.runtime.drivers import threads
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.buffers import Buffer, host_memory, map_to_host

from .numerics import NUMERICS, Array


def _matmul(operands: Sequence[Array], out: Array, param: Any) -> None:
    left, right = operands
    if out.dtype.kind in "fc" or left.ndim != 2 or right.ndim != 2:
        np.matmul(left, right, out=out)
        return

    def change(rows: Array, results: Array) -> None:
        np.matmul(rows, right, out=results)

    # No BLAS multiplies integers.
    threads.in_parts(change, (left, out), [1], left.nbytes * right.shape[1])


def _bincount(operands: Sequence[Array], out: Array, param: Any) -> None:
    weights = operands[1] if len(operands) > 1 else None
    counts = np.bincount(operands[0], weights, len(out))
    # `functions.sorting.searching.histogram` lets one number stand for none.
    np.copyto(out, counts[: len(out)])


def _tally(operands: Sequence[Array], out: Array, param: Any) -> None:
    """Counts, or sums of weights, of each place; piece by piece, as kernels make them."""
    pieces, bins = out.shape
    length = -(-len(operands[0]) // pieces)
    for number, row in enumerate(out):
        part = slice(number * length, (number + 1) * length)
        places, *weights = [operand[part] for operand in operands]
        inside = (places >= 0) & (places < bins)
        row[...] = 0
        weight = weights[0][inside].astype(row.dtype) if weights else 1
        np.add.at(row, places[inside].astype(np.int64), weight)


def _scatter(operands: Sequence[Array], out: Array, param: Any) -> None:
    """The first operand, with elements set at computed places of it or combined with them."""
    how, shape, offset, strides = param[:4]
    if np.ndim(operands[0]) != out.ndim or not _same_memory(operands[0], out):
        threads.copy(out, operands[0])
    places = np.full(shape, offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride
        places += steps.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    places += operands[1]
    flat = out.reshape(-1)
    if how == "set":
        flat[places] = operands[2]
    else:
        getattr(np, how).at(flat, places, operands[2])


def _segments(operands: Sequence[Array], out: Array, how: str) -> None:
    """The first operand, with elements combined with it one after another."""
    if np.ndim(operands[0]) != out.ndim or not _same_memory(operands[0], out):
        threads.copy(out, operands[0])
    getattr(np, how).at(out.reshape(-1), operands[1], operands[2])


WEIGHED_TOGETHER: Final = 65_536
"""Elements whose weights NumPy's histogram adds before it adds them to the others: so the sums have
the same bits."""


def _weigh(operands: Sequence[Array], out: Array, param: Any) -> None:
    """The sum of the weights of each place; one place more stands for none."""
    places, weights = operands
    out[...] = 0
    for start in range(0, len(places), WEIGHED_TOGETHER):
        part = slice(start, start + WEIGHED_TOGETHER)
        found = np.bincount(places[part], weights[part], len(out))
        out += found[: len(out)].astype(out.dtype)


Layout = tuple[str, tuple[int, ...], int, tuple[int, ...]]
"""dtype character, shape, offset and strides of a view on a storage; in elements of that dtype."""


def _mutation(change: Callable[..., None]) -> Callable[..., None]:
    """A library function that gives its first operand with a view of it changed by NumPy.

    Its param is ``(layout, shapes, extra)``: the view, the shapes that the other operands are
    stretched to, and what `change` needs besides. Where the planner has put the result into the
    operand's own bytes nothing is copied. More arguments are given to `change`.
    """

    def call(operands: Sequence[Array], out: Array, param: Any, *more: Any) -> None:
        layout, shapes, extra = param
        if np.ndim(operands[0]) != out.ndim or not _same_memory(operands[0], out):
            threads.copy(out, operands[0])
        arrays = [
            np.broadcast_to(operand, shape)
            for operand, shape in zip(operands[1:], shapes, strict=True)
        ]
        change(_seen(out, layout), arrays, extra, *more)

    return call


def _same_memory(left: Array, right: Array) -> bool:
    return bool(left.__array_interface__["data"][0] == right.__array_interface__["data"][0])


def _seen(out: Array, layout: Layout) -> Array:
    char, shape, offset, strides = layout
    flat = out.reshape(-1).view(char)
    steps = tuple([stride * flat.itemsize for stride in strides])
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps)


def index_of(template: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The index that a template describes.

    ``("array", number)`` stands for one of `arrays`, ``("slice", start, stop, step)`` for a slice;
    all other items stand for themselves. Templates can be hashed, slices (before Python 3.12)
    cannot.
    """
    index = []
    for item in template:
        if type(item) is not tuple:
            index.append(item)
        elif item[0] == "array":
            index.append(arrays[item[1]])
        else:
            index.append(slice(*item[1:]))
    return tuple(index)


def _setitem(view: Array, arrays: list[Any], template: Any) -> None:
    view[index_of(template, arrays[:-1])] = arrays[-1]


def _at(view: Array, arrays: list[Any], extra: Any, tickets: list[Any] | None = None) -> None:
    """Twice is not the same as once: the ticket is added by the same call of C."""
    function, template, count = extra
    operands = view, index_of(template, arrays[:count]), *arrays[count:]
    done = [] if tickets is None else tickets
    done.extend(map(function.at, *[(each,) for each in operands]))


def _partition(view: Array, arrays: list[Any], how: Any) -> None:
    kth, axis = np.array(how[0], int), how[1]
    threads.in_parts(lambda part: part.partition(kth, axis), [view], [axis], view.nbytes)


FUNCTIONS: Final[dict[str, Callable[..., None]]] = {
    "matmul": _matmul,
    "bincount": _bincount,
    "weigh": _weigh,
    "tally": _tally,
    "scatter": _scatter,
    "segments": _segments,
    "setitem": _mutation(_setitem),
    "at": _mutation(_at),
    "put": _mutation(lambda view, arrays, mode: np.put(view, arrays[0], arrays[1], mode)),
    "putmask": _mutation(lambda view, arrays, _: np.putmask(view, arrays[0], arrays[1])),
    "place": _mutation(lambda view, arrays, _: np.place(view, arrays[0], arrays[1])),
    "sort": _mutation(lambda view, _, how: threads.sort(view, **dict(how))),
    "partition": _mutation(_partition),
    **NUMERICS,
}
"""Name of a LIBRARY operation -> function of (operands, result to fill, param)."""

def copy(source: Buffer, target: Buffer, nbytes: int) -> None:
    """Enqueue a copy of the first `nbytes` bytes of a buffer, on the device."""
    from clfuse.runtime.drivers import opencl as cl

    if nbytes:
        device = source.device
        lost.call_driver(
            device, "a copy", cl.enqueue_copy, device.queue, target.mem, source.mem,
            byte_count=nbytes,
        )  # fmt: skip


def write(target: Buffer, values: Array) -> None:
    """Enqueue the upload of a table of scalars."""
    buffers.write(target, values)


def _view(flat: Array, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Array:
    """The elements of an operand in the bytes of its buffer, to be read."""
    if strides == contiguous_strides(shape):
        view = flat[offset : offset + math.prod(shape)].reshape(shape)
        view.flags.writeable = False
        return view
    return np.lib.stride_tricks.as_strided(
        flat[offset:] if 0 not in shape else flat,
        shape,
        tuple([stride * flat.itemsize for stride in strides]),
        writeable=False,
    )


def _array(
    memory: Any,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    offset: int = 0,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """An array in these bytes; offset and strides in elements."""
    itemsize = dtype.itemsize
    steps = None if strides is None else tuple([stride * itemsize for stride in strides])
    return np.ndarray(shape, dtype, memory, offset * itemsize, steps)


def call(
    name: str,
    operands: Sequence[tuple[Buffer, np.dtype[Any], tuple[int, ...], int, tuple[int, ...]]],
    target: tuple[Buffer, np.dtype[Any], tuple[int, ...]],
    param: Any,
    scalars: Sequence[tuple[int, Any]] = (),
    tickets: list[Any] | None = None,
) -> None:
    """Run the library function `name`; waits for the device first.

    name: a key of `FUNCTIONS`.
    operands: strided views, in elements.
    target: filled in C order.
    param (object): what the node carried.
    scalars: further operands, each with its place among all of them.
    tickets: functions `ONCE` add something to it as soon as they have changed the target itself.
    """
    is_once = name in ONCE and tickets is not None and target[0].device.traits.unified_memory
    more = (tickets,) if is_once else ()
    counters["library_calls"] += 1
    memories = [host_memory(buffer) for buffer in (target[0], *[entry[0] for entry in operands])]
    if all(memory is not None for memory in memories):
        target[0].device.finish()
        out = _array(memories[0], *target[1:])
        in_place: list[Any] = []
        for memory, (_, dtype, shape, offset, strides) in zip(memories[1:], operands, strict=True):
            view = _array(memory, dtype, shape, offset, strides)
            view.flags.writeable = False
            in_place.append(view)
        for place, scalar in scalars:
            in_place.insert(place, scalar)
        FUNCTIONS[name](in_place, out, param, *more)
        return
    with ExitStack() as stack:
        out = stack.enter_context(map_to_host(*target, write=True))
        flat: dict[int, Array] = {id(target[0]): out.reshape(-1)}  # an operand may be the result
        views: list[Any] = []
        for buffer, dtype, shape, offset, strides in operands:
            if id(buffer) not in flat:
                count = (buffer.nbytes // dtype.itemsize,)
                mapping = map_to_host(buffer, dtype, count, write=False)
                flat[id(buffer)] = stack.enter_context(mapping)
            views.append(_view(flat[id(buffer)], shape, offset, strides))
        for place, scalar in scalars:
            views.insert(place, scalar)
        FUNCTIONS[name](views, out, param, *more)

"""Wavefronts: the recorded calls of one user kernel as few rounds of calls that are independent.

Two calls depend on each other where one writes bytes that the other touches, whatever arrays they
were given as:

    work(a[0]); work(a[1]); work(a[2])          one round
    work(a[0]); work(a[1]); work(a[1])          two: the last call comes after the one before
    f(a[0], a[1]); f(a[1], a[2]) (reads, writes)  two

Base buffers are looked at one by one, all calls together: no pair of calls is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clfuse.ir.launch_nodes import ArrayParameter, Round, Spec

from .write_regions import Region, elements_of

Numbers = npt.NDArray[np.int64]


def rounds_of(
    spec: Spec, columns: Numbers, tables: Sequence[npt.NDArray[Any] | None]
) -> tuple[Round, ...]:
    """The rounds, in order.

    spec: its parameters; rounds do not matter.
    columns: offsets in elements.
    tables: the numbers of each scalar parameter that differ.
    """
    count = columns.shape[1]
    starts = [0]
    if count > 1:
        before = _latest_dependence(spec, columns)
        if (before >= 0).any():
            start = 0
            for call, earlier in enumerate(before.tolist()):
                if earlier >= start:
                    start = call
                    starts.append(call)
    found = []
    for start, stop in zip(starts, [*starts[1:], count], strict=True):
        offsets = tuple([_column(column[start:stop]) for column in columns])
        scalars = tuple([None if t is None else t[start:stop].tobytes() for t in tables])
        found.append(Round(stop - start, offsets, scalars))
    return tuple(found)


def _column(offsets: Numbers) -> int | tuple[int, int] | bytes:
    first = int(offsets[0])
    if len(offsets) == 1:
        return first
    step = int(offsets[1]) - first
    if (np.diff(offsets) != step).any():
        return offsets.tobytes()
    return (first, step) if step else first


def _latest_dependence(spec: Spec, columns: Numbers) -> Numbers:
    """For every call the latest earlier one that must come before it; -1 where there is none."""
    arrays = [each for each in spec.parameters if isinstance(each, ArrayParameter)]
    count = columns.shape[1]
    found = np.full(count, -1, np.int64)
    for slot, base in enumerate(spec.slots):
        if base.part < 0:
            continue
        members = [number for number, array in enumerate(arrays) if array.slot == slot]
        unit = int(np.gcd.reduce([arrays[number].dtype.itemsize for number in members]))
        touched: dict[tuple[Any, ...], bool] = {}
        for number in members:  # the same view twice counts once
            array = arrays[number]
            scale = array.dtype.itemsize // unit
            shape, strides = array.shape, tuple([scale * step for step in array.strides])
            if scale > 1:
                shape, strides = (*shape, scale), (*strides, 1)
            key = (shape, strides, (columns[number] * scale).tobytes())
            touched[key] = touched.get(key, False) or array.mode != "r"
        np.maximum(found, _within(list(touched.items()), count), out=found)
    return found


def _within(touched: list[tuple[tuple[Any, ...], bool]], count: int) -> Numbers:
    """`_latest_dependence` in one buffer, of regions (shape, strides, offsets) and whether they are
    written."""
    if len(touched) == 1:
        (shape, strides, offsets), _ = touched[0]
        if _apart(shape, strides, np.frombuffer(offsets, np.int64)):
            return np.full(count, -1, np.int64)
    regions: list[Region] = []
    for (shape, strides, offsets), _ in touched:
        places = np.frombuffer(offsets, np.int64).tolist()
        regions += [(shape, place, strides) for place in places]
    owners, elements = elements_of(regions)
    if owners is None or elements is None:  # too many to look at: one after the other
        return np.arange(-1, count - 1, dtype=np.int64)
    kinds = np.repeat([is_written for _, is_written in touched], count)
    # One touch for each element and call, in order of the calls; written if it is by any region.
    if not len(elements):
        return np.full(count, -1, np.int64)
    keys = elements * count + owners % count
    order = np.argsort(keys, kind="stable")
    keys, written = keys[order], kinds[owners[order]]
    first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    written = np.logical_or.reduceat(written, first)
    keys = keys[first]
    element, call = keys // count, keys % count
    found = np.full(count, -1, np.int64)
    # What writes waits for the last touch of any kind, what reads for the last write.
    places = np.arange(len(keys))
    last_write = np.maximum.accumulate(np.where(written, places, -1))
    earlier = np.where(written[1:], places[:-1], last_write[:-1])
    hit = (earlier >= 0) & (element[earlier] == element[1:])
    np.maximum.at(found, call[1:][hit], call[earlier[hit]])
    return found


def _apart(shape: tuple[int, ...], strides: tuple[int, ...], offsets: Numbers) -> bool:
    """Whether regions of one form lie one behind the other, as the rows of an array do, in any
    order."""
    if 0 in shape:
        return True
    reach = sum([abs(step) * (extent - 1) for extent, step in zip(shape, strides, strict=True)])
    return bool((np.diff(np.sort(offsets)) > reach).all())

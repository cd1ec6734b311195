"""Follows a plan in NumPy, launch by launch, in the memory that the plan gives to each value.

What a plan computes is seen without a device: the kernels are taken as they are recorded, not as
OpenCL C. A phase loads everything before it stores anything, which `hazards` has said to be the
same. Tiles, selections, sorts and folds in pieces are not followed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.schedule.memory.hazards import place_of
from clfuse.schedule.planner import plan
from clfuse.schedule.records import (
    Access,
    Carried,
    Copy,
    Held,
    Index,
    Kernel,
    LibraryCall,
    Load,
    Prefix,
    Scalar,
    Schedule,
    Step,
)
from clfuse.schedule.verify import verify
from clfuse.target.traits import DeviceTraits


class NotFollowed(Exception):
    """A launch of a kind that is left out here."""


class HeldBuffer:
    """The bytes of an array, in place of a device's memory."""

    exported = False

    def __init__(self, array: Any) -> None:
        self.array = array


def computed(
    roots: list[Node], traits: DeviceTraits, *, fuse: bool = True
) -> tuple[list[Any], Schedule]:
    """The values of nodes by the plan for them, and the plan."""
    snapshot = take(roots)
    schedule = plan(snapshot, traits, fuse=fuse)
    verify(schedule)
    return _Memory(schedule, snapshot).run(roots), schedule


class _Memory:
    def __init__(self, schedule: Schedule, snapshot: Snapshot) -> None:
        self.schedule = schedule
        self.snapshot = snapshot
        self.bytes: dict[Any, Any] = {}
        for number, buffer in enumerate(snapshot.buffers):
            self.bytes["buffer", number] = buffer.array.reshape(-1).view("u1").copy()
        for number, nbytes in enumerate(schedule.slots):
            if number not in schedule.reuses:
                self.bytes["slot", number] = np.full(nbytes, 0xA5, "u1")

    def run(self, roots: list[Node]) -> list[Any]:
        for launch in self.schedule.launches:
            if isinstance(launch, Copy):
                self.of(launch.target)[: launch.nbytes] = self.of(launch.source)[: launch.nbytes]
            elif isinstance(launch, Kernel):
                self.kernel(launch)
            elif isinstance(launch, LibraryCall) and launch.name == "table":
                self.table(launch)
            else:
                raise NotFollowed(launch)
        position = {id(node): number for number, node in enumerate(self.snapshot.nodes)}
        found = []
        for root in roots:
            value = self.schedule.keeps[position[id(root)]]
            nbytes = math.prod(root.shape) * root.dtype.itemsize
            found.append(self.of(value)[:nbytes].view(root.dtype).reshape(root.shape).copy())
        return found

    def of(self, value: int, dtype: Any = "u1") -> Any:
        return self.bytes[place_of(self.schedule, value)].view(dtype)

    def number(self, constant: int) -> Any:
        node = self.snapshot.nodes[constant]
        return np.frombuffer(node.param, node.dtype)[0]

    def table(self, call: LibraryCall) -> None:
        if call.param is not None:
            values = np.frombuffer(call.param, call.dtype)
        else:
            values = np.array([self.number(constant) for _, constant in sorted(call.scalars)],
                              call.dtype)
        self.of(call.target, call.dtype)[: values.size] = values

    def kernel(self, kernel: Kernel) -> None:
        if kernel.tiling is not None or kernel.selection is not None or kernel.chunks > 1:
            raise NotFollowed(kernel)
        rows: dict[int, Any] = {}
        self.held: dict[int, Any] = {}
        if kernel.where:  # sisters: each loads before any of them stores
            for store in [each for phase in kernel.phases for each in self.phase(phase, rows)]:
                self.put(*store)
            return
        for phase in kernel.phases:
            for store in self.phase(phase, rows):
                self.put(*store)

    def put(self, store: Any, elements: Any, inside: Any, values: Any) -> None:
        values = np.broadcast_to(values, elements.shape).astype(store.dtype)
        self.of(store.value, store.dtype)[elements[inside]] = values[inside]

    def phase(self, phase: Kernel, rows: dict[int, Any]) -> list[Any]:
        """What a phase stores, once its loads are done."""
        axes = np.indices(phase.extents, sparse=True) if phase.extents else []
        kept = len(phase.extents) - phase.reduced
        here = np.ones(phase.extents, bool)
        if phase.where:
            here[...] = False
            for box in phase.where:
                here[tuple([slice(first, end) for first, end in box])] = True
        registers: dict[int, Any] = {}

        def wide(values: Any) -> Any:
            """What there is for each row, for each of its elements."""
            values = np.asarray(values)
            return values.reshape(values.shape + (1,) * phase.reduced)

        for item in phase.body:
            if isinstance(item, Carried):
                registers[item.var] = wide(rows[item.source])
            elif isinstance(item, Held):
                registers[item.var] = self.held[item.source]
            else:
                registers[item.var] = self.item(item, registers, axes, phase.extents, here)
        self.held.update(registers)
        stores = [
            (store, *_elements(store.access, axes, phase.extents, here), registers[store.var])
            for store in phase.stores
        ]
        folded = tuple(range(kept, len(phase.extents)))
        for accumulator in phase.accumulators:
            if accumulator.position is not None or accumulator.partial is not None:
                raise NotFollowed(phase)
            values = np.broadcast_to(registers[accumulator.operand], phase.extents)
            fold = getattr(np, accumulator.name).reduce
            values = values.astype(accumulator.dtype)
            if not here.all():
                raise NotFollowed(phase)
            rows[accumulator.var] = fold(values, axis=folded)
        before = np.indices(phase.extents[:kept], sparse=True) if kept else []
        everywhere = np.ones(phase.extents[:kept], bool)
        for item in phase.epilogue:
            rows[item.var] = self.item(item, rows, before, phase.extents[:kept], everywhere)
        for store in phase.results:
            place = _elements(store.access, before, phase.extents[:kept], everywhere)
            stores.append((store, *place, rows[store.var]))
        return stores

    def item(
        self, item: Any, registers: dict[int, Any], axes: Any, extents: tuple[int, ...], here: Any
    ) -> Any:
        if isinstance(item, Scalar):
            return self.number(item.constant).astype(item.dtype)
        if isinstance(item, Index):
            return _elements(item.access, axes, extents, here)[0]
        if isinstance(item, Load):
            elements, inside = _elements(item.access, axes, extents, here)
            if item.position is not None:
                elements = elements + registers[item.position]
            memory = self.of(item.value, item.dtype)
            other = 0 if item.other is None else registers[item.other]
            return np.where(inside, memory[np.where(inside, elements, 0)], other).astype(item.dtype)
        if isinstance(item, Step):
            operands = [registers[each] for each in item.operands]
            with np.errstate(all="ignore"):
                return np.asarray(_loop(item, operands)).astype(item.dtype)
        if isinstance(item, Prefix) and item.partial is None:
            values = np.broadcast_to(registers[item.operand], extents).astype(item.dtype)
            return getattr(np, item.name).accumulate(values, axis=-1)
        raise NotFollowed(item)


def _loop(item: Step, operands: list[Any]) -> Any:
    if item.op.name == "cast":
        return operands[0]
    casts = [np.asarray(each).astype(dtype)
             for each, dtype in zip(operands, item.op.input_dtypes, strict=True)]
    return getattr(np, item.op.name)(*casts)


def _elements(access: Access, axes: Any, extents: tuple[int, ...], here: Any) -> tuple[Any, Any]:
    """The elements that an access names, and where there are any."""
    elements = np.full(extents, access.offset)
    inside = here.copy()
    for axis, stride in zip(axes, access.strides, strict=True):
        elements = elements + axis * stride
    for dim, first, by in access.jumps:
        elements = elements + np.where(axes[dim] >= first, by, 0)
    for dim, first, end in access.within:
        inside = inside & (axes[dim] >= first) & (axes[dim] < end)
    return elements, inside

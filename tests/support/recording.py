"""Records small programs without a device: nodes on stand-in buffers, planned for plain traits."""

from __future__ import annotations

from typing import Any

import numpy as np

from clfuse.ir import build, nodes
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Kernel, Schedule
from clfuse.schedule.traffic import reads_of, writes_of
from clfuse.schedule.verify import verify
from clfuse.target.traits import DeviceTraits

TRAITS = DeviceTraits(vector_bytes=64, work_items=64, compute_units=2)
FLOAT64 = np.dtype(np.float64)
BOOL = np.dtype(np.bool_)


class StandInBuffer:
    """Bytes that nobody needs to have."""

    exported = False


def array(*shape: int, dtype: Any = np.float64) -> Node:
    """An array that lies in memory already."""
    return build.leaf(StandInBuffer(), shape, np.dtype(dtype))


def number(value: float) -> Node:
    """A float64 scalar of the program."""
    return build.constant(np.float64(value))


def call(name: str, *operands: Node, dtype: np.dtype | None = None) -> Node:
    """An element-wise operation, by the op table's name."""
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    dtypes = tuple([operand.dtype for operand in operands])
    return build.elementwise(nodes.loop(name, dtypes, dtype or operands[0].dtype), operands, shape)


def joined_apart(size: int, parts: int = 17) -> Node:
    """Every element, every second, every third ... of arrays of `size`, in one vector: more ways of
    loading than one kernel has bodies."""
    each = [array(size) for _ in range(parts)]
    views = [
        build.view(node, (size // step,), 0, (step,)) for step, node in enumerate(each, 1)
    ]
    return build.concatenate(views, 0)


def roll(node: Node, count: int, axis: int) -> Node:
    extent = node.shape[axis]
    strides = build.contiguous_strides(node.shape)
    parts = []
    for start, stop in ((extent - count, extent), (0, extent - count)):
        shape = list(node.shape)
        shape[axis] = stop - start
        parts.append(build.view(node, tuple(shape), start * strides[axis], strides))
    return build.concatenate(parts, axis)


def softmax(x: Node) -> Node:
    """Of the last axis."""
    rows = (*x.shape[:-1], 1)
    most = build.reshape(build.reduce("maximum", x, (len(x.shape) - 1,), FLOAT64), rows)
    powers = call("exp", call("subtract", x, most))
    total = build.reshape(build.reduce("add", powers, (len(x.shape) - 1,), FLOAT64), rows)
    return call("divide", powers, total)


def planned(*roots: Node, fuse: bool = True, traits: DeviceTraits = TRAITS) -> Schedule:
    """The schedule that evaluating `roots` together would follow."""
    schedule = plan(take(list(roots)), traits, fuse=fuse)
    verify(schedule)
    return schedule


def kernels(schedule: Schedule) -> list[Kernel]:
    """Its generated kernels, in order."""
    return [launch for launch in schedule.launches if isinstance(launch, Kernel)]


def moved_nbytes(schedule: Schedule) -> int:
    """Bytes of global memory that its kernels move."""
    return sum(
        nbytes
        for kernel in kernels(schedule)
        for _, _, nbytes in reads_of(kernel, schedule) + writes_of(kernel, schedule)
    )

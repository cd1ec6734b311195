"""``a[1:-1] = f(a)`` in one, two and three dimensions, and loops of it: bytes, launches, memory."""

from __future__ import annotations

import math

import pytest

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node
from tests.support.recording import array, call, kernels, moved_nbytes, number, planned

SHAPES = [(40_000,), (200, 300), (40, 50, 60)]
STEPS = 6


def step(a: Node) -> Node:
    """The mean of the neighbours along every axis, written to all but the border."""
    strides = contiguous_strides(a.shape)
    inner = tuple([extent - 2 for extent in a.shape])
    middle = sum(strides)
    total = None
    for stride in strides:
        for offset in (middle - stride, middle + stride):
            part = build.view(a, inner, offset, strides)
            total = part if total is None else call("add", total, part)
    assert total is not None
    return build.update(a, call("multiply", total, number(0.125)), middle, strides)


def border_nbytes(shape: tuple[int, ...]) -> int:
    return 8 * (math.prod(shape) - math.prod([extent - 2 for extent in shape]))


@pytest.mark.parametrize("shape", SHAPES, ids=len)
def test_one_step_reads_once_writes_once_and_copies_the_border(shape: tuple[int, ...]) -> None:
    schedule = planned(step(array(*shape)))
    inner = 8 * math.prod([extent - 2 for extent in shape])
    assert len(schedule.slots) - len(schedule.reuses) == 1
    everything = 8 * math.prod(shape) + inner + 2 * border_nbytes(shape)
    assert moved_nbytes(schedule) <= everything
    assert len(kernels(schedule)) == len(schedule.launches) <= 1 + 2 * len(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=len)
def test_a_loop_takes_two_buffers_and_copies_the_border_once(shape: tuple[int, ...]) -> None:
    a = array(*shape)
    for _ in range(STEPS):
        a = step(a)
    schedule = planned(a)
    assert set(schedule.slots) == {8 * math.prod(shape)}
    assert len(schedule.slots) - len(schedule.reuses) == 1, "one beside the array itself"
    assert len(schedule.launches) <= STEPS + 2 * len(shape)
    inner = 8 * math.prod([extent - 2 for extent in shape])
    each = 8 * math.prod(shape) + inner
    assert moved_nbytes(schedule) <= STEPS * each + 2 * border_nbytes(shape)

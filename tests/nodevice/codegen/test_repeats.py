"""Equal kernels of one plan are written once, with the text and arguments that each would get."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.codegen import repeats
from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.dataflow import storage_roots
from clfuse.schedule.records import Schedule
from tests.support.recording import TRAITS, array, call, kernels, number, planned


def chain(x: Node, y: Node, steps: int) -> Node:
    value = x
    for step in range(steps):
        value = call("add", call("multiply", value, y if step % 2 else x), number(step / 8))
    return value


def alike_and_not() -> list[Node]:
    """Small values, each a kernel of its own: some alike, others differ in one thing alone."""
    results = []
    for size, offset, name, dtype in [
        (50, 0, "add", "f8"), (50, 0, "add", "f8"), (50, 3, "add", "f8"), (51, 0, "add", "f8"),
        (50, 0, "multiply", "f8"), (50, 0, "add", "f4"), (50, 0, "maximum", "f8"),
    ]:  # fmt: skip
        part = build.view(array(60, dtype=dtype), (size,), offset, (1,))
        results.append(call(name, part, part))
        results.append(call(name, part, array(size, dtype=dtype)))
    return results


def written(schedule: Schedule) -> int:
    """How many texts were written; each kernel has what it would have alone."""
    root = storage_roots(schedule)
    shared = repeats.Repeats(TRAITS, root)
    for kernel in kernels(schedule):
        assert shared.render(kernel) == render(kernel, TRAITS, root)
    return len(shared._known)


def test_a_long_chain_is_written_once_or_twice() -> None:
    x, y = array(1000), array(1000)
    schedule = planned(chain(x, y, 2000))
    assert len(kernels(schedule)) > 10
    assert written(schedule) <= 8


@pytest.mark.parametrize("fuse", [True, False])
def test_kernels_that_differ_in_anything_are_not_confused(fuse: bool) -> None:
    schedule = planned(*alike_and_not(), fuse=fuse)
    assert 1 <= written(schedule) <= len(kernels(schedule))
    x = array(64)
    update = build.update(x, call("negative", build.view(x, (10,), 0, (1,))), 20, (2,))
    other = build.update(x, call("negative", build.view(x, (10,), 5, (1,))), 20, (2,))
    assert written(planned(update, other, fuse=fuse)) >= 1
    mask = call("less", x, number(np.inf), dtype=np.dtype(bool))
    assert written(planned(mask, build.reduce("add", x, (0,), x.dtype), fuse=fuse)) >= 1

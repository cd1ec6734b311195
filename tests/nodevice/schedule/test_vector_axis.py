"""Along which dimension vectors lie, where rows are shorter than a vector."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel
from clfuse.target.traits import DeviceTraits
from tests.support.recording import array, call, kernels, planned

CPU = DeviceTraits(vector_bytes=64, light_vector_bytes=0)
ROWS = 100_000


def kernel_of(node: Node) -> Kernel:
    (kernel,) = kernels(planned(node, traits=CPU))
    return kernel


def column(x: Node, rows: int = ROWS) -> Node:
    return build.view(x, (rows, 1), 0, (1, 1))


@pytest.mark.parametrize(("columns", "width"), [(2, 2), (3, 2), (4, 4), (5, 4), (7, 4)])
def test_cheap_rows_are_walked_along(columns: int, width: int) -> None:
    scaled = call("multiply", array(ROWS, columns), column(array(ROWS)))
    for node in (scaled, call("multiply", array(columns), column(array(ROWS)))):
        kernel = kernel_of(node)
        assert kernel.extents == (ROWS, columns)
        assert kernel.width == width


def test_heavy_operations_are_worth_the_strides() -> None:
    x = call("multiply", array(ROWS, 3), column(array(ROWS)))
    kernel = kernel_of(call("sin", call("exp", x)))
    assert kernel.extents == (3, ROWS)
    assert kernel.width == 8


def test_few_long_rows_are_walked_along() -> None:
    scaled = call("multiply", array(3, ROWS), build.view(array(3), (3, 1), 0, (1, 1)))
    kernel = kernel_of(scaled)
    assert kernel.extents == (3, ROWS)
    assert kernel.width == 8


def test_short_rows_of_floats_are_walked_along_too() -> None:
    x = array(ROWS, 12, dtype=np.float32)
    kernel = kernel_of(call("multiply", x, column(array(ROWS, dtype=np.float32))))
    assert kernel.extents == (ROWS, 12)
    assert kernel.width == 8

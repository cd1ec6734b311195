"""No kernel over ten million elements is the work of few work-items on a GPU, whatever it computes
and however its array lies; scans are in `test_scans`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import BOOL, array, call, planned

GPU = replace(
    with_schedule(
        DeviceTraits(
            kind="gpu", compute_units=132, local_nbytes=48 << 10, unified_memory=False,
            max_parameter_nbytes=4096,
        ),
        "gpu",
    ),
    groups_progress=True,
)
LARGE = 1_000_000
LEAST = 8_000
FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)
SHAPES = [(10_000_000,), (10, 1_000_000), (1_000_000, 10), (3200, 3200), (2, 5_000_000),
          (5_000_000, 2), (100, 100, 1000)]


def few(*roots: Node) -> list[tuple[str, tuple[int, ...], int]]:
    """The large kernels of a plan with too few work-items; there is a large one."""
    launches = planned(*roots, traits=GPU).launches
    large = [
        launch for launch in launches
        if isinstance(launch, Kernel) and math.prod(launch.extents) >= LARGE
    ]
    assert large
    return [
        (launch.label, launch.extents, launch.work_items)
        for launch in large if launch.work_items < LEAST
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_folds_along_every_axis(shape: tuple[int, ...]) -> None:
    for dtype in (FLOAT32, np.dtype(np.float64), np.dtype(np.float16), np.dtype(np.complex128)):
        x = array(*shape, dtype=dtype)
        for axes in (*[(axis,) for axis in range(len(shape))], tuple(range(len(shape)))):
            for name in ("add", "multiply", "maximum"):
                assert not few(build.reduce(name, x, axes, dtype)), (name, dtype, axes)
            assert not few(build.arg_reduce("argmin", x, axes)), (dtype, axes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_maps_and_views(shape: tuple[int, ...]) -> None:
    x = array(*shape, dtype=FLOAT32)
    reverse = build.view(
        x, shape[::-1], 0, build.contiguous_strides(shape)[::-1]
    )
    assert not few(call("sin", x))
    assert not few(call("sin", reverse))


def test_places_that_are_computed() -> None:
    n = 10_000_000
    x, places = array(n, dtype=FLOAT32), array(n, dtype=INT32)
    assert not few(build.gather(x, places, (n,), 0, (0,)))
    assert not few(build.library("tally", [places], (1056, 64), INT32))
    for size in (1000, n, 20 * n):
        old = array(size, dtype=FLOAT32)
        for plain in (False, True):
            param = ("set", (n,), 0, (0,), 0, plain)
            assert not few(build.library("scatter", (old, places, x), (size,), FLOAT32, param))
        for how in ("add", "divide"):
            assert not few(build.library("segments", (old, places, x), (size,), FLOAT32, how))


def test_selections() -> None:
    x = array(10_000_000, dtype=FLOAT32)
    mask = call("greater", x, x, dtype=BOOL)
    assert not few(build.reduce("add", build.cast(mask, INT32), (0,), INT32))

"""Long scans on a GPU are one pass, in which the groups of tiles look back at each other: results
are NumPy's for numbers that no rounding touches, and the same on every run for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.engine.evaluate import forget_plans
from clfuse.target.traits import with_schedule
from tests.support.agreement import Batch, host

TILE_OF_FLOATS = 4096
LONG = 70_001


@pytest.fixture(autouse=True)
def looking_back(xp: ModuleType) -> Iterator[None]:
    """A GPU's schedule, with groups that may wait for others: those of the CPU that runs it begin
    in the order of their tickets, too."""
    device = xp.get_device()
    traits = with_schedule(replace(device.untuned_traits, compute_units=64), "gpu")
    with ExitStack() as stack:
        forget_plans()
        stack.callback(forget_plans)
        stack.enter_context(device.trying(replace(traits, groups_progress=True)))
        yield


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), [
    ("add", "float32"), ("add", "float64"), ("add", "int8"), ("add", "int64"), ("add", "complex64"),
    ("add", "complex128"), ("maximum", "float16"), ("bitwise_xor", "uint16"), ("multiply", "int8"),
    ("logical_and", "bool"), ("logical_xor", "bool"), ("minimum", "uint64"),
])
def test_every_size_of_a_fold(xp: ModuleType, name: str, dtype: str) -> None:
    batch = Batch(xp)
    for shape in ((LONG,), (3, LONG), (2, 2, 9000)):
        data = numbers(dtype, shape)
        batch.same(f"{name} {dtype} {shape}", lambda m, n=name, d=data:
                   getattr(m, n).accumulate(m.array(d), axis=-1, dtype=d.dtype))
    batch.check()


@pytest.mark.parametrize("length", [
    TILE_OF_FLOATS - 1, TILE_OF_FLOATS, TILE_OF_FLOATS + 1, 3 * TILE_OF_FLOATS, LONG,
])
def test_every_rest_of_a_tile(xp: ModuleType, length: int) -> None:
    batch = Batch(xp)
    data = numbers("float32", (length,))
    batch.same(str(length), lambda m, d=data: m.cumsum(m.array(d) * 2) + 1)
    batch.check()


def test_what_is_around_a_scan_is_in_its_kernel(xp: ModuleType) -> None:
    batch = Batch(xp)
    data = numbers("float64", (LONG,))
    batch.same("read again behind it", lambda m: (x := m.array(data)) - m.cumsum(x[::-1]))
    batch.same("two scans", lambda m: m.cumsum(x := m.array(data)) + m.maximum.accumulate(x))
    batch.same("a part, in place", lambda m: written(m, data))
    batch.check()
    plan = xp.explain(xp.cumsum(xp.array(data) * 2) + 1)
    assert [kernel.kind for kernel in plan.kernels] == ["map", "scan"]
    assert "ticket" in plan.kernels[1].source


def written(m: Any, data: np.ndarray[Any, Any]) -> Any:
    x = m.array(data)
    x[3:-5] = m.cumsum(x[3:-5])
    x[1:] = m.cumsum(x[:-1])
    return x


def test_sums_of_floats_are_the_same_on_every_run(xp: ModuleType) -> None:
    data = np.random.default_rng(3).standard_normal(500_000).astype(np.float32)
    x = xp.array(data)
    found = [host(xp.cumsum(x * 1.5)).tobytes() for _ in range(8)]
    assert len(set(found)) == 1
    exact = np.cumsum(data.astype(np.float64) * 1.5)
    ours = np.frombuffer(found[0], np.float32)
    theirs = np.cumsum(data * np.float32(1.5))
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max()


def test_a_device_whose_groups_may_not_wait_reads_twice(xp: ModuleType) -> None:
    device = xp.get_device()
    traits = replace(device.traits, groups_progress=False)
    with device.trying(traits):
        forget_plans()
        plan = xp.explain(xp.cumsum(xp.array(numbers("float64", (LONG,)))))
        assert [kernel.kind for kernel in plan.kernels] == ["reduce", "scan"]
        assert "ticket" not in plan.kernels[1].source

"""What is larger than a device's memory: arrays are spilled, evaluations run in tiles, and what
cannot be done says so; under CLFUSE_MEMORY_LIMIT, on any device."""

from __future__ import annotations

import gc
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.config import override
from clfuse.counters import counters, reset_peak
from clfuse.runtime.context.pool import CALM_EVALUATIONS, Pool
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.blocks import pool_of
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.tools.check import driver_faults

LIMIT = 100_000
"""Bytes of memory."""

COUNT = 30_000
"""Elements of an array that is larger: 240,000 bytes of float64."""

evaluate = importlib.import_module("clfuse.engine.evaluate")

pytestmark = pytest.mark.clfuse_only


@pytest.fixture
def pool() -> Iterator[Pool]:
    """The device's pool, which may have no more than `LIMIT` bytes."""
    with override(memory_limit=LIMIT, host_us=0):
        gc.collect()
        found = pool_of(cf.get_device())
        yield found
        assert found.managed_nbytes <= LIMIT


def numbers(count: int = COUNT, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, count)


def table(rows: int = 300, columns: int = 100) -> Any:
    return numbers(rows * columns, 1).reshape(rows, columns)


# -- the setting -----------------------------------------------------------------------------------


def test_memory_stays_below_the_limit(pool: Pool) -> None:
    assert pool.limit_nbytes == LIMIT
    arrays = [cf.asarray(numbers(5_000, seed)) + 1 for seed in range(8)]
    for array in arrays:
        cf.evaluate(array)
        assert pool.managed_nbytes <= LIMIT
    for seed, array in enumerate(arrays):
        np.testing.assert_array_equal(array.get(), numbers(5_000, seed) + 1)


def test_the_limit_ends_with_the_setting() -> None:
    pool = pool_of(cf.get_device())
    before = pool.limit_nbytes, pool.is_tight
    with override(memory_limit="64K"):
        assert pool.limit_nbytes == 65_536
        assert pool.is_tight
        with override(memory_limit="1M"):
            assert pool.limit_nbytes == 1 << 20
    assert (pool.limit_nbytes, pool.is_tight) == before


def test_unused_memory_is_given_back_when_the_limit_is_set() -> None:
    with override(host_us=0):
        cf.evaluate(cf.asarray(numbers()) + 1)
        gc.collect()
        pool = pool_of(cf.get_device())
        with override(memory_limit=pool.managed_nbytes - pool.held_nbytes + 1):
            assert pool.managed_nbytes <= pool.limit_nbytes


# -- spilled arrays --------------------------------------------------------------------------------


def stored(count: int, seed: int) -> Any:
    """An array in the device's memory."""
    made = cf.asarray(numbers(count, seed)) * 1.0
    cf.evaluate(made)
    return made


def is_spilled(array: Any) -> bool:
    return type(array._storage.node.buffer) is HostBuffer


def test_idle_arrays_are_spilled_the_longest_unused_first(pool: Pool) -> None:
    arrays = [stored(3_000, seed) for seed in range(4)]  # 24,000 bytes each, and some to be rounded
    assert not any(map(is_spilled, arrays[1:]))
    before = dict(counters)
    cf.evaluate(arrays[0] + 1, arrays[1] * 2)  # these are used again
    more = [stored(3_000, seed) for seed in range(4, 6)]
    assert is_spilled(arrays[2])
    assert is_spilled(arrays[3])
    assert not is_spilled(more[-1])
    spills = counters["spills"] - before["spills"]
    assert spills >= 2
    assert counters["bytes_spilled"] - before["bytes_spilled"] >= 48_000
    for seed, array in enumerate(arrays + more):
        np.testing.assert_array_equal(array.get(), numbers(3_000, seed))


def test_a_spilled_array_is_brought_back_for_a_kernel(pool: Pool) -> None:
    first = stored(3_000, 0)
    others = [stored(3_000, seed) for seed in range(1, 5)]
    assert is_spilled(first)
    np.testing.assert_array_equal((first + 1).get(), numbers(3_000, 0) + 1)
    assert first._storage.node.buffer.copy is not None
    spills = counters["spills"]
    del others
    kept = stored(5_000, 9), stored(5_000, 10)
    assert first._storage.node.buffer.copy is None
    assert counters["spills"] == spills
    np.testing.assert_array_equal(first.get(), numbers(3_000, 0))
    np.testing.assert_array_equal(kept[1].get(), numbers(5_000, 10))


def test_writing_to_a_spilled_array_and_to_views_of_it(pool: Pool) -> None:
    array, expected = stored(3_000, 0), numbers(3_000, 0)
    view = array[10:2_000:3]
    others = [stored(3_000, seed) for seed in range(1, 5)]
    assert is_spilled(array)
    view += 1
    array[5] = 7
    expected[10:2_000:3] += 1
    expected[5] = 7
    np.testing.assert_array_equal(array.get(), expected)
    np.testing.assert_array_equal(view.get(), expected[10:2_000:3])
    for seed, other in enumerate(others, 1):
        np.testing.assert_array_equal(other.get(), numbers(3_000, seed))


def test_what_somebody_looks_at_stays_where_it_is(pool: Pool) -> None:
    array = stored(3_000, 0)
    buffer = array._storage.node.buffer
    view = buffers.host_view(buffer, np.float64, (3_000,))
    held = buffer  # as a launch holds its operands, and a capsule what it was made of
    others = [stored(3_000, seed) for seed in range(1, 6)]
    assert array._storage.node.buffer is held
    np.testing.assert_array_equal(view, numbers(3_000, 0))
    del view, held, buffer
    others += [stored(3_000, seed) for seed in range(6, 8)]
    assert is_spilled(array)


def test_memory_that_is_shared_is_not_spilled(pool: Pool) -> None:
    if cf.get_device().traits.kind != "cpu":
        pytest.skip("only a CPU shares memory")
    memory = numbers(3_000)
    array = cf.asarray(memory, copy=False)
    kept = [stored(3_000, seed) for seed in range(6)]
    assert type(array._storage.node.buffer).__name__ == "SharedBuffer"
    memory[:] = 3
    assert float(array[7]) == 3
    del kept


def test_nothing_is_spilled_where_there_is_memory() -> None:
    with override(host_us=0):
        before = counters["spills"], counters["tiles"]
        arrays = [stored(3_000, seed) for seed in range(8)]
        assert (counters["spills"], counters["tiles"]) == before
        del arrays


def test_an_array_that_does_not_fit_waits_on_the_host(pool: Pool) -> None:
    reset_peak()
    array = cf.asarray(numbers())
    assert is_spilled(array)
    np.testing.assert_array_equal(array.get(), numbers())
    assert float(array[123]) == numbers()[123]


# -- tiles -----------------------------------------------------------------------------------------

Program = Callable[..., Any]


def softmax(np: Any, m: Any) -> Any:
    e = np.exp(m - m.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def written(np: Any, m: Any) -> Any:
    m = m.copy()
    m[1:-1] = (m[2:] + m[:-2]) * 0.5
    m[::3] *= 2
    m[:, 5] = 7
    m[10] = m[20] + 1
    m[::-1][3:50, ::-2] += 1
    return m


def mixed(np: Any, m: Any) -> Any:
    y = np.sin(m) * 2
    total = y.sum()
    return y, total, y - total, y.mean(0), (y > 0).sum(1)


PROGRAMS: dict[str, tuple[Program, int]] = {
    "map": (lambda np, x, y, m: np.sin(x) * y + 1, 1),
    "no operands": (lambda np, x, y, m: np.arange(COUNT) * 2.5 - 1, 1),
    "broadcast": (lambda np, x, y, m: m * np.arange(100.0) + np.arange(300.0)[:, None], 1),
    "fold": (lambda np, x, y, m: (x * y).sum(), 1),
    "folds": (lambda np, x, y, m: (x.max(), x.min(), np.any(x > 0.99), (x > 0).sum()), 1),
    "variance": (lambda np, x, y, m: ((x - x.mean()) / x.std(), x.var()), 2),
    "positions": (
        lambda np, x, y, m: (x.argmax(), m.argmin(), m.argmax(0), m.argmin(1), m[::-1].argmax()), 1
    ),
    "rows": (lambda np, x, y, m: (m.sum(1), m.max(1)), 1),
    "columns": (lambda np, x, y, m: (m.sum(0), np.abs(m).max(0)), 1),
    "softmax": (lambda np, x, y, m: softmax(np, m), 1),
    "scan": (lambda np, x, y, m: np.cumsum(x), 1),
    "scans": (lambda np, x, y, m: (m.cumsum(0) + 1, m.cumsum(1), np.maximum.accumulate(x)), 2),
    "transposed": (lambda np, x, y, m: m.T * 2 + 1, 1),
    "reversed": (lambda np, x, y, m: x[::-1] - x, 1),
    "stencil": (lambda np, x, y, m: x[2:] + x[:-2] - 2 * x[1:-1], 1),
    "joined": (lambda np, x, y, m: np.concatenate([x, y * 2, x[:100]]), 1),
    "reshaped": (lambda np, x, y, m: (x.reshape(60, 500) + np.arange(500)).reshape(-1), 1),
    "bytes": (lambda np, x, y, m: x.view("u4")[::2] + 1, 1),
    "written": (lambda np, x, y, m: written(np, m), 1),
    "product": (lambda np, x, y, m: m @ m[:100, :7], 1),
    "chosen": (lambda np, x, y, m: np.arange(50.0)[(np.abs(x) * 49).astype(int)], 1),
    "mixed": (lambda np, x, y, m: mixed(np, m), 2),
    "an element": (lambda np, x, y, m: (np.sin(m) * 2)[150, 3] + m.sum(1)[7], 0),
}


def assert_as_numpy(program: Program, *arrays: Any) -> None:
    expected = program(np, *arrays)
    found = program(cf, *[cf.asarray(array) for array in arrays])
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    cf.evaluate(*found)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_larger_than_memory_is_computed_in_tiles(pool: Pool, name: str) -> None:
    program, least = PROGRAMS[name]
    arrays = numbers(), numbers(seed=2), table()
    before = counters["tiles"]
    reset_peak()
    assert_as_numpy(program, *arrays)
    assert counters["tiles"] - before >= 2 * least


@pytest.mark.parametrize("name", ["mixed", "written", "scans"])
def test_tiles_where_numpy_has_what_is_small(name: str) -> None:
    with override(memory_limit=LIMIT, host_us=50, build_after_ms=0):
        assert_as_numpy(PROGRAMS[name][0], numbers(), numbers(seed=2), table())


def test_tiles_have_one_plan_and_one_kernel(pool: Pool) -> None:
    x = cf.asarray(numbers())
    cf.evaluate(cf.exp(x) * 3)
    before = dict(counters)
    cf.evaluate(cf.exp(x) * 3)
    assert counters["tiles"] - before["tiles"] > 10
    assert counters["programs_built"] == before["programs_built"]
    assert counters["plans_made"] - before["plans_made"] <= 1


def test_sums_of_tiles_are_as_accurate_as_sums(pool: Pool) -> None:
    values = numbers(200_000).astype(np.float32) + np.float32(1)
    exact = values.astype(np.float64).sum()
    found = float(cf.asarray(values).sum())
    # NumPy's pairwise sum is within some units of the last place of the result.
    assert abs(found - exact) <= 8 * np.spacing(np.float32(exact))


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool", "complex128"])
def test_tiles_of_other_dtypes(pool: Pool, dtype: str) -> None:
    values = (numbers(80_000) * 100).astype(dtype)

    def program(np: Any, x: Any) -> Any:
        return x + x, x.sum(), np.cumsum(x)

    expected = program(np, values)
    found = program(cf, cf.asarray(values))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        # NumPy's running sum of float32 is off by 0.02 itself.
        rtol, atol = (1e-6, 0.05) if dtype == "float32" else (1e-12, 1e-8)
        np.testing.assert_allclose(one.get(), other, rtol, atol)


def test_nan_and_infinities_in_tiles_are_numpys(pool: Pool) -> None:
    values = numbers()
    values[[17_000, 29_000]] = np.nan
    values[[3, 20_000]] = np.inf, -np.inf
    x = cf.asarray(values)
    assert int(x.argmax()) == 17_000
    assert int(cf.asarray(np.where(np.isnan(values), 0, values)).argmin()) == 20_000
    assert np.isnan(float(x.max()))
    assert float(cf.nanmax(x)) == np.inf
    np.testing.assert_array_equal(cf.cumsum(x).get(), np.cumsum(values))


def test_an_operand_that_leaves_no_room_is_brought_in_parts(pool: Pool) -> None:
    x = stored(10_000, 0)  # 80,000 of 100,000 bytes
    assert not is_spilled(x)
    np.testing.assert_array_equal((x * 2 + 1).get(), numbers(10_000, 0) * 2 + 1)


def test_a_loop_over_arrays_that_do_not_fit_together(pool: Pool) -> None:
    arrays = [cf.asarray(numbers(4_000, seed)) for seed in range(6)]
    expected = [numbers(4_000, seed) for seed in range(6)]
    for step in range(20):
        one, other = step % 6, (step + 1) % 6
        arrays[one] = arrays[one] * 0.5 + arrays[other]
        expected[one] = expected[one] * 0.5 + expected[other]
        cf.evaluate(arrays[one])
    for array, values in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array.get(), values)


def test_jitted_functions_run_in_tiles_too(pool: Pool) -> None:
    @cf.jit
    def step(x: Any, y: Any) -> Any:
        return cf.sin(x) * y + 1

    x = cf.asarray(numbers())
    for _ in range(3):
        before = counters["tiles"]
        np.testing.assert_allclose(step(x, x).get(), np.sin(numbers()) * numbers() + 1, 1e-12)
        assert counters["tiles"] > before


def test_memory_that_is_short_while_a_function_is_traced(pool: Pool) -> None:
    kept = [stored(3_000, seed) for seed in range(4)]

    @cf.jit
    def shifted(x: Any) -> Any:
        return x + cf.asarray(numbers(5_000, 9))[:3_000]

    for seed, array in enumerate(kept):
        np.testing.assert_array_equal(
            shifted(array).get(), numbers(3_000, seed) + numbers(5_000, 9)[:3_000]
        )


def test_a_jitted_draw_that_does_not_fit_draws_once(pool: Pool) -> None:
    def draw(generator: Any, count: int) -> Any:
        return generator.random(count) + 1

    expected = draw(cf.random.default_rng(7), COUNT).get()
    generator = cf.random.default_rng(7)
    jitted = cf.jit(lambda x: generator.random(COUNT) + x)
    np.testing.assert_array_equal(jitted(cf.asarray(np.ones(1))).get(), expected)


@pytest.mark.skipif(sys.flags.optimize > 1, reason="docstrings")
def test_explain_says_what_runs_in_tiles_and_what_was_spilled(pool: Pool) -> None:
    x = cf.asarray(numbers())
    text = str(cf.explain(cf.sin(x) + 1, (x * x).sum()))
    assert re.search(r"memory: [\d,]+ bytes of 100,000", text)
    assert re.search(r"add \(30000,\) of float64: tiles of [\d,]+ of 30,000 along axis 0", text)
    assert "of its input" in text
    first, others = stored(3_000, 0), [stored(3_000, seed) for seed in range(1, 5)]
    assert "spilled: input 0 (24,000 bytes) lies on the host" in str(cf.explain(first + 1))
    assert "memory" not in str(cf.explain(others[-1] + 1))


# -- what cannot be done ---------------------------------------------------------------------------


def test_what_cannot_be_tiled_is_an_error_and_stays_recorded() -> None:
    values = numbers()
    with override(host_us=0):
        x = cf.asarray(values)
        y, other = cf.sort(x * 2), x + 1
        with override(memory_limit=LIMIT):
            for _ in range(2):
                with pytest.raises(cf.AllocationError) as caught:
                    y.get()
                text = str(caught.value)
                for part in (r"240,000 bytes asked for", r"100,000 bytes", "CLFUSE_MEMORY_LIMIT",
                             "are in use", "are free", r"sort \(30000,\) of float64", "smaller"):
                    assert re.search(part, text), text
            np.testing.assert_array_equal(other.get(), values + 1)
        np.testing.assert_array_equal(y.get(), np.sort(values * 2))


def test_what_is_too_large_for_the_host_too_is_an_error(pool: Pool) -> None:
    huge = cf.zeros(10**13) + 1
    with pytest.raises(cf.AllocationError, match=r"80,000,000,000,000 bytes asked for"):
        huge.get()
    assert float(huge[3]) == 1


def test_a_sort_too_large_has_its_operands_computed_before(pool: Pool) -> None:
    x, y = numbers(4_000), numbers(4_000, 1)
    a, b = cf.asarray(x), cf.asarray(y)
    cf.evaluate(a, b)
    # Two operands, a temporary, the result and what a sort takes besides do not fit together.
    with suppress(cf.AllocationError):
        np.testing.assert_array_equal(cf.sort(a * 2 + b).get(), np.sort(x * 2 + y))
    np.testing.assert_array_equal((a - b).get(), x - y)


# -- nothing is lost -------------------------------------------------------------------------------


def workload() -> tuple[Any, ...]:
    """Arrays that are computed in tiles, written to in place, and spilled."""
    x, kept = cf.asarray(numbers()), cf.asarray(numbers(3_000, 5)) + 1
    cf.evaluate(kept)
    z = cf.asarray(numbers(4_000, 6)) * 1.0
    cf.evaluate(z)
    x += 1
    x[1:] += x[:-1] * 2
    z += 1
    y = (x - x.mean()) * 2
    return x, y, cf.cumsum(x), z, kept


def expected_of_workload() -> tuple[Any, ...]:
    x = numbers() + 1
    x[1:] += x[:-1] * 2
    return x, (x - x.mean()) * 2, np.cumsum(x), numbers(4_000, 6) + 1, numbers(3_000, 5) + 1


FAULTS = ["clCreateBuffer", "clEnqueueNDRangeKernel", "clEnqueueCopyBuffer", "clSetKernelArg"]


@pytest.mark.filterwarnings("ignore:.*which are right:clfuse.errors.KernelBuildWarning")
@pytest.mark.parametrize("name", [*FAULTS, "clEnqueueWriteBuffer"])
@pytest.mark.parametrize("first", [0, 3, 11, 40])
def test_a_driver_that_refuses_a_call_in_between_loses_nothing(
    pool: Pool, name: str, first: int
) -> None:
    device = cf.get_device()
    expected = expected_of_workload()
    cf.evaluate(*workload())  # kernels are built
    found: list[Any] = []
    with (
        driver_faults.failing(device, name, -5, first=first, times=2) as fault,
        suppress(cf.AllocationError),
    ):
        found += workload()
        cf.evaluate(*found)
    assert not device.lost
    assert fault.failed or name != "clEnqueueNDRangeKernel"  # others are not called everywhere
    for one, other in zip(found, expected, strict=bool(found)):
        np.testing.assert_allclose(one.get(), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("last", range(0, 12, 3))
def test_an_interrupt_between_tiles_loses_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    expected = expected_of_workload()
    found = workload()
    count = [0]

    def launch(device: Any, nodes: Any, plain: Any = evaluate._launch) -> None:
        plain(device, nodes)
        count[0] += 1
        if count[0] > last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "_launch", launch)
        with pytest.raises(KeyboardInterrupt):
            cf.evaluate(*found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.get(), other, rtol=1e-12, atol=1e-12)


def test_memory_short_within_a_tile_makes_smaller_tiles(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []

    def launch(device: Any, nodes: Any, plain: Any = evaluate._launch) -> None:
        rows.append(nodes[0].shape[0])
        if rows[-1] > 100:
            raise cf.AllocationError("short")
        plain(device, nodes)

    monkeypatch.setattr(evaluate, "_launch", launch)
    np.testing.assert_array_equal((cf.asarray(numbers()) * 2).get(), numbers() * 2)
    assert max(rows) > 100
    assert 50 <= rows[-2] <= 100


def test_a_device_that_was_short_once_spills_without_a_limit() -> None:
    """Where its memory is its own; the driver's refusal is the only sign."""
    from tests.support.own_memory import own_memory

    device = cf.get_device()
    with override(host_us=0), own_memory(device) as pool:
        arrays = [stored(3_000, seed) for seed in range(3)]
        before = counters["spills"]
        with driver_faults.failing(device, "clCreateBuffer", -4, times=4):
            more = stored(20_000, 9)
        assert counters["spills"] > before
        assert pool.is_tight
        for seed, array in enumerate(arrays):
            np.testing.assert_array_equal(array.get(), numbers(3_000, seed))
        np.testing.assert_array_equal(more.get(), numbers(20_000, 9))
        del arrays, more, array
        gc.collect()


def test_memory_that_was_short_is_short_no_longer_later() -> None:
    device = cf.get_device()
    pool = pool_of(device)
    with override(host_us=0):
        x = stored(1_000, 0)
        with driver_faults.failing(device, "clCreateBuffer", -4), suppress(cf.ClfuseError):
            stored(3_000_000, 1)
        assert pool.is_tight
        for turn in range(CALM_EVALUATIONS):
            np.testing.assert_array_equal((x + turn).get(), numbers(1_000) + turn)
        assert not pool.is_tight
        with override(memory_limit=LIMIT):
            assert pool.is_tight
            np.testing.assert_allclose(float(stored(COUNT, 0).sum()), numbers().sum())
        assert not pool.is_tight  # that was the limit's fault

"""What laziness shows and does not show: kernels counted, bytes counted, fallbacks counted.

Numbers of kernels are what the design promises for whole programs: one for an element-wise
expression of any length, one for a reduction with what produces it (two where it has two stages).
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise, assert_ulp, host
from tests.support.hostile import ordinary

pytestmark = pytest.mark.clfuse_only

Launched = Callable[[Callable[[], object]], int]
Setting = Callable[..., None]
SMALL_NBYTES = 4096  # rounding up of allocations, and partial results of a reduction


def ready(xp: ModuleType, *hosts: Any) -> list[Any]:
    """Arrays on the device, nothing recorded."""
    arrays = [xp.array(h) for h in hosts]
    xp.evaluate(*arrays)
    xp.synchronize()
    return arrays


def triad(xp: ModuleType, b: Any, c: Any) -> Any:
    return b + 3 * c


def sincos(xp: ModuleType, x: Any, _: Any) -> Any:
    return xp.sin(x) ** 2 + xp.cos(x) ** 2


def polynomial(xp: ModuleType, x: Any, _: Any) -> Any:
    y = x
    for step in range(10):
        y = y * x + (step - 4.5)
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", [triad, sincos, polynomial], ids=lambda f: f.__name__)
def test_an_element_wise_expression_is_one_kernel(program: Callable[..., Any], dtype: str,
                                                  xp: ModuleType, launched: Launched) -> None:
    data = ordinary(1, 10_000, dtype, "unit"), ordinary(2, 10_000, dtype, "unit")
    b, c = ready(xp, *data)
    results: list[Any] = []
    assert launched(lambda: xp.evaluate(results.append(program(xp, b, c)) or results[0])) == 1
    np.testing.assert_allclose(host(results[0]), program(np, *data), rtol=1e-5)


def black_scholes(xp: ModuleType, price: Any, strike: Any, years: Any) -> tuple[Any, Any]:
    """Call and put; the normal distribution after Abramowitz and Stegun, 26.2.17."""
    rate, volatility = 0.02, 0.3

    def normal(d: Any) -> Any:
        k = 1 / (1 + 0.2316419 * xp.abs(d))
        series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (
            -1.821255978 + 1.330274429 * k))))
        tail = 0.3989422804014327 * xp.exp(-0.5 * d * d) * series
        return xp.where(d > 0, 1 - tail, tail)

    root = volatility * xp.sqrt(years)
    d1 = (xp.log(price / strike) + (rate + 0.5 * volatility ** 2) * years) / root
    d2 = d1 - root
    discounted = strike * xp.exp(-rate * years)
    call = price * normal(d1) - discounted * normal(d2)
    return call, call + discounted - price


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_black_scholes_with_two_results_is_one_kernel(dtype: str, xp: ModuleType,
                                                      launched: Launched) -> None:
    random = np.random.default_rng(3)
    data = [random.uniform(5, 30, 10_000).astype(dtype), random.uniform(1, 100, 10_000).astype(
        dtype), random.uniform(0.25, 10, 10_000).astype(dtype)]
    inputs = ready(xp, *data)
    results: list[Any] = []

    def run() -> None:
        results.extend(black_scholes(xp, *inputs))
        xp.evaluate(*results)

    assert launched(run) == 1
    for actual, expected in zip(results, black_scholes(np, *data), strict=True):
        np.testing.assert_allclose(host(actual), expected,
                                   rtol=2e-3 if dtype == "float32" else 1e-9, atol=1e-4)


def test_a_sum_of_squares_is_at_most_two_kernels(xp: ModuleType, launched: Launched) -> None:
    data = ordinary(4, 1_000_000, "float64", "unit")
    (x,) = ready(xp, data)
    assert launched(lambda: xp.evaluate(((x - 0.5) ** 2).sum())) <= 2
    assert float(((x - 0.5) ** 2).sum()) == pytest.approx(float(((data - 0.5) ** 2).sum()),
                                                          rel=1e-12)


def test_several_sums_over_one_array_share_their_kernels(xp: ModuleType,
                                                         launched: Launched) -> None:
    (x,) = ready(xp, ordinary(5, (300, 400), "float64", "unit"))
    assert launched(lambda: xp.evaluate(x.sum(axis=1), (x * x).sum(axis=1), x.max(axis=1))) == 1


def forces(xp: ModuleType, x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    dx, dy, dz = (p[None, :] - p[:, None] for p in (x, y, z))
    inverse = (dx * dx + dy * dy + dz * dz + 1e-3) ** -1.5
    return tuple((d * inverse).sum(axis=1) for d in (dx, dy, dz))  # type: ignore[return-value]


@pytest.mark.usefixtures("uncollected")
def test_sums_of_all_pairs_are_one_kernel_without_the_matrix(
        xp: ModuleType, launched: Launched) -> None:
    bodies = 1000
    data = [ordinary(seed, bodies, "float64", "unit") for seed in (6, 7, 8)]
    inputs = ready(xp, *data)
    xp.counters.reset_peak()
    before = xp.stats()["device_bytes_now"]
    results: list[Any] = []

    def run() -> None:
        results.extend(forces(xp, *inputs))
        xp.evaluate(*results)

    assert launched(run) == 1
    assert xp.stats()["device_bytes_peak"] - before <= 3 * bodies * 8 + 3 * SMALL_NBYTES
    for actual, expected in zip(results, forces(np, *data), strict=True):
        np.testing.assert_allclose(host(actual), expected, rtol=1e-9, atol=1e-9)


def jacobi(xp: ModuleType, u: Any) -> Any:
    u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def test_a_jacobi_step_is_one_kernel_beside_the_border(
        xp: ModuleType, launched: Launched) -> None:
    size = 200
    data = ordinary(9, (size, size), "float64", "unit")
    (u,) = ready(xp, data)
    expected = data.copy()
    for _ in range(3):
        jacobi(xp, u)
        xp.evaluate(u)
        jacobi(np, expected)
    gc.collect()
    before = xp.stats()["device_bytes_now"]
    counts = []
    for _ in range(5):
        counts.append(launched(lambda: xp.evaluate(jacobi(xp, u))))
        jacobi(np, expected)
    gc.collect()
    assert max(counts) <= 5, "the stencil, and a copy of each side of the border"
    assert xp.stats()["device_bytes_now"] <= before + SMALL_NBYTES
    assert_bitwise(u, expected)


def test_ten_jacobi_steps_recorded_at_once_run_in_two_buffers(xp: ModuleType) -> None:
    size = 300
    data = ordinary(10, (size, size), "float64", "unit")
    (u,) = ready(xp, data)
    expected = data.copy()
    xp.counters.reset_peak()
    before = xp.stats()["device_bytes_now"]
    for _ in range(10):
        jacobi(xp, u)
        jacobi(np, expected)
    xp.evaluate(u)
    xp.synchronize()
    assert xp.stats()["device_bytes_peak"] - before <= 2 * u.nbytes + SMALL_NBYTES
    assert_bitwise(u, expected)


def test_twenty_lengths_of_one_expression_build_two_programs(xp: ModuleType) -> None:
    lengths = [1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 101, 1000, 1023, 1025, 4096, 5000, 9999,
               10_000, 16_385, 50_001]
    assert len(lengths) == 20
    before = xp.stats()["programs_built"]
    for length in lengths:
        data = ordinary(11, length, "float32", "unit")
        assert_ulp(xp.sqrt(xp.array(data) * 2 + 5.125) - 1, np.sqrt(data * 2 + 5.125) - 1, 0)
    assert xp.stats()["programs_built"] - before <= 2


def test_other_scalars_do_not_build_other_programs(xp: ModuleType) -> None:
    (x,) = ready(xp, ordinary(12, 1000, "float64", "unit"))
    xp.evaluate(x * 1.25 + 0.75)
    before = xp.stats()["programs_built"]
    for factor in (0.1, 2.0, -3.5, 1e30, float("inf"), 0.0, -0.0, 1.0):
        assert_bitwise(x * factor + 0.3, host(x) * factor + 0.3)
    assert xp.stats()["programs_built"] == before


def test_a_repeated_step_reuses_its_plan(xp: ModuleType) -> None:
    (x,) = ready(xp, ordinary(13, 1000, "float64", "unit"))
    for _ in range(3):
        x = xp.sin(x) + 0.5
        xp.evaluate(x)
    before = xp.stats()
    for _ in range(20):
        x = xp.sin(x) + 0.5
        xp.evaluate(x)
    after = xp.stats()
    assert after["plans_made"] == before["plans_made"]
    assert after["plans_reused"] - before["plans_reused"] == 20
    assert after["programs_built"] == before["programs_built"]


def test_dead_intermediates_are_never_stored(xp: ModuleType) -> None:
    (x,) = ready(xp, ordinary(14, 100_000, "float64", "unit"))
    gc.collect()
    xp.counters.reset_peak()
    before = xp.stats()["device_bytes_now"]
    a = xp.sin(x)
    b = a * 2
    c = b + x
    d = xp.sqrt(c * c)
    del a, b, c
    xp.evaluate(d)
    xp.synchronize()
    assert xp.stats()["device_bytes_peak"] - before <= d.nbytes + SMALL_NBYTES


def test_live_intermediates_are_stored_by_the_same_kernel(xp: ModuleType,
                                                          launched: Launched) -> None:
    (x,) = ready(xp, ordinary(15, 10_000, "float64", "unit"))
    a = x * 2
    b = a + 1
    assert launched(lambda: xp.evaluate(a, b)) == 1
    assert launched(lambda: (a.get(), b.get())) == 0
    assert_bitwise(a, host(x) * 2)
    assert_bitwise(b, host(x) * 2 + 1)


# Expressions over an array of shape (40, 50), and in how many pieces their results may be computed:
# what a roll or a pad puts together is one kernel for each part, and no copy.
SOURCES_AND_MOVES: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "arange": (lambda m, x: m.arange(50.0) * x[0], 1),
    "linspace and zeros": (lambda m, x: m.linspace(0, 1, 50) + m.zeros((40, 50)) + x, 1),
    "transpose": (lambda m, x: x.T[:40, :40] + x[:, :40], 1),
    "flip and slice": (lambda m, x: x[::-1, 1:] * x[:, :-1], 1),
    "broadcast": (lambda m, x: x - x[:, :1] - x[0], 1),
    "where": (lambda m, x: m.where(x > 0, x, -x), 1),
    "repeat": (lambda m, x: m.repeat(x[::2], 2, axis=0) - x, 1),
    "roll": (lambda m, x: x + m.roll(x, 1, axis=1), 2),
    "concatenate": (lambda m, x: m.concatenate([x[20:], x[:20]]) * 2, 2),
    "pad": (lambda m, x: m.pad(x[1:-1, 1:-1], 1) + x, 5),
}


@pytest.mark.parametrize("name", SOURCES_AND_MOVES)
def test_sources_views_and_moves_are_computed_where_read(
        name: str, xp: ModuleType, launched: Launched) -> None:
    expression, pieces = SOURCES_AND_MOVES[name]
    (x,) = ready(xp, ordinary(16, (40, 50), "float64", "unit"))
    expected = host(x)
    gc.collect()
    xp.counters.reset_peak()
    before = xp.stats()["device_bytes_now"]
    results: list[Any] = []
    assert launched(lambda: xp.evaluate(
        results.append(expression(xp, x)) or results[0])) <= pieces
    assert xp.stats()["device_bytes_peak"] - before <= results[0].nbytes
    assert_bitwise(results[0], expression(np, expected))


def test_without_fusion_each_operation_is_a_kernel(xp: ModuleType, launched: Launched,
                                                   setting: Setting) -> None:
    (x,) = ready(xp, ordinary(17, 1000, "float64", "unit"))
    setting(fusion="off")
    results: list[Any] = []

    def run() -> None:
        results.append(xp.sqrt(x * x + 1.5) - x)
        xp.evaluate(results[0])

    assert launched(run) == 4
    setting(fusion="on")
    assert launched(lambda: xp.evaluate(xp.sqrt(x * x + 1.5) - x)) == 1
    assert_bitwise(results[0], np.sqrt(host(x) ** 2 + 1.5) - host(x))


def test_recording_runs_nothing_and_observing_what_is_needed(xp: ModuleType,
                                                                  launched: Launched) -> None:
    (x,) = ready(xp, ordinary(18, 1000, "float64", "unit"))
    recorded: list[Any] = []
    assert launched(lambda: recorded.extend([x + 1, (x * 2).sum(), x[::2]])) == 0
    assert launched(lambda: repr(recorded[0])) >= 1
    assert launched(lambda: repr(recorded[0])) == 0, "an array is computed once"
    assert launched(lambda: float(recorded[1])) >= 1
    assert launched(lambda: bool(recorded[1] > 0)) >= 1
    assert launched(lambda: (recorded[0].shape, recorded[0].dtype, len(recorded[0]))) == 0


def test_evaluate_without_names_computes_all_that_is_recorded(xp: ModuleType,
                                                              launched: Launched) -> None:
    (x,) = ready(xp, ordinary(19, 1000, "float64", "unit"))
    kept: list[Any] = []
    assert launched(lambda: (kept.extend([x + 1, x * 2]), xp.evaluate())) >= 1
    assert launched(lambda: [k.get() for k in kept]) == 0


def test_recorded_work_runs_by_itself_before_it_grows_too_large(xp: ModuleType,
                                                                setting: Setting) -> None:
    setting(max_nodes=500)
    before = xp.stats()["kernels_launched"]
    x = xp.zeros(100)
    for _ in range(2000):
        x = x + 1
    assert xp.stats()["kernels_launched"] > before
    assert_bitwise(x, np.full(100, 2000.0))


def test_a_chain_of_many_thousand_operations_is_legal(xp: ModuleType) -> None:
    x = xp.zeros(17)
    for _ in range(30_000):
        x = x + 1
    assert_bitwise(x, np.full(17, 30_000.0))


def test_equal_operations_are_computed_once(xp: ModuleType, launched: Launched) -> None:
    (x,) = ready(xp, ordinary(20, 1000, "float64", "unit"))
    a, b = xp.sin(x), xp.sin(x)
    assert launched(lambda: xp.evaluate(a, b)) == 1
    a += 1
    assert_bitwise(b + 1, host(a))


def test_results_do_not_depend_on_when_they_are_evaluated(xp: ModuleType) -> None:
    def program(m: ModuleType, look: bool) -> Any:
        x = m.arange(40.0).reshape(5, 8)
        steps = []
        for i in range(6):
            view = x[i % 3:, ::2]
            x[1:, 1:] += x[:-1, :-1] * 0.5
            view *= 2 if i % 2 else 1
            steps.append(x.sum(axis=0))
            if look:
                float(steps[-1][0])
        return [x, *steps]

    lazy, eager, expected = program(xp, False), program(xp, True), program(np, False)
    for one, other, right in zip(lazy, eager, expected, strict=True):
        assert_bitwise(one, host(other))
        assert_bitwise(one, right)


def test_nothing_is_lost_when_names_go(xp: ModuleType) -> None:
    gc.collect()
    xp.evaluate()
    xp.synchronize()
    before = xp.stats()["device_bytes_now"]
    for _ in range(5):
        x = xp.array(ordinary(21, 100_000, "float64"))
        y = (x * 2)[::2] + 1
        y[3:] = 0
        total = float(y.sum())
        del x, y
    gc.collect()
    assert np.isfinite(total)
    assert xp.stats()["device_bytes_now"] <= before + SMALL_NBYTES


def test_stats_count_what_happens(xp: ModuleType) -> None:
    names = {"kernels_launched", "programs_built", "plans_made", "plans_reused", "fallbacks",
             "bytes_to_device", "bytes_to_host", "device_bytes_now", "device_bytes_peak",
             "nodes_recorded"}
    before = xp.stats()
    assert names <= before.keys()
    assert all(isinstance(v, int) for v in before.values())
    x = xp.array(np.ones(1000))
    y = x + 1
    y.get()
    after = xp.stats()
    assert after["bytes_to_device"] - before["bytes_to_device"] >= 8000
    assert after["nodes_recorded"] > before["nodes_recorded"]
    assert after["kernels_launched"] - before["kernels_launched"] == 1
    assert after["device_bytes_now"] - before["device_bytes_now"] >= 8000
    assert before == before | {}, "a snapshot does not change"


def test_explain_says_what_was_fused_and_why_it_was_cut(xp: ModuleType) -> None:
    (x,) = ready(xp, ordinary(22, (100, 200), "float64", "unit"))
    y = xp.sin(x) * 2 + x
    plan = xp.explain(y)
    assert len(plan.kernels) == 1
    kernel = plan.kernels[0]
    assert "__kernel" in kernel.source
    assert kernel.nbytes >= 2 * x.nbytes
    assert len(kernel.ops) >= 3
    assert kernel.name
    assert kernel.kind
    assert kernel.reads
    assert kernel.writes
    text = str(plan)
    assert "sin" in text
    assert kernel.name in text
    assert isinstance(plan.cuts, (list, tuple))
    centred = x - x.mean(axis=0)
    scaled = centred / centred.std(axis=0)
    plan = xp.explain(scaled)
    if len(plan.kernels) > 1:
        assert plan.cuts
        assert all(str(cut) for cut in plan.cuts)
    assert hasattr(plan, "_repr_html_")


def test_explain_runs_nothing(xp: ModuleType, launched: Launched) -> None:
    (x,) = ready(xp, ordinary(23, 1000, "float64", "unit"))
    y = x * 3
    assert launched(lambda: xp.explain(y)) == 0
    assert_bitwise(y, host(x) * 3)


def no_kernel_for(m: ModuleType) -> Any:
    """Something that the host has to do, now and for some time."""
    return m.power.accumulate(m.array([3, 1, 3, 2]))


def test_fallbacks_are_counted(xp: ModuleType, setting: Setting) -> None:
    setting(fallback="allow")
    before = xp.stats()["fallbacks"]
    assert_bitwise(no_kernel_for(xp), no_kernel_for(np))
    assert xp.stats()["fallbacks"] == before + 1


def test_fallbacks_can_warn_with_the_users_line(xp: ModuleType, setting: Setting) -> None:
    setting(fallback="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        no_kernel_for(xp)
    ours = [w for w in caught if issubclass(w.category, xp.FallbackWarning)]
    assert len(ours) == 1
    assert "power.accumulate" in str(ours[0].message)
    assert os.path.basename(ours[0].filename) == os.path.basename(__file__)


def test_fallbacks_can_be_refused(xp: ModuleType, setting: Setting) -> None:
    setting(fallback="raise")
    x = xp.arange(4) + 1
    with pytest.raises(xp.FallbackError, match=r"power\.accumulate"):
        no_kernel_for(xp)
    assert_bitwise(x * 2, (np.arange(4) + 1) * 2)


def test_supported_operations_do_not_fall_back(xp: ModuleType, setting: Setting) -> None:
    setting(fallback="raise")
    x, y = xp.array(ordinary(24, (6, 7), "float64")), xp.array(ordinary(25, (6, 7), "int32"))
    z = xp.array(ordinary(26, (6, 7), "complex128"))
    for result in (
            x + y, xp.sin(x), xp.power(x, 2.5), x // 3, x % 3, divmod(x, 2)[0], xp.exp(z), z * z,
            abs(z), x.sum(), x.prod(), x.min(0), x.max(1), x.any(), x.all(), x.mean(), x.var(),
            x.std(1), x.argmin(), x.argmax(0), xp.count_nonzero(y), y.sum(), z.sum(), z.mean(),
            xp.where(x > 0, x, y), xp.clip(x, -1, 1), x.astype("int8"), x.T.reshape(-1), x[::2],
            xp.concatenate([x, x]), xp.stack([x, y]), xp.roll(x, 1), xp.flip(x), xp.pad(x, 1),
            xp.repeat(x, 2), xp.tile(x, 2), xp.dot(x[0], x[1]), x @ x.T, xp.eye(3),
            xp.linspace(0, 1, 5), xp.full(3, 2), xp.arange(3), x.real, z.imag, x.diagonal(),
            xp.broadcast_to(x[0], (3, 7)), xp.isnan(x), xp.sign(x), xp.maximum(x, y),
            xp.logical_and(x, y), y & 3, y << 2, ~y, xp.floor(x), xp.hypot(x, x), xp.arctan2(x, x),
            x.astype("float16") + 1):
        xp.evaluate(result)
    x[1:3] = 0
    x[:, 1] += 2
    xp.add(x, 1, out=x, where=y > 0)
    xp.evaluate(x)


def test_importing_touches_no_device_and_takes_little_time() -> None:
    code = ("import sys, clfuse; bad = [m for m in ('pyopencl', 'mako') if m in sys.modules]; "
            "print(bad); assert not bad")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr

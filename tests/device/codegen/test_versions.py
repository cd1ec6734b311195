"""Every kind of kernel builds and computes the same as OpenCL C 1.2, 2.0 and 3.0, as far as the
device's compiler takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine.evaluate import forget_plans
from clfuse.errors import KernelBuildError
from clfuse.runtime.launches import program

pytestmark = pytest.mark.clfuse_only

VERSIONS = ("CL1.2", "CL2.0", "CL3.0")

# PoCL 3.1 takes 2.0, and has no vector loads then.
PROBE = """
__kernel void probe(__global const float *x, __global float *y)
{ vstore8(sqrt(vload8(0, x)), 0, y); }"""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, device: Any) -> Iterator[str]:
    """Kernels as texts of this version of OpenCL C."""
    option = f"-cl-std={request.param}"
    options = " ".join([*device.traits.build_options.split(), option])
    forget_plans()
    with device.trying(replace(device.untuned_traits, build_options=options)):
        try:
            program.build(device, PROBE, "probe", (None, None))
        except KernelBuildError:
            pytest.skip(f"{device.name} takes no {option}")
        yield str(request.param)
    forget_plans()


@cf.kernel
def counted(i, x, bins, sums, best):
    place = int(x[i] * 8)
    cf.atomic.add(bins, place, 1)
    cf.atomic.add(sums, place, x[i])
    cf.atomic.max(best, 0, place)


@cf.kernel
def smoothed(i, x, out):
    total = 0.0
    k = i - 1
    while k <= i + 1:
        if 0 <= k < len(x):
            total += x[k]
        k += 1
    out[i] = total / 3


MORE = cf.RawKernel("""
    __kernel void more(__global float *x, __local float *held, const float c)
    {
        held[get_local_id(0)] = x[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[get_global_id(0)] = held[get_local_id(0)] + c;
    }""", "more")


def everything(m: Any) -> list[Any]:
    """An expression of each kind, of modest values."""
    x = m.linspace(-1, 1, 5000).reshape(50, 100)
    single, half, whole = x.astype("f4"), x.astype("f2"), (x * 1000).astype("i4")
    z = x + 1j * x[::-1]
    made = [
        m.sin(x) * m.exp(-x) + m.power(abs(x), 1.5), half * half + 1, whole // 7 + whole % 5,
        z * z.conj() + m.sqrt(z), x.T + x.T, x.sum(0), x.sum(1), x.argmax(1), single.std(1),
        m.cumsum(x, 0), m.cumsum(single, 1), x[x > .3], m.sort(whole, axis=1), single @ single.T,
        m.take(x.ravel(), abs(whole) % 77), m.exp(x - x.max(1, keepdims=True)).sum(1),
        m.gcd(whole, 12), m.nextafter(single, 0), x.astype("u1"),
    ]
    u = m.array(x[0])
    for _ in range(6):
        v = m.zeros_like(u)
        v[1:-1] = .25 * u[:-2] + .5 * u[1:-1] + .25 * u[2:]
        u = v
    return [*made, u]


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_array_code(version: str, schedule: str, setting: Callable[..., None]) -> None:
    setting(schedule=schedule)
    made = everything(cf)
    cf.evaluate(*made)
    for place, (one, other) in enumerate(zip(made, everything(np), strict=True)):
        tolerance = {"f": 1e-4, "e": 1e-2, "F": 1e-4}.get(np.dtype(other.dtype).char, 1e-9)
        np.testing.assert_allclose(
            np.asarray(one.get(), "D"), np.asarray(other, "D"), rtol=tolerance, atol=tolerance,
            err_msg=f"{version}: number {place}")


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_random_numbers(version: str, schedule: str, setting: Callable[..., None]) -> None:
    setting(schedule=schedule)
    draw = cf.random.Generator(cf.random.Philox(5)) if hasattr(cf.random, "Philox") else None
    draw = draw or cf.random.default_rng(5)
    normal, uniform = draw.standard_normal(40_000), draw.random(40_000, dtype="f4")
    assert abs(float(normal.mean())) < .03
    assert abs(float(uniform.mean()) - .5) < .01


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_kernels_in_python_and_in_c(
    version: str, schedule: str, route: str, setting: Callable[..., None]
) -> None:
    setting(schedule=schedule)
    x = np.linspace(0, .999, 4000)
    bins, sums, best = cf.zeros(8, "int32"), cf.zeros(8), cf.zeros(1, "int32")
    counted(4000, cf.array(x), bins, sums, best)
    np.testing.assert_array_equal(bins, np.bincount((x * 8).astype(int)))
    np.testing.assert_allclose(sums, np.bincount((x * 8).astype(int), x), rtol=1e-12)
    assert best[0] == 7
    out = cf.zeros(4000)
    smoothed(4000, cf.array(x), out)
    padded = np.concatenate([[0], x, [0]])
    np.testing.assert_allclose(out, (padded[:-2] + x + padded[2:]) / 3, rtol=1e-14)
    rows = cf.zeros((6, 8), "float32")
    for row in range(6):
        MORE((2,), (4,), (rows[row], float(row)), shared_mem=16)
    np.testing.assert_array_equal(rows, np.repeat(np.arange(6), 8).reshape(6, 8))

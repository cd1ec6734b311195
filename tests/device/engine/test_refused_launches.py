"""Launches that a driver refuses: what they would have computed is computed otherwise, and what
does not need it, too."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.ir import journal
from clfuse.runtime.context import lost
from clfuse.tools.check import driver_faults, ended_early

pytestmark = pytest.mark.clfuse_only

N = 40


def arrays() -> tuple[Any, Any]:
    x, w = cf.arange(N * N, dtype="f8").reshape(N, N) % 7, cf.eye(N) * 2
    cf.evaluate(x, w)
    return x, w



def launches(name: str, *arguments: Any) -> bool:
    """Whether the kernel of that name is launched."""
    return name in driver_faults.kernel_of(*arguments)


@cf.kernel(group=8)
def turned(i, x):
    q = cf.group.local_id()
    t = cf.group.local_array(8)
    t[q] = x[i]
    cf.group.barrier()
    x[i] = t[7 - q] + 1


def test_what_does_not_depend_on_a_refused_launch_is_computed() -> None:
    is_users = partial(launches, "turned")
    device = cf.get_device()
    with cf.config.override(host_us=0):
        x, w = arrays()
        old = np.array(x)
        n = cf.zeros(N)
        cf.evaluate(n)
        for line in (0, 1):
            twice = x * 2
            x += 1
            turned(N, n)
            n *= 4
            y = twice @ w
            del twice
            with driver_faults.failing(device, "clEnqueueNDRangeKernel", -5, which=is_users):
                with pytest.raises(cf.AllocationError, match="turned"):
                    cf.evaluate(x, n, y)
                np.testing.assert_array_equal(x.get(), old + line + 1)
                np.testing.assert_array_equal(y.get(), (old + line) * 4)
                with pytest.raises(cf.AllocationError, match="turned"):
                    n.get()
            assert set(n.get().tolist()) == {4 if line == 0 else 20}
    assert not device.lost
    assert not journal.rests


def is_scan(*arguments: Any) -> bool:
    return driver_faults.kernel_of(*arguments).startswith("scan")


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
@pytest.mark.parametrize("status", [-5, -54])
def test_what_a_users_kernel_waits_for_is_computed_otherwise(
    status: int,
) -> None:
    """The scan reads what was made of the old x, and nothing else can do the user's part."""
    device = cf.get_device()
    with cf.config.override(host_us=0):
        x, w = arrays()
        old = np.array(x)
        product = (x * 2) @ w
        x += 1
        n = product.cumsum(0)[-1] * 3
        del product
        turned(N, n)
        n -= 5
        wanted = (old.sum(0) * 12).reshape(-1, 8)[:, ::-1].reshape(-1) + 1 - 5
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", status, which=is_scan):
            cf.evaluate(x, n)
            np.testing.assert_array_equal(n.get(), wanted)
            np.testing.assert_array_equal(x.get(), old + 1)
    assert not device.lost
    assert not journal.rests


@cf.kernel(group=8)
def taken_turned(i, x, y):
    q = cf.group.local_id()
    t = cf.group.local_array(8)
    t[q] = x[i]
    cf.group.barrier()
    y[i] = t[7 - q] + 1


def test_what_a_refused_launch_reads_is_not_written_over() -> None:
    is_users = partial(launches, "taken_turned")
    device = cf.get_device()
    with cf.config.override(host_us=0):
        x, w = arrays()
        old, y = np.array(x) + 1, cf.zeros(N * N)
        cf.evaluate(y)
        x += 1
        taken_turned(N * N, x.reshape(-1), y)
        x *= (w @ w).cumsum(0)[-1] @ w  # 8, which is known late
        y *= 4
        total = (y + y.sum()).cumsum()
        taken = (old.reshape(-1, 8)[:, ::-1].reshape(-1) + 1) * 4
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", -5, which=is_users):
            with pytest.raises(cf.AllocationError, match="taken_turned"):
                cf.evaluate(x, y, total)
            for seen in (y, total):
                with pytest.raises(cf.AllocationError, match="taken_turned"):
                    seen.get()
        np.testing.assert_array_equal(total.get(), (taken + taken.sum()).cumsum())
        np.testing.assert_array_equal(y.get(), taken)
        np.testing.assert_array_equal(x.get(), old * 8)
    assert not device.lost
    assert not journal.rests


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
@pytest.mark.parametrize("status", [-5, -54])
@pytest.mark.parametrize("seed", [60290, 60291])
def test_updates_that_were_made_in_another_order_are_kept(seed: int, status: int) -> None:
    """On a device with memory of its own the later update comes first, and the other is refused:
    `y[2:, 1:] *= 3` and what a kernel adds to `y[:, 0]`."""
    shape, lines = ended_early.generate(seed)
    wanted = ended_early.looked(ended_early.Subject(np).record(shape, lines))
    subject, device = ended_early.Subject(cf), cf.get_device()
    for schedule in ("cpu", "gpu"):
        with cf.config.override(host_us=0, schedule=schedule):
            found: list[str] = []

            def noted(*arguments: Any, found: list[str] = found) -> bool:
                found.append(driver_faults.kernel_of(*arguments))
                return False

            given = subject.record(shape, lines)
            with driver_faults.failing(device, "clEnqueueNDRangeKernel", 0, which=noted):
                cf.evaluate(*given.values())
            for name in dict.fromkeys(found):
                given = subject.record(shape, lines)
                is_chosen = partial(launches, name)
                with driver_faults.failing(
                    device, "clEnqueueNDRangeKernel", status, which=is_chosen
                ):
                    with suppress(cf.ClfuseError, lost.driver_error()):
                        cf.evaluate(*given.values())
                    assert ended_early.looked(given) == wanted
    assert not journal.rests

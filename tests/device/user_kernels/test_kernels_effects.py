"""What changes arrays inside of an expression does so once, in Python's order, and only where
Python evaluates it; each body runs as array operations where it can, and as a launch always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import SIMULATED
from tests.support.kernel_bodies import compare, kernel_of

pytestmark = pytest.mark.clfuse_only
LENGTH = 11


@cf.device_function
def bump(values, place):
    values[place] += 1
    return values[place]


@cf.device_function
def take(counter):
    return cf.atomic.add(counter, 0, 1)


SCOPE = {"cf": cf, "np": np, "bump": bump, "take": take}

# One iteration: Python's order is the only one.
ONE = """
y[0] = 0 <= take(c) < 5
y[1] = 1 < take(c) <= take(c) < take(c)
---
y[0] = min(take(c), 100)
y[1] = max(take(c), 10 * take(c)) + min(x[0], take(c), f[1], take(c))
---
y[0] = take(c) or 7
y[1] = take(c) and 7
y[2] = take(c) and take(c) or take(c)
---
q, r = divmod(take(c) + 7, 3)
y[0] = q * 10 + r
q, r = divmod(c[0], take(c) + 2)
y[1] = q * 10 + r
---
y[take(c)] += 1
y[take(c)] += 10 * take(c)
y[c[0]] += take(c)
t = 5.0
t += take(c)
y[6] = t
---
y[0] = np.where(take(c) > 0, take(c), 10 * take(c))
y[1] = np.where(take(c) > 0, take(c), 10 * take(c))
---
y[take(c)], y[take(c)] = 10 + take(c), 20 + take(c)
y[take(c)] = 100 * take(c)
---
for k in range(take(c), take(c) + 3):
    y[k] += 1
while 0 <= take(c) < 5:
    y[0] += 10
"""

# Every iteration has elements of its own.
MANY = """
y[i] = 0 <= bump(x, i) < 1.5
y[i] += min(bump(x, i), 2 * bump(x, i), x[i])
---
if i > 2 and bump(x, i) > 0:
    y[i] = 1
---
if x[i] > 0 and bump(y, i) > 0:
    x[i] = 7
---
y[i] = bump(x, i) if x[i] > 0 else 3
---
y[i] = (x[i] > 0 and (bump(y, i) if x[i] > 1 else 2.0) > 1) or bump(x, i) > 0
---
x[k[i]] += bump(k, i)
for a in range(3):
    y[i] += bump(x, i) + min(bump(x, i), a)
---
t = 0.0
for a in range(100):
    t += min(bump(x, i), 50.0)
y[i] = t
"""


def cases(text: str) -> list[str]:
    return [body.strip() for body in text.split("\n---\n")]


@pytest.mark.skipif(SIMULATED, reason="the simulator has no 64-bit atomics")
@pytest.mark.parametrize("body", cases(ONE), ids=[each.splitlines()[0] for each in cases(ONE)])
def test_what_changes_arrays_is_evaluated_once_and_in_order(body: str, route: str) -> None:
    kernel = kernel_of(body, "i, x, f, c, y", SCOPE)
    x, f = np.array([2.5, 1.5]), np.array([0.5, 3.5], np.float32)
    compare(kernel, 1, [x, f, np.zeros(1, np.int64), np.zeros(8)])


@pytest.mark.parametrize("body", cases(MANY), ids=[each.splitlines()[0] for each in cases(MANY)])
def test_changes_under_a_condition_happen_there_alone(body: str, route: str) -> None:
    kernel = kernel_of(body, "i, x, k, y", SCOPE)
    x = np.linspace(-2, 3, LENGTH)
    compare(kernel, LENGTH, [x, np.arange(LENGTH), np.zeros(LENGTH)])


def test_a_lock_is_taken_by_one_iteration_at_a_time() -> None:
    @cf.kernel
    def locked(i, lock, total):
        while cf.atomic.compare_exchange(lock, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cf.atomic.exchange(lock, 0, 0)

    lock, total = cf.zeros(1, np.int32), cf.zeros(1)
    locked(64, lock, total)
    assert total.tolist() == [64]


def test_what_is_evaluated_once_differs_between_work_items() -> None:
    def taken(i, c, y):
        q, r = divmod(cf.atomic.add(c, 0, 1), 3)
        if r == 0:
            cf.group.barrier()
        y[i] = q

    kernel: Any = cf.kernel(taken, group=4)
    with pytest.raises(cf.KernelError, match="not all work-items of a group come to this barrier"):
        kernel.route(4, cf.zeros(1, np.int64), cf.zeros(4))

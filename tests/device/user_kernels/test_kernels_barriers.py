"""Work-items of a group that wait for each other, in loops, branches and behind early ends, leave
what they leave in plain Python."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import clfuse as cf
from tests.fuzz import barriers
from tests.support.kernel_bodies import compare, kernel_of
from tests.support.threads import in_threads

pytestmark = pytest.mark.clfuse_only

TREE = """
s = cf.group.size() // 2
q = cf.group.local_id()
t = cf.group.local_array(4)
t[q] = x[i]
cf.group.barrier()
while s > 0:
    if q < s:
        t[q] += t[q + s]
    cf.group.barrier()
    s //= 2
if q == 0:
    y[cf.group.group_id()] = t[0]
"""

SORT = """
q = cf.group.local_id()
t = cf.group.local_array(4)
moved = cf.group.local_array(2, np.int32)
t[q] = -x[i] * (x[i] % 5 - n)
cf.group.barrier()
turn = 0
while True:
    if q < 2:
        moved[q] = 0
    cf.group.barrier()
    for odd in range(2):
        if q % 2 == odd and q < 3:
            if t[q] > t[q + 1]:
                t[q], t[q + 1] = t[q + 1], t[q]
                moved[odd] = 1
        cf.group.barrier()
    turn += 1
    if not (moved[0] or moved[1]):
        break
    cf.group.barrier()
x[i] = t[q]
y[i] = turn
"""

BISECTION = """
q = cf.group.local_id()
t = cf.group.local_array(4)
t[q] = x[i] * x[i]
cf.group.barrier()
low, high = 0.0, t[3]
while high - low > 0.5:
    middle = (low + high) / 2
    cf.group.barrier()
    above = 0
    for k in range(4):
        if t[k] > middle:
            above += 1
    if above > 2:
        low = middle
        cf.group.barrier()
    else:
        high = middle
x[i] = low
"""

EARLY = """
q = cf.group.local_id()
t = cf.group.local_array(4, np.int32)
p = cf.local_array(2)
t[3 - q] = int(x[i]) % 3
p[1] = n
cf.group.barrier()
for k in range(4):
    if t[k] == 2:
        continue
    if t[k] == 1 and p[0] < p[1]:
        cf.group.barrier()
        y[i] += t[3 - k]
    p[0] += 1
if t[0] == 1:
    return
cf.group.barrier()
if q == 0:
    t[0] = 5
cf.group.barrier()
y[i] += t[0]
"""

TWO_ON_ONE_LINE = """
q = cf.group.local_id()
t = cf.group.local_array(4); b = cf.group.local_array(4)
t[q] = x[i]; b[q] = y[i]
cf.group.barrier()
x[i] = t[3 - q] - 2 * b[q]
"""

ONE_BOUND_TWICE = """
q = cf.group.local_id()
t: np.float64 = cf.group.local_array(4)
t[q] = x[i]
cf.group.barrier()
t = cf.group.local_array(4)
y[i] = t[3 - q]
"""


@pytest.mark.parametrize("body", [
    TREE.strip(),
    "for k in range(n):\n    cf.group.barrier()\n    if i == k:\n        continue\n    x[i] = k",
    "if n > 3:\n    cf.group.barrier()\nx[i] = 1",
    "if n > 4:\n    return\ncf.group.barrier()\nx[i] = 2",
    "if y[0] > 3:\n    cf.group.barrier()\nx[i] = 1",
    "if cf.group.group_id() == 1:\n    cf.group.barrier()\nx[i] = 1",
    SORT.strip(), BISECTION.strip(), EARLY.strip(), TWO_ON_ONE_LINE.strip(),
    ONE_BOUND_TWICE.strip(),
])
def test_barriers_that_all_work_items_of_a_group_come_to(body: str) -> None:
    given = [3, np.arange(12.0), np.arange(12.0) + 1]
    compare(kernel_of(body, "i, n, x, y", {"cf": cf, "np": np}, group=4), 12, given)


def test_threads_running_a_body_in_python_have_their_own_groups() -> None:
    kernel = kernel_of(TREE.strip(), "i, n, x, y", {"cf": cf, "np": np}, group=4)
    wrong = []

    def work(number: int) -> None:
        for _ in range(20):
            x, y = np.arange(40.0) * (number + 1), np.zeros(10)
            kernel.python(40, 3, x, y)
            if (y != x.reshape(10, 4).sum(1)).any():
                wrong.append(y)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(work, 8)
    finally:
        sys.setswitchinterval(before)
    assert not wrong


@pytest.mark.parametrize("batch", range(2))
def test_random_kernels_with_barriers_give_what_numpy_gives(batch: int) -> None:
    problems = barriers.run(range(1000 * batch, 1000 * batch + 8))
    assert not problems, "\n".join(problems)

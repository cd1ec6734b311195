"""The proof that iterations of a kernel are independent: what it says of random kernels is what
running them shows. No device is needed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clfuse as cf
from clfuse.user_kernels.language.array_route.accesses import Affine
from clfuse.user_kernels.language.array_route.arrays import Array, NotArrays, Translation
from clfuse.user_kernels.language.array_route.boxes import compare_index
from clfuse.user_kernels.language.source.lower import lower
from clfuse.user_kernels.language.source.syntax import read_source
from clfuse.user_kernels.language.source.types import ArrayType
from tests.support.kernel_bodies import function_of
from tests.support.kernel_programs import Call, random_call

pytestmark = pytest.mark.clfuse_only
F64, I32 = np.dtype("float64"), np.dtype("int32")


def test_where_a_comparison_of_an_index_holds() -> None:
    names = {"less": lambda d: d < 0, "less_equal": lambda d: d <= 0, "greater": lambda d: d > 0,
             "greater_equal": lambda d: d >= 0, "equal": lambda d: d == 0,
             "not_equal": lambda d: d != 0}
    cases = itertools.product(names.items(), (-3, -2, -1, 1, 2, 3), range(-9, 10), (-2, 0, 3))
    for (name, holds), factor, constant, start in cases:
        stop = start + 5
        found = compare_index(name, Affine(constant, (factor,)), 0, start, stop).parts
        truths = [truth for low, high, truth in found for _ in range(low, high)]
        assert truths == [holds(factor * k + constant) for k in range(start, stop)]
        assert found[0][0] == start
        assert found[-1][1] == stop


def translated(call: Call) -> str | None:
    """Why the call is no array operations, None if it is; without a device."""
    kinds = {name: ArrayType(F64, len(view[1])) for name, view in call.views.items()}
    source = call.kernel.__clfuse_source__
    indices = source.parameters[: len(call.domain)]
    arrays = {
        name: Array(name, number, base, shape, F64, F64, offset, strides)
        for number, (name, (base, shape, offset, strides)) in enumerate(call.views.items())
    }
    try:
        Translation(lower(source, kinds, indices), call.domain, arrays, {}, {})
    except NotArrays as reason:
        return str(reason)
    return None


def test_iterations_are_independent_where_they_are_said_to_be() -> None:
    random = np.random.default_rng(7)
    counts = {(False, False): 0, (False, True): 0, (True, False): 0, (True, True): 0}
    for _ in range(600):
        call = random_call(random)
        defined, reason = call.is_defined(), translated(call)
        counts[defined, reason is None] += 1
        assert defined or reason is not None, f"{call.text}{call.domain} {call.views}"
    assert counts[False, False] > 50
    assert counts[True, True] > 50
    assert counts[True, True] > 2 * counts[True, False], counts


NEVER = [
    ("y[i] = x[0]\nx[i] = 1", "where another reads `x`"),
    ("x[i + 1] = y[i]\ny[i] = x[i]", "where another reads `x`"),
    ("x[0] = y[i]", "several iterations write"),
    ("x[i // 2] = y[i]", "place computed from data"),
    ("x[n[i]] = y[i]", "place computed from data"),
    ("x[i] = x[n[i]]", "where another reads `x`"),
    ("while x[i] > 1:\n    x[i] /= 2", "a while loop in line 2"),
    ("for k in range(n[i]):\n    x[i] += 1", "bounds that are data"),
    ("for k in range(1000):\n    x[i] += 1", "1000 rounds"),
    ("s = 0.0\nt = 0.0\nfor k in range(99):\n    t += x[i]\n    s += t\ny[i] = s", "99 rounds"),
    ("s = 0.0\nd = 0.0\nfor k in range(99):\n    s += d\n    d = y[i] * k\nx[i] = s", "99 rounds"),
    ("s = 0.0\nfor k in range(99):\n    s = 2 * s + x[k % 3]\ny[i] = s", "99 rounds"),
    ("cf.atomic.add(n, i, 1)", "an atomic operation in line 2"),
    ("t = cf.local_array(3)\nx[i] = t[0]", "local arrays in line 2"),
    ("for k in range(2):\n    if x[i] > k:\n        break", "break in line 4"),
]


@pytest.mark.parametrize(("body", "reason"), NEVER, ids=[b for b, _ in NEVER])
def test_what_depends_on_the_order_is_no_array_operation(body: str, reason: str) -> None:
    source = read_source(function_of(body, "i, x, y, n", {"cf": cf}))
    kinds = {"x": ArrayType(F64, 1), "y": ArrayType(F64, 1), "n": ArrayType(I32, 1)}
    arrays = {
        name: Array(name, number, number, (12,), kind.dtype, kind.dtype, 0, (1,))
        for number, (name, kind) in enumerate(kinds.items())
    }
    with pytest.raises(NotArrays, match=reason):
        Translation(lower(source, kinds, ("i",)), ((0, 10),), arrays, {}, {})

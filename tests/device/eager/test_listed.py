"""Lists and tuples of numbers beside arrays that lie on the host: as indices, as what is assigned,
as operands and arguments they are done with at the call, with NumPy's values and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only

LISTS = (
    "[]", "[0]", "[0, 2]", "(0, -1)", "[True, False, True]", "[0, 5]", "[1.5, 2.5]", "[300, -1]",
    "[[0, 1], [1, 0]]", "[0, [1]]", "[None]", "['a']", "[1j]", "[2**63, 1]", "[2**70]",
    "[1, 2, 3, 4]", "(1.0, 2, 3, 4)", "[float('nan'), 1]", "[np.float32(1), 2]", "[v[0], v[1]]",
    "[v, v, v]", "[np.int8(1), True]", "[[1, 2, 3, 4]]", "[[[[[1]]]]]", "[v[:2], v[2:]]", "[[]]",
    "[np.array(1), np.array(2)]", "list(v)",
)  # fmt: skip

STATEMENTS = (
    "r = a[{0}]", "r = a[{0}, {0}]", "r = a[:, {0}]", "r = a[..., {0}]", "r = a[None, {0}]",
    "a[{0}] = 0", "a[{0}] += 1", "a[0] = {0}", "a[1, :2] = {0}", "a[{0}] = {0}", "i[1] = {0}",
    "a[0, 0] = {0}", "v[v > 2] = {0}", "u[:2] = {0}", "u[{0}] = 3", "c[:] = {0}", "b[:] = {0}",
    "r = a + {0}", "r = {0} - a", "r = u + {0}", "r = a < {0}", "r = b & {0}", "r = v ** {0}",
    "r = {0} % v", "a += {0}", "u += {0}", "i *= {0}", "r = a @ {0}", "r = {0} @ v",
    "r = np.sqrt({0})", "r = np.add({0}, 1)", "r = np.maximum({0}, v)", "r = np.hypot({0}, {0})",
    "r = np.add(v, {0}, out=v)", "r = np.sum({0})", "r = np.max({0})", "r = np.argmax({0})",
    "r = np.cumsum({0})", "r = np.argsort({0})", "r = np.unique({0})", "r = np.dot({0}, {0})",
    "r = np.outer({0}, {0})", "r = np.concatenate([{0}, {0}])", "r = np.where({0}, 1, 2)",
    "r = np.any({0})", "r = np.median({0})", "r = np.take(v, {0})", "r = np.isin({0}, [1])",
    "np.add.at(v, {0}, 1)",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


def outcome(np: ModuleType, statement: str) -> Any:
    """The arrays after the statement, or the class of its error."""
    names = {
        "a": np.arange(12.0).reshape(3, 4),
        "i": np.arange(12).reshape(3, 4),
        "u": np.arange(6, dtype=np.uint8),
        "b": np.array([True, False, True]),
        "c": np.arange(3) * 1j,
        "v": np.array([1.0, 2, 3, 4]),
    }
    for array in names.values():
        array.ravel()[0]  # to have it on the host
    given = {**names, "np": np, "r": None}
    try:
        exec(statement, given)
    except Exception as error:
        return type(error)
    return [given[name] for name in (*names, "r")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("statement", STATEMENTS)
def test_lists_mean_what_they_mean_to_numpy(xp: ModuleType, statement: str) -> None:
    for given in LISTS:
        text = statement.format(given)
        expected, actual = outcome(np, text), outcome(xp, text)
        if isinstance(expected, type):
            assert actual is expected, text
            continue
        assert not isinstance(actual, type), text
        for found, known in zip(actual, expected, strict=True):
            found, known = np.asarray(found), np.asarray(known)
            assert (found.dtype, found.shape) == (known.dtype, known.shape), text
            if known.dtype.kind in "fc":
                np.testing.assert_allclose(found, known, rtol=1e-14, err_msg=text)
            else:
                assert_array_equal(found, known, err_msg=text)


@compiled
def test_what_a_loop_does_with_lists_is_done_at_the_call(xp: ModuleType) -> None:
    def mixed(np: ModuleType) -> tuple[Any, float]:
        a, total = np.arange(20.0).reshape(4, 5), 0.0
        for k in range(30):
            a[[0, 2]] = a[[2, 0]]
            a[k % 4] = [k, 1.5, a[0, 0], 2, 3]
            a[k % 4, 1:3] = a[0, 1], a[1, 0]
            a[:, [1, 3]] += [1, -1]
            a *= [1, 1, 0.5, 1, 1]
            total += (a @ [1, 2, 3, 4, 5])[k % 4] + a[[0, 1, 2], (1, 2, 3)].sum()
            total += np.mean([total, k]) + np.max([k, 3.5])
            total /= np.dot([1, 2], [3, 4]) - np.argmax([k, 8, 2])
        return a, total

    before = xp.stats()
    a, total = mixed(xp)
    after = xp.stats()
    assert after["nodes_recorded"] - before["nodes_recorded"] < 10
    assert after["host_evaluations"] == before["host_evaluations"]
    expected, expected_total = mixed(np)
    np.testing.assert_allclose(np.asarray(a), expected, rtol=1e-13)
    assert float(total) == pytest.approx(float(expected_total), rel=1e-13)


def test_a_list_written_to_an_array_may_hold_parts_of_it(xp: ModuleType) -> None:
    def swapped(np: ModuleType) -> list[Any]:
        a = np.arange(6.0).reshape(3, 2)
        a[0, 0]
        kept = a[:1] + 0, a[2]
        a[[0, 1]] = [a[1], a[0]]
        a[1:] = a[2] * 1, a[0] * 1
        a[0] = [a[0, 1], a[0, 0]]
        a += [a[0], a[1], a[2]]
        return [np.asarray(x).tolist() for x in (a, *kept)]

    assert swapped(xp) == swapped(np)


def test_lists_in_a_traced_function_stay_inputs(xp: ModuleType) -> None:
    @xp.jit
    def turned(x: Any, t: float) -> Any:
        y = x * [t, 2 * t, 1.0]
        y[::2] = [t, 3.0]
        return y @ [1.0, t, 2.0]

    x = xp.arange(3.0)
    for t in (0.5, 2.5, -1.0):
        y = np.arange(3.0) * [t, 2 * t, 1.0]
        y[::2] = [t, 3.0]
        assert float(turned(x, t)) == pytest.approx(float(y @ [1.0, t, 2.0]))


def test_lists_are_places_in_traced_functions(xp: ModuleType) -> None:
    @xp.jit
    def written(x: Any, t: float) -> Any:
        y = x * 2
        y[[0, 2]] = [t, 3.0]
        return y

    for t in (0.5, 2.5):
        assert written(xp.arange(3.0), t).tolist() == [t, 2.0, 3.0]


def test_large_lists_are_recorded(xp: ModuleType) -> None:
    many = list(range(60_000))
    x = xp.arange(10.0)
    x[0]
    before = xp.stats()["nodes_recorded"]
    found = x[[k % 10 for k in many]]
    assert xp.stats()["nodes_recorded"] > before
    assert_array_equal(np.asarray(found), np.arange(10.0)[[k % 10 for k in many]])


def test_arrays_in_a_list_are_elements_of_objects(xp: ModuleType) -> None:
    a, b = xp.array(1.5), xp.arange(3.0)
    for make in (xp.array, xp.asarray, xp.asanyarray):
        for given in ([a], (a, a), [b, a], [a, b]):
            made = make(given, dtype=object)
            assert all(one is two for one, two in zip(made, given, strict=True)), make
        assert make([b, b], dtype=object).tolist() == [[0.0, 1.0, 2.0]] * 2

"""Functions that Numba compiles take our arrays, write to them, and find NumPy under our name."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import clfuse
import clfuse as xp
from clfuse.interop import numba_functions
from clfuse.interop.third_party_patches import in_shared_memory
from clfuse.linalg import norm
from tests.ecosystem.comparing import agree

numba = pytest.importorskip("numba", exc_type=ImportError)

LINE = np.arange(12.0)
TABLE = np.arange(12.0).reshape(3, 4)
Pair = collections.namedtuple("Pair", "array number")


@numba.njit
def total(x: Any) -> Any:
    found = 0.0
    for value in x.flat:
        found += value
    return found


@numba.njit
def doubled(x: Any) -> None:
    x[...] = x * 2


@numba.njit("float64(float64[:], int64)")
def at(x: Any, place: Any) -> Any:
    return x[place]


@numba.njit
def named(x: Any) -> Any:
    """Names of ours, as in a program that imports clfuse in NumPy's place."""
    y = xp.zeros_like(x)
    y[:] = xp.sqrt(x) + xp.pi
    return norm(y) + xp.linalg.norm(y) + xp.float64(1) + later(y)


@numba.njit
def later(x: Any) -> Any:
    return xp.sum(x)


@numba.njit
def of_pair(pair: Any) -> Any:
    return pair[0].sum() + pair[1]


@numba.njit
def of_list(arrays: Any) -> Any:
    found = 0.0
    for array in arrays:
        found += array.sum()
    return found


@numba.vectorize(["float64(float64, float64)"])
def combined(a: Any, b: Any) -> Any:
    return a + 2 * b


@numba.vectorize
def combined_later(a: Any, b: Any) -> Any:
    return a + 2 * b


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
def running(x: Any, found: Any) -> None:
    found[0] = x[0]
    for place in range(1, x.shape[0]):
        found[place] = found[place - 1] + x[place]


@numba.stencil
def curvature(a: Any) -> Any:
    return a[-1] + a[1] - 2 * a[0]


def in_a_closure(m: Any) -> Any:
    offsets, scale = m.asarray([3.0, 4.0]), m.asarray(LINE).max()

    @numba.njit
    def inner(x: Any) -> Any:
        return x * scale + offsets[1]

    return inner(m.asarray(LINE))


def in_a_list(m: Any) -> Any:
    arrays = numba.typed.List()
    arrays.append(m.asarray(LINE))
    arrays.append(m.asarray(LINE) + 1)
    return of_list(arrays)


CALLS: dict[str, Callable[[Any], Any]] = {
    "an array": lambda m: total(m.asarray(LINE)),
    "what waits to be computed": lambda m: total(m.asarray(LINE) * 2 + 1),
    "a part": lambda m: total(m.asarray(TABLE)[1:, ::-2]),
    "a table turned": lambda m: total(m.asarray(TABLE).T),
    "other dtypes": lambda m: [total(m.ones(3, kind)) for kind in ("i4", "f4", "?", "c16")],
    "a signature": lambda m: at(m.asarray(LINE), 3),
    "numbers": lambda m: at(m.asarray(LINE), m.asarray(LINE).argmax()),
    "a tuple": lambda m: of_pair((m.asarray(LINE), 2.0)),
    "a named tuple": lambda m: of_pair(Pair(m.asarray(LINE), m.asarray(LINE).sum())),
    "names of ours": lambda m: named(m.asarray(LINE)),
    "a ufunc": lambda m: combined(m.asarray(LINE), 3.0),
    "a ufunc of any dtype": lambda m: combined_later(m.asarray(LINE), m.asarray(LINE)),
    "a generalized ufunc": lambda m: running(m.asarray(TABLE)),
    "a stencil": lambda m: curvature(m.asarray(LINE)),
    "a closure": in_a_closure,
    "a list of Numba's": in_a_list,
    "a result": lambda m: m.sin(m.asarray(combined(m.asarray(LINE), 3.0))),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", CALLS)
def test_compiled_functions_take_our_arrays(name: str, host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        agree(CALLS[name], rtol=1e-14)


@pytest.mark.parametrize("host_us", [0, 50])
def test_what_compiled_functions_write_is_in_our_arrays(host_us: int) -> None:
    with clfuse.config.override(host_us=host_us):
        table = clfuse.asarray(TABLE)
        copy, before = table.copy(), table + 0
        doubled(table)
        doubled(table[1:, ::2])
        doubled(table.T[3])
        expected = TABLE * 2
        expected[1:, ::2] *= 2
        expected.T[3] *= 2
        assert_array_equal(table.get(), expected)
        assert_array_equal((table + 1).get(), expected + 1)
        assert_array_equal(copy.get(), TABLE)
        assert_array_equal(before.get(), TABLE)


def test_arrays_that_may_not_be_written_to_are_not() -> None:
    line = clfuse.asarray(LINE)
    line.flags.writeable = False
    assert total(line) == LINE.sum()
    with pytest.raises(numba.TypingError):
        doubled(line)
    assert_array_equal(line.get(), LINE)


def test_objects_of_compiled_classes_hold_our_memory() -> None:
    class Sums:
        def __init__(self, values: Any) -> None:
            self.values = values

        def add(self, other: Any) -> None:
            for place in range(self.values.shape[0]):
                self.values[place] += other[place]

    compiled = numba.experimental.jitclass([("values", numba.float64[:])])(Sums)
    values = clfuse.asarray(LINE)
    sums = compiled(values)
    sums.add(clfuse.asarray(LINE) + 1)
    assert_array_equal(values.get(), LINE + LINE + 1)
    assert_array_equal(np.asarray(sums.values), LINE + LINE + 1)


def test_types_are_those_of_numpys_arrays() -> None:
    parts = (lambda x: x, lambda x: x[::2], lambda x: x[:, 0], lambda x: x.T, lambda x: x.sum())
    for part in parts:
        assert numba.typeof(part(clfuse.asarray(TABLE))) == numba.typeof(part(TABLE))


def test_other_arguments_stay_the_same_objects() -> None:
    for value in (1.5, "text", LINE, (1, LINE), [LINE, 2], Pair(LINE, 1), None, {"a": 1}):
        assert in_shared_memory(value) is value


def test_names_that_numpy_has_not_stay_ours() -> None:
    for value in (clfuse.evaluate, clfuse.jit, total, np.sin, 3, None):
        assert numba_functions.of_numpy(value, in_shared_memory) is value
    assert numba_functions.of_numpy(clfuse, in_shared_memory) is np
    drawn = numba_functions.of_numpy(clfuse.random.default_rng, in_shared_memory)
    assert drawn is np.random.default_rng

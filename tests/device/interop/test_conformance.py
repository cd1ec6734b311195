"""What NumPy's own tests ask for beyond values: subclasses, array-likes, lists beside lazy scalars,
arrays that stay on the host, strides, iterators that write."""

from __future__ import annotations

import collections
import copy
import math
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_same_error

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint64", "float32", "float64", "complex64"])
def test_a_lazy_scalar_is_called_as_numpys(xp: ModuleType, dtype: str) -> None:
    expected = np.ones(3, dtype)[-1]
    for made in (xp.full(3, 1, dtype)[-1], (xp.ones(3, dtype) | xp.ones(3, dtype)).max()
                 if dtype in ("bool", "int32", "uint64") else xp.ones(3, dtype).prod()):
        assert type(made).__name__ == type(expected).__name__
        assert (repr(made), str(made)) == (repr(expected), str(expected))
        assert isinstance(made, type(expected))
        assert pickle.loads(pickle.dumps(made)) == expected


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_whole_numbers_of_a_lazy_scalar_are_those_of_numpys(
    xp: ModuleType, dtype: str, on_host: bool, setting: Callable[..., None]
) -> None:
    if not on_host:
        setting(host_us=0)
    values = np.array([-3, 2.5, 1.25]).astype(dtype)
    for call in (math.trunc, math.floor, math.ceil):
        made, expected = xp.asarray(values).sum(), values.sum()
        if dtype != "float64" and call is math.trunc:  # these have none
            with pytest.raises(TypeError, match="doesn't define __trunc__"):
                call(made)
        else:
            assert (type(call(made)), call(made)) == (type(call(expected)), call(expected))
        name = f"__{call.__name__}__"
        assert hasattr(made, name) is hasattr(expected, name)


def test_a_lazy_scalar_repeats_lists_and_text(xp: ModuleType) -> None:
    count = xp.arange(4).max()
    assert [0] * count == [0, 0, 0] == count * [0]
    assert (1,) * count == (1, 1, 1)
    assert "ab" * count == "ababab" == count * "ab"
    assert count * collections.deque([1]) == collections.deque([1, 1, 1])
    assert np.asarray(count * xp.arange(3)).tolist() == [0, 3, 6]
    with pytest.raises(TypeError, match=r"non-int of type 'numpy\.float64'"):
        [0] * xp.arange(3.0).sum()


def test_bounds_of_a_part_are_its_own(xp: ModuleType) -> None:
    whole = xp.arange(100) + 0
    whole.tolist()
    part = whole[:3]
    assert np.asarray(xp.bincount(part)).tolist() == [1, 1, 1]
    assert np.asarray(xp.ravel_multi_index((part, part + 1), (3, 4))).tolist() == [1, 6, 11]
    assert [np.asarray(x).tolist() for x in xp.unravel_index(part, (1, 3))] == [[0] * 3, [0, 1, 2]]
    for wrong in (whole[2:5], whole[:3] - 1):
        with pytest.raises(ValueError, match="invalid entry"):
            xp.ravel_multi_index((wrong,), (4,))
    with pytest.raises(ValueError, match="larger than the maximum"):
        xp.ravel_multi_index(([0], [0]), (2**62, 4))


@pytest.mark.clfuse_only
def test_subclasses_are_numpys_and_mix_with_ours(xp: ModuleType) -> None:
    class Tagged(xp.ndarray):  # type: ignore[name-defined, misc]
        def __new__(cls, values: Any, tag: str) -> Any:
            made = xp.asarray(values).view(cls)
            made.tag = tag
            return made

        def __array_finalize__(self, other: Any) -> None:
            self.tag = getattr(other, "tag", None)

        def plain(self) -> Any:
            return self.view(xp.ndarray)

    tagged = Tagged([1.0, 2.0], "x")
    ours = xp.arange(2.0)
    assert isinstance(tagged, np.ndarray)
    assert isinstance(tagged, xp.ndarray)
    for made in (tagged + ours, ours + tagged, xp.sin(tagged), xp.zeros_like(tagged), tagged[1:]):
        assert type(made) is Tagged
        assert made.tag == "x"
    assert np.asarray(ours - tagged).tolist() == [-1.0, -1.0]
    assert type(xp.asanyarray(tagged)) is Tagged
    assert type(xp.asarray(tagged)) is xp.ndarray
    assert type(tagged.plain()) is np.ndarray
    assert Tagged.__base__(2, buffer=xp.ones(2)).tolist() == [1.0, 1.0]
    ours += tagged
    assert np.asarray(ours).tolist() == [1.0, 3.0]
    matrix, masked = np.matrix([[1, 2], [3, 4]]), np.ma.array([1.0, 2.0], mask=[0, 1])
    square = xp.arange(4).reshape(2, 2)
    assert (square * matrix).tolist() == [[3, 4], [11, 16]]
    assert (matrix * square).tolist() == [[4, 7], [8, 15]]
    for total in (ours + masked, masked + ours):
        assert total.mask.tolist() == [False, True]
        assert total[0] == 2.0


@pytest.mark.clfuse_only
def test_arrays_that_stay_on_the_host_are_arrays(xp: ModuleType) -> None:
    texts, things = xp.array(["a", "b"]), xp.array([None, 1])
    for host in (texts, things, xp.zeros(2, "M8[D]"), xp.zeros(2, "i4,f8")):
        assert isinstance(host, xp.ndarray)
        assert xp.asarray(host) is host
        assert xp.array(host) is not host
    assert (xp.arange(2) != texts).tolist() == [True, True]
    assert (xp.arange(2) == things).tolist() == [False, True]
    short, long = xp.arange(2), xp.arange(3)
    ragged = xp.array([short, long], dtype=object)
    ragged[0] += 1
    assert ragged[0] is short
    assert np.asarray(short).tolist() == [1, 2]
    assert xp.shares_memory(ragged, ragged[1:])


@pytest.mark.clfuse_only
def test_other_classes_answer_for_what_they_are(xp: ModuleType) -> None:
    class Duck:
        def __array_function__(self, function: Any, *rest: Any) -> Any:
            return function if xp else None  # a program that knows our module gets our functions

    class Likeness:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return xp.array([[2.0, 0.0], [0.0, 4.0]])

    for name in ("sum", "reshape", "mean"):
        assert getattr(xp, name)(Duck(), 0) is getattr(xp, name)
    assert xp.concatenate([xp.ones(2), Duck()]) is xp.concatenate
    assert xp.zeros(3, like=Duck()) is xp.zeros
    assert xp.loadtxt("none", like=Duck()) is xp.loadtxt
    with pytest.raises(TypeError, match="__array_function__"):
        xp.zeros(3, like=4)
    assert np.asarray(xp.linalg.solve(Likeness(), xp.ones(2))).tolist() == [0.5, 0.25]
    assert xp.array([Likeness()]).shape == (1, 2, 2)
    xp.testing.assert_array_equal(Likeness(), xp.diag(xp.array([2.0, 4.0])))


@pytest.mark.clfuse_only
def test_the_assertions_look_at_our_arrays(xp: ModuleType) -> None:
    x = xp.arange(3.0)
    xp.testing.assert_equal({"x": [x, x.sum()]}, {"x": [np.arange(3.0), 3.0]})
    xp.testing.assert_allclose(x, [0, 1, 2])
    with pytest.raises(AssertionError):
        xp.testing.assert_array_equal(x, [0, 1, 3])
    with xp.testing.assert_raises(ValueError):
        x.reshape(2)


def test_nditer_writes_through_views(xp: ModuleType) -> None:
    matrix = xp.arange(6.0).reshape(2, 3)
    with xp.nditer(matrix.T[::-1], op_flags=["readwrite"]) as it:
        for x in it:
            x[...] = 2 * x + 1
    assert np.asarray(matrix).tolist() == [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]
    outer, inner = xp.nested_iters(matrix, [[1], [0]], op_flags=["readwrite"])
    for _ in outer:
        for x in inner:
            x += 1
    assert np.asarray(matrix).tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
    it = xp.nditer([matrix, None])
    for x, y in it:
        y[...] = -x
    assert it.operands[1].tolist() == (-np.asarray(matrix)).tolist()


STRIDED: list[Callable[[Any, Any], Any]] = [
    lambda xp, x: xp.lib.stride_tricks.as_strided(x, (3, 4), (16, 8)),
    lambda xp, x: xp.lib.stride_tricks.as_strided(x[::-1], (5,), (-16,)),
    lambda xp, x: xp.lib.stride_tricks.as_strided(x, (2, 0, 3), (8, 8, 8)),
    lambda xp, x: xp.lib.stride_tricks.as_strided(x[3], (4,), (0,)),
    lambda xp, x: xp.lib.stride_tricks.as_strided(x.view("i4"), (4,), (20,)),
]


@pytest.mark.parametrize("make", STRIDED)
def test_as_strided_is_a_view(xp: ModuleType, make: Callable[[Any, Any], Any]) -> None:
    x, reference = xp.arange(10.0), np.arange(10.0)
    ours, expected = make(xp, x), make(np, reference)
    assert ours.shape == expected.shape
    assert ours.strides == expected.strides
    np.testing.assert_array_equal(np.asarray(ours), expected)
    x += 1
    reference += 1
    np.testing.assert_array_equal(np.asarray(ours), expected)
    if np.asarray(expected).size == 5:
        ours[1:] = -1
        expected[1:] = -1
        np.testing.assert_array_equal(np.asarray(x), reference)


@pytest.mark.clfuse_only
def test_as_strided_stays_in_the_memory(xp: ModuleType) -> None:
    x = xp.arange(10.0)
    as_strided = xp.lib.stride_tricks.as_strided
    for shape, strides in (((11,), (8,)), ((2,), (-8,)), ((2, 2), (72, 8))):
        with pytest.raises(ValueError, match="the memory has elements 0 to 9"):
            as_strided(x, shape, strides)
    with pytest.raises(ValueError, match="read-only"):
        as_strided(x, (3, 4), (16, 8))[0] = 1


ERRORS: list[Callable[[Any], Any]] = [
    lambda xp: xp.ones((2, 2))[0.0:, 0.0],
    lambda xp: xp.ones((2, 2))[0.0:],
    lambda xp: xp.ones(2)[(None,) * 70],
    lambda xp: xp.ones((1,) * 64)[(xp.array([0]),) * 64],
    lambda xp: xp.array([1], ndmin=65),
    lambda xp: xp.array([1], copy="always"),
    lambda xp: xp.array([xp.array(300)[()]], dtype=xp.int8),
    lambda xp: xp.empty(2**63 - 1, dtype=xp.uint8),
    lambda xp: xp.add(1, xp.ones(2), ...),
    lambda xp: xp.negative(xp.ones(2), out=(...,)),
    lambda xp: xp.concatenate([xp.ones(2)], dtype=">f8", casting="no"),
    lambda xp: xp.convolve(xp.ones(3), xp.ones(2), "v"),
    lambda xp: xp.packbits(xp.ones(3, dtype=xp.uint8), bitorder=10),
    lambda xp: xp.linalg.cross(xp.ones((3, 2)), xp.ones((3, 2))),
    lambda xp: xp.einsum("ab,bc,cd", *[xp.eye(2)] * 3, optimize=["einsum_path", (2, 3), (0, 1)]),
    lambda xp: xp.ones(3).__imatmul__(xp.ones(3)),
    lambda xp: xp.ones(3).__array_namespace__(api_version="1.0"),
    lambda xp: xp.ones(3).view(int, xp.float64),
    lambda xp: xp.pad(xp.ones((2, 2)), (((3,), (4,)), ((0,), (1,))) * 2),
]


@pytest.mark.parametrize("make", ERRORS)
def test_errors_are_numpys(xp: ModuleType, make: Callable[[Any], Any]) -> None:
    assert_same_error(make, xp)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "bool"])
def test_nothing_folds_to_all_bits(xp: ModuleType, dtype: str) -> None:
    for shape, options in (((0,), {}), ((0, 3), {}), ((3,), {"where": False})):
        actual = xp.bitwise_and.reduce(xp.ones(shape, dtype), **options)
        expected = np.bitwise_and.reduce(np.ones(shape, dtype), **options)
        assert actual.dtype == expected.dtype
        assert np.asarray(actual).tolist() == expected.tolist()


def test_methods_take_what_numpys_take(xp: ModuleType) -> None:
    x = xp.array([2, 0, 1])
    assert x.choose([1, 2, 3], [4, 5, 6], [7, 8, 9]).tolist() == [7, 2, 6]
    assert xp.zeros((2, 3, 4)).transpose(xp.array([2, 0, 1])).shape == (4, 2, 3)
    assert int(x.dot(b=x)) == 5
    counts, edges = xp.histogram(xp.arange(50.0), 4, range=(x.min(), xp.float64(7) + x.max()))
    assert (counts.tolist(), edges.tolist()) == ([3, 2, 2, 3], [0.0, 2.25, 4.5, 6.75, 9.0])
    assert xp.array([1 + 1j]).conjugate(xp.zeros(1, complex)).tolist() == [1 - 1j]
    assert xp.asfortranarray(xp.ones(10)[::2]).flags.fortran
    assert xp.nanquantile(xp.array(3, dtype=xp.int8), 1).dtype == np.int8

    class Holder:
        array, zeros = xp.array, xp.zeros

    assert Holder().array([1]).tolist() == [1]
    assert Holder().zeros(1).tolist() == [0.0]
    assert pickle.loads(pickle.dumps(xp.zeros)) is xp.zeros is copy.deepcopy(xp.zeros)
    assert type(xp.isclose(1.0, 2.0)) is np.bool_
    assert type(xp.sum(np.float32(2))) is np.float32

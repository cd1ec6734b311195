"""The array keeps Python's and NumPy's protocols: numbers, containers, copying, pickling, printing.
"""

from __future__ import annotations

import copy
import importlib
import io
import operator
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse._core import loading
from tests.support.agreement import Batch, assert_bitwise, assert_same_error, host
from tests.support.hostile import DTYPES, SHAPES, hostile, layouts, ordinary

Show = Callable[[Any], object]


def observed(xp: ModuleType, function: Callable[[Any], object]) -> None:
    """The function observes Python values; they are equal and of the same type."""
    expected, actual = function(np), function(xp)
    assert repr(actual) == repr(expected)
    assert type(actual) is type(expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_single_elements_become_python_numbers(dtype: str, xp: ModuleType) -> None:
    values = hostile(dtype)[:40:3]
    kind = np.dtype(dtype).kind
    for value in values:
        for shape in ((), (1,), (1, 1)):
            observed(xp, lambda m, v=value, s=shape: m.full(s, v).item())
            observed(xp, lambda m, v=value, s=shape: bool(m.full(s, v)))
        observed(xp, lambda m, v=value: complex(m.full((), v)))
        observed(xp, lambda m, v=value: m.full((), v).tolist())
        if kind != "c":
            observed(xp, lambda m, v=value: float(m.full((), v)))
        if kind in "biu":
            observed(xp, lambda m, v=value: int(m.full((), v)))
        if kind in "iu":
            observed(xp, lambda m, v=value: operator.index(m.full((), v)))


def test_integer_results_serve_as_indices_and_sizes(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.arange(10)
        n = x[3]
        return [x[x.argmax()], x[n:], m.zeros(n), list(range(n)), [5, 6, 7, 8][n], x[:n].sum(),
                m.arange(n), x.reshape(n - 1, -1)]

    expected, actual = call(np), call(xp)
    for one, other in zip(actual, expected, strict=True):
        if isinstance(other, (np.ndarray, np.generic)):
            assert_bitwise(one, other)
        else:
            assert one == other


def test_many_elements_become_lists(xp: ModuleType) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            data = ordinary(1, shape, dtype)
            observed(xp, lambda m, d=data: m.array(d).tolist())
    observed(xp, lambda m: m.array([[1, 2], [3, 4]]).item(1, 0))
    observed(xp, lambda m: m.array([[1, 2], [3, 4]]).item(3))


def test_containers_know_their_length_and_members(xp: ModuleType) -> None:
    observed(xp, lambda m: len(m.zeros((3, 4))))
    observed(xp, lambda m: len(m.zeros(0)))
    observed(xp, lambda m: 3 in m.arange(5))
    observed(xp, lambda m: 9 in m.arange(5))
    observed(xp, lambda m: [float(v) for v in m.linspace(0, 1, 5)])
    observed(xp, lambda m: [row.tolist() for row in m.arange(6).reshape(2, 3)])
    observed(xp, lambda m: [float(v) for v in reversed(m.arange(3.0))])
    observed(xp, lambda m: sum(m.arange(5)).item())
    observed(xp, lambda m: max(m.arange(5)).item())
    observed(xp, lambda m: sorted(int(v) for v in m.array([3, 1, 2])))
    observed(xp, lambda m: (lambda a, b, c: (int(a), int(c)))(*m.arange(3)))
    observed(xp, lambda m: [v.tolist() for v in m.arange(4).reshape(2, 2).flat])
    observed(xp, lambda m: bool(m.array([True])) and not m.array(0))
    observed(xp, lambda m: [(i, int(v)) for i, v in np.ndenumerate(m.arange(3))])


def test_rows_from_iteration_are_views(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.zeros((3, 4))
        for number, row in enumerate(x):
            row += number
            row[0] = -1
        return x

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_arrays_are_not_hashable_and_truth_needs_one_element(xp: ModuleType) -> None:
    assert_same_error(lambda m: hash(m.arange(3)), xp)
    assert_same_error(lambda m: {m.arange(3): 1}, xp)
    assert_same_error(lambda m: bool(m.arange(3)), xp)
    assert_same_error(lambda m: bool(m.zeros((0, 2))), xp)
    assert_same_error(lambda m: float(m.arange(2)), xp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repr_and_str_are_numpys(dtype: str, xp: ModuleType) -> None:
    for shape in ((0,), (1,), (3,), (2, 3), (0, 3), (2, 2, 2)):
        data = ordinary(2, shape, dtype, "unit")
        observed(xp, lambda m, d=data: repr(m.array(d)))
        observed(xp, lambda m, d=data: str(m.array(d)))
    observed(xp, lambda m: str(m.array(hostile(dtype))))
    observed(xp, lambda m: repr(m.array(hostile(dtype))[::-3]))
    observed(xp, lambda m: str(m.array(ordinary(3, (), dtype))))
    observed(xp, lambda m: str(m.arange(5000).astype(dtype) if dtype != "bool" else m.zeros(2)))


def test_printing_follows_numpys_options(xp: ModuleType) -> None:
    with np.printoptions(precision=3, suppress=True, threshold=5, linewidth=40):
        observed(xp, lambda m: repr(m.linspace(0, 1e5, 30)))
        observed(xp, lambda m: str(m.array([1e-8, 1.0])))
    observed(xp, lambda m: np.array2string(m.arange(3)))
    observed(xp, lambda m: f"{m.array(3.14159):.2f}")
    observed(xp, lambda m: f"{m.arange(4.0).sum():8.3f}|{m.arange(3).max():>5d}")
    observed(xp, lambda m: f"{m.arange(3)}")
    observed(xp, lambda m: f"{m.array(2):d}")
    observed(xp, lambda m: "%.3f" % m.array(2.5))  # noqa: UP031 - the protocol under test
    observed(xp, lambda m: "%d %s" % (m.array(7), m.arange(2)))  # noqa: UP031


def test_folded_values_and_single_elements_print_like_numbers(xp: ModuleType) -> None:
    observed(xp, lambda m: str(m.arange(4.0).sum()))
    observed(xp, lambda m: str(m.arange(4)[2]))
    observed(xp, lambda m: repr(m.arange(4.0).mean()))
    observed(xp, lambda m: repr(m.arange(4)[2]))
    observed(xp, lambda m: repr([m.arange(4.0).max()]))
    observed(xp, lambda m: repr(m.array(2.0)))
    observed(xp, lambda m: round(float(m.array(2.567).sum()), 2))


def test_results_of_reductions_behave_like_the_numbers_they_are(xp: ModuleType) -> None:
    def call(m: ModuleType) -> object:
        total = m.arange(4.0).sum()
        return [total == 6, {float(total): 1}, total > 5 and total < 7, abs(-total) == total,
                round(total, 1) == 6.0, int(total), total.is_integer() if m is np else True,
                divmod(total, 4) == (1.0, 2.0), math_floor(total)]

    def math_floor(value: Any) -> int:
        import math
        return math.floor(value)

    assert [bool(v) if not isinstance(v, (dict, int)) else v for v in call(xp)] == [  # type: ignore[attr-defined]
        bool(v) if not isinstance(v, (dict, int)) else v for v in call(np)]  # type: ignore[attr-defined]


def test_hash_of_a_single_number_is_that_of_the_number(xp: ModuleType) -> None:
    observed(xp, lambda m: {m.arange(4.0).sum().item(): "six"}[6.0])
    assert hash(xp.arange(4.0).sum()) == hash(np.arange(4.0).sum())


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickled_arrays_come_back_equal_and_independent(dtype: str, xp: ModuleType) -> None:
    for shape in ((), (0,), (5,), (3, 4), (2, 0, 3)):
        data = ordinary(4, shape, dtype, "hostile")
        x = xp.array(data)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            y = pickle.loads(pickle.dumps(x, protocol))
            assert type(y) is type(x)
            assert_bitwise(y, data)
    x = xp.array(ordinary(5, (4, 6), dtype))
    view = pickle.loads(pickle.dumps(x[::2, ::-1]))
    expected = host(x)[::2, ::-1].copy()
    x[...] = 0
    assert_bitwise(view, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_classes_of_lazy_scalars_are_pickled(dtype: str, xp: ModuleType) -> None:
    kind = type(xp.ones(3, dtype).max())
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(kind, protocol)) is np.dtype(dtype).type
    assert copy.deepcopy(kind) is kind


def test_bound_methods_are_pickled_with_their_array(xp: ModuleType) -> None:
    x = xp.arange(4.0)
    for bound, arguments, expected in (
        (x.sum, (), 6.0), (x.__add__, (1,), [1, 2, 3, 4]), (x.__getitem__, (2,), 2.0),
        (x.__rsub__, (1,), [1, 0, -1, -2]), (x.__bool__, None, None),
    ):  # fmt: skip
        again = pickle.loads(pickle.dumps(bound))
        assert again.__name__ == bound.__name__
        if arguments is not None:
            assert host(again(*arguments)).tolist() == expected


@pytest.mark.clfuse_only
def test_pickles_of_version_0_1_are_found(xp: ModuleType) -> None:
    """They name modules that are elsewhere now."""
    assert pickle.loads(b"cclfuse.api.ufunc\n_named\n(S'sin'\ntR.") is xp.sin
    values = pickle.dumps(np.arange(3.0), 0).removesuffix(b".")
    array = pickle.loads(b"cclfuse.api.protocols\nrestored\n(" + values + b"I01\ntR.")
    assert type(array) is xp.ndarray
    assert_bitwise(array, np.arange(3.0))
    for name in ("random_generator\nGenerator", "random_bits\nPhilox4x32", "random\nRandomState"):
        assert callable(pickle.loads(b"cclfuse.api." + name.encode() + b"\n."))


def test_a_pickle_is_read_only_where_its_memory_may_be_anothers(xp: ModuleType) -> None:
    for m in (np, xp):
        x = m.arange(3.0)
        x.flags.writeable = False
        for array in (x, m.broadcast_to(x, (2, 3))):
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
                y = pickle.loads(pickle.dumps(array, protocol))
                assert y.flags.writeable is (protocol < 5 or array.ndim == 2)


def test_copies_are_independent(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.arange(6.0).reshape(2, 3)
        copies = [x.copy(), copy.copy(x), copy.deepcopy(x), m.copy(x), m.array(x),
                  x.astype("float64"), x[:, ::-1].copy(), copy.deepcopy({"a": [x]})["a"][0]]
        x += 10
        copies[0][0] = -1
        return [x, *copies]

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_deepcopy_keeps_what_is_shared_within(xp: ModuleType) -> None:
    x = xp.arange(3.0)
    twice = copy.deepcopy([x, x])
    twice[0] += 1
    assert_bitwise(twice[1], np.arange(3.0) + 1)
    assert_bitwise(x, np.arange(3.0))


def test_numpy_reads_the_array(xp: ModuleType) -> None:
    data = ordinary(6, (3, 4), "float32")
    x = xp.array(data)
    assert_bitwise(np.asarray(x), data)
    assert_bitwise(np.asarray(x[::2, ::-1]), data[::2, ::-1])
    assert_bitwise(np.asarray(x, dtype="float64"), data.astype("float64"))
    assert_bitwise(np.array(x * 2), data * 2)
    assert_bitwise(np.array([x[0], x[1]]), data[:2])
    assert_bitwise(np.asarray(x.T), data.T)
    assert_bitwise(np.frombuffer(x.tobytes(), "float32"), data.ravel())
    into = np.zeros((3, 4), "float32")
    into[...] = x
    assert_bitwise(into, data)
    into[0] = x.sum()
    assert np.all(into[0] == data.sum())
    assert list(np.asarray(x).shape) == [3, 4]


def test_an_array_on_a_writable_buffer_shares_its_memory(xp: ModuleType) -> None:
    memory = bytearray(32)
    vector = xp.frombuffer(memory)
    matrix = xp.ndarray((2, 2), float, memory)
    vector[1:] = xp.arange(3.0) + 1
    matrix[0] *= 2
    assert memory == np.array([0.0, 2, 2, 3]).tobytes()
    assert xp.array_equal(vector, matrix.ravel())
    assert isinstance(vector, xp.ndarray)
    assert float(xp.sqrt(vector)[3]) == np.sqrt(3.0)
    assert_bitwise(xp.arange(4.0) + vector, np.arange(4.0) + vector)


@pytest.mark.clfuse_only
@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")  # NumPy 2.5
@pytest.mark.parametrize("size", [4, 5000])
def test_a_traced_function_reads_and_writes_shared_memory(
    size: int, xp: ModuleType
) -> None:
    x, other = xp.zeros(size), xp.zeros(size)
    seen, dates = np.asarray(x.data), other.view("M8[s]")

    @xp.jit
    def step(a: Any, increment: float) -> Any:
        a[1:] += increment
        return a * 2 + other  # which is nobody's argument

    for turn in range(4):
        seen[0], dates[1] = turn, np.datetime64("1970-01-01", "s") + turn
        result = np.asarray(step(x, 0.5))
        expected = 2 * seen
        expected[1] += dates[1:2].view(float)[0]
        np.testing.assert_array_equal(result, expected)
        assert seen[0] == turn
        assert np.all(seen[1:] == (turn + 1) * 0.5)


def test_arrays_are_saved_and_loaded(xp: ModuleType) -> None:
    x = xp.array(ordinary(7, (3, 4), "float64"))
    stream = io.BytesIO()
    np.save(stream, x)
    stream.seek(0)
    assert_bitwise(np.load(stream), host(x))
    stream = io.BytesIO()
    xp.save(stream, x)
    stream.seek(0)
    assert_bitwise(xp.load(stream), host(x))


def test_attributes_are_numpys(xp: ModuleType) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            expected = np.zeros(shape, dtype)
            x = xp.zeros(shape, dtype)
            for name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes"):
                assert getattr(x, name) == getattr(expected, name), name
                assert type(getattr(x, name)) is type(getattr(expected, name)), name
            assert x.T.shape == expected.T.shape
    x = xp.zeros((3, 4))
    assert x.flags.writeable
    assert x.strides == (32, 8)


def test_shape_can_be_set(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.arange(6)
        view = x[:]
        x.shape = (2, 3)
        view[0] = 9
        return x

    batch = Batch(xp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 prefers reshape
        batch.same("values", call)
    batch.check()


def test_comparisons_with_strangers(xp: ModuleType) -> None:
    observed(xp, lambda m: m.arange(3) is None)
    batch = Batch(xp)
    batch.same("== None", lambda m: m.arange(3) == None)  # noqa: E711 - elementwise in NumPy
    batch.same("!= None", lambda m: m.arange(3) != None)  # noqa: E711
    batch.same("== list", lambda m: m.arange(3) == [0, 5, 2])
    batch.same("== numpy", lambda m: m.arange(3) == np.arange(3))
    batch.same("numpy ==", lambda m: np.arange(3) == m.arange(3))
    batch.same("list +", lambda m: operator.add([1, 2, 3], m.arange(3)))
    batch.same("tuple *", lambda m: m.arange(3) * (1, 2, 3))
    batch.same("matmul with list", lambda m: m.arange(3) @ [1, 2, 3])
    batch.same("numpy array -=", lambda m: operator.isub(np.ones(3), m.arange(3)))
    batch.check()


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_array_equal_and_allclose_give_python_truth(dtype: str, xp: ModuleType) -> None:
    data = ordinary(8, (3, 4), dtype)
    for function in ("array_equal", "allclose", "array_equiv"):
        for other in (data, data + 1, data[0]):
            expected = getattr(np, function)(data, other)
            assert bool(getattr(xp, function)(xp.array(data), xp.array(other))) == expected
    assert bool(xp.array(data).any()) == bool(data.any())
    assert xp.isscalar(3.0)
    assert xp.ndim(xp.array(data)) == 2
    assert xp.shape(xp.array(data)) == (3, 4)
    assert xp.size(xp.array(data)) == 12
    assert xp.iscomplexobj(xp.array(data)) is False


def test_memory_is_shared_where_numpy_shares_it(xp: ModuleType) -> None:
    def answers(m: ModuleType) -> list[bool]:
        x = m.zeros((4, 6))
        return [bool(m.shares_memory(x, other)) for other in (
            x, x[1], x.T, x.reshape(-1), x[::2], x.copy(), x + 0, m.zeros((4, 6)), x.ravel())] + [
            bool(m.may_share_memory(x[:2], x[1:])), bool(m.shares_memory(x[:2], x[2:])),
            bool(m.shares_memory(x[:, ::2], x[:, 1::2]))]

    assert answers(xp) == answers(np)


def test_views_of_layouts_print_and_convert(xp: ModuleType) -> None:
    data = ordinary(9, (5, 6), "int32")
    for name, key in layouts(data):
        if key is None:
            observed(xp, lambda m: str(m.array(data).T))
        else:
            observed(xp, lambda m, k=key: str(m.array(data)[k]))
            assert_bitwise(np.asarray(xp.array(data)[key]), data[key])
        assert name


@pytest.mark.clfuse_only
def test_modules_that_only_numpy_has_are_found_in_clfuse() -> None:
    import clfuse.lib.stride_tricks
    import clfuse.ma as masked
    import clfuse.polynomial.chebyshev
    from clfuse.lib import recfunctions
    from clfuse.random import default_rng
    from clfuse.testing import assert_allclose

    assert masked is np.ma is clfuse.ma
    assert clfuse.polynomial.chebyshev is np.polynomial.chebyshev
    assert recfunctions.__name__ == "numpy.lib.recfunctions"
    assert clfuse.lib.stride_tricks.sliding_window_view(clfuse.arange(3.0), 2).shape == (2, 2)
    assert_allclose(default_rng(1).random(3), default_rng(1).random(3))
    for name in ("clfuse.nothing", "clfuse.lib.nothing", "clfuse.linalg.nothing"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


@pytest.mark.parametrize("count", [4, 300_000])
def test_classes_of_arrays_and_scalars_are_equal_to_numpys(xp: ModuleType, count: int) -> None:
    for dtype in ("float64", "float32", "int64", "bool", "complex128"):
        x = xp.ones(count, dtype)
        kind = np.dtype(dtype).type
        for value in (x.max(), x[2], x.any() if dtype == "bool" else x.sum(dtype=dtype)):
            assert type(value) == kind  # noqa: E721
            assert kind == type(value)  # noqa: E721
            assert type(value) in (np.str_, kind)
            assert type(value) not in (np.uint8, float, np.generic, None, "float64", 3)
    for y in (xp.ones(count), xp.array(["text"]), np.ones(count)):
        assert type(y) == xp.ndarray  # noqa: E721
        assert type(y) in (list, xp.ndarray)
        assert type(y) not in (np.ma.MaskedArray, list, None, "ndarray")


def test_caches_keyed_by_class_tell_our_arrays_from_numpys() -> None:
    import clfuse

    lazy = type(clfuse.arange(300_000.0).sum())
    assert {lazy: 1, clfuse.ndarray: 2}.keys().isdisjoint({np.float64, np.ndarray})


@pytest.mark.skipif(loading.load() is None, reason="the compiled part sees to it")
def test_arrays_that_stay_numpys_are_viewed_as_arrays(xp: ModuleType) -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for x in (xp.array(["text"]), masked, np.rec.array([(1, 2.0)])):
        for view in (x.view(xp.ndarray), x.view(type=xp.ndarray), x.view(x.dtype, xp.ndarray)):
            assert type(view) is np.ndarray
            assert view.tolist() == np.asarray(x).tolist()
            assert np.shares_memory(view, x)
    assert type(np.ma.MaskedArray.view(masked, dtype=xp.ndarray)) is np.ndarray
    for wrong in ((xp.ndarray, xp.ndarray), (xp.ndarray, 3), (1, 2, 3), (1, 2, 3, 4, 5)):
        theirs = [np.ndarray if item is xp.ndarray else item for item in wrong]
        assert_same_error(lambda m, w=wrong, t=theirs: np.ones(2).view(*(t if m is np else w)), xp)

"""Where NumPy's own code meets arrays of ours: seeds, warnings, C functions, objects of pandas."""

from __future__ import annotations

import collections
import ctypes
import os
import pickle
import warnings

import numpy as np
import pytest

import clfuse as cf

PACKAGE = os.path.dirname(cf.__file__) + os.sep
"""Where clfuse's own lines are, whatever the folders above are called."""

GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


@pytest.mark.parametrize("name", GENERATORS)
def test_bit_generators_take_arrays_as_seeds(name):
    ours, numpys = getattr(cf.random, name), getattr(np.random, name)
    made = ours(cf.arange(4))
    assert made.random_raw() == numpys(np.arange(4)).random_raw()
    assert ours(cf.arange(4).max()).random_raw() == numpys(3).random_raw()
    assert type(made) is numpys
    assert isinstance(made, ours)
    assert isinstance(numpys(3), ours)
    assert not isinstance(3, ours)
    assert issubclass(numpys, ours)
    assert not issubclass(int, ours)
    assert pickle.loads(pickle.dumps(ours)) is ours
    assert cf.random.Generator(ours(3)).random() == np.random.Generator(numpys(3)).random()
    with pytest.raises(TypeError):
        ours(cf.arange(3.0))


def test_bit_generators_may_be_derived_from():
    class Counting(cf.random.PCG64):
        count = 0

    made = Counting(cf.arange(3))
    assert type(made) is Counting
    assert isinstance(made, np.random.PCG64)
    assert not isinstance(np.random.PCG64(3), Counting)
    assert made.random_raw() == np.random.PCG64([0, 1, 2]).random_raw()


def test_seed_sequences_take_arrays():
    made = cf.random.SeedSequence(cf.arange(3), spawn_key=(1,))
    expected = np.random.SeedSequence([0, 1, 2], spawn_key=(1,))
    assert made.generate_state(4).tolist() == expected.generate_state(4).tolist()
    assert isinstance(made.spawn(1)[0], cf.random.SeedSequence)


WARN = {
    "divmod": lambda m: m.divmod(m.arange(3), 0),
    "divmod of floats": lambda m: divmod(m.array([1.0, 0.0, np.inf]), 0.0),
    "mean": lambda m: m.mean(m.array([])),
    "median": lambda m: m.median(m.array([])),
    "average": lambda m: m.average(m.array([])),
    "var": lambda m: m.var(m.ones(1), ddof=1),
    "cov": lambda m: m.cov(m.ones(1)),
    "nanmean": lambda m: m.nanmean(m.array([np.nan])),
    "nanmax": lambda m: m.nanmax(m.full((2, 2), np.nan), axis=0),
    "polyfit": lambda m: m.polyfit(m.arange(3.0), m.arange(3.0), 5),
    "loadtxt": lambda m: m.loadtxt([]),
    "genfromtxt": lambda m: m.genfromtxt([]),
    "shuffle": lambda m: m.random.shuffle(collections.UserList([1, 2])),
    "corrcoef": lambda m: m.corrcoef(m.ones((2, 3))),
}


@pytest.mark.parametrize("name", WARN)
def test_numpys_functions_warn_once_and_name_no_line_of_clfuses(name):
    def met(m):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            repr(WARN[name](m))
        assert not [w for w in seen if w.filename.startswith(PACKAGE)]
        return sorted((w.category.__name__, str(w.message)) for w in seen)

    with cf.config.override(host_us=50):
        assert met(cf) == met(np)


def test_integer_division_by_zero_of_two_results_warns_once():
    with cf.config.override(host_us=0, build_after_ms=1000):
        whole, rest = cf.divmod(cf.arange(5000) * 2 + 1, cf.arange(5000) % 7)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            cf.evaluate(whole, rest)
    assert len(seen) <= 1
    assert int(whole[0]) == int(rest[0]) == 0


def test_flip_indexes_what_has_axes_of_its_own():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1, 2, 3])
    assert cf.flip(series).equals(np.flip(series))
    assert cf.flip([1, 2, 3]).tolist() == [3, 2, 1]


def test_c_functions_declared_by_ndpointer_write_to_arrays():
    memset = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    memset = memset(ctypes.memset)
    pointer = cf.ctypeslib.ndpointer(dtype="f8", flags="C_CONTIGUOUS")
    x = cf.ones(4)
    memset(pointer.from_param(x), 0, 16)
    assert x.tolist() == [0, 0, 1, 1]
    with pytest.raises(TypeError):
        pointer.from_param(x.astype("f4"))
    with pytest.raises(TypeError):
        pointer.from_param([1.0])
    cf.ctypeslib.as_ctypes(x)[3] = 9
    assert x.tolist() == [0, 0, 1, 9]


def test_an_array_as_the_buffer_of_an_array_shares_its_memory():
    def run(m):
        x = m.arange(6.0)
        y = m.ndarray((2, 2), buffer=x, offset=8, strides=(16, 8))
        y[0, 0] = 50
        x[2] = 7
        return x.tolist(), y.tolist()

    assert run(cf) == run(np)
    with pytest.raises(TypeError):
        cf.ndarray((9,), buffer=cf.arange(3.0))


def test_a_view_as_no_dtype_is_one_of_float64_where_it_is_said():
    for m in (np, cf):
        x = m.arange(1, 5)
        assert x.view(None).dtype == np.float64
        assert x.view(dtype=None).tolist() == np.arange(1, 5).view(None).tolist()
        assert x.view().dtype == x.view(type=m.ndarray).dtype == x.view(m.ndarray).dtype == np.int64
        assert x.max().view(None) == np.int64(4).view(None)


def test_a_histogram_of_integers_takes_any_truth_as_density():
    for density in (1, abs, np.True_):
        expected = np.histogram(np.arange(4), density=density)
        actual = cf.histogram(cf.arange(4), density=density)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), other)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_of_an_array_writes_to_it() -> None:
    x = cf.arange(4.0).reshape(2, 2)
    matrix = cf.asmatrix(x.T)
    matrix[0, 1] = 9
    matrix += 1
    assert type(matrix) is np.matrix
    assert x.tolist() == [[1, 2], [10, 4]]
    x[1] = 0
    assert matrix.tolist() == [[1, 0], [2, 0]]
    assert cf.asmatrix([[1, 2]]).tolist() == [[1, 2]]


def test_lazy_scalars_are_shown_and_called_as_numpys_classes() -> None:
    from clfuse.interop.subclasses import ArrayType

    total = cf.linspace(0, 1, 300_000).sum()
    assert repr(type(total)) == f"<class '{ArrayType.shown_module}.float64'>"
    assert type(total)("2.5") == 2.5
    assert type(type(total)(3)) is np.float64


@pytest.mark.parametrize("call", [
    lambda m, x, out: m.add(x, 1, out=out), lambda m, x, out: m.sum(x, out=out),
    lambda m, x, out: x.max(out=out), lambda m, x, out: m.cumsum(x, out=out),
    lambda m, x, out: m.add.accumulate(x, out=out), lambda m, x, out: m.mean(x, out=out),
    lambda m, x, out: m.clip(x, 0, 1, out=out), lambda m, x, out: x.cumprod(out=out),
    lambda m, x, out: m.dot(x, x, out=out), lambda m, x, out: m.concatenate([x, x], out=out),
    lambda m, x, out: m.argmax(x, out=out), lambda m, x, out: m.median(x, out=out),
    lambda m, x, out: x.round(out=out), lambda m, x, out: m.minimum.reduce(x, out=out),
])  # fmt: skip
def test_nothing_is_written_to_a_scalar(call):
    for m in (np, cf):
        x = m.linspace(0, 1, 300_000)
        out = x.sum()
        with pytest.raises(TypeError):
            call(m, x, out)
        out.flat[0] = 5
        assert abs(float(out) - 150_000) < 1


@pytest.mark.parametrize("make", [
    lambda s: s.reshape(1), lambda s: s[None], lambda s: s[..., None], lambda s: s.ravel(),
    lambda s: s.reshape(1, 1)[0], lambda s: s.flatten(), lambda s: s.repeat(2),
])  # fmt: skip
def test_arrays_of_a_scalar_are_arrays_of_their_own(make):
    for m in (np, cf):
        total = m.arange(300_000).max()
        made = make(total)
        made += 1
        assert total == 299_999
        assert set(made.tolist()) == {300_000}
        assert not total.flags.writeable

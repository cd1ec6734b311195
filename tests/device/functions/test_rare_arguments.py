"""Arguments that programs rarely give: what NumPy says of them, or makes of them."""

from __future__ import annotations

import collections
import copy
import inspect
import re
import warnings
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.numpy_releases import PADS_BY_AXIS, ROLLS_BY_FLOATS
from tests.support.agreement import assert_same_error, error_of

FLOAT64_WAS_PYTHONS = np.nanquantile(np.ones(1, "e"), np.float64(0.5)).dtype == np.float16
"""Whether the installed NumPy, an older one, takes a float64 for a number of Python's there."""


def _raises(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        function()
    assert text in str(found.value)


@pytest.mark.parametrize("q", [0.25, [0.25, 0.75]])
@pytest.mark.parametrize("name", ["nanquantile", "nanpercentile"])
def test_quantiles_have_the_precision_of_a_given_dtype(
    xp: ModuleType, name: str, q: float | list[float]
) -> None:
    values = np.array([[1, 2.5, np.nan], [3, 4, 5]], np.float16)
    for dtype in ("float16", "float32", "float64"):
        given = np.array(q, dtype)[()]
        expected = getattr(np, name)(values, given, axis=1)
        found = getattr(xp, name)(xp.asarray(values), given, axis=1)
        is_pythons = FLOAT64_WAS_PYTHONS and isinstance(given, float)
        assert found.dtype == ("float64" if is_pythons else expected.dtype)
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_rounded_numbers_go_to_as_many(xp: ModuleType, dtype: str, decimals: int) -> None:
    x = xp.ones((3,), dtype)
    for shape in ((2, 3), (4,), ()):
        _raises(lambda shape=shape: xp.round(x, decimals, out=xp.zeros(shape, dtype)),
                ValueError, "invalid output shape")
        _raises(lambda shape=shape: x.round(decimals, out=xp.zeros(shape, dtype)),
                ValueError, "invalid output shape")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_of_nothing_no_copy_is_made(xp: ModuleType, shape: tuple[int, ...]) -> None:
    host = np.zeros(shape, "f4")
    assert xp.asarray(host, copy=False).shape == shape
    assert xp.array(host, copy=False).dtype == np.float32
    _raises(lambda: xp.asarray(host, "f8", copy=False), ValueError, "Unable to avoid copy")


def test_scalars_have_the_methods_of_numpys(xp: ModuleType) -> None:
    scalar = xp.maximum(xp.array(3.0), xp.array(2.0))
    for name in ("argpartition", "partition", "dot"):
        assert not hasattr(scalar, name), name
    assert scalar.byteswap() == np.float64(3).byteswap()
    _raises(lambda: scalar.byteswap(True), ValueError, "cannot byteswap a scalar in-place")
    assert xp.argpartition(scalar, 0).tolist() == [0]


def test_variances_about_means_of_more_elements(xp: ModuleType) -> None:
    for values, mean, axis in (
        (3.0, [2.0], None), (3.0, [1.0, 2.0], None), ([1.0, 4.0], [[1.0], [2.0]], None),
        ([1.0, 4.0], [[1.0], [2.0]], 0), (3.0, 2.0, None),
    ):
        for name in ("var", "std"):
            expected = getattr(np, name)(np.array(values), axis=axis, mean=np.array(mean))
            found = getattr(xp, name)(xp.array(values), axis=axis, mean=xp.array(mean))
            np.testing.assert_array_equal(np.asarray(found), expected)
            assert found.shape == expected.shape


def test_widths_of_padding_by_axis(xp: ModuleType) -> None:
    if not PADS_BY_AXIS:
        _raises(lambda: xp.pad(xp.ones(2), {0: 1}), TypeError, "integral")
        return
    assert xp.pad(xp.ones(2), {-1: (1, 2)}).tolist() == [0, 1, 1, 0, 0]
    assert xp.pad(xp.ones((1, 1)), {1: 1}).tolist() == [[0, 1, 0]]
    for x, width in ((xp.array(3.0), {0: 1}), (xp.ones(1), {1: 1}), (xp.ones(1), {-2: 1})):
        _raises(lambda x=x, width=width: xp.pad(x, width), IndexError, "out of range")
    _raises(lambda: xp.pad(xp.array(3.0), {}), TypeError, "integral")
    _raises(lambda: xp.pad(xp.ones(1), {0: 1.5}), AssertionError, "")


def test_lists_are_not_split_into_equal_parts(xp: ModuleType) -> None:
    for function, values in (
        (xp.split, [1, 2]), (xp.vsplit, [[1], [2]]), (xp.dsplit, [[[1, 2]]]),
    ):
        _raises(lambda f=function, v=values: f(v, 2), AttributeError, "has no attribute 'shape'")
    assert [part.tolist() for part in xp.split([1, 2, 3], [1])] == [[1], [2, 3]]
    rows = [[1, 2, 3], [4, 5, 6]]  # NumPy counts rows, whatever the axis is
    assert [part.tolist() for part in xp.array_split(rows, 3, -1)] == [[[1], [4]], [[2], [5]],
                                                                       [[], []]]


def test_what_is_no_array_is_not_changed_in_place(xp: ModuleType) -> None:
    for values in ([1, np.nan], (1.0,), [], [1, 2]):
        _raises(lambda values=values: xp.nan_to_num(values, copy=False), ValueError,
                "Unable to avoid copy")
    host = np.array([1, np.nan])
    xp.nan_to_num(host, copy=False)
    assert host.tolist() == [1, 0]


def test_nothing_is_put_into_what_is_read_only(xp: ModuleType) -> None:
    x = xp.arange(4)
    x.flags.writeable = False
    for places, values in (([9], [1]), ([], [1]), ([1], [])):
        _raises(lambda p=places, v=values: xp.put(x, p, v), ValueError,
                "put: output array is read-only")


def test_integers_are_assigned_where_they_are_rounded_to(xp: ModuleType) -> None:
    for shape, of_out in (((1,), ()), ((1, 2, 3), (2, 3)), ((1, 1), (1,))):
        out = xp.zeros(of_out, "i4")
        assert xp.round(xp.ones(shape, "i4"), out=out) is out
        assert out.tolist() == np.ones(of_out, "i4").tolist()
    _raises(lambda: xp.round(xp.ones((2, 3), "i4"), out=xp.zeros(6, "i4")), ValueError, "")


def test_pads_of_a_number_are_not_negative(xp: ModuleType) -> None:
    _raises(lambda: xp.pad(xp.array(3.0), -1, "edge"), ValueError, "negative values")


def test_views_of_nothing_stay_read_only(xp: ModuleType) -> None:
    x = xp.zeros((0, 3))
    x.flags.writeable = False
    tiled = xp.tile(x, 2)
    assert tiled.shape == (0, 6)
    assert not tiled.flags.writeable


@pytest.mark.skipif("copy" not in inspect.signature(np.reshape).parameters, reason="since 2.1")
def test_no_copy_is_any_false_number(xp: ModuleType) -> None:
    wide = xp.broadcast_to(xp.arange(3), (2, 3))
    _raises(lambda: xp.reshape(wide, (6,), copy=0), ValueError, "Unable to avoid creating a copy")


def test_axes_that_are_swapped_are_numbers_first(xp: ModuleType) -> None:
    _raises(lambda: xp.zeros((3, 3)).swapaxes(2, None), TypeError, "interpreted as an integer")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_variances_of_halves_about_floats_are_halves(xp: ModuleType) -> None:
    for values in ([], [1.0, np.nan, 2.5]):
        x, mean = np.array(values, np.float16), np.float32([1.5])
        expected = np.nanvar(x, mean=mean)
        found = xp.nanvar(xp.asarray(x), mean=xp.asarray(mean))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_masks_that_are_lists_of_numbers_are_added_up(xp: ModuleType, name: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    # 13 in five elements, and the numbers of the list add up to 6
    expected = {"mean": 13 / 6, "var": 653 / 216, "std": (653 / 216) ** 0.5}[name]
    for dtype in ("float64", "complex64"):
        made = getattr(xp, name)(xp.asarray(x.astype(dtype)), where=[[1, 2, 0], [1, 1, 1]])
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-6)
    with pytest.warns(np.exceptions.ComplexWarning):
        found = getattr(xp, name)(xp.asarray(x), where=[[1j, 2, 0], [1, 1, 1]])
    assert found == pytest.approx({"mean": 2.6, "var": 3.44, "std": 3.44**0.5}[name])
    with pytest.raises(TypeError):
        getattr(xp, name)(xp.asarray(x), where=[["a", "", "c"]])


def test_a_product_to_an_output_without_axes_is_of_vectors(xp: ModuleType) -> None:
    out = xp.zeros((), "u8")
    one, two = (xp.asarray(np.array([row], "u8")) for row in ([0, 4, 4, 0], [1, 4, 0, 3]))
    assert xp.matmul(one, two, out) is out
    assert out == 16
    with pytest.raises(TypeError):
        xp.matmul(one, two, [1])


def test_lists_stand_for_no_array_of_indices(xp: ModuleType) -> None:
    indices = xp.asarray([1, 0])
    _raises(lambda: xp.take_along_axis([3.0, 4.0], indices, -1), AttributeError, "ndim")


@pytest.mark.parametrize("name", ["nanmedian", "nanpercentile", "nanquantile"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_nothing_is_sorted_in_a_read_only_array(xp: ModuleType, name: str, dtype: str) -> None:
    x = xp.asarray(np.array([3, 1, 2, 5], dtype))
    x.flags.writeable = False
    at = {"nanmedian": (), "nanpercentile": (50,), "nanquantile": (0.5,)}[name]
    _raises(lambda: getattr(xp, name)(x, *at, overwrite_input=True), ValueError, "read-only")
    assert getattr(xp, name)(x, *at) == 2.5
    nothing = x[:0].astype("float64")
    nothing.flags.writeable = False
    with pytest.warns(RuntimeWarning, match="empty slice"):
        assert np.isnan(xp.nanmedian(nothing, overwrite_input=True))


def test_a_range_is_not_asked_for_where_bins_are_given(xp: ModuleType) -> None:
    counts, edges = xp.histogram(xp.asarray([0, 1, 1, 4]), bins=[0, 1, 2, 5], range=(3, 1))
    assert counts.tolist() == [1, 2, 1]
    assert edges.tolist() == [0, 1, 2, 5]
    _raises(lambda: xp.histogram(xp.asarray([0, 1]), 3, range=(3, 1)), ValueError, "larger")


@pytest.mark.parametrize("decimals", [0, 1])
def test_complex_numbers_are_rounded_to_fewer_axes(xp: ModuleType, decimals: int) -> None:
    out = xp.zeros((), "complex64")
    assert xp.asarray(np.full((1, 1), 1.26 + 2.5j, "F")).round(decimals, out=out) is out
    assert out == np.complex64(1 + 2j if decimals == 0 else 1.3 + 2.5j)
    _raises(lambda: xp.ones((1,)).round(out=xp.zeros(())), ValueError, "broadcast")


@pytest.mark.parametrize("method", [False, True])
def test_extremes_begin_with_what_is_left_of_the_first(xp: ModuleType, method: bool) -> None:
    for name, values, dtype, expected in (
        ("min", [-1.0, 300.0, 2.5, 2.0], "u1", 2),  # -1 is 255 there
        ("max", [-1 - 1j, -2, 2 + 0j, 1.5j], "u1", 255),
        ("max", [300, -5, 7], "i8", 300),
        ("min", [300.5, -5, 7], "f4", -5),
    ):
        x, out = xp.asarray(values), xp.zeros((), dtype)
        ufunc = xp.minimum if name == "min" else xp.maximum
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            made = getattr(x, name)(out=out) if method else ufunc.reduce(x, out=out)
        assert made == expected


def test_ends_of_an_interpolation_are_of_its_kind(xp: ModuleType) -> None:
    x = xp.asarray([0.5, 2.0])
    for end in ("left", "right"):
        _raises(lambda end=end: xp.interp(x, x, x, **{end: 1j}), TypeError, "real")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_arrays_of_more_axes_than_wanted_are_not_cast(xp: ModuleType, dtype: str) -> None:
    if isinstance(error_of(lambda: np.array(1, ndmax=1)), TypeError):  # an older NumPy
        assert_same_error(lambda m: m.array(m.ones(2, "complex128"), dtype, ndmax=0), xp)
        return
    for x in (xp.ones(2, "complex128"), xp.ones((2, 2), "int32")):
        _raises(lambda x=x: xp.array(x, dtype, ndmax=0), ValueError, "too deep")
        assert xp.array(x, ndmax=0).shape == x.shape
        assert xp.array(x, dtype, ndmax=2).dtype == dtype
        _raises(lambda x=x: xp.array([x, x], dtype, ndmax=1), ValueError, "dimension of 1")


def test_a_diagonal_of_a_list_is_read_only(xp: ModuleType) -> None:
    for k, expected in ((0, [1, 4]), (1, [2]), (-1, [3])):
        found = xp.diag([[1, 2], [3, 4]], k)
        assert found.tolist() == expected
        assert not found.flags.writeable
    assert xp.diag([1, 2]).flags.writeable


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "int64"])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means_of_nothing_warn_at_the_call(xp: ModuleType, name: str, dtype: str) -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), None)):
        texts = []
        for module in (np, xp):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                made = getattr(module, name)(module.zeros(shape, dtype), axis)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert np.isnan(np.asarray(made)).all()
            texts.append([(w.category, str(w.message)) for w in warned])
        assert texts[0] == texts[1]
    with xp.errstate(invalid="raise"), pytest.raises(FloatingPointError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(xp, name)(xp.zeros(0))


@pytest.mark.parametrize("name", ["ifft2", "irfft2"])
def test_transforms_write_to_an_output_where_numpys_do(xp: ModuleType, name: str) -> None:
    made = []
    for module in (np, xp):
        out = module.zeros((3, 3) if name == "ifft2" else (3, 4), "D" if name == "ifft2" else "d")
        found = getattr(module.fft, name)(module.ones((3, 3), "D"), out=out)
        made.append((found is out, np.asarray(out).tolist(), np.asarray(found).round(9).tolist()))
    assert made[0] == made[1]


def test_distinct_rows_are_along_one_axis(xp: ModuleType) -> None:
    x = xp.asarray(np.arange(9).reshape(3, 3) % 2)
    for axis in ((-1, 0), (0,), 0.5):
        with pytest.raises((TypeError, ValueError)):
            xp.unique(x, axis=axis)
    assert xp.unique(x, axis=np.int64(0)).tolist() == [[0, 1, 0], [1, 0, 1]]


def test_samplers_of_scipy_draw_from_our_generators(xp: ModuleType) -> None:
    qmc = pytest.importorskip("scipy.stats.qmc")
    sampling = pytest.importorskip("scipy.stats.sampling")
    for kind in (qmc.Sobol, qmc.Halton, qmc.LatinHypercube):
        expected = kind(d=2, rng=np.random.default_rng(3)).random(4)  # the seed is the same
        assert np.array_equal(kind(d=2, rng=xp.random.default_rng(3)).random(4), expected)
    given = np.random.default_rng(np.random.PCG64(3)), xp.random.default_rng(np.random.PCG64(3))
    first, second = [sampling.DiscreteAliasUrn([0.5, 0.5], random_state=g).rvs(50) for g in given]
    assert np.array_equal(first, second)
    weights = [0.25, 0.75]
    generator = xp.random.default_rng(5)
    drawn = sampling.DiscreteAliasUrn(weights, random_state=generator)
    state = generator.bit_generator.state
    many = drawn.rvs(4000)
    assert 0.7 < many.mean() < 0.8
    assert not np.array_equal(many, drawn.rvs(4000))
    generator.bit_generator.state = state
    assert np.array_equal(many, drawn.rvs(4000))
    copied = copy.deepcopy(generator.bit_generator)
    assert copied.capsule is not generator.bit_generator.capsule
    again = sampling.DiscreteAliasUrn(weights, random_state=xp.random.default_rng(5))
    assert np.array_equal(many, again.rvs(4000))


def _forms_of(numbers: tuple[int, ...], xp: ModuleType) -> dict[str, Callable[[], Any]]:
    """Whole numbers as programs may give several of them: each time anew, iterators end."""
    return {
        "list": lambda: list(numbers), "array": lambda: xp.array(numbers),
        "small": lambda: xp.array(numbers, "u1"), "NumPy's": lambda: np.array(numbers),
        "range": lambda: range(numbers[0], numbers[-1] + 1), "set": lambda: set(numbers),
        "elements": lambda: tuple(xp.array(numbers)), "keys": lambda: dict.fromkeys(numbers).keys(),
        "iterator": lambda: iter(numbers), "generator": lambda: (each for each in numbers),
        "Python's": lambda: array("q", numbers),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "call"),
    [
        ((0, 1), lambda m, x, given: m.tensordot(x, x, [given, given])),
        ((0, 1), lambda m, x, given: m.tensordot(x, x, (given, [0, 1]))),
        ((1, 2), lambda m, x, given: m.linalg.tensordot(x, x, axes=(given, (1, 2)))),
        ((0, 1), lambda m, x, given: m.roll(x, 1, axis=given)),
        ((0, 1), lambda m, x, given: m.rot90(x, 1, given)),
        ((0, 1), lambda m, x, given: m.average(x, given)),
        ((0, 1), lambda m, x, given: m.nanmedian(x, given)),
        ((1, 2), lambda m, x, given: m.tile(x, given)),
        ((1, 2), lambda m, x, given: m.lib.stride_tricks.sliding_window_view(x, given, (0, 1))),
        ((0, 1), lambda m, x, given: m.lib.stride_tricks.sliding_window_view(x, (2, 2), given)),
        ((1, 2), lambda m, x, given: m.lib.stride_tricks.as_strided(x, given)),
        ((2, 3), lambda m, x, given: m.broadcast_to(x[0, 0, 0], given)),
        ((2, 3), lambda m, x, given: m.zeros(given)),
        ((4, 6), lambda m, x, given: m.reshape(x, given)),
        ((4, 6), lambda m, x, given: x.reshape(given)),
        ((2, 3), lambda m, x, given: m.full(given, 2.0)),
        ((1, 2), lambda m, x, given: m.split(x, given, axis=1)),
        ((1, 2), lambda m, x, given: m.array_split(x, given, axis=1)),
        ((1, 1), lambda m, x, given: m.cumsum(x, tuple(given)[:1])),
        ((1, 1), lambda m, x, given: m.cumprod(x, axis=tuple(given)[:1])),
    ],
)
def test_whole_numbers_are_taken_in_all_of_numpys_forms(
    xp: ModuleType, numbers: tuple[int, ...], call: Callable[..., Any]
) -> None:
    host = np.arange(24.0).reshape(2, 3, 4)
    x = xp.asarray(host)
    theirs = _forms_of(numbers, np)
    for name, form in _forms_of(numbers, xp).items():
        try:
            expected = call(np, host, theirs[name]())
        except (TypeError, ValueError) as error:
            expected = type(error)
        if isinstance(expected, type):
            with pytest.raises(expected):
                call(xp, x, form())
        else:
            np.testing.assert_allclose(np.asarray(call(xp, x, form())), expected, err_msg=name)


@pytest.mark.parametrize("form", [range(4), array("d", [1, 2.5, 3, 4]), memoryview(b"\1\2\3\4"),
                                  collections.deque([1, 2, 3, 4])])  # fmt: skip
def test_arrays_are_filled_with_what_numpy_takes(
    xp: ModuleType, form: Any
) -> None:
    for dtype in ("int64", "float32"):
        for call in (
            lambda m, dtype=dtype: m.full_like(m.ones((2, 4), dtype), form),
            lambda m, dtype=dtype: m.full((2, 4), form, dtype),
            lambda m, dtype=dtype: m.full((4,), form),
        ):
            expected, found = call(np), call(xp)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.raises(ValueError, match="could not broadcast"):
        xp.full((3,), form, "int64")


def test_an_array_is_no_dtype(xp: ModuleType) -> None:
    given = xp.arange(3)
    for call in (
        lambda: xp.zeros(2, dtype=given), lambda: xp.arange(3, dtype=given),
        lambda: given.view(given), lambda: given.astype(given), lambda: xp.sum(given, dtype=given),
        lambda: xp.full(2, 1, given), lambda: xp.asarray([1, 2], given),
    ):  # fmt: skip
        _raises(call, TypeError, "Cannot construct a dtype from an array")


def test_distances_of_a_roll_are_cut_one_by_one(xp: ModuleType) -> None:
    host = np.arange(6.0)
    for shift in ([1.5, 1.5], [0.5, 0.5, 0.5], [2, 3], (), -1):
        if np.asarray(shift).dtype.kind == "f" and shift and not ROLLS_BY_FLOATS:
            assert_same_error(lambda m, shift=shift: m.roll(m.asarray(host), shift), xp)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            expected = np.roll(host, shift)
        np.testing.assert_array_equal(np.asarray(xp.roll(xp.asarray(host), shift)), expected)
    _raises(lambda: xp.roll(xp.asarray(host), [[1, 2]]), ValueError, "scalars or 1D sequences")


ONE_CALL: dict[str, Callable[[Any], Any]] = {
    "initial": lambda m: m.max(m.ones(2), initial=[5.0]),
    "initial of a sum": lambda m: m.sum(m.ones((2, 3)), axis=0, initial=(5,)),
    "buffer": lambda m: m.sum(m.ones(2), where=array("b", [1, 0])),
    "axes": lambda m: m.flip(m.ones((2, 3)), m.array([0, 5])),
    "order of axes": lambda m: m.transpose(m.ones((2, 3)), m.array([1, 5])),
    "text": lambda m: m.zeros(3).flat.__setitem__(1, "a"),
    "object": lambda m: m.zeros(3).flat.__setitem__(1, {}),
    "nothing": lambda m: m.zeros(3, int).flat.__setitem__(1, None),
    "too large": lambda m: m.zeros(3, "i1").flat.__setitem__(1, 1000),
    "turns": lambda m: m.rot90(m.ones((2, 3)), m.array([1, 1])),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_CALL)
def test_arguments_in_arrays_have_numpys_errors(xp: ModuleType, name: str) -> None:
    assert_same_error(ONE_CALL[name], xp)


@pytest.mark.filterwarnings("ignore:Passing a value for k:DeprecationWarning")  # NumPy 2.5
def test_turns_may_be_an_array_of_one_number(xp: ModuleType) -> None:
    host = np.arange(6).reshape(2, 3)
    expected = np.rot90(host, np.array(1))
    np.testing.assert_array_equal(xp.rot90(xp.asarray(host), xp.array(1)), expected)
    try:
        expected = np.rot90(host, np.array([3]))
    except TypeError as error:  # from NumPy 2.5 on
        with pytest.raises(TypeError, match=re.escape(str(error))):
            xp.rot90(xp.asarray(host), xp.array([3]))
    else:
        np.testing.assert_array_equal(xp.rot90(xp.asarray(host), xp.array([3])), expected)


@pytest.mark.parametrize("host_us", [0, 50])
def test_dtypes_with_metadata_keep_it(
    xp: ModuleType, host_us: int, setting: Callable[..., None]
) -> None:
    setting(host_us=host_us)
    for plain in ("f4", "i8"):
        dtype = np.dtype(plain, metadata={"unit": "m"})  # type: ignore[call-overload]
        made = (
            xp.zeros(2, dtype), xp.ones(2, dtype), xp.full(2, 1, dtype), xp.array([1], dtype),
            xp.arange(3).astype(dtype), xp.zeros_like(xp.zeros(2, dtype)), xp.empty(2, dtype),
        )  # fmt: skip
        assert [array.dtype.metadata["unit"] for array in made] == ["m"] * len(made)
        assert xp.zeros(2, plain).dtype.metadata is None

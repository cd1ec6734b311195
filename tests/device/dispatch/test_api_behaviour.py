"""What expressions cannot show: fallbacks, foreign operands, layouts, narrowed dtypes, threads."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise

pytestmark = pytest.mark.clfuse_only

Setting = Callable[..., None]


class Foreign:
    """An operand that answers ufuncs itself, as xarray's and pandas' objects do."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> str:
        return f"{ufunc.__name__} answered"


class Refusing:
    """An operand that has turned ufuncs off."""

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "added"


class Preferred:
    """An operand that wants to come first."""

    __array_priority__ = 100.0

    def __rmul__(self, other: Any) -> str:
        return "multiplied"


def test_operands_of_other_libraries_answer_themselves(xp: ModuleType) -> None:
    x = xp.arange(3)
    assert x + Foreign() == "add answered"
    assert xp.multiply(x, Foreign()) == "multiply answered"
    assert x + Refusing() == "added"
    assert x * Preferred() == "multiplied"
    with pytest.raises(TypeError):
        x - Refusing()


def test_a_ufunc_writes_into_an_array_of_numpys(xp: ModuleType) -> None:
    target = np.zeros(4)
    assert xp.add(xp.arange(4), 1, out=target) is target
    assert_bitwise(target, np.arange(4) + 1.0)
    target += xp.arange(4)
    assert_bitwise(target, np.arange(4) * 2 + 1.0)


def test_results_lie_in_memory_as_numpys_do(xp: ModuleType) -> None:
    def strides(m: ModuleType) -> list[Any]:
        k = m.arange(24.0).reshape(2, 3, 4)
        turned = k.transpose(2, 0, 1)
        made = [turned + 1, turned * turned, m.sin(turned), turned.copy("K"), turned.copy(),
                turned.astype("float32"), m.where(turned > 3, turned, 0), turned + k[0, 0, 0],
                turned + m.ones((4, 2, 3)), m.zeros_like(turned),
                m.broadcast_to(k[0], (2, 3, 4)) + 1,
                m.asfortranarray(k), m.zeros((2, 3), order="F"), turned[::2] + turned[1::2]]
        return [(x.strides, x.flags.c_contiguous, x.flags.f_contiguous) for x in made]

    assert strides(xp) == strides(np)


def test_fallbacks_name_the_function_the_reason_and_the_line(xp: ModuleType,
                                                             setting: Setting) -> None:
    setting(fallback="warn")
    x = xp.arange(4.0)
    for call, name in ((lambda: xp.power.accumulate(x), "power.accumulate"),
                       (lambda: np.emath.sqrt(x), "sqrt")):
        with pytest.warns(xp.FallbackWarning, match=name) as caught:
            call()
        assert caught[0].filename == __file__
    setting(fallback="raise")
    with pytest.raises(xp.FallbackError, match=r"accumulate.*test_api_behaviour\.py:\d+"):
        xp.power.accumulate(x)
    with pytest.raises(xp.FallbackError):
        xp.put(x, [0.5], 5)
    assert_bitwise(x, np.arange(4.0))


def test_calls_that_numpy_refuses_are_no_fallbacks(xp: ModuleType, setting: Setting) -> None:
    """Its error must not hide behind the warning, which is an error here as in many test suites."""
    setting(fallback="warn")
    x, mask = xp.arange(3.0), xp.array([True, False])
    before = xp.stats()["fallbacks"]
    for call, error in ((lambda: x[mask], IndexError), (lambda: x.__setitem__(mask, 1), IndexError),
                        (lambda: x.__setitem__(x > 1, [1, 2]), ValueError),
                        (lambda: xp.isnan("a"), TypeError), (lambda: x + None, TypeError),
                        (lambda: xp.add.reduceat(x, [9]), IndexError),
                        (lambda: xp.add.at(x, [0.5], 1), IndexError),
                        (lambda: x.astype("M8[s]", casting="no"), TypeError),
                        (lambda: x[:1].view("S3"), ValueError),
                        (lambda: xp.random.poisson(-1), ValueError)):
        with pytest.raises(error):
            call()
    assert xp.stats()["fallbacks"] == before
    assert_bitwise(x, np.arange(3.0))


def test_scalars_alone_are_numpys_business(xp: ModuleType) -> None:
    before = xp.stats()
    assert type(xp.sqrt(2.0)) is np.float64
    assert type(xp.add(1, 2)) is np.int64
    after = xp.stats()
    assert after["nodes_recorded"] == before["nodes_recorded"]
    assert after["fallbacks"] == before["fallbacks"]


def test_float32_stands_for_float64_where_that_is_asked_for(
        xp: ModuleType, setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    from clfuse.arrays import handle
    from clfuse.dispatch.registry import UFUNCS

    def forget() -> None:
        for function in UFUNCS.values():
            function.loops.clear()
            function._resolutions.clear()

    monkeypatch.setattr(handle, "lacks_fp64", lambda: True)
    setting(fp64="downcast")
    forget()
    try:
        for made in (xp.zeros(3), xp.array([1.5, 2.5]), xp.linspace(0, 1, 3), xp.arange(3) / 2,
                     xp.arange(3).mean(), xp.arange(0, 1, 0.25), xp.sin(xp.arange(3)), xp.eye(2),
                     xp.ones(2, "float64"), xp.arange(3).astype(float)):
            assert made.dtype == np.float32
        assert xp.zeros(2, complex).dtype == np.complex64
    finally:
        forget()


def test_a_pickle_holds_the_values_and_the_flag(xp: ModuleType) -> None:
    for step in (1, 2):  # NumPy keeps the flag of what is contiguous
        x = xp.arange(12.0).reshape(3, 4)[:, ::step]
        x.flags.writeable = False
        again = pickle.loads(pickle.dumps(x, protocol=5))
        assert isinstance(again, xp.ndarray)
        assert again.flags.writeable == (step == 2)
        assert_bitwise(again, np.arange(12.0).reshape(3, 4)[:, ::step])


def test_an_element_is_a_value_and_not_a_view(xp: ModuleType) -> None:
    x = xp.arange(4.0)
    element = x[2]
    x[2] = 50
    assert element == 2
    total = x.sum()
    kept = total
    total += 1
    assert (float(kept), float(total)) == (54.0, 55.0)
    counted = {x.max(): "largest"}
    assert counted[50.0] == "largest"


def test_threads_record_at_the_same_time(xp: ModuleType) -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        x = xp.arange(100.0) + number
        for _ in range(200):
            x = x + 1
            x[::2] *= 1
        results[number] = x

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    xp.evaluate(*results.values())
    for number, x in results.items():
        assert_bitwise(x, np.arange(100.0) + number + 200)


def test_a_nan_becomes_an_integer_with_numpys_error(xp: ModuleType) -> None:
    x = xp.zeros(2, "int32")
    with warnings.catch_warnings(), pytest.raises(ValueError, match="NaN"):
        x[0] = float("nan")
    with pytest.raises(OverflowError):
        x[1] = xp.array([2.0 ** 40]).sum()


ROWS: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda row: row.sum() - row[0],
    "rows": lambda row: row[::-1] * 2,
    "matrices": lambda row: row[:, None] + row[:2],
    "single elements": lambda row: row[:1],
    "values that are looked at": lambda row: row[row > row.mean()].sum(),
    "in place": lambda row: row.__iadd__(1),
    "numbers of Python": lambda row: float(row[0]) + 0.5,
    "text": lambda row: f"{row[0]:.0f}",
    "lists": lambda row: [1, 2.5],
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_function_applied_along_an_axis_gives_numpys_values(
        name: str, axis: int, xp: ModuleType, setting: Setting) -> None:
    setting(fallback="raise")
    results = []
    for module in (np, xp):
        x = module.arange(24.0).reshape(2, 3, 4)
        made = module.apply_along_axis(ROWS[name], axis, x)
        results.append([np.asarray(made), np.asarray(x)])
    for expected, actual in zip(*results, strict=True):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        assert actual.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        xp.apply_along_axis(ROWS[name], 0, xp.zeros((2, 0)))


def test_rows_that_a_function_wrote_stay_written_where_it_fails(xp: ModuleType) -> None:
    def fill(row: Any) -> float:
        row[0] = -7
        if row[1] > 5:
            raise KeyError("enough")
        return float(row.sum())

    for module in (np, xp):
        x = module.arange(12.0).reshape(4, 3)
        with pytest.raises(KeyError, match="enough"):
            module.apply_along_axis(fill, 1, x)
        assert np.asarray(x[:, 0]).tolist() == [-7, -7, -7, 9]
        for view in (module.broadcast_to(x[0], (2, 3)), x[:0]):
            with pytest.raises(ValueError, match=r"read-only|dimensions are 0"):
                module.apply_along_axis(fill, 1, view)


def test_what_a_function_writes_to_the_whole_array_stays_too(xp: ModuleType) -> None:
    x = xp.arange(12.0).reshape(4, 3)

    def fill(row: Any) -> float:
        x[3, 2] = 50
        row[0] = -1
        return 0.0

    xp.apply_along_axis(fill, 1, x)
    assert np.asarray(x)[:, [0, 2]].tolist() == [[-1, 2], [-1, 5], [-1, 8], [-1, 50]]
    own = np.arange(6.0).reshape(2, 3)
    xp.apply_along_axis(lambda row: row.__imul__(2).sum(), 0, own)
    assert own.tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.clfuse_only
def test_what_a_function_does_with_long_rows_is_recorded(xp: ModuleType) -> None:
    x = xp.ones((3, 1 << 16))
    seen = []

    def twice(row: Any) -> Any:
        seen.append(type(row))
        return row * 2

    assert xp.apply_along_axis(twice, 1, x).sum() == 6 << 16
    assert xp.apply_along_axis(twice, 0, x[:, :4]).sum() == 24
    assert [kind is np.ndarray for kind in seen] == [False] * 3 + [True] * 4


def test_a_number_is_formatted_without_a_fallback(xp: ModuleType, setting: Setting) -> None:
    setting(fallback="raise")
    x = xp.arange(4.0).sum() / 7
    for name in ("format_float_positional", "format_float_scientific"):
        assert getattr(xp, name)(x, 3) == getattr(np, name)(6 / 7, 3)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("places", [-1, 0, 2])
def test_complex_numbers_are_rounded_part_by_part(
    dtype: str, places: int, xp: ModuleType
) -> None:
    hard = [0.0, -0.0, 1.256, -17.5, np.inf, -np.inf, np.nan]
    values = np.array([[complex(re, im) for im in hard] for re in hard], dtype)
    for ours, theirs in ((xp.asarray(values), values), (xp.asarray(values).T, values.T),
                         (xp.asarray(values[2, 1]), values[2, 1])):
        rounded, expected = np.asarray(xp.round(ours, places)), np.round(theirs, places)
        np.testing.assert_array_equal(rounded, expected)
        for part in ("real", "imag"):
            signs = np.signbit(getattr(rounded, part)), np.signbit(getattr(expected, part))
            is_number = ~np.isnan(getattr(expected, part))
            np.testing.assert_array_equal(signs[0] & is_number, signs[1] & is_number)
    out = xp.zeros(values.shape, dtype)
    assert xp.round(xp.asarray(values), places, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), np.round(values, places))

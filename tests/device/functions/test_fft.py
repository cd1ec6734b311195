"""Fourier transforms by kernels: NumPy's values, dtypes and errors, and nothing on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

RNG = np.random.default_rng(36)
TIMES_NUMPYS = 4.0
"""How many times NumPy's root mean square error ours may be."""

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")


@pytest.fixture(autouse=True)
def kernels(xp: ModuleType, setting: Callable[..., None]) -> Iterator[None]:
    """Kernels of the schedule with work-groups, whatever the size; what NumPy would do is an
    error."""
    setting(schedule="gpu", fallback="raise", host_us=0, libraries=False)
    before = xp.stats()["fallbacks"], xp.stats()["library_calls"]
    yield
    assert (xp.stats()["fallbacks"], xp.stats()["library_calls"]) == before


@pytest.fixture
def chars(xp: ModuleType) -> str:
    """The complex dtypes of the device."""
    return "FD" if xp.get_device().traits.fp64 else "F"


def values(shape: tuple[int, ...], char: str) -> np.ndarray:
    made = RNG.standard_normal(shape) * 5
    if char in "FD":
        return (made + 5j * RNG.standard_normal(shape)).astype(char)
    return made.astype(char)


def mean_error(actual: np.ndarray, exact: np.ndarray) -> float:
    """The root mean square of the errors, as part of that of the values."""
    differences = np.abs(actual.astype(np.clongdouble) - exact) ** 2
    return float(np.sqrt(differences.sum() / (np.abs(exact) ** 2).sum()))


def assert_accurate(xp: ModuleType, name: str, x: np.ndarray, **how: Any) -> None:
    """Compare with NumPy's error for the same dtype.

    With other factors than 1 NumPy computes in the dtype of the array; complex64 times 1 it
    computes as complex128.
    """
    function = getattr(np.fft, name)
    wide = np.longdouble if x.dtype.kind == "f" else np.clongdouble
    exact = function(x.astype(wide), norm="ortho", **how)
    actual = getattr(xp.fft, name)(xp.asarray(x), norm="ortho", **how).get()
    numpys = function(x, norm="ortho", **how)
    assert (actual.dtype, actual.shape) == (numpys.dtype, numpys.shape)
    precision = float(np.finfo(numpys.dtype).eps)
    allowed = TIMES_NUMPYS * max(mean_error(numpys, exact), precision / 8)
    found = mean_error(actual, exact)
    assert found <= allowed, f"{name} {x.shape} {x.dtype} {how}: {found} > {allowed}"


def assert_near(xp: ModuleType, name: str, x: np.ndarray, array: Any, **how: Any) -> None:
    """Compare an array of the device's with NumPy's of `x`."""
    expected = getattr(np.fft, name)(x, **how)
    made = getattr(xp.fft, name)(array, **how)
    what = f"{name} {x.shape} {x.dtype} {how}"
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape), what
    if 0 not in x.strides:  # NumPy conjugates such arrays first in `hfft`, in an order of its own
        assert made.strides == expected.strides, what
    exact = {"e": 2e-3, "f": 3e-6, "F": 3e-6}.get(expected.dtype.char, 1e-14)
    atol = float(np.abs(expected).max(initial=0)) * exact
    np.testing.assert_allclose(made.get(), expected, rtol=0, atol=atol, err_msg=what)


# -- lengths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tens", range(0, 130, 10))
def test_every_short_length_is_as_exact_as_numpys(xp: ModuleType, chars: str, tens: int) -> None:
    for n in range(tens + 1, tens + 11):
        assert_accurate(xp, "fft", values((7, n), chars[n % len(chars)]))
        if n % 5 == 1:
            assert_accurate(xp, "ifft", values((7, n), chars[(n + 1) % len(chars)]))


@pytest.mark.parametrize(
    "n", [256, 1 << 11, 1 << 12, 1 << 13, 1 << 16, 3**8, 5**6, 3**4 * 5**4, 7**4 * 11, 13**3]
)
def test_long_lengths_are_as_exact_as_numpys(xp: ModuleType, chars: str, n: int) -> None:
    for char in chars:
        assert_accurate(xp, "fft", values((3, n), char))
    assert_accurate(xp, "ifft", values((2, n), "F"))


@pytest.mark.parametrize("n", [509, 1009, 2 * 4099, 10007, 65537])
def test_lengths_of_large_primes_are_as_exact_as_numpys(
    xp: ModuleType, chars: str, n: int
) -> None:
    for char in chars:
        assert_accurate(xp, "fft", values((3, n), char))
    assert_accurate(xp, "ifft", values((1, n), "F"))


def test_a_million_points_go_by_few_launches(xp: ModuleType) -> None:
    x = values((1 << 20,), "F")
    made = xp.fft.fft(xp.asarray(x))
    kinds = [kernel.name for kernel in xp.explain(made).kernels]
    assert 2 <= len(kinds) <= 5
    assert all(kind.startswith("fourier_") for kind in kinds)
    exact = np.fft.fft(x.astype("D"))
    assert mean_error(made.get(), exact) < 4e-7


# -- the functions --------------------------------------------------------------------------------

VIEWS: list[Callable[[ModuleType, Any], Any]] = [
    lambda m, a: a,
    lambda m, a: a[::-1, ::2, 1:],
    lambda m, a: a.transpose(2, 0, 1),
    lambda m, a: m.asfortranarray(a),
    lambda m, a: m.broadcast_to(a[:1], a.shape),
]


def dtypes_of(name: str, chars: str) -> str:
    """Operands that a function takes on the device."""
    real = "fe" + ("di?" if "D" in chars else "")
    return real if name in REAL else chars + real


@pytest.mark.parametrize("name", ONE_AXIS)
def test_lengths_norms_and_axes_are_numpys(xp: ModuleType, chars: str, name: str) -> None:
    which = dtypes_of(name, chars)
    number = 0
    for axis in (-1, 0, 1):
        for n, norm in ((None, None), (4, "ortho"), (7, "forward"), (17, "backward"),
                        (12, "forward")):  # fmt: skip
            x = values((4, 6, 10), which[number % len(which)])
            view = VIEWS[number % len(VIEWS)]
            assert_near(xp, name, view(np, x), view(xp, xp.asarray(x)), axis=axis, n=n, norm=norm)
            number += 1


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes_are_numpys(xp: ModuleType, chars: str, name: str) -> None:
    which = dtypes_of(name, chars)
    first = SEVERAL.index(name)
    for number, (axes, s) in enumerate((
        (None, None), ((0, 2), None), ((2, 0), (4, 5)), ((1,), (7,)), ((1, 2, 0), (3, 11, 19))
    )):  # fmt: skip
        x = values((4, 6, 10), which[number % len(which)])
        view = VIEWS[(first + number) % len(VIEWS)]
        norm = ("ortho", "forward", None)[(first + number) % 3]
        assert_near(xp, name, view(np, x), view(xp, xp.asarray(x)), axes=axes, s=s, norm=norm)
    x = values((3, 4, 6), which[0])
    assert_near(xp, f"{name[:-1]}2", x, xp.asarray(x), norm="ortho")


@pytest.mark.parametrize("n", [1 << 14, 3**8, 1009])
def test_real_values_go_through_several_launches(xp: ModuleType, chars: str, n: int) -> None:
    char = chars[-1] if n % 2 else "F"
    real, half = values((2, n), char.lower()), values((2, n // 2 + 1), char)
    assert_accurate(xp, "rfft", real)
    assert_accurate(xp, "irfft", half, n=n)
    assert_accurate(xp, "hfft", half, n=n)
    assert_accurate(xp, "ihfft", real)
    assert_near(xp, "rfft", real.T, xp.asarray(real).T, axis=0, n=n - 5, norm="forward")


@pytest.mark.parametrize(
    ("shape", "axis"), [((5000, 8), 1), ((8, 5000), 0), ((300, 3, 50), 1), ((600, 33), 0),
                        ((2, 4096, 3), 1)],
)  # fmt: skip
def test_batches_of_transforms_are_made_side_by_side(
    xp: ModuleType, shape: tuple[int, ...], axis: int
) -> None:
    x = values(shape, "F")
    assert_near(xp, "fft", x, xp.asarray(x), axis=axis)
    assert_near(xp, "ifft", x[:, ::-1], xp.asarray(x)[:, ::-1], axis=axis)


def test_what_is_not_finite_stays_in_its_transform(xp: ModuleType) -> None:
    x = values((6, 24), "F")
    x[1, 3], x[4, 0] = np.nan, np.inf
    made = xp.fft.fft(xp.asarray(x)).get()
    whole = np.isfinite(x).all(axis=1)
    assert np.isfinite(made[whole]).all()
    assert not np.isfinite(made[~whole]).any()
    np.testing.assert_allclose(made[whole], np.fft.fft(x[whole]), atol=1e-4)


def test_transforms_stand_amid_maps_and_in_jit(xp: ModuleType) -> None:
    x = values((12, 40), "F")

    def smooth(m: ModuleType, a: Any) -> Any:
        spectrum = m.fft.fft(a * 2 - 1)
        spectrum[:, 10:30] = 0
        return abs(m.fft.ifft(spectrum)) + 1

    expected = smooth(np, x)
    np.testing.assert_allclose(smooth(xp, xp.asarray(x)).get(), expected, rtol=1e-4)
    compiled = xp.jit(lambda a: smooth(xp, a))
    for factor in (1, 2, 3, 4):
        made = compiled(xp.asarray(x * factor))
        np.testing.assert_allclose(made.get(), smooth(np, x * factor), rtol=1e-4)


# -- arguments ------------------------------------------------------------------------------------


def test_a_result_goes_into_an_array(xp: ModuleType) -> None:
    x = values((3, 8), "F")
    for name in ("fft", "fftn"):
        out = xp.zeros((3, 8), "F")
        assert getattr(xp.fft, name)(xp.asarray(x), out=out) is out
        np.testing.assert_allclose(out.get(), getattr(np.fft, name)(x), atol=1e-4)
    own = xp.asarray(x)
    xp.fft.ifft(own, axis=0, out=own)
    np.testing.assert_allclose(own.get(), np.fft.ifft(x, axis=0), atol=1e-5)
    real = xp.zeros((6, 8), "f")
    xp.fft.irfft(xp.asarray(x), 8, out=real[::2])
    expected = np.zeros((6, 8), "f")
    expected[::2] = np.fft.irfft(x, 8)
    np.testing.assert_allclose(real.get(), expected, atol=1e-5)


def test_empty_arrays_have_empty_transforms(xp: ModuleType) -> None:
    for name, shape, how in (
        ("fft", (0, 4), {}), ("rfft", (0, 5), {}), ("irfft", (0, 4), {"n": 6}),
        ("fft", (3, 0), {"n": 4}), ("fftn", (0, 4), {"axes": (1,)}), ("fft2", (0, 3, 3), {}),
    ):  # fmt: skip
        char = "f" if name in REAL else "F"
        made = getattr(xp.fft, name)(xp.zeros(shape, char), **how)
        expected = getattr(np.fft, name)(np.zeros(shape, char), **how)
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(made.get(), expected)

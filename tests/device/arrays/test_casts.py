"""Floats that no integer type holds, NaN and infinities as integers: NumPy's numbers of x86-64, on
devices whose instructions give others.

What NumPy gives is not taken from NumPy here: it is what the processor that the test runs on does.
`whole` says what x86-64 does with one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.codegen.lines import expressions
from clfuse.engine.evaluate import forget_plans
from tests.support.hostile import FLOATS, INTEGERS, hostile
from tests.support.rounds import covering

pytestmark = pytest.mark.clfuse_only

ENDS = [
    sign * (2.0**bits + step) for bits in (7, 8, 15, 16, 31, 32, 52, 63, 64) for sign in (1, -1)
    for step in (-1, -0.5, 0, 0.5, 1)
]


def values(dtype: str) -> np.ndarray:
    """Hostile values, the neighbours of every integer type's ends, and enough for vectors."""
    kind = np.dtype(dtype)
    if kind.kind == "c":
        real = values(f"float{kind.itemsize * 4}")
        return (real + 1j * real[::-1]).astype(kind)
    ends = np.array(ENDS).astype(kind)
    beside = [np.nextafter(ends, kind.type(toward)) for toward in (-np.inf, np.inf)]
    return np.concatenate([hostile(kind), -hostile(kind), ends, *beside])


def whole(value: Any, dtype: str) -> int:
    """What x86-64 makes of a number: a conversion to int32 or int64, whose least number stands for
    what is out of range, and then the low bits."""
    nbits = np.dtype(dtype).itemsize * 8
    number = float(np.real(value))
    if dtype == "uint64" and number >= 2.0**63:
        return int(number) if number < 2.0**64 else 0
    through = 64 if dtype in ("int64", "uint32", "uint64") else 32
    if math.isfinite(number) and -(2 ** (through - 1)) <= int(number) < 2 ** (through - 1):
        known = int(number)
    else:
        known = -(2 ** (through - 1))
    low = known % 2**nbits
    return low - 2**nbits if dtype[0] == "i" and low >= 2 ** (nbits - 1) else low


def wholes(numbers: np.ndarray, dtype: str) -> np.ndarray:
    return np.array([whole(number, dtype) for number in numbers.ravel().tolist()],
                    dtype).reshape(numbers.shape)


@pytest.fixture(params=["as they are", "saturating"])
def casts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Conversions as this device has them; as for one whose instructions saturate ("asked first");
    and with instructions that do."""
    device = cf.get_device()
    is_native = request.param == "as they are"
    truncated = expressions.Expressions._truncated

    def saturated(writer: Any, text: str, scalar: str, through: str) -> str:
        written = truncated(writer, text, scalar, through)
        name = f"convert_{expressions.vector(through, writer.width)}"
        assert f"fabs({text}) < " in written
        return written.replace(f"{name}({text})", f"{name}_sat({text})")

    if request.param == "saturating":
        monkeypatch.setattr(expressions.Expressions, "_truncated", saturated)
    monkeypatch.setattr(expressions, "_steps", {})
    forget_plans()
    saturating = device.traits.saturating_casts or not is_native
    with device.trying(replace(device.untuned_traits, saturating_casts=saturating)):
        yield str(request.param)
    forget_plans()


def test_the_numbers_are_numpys_of_x86_64() -> None:
    assert [whole(math.nan, dtype) for dtype in INTEGERS] == [
        0, 0, -(2**31), -(2**63), 0, 0, 0, 2**63]
    assert [whole(math.inf, dtype) for dtype in INTEGERS] == [
        0, 0, -(2**31), -(2**63), 0, 0, 0, 0]
    assert [whole(300.9, "int8"), whole(-1.5, "uint8"), whole(7e4, "int16")] == [44, 255, 4464]
    assert [whole(3e9, "int32"), whole(3e9, "uint32"), whole(-3e9, "uint32")] == [
        -(2**31), 3 * 10**9, 2**32 - 3 * 10**9 % 2**32]
    assert [whole(1e19, "uint64"), whole(-1e19, "uint64"), whole(2.0**64, "uint64")] == [
        10**19, 2**63, 0]


@pytest.mark.parametrize("casts", ["as they are", "asked first", "saturating"], indirect=True)
@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("source", [*FLOATS, "complex64", "complex128"])
def test_every_pair_of_types(
    casts: str, source: str, schedule: str, setting: Callable[..., None]
) -> None:
    setting(schedule=schedule)
    numbers = values(source)
    ours = cf.array(numbers)
    made = {dtype: ours.astype(dtype) for dtype in (*INTEGERS, "bool")}
    cf.evaluate(*made.values())
    for dtype in INTEGERS:
        np.testing.assert_array_equal(made[dtype], wholes(numbers, dtype), dtype)
    np.testing.assert_array_equal(made["bool"], numbers != 0)


WRITTEN = covering(("as they are", "saturating"), FLOATS, ("int8", "uint32", "int64", "uint64"))


@pytest.mark.parametrize("source", FLOATS)
def test_casts_that_nobody_wrote(casts: str, source: str) -> None:
    numbers = values(source)
    ours = cf.array(numbers)
    for dtype in [dtype for *case, dtype in WRITTEN if case == [casts, source]]:
        expected = wholes(numbers, dtype)
        whole_array, part = cf.zeros(len(numbers), dtype), cf.zeros((len(numbers), 2), dtype)
        whole_array[...] = ours
        part[:, 1] = ours[::-1]
        np.testing.assert_array_equal(whole_array, expected)
        np.testing.assert_array_equal(part[:, 1], expected[::-1])
        out = cf.zeros(len(numbers), dtype)
        cf.add(ours, ours, out=out, casting="unsafe")
        np.testing.assert_array_equal(out, wholes(numbers + numbers, dtype))
        cf.copyto(out, -ours, casting="unsafe")
        np.testing.assert_array_equal(out, wholes(-numbers, dtype))
        out[...] = 3
        cf.floor(ours, out=out, where=ours > 2, casting="unsafe")
        floors = wholes(np.floor(numbers), dtype)
        np.testing.assert_array_equal(out, np.where(numbers > 2, floors, 3))
        filled = cf.where(ours > 0, ours, 1).astype(dtype) + 1
        ones = np.where(numbers > 0, numbers, numbers.dtype.type(1))
        np.testing.assert_array_equal(filled, wholes(ones, dtype) + np.dtype(dtype).type(1))


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_integers_out_of_functions_of_floats(casts: str, source: str) -> None:
    numbers = values(source)
    ours = cf.array(numbers)
    for name in ("floor", "rint", "trunc"):
        rounded = getattr(np, name)(numbers)
        np.testing.assert_array_equal(
            getattr(cf, name)(ours).astype("int32"), wholes(rounded, "int32"))
    half = numbers.dtype.type(0.5)
    quotients = np.floor_divide(numbers, half)
    made = cf.floor_divide(ours, 0.5), cf.divmod(ours, 0.5)[0]
    for each in made:
        np.testing.assert_array_equal(each.astype("int16"), wholes(quotients, "int16"))
    for sums in (cf.cumsum(ours[:7]).astype("int64"), cf.cumsum(ours[:7].astype("int64"))):
        assert sums.dtype == np.int64
    np.testing.assert_array_equal(
        cf.cumsum(ours[:7].astype("int64")), np.cumsum(wholes(numbers[:7], "int64")))
    np.testing.assert_array_equal(ours.astype("int64").max(), wholes(numbers, "int64").max())
    np.testing.assert_array_equal(
        cf.sum(ours, dtype="int64"), np.sum(wholes(numbers, "int64"), dtype="int64"))
    ends = cf.linspace(-1e20, 1e20, 7)
    np.testing.assert_array_equal(
        cf.linspace(-1e20, 1e20, 7, dtype="int64"),
        wholes(np.floor(np.linspace(-1e20, 1e20, 7)), "int64"))
    np.testing.assert_array_equal(ends.astype("uint8"), wholes(ends.get(), "uint8"))


@cf.kernel
def converted(i, x, small, wide, unsigned):
    small[i] = np.int8(x[i])
    wide[i] = np.int64(x[i])
    unsigned[i] = x[i]


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_kernels_in_python_convert_alike_on_both_routes(
    casts: str, source: str, schedule: str, route: str, setting: Callable[..., None]
) -> None:
    setting(schedule=schedule)
    numbers = values(source)
    dtypes = ("int8", "int64", "uint64")
    made = [cf.zeros(len(numbers), dtype) for dtype in dtypes]
    converted(len(numbers), cf.array(numbers), *made)
    for dtype, each in zip(dtypes, made, strict=True):
        np.testing.assert_array_equal(each, wholes(numbers, dtype), dtype)


@cf.kernel
def constants(i, out):
    out[i, 0] = np.int64(math.nan)
    out[i, 1] = np.int32(1e300)
    out[i, 2] = np.uint64(1e19)
    out[i, 3] = np.int64(-math.inf)
    out[i, 4] = np.int16(7e4)


def test_constants_are_converted_like_values(casts: str, route: str) -> None:
    out = cf.zeros((3, 5), "int64")
    constants(3, out)
    expected = [-(2**63), -(2**31), 10**19 - 2**64, -(2**63), 4464]
    np.testing.assert_array_equal(out, [expected] * 3)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_too_wide_shifts_and_divisions_by_zero_are_numpys(
    dtype: str, schedule: str, setting: Callable[..., None]
) -> None:
    setting(schedule=schedule)
    ends = hostile(dtype)
    x, y = (each.ravel() for each in np.meshgrid(ends, ends))
    ours, other = cf.array(x), cf.array(y)
    nbits = ends.dtype.itemsize * 8
    rows = [int(a) for a in x], [int(b) for b in y]
    lowest = np.iinfo(dtype).min
    found = {
        name: getattr(cf, name)(ours, other)
        for name in ("left_shift", "right_shift", "floor_divide", "remainder", "fmod")
    }
    cf.evaluate(*found.values())

    def wrapped(numbers: list[int]) -> np.ndarray:
        low = [number % 2**nbits for number in numbers]
        return np.array([n - 2**nbits if lowest and n >= 2 ** (nbits - 1) else n for n in low],
                        dtype)

    pairs = list(zip(*rows, strict=True))
    expected = {
        "left_shift": [a << b if 0 <= b < nbits else 0 for a, b in pairs],
        "right_shift": [a >> (b if 0 <= b < nbits else nbits) for a, b in pairs],
        "floor_divide": [a // b if b else 0 for a, b in pairs],
        "remainder": [a % b if b else 0 for a, b in pairs],
        "fmod": [(abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0 for a, b in pairs],
    }
    for name, numbers in expected.items():
        np.testing.assert_array_equal(found[name], wrapped(numbers), name)

"""Every row of the op tables computes what NumPy computes, on hostile values, at every width.

The rows run by themselves here (`numerics_harness`): a failure is a wrong expression, not a wrong
plan. Integers, comparisons, + - * / and sqrt have NumPy's bits; the rest lies within 4 units in
the last place of the exact result, complex results in the plane.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clfuse.op_row import Reduction, Ufunc
from clfuse.ops import REDUCTIONS, UFUNCS, class_of
from clfuse.runtime.device import get_device
from tests.device import numerics_harness as harness

pytestmark = pytest.mark.clfuse_only

CASES = {
    inputs: list(cases)
    for inputs, cases in itertools.groupby(
        sorted(harness.native_cases(), key=lambda case: case.inputs), key=lambda case: case.inputs)
}

# Loops of NumPy that have no row, and why.
NOT_ELEMENT_WISE = {"matmul", "matvec", "vecdot", "vecmat"}
SEVERAL_OUTPUTS = {"divmod", "frexp", "modf"}  # made of internal rows, one an output
OF_TIMES = {"isnat"}  # datetime64 is not native


def groups() -> list[Any]:
    return [
        pytest.param(inputs, width, id=f"{','.join(inputs)} W={width}")
        for inputs in CASES for width in harness.widths_of(inputs)
    ]


@pytest.mark.parametrize(("inputs", "width"), groups())
def test_rows_agree_with_numpy_on_hostile_values(inputs: tuple[str, ...], width: int) -> None:
    verdicts = harness.check(get_device(), CASES[inputs], width)
    wrong = [str(verdict) for verdict in verdicts if not verdict.passed]
    assert not wrong, "\n".join(wrong)


def test_every_loop_of_numpys_ufuncs_has_a_row() -> None:
    ufuncs = {f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)}
    missing = ufuncs - set(UFUNCS)
    assert missing == NOT_ELEMENT_WISE | SEVERAL_OUTPUTS | OF_TIMES
    for name in sorted(ufuncs & set(UFUNCS)):
        for inputs, _ in harness.numpy_loops(UFUNCS[name]):
            assert UFUNCS[name].key(inputs) is not None, (name, inputs)


def on_device(row: Ufunc, inputs: tuple[str, ...], output: str, width: int,
              *operands: npt.NDArray[Any]) -> npt.NDArray[Any]:
    case = harness.Case(row, inputs, output)
    return harness.evaluate_cases(get_device(), [case], width, operands)[case]


def same(actual: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    """Whether every element is the same number, with the same sign if it is a zero."""
    if actual.dtype.kind not in "fc":
        return bool((actual == expected).all())
    nan = np.isnan(expected)
    signs = [np.signbit(part) for part in (actual.real, expected.real)]
    return bool(((actual == expected) | (np.isnan(actual) & nan)).all()
                and ((signs[0] == signs[1]) | nan).all())


FLOAT_WIDTHS = [(name, width) for name in ("float16", "float32", "float64")
                for width in ((1, 4, 8) if name == "float64" else (1, 4, 16))]


@pytest.mark.parametrize(("dtype", "width"), FLOAT_WIDTHS)
def test_parts_of_floats_agree_with_modf_and_frexp(dtype: str, width: int) -> None:
    (values,) = harness.operands_for((dtype,))
    fraction, integer = np.modf(values)
    mantissa, exponent = np.frexp(values)
    for name, expected in (("modf_fraction", fraction), ("modf_integer", integer),
                           ("frexp_mantissa", mantissa), ("frexp_exponent", exponent)):
        actual = on_device(UFUNCS[name], (dtype,), expected.dtype.name, width, values)
        finite = np.isfinite(values) | (name != "frexp_exponent")  # C leaves that one open
        assert same(actual[finite], expected[finite]), name


@pytest.mark.parametrize(("part", "whole"), [("float32", "complex64"), ("float64", "complex128")])
def test_complex_numbers_are_taken_apart_and_put_together(part: str, whole: str) -> None:
    values = harness.hostile_complex(whole)
    assert same(on_device(UFUNCS["real"], (whole,), part, 1, values), values.real)
    assert same(on_device(UFUNCS["imag"], (whole,), part, 1, values), values.imag)
    made = on_device(UFUNCS["make_complex"], (part, part), whole, 1,
                     values.real.copy(), values.imag.copy())
    assert same(made.real, values.real)
    assert same(made.imag, values.imag)


@pytest.mark.parametrize("dtype", harness.DTYPE_NAMES)
def test_where_chooses_by_a_mask(dtype: str) -> None:
    mask, first = harness.operands_for(("bool", dtype), 500)
    second = np.roll(first, 7)
    width = 16 if harness.lane_nbytes(dtype) == harness.BOOL_LANE_NBYTES else 1
    actual = on_device(UFUNCS["where"], ("bool", dtype, dtype), dtype, width, mask, first, second)
    assert same(actual, np.where(mask, first, second))


# ---- reductions ----


def neutral_cases() -> list[Any]:
    return [
        pytest.param(row, dtype, id=f"{row.name} {dtype}")
        for row in REDUCTIONS.values() for dtype in harness.DTYPE_NAMES
        if row.identity_of(dtype) is not None
    ]


@pytest.mark.parametrize(("row", "dtype"), neutral_cases())
def test_identity_of_a_reduction_changes_nothing(row: Reduction, dtype: str) -> None:
    ufunc = UFUNCS[row.name]
    key = ufunc.key((dtype, dtype))
    identity = row.identity_of(dtype)
    assert key is not None
    assert identity is not None
    (values,) = harness.operands_for((dtype,), 200)
    for order in (("{0}", identity), (identity, "{0}")):
        expression = ufunc.expressions[key]
        expression = expression.replace("{0}", "{{0}}").replace("{1}", "{{1}}")
        expression = expression.replace("{{0}}", order[0]).replace("{{1}}", order[1])
        with_identity = Ufunc(row.name, 1, {key: expression}, ufunc.define, ufunc.libraries)
        output = "bool" if row.name.startswith("logical") else dtype
        width = 1 if class_of(dtype) == "complex" else 8
        actual = on_device(with_identity, (dtype,), output, width, values)
        function = getattr(np, row.name)
        # NumPy's identity may change what it should not: 1+0j makes inf+1j inf+nanj.
        expected = values
        if row.neutral:
            expected = function(values, np.array(function.identity).astype(dtype))
        assert np.array_equal(actual, expected, equal_nan=dtype.startswith(("float", "complex")))


@pytest.mark.parametrize("row", list(REDUCTIONS.values()), ids=lambda row: row.name)
def test_reductions_without_elements_give_numpys_identity(row: Reduction) -> None:
    assert row.neutral == (getattr(np, row.name).identity is not None)


# ---- random numbers ----

# Random123's known answers for Philox4x32-10: counter, key, the first two words.
PHILOX_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB)),
]


def long_of(low: int, high: int) -> int:
    return int(np.array(high << 32 | low, np.uint64).view(np.int64))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_philox_gives_the_known_answers(width: int) -> None:
    index = np.array([long_of(c[0], c[1]) for c, _, _ in PHILOX_ANSWERS], np.int64)
    key = np.array([long_of(*k) for _, k, _ in PHILOX_ANSWERS], np.int64)
    stream = np.array([long_of(c[2], c[3]) for c, _, _ in PHILOX_ANSWERS], np.int64)
    expected = np.array([w[1] << 32 | w[0] for _, _, w in PHILOX_ANSWERS], np.uint64)
    row, inputs = UFUNCS["philox_bits64"], ("int64",) * 3
    bits = on_device(row, inputs, "uint64", width, index, key, stream)
    assert (bits == expected).all()
    for name, kept in (("float64", 53), ("float32", 24)):
        uniform = on_device(UFUNCS[f"philox_uniform_{name}"], inputs, name, width,
                            index, key, stream)
        assert (uniform == (expected >> np.uint64(64 - kept)).astype(name) / 2.0**kept).all()


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    count = 1 << 16
    index = np.arange(count)
    uniform = on_device(UFUNCS["philox_uniform_float64"], ("int64",) * 3, "float64", 8, index,
                        np.full(count, 2**63 - 25), np.full(count, -7))
    cells = np.bincount((uniform * 64).astype(int), minlength=64)
    assert len(cells) == 64
    chi_squared = float(((cells - count / 64) ** 2).sum() / (count / 64))
    assert 25 < chi_squared < 120  # 63 degrees of freedom: one in ten million is outside

"""Every row of the op tables computes what NumPy computes, on hostile values, at every width.

The rows run by themselves here (`numerics_harness`): a failure is a wrong expression, not a wrong
plan. Integers, comparisons, + - * / and sqrt have NumPy's bits; the rest lies within 4 units in
the last place of the exact result, complex results in the plane.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clfuse.ops.row import Reduction, Ufunc
from clfuse.ops.table import REDUCTIONS, UFUNCS, class_of
from clfuse.runtime.devices.selection import get_device
from tests.support import numerics_harness as harness
from tests.support.releases import IS_BEFORE_2_4

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
    if IS_BEFORE_2_4:  # another C library's result for an imaginary NaN
        wrong = [text for text in wrong if not text.startswith("arccosh(complex")]
    assert not wrong, "\n".join(wrong)


def test_every_loop_of_numpys_ufuncs_has_a_row() -> None:
    ufuncs = {f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)}
    missing = ufuncs - set(UFUNCS)
    assert missing == (NOT_ELEMENT_WISE | SEVERAL_OUTPUTS | OF_TIMES) & ufuncs
    assert {"matmul", "divmod", "isnat"} <= missing
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


def with_identity(row: Reduction, dtype: str) -> list[Ufunc]:
    """Rows that apply a reduction to an element and its identity, on the right and on the left."""
    ufunc = UFUNCS[row.name]
    key = ufunc.key((dtype, dtype))
    identity = row.identity_of(dtype)
    assert key is not None
    assert identity is not None
    replaced = harness.replacements(get_device().platform_name)
    made = []
    for order in (("{0}", identity), (identity, "{0}")):
        expression = replaced.get((row.name, dtype), ufunc.expressions[key])
        expression = expression.replace("{0}", "{{0}}").replace("{1}", "{{1}}")
        expression = expression.replace("{{0}}", order[0]).replace("{{1}}", order[1])
        made.append(Ufunc(row.name, 1, {key: expression}, ufunc.define, ufunc.libraries))
    return made


@pytest.mark.parametrize("dtype", harness.DTYPE_NAMES)
def test_identities_of_reductions_change_nothing(dtype: str) -> None:
    (values,) = harness.operands_for((dtype,), 200)
    rows = [row for row in REDUCTIONS.values() if row.identity_of(dtype) is not None]
    cases = {
        harness.Case(made, (dtype,), "bool" if row.name.startswith("logical") else dtype): row
        for row in rows for made in with_identity(row, dtype)
    }
    assert len(cases) == 2 * len(rows)
    width = 1 if class_of(dtype) == "complex" else 8
    found = harness.evaluate_cases(get_device(), list(cases), width, (values,))
    for case, actual in found.items():
        row = cases[case]
        function = getattr(np, row.name)
        # NumPy's identity may change what it should not: 1+0j makes inf+1j inf+nanj.
        expected = values
        if row.neutral:
            expected = function(values, np.array(function.identity).astype(dtype))
        right = np.array_equal(actual, expected, equal_nan=dtype.startswith(("float", "complex")))
        assert right, (row.name, case.row.expressions)


@pytest.mark.parametrize("row", list(REDUCTIONS.values()), ids=lambda row: row.name)
def test_reductions_without_elements_give_numpys_identity(row: Reduction) -> None:
    assert row.neutral == (getattr(np, row.name).identity is not None)


# ---- random numbers ----

# Random123's known answers for Philox4x32-10: counter, key, result.
PHILOX_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def long_of(low: int, high: int) -> int:
    return int(np.array(high << 32 | low, np.uint64).view(np.int64))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_philox_gives_the_known_answers(width: int) -> None:
    index = np.array([long_of(c[0], c[1]) for c, _, _ in PHILOX_ANSWERS], np.int64)
    key = np.array([long_of(*k) for _, k, _ in PHILOX_ANSWERS], np.int64)
    stream = np.array([long_of(c[2], c[3]) for c, _, _ in PHILOX_ANSWERS], np.int64)
    for name, first in (("philox_bits", 0), ("philox_more_bits", 2)):
        expected = [w[first + 1] << 32 | w[first] for _, _, w in PHILOX_ANSWERS]
        bits = on_device(UFUNCS[name], ("int64",) * 3, "uint64", width, index, key, stream)
        assert bits.tolist() == expected


@pytest.mark.parametrize("width", [1, 4, 8])
def test_numbers_made_of_random_bits_are_what_the_bits_say(width: int) -> None:
    ends = [0, 1, 2**11 - 1, 2**11, 2**12, 2**40 - 1, 2**40, 2**63 - 1, 2**63, 2**63 + 2**11,
            2**64 - 2**40, 2**64 - 2**12, 2**64 - 1]
    random = np.random.default_rng(1).integers(0, 2**64, 500, np.uint64)
    small = random >> np.arange(500, dtype=np.uint64) % np.uint64(64)
    bits = np.concatenate([np.array(ends, np.uint64), random, small, ~small])

    def made(name: str, output: str) -> npt.NDArray[Any]:
        row = UFUNCS[f"{name}_of_bits_{output}"]
        return on_device(row, ("uint64",), output, width, bits)

    for dtype, kept in (("float64", 53), ("float32", 24)):
        assert (made("uniform", dtype) == (bits >> np.uint64(64 - kept)) / 2.0**kept).all()
        opened = made("open", dtype)
        assert (opened == ((bits >> np.uint64(65 - kept)) + 0.5) / 2.0 ** (kept - 1)).all()
        assert 0 < opened.min() < opened.max() < 1
        positive = made("positive", dtype)
        scale = np.dtype(dtype).type(2.0**-64)
        assert (positive == (bits.astype(dtype) + np.dtype(dtype).type(0.5)) * scale).all()
        assert positive.min() > 0
        assert positive.max() == 1
    # The tail that each normal number cuts off, against what it was made of.
    whole = bits.view(np.int64) >> 11
    size = np.where(whole < 0, ~whole, whole)
    tail = ((2**52 - 1 - size) + 0.5) * 2.0**-53
    for dtype, bound in (("float64", 4e-15), ("float32", 4e-6)):
        normal = made("normal", dtype)
        assert (np.signbit(normal) == (whole < 0)).all()
        expected = np.array([math.erfc(abs(float(z)) / math.sqrt(2)) / 2 for z in normal])
        # An error of one part in 2^-53 of z changes the tail by z^2 times as much.
        relative = np.abs(expected - tail) / tail / np.maximum(1, np.abs(normal) ** 2)
        assert relative.max() < bound
        assert 8.2 < normal.max() < 8.3
        assert normal.min() == -normal.max()


@pytest.mark.parametrize("width", [1, 8])
def test_upper_half_of_a_product_is_exact(width: int) -> None:
    ends = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0x123456789ABCDEF], np.uint64)
    left, right = (part.ravel() for part in np.meshgrid(ends, ends))
    actual = on_device(UFUNCS["multiply_high"], ("uint64",) * 2, "uint64", width, left, right)
    assert actual.tolist() == [int(a) * int(b) >> 64 for a, b in zip(left, right, strict=True)]

"""Functions of numbers that a compiler knows: what it makes of them itself is what NumPy makes.

A compiler calculates functions of constants with its own code, which may be wrong where the
built-in function is right: NVIDIA's took pow(-inf, -inf) for infinite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.codegen.lines.expressions import Expressions, Preamble
from clfuse.codegen.templates import head
from clfuse.engine.evaluate import forget_plans
from clfuse.ops.row import Ufunc
from clfuse.ops.table import FAULTY_BUILTINS, UFUNCS
from clfuse.user_kernels.language.source.literals import literal
from clfuse.user_kernels.opencl.record_launch import record_launch
from tests.support.agreement import same_bits, ulps_apart
from tests.support.hostile import hostile

pytestmark = pytest.mark.clfuse_only

NAN, INF = float("nan"), float("inf")
NUMBERS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e30, -1e-30]
ULP = 4
SIGN_OF_NAN = {"signbit", "copysign", "spacing"}
"""Functions of the sign that NaN has, which is the processor's."""

EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}
"""Functions that may give one zero for the other: NumPy's loops do, as the processor does."""


def rows(arity: int) -> list[Ufunc]:
    return [
        row for row in UFUNCS.values()
        if row.arity == arity and not row.output and hasattr(np, row.name)
        and row.key(["float64"] * arity) is not None
    ]


def kernel(row: Ufunc, dtype: np.dtype, given: list[tuple[float, ...]], output: np.dtype) -> str:
    """A kernel with a statement for every tuple of operands, which are literals."""
    preamble = Preamble()
    writer = Expressions(1, cf.get_device().traits, preamble)
    lines = []
    for place, numbers in enumerate(given):
        texts = [f"({literal(number, dtype)})" for number in numbers]
        text = writer.formatted(row.name, [dtype] * row.arity, texts, output, dtype.itemsize)
        lines.append(f"    out[{place}] = {text};")
    stored = "uchar" if output.kind == "b" else {"f": "float", "d": "double"}[output.char]
    above = "".join(head(preamble, True))
    body = "\n".join(lines)
    return f"{above}__kernel void known(__global {stored} *out)\n{{\n{body}\n}}\n"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", [*rows(1), *rows(2)], ids=lambda row: row.name)
def test_what_compilers_make_of_constants_is_numpys(row: Ufunc, dtype: str) -> None:
    kind = np.dtype(dtype)
    if row.key([dtype] * row.arity) is None:
        pytest.skip("not of this type")
    if dtype == "float64" and not cf.get_device().traits.fp64:
        pytest.skip("the kernel, which the test writes, has constants in double precision")
    given = list(itertools.product(NUMBERS, repeat=row.arity))
    if row.name in SIGN_OF_NAN:
        given = [numbers for numbers in given if not np.isnan(numbers).any()]
    columns = [np.array(column, kind) for column in zip(*given, strict=True)]
    expected = getattr(np, row.name)(*columns)
    out = cf.zeros(len(given), expected.dtype)
    record_launch(kernel(row, kind, given, expected.dtype), "known", [(out, "w")], (1,))
    made = out.get()
    if expected.dtype.kind != "f":
        wrong = made != expected
    else:
        wrong = ulps_apart(made, expected) > (ULP if row.ulp else 0)
        if row.name not in EITHER_ZERO:
            wrong |= (expected == 0) & ~same_bits(made, expected)
    assert not wrong.any(), [
        (*given[place], made[place], expected[place]) for place in np.flatnonzero(wrong)
    ]


@pytest.fixture
def nvidias() -> Iterator[None]:
    """What stands in for NVIDIA's builtins, here."""
    device = cf.get_device()
    expressions = {**device.traits.expressions}
    for faulty in FAULTY_BUILTINS:
        if "NVIDIA" in faulty.platform:
            expressions |= faulty.expressions
    forget_plans()
    with device.trying(replace(device.untuned_traits, expressions=expressions)):
        yield
    forget_plans()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_pow_of_finite_numbers_alone_is_pow(
    nvidias: None, dtype: str, setting: Callable[..., None]
) -> None:
    setting(schedule="gpu")  # PoCL's pow of wide vectors is another one, and wrong
    values = np.concatenate([hostile(dtype), np.array(NUMBERS, dtype)])
    whole = np.array([-7, -5, -4, -3, 2, 4, 5, 6, 7, 2**10, 2**11 + 1, 2.5, -0.5], dtype)
    x, y = (each.ravel() for each in np.meshgrid(values, np.concatenate([values, whole])))
    ours = cf.array(x), cf.array(y)
    plan = cf.explain(cf.power(*ours))
    assert "finite_pow_" in plan.kernels[0].source
    made = [cf.power(*ours), cf.float_power(*ours)]
    for power, name in zip(made, ("power", "float_power"), strict=True):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        expected = getattr(np, name)(x, y)
        got: Any = power.get()
        assert got.dtype == expected.dtype
        special = ~np.isfinite(x) | ~np.isfinite(y) | (x == 0) | (y == 0)
        assert same_bits(got[special], expected[special]).all()
        wrong = (ulps_apart(got, exact) > ULP) & (ulps_apart(got, expected) > ULP)
        assert not wrong.any(), (x[wrong][:5], y[wrong][:5], got[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_small_whole_powers_are_products(
    nvidias: None, dtype: str, setting: Callable[..., None]
) -> None:
    setting(schedule="gpu")
    parts = np.random.default_rng(3).uniform(-9, 9, 300).astype(dtype)
    bases = np.concatenate([np.arange(-20, 21).astype(dtype), parts, hostile(dtype)])
    for exponent in range(16):
        exact = np.power(bases.astype(np.longdouble), exponent)
        got = cf.power(cf.array(bases), np.dtype(dtype).type(exponent)).get()
        # As good as correctly rounded; what is subnormal, or nearly, is the builtin's.
        expected = exact.astype(dtype)
        size = np.abs(expected)
        inside = (size < np.finfo(dtype).max / 2) & (size > 2.0**-100)
        assert (ulps_apart(got[inside], exact[inside]) <= .51).all(), exponent
        whole = [int(base) ** exponent for base in bases[:41].astype(int)]
        held = np.abs(np.array(whole, "O")) < 2 ** (np.finfo(dtype).nmant + 1)
        held &= np.abs(np.array(whole, "O")) <= int(np.finfo(dtype).max)
        np.testing.assert_array_equal(
            got[:41][held.astype(bool)], np.array(whole, "O")[held.astype(bool)].astype(dtype))
        beyond = ~inside
        apart = ulps_apart(got[beyond], np.power(bases, np.dtype(dtype).type(exponent))[beyond])
        assert (apart <= ULP).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_halves_and_negative_powers_are_products_too(
    nvidias: None, dtype: str, setting: Callable[..., None]
) -> None:
    setting(schedule="gpu")
    parts = np.random.default_rng(4).uniform(0, 9, 300).astype(dtype)
    bases = np.concatenate([np.arange(-20, 21).astype(dtype), parts, hostile(dtype)])
    for exponent in (-1.5, -0.5, 0.5, 1.5, 2.5, -1, -2, -3, 7.5, -7.5, 15.5, -15.5):
        with np.errstate(all="ignore"):
            exact = np.power(bases.astype(np.longdouble), exponent)
            # As an array: of one exponent .5 NumPy takes roots, of which that of -inf is NaN.
            expected = np.power(bases, np.full_like(bases, exponent))
        got = cf.power(cf.array(bases), np.dtype(dtype).type(exponent)).get()
        with np.errstate(all="ignore"):
            size = np.abs(exact)
            inside = (size < np.finfo(dtype).max / 2) & (size > max(
                2.0**-100, float(np.finfo(dtype).tiny)))
        apart = ulps_apart(got[inside], exact[inside])
        assert (apart <= 2.5).all(), (exponent, bases[inside][apart > 2.5], apart.max())
        wrong = (ulps_apart(got, expected) > ULP) & ~(np.isnan(got) & np.isnan(expected))
        assert not wrong.any(), (exponent, bases[wrong], got[wrong], expected[wrong])

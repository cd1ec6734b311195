"""Every ufunc gives NumPy's dtype and values, for every loop that NumPy has, on hostile values.

Integers, comparisons, + - * / and sqrt are bit-identical; transcendental functions lie within 4
units in the last place of the exact result (or as near as NumPy itself); a name that clfuse
computes on the host has to agree all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clfuse.numpy_releases import AT_READ_ONLY
from tests.fuzz.bounds import EXACT, EXACT_FOR_COMPLEX, UNSIGNED_ZEROS
from tests.support.agreement import (
    Batch,
    assert_bitwise,
    assert_same_error,
    difference_of_form,
    error_of,
    given,
    is_recorded,
)
from tests.support.hostile import COMPLEXES, DTYPES, FLOATS, INTEGERS, hostile, layouts, ordinary

Array = NDArray[Any]

CODES = {np.dtype(name).char: name for name in DTYPES}
UFUNCS = sorted({f.__name__: f for f in vars(np).values()
                 if isinstance(f, np.ufunc) and f.signature is None}.items())
ULP = 4.0
HALF_ULP = 1.0      # float16 is computed in float32 and rounded once
COMPLEX_ULP = 16.0  # of the modulus
LEFT_OVER = 1e-3  # relative
# A sum of logarithms of exponentials cancels near zero: distances count from the operands' size.
CANCELLING = ("logaddexp", "logaddexp2")


def loops(ufunc: np.ufunc) -> Iterator[tuple[str, ...]]:
    """The input dtypes of each loop that concerns us, by name."""
    seen = set()
    for signature in ufunc.types:
        codes = signature.split("->")[0]
        if all(c in CODES for c in codes) and codes not in seen:
            seen.add(codes)
            yield tuple(CODES[c] for c in codes)


def moderate(dtype: str) -> Array:
    """Complex numbers whose functions stay finite; special values are a test of their own."""
    part = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.25, 1e-3, -30.0])
    values = np.empty((part.size, part.size), dtype)
    values.real, values.imag = part[:, None], part
    return values.ravel()


def operands(name: str, dtypes: tuple[str, ...]) -> list[Array]:
    """Every combination of hostile values of the dtypes, where C defines the result."""
    values: list[Array] = [moderate(d) if d in COMPLEXES else hostile(d) for d in dtypes]
    if name == "power" and dtypes[0] in INTEGERS:
        values[1] = values[1][values[1] >= 0]  # a negative exponent raises, by value
    if name == "reciprocal" and dtypes[0] in INTEGERS:
        values[0] = values[0][values[0] != 0]
    if name == "frexp":
        values[0] = values[0][np.isfinite(values[0])]  # C leaves the exponent of inf open
    return [np.ascontiguousarray(g).ravel() for g in np.meshgrid(*values)]


def exact_result(ufunc: np.ufunc, inputs: list[Array], expected: Array) -> Array | None:
    """The result in wider arithmetic, or None where there is none."""
    if expected.dtype.kind not in "fc" or ufunc.nout > 1:
        return None
    wide = np.clongdouble if any(i.dtype.kind == "c" for i in inputs) else np.longdouble
    try:
        result = ufunc(*[i.astype(wide) if i.dtype.kind in "fc" else i for i in inputs])
    except TypeError:
        return None
    return np.asarray(result)


def allowance(name: str, inputs: list[Array], expected: Array, exact: Array | None) -> Array:
    """What each element may be off: so many units, or as much as NumPy is."""
    real = np.finfo(expected.dtype).dtype
    truth = expected if exact is None else exact
    modulus = np.abs(truth).astype(real)
    if name in CANCELLING:
        modulus = np.maximum(modulus, np.maximum(*(np.abs(i) for i in inputs)))
    most = np.finfo(real).max / 2  # of the largest number itself NumPy says infinity
    one = np.abs(np.spacing(np.minimum(modulus, most)))
    ulp: Any = COMPLEX_ULP if expected.dtype.kind == "c" else HALF_ULP if real == "f2" else ULP
    if name in ("power", "float_power") and expected.dtype.kind == "c":
        # exp(b log a): what the product is off by is a relative error of the result.
        with np.errstate(all="ignore"):
            turns = np.abs(inputs[1]) * np.abs(np.log(inputs[0]))
        ulp = ulp + 2 * np.where(np.isfinite(turns), turns, 0)
    own = np.abs(expected.astype(truth.dtype) - truth)
    # Where NumPy or the exact result overflows, the two have to agree as they are.
    finite = np.isfinite(truth.astype(expected.dtype)) & np.isfinite(expected)
    if expected.dtype.kind == "c":
        # One part may overflow where the other does not; the other is then what is left over of
        # numbers too large for the dtype, on both sides.
        finite |= np.isfinite(truth)
        own = np.where(np.isfinite(expected), own, LEFT_OVER * np.abs(truth))
    return np.asarray(np.where(finite, np.fmax(ulp * one.astype("f8"), own), 0.0))


def is_exact(name: str, dtypes: tuple[str, ...]) -> bool:
    return name in EXACT and (name in EXACT_FOR_COMPLEX or not set(dtypes) & set(COMPLEXES))


@pytest.mark.parametrize("name", [name for name, _ in UFUNCS])
def test_ufunc_agrees_on_every_pair_of_hostile_values(name: str,
                                                                 xp: ModuleType) -> None:
    ufunc = getattr(np, name)
    batch = Batch(xp)
    every = {dtypes: operands(name, dtypes) for dtypes in loops(ufunc)}
    size = max((inputs[0].size for inputs in every.values()), default=0)
    for dtypes, inputs in every.items():
        # Loops over one size are one program; what is left of it repeats the values.
        inputs = [np.resize(values, size) for values in inputs]
        label = f"{name}({', '.join(dtypes)})"
        expected = ufunc(*inputs)

        def call(m: ModuleType, inputs: list[Array] = inputs) -> Any:
            return getattr(m, name)(*[m.array(i) for i in inputs])

        kinds = {np.asarray(e).dtype.kind for e in np.atleast_1d(expected)}
        if is_exact(name, dtypes) or not kinds & set("fc"):
            batch.same(label, call, inputs=inputs, zero_signs=name not in UNSIGNED_ZEROS)
        else:
            truth = exact_result(ufunc, inputs, expected)
            bound = allowance(name, inputs, expected, truth)
            if expected.dtype.kind == "c":
                bound = bound + 1j * bound
            batch.same(label, call, bound=bound, around=truth, inputs=inputs)
    batch.check()


SPECIAL_COMPLEX = """absolute add conjugate equal isfinite isinf isnan less logical_and logical_not
    negative not_equal positive subtract exp sqrt""".split()


@pytest.mark.parametrize("name", SPECIAL_COMPLEX)
def test_complex_infinities_and_nans_come_out_as_under_numpy(name: str, xp: ModuleType) -> None:
    ufunc = getattr(np, name)
    batch = Batch(xp)
    for dtype in COMPLEXES:
        values = hostile(dtype)
        values = values[~(np.isfinite(values.real) & np.isfinite(values.imag))]
        inputs = [np.ascontiguousarray(g).ravel() for g in np.meshgrid(*[values] * ufunc.nin)]
        batch.same(f"{name}({dtype})",
                   lambda m, i=inputs: getattr(m, name)(*[m.array(v) for v in i]), ulp=COMPLEX_ULP,
                   inputs=inputs)
    batch.check()


UNARY_TO_FLOAT = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp
    exp2 expm1 log log2 log10 log1p sqrt cbrt deg2rad rad2deg rint floor ceil trunc fabs isnan
    isinf isfinite signbit spacing""".split()


# NVIDIA's compiler (NVVM of CUDA 13.0, and of driver 580.159) takes a quotient for a number that is
# not NaN, and of the dividend's sign, where it finds when it builds that the divisor is 0; what is
# asked of such a quotient then is answered wrongly. Literals and what arrays hold are right.
WRONG_OF_KNOWN_QUOTIENTS = {"isnan(nan)", "maximum(nan, 2)", "exp(-inf)", "power(nan, nan)"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_nan_and_infinity_stay_what_they_are(
    xp: ModuleType, dtype: str
) -> None:
    """What is made of comparisons of a number with itself is known when the kernel is built."""
    batch = Batch(xp)
    traits = xp.get_device().traits if xp is not np else None
    wrong: set[str] = set()
    if traits is not None and "NVIDIA" in traits.platform:
        wrong = WRONG_OF_KNOWN_QUOTIENTS

    def known(m: Any) -> list[Any]:
        three = m.full(19, 3, dtype=dtype)
        zero, one = (three < three).astype(dtype), (three == three).astype(dtype)
        return [zero / zero, one / zero, -one / zero]

    for place, kind in enumerate(("nan", "inf", "-inf")):
        for name in UNARY_TO_FLOAT:
            # The sign of 0 / 0 is the processor's.
            if name != "signbit" and f"{name}({kind})" not in wrong:
                batch.same(f"{name}({kind})", lambda m, n=name, p=place: getattr(m, n)(known(m)[p]),
                           ulp=ULP)
        for name in ("floor_divide", "remainder", "fmod", "power", "maximum", "fmin"):
            if f"{name}({kind}, {kind})" not in wrong:
                batch.same(f"{name}({kind}, {kind})",
                           lambda m, n=name, p=place: getattr(m, n)(known(m)[p], known(m)[p]))
            if f"{name}({kind}, 2)" not in wrong:
                batch.same(f"{name}({kind}, 2)",
                           lambda m, n=name, p=place: getattr(m, n)(known(m)[p], 2))
        batch.same(f"modf({kind})", lambda m, p=place: m.modf(known(m)[p])[0])
    batch.check()


# What comes out is asked for of all; values are computed of one dtype for each that comes out,
# and of all dtypes where they enter the simplest function.
ENTERING = ("int8", "uint16", "int64")


def test_integers_enter_float_functions_as_under_numpy(xp: ModuleType) -> None:
    batch = Batch(xp)
    wrong = []
    for dtype in ("bool", *INTEGERS):
        x = given(ordinary(1, 21, dtype))
        for name in UNARY_TO_FLOAT:
            if dtype in ENTERING or name in ("sqrt", "isfinite"):
                batch.same(f"{name}({dtype})", lambda m, n=name, x=x: getattr(m, n)(x(m)),
                           ulp=2 * ULP)
            elif difference := difference_of_form(getattr(xp, name)(x(xp)),
                                                  getattr(np, name)(x(np))):
                wrong.append(f"{name}({dtype}): {difference}")
    assert not wrong, "\n".join(wrong)
    batch.check()


# The dtype of every pair is asked for; values are computed where kinds and sizes differ most.
COMPUTED_DTYPES = ("bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "complex128")
MIXED = """add subtract multiply divide floor_divide remainder power maximum less equal bitwise_and
    left_shift arctan2 hypot logical_or copysign ldexp""".split()


@pytest.mark.parametrize("name", MIXED)
def test_two_dtypes_promote_as_under_numpy(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    wrong = []
    left = {dtype: given(ordinary(2, 9, dtype, "positive")) for dtype in DTYPES}
    right = {dtype: given(ordinary(3, 9, dtype, "positive")) for dtype in DTYPES}
    for first, second in itertools.product(DTYPES, repeat=2):
        exact = is_exact(name, (first, second))

        def call(m: ModuleType, a: Any = left[first], b: Any = right[second]) -> Any:
            return getattr(m, name)(a(m), b(m))

        if first in COMPUTED_DTYPES and second in COMPUTED_DTYPES:
            batch.same(f"{name}({first}, {second})", call, ulp=0 if exact else COMPLEX_ULP)
        elif error_of(lambda call=call: call(np)):
            assert_same_error(call, xp)
        elif difference := difference_of_form(call(xp), call(np)):
            wrong.append(f"{name}({first}, {second}): {difference}")
    assert not wrong, "\n".join(wrong)
    batch.check()


SCALARS: tuple[Any, ...] = (
    True, 0, 1, 3, -1, 127, 255, 300, 2 ** 40, -2 ** 63, 2 ** 63, 2 ** 64, 2.5, -0.0, 1e30, 1e300,
    float("inf"), float("nan"), 2j, np.bool_(True), np.int8(3), np.uint64(7), np.float16(1.5),
    np.float32(0.1), np.float64(0.1), np.complex64(1 + 2j))
FEWER_DTYPES = ("bool", "int8", "uint8", "uint64", "float16", "float32")  # no complex: in `add`


@pytest.mark.parametrize("name", ["add", "less", "equal", "divide", "maximum", "floor_divide",
                                  "bitwise_or"])
def test_python_numbers_are_weak_and_numpy_scalars_strong(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    dtypes = DTYPES if name == "add" else FEWER_DTYPES
    arrays = [(dtype, given(ordinary(4, 9, dtype))) for dtype in dtypes]
    for scalar in SCALARS:
        for (dtype, x), order in itertools.product(arrays, (1, -1)):
            batch.same(
                f"{name}({(dtype, repr(scalar))[::order]})",
                lambda m, x=x, s=scalar, o=order: getattr(m, name)(*(x(m), s)[::o]), ulp=4)
        if not isinstance(scalar, np.generic):
            batch.check()  # a scalar is an argument: one of the same type needs no other program
    batch.check()


OPERATORS = {
    "a + b": lambda a, b: a + b, "a - b": lambda a, b: a - b, "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b, "a // b": lambda a, b: a // b, "a % b": lambda a, b: a % b,
    "divmod(a, b)": divmod, "a & b": lambda a, b: a & b, "a | b": lambda a, b: a | b,
    "a ^ b": lambda a, b: a ^ b, "a << b": lambda a, b: a << b, "a >> b": lambda a, b: a >> b,
    "a < b": lambda a, b: a < b, "a <= b": lambda a, b: a <= b, "a > b": lambda a, b: a > b,
    "a >= b": lambda a, b: a >= b, "a == b": lambda a, b: a == b, "a != b": lambda a, b: a != b,
    "-a": lambda a, b: -a, "+a": lambda a, b: +a, "~a": lambda a, b: ~a,
    "abs(a)": lambda a, b: abs(a), "2 - a": lambda a, b: 2 - a, "2 // a": lambda a, b: 2 // a,
    "a ** 2": lambda a, b: a ** 2, "a ** 3": lambda a, b: a ** 3, "a ** 0": lambda a, b: a ** 0,
    "a @ b": lambda a, b: a @ b,
}


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float64", "complex64"])
def test_operators_do_what_their_ufuncs_do(dtype: str, xp: ModuleType) -> None:
    a, b = given(ordinary(5, 33, dtype)), given(ordinary(6, 33, dtype))
    batch = Batch(xp)
    for label, operator in OPERATORS.items():
        batch.same(label, lambda m, f=operator: f(a(m), b(m)),
                   ulp=4 if dtype in (*FLOATS, *COMPLEXES) else 0)
    batch.check()


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex128"])
def test_strided_flipped_and_transposed_operands_agree(dtype: str,
                                                                      xp: ModuleType) -> None:
    batch = Batch(xp)
    for shape in ((), (0,), (1,), (5,), (67,), (7, 9), (3, 4, 5)):
        data = ordinary(7, shape, dtype)
        a, b = given(data), given(ordinary(8, shape, dtype))
        for name, key in layouts(data):
            def call(m: ModuleType, a: Any = a, b: Any = b, key: Any = key) -> Any:
                x, y = (a(m).T, b(m).T) if key is None else (a(m)[key], b(m)[key])
                return x * 2 + y[...]

            batch.same(f"{shape} {name}", call)
            batch.same(f"{shape} {name}, one operand whole", lambda m, a=a, key=key: (
                a(m).T + 1 if key is None else a(m)[key] - a(m)[key]))
    batch.check()


def test_shapes_broadcast_as_under_numpy(xp: ModuleType) -> None:
    batch = Batch(xp)
    shapes = [(), (1,), (0,), (5,), (1, 5), (4, 1), (4, 5), (3, 4, 5), (3, 1, 1), (1, 0), (4, 0),
              (2, 3), (5, 1, 1, 1)]
    left = [given(ordinary(9, shape, "float32")) for shape in shapes]
    right = [given(ordinary(10, shape, "int16")) for shape in shapes]
    for (first, a), (second, b) in itertools.product(zip(shapes, left, strict=True),
                                                     zip(shapes, right, strict=True)):
        batch.same(f"{first} * {second}", lambda m, a=a, b=b: a(m) * b(m))
    batch.check()


def test_out_receives_the_result_and_is_returned(xp: ModuleType) -> None:
    a, b = ordinary(11, (4, 5), "float32"), ordinary(12, 5, "float32")

    def call(m: ModuleType, dtype: str, name: str) -> Any:
        out = m.zeros((4, 5), dtype)
        result = getattr(m, name)(m.array(a), m.array(b), out=out)
        assert result is out
        return out

    batch = Batch(xp)
    for dtype in ("float16", "float32", "float64", "complex64", "int32", "bool"):
        for name in ("add", "less", "multiply"):
            batch.same(f"{name} into {dtype}", lambda m, d=dtype, n=name: call(m, d, n))
    batch.check()


def test_where_leaves_the_rest_of_out_alone(xp: ModuleType) -> None:
    a = ordinary(13, (4, 5), "float64", "hostile")
    mask = ordinary(14, (4, 5), "bool")

    def call(m: ModuleType, where: Any, dtype: str = "float64") -> Any:
        out = m.full((4, 5), 7, dtype)
        m.sqrt(m.array(a), out=out, where=m.array(where))
        return out

    batch = Batch(xp)
    batch.same("whole mask", lambda m: call(m, mask))
    batch.same("one row", lambda m: call(m, mask[0]))
    batch.same("one column", lambda m: call(m, mask[:, :1]))
    batch.same("0-d", lambda m: call(m, np.array(False)))
    batch.same("wider out", lambda m: call(m, mask, "complex128"))
    batch.same("Python bool", lambda m: m.add(m.array(a), 1, out=m.zeros((4, 5)), where=False))
    batch.same("wrong shape", lambda m: call(m, np.array([True, False])))
    batch.check()


def test_out_may_overlap_the_operands(xp: ModuleType) -> None:
    data = ordinary(15, 67, "float32")

    def shifted(m: ModuleType, read: slice, write: slice) -> Any:
        x = m.array(data)
        m.add(x[read], 1, out=x[write])
        return x

    def transposed(m: ModuleType) -> Any:
        x = m.array(data[:64]).reshape(8, 8)
        m.multiply(x.T, 2, out=x)
        return x

    def reversed_in_place(m: ModuleType) -> Any:
        x = m.array(data)
        m.negative(x[::-1], out=x)
        return x

    batch = Batch(xp)
    batch.same("ahead", lambda m: shifted(m, slice(None, -1), slice(1, None)))
    batch.same("behind", lambda m: shifted(m, slice(1, None), slice(None, -1)))
    batch.same("transposed", transposed)
    batch.same("reversed", reversed_in_place)
    batch.check()


def test_dtype_and_casting_choose_the_loop(xp: ModuleType) -> None:
    a = ordinary(16, 17, "int32")
    batch = Batch(xp)
    for dtype in DTYPES:
        batch.same(f"add as {dtype}", lambda m, d=dtype: m.add(m.array(a), 1, dtype=d))
        batch.same(f"divide as {dtype}", lambda m, d=dtype: m.divide(m.array(a), 4, dtype=d),
                   ulp=4)
        for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
            batch.same(f"add as {dtype}, {casting}", lambda m, d=dtype, c=casting: m.add(
                m.array(np.abs(a)), 1, dtype=d, casting=c))
    batch.check()


def test_two_results_come_back_as_a_tuple(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in FLOATS:
        values = hostile(dtype)
        finite = values[np.isfinite(values)]
        batch.same(f"modf {dtype}", lambda m, v=values: m.modf(m.array(v)))
        batch.same(f"frexp {dtype}", lambda m, v=finite: m.frexp(m.array(v)))
        batch.same(f"divmod {dtype}", lambda m, v=values: m.divmod(m.array(v), m.array(v[::-1])))
        batch.same(f"out= {dtype}", lambda m, v=values: m.modf(
            m.array(v), out=(m.zeros(v.shape, v.dtype), m.zeros(v.shape, "float64"))))
    batch.check()


@pytest.mark.clfuse_only
def test_numpys_own_functions_return_the_arrays_kind(xp: ModuleType) -> None:
    data = ordinary(17, (3, 5), "float64")
    x, y = xp.array(data), xp.array(data + 1)
    for made in (np.sin(x), np.add(x, 1), np.sum(x), np.concatenate([x, y]), np.where(x > 0, x, y),
                 np.mean(x, axis=0), np.transpose(x), data + x, np.float64(2) * x):
        assert is_recorded(xp, made), type(made)


def test_numpys_own_functions_accept_the_array(xp: ModuleType) -> None:
    data = ordinary(17, (3, 5), "float64")
    batch = Batch(xp)
    batch.same("sin", lambda m: np.sin(m.array(data)), ulp=4)
    batch.same("sum", lambda m: np.sum(m.array(data), axis=1, keepdims=True))
    batch.same("concatenate", lambda m: np.concatenate([m.array(data), m.array(data)], axis=1))
    batch.same("where", lambda m: np.where(m.array(data) > 0, m.array(data), 2))
    batch.same("from the left", lambda m: data - m.array(data))
    batch.same("in place", lambda m: np.add(m.array(data), 1, out=m.zeros((3, 5))))
    batch.same("reduce", lambda m: np.add.reduce(m.array(data), axis=0))
    batch.same("clip", lambda m: np.clip(m.array(data), -1, 1))
    batch.check()


def test_ufunc_methods_are_there(xp: ModuleType) -> None:
    data = ordinary(18, (4, 6), "int64")
    batch = Batch(xp)
    batch.same("reduce", lambda m: m.add.reduce(m.array(data)))
    batch.same("reduce all", lambda m: m.maximum.reduce(m.array(data), axis=None))
    batch.same("multiply.reduce", lambda m: m.multiply.reduce(m.array(data), axis=1))
    batch.same("logical_and.reduce", lambda m: m.logical_and.reduce(m.array(data), axis=-1))
    batch.same("bitwise_xor.reduce", lambda m: m.bitwise_xor.reduce(m.array(data), axis=0))
    batch.same("subtract.reduce", lambda m: m.subtract.reduce(m.array(data), axis=0))
    batch.same("accumulate", lambda m: m.add.accumulate(m.array(data), axis=1))
    batch.same("outer", lambda m: m.multiply.outer(m.array(data[0]), m.array(data[1])))
    batch.same("reduceat", lambda m: m.add.reduceat(m.array(data[0]), [0, 2, 4]))
    for attribute in ("nin", "nout", "nargs", "identity", "__name__"):
        assert getattr(xp.add, attribute) == getattr(np.add, attribute)
    batch.check()


def test_a_truth_value_is_the_same_in_vectors_and_behind_them(xp: ModuleType) -> None:
    for length in (1, 3, 40):
        for dtype in ("bool", "int8", "uint16", "int64"):
            a = np.arange(length).astype(dtype)
            yes = xp.asarray(np.ones(length, bool))
            assert_bitwise(xp.isfinite(xp.asarray(a)) == yes, np.ones(length, bool))
            assert_bitwise(xp.isnan(xp.asarray(a)) != yes, np.ones(length, bool))
    assert_bitwise(xp.ones((3, 0), bool).all(1) == xp.ones(3, bool), np.ones(3, bool))


@pytest.mark.clfuse_only
@pytest.mark.parametrize("vector_bytes", [4, 8, 16, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_the_numbers_of_elements_have_numpys_values(
    xp: ModuleType, dtype: str, vector_bytes: int
) -> None:
    """A compiler that knows the base is no negative number: LLVM 15 took more than its sign."""
    expected = np.arange(30, dtype=dtype) ** np.arange(30, dtype=dtype)
    with xp.config.override(schedule="gpu", vector_bytes=vector_bytes):
        x = xp.arange(30, dtype=dtype)
        np.testing.assert_allclose(np.asarray(xp.power(x, x)), expected, rtol=1e-6)


@pytest.mark.parametrize(("size", "dtype"), [
    *[(1, dtype) for dtype in ("int8", "int32", "int64", "uint32", "uint64")],
    *itertools.product((2, 7, 33), ("int32", "uint64"))])
def test_complements_of_what_is_limited_are_numpys(xp: ModuleType, size: int, dtype: str) -> None:
    """Intel's compiler lost a sign of a single one."""
    given = (np.arange(size) * 7 % 11 + 5).astype(dtype)
    low, high = np.array(1, dtype), np.array(3, dtype)
    for function in (
        lambda m, x: ~m.minimum(x, high),
        lambda m, x: m.maximum(~x, low),
        lambda m, x: m.minimum(m.maximum(~x, low), high),
        lambda m, x: m.maximum(~m.clip(x, low, high), low),
        lambda m, x: m.where(x < high, ~x, ~high),
        lambda m, x: ~m.clip(x, low, high).max(keepdims=True),
    ):
        np.testing.assert_array_equal(function(xp, xp.asarray(given)), function(np, given))


# -- read-only arrays -----------------------------------------------------------------------------


def _frozen(m: Any, dtype: str) -> Any:
    x = m.zeros(3, dtype)
    x.flags.writeable = False
    return x


def _frozen_slice(m: Any, dtype: str) -> Any:
    x = m.zeros(5, dtype)
    x.flags.writeable = False
    return x[1:4]


def _stretched(m: Any, dtype: str) -> Any:
    return m.broadcast_to(m.zeros(1, dtype), (3,))


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "c8", "f2", "bool"])
@pytest.mark.parametrize("name", ["add", "maximum", "divmod", "negative"])
@pytest.mark.parametrize("made", [_frozen, _frozen_slice, _stretched])
def test_read_only_arrays_are_written_as_numpy_does(
    xp: ModuleType, made: Any, name: str, dtype: str
) -> None:
    """Before 2.5 NumPy writes to them; from there on it says that they are read-only."""
    operands = () if name == "negative" else (2,)

    def outcome(m: Any) -> Any:
        x = made(m, dtype)
        try:
            getattr(m, name).at(x, [0, 1, 1], *operands)
        except (TypeError, ValueError) as error:
            return type(error), str(error)
        assert not x.flags.writeable
        return np.asarray(x).tolist()

    assert outcome(xp) == outcome(np)


@pytest.mark.parametrize("made", [
    lambda m: m.arange(5.0), lambda m: m.arange(10)[::2], lambda m: m.arange(10.0).reshape(5, 2),
    lambda m: m.broadcast_to(m.arange(3), (5, 3)), lambda m: m.broadcast_to(m.arange(1.0), (5,)),
], ids=["vector", "strided", "matrix", "rows", "stretched"])  # fmt: skip
@pytest.mark.parametrize("index", [
    [0, 1], range(2), np.array([True, True, False, False, False]), slice(0, 2), 1, ..., [[0, 1]],
    (np.array([0, 1]),), (np.array([0]), np.array([0])), np.array([], int),
], ids=str)  # fmt: skip
def test_indices_say_whether_a_read_only_array_is_written(
    xp: ModuleType, made: Any, index: Any
) -> None:
    def outcome(m: Any) -> Any:
        x = made(m)
        x.flags.writeable = False
        try:
            m.negative.at(x, index)
        except (IndexError, ValueError) as error:
            return type(error), np.asarray(x).tolist()
        return np.asarray(x).tolist()

    assert outcome(xp) == outcome(np)


def test_read_only_arrays_have_the_sums_that_were_added(xp: ModuleType) -> None:
    x = _frozen(xp, "f4")
    if AT_READ_ONLY:
        with pytest.raises(ValueError, match="read-only"):
            xp.add.at(x, [0, 1, 1], 2)
        assert x.tolist() == [0, 0, 0]
    else:
        xp.add.at(x, [0, 1, 1], 2)
        assert x.tolist() == [2, 4, 0]
    for write in (xp.put, xp.place):
        with pytest.raises(ValueError, match="read-only"):
            write(x, [1, 0, 1], 5)

"""The op tables: each ufunc and reduction as OpenCL C.

`UFUNCS` and `REDUCTIONS` are keyed by NumPy's own names.  A new ufunc is a new row in `arithmetic`,
`comparison`, `internal` or `transcendental`; `row` says what its expression may use.

Examples
--------
>>> row = UFUNCS["maximum"]
>>> row.expressions[row.key(["float32", "float32"])]
'({0} != {0} || {0} >= {1} ? {0} : {1})'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from . import arithmetic, comparison, internal, transcendental
from .row import FaultyBuiltins, Reduction, Ufunc, class_of

__all__ = [
    "FAULTY_BUILTINS",
    "FOLDS",
    "REDUCTIONS",
    "SELECTED",
    "UFUNCS",
    "FaultyBuiltins",
    "Reduction",
    "Ufunc",
    "class_of",
]


def _by_name(*tables: tuple[Ufunc, ...]) -> Mapping[str, Ufunc]:
    named: dict[str, Ufunc] = {}
    for row in (row for table in tables for row in table):
        if row.name in named:
            raise AssertionError(f"two rows are called {row.name}")
        named[row.name] = row
    return MappingProxyType(named)


_ZERO: Final = dict.fromkeys(("bool", "signed", "unsigned", "float", "complex"), "({T})(0)")
_ONE: Final = {**_ZERO, **dict.fromkeys(("signed", "unsigned", "float"), "({T})(1)")}
_ALL_TRUE: Final = "({T})(-1)"  # a mask that is set at every width

_LEAST: Final = {
    "bool": "({T})(0)",
    "unsigned": "({T})(0)",
    "int8": "({T})(CHAR_MIN)", "int16": "({T})(SHRT_MIN)",
    "int32": "({T})(INT_MIN)", "int64": "({T})(LONG_MIN)",
    "float": "({T})(-INFINITY)", "complex": "({T})(-INFINITY, -INFINITY)",
}
_GREATEST: Final = {
    "bool": _ALL_TRUE,
    "unsigned": "({T})(~({T})(0))",
    "int8": "({T})(CHAR_MAX)", "int16": "({T})(SHRT_MAX)",
    "int32": "({T})(INT_MAX)", "int64": "({T})(LONG_MAX)",
    "float": "({T})(INFINITY)", "complex": "({T})(INFINITY, INFINITY)",
}
# fmax and fmin drop NaN, so NaN is what changes nothing; an infinity would hide an axis of NaN.
_NAN: Final = {"float": "({T})(NAN)", "complex": "({T})(NAN, NAN)"}

_TRUTH_CLASSES: Final = ("bool", "signed", "unsigned", "float")

REDUCTIONS: Final[Mapping[str, Reduction]] = MappingProxyType({
    row.name: row
    for row in (
        Reduction("add", _ZERO, pairwise=True),
        Reduction("multiply", {**_ONE, "bool": _ALL_TRUE, "complex": "({T})(1, 0)"}),
        Reduction("maximum", _LEAST, neutral=False),
        Reduction("minimum", _GREATEST, neutral=False),
        Reduction("fmax", {**_LEAST, **_NAN}, neutral=False),
        Reduction("fmin", {**_GREATEST, **_NAN}, neutral=False),
        Reduction("logical_and", dict.fromkeys(_TRUTH_CLASSES, _ALL_TRUE)),
        Reduction("logical_or", dict.fromkeys(_TRUTH_CLASSES, "({T})(0)")),
        Reduction("logical_xor", dict.fromkeys(_TRUTH_CLASSES, "({T})(0)")),
        Reduction("bitwise_and", dict.fromkeys(("bool", "signed", "unsigned"), _ALL_TRUE)),
        Reduction("bitwise_or", dict.fromkeys(("bool", "signed", "unsigned"), "({T})(0)")),
        Reduction("bitwise_xor", dict.fromkeys(("bool", "signed", "unsigned"), "({T})(0)")),
    )
})
"""Name -> how an axis is folded by that ufunc."""

FOLDS: Final[Mapping[str, Reduction]] = MappingProxyType({
    **REDUCTIONS,
    "multiply_scaled": Reduction("multiply_scaled", {"complex": "({T})(1, 0)"}),
    "multiply_regrouped": Reduction("multiply_regrouped", {"complex": "({T})(1, 0)"}),
})
"""As `REDUCTIONS`, and those that no program says: `schedule.rewrite.scaled_scans` makes them."""


def _selected(key: str, identity: str) -> str:
    """Operand 1 where the mask, operand 0, is true; elsewhere a fold's identity."""
    if key == "bool":  # masks, whose lanes are as large as those of what they came with
        return "(!{0} || {1})" if identity == _ALL_TRUE else "({0} && {1})"
    return f"({{0}} ? {{1}} : {identity})"


SELECTED: Final = _by_name(
    tuple(
        [
            Ufunc(
                f"selected_{row.name}",
                2,
                {
                    key: _selected(key, text)
                    for key, text in row.identity.items()
                    if key != "complex"
                },
                typed_by=1,
                output="same",
            )
            for row in REDUCTIONS.values()
        ]
    )
)
"""Name -> row of what a fold gets where a mask (operand 0) selects: operand 1, elsewhere its
identity; of real numbers. `schedule.rewrite.masked_folds` makes them of what no program says."""

_REGROUPED: Final = tuple(
    [replace(row, name="multiply_regrouped", output="same")
     for row in arithmetic.ROWS if row.name == "multiply"]
)  # fmt: skip
"""Products whose order is free, where NumPy's `multiply.accumulate` has one."""

UFUNCS: Final = _by_name(
    arithmetic.ROWS, _REGROUPED, comparison.ROWS, transcendental.ROWS, internal.ROWS,
    tuple(SELECTED.values()),
)
"""Name -> row."""

_POCL: Final = "^Portable Computing Language$"
_NVIDIA: Final = "^NVIDIA CUDA$"
_INTEL: Final = r"^Intel\(R\) OpenCL$"
_FLOATS: Final = ("float16", "float32", "float64")
_DOUBLE_EXP: Final = ("exp", "float64")
_INTEGERS: Final = tuple([f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)])


def _of_numbers(kept: str, usual: str) -> str:
    """An expression for single numbers of 64 bits, and the usual one for vectors of them."""
    return f"sizeof({{T}}) > 8 ? {usual} : {kept}"


def _kept_orders(less: str) -> tuple[tuple[str, str, str], ...]:
    """Row, expression of numbers, usual expression; `less` says whether {0} is less than {1}."""
    greater = f"({less} ? {{1}} : {{0}})"
    smaller = f"({less} ? {{0}} : {{1}})"
    clip = smaller.replace("{1}", "{2}").replace("{0}", greater)
    return (
        *[(name, greater, "max({0}, {1})") for name in ("maximum", "fmax")],
        *[(name, smaller, "min({0}, {1})") for name in ("minimum", "fmin")],
        ("clip", clip, "min(max({0}, {1}), {2})"),
    )


_KEPT_ORDERS: Final = {
    "int64": _kept_orders("sub_sat({0}, {1}) < 0"),
    "uint64": _kept_orders("sub_sat(as_{I}({0}) ^ LONG_MIN, as_{I}({1}) ^ LONG_MIN) < 0"),
}
"""Orders that a compiler does not know for `max` and `min`: a difference has the sign of the exact
one where it saturates."""

FAULTY_BUILTINS: Final = (
    FaultyBuiltins(
        _POCL,
        {
            (name, dtype): f"ranged_{name}_{{T}}({{0}})"
            for name in ("sin", "cos") for dtype in _FLOATS
        },
        "PoCL 3.1 with SLEEF: a vector of float with one lane past 2**23, or infinite, gets wrong"
        " sines and cosines in its small lanes (sin(-0.00082) = -0.0132); and 1.5 ns an element"
        " where ours take 0.7 (float16), 2.9 and 1.4 (double8)",
    ),
    FaultyBuiltins(
        _NVIDIA,
        {
            **{("power", dtype): "finite_pow_{T}({0}, {1})" for dtype in _FLOATS},
            ("float_power", "float64"): "finite_pow_{T}({0}, {1})",
        },
        "NVIDIA's compiler (580.159): pow(-inf, -inf) of what it knows to be infinite is inf,"
        " not 0; of numbers that it does not know the builtin is right",
    ),
    FaultyBuiltins(
        _INTEL,
        {
            (name, dtype): f"ranged_{name}_{{T}}({{0}})"
            for name in ("sin", "cos") for dtype in _FLOATS
        },
        "Intel's runtime 2026.2: right, but 0.5 and 1.15 ns an element where ours take 0.33 and"
        " 0.95; both of one angle 0.42 and 1.55 (0.37, 1.05)",
    ),
    FaultyBuiltins(
        _INTEL,
        {("invert", dtype): "kept_invert_{T}({0})" for dtype in _INTEGERS},
        "Intel's runtime 2026.2 for AVX-512: ~min(x, y) of two numbers (not of vectors) gives 6 for"
        " 5 and 3, and max(~min(max(x, a), b), c) is an illegal instruction",
    ),
    FaultyBuiltins(
        _INTEL,
        {
            (name, dtype): _of_numbers(kept, usual)
            for dtype, orders in _KEPT_ORDERS.items() for name, kept, usual in orders
        },
        "Intel's runtime 2026.2 for AVX-512: where a number of 64 bits is an index and takes part"
        " in a maximum or minimum (not of vectors), as in max(a - i - x[i], b), the compiler takes"
        " any register for the index: wrong values, or a crash. Here it sees no maximum",
    ),
    FaultyBuiltins(
        _POCL,
        {("tan", dtype): "vector_tan_{T}({0})" for dtype in _FLOATS},
        "PoCL 3.1 with SLEEF: as sin and cos; and 2.2 and 3.6 ns an element where ours take 0.4 and"
        " 1.2",
    ),
    FaultyBuiltins(
        _POCL,
        {("cbrt", dtype): "vector_cbrt_{T}({0})" for dtype in _FLOATS},
        "PoCL 3.1 with SLEEF: right, but 1.85 and 3.6 ns an element where ours take 0.45 and 1.3",
    ),
    FaultyBuiltins(
        _INTEL,
        {(name, "float64"): "signed_pow_{T}({0}, {1})" for name in ("power", "float_power")},
        "Intel's runtime 2026.2: right, but 31 ns an element where one of a vector is negative, and"
        " 1.9 where none is",
    ),
    FaultyBuiltins(
        _INTEL,
        {("tanh", "float64"): "vector_tanh_{T}({0})"},
        "Intel's runtime 2026.2: right, but 2.4 ns an element where ours takes 1.3; of cbrt and of"
        " tanh of floats ours is hardly faster",
    ),
    FaultyBuiltins(
        _POCL,
        {
            **{("power", dtype): "vector_pow_{T}({0}, {1})" for dtype in _FLOATS},
            ("float_power", "float64"): "vector_pow_{T}({0}, {1})",
        },
        "PoCL 3.1 with SLEEF: pow of double8 is wrong for a subnormal base (pow(5e-324, 0.25) ="
        " 8e-77, not 1.5e-81) and in lane 3 beside an infinite or NaN base; and 22 ns an element"
        " where ours take 3.3, 8.7 and 1.6 for float16",
    ),
    FaultyBuiltins(
        _POCL,
        {
            (name, dtype): f"vector_{name}_{{T}}({{0}})"
            for name in ("ceil", "floor", "rint", "trunc") for dtype in _FLOATS
        },
        "PoCL 3.1: right, but a function call of 3 to 16 ns a vector; one instruction takes 0.3",
    ),
    FaultyBuiltins(
        _POCL,
        {("hypot", dtype): "vector_hypot_{T}({0}, {1})" for dtype in _FLOATS},
        "PoCL 3.1 with SLEEF: right, but 1.0 and 2.5 ns an element where ours take 0.5 and 1.2",
    ),
    FaultyBuiltins(
        _POCL,
        {
            **{
                (name, dtype): f"vector_{name}_{{T}}({{0}})"
                for name in ("expm1", "sinh", "cosh", "tanh") for dtype in _FLOATS
            },
            _DOUBLE_EXP: "vector_exp_{T}({0})",
            # Left alone but for NaN that the compiler knows of (0 / 0), of which it makes anything.
            **{
                (name, dtype): f"({{0}} != {{0}} ? {{0}} : {name}({{0}}))"
                for name in ("exp", "exp2") for dtype in _FLOATS if (name, dtype) != _DOUBLE_EXP
            },
        },
        "PoCL 3.1 with SLEEF: right, but sinh took 1.7 and 4.6 ns an element where ours takes 0.4"
        " and 1.0, cosh 1.8 and 4.5 (0.3, 0.9), expm1 1.3 and 3.3 (0.4, 0.9), tanh 0.7 and 2.4"
        " (0.4, 1.2), exp of double 1.14 (0.96)",
    ),
    FaultyBuiltins(
        _POCL,
        {
            (name, dtype): f"vector_{name}_{{T}}({{0}})"
            for name in ("log", "log2", "log10", "log1p", "arcsinh", "arccosh", "arctanh")
            for dtype in _FLOATS
        },
        "PoCL 3.1 with SLEEF: right, but log2 took 1.9 and 2.4 ns an element where ours takes 0.45"
        " and 1.1, log10 0.65 and 1.25 (0.45, 1.1), log1p 0.85 and 2.05 (0.45, 1.05), log 0.55 and"
        " 1.23 (0.5, 1.1), arcsinh and arccosh 1.4 and 6.8 (0.55, 1.5), arctanh 1.3 and 3.3 (0.45,"
        " 1.2)",
    ),
    FaultyBuiltins(
        _POCL,
        {
            **{
                (name, dtype): f"vector_{name}_{{T}}({{0}})"
                for name in ("arcsin", "arccos", "arctan") for dtype in _FLOATS
            },
            **{("arctan2", dtype): "vector_arctan2_{T}({0}, {1})" for dtype in _FLOATS},
        },
        "PoCL 3.1 with SLEEF: right, but arccos took 1.1 and 2.1 ns an element where ours takes 0.4"
        " and 1.0, arcsin 0.9 and 1.9 (0.35, 0.9), arctan 1.0 and 2.4 (0.45, 1.1), arctan2 1.6 and"
        " 3.3 (0.7, 1.6)",
    ),
)
"""What replaces the expressions of which rows, on which platform: quirks of `target.traits`."""

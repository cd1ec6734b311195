"""Op-table rows of the functions whose results are rounded: exp, log, powers, angles.

Every row promises 4 ulp.  Most rows are a builtin of OpenCL C.  Some builtins are less exact on
PoCL 3.1 or on Intel's runtime 2026.2, or much slower there than they need be: FAULTY_BUILTINS has
what replaces them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .row import Ufunc

COMPLEX: Final = ("complex.cl",)
FLOAT: Final = ("lanes.cl", "float.cl")
INTEGER: Final = ("lanes.cl", "integer.cl")
ELEMENTARY: Final = ("lanes.cl", "elementary.cl")
EXPONENTIAL: Final = ("exponential.cl",)
LOGARITHM: Final = ("logarithm.cl",)
ANGLES: Final = ("angles.cl",)

# Products of builtins, of which Intel's sin and cos alone are 3.2 ulp off, and sums of several:
# 5.05 at worst (arccos on Intel's runtime, of 100,000 numbers; guide/accuracy.md).
COMPLEX_ULP: Final = 6

# Two ushorts multiply as ints at width 1, where 65535 * 65535 overflows: they are widened.
_SHORT_POWER: Final = "convert_{T}(power_uint{W}(convert_uint{W}({0}), convert_uint{W}({1})))"

# What FAULTY_BUILTINS puts in the place of a builtin; defined for every device, used on few.
_CIRCULAR: Final = "DEFINE_CIRCULAR({}, {{T}}, {{I}}, int{{W}}, {{S}})"
_POW_FLOAT: Final = "DEFINE_POW_FLOAT({T}, {I}, double{W}, long{W})"
_POW_DOUBLE: Final = "DEFINE_POW_DOUBLE({T}, {I}, int{W})"
_FINITE_POW: Final = "DEFINE_FINITE_POW({T}, {I})"
_SIGNED_POW: Final = "DEFINE_SIGNED_POW({T}, {I})"

_LOG: Final = ("DEFINE_COMPLEX_LOG({R})",)
_EXP: Final = ("DEFINE_COMPLEX_EXP({R})",)
_INTERLEAVED: Final = "DEFINE_INTERLEAVED({T}, {V})"
_CIRCULAR_OF_PARTS: Final = (
    *(f"DEFINE_CIRCULAR({name}, {{V}}, {{I}}, int{{W}}, {{R}})" for name in ("sin", "cos")),
    _INTERLEAVED,
)
_EXPS: Final = (*_CIRCULAR_OF_PARTS, "DEFINE_COMPLEXES_EXP({T}, {V}, {I}, {R})")
_SINH: Final = (*_EXP, "DEFINE_COMPLEX_SINH_COSH({R})")
_TANH: Final = ("DEFINE_COMPLEX_TANH({R})",)
_INVERSES: Final = (*_LOG, "DEFINE_COMPLEX_INVERSES({R})")
_ARCTANH: Final = ("DEFINE_COMPLEX_ARCTANH({R})",)
_POWER: Final = (*_LOG, *_EXP, "DEFINE_COMPLEX_DIVIDE({R})", "DEFINE_COMPLEX_POWER({R})")


def rounded(
    name: str,
    weight: float,
    defines: tuple[str, ...] = (),
    builtin: str = "",
    several: tuple[str, ...] = (),
) -> Ufunc:
    """Make the row of a function of one operand: a builtin for floats, ours for complex numbers.

    `several` are the definitions for vectors of complex numbers.
    """
    expressions = {"float": f"{builtin or name}({{0}})"}
    define = {}
    if defines:
        expressions["complex"] = f"complex_{name}_{{R}}({{0}})"
        define["complex"] = "\n".join(defines)
    if several:
        expressions["complexes"] = f"complexes_{name}_{{T}}({{0}})"
        define["complexes"] = "\n".join(several)
    libraries = (*ELEMENTARY, *COMPLEX) if several else COMPLEX
    return Ufunc(name, 1, expressions, define=define, libraries=libraries if defines else (),
                 weight=weight, ulp=4, complex_ulp=COMPLEX_ULP, each_number=bool(several))


def replaceable(row: Ufunc, libraries: tuple[str, ...]) -> Ufunc:
    """Add to a row the definition of ``vector_<name>_<T>``, for FAULTY_BUILTINS to use."""
    define = f"DEFINE_VECTOR_{row.name.upper()}({{T}}, {{I}}, int{{W}}, {{S}})"
    return replace(row, define={**row.define, "float": define},
                               libraries=(*row.libraries, *libraries))


def circular(
    name: str, weight: float, defines: tuple[str, ...], replacement: str, several: tuple[str, ...]
) -> Ufunc:
    """Make the row of sin, cos or tan; `replacement` defines what stands in for the builtin."""
    row = rounded(name, weight, defines, several=several)
    return replace(row, define={**row.define, "float": replacement})


def of_several(macro: str, name: str, *arguments: str) -> tuple[str, ...]:
    """Return the definitions of a function in complexes.cl."""
    known = ", ".join([name, "{T}, {V}, {I}, {R}", *arguments])
    return (*_CIRCULAR_OF_PARTS, f"DEFINE_COMPLEXES_{macro}({known})")


def of_log(name: str, factor: str) -> tuple[str, ...]:
    """Return the definitions of a logarithm in complexes.cl."""
    return (_INTERLEAVED, f"DEFINE_COMPLEXES_LOG({name}, {{T}}, {{V}}, {{I}}, {{R}}, {factor})")


ROWS: Final = (
    replaceable(rounded("exp", 8, _EXP, several=_EXPS), EXPONENTIAL),
    rounded("exp2", 8, _EXP),
    replaceable(rounded("expm1", 10, _EXP), EXPONENTIAL),
    replaceable(rounded("log", 8, _LOG, several=of_log("log", "1")), LOGARITHM),
    replaceable(rounded("log2", 8, _LOG, several=of_log("log2", "LOG2E_{R}")), LOGARITHM),
    replaceable(rounded("log10", 8, _LOG, several=of_log("log10", "LOG10E_{R}")), LOGARITHM),
    replaceable(rounded("log1p", 10, _LOG), LOGARITHM),
    circular("sin", 10, _SINH, _CIRCULAR.format("sin"),
             of_several("CIRCULAR", "sin", "z.odd", "z.even", "cosh(x) * sine",
                        "sinh(x) * cosine")),
    circular("cos", 10, _SINH, _CIRCULAR.format("cos"),
             of_several("CIRCULAR", "cos", "-z.odd", "z.even", "cosh(x) * cosine",
                        "sinh(x) * sine")),
    circular("tan", 14, _TANH, "DEFINE_VECTOR_TAN({T}, {I}, int{W}, {S})",
             of_several("TANGENT", "tan", "z.odd", "z.even", "across", "along")),
    replaceable(rounded("arcsin", 12, _INVERSES, "asin"), ANGLES),
    replaceable(rounded("arccos", 12, _INVERSES, "acos"), ANGLES),
    replaceable(rounded("arctan", 12, _ARCTANH, "atan"), ANGLES),
    replaceable(rounded("sinh", 14, _SINH, several=of_several(
        "CIRCULAR", "sinh", "z.even", "z.odd", "sinh(x) * cosine", "cosh(x) * sine")), EXPONENTIAL),
    replaceable(rounded("cosh", 14, _SINH, several=of_several(
        "CIRCULAR", "cosh", "z.even", "z.odd", "cosh(x) * cosine", "sinh(x) * sine")), EXPONENTIAL),
    replaceable(rounded("tanh", 14, _TANH, several=of_several(
        "TANGENT", "tanh", "z.even", "z.odd", "along", "across")), EXPONENTIAL),
    replaceable(rounded("arcsinh", 16, _INVERSES, "asinh"), LOGARITHM),
    replaceable(rounded("arccosh", 16, _INVERSES, "acosh"), LOGARITHM),
    replaceable(rounded("arctanh", 14, _ARCTANH, "atanh"), LOGARITHM),
    replaceable(rounded("cbrt", 14), ELEMENTARY),
    Ufunc("power", 2, {
        **dict.fromkeys(("signed", "unsigned"), "power_{T}({0}, {1})"),
        **dict.fromkeys(("int16", "uint16"), _SHORT_POWER),
        "float": "pow({0}, {1})", "float64": "pow({0}, {1})",
        "complex": "complex_power_{R}({0}, {1})",
    }, define={
        "float": f"{_POW_FLOAT}\n{_FINITE_POW}",
        "float64": f"{_POW_DOUBLE}\n{_FINITE_POW}\n{_SIGNED_POW}",
        **dict.fromkeys(("signed", "unsigned"), "DEFINE_POWER({T}, {I}, {U})"),
        **dict.fromkeys(("int16", "uint16"), "DEFINE_POWER(uint{W}, int{W}, uint{W})"),
        "complex": "\n".join(_POWER),
    }, libraries=INTEGER + COMPLEX + ELEMENTARY, weight=20, ulp=4,
        complex_ulp=COMPLEX_ULP),
    Ufunc("float_power", 2, {
        "float64": "pow({0}, {1})", "complex128": "complex_power_{R}({0}, {1})",
    }, define={
        "float64": f"{_POW_DOUBLE}\n{_FINITE_POW}\n{_SIGNED_POW}", "complex128": "\n".join(_POWER),
    }, libraries=COMPLEX + ELEMENTARY, weight=20, ulp=4, complex_ulp=COMPLEX_ULP),
    replaceable(Ufunc("arctan2", 2, {"float": "atan2({0}, {1})"}, weight=16, ulp=4), ANGLES),
    Ufunc("hypot", 2, {"float": "hypot({0}, {1})"},
          define={"float": "DEFINE_VECTOR_HYPOT({T}, {S})"}, libraries=ELEMENTARY, weight=10,
          ulp=4),
    # NumPy's formula; where the sum cancels, the error is of the size of the larger operand's ulp.
    Ufunc("logaddexp", 2, dict.fromkeys(("float", "float64"), "logaddexp_{T}({0}, {1})"),
          define={"float": "DEFINE_LOGADDEXP({T}, M_LN2_F)",
                  "float64": "DEFINE_LOGADDEXP({T}, M_LN2)"}, libraries=FLOAT, weight=20, ulp=4),
    Ufunc("logaddexp2", 2, dict.fromkeys(("float", "float64"), "logaddexp2_{T}({0}, {1})"),
          define={"float": "DEFINE_LOGADDEXP2({T}, M_LOG2E_F)",
                  "float64": "DEFINE_LOGADDEXP2({T}, M_LOG2E)"}, libraries=FLOAT, weight=22, ulp=4),
)

"""Op-table rows of arithmetic: integers wrap around, and division goes by NumPy's rules.

Signed integers are added and multiplied as unsigned ones, because a compiler may take signed
overflow for impossible and NumPy wraps.
"""

from __future__ import annotations

from typing import Final

from clfuse.numpy_releases import HALVES_STEP_TO_ZEROS

from .row import Ufunc

COMPLEX: Final = ("complex.cl",)
INTEGER: Final = ("lanes.cl", "integer.cl")
FLOAT: Final = ("lanes.cl", "float.cl")
ELEMENTARY: Final = ("lanes.cl", "elementary.cl")
HALF: Final = ("half.cl",)


def wrapping(operator: str) -> str:
    """Return the expression of a signed operation that wraps."""
    return f"as_{{T}}(({{U}})(as_{{U}}({{0}}) {operator} as_{{U}}({{1}})))"


# Two ushorts multiply as ints at width 1, where 65535 * 65535 overflows.
_SHORT_PRODUCT: Final = "convert_{T}(convert_uint{W}(as_{U}({0})) * convert_uint{W}(as_{U}({1})))"
_SHORT_SQUARE: Final = _SHORT_PRODUCT.replace("{1}", "{0}")


def both(text: str) -> dict[str, str]:
    """Give the signed and the unsigned class one expression."""
    return {"signed": text, "unsigned": text}


def any_complex(text: str) -> dict[str, str]:
    """Give single complex numbers and vectors of them one expression."""
    return {"complex": text, "complexes": text}


def of_complex(name: str) -> dict[str, str]:
    """Return the `define` texts of a function in complex.cl and in complexes.cl."""
    return {
        "complex": f"DEFINE_COMPLEX_{name}({{R}})",
        "complexes": f"DEFINE_INTERLEAVED({{T}}, {{V}})\n"
                     f"DEFINE_COMPLEXES_{name}({{T}}, {{V}}, {{I}}, {{R}})",
    }


_COMPLEX_PRODUCT: Final = {
    "complex": "DEFINE_COMPLEX_MULTIPLY({R})",
    "complexes": "DEFINE_COMPLEXES_MULTIPLY({T}, {W})",
}
_ROUNDING: Final = {"float": "DEFINE_VECTOR_ROUNDING({T})"}  # used where FAULTY_BUILTINS says so


def rounding(name: str) -> Ufunc:
    """Make the row of floor, ceil or trunc, which leave integers alone."""
    return Ufunc(name, 1, {
        "bool": "{0}", **both("{0}"), "float": f"{name}({{0}})",
    }, define=_ROUNDING, libraries=ELEMENTARY)


def integer_function(name: str, weight: float) -> Ufunc:
    """Make the row of a function of two integers that one macro of integer.cl defines."""
    macro = f"DEFINE_{name.upper()}({{T}}, {{I}}, {{U}}, {{S}})"
    return Ufunc(name, 2, both(f"{name}_{{T}}({{0}}, {{1}})"), define=both(macro),
                 libraries=INTEGER, weight=weight)


def division(name: str, weight: float) -> Ufunc:
    """Make the row of floor_divide, remainder or fmod."""
    macro, defined = f"DEFINE_{name.upper()}", f"{name}_{{T}}"
    far = f"{name}_far_{{T}}"
    by_floats = f"{macro}_BY_FLOATS({{T}}, {{U}}, {{F}}, {{P}})"
    unsigned = by_floats.replace("DEFINE_FLOOR", "DEFINE_UNSIGNED_FLOOR")
    lanes = {f"int{bits}": by_floats for bits in (8, 16, 32)}
    lanes |= {f"uint{bits}": unsigned for bits in (8, 16, 32)}
    for dtype, kind, test in (
        ("int64", "SIGNED", "IS_FAR"), ("uint64", "UNSIGNED", "IS_UNSIGNED_FAR")
    ):
        lanes[dtype] = (
            f"{macro}_{kind}({far}, {{T}}, {{U}})\n"
            f"DEFINE_LONG_{name.upper()}({defined}, {far}, {{T}}, {{I}}, {{U}}, {{F}}, {test})"
        )
    return Ufunc(
        name, 2,
        dict.fromkeys(("signed", "unsigned", "float"), f"{name}_{{T}}({{0}}, {{1}})"),
        define={
            "signed": f"{macro}_SIGNED({defined}, {{T}}, {{U}})",
            "unsigned": f"{macro}_UNSIGNED({defined}, {{T}}, {{U}})",
            "float": "DEFINE_DIVISION({T}, {I}, {S})",  # one text for the three: they share fmod
        },
        define_lanes=lanes, libraries=(*INTEGER, "quotients.cl", "float.cl"), weight=weight)


def conversion_of_angle(name: str, factor32: str, factor64: str) -> Ufunc:
    """Make the row of a multiplication by a factor that NumPy rounds to the loop's type."""
    return Ufunc(name, 1, {
        "float": f"({{0}} * ({{T}})({factor32}))",
        "float64": f"({{0}} * ({{T}})({factor64}))",
    })


# Past 5000 either way nothing is left to change: a double spans 2098 powers of two.
_SHORT_EXPONENT: Final = "convert_int{W}(clamp({1}, (long{W})(-5000), (long{W})(5000)))"
_LDEXP: Final = {
    **dict.fromkeys(("float16,int32", "float32,int32", "float64,int64"), "ldexp_{T}({0}, {1})"),
    **dict.fromkeys(("float16,int64", "float32,int64"), f"ldexp_{{T}}({{0}}, {_SHORT_EXPONENT})"),
    "float64,int32": "ldexp_{T}({0}, convert_long{W}({1}))",
}

_TO_DEGREES: Final = ("0x1.ca5dcp+5f", "0x1.ca5dc1a63c1f8p+5")
_TO_RADIANS: Final = ("0x1.1df46ap-6f", "0x1.1df46a2529d39p-6")

ROWS: Final = (
    Ufunc("add", 2, {
        "bool": "({0} || {1})", "signed": wrapping("+"), "unsigned": "({T})({0} + {1})",
        "float": "({0} + {1})", **any_complex("({0} + {1})"),
    }),
    Ufunc("subtract", 2, {
        "signed": wrapping("-"), "unsigned": "({T})({0} - {1})",
        "float": "({0} - {1})", **any_complex("({0} - {1})"),
    }),
    Ufunc("multiply", 2, {
        "bool": "({0} && {1})", "signed": wrapping("*"), "unsigned": "({T})({0} * {1})",
        "int16": _SHORT_PRODUCT, "uint16": _SHORT_PRODUCT,
        "float": "({0} * {1})", "complex": "complex_multiply_{R}({0}, {1})",
        "complexes": "complexes_multiply_{T}({0}, {1})",
    }, define=_COMPLEX_PRODUCT, libraries=COMPLEX),
    Ufunc("divide", 2, {
        "float": "({0} / {1})", "complex": "complex_divide_{R}({0}, {1})",
        "complexes": "complexes_divide_{T}({0}, {1})",
    }, define=of_complex("DIVIDE"), libraries=COMPLEX, weight=4),
    division("floor_divide", 16),
    division("remainder", 16),
    division("fmod", 12),
    Ufunc("negative", 1, {
        "signed": "as_{T}(({U})(-as_{U}({0})))", "unsigned": "({T})(-{0})",
        "float": "(-{0})", **any_complex("(-{0})"),
    }),
    Ufunc("positive", 1, {**both("{0}"), "float": "{0}", **any_complex("{0}")}),
    Ufunc("absolute", 1, {
        "bool": "{0}",
        # PoCL's abs is a function call; the least integer stays itself.
        "signed": "({0} < ({T})(0) ? as_{T}(({U})(-as_{U}({0}))) : {0})",
        "unsigned": "{0}", "float": "fabs({0})",
        # The builtin hypot of single numbers is a function call: 35 ns on PoCL, this takes 1.
        "complex": "vector_hypot_{R}({0}.x, {0}.y)",
        "complexes": "vector_hypot_{V}({0}.even, {0}.odd)",
    }, define={
        "complex": "DEFINE_VECTOR_HYPOT({R}, {R})", "complexes": "DEFINE_VECTOR_HYPOT({V}, {R})",
    }, libraries=ELEMENTARY, complex_ulp=4),
    Ufunc("fabs", 1, {"float": "fabs({0})"}),
    Ufunc("sign", 1, {
        "signed": "clamp({0}, ({T})(-1), ({T})(1))",
        "unsigned": "min({0}, ({T})(1))",
        # The builtin sign keeps the sign of zero and loses NaN; NumPy's does the opposite.
        "float": "({0} > ({T})(0) ? ({T})(1) : ({0} < ({T})(0) ? ({T})(-1) : "
                 "({0} == ({T})(0) ? ({T})(0) : {0})))",
        "complex": "complex_sign_{R}({0})",
    }, define={"complex": "DEFINE_COMPLEX_SIGN({R})"}, libraries=COMPLEX, weight=4, complex_ulp=4),
    Ufunc("rint", 1, {"float": "rint({0})", **any_complex("rint({0})")}, define=_ROUNDING,
          libraries=ELEMENTARY),
    rounding("floor"),
    rounding("ceil"),
    rounding("trunc"),
    Ufunc("square", 1, {
        "signed": wrapping("*").replace("{1}", "{0}"), "unsigned": "({T})({0} * {0})",
        "int16": _SHORT_SQUARE, "uint16": _SHORT_SQUARE,
        "float": "({0} * {0})", "complex": "complex_multiply_{R}({0}, {0})",
        "complexes": "complexes_multiply_{T}({0}, {0})",
    }, define=_COMPLEX_PRODUCT, libraries=COMPLEX),
    # Only 1 and -1 have integer reciprocals.  NumPy converts 1.0 / 0 to an integer: undefined in C,
    # and on x86 it gives the least int32 and int64 but 0 in the other types.
    Ufunc("reciprocal", 1, {
        "signed": "({0} == ({T})(1) || {0} == ({T})(-1) ? {0} : ({T})(0))",
        "int32": "({0} == ({T})(1) || {0} == ({T})(-1) ? {0} : "
                 "({0} == ({T})(0) ? ({T})(INT_MIN) : ({T})(0)))",
        "int64": "({0} == ({T})(1) || {0} == ({T})(-1) ? {0} : "
                 "({0} == ({T})(0) ? ({T})(LONG_MIN) : ({T})(0)))",
        "unsigned": "({0} == ({T})(1) ? {0} : ({T})(0))",
        "float": "(({T})(1) / {0})", "complex": "complex_reciprocal_{R}({0})",
        "complexes": "complexes_reciprocal_{T}({0})",
    }, define=of_complex("RECIPROCAL"), libraries=COMPLEX, weight=4),
    Ufunc("conjugate", 1, {
        **both("{0}"), "float": "{0}", "complex": "({T})({0}.x, -{0}.y)",
        "complexes": "({0} * SIGNS_{W}({T}, 1, -1))",
    }),
    integer_function("gcd", 100),
    integer_function("lcm", 120),
    Ufunc("sqrt", 1, {
        "float": "sqrt({0})", "complex": "complex_sqrt_{R}({0})",
        "complexes": "complexes_sqrt_{T}({0})",
    }, define=of_complex("SQRT"), libraries=("lanes.cl", *COMPLEX), weight=4, complex_ulp=4,
        each_number=True),
    conversion_of_angle("degrees", *_TO_DEGREES),
    conversion_of_angle("rad2deg", *_TO_DEGREES),
    conversion_of_angle("radians", *_TO_RADIANS),
    conversion_of_angle("deg2rad", *_TO_RADIANS),
    Ufunc("copysign", 2, {"float": "copysign({0}, {1})"}),
    # Halves are rounded to after the fact, so the next float is not the next half.
    Ufunc("nextafter", 2, {
        "float": "nextafter_{T}({0}, {1})",
        "float16": "({0} == {1} ? {1} : half_nextafter_{T}({0}, {1}))"
        if HALVES_STEP_TO_ZEROS else "half_nextafter_{T}({0}, {1})",
    }, define={
        "float": "DEFINE_NEXTAFTER({T}, {I})", "float16": "DEFINE_HALF_NEXTAFTER({T}, {I})",
    }, libraries=FLOAT + HALF, weight=6),
    Ufunc("spacing", 1, {"float": "spacing_{T}({0})", "float16": "half_spacing_{T}({0})"}, define={
        "float": "DEFINE_SPACING({T}, {I})", "float16": "DEFINE_HALF_SPACING({T}, {I})",
    }, libraries=FLOAT + HALF, weight=4),
    # A half times a power of two is a float without rounding wherever it does not vanish as a half.
    Ufunc("ldexp", 2, _LDEXP, define=dict.fromkeys(_LDEXP, "DEFINE_LDEXP({T}, {I}, {S})"),
          libraries=FLOAT, weight=8),
    Ufunc("heaviside", 2, {
        "float": "({0} == ({T})(0) ? {1} : ({0} != {0} ? {0} : "
                 "({0} < ({T})(0) ? ({T})(0) : ({T})(1))))",
    }),
    Ufunc("clip", 3, {
        "bool": "(({0} || {1}) && {2})",
        **both("min(max({0}, {1}), {2})"),
        # Each step lets the NaN of either side through, as NumPy's.
        "float": "clip_{T}({0}, {1}, {2})", "complex": "complex_clip_{R}({0}, {1}, {2})",
    }, define={"float": "DEFINE_CLIP({T})", "complex": "DEFINE_COMPLEX_CLIP({R})"},
        libraries=FLOAT + COMPLEX),
)

"""Op-table rows that are no ufuncs: parts that NumPy's functions are made of.

No name here is a ufunc's.  `Ufunc.output` says which dtype the result has.
"""

from __future__ import annotations

from typing import Final

from .row import Ufunc

FLOAT: Final = ("lanes.cl", "float.cl")
ELEMENTARY: Final = ("lanes.cl", "elementary.cl")
ROUNDING: Final = {"float": "DEFINE_VECTOR_ROUNDING({T})"}
SCALED: Final = {
    "float32": "DEFINE_SCALED(float, int, uint, 32, 10, 23, 127)",
    "float64": "DEFINE_SCALED(double, long, ulong, 64, 13, 52, 1023)",
}
SCALED_PAIR: Final = {"complex64": SCALED["float32"], "complex128": SCALED["float64"]}
PHILOX: Final = ("philox.cl",)
NORMAL: Final = ("lanes.cl", "normal.cl")

_EVERY_CLASS: Final = ("bool", "signed", "unsigned", "float", "complex")


_FROM_BITS: Final = {
    "uniform": ("DEFINE_UNIFORM_OF_BITS_{output}({{T}}, {kind})", PHILOX, 3),
    "open": ("DEFINE_OPEN_OF_BITS_{output}({{T}}, {kind})", PHILOX, 3),
    "positive": ("DEFINE_POSITIVE_OF_BITS({{T}}, {kind})", PHILOX, 3),
    "normal": ("DEFINE_NORMAL_OF_BITS({kind}, {scalar}, {mask}, {{I}}, {{U}})", NORMAL, 18),
}


def _of_bits(name: str, output: str) -> Ufunc:
    """Make the row ``<name>_of_bits_<output>``: a float from the uint64 whose bits are random."""
    define, libraries, weight = _FROM_BITS[name]
    scalar, mask = {"float64": ("double", "long{W}"), "float32": ("float", "int{W}")}[output]
    kind = f"{scalar}{{W}}"
    text = define.format(output=output, kind=kind, scalar=scalar, mask=mask)
    return Ufunc(f"{name}_of_bits_{output}", 1, {"uint64": f"{name}_of_bits_{kind}({{0}})"},
                 define={"uint64": text}, libraries=libraries, weight=weight, output=output)


_WORDS: Final = "\n".join([
    "DEFINE_PHILOX(philox_bits, {T}, {U}, word0, word1)",
    "DEFINE_PHILOX(philox_more_bits, {T}, {U}, word2, word3)",
])
_OPEN: Final = "DEFINE_OPEN_OF_BITS_{output}({{U}}, {kind})"
_LOGS: Final = "\n".join([
    f"DEFINE_VECTOR_{name}({{kind}}, {{mask}}, int{{{{W}}}}, {{scalar}})"
    for name in ("LOG", "LOG1P", "EXP", "EXPM1")
])
_ANGLES: Final = "\n".join([
    f"DEFINE_CIRCULAR({name}, {{kind}}, {{mask}}, int{{{{W}}}}, {{scalar}})"
    for name in ("sin", "cos")
])
REJECTION: Final = (
    "lanes.cl", "philox.cl", "normal.cl", "elementary.cl", "logarithm.cl", "exponential.cl",
    "rejection.cl",
)


def _drawn(name: str, count: int, weight: float, output: str = "float64") -> Ufunc:
    """Make the row of what is drawn until it is accepted: of the element's number in its stream, of
    key and stream (int64), and of parameters of the result's dtype."""
    scalar, mask = {"float64": ("double", "long{W}"), "float32": ("float", "int{W}")}[output]
    kind = f"{scalar}{{W}}"
    inputs = ",".join(["int64"] * 3 + [output] * count)
    operands = ", ".join([f"{{{place}}}" for place in range(3 + count)])
    text = "\n".join([_OPEN, _LOGS])
    macro = f"DEFINE_{name.upper()}_DRAW({kind}, {{T}}, {{U}})"
    if name == "gamma":
        text += "\nDEFINE_POSITIVE_OF_BITS({{U}}, {kind})"
        text += "\nDEFINE_NORMAL_OF_BITS({kind}, {scalar}, {mask}, {{I}}, {{U}})"
        macro = f"DEFINE_GAMMA_DRAW({kind}, {scalar}, {mask}, {{T}}, {{U}})"
    if name == "von_mises":
        text += f"\n{_ANGLES}"
    text = text.format(output=output, kind=kind, scalar=scalar, mask=mask)
    return Ufunc(f"{name}_draw_{output}", 3 + count,
                 {inputs: f"{name}_draw_{kind}({operands})"},
                 define={inputs: f"{_WORDS}\n{text}\n{macro}"}, libraries=REJECTION,
                 weight=weight, output=output)


ROWS: Final = (
    # numpy.where: operand 0 is a mask in lanes of the size of the others' (the renderer's care).
    # At width 1 the condition is an int and the others may be float2, as clang allows.
    Ufunc("where", 3, {
        **dict.fromkeys(_EVERY_CLASS, "({0} ? {1} : {2})"),
        "complexes": "(interleaved_{M}({0}, {0}) ? {1} : {2})",
    }, define={"complexes": "DEFINE_INTERLEAVED({M}, {I})"}, typed_by=1, output="same"),
    # Whether an element of a sorted table (operand 0) comes before a key: NaN comes after numbers.
    # With "or_with" equal ones come before it, too.
    Ufunc("sorts_before", 2, {
        "bool": "(!{0} && {1})", "signed": "({0} < {1})", "unsigned": "({0} < {1})",
        "float": "({0} < {1} || ({1} != {1} && {0} == {0}))",
    }, output="bool"),
    Ufunc("sorts_before_or_with", 2, {
        "bool": "(!{0} || {1})", "signed": "({0} <= {1})", "unsigned": "({0} <= {1})",
        "float": "({0} <= {1} || {1} != {1})",
    }, output="bool"),
    # An index into an axis of operand 1's length: negative ones count from its end.
    Ufunc("wrap_index", 2, {"signed": "({0} < ({T})(0) ? {0} + {1} : {0})"}, output="same"),
    # A sum that starts at 0, as NumPy's do, is never -0.
    Ufunc("from_zero", 1, {"float": "({0} + ({T})(0))"}, output="same"),
    Ufunc("real", 1, {"complex": "{0}.x", "complexes": "{0}.even"}, output="real"),
    Ufunc("imag", 1, {"complex": "{0}.y", "complexes": "{0}.odd"}, output="real"),
    Ufunc("make_complex", 2, {
        "float32": "(float2)({0}, {1})", "float64": "(double2)({0}, {1})",
        "complexes": "interleaved_{T}({0}, {1})",
    }, define={"complexes": "DEFINE_INTERLEAVED({T}, {V})"}, output="complex"),
    # numpy.modf and numpy.frexp, one output each; numpy.divmod is floor_divide and remainder.
    Ufunc("modf_fraction", 1, {
        "float": "copysign("
                 "fabs({0}) == ({T})(INFINITY) ? ({T})(0) : {0} - vector_trunc_{T}({0}), {0})",
    }, define=ROUNDING, libraries=ELEMENTARY, output="same"),
    Ufunc("modf_integer", 1, {"float": "vector_trunc_{T}({0})"}, define=ROUNDING,
          libraries=ELEMENTARY, output="same"),
    Ufunc("frexp_mantissa", 1, {"float": "frexp_mantissa_{T}({0})"},
          define={"float": "DEFINE_FREXP({T}, {I}, {S})"}, libraries=FLOAT, weight=6,
          output="same"),
    Ufunc("frexp_exponent", 1, {"float": "convert_int{W}(frexp_exponent_{T}({0}))"},
          define={"float": "DEFINE_FREXP({T}, {I}, {S})"}, libraries=FLOAT, weight=6,
          output="int32"),
    # Operand 0 is the element's number in its stream, 1 the key and 2 the stream: all int64, whose
    # bits count. Measured: 1.5 to 1.9 times an exp.
    *(Ufunc(name, 3, {"int64": f"{name}_{{T}}({{0}}, {{1}}, {{2}})"},
            define={"int64": f"DEFINE_PHILOX({name}, {{T}}, {{U}}, {words})"},
            libraries=PHILOX, weight=14, output="uint64")
      for name, words in (("philox_bits", "word0, word1"), ("philox_more_bits", "word2, word3"))),
    # What is made of 64 random bits: numbers in [0, 1), in (0, 1), in (0, 1], and normal ones.
    *(_of_bits(name, output) for name in ("uniform", "open", "positive", "normal")
      for output in ("float64", "float32")),
    # Numbers that are drawn until one is accepted; the last operands are the parameters.
    _drawn("gamma", 1, 60), _drawn("gamma", 1, 60, "float32"), _drawn("poisson", 1, 90),
    _drawn("binomial", 2, 110), _drawn("hypergeometric", 3, 250), _drawn("zipf", 1, 130),
    _drawn("von_mises", 1, 80),
    # math's in kernels, and scipy.special's. Builtins within 1 ulp on PoCL 3.1 and 2.7 on Intel's
    # runtime (2026.2), of 2,000 numbers each.
    *(Ufunc(name, 1, {"float": f"{builtin}({{0}})"}, weight=weight, ulp=4, output="same")
      for name, builtin, weight in (
          ("erf", "erf", 14), ("erfc", "erfc", 20), ("gamma", "tgamma", 40),
          ("gammaln", "lgamma", 40),
      )),
    # Operand 0 is an element's place, 1 how many there are; 2 and 3 are random. Where it goes in a
    # random permutation.
    Ufunc("shuffled_place", 4, {"uint32": "shuffled_place_{U}({0}, {1}, {2}, {3})"},
          define={"uint32": "DEFINE_SHUFFLED_PLACE({I}, {U})"}, libraries=("permutation.cl",),
          weight=800, output="same"),
    # A number as digits and exponent, which a complex number holds; `schedule.rewrite.scaled_scans`
    # makes products of them.
    Ufunc("to_scaled", 1, dict.fromkeys(SCALED, "to_scaled_{S}({0})"), define=SCALED,
          libraries=("scaled.cl",), weight=4, output="complex"),
    # The same of the reciprocal, but where operand 1 is 0.
    Ufunc("to_scaled_divisor", 2, {
        f"{name},int64": "to_scaled_divisor_{S}({0}, {1} != 0)" for name in SCALED
    }, define={f"{name},int64": text for name, text in SCALED.items()}, libraries=("scaled.cl",),
          weight=12, output="complex"),
    Ufunc("multiply_scaled", 2, dict.fromkeys(SCALED_PAIR, "scaled_product_{R}({0}, {1})"),
          define=SCALED_PAIR, libraries=("scaled.cl",), weight=4, output="same"),
    Ufunc("from_scaled", 1, {
        "complex64": "from_scaled_{R}({0}, 127, 23)",
        "complex128": "from_scaled_{R}({0}, 1023, 52)",
    }, define=SCALED_PAIR, libraries=("scaled.cl",), weight=4, output="real"),
    Ufunc("from_scaled_halves", 1, {"complex64": "from_scaled_{R}({0}, 15, 10)"},
          define=SCALED_PAIR, libraries=("scaled.cl",), weight=4, output="real"),
    # The upper 64 bits of a product of 128.
    Ufunc("multiply_high", 2, {"uint64": "mul_hi({0}, {1})"}, weight=4, output="same"),
)

"""Op-table rows that are no ufuncs but what NumPy's functions are made of; for `ops`.

None of the names is a ufunc's.  `Ufunc.output` says what dtype comes out.
"""

from __future__ import annotations

from typing import Final

from .op_row import Ufunc

FLOAT: Final = ("float.cl",)
PHILOX: Final = ("philox.cl",)

_DEFINE_PHILOX: Final = "DEFINE_PHILOX({T}, {U})"
_EVERY_CLASS: Final = ("bool", "signed", "unsigned", "float", "complex")


ROWS: Final = (
    # numpy.where: operand 0 is a mask in lanes of the size of the others' (the renderer's care).
    # At width 1 the condition is an int and the others may be float2, as clang allows.
    Ufunc("where", 3, dict.fromkeys(_EVERY_CLASS, "({0} ? {1} : {2})"), typed_by=1, output="same"),
    # An index into an axis of operand 1's length: negative ones count from its end.
    Ufunc("wrap_index", 2, {"signed": "({0} < ({T})(0) ? {0} + {1} : {0})"}, output="same"),
    Ufunc("real", 1, {"complex": "{0}.x"}, output="real"),
    Ufunc("imag", 1, {"complex": "{0}.y"}, output="real"),
    Ufunc("make_complex", 2, {"float32": "(float2)({0}, {1})", "float64": "(double2)({0}, {1})"},
          output="complex"),
    # numpy.modf and numpy.frexp, one output each; numpy.divmod is floor_divide and remainder.
    Ufunc("modf_fraction", 1, {
        "float": "copysign(fabs({0}) == ({T})(INFINITY) ? ({T})(0) : {0} - trunc({0}), {0})",
    }, output="same"),
    Ufunc("modf_integer", 1, {"float": "trunc({0})"}, output="same"),
    Ufunc("frexp_mantissa", 1, {"float": "frexp_mantissa_{T}({0})"},
          define={"float": "DEFINE_FREXP({T}, {I}, {S})"}, libraries=FLOAT, weight=6,
          output="same"),
    Ufunc("frexp_exponent", 1, {"float": "convert_int{W}(frexp_exponent_{T}({0}))"},
          define={"float": "DEFINE_FREXP({T}, {I}, {S})"}, libraries=FLOAT, weight=6,
          output="int32"),
    # Operand 0 is the element's number in its stream, 1 the key and 2 the stream: all int64, whose
    # bits count.  50 operations for every element, most of them multiplications.
    Ufunc("philox_bits64", 3, {"int64": "philox_bits_{T}({0}, {1}, {2})"},
          define={"int64": _DEFINE_PHILOX}, libraries=PHILOX, weight=80, output="uint64"),
    Ufunc("philox_uniform_float64", 3, {"int64": "philox_uniform_float64_{T}({0}, {1}, {2})"},
          define={"int64": f"{_DEFINE_PHILOX}\n"
                           "DEFINE_PHILOX_UNIFORM_FLOAT64({T}, {U}, double{W})"},
          libraries=PHILOX, weight=84, output="float64"),
    Ufunc("philox_uniform_float32", 3, {"int64": "philox_uniform_float32_{T}({0}, {1}, {2})"},
          define={"int64": f"{_DEFINE_PHILOX}\n"
                           "DEFINE_PHILOX_UNIFORM_FLOAT32({T}, {U}, float{W})"},
          libraries=PHILOX, weight=84, output="float32"),
)

"""Op-table rows of the functions that are rounded: exp, log, powers, angles; `ops` collects them.

Every row promises 4 ulp.  Builtins are kept wherever they hold that on PoCL and on Intel's runtime,
since they are the vector code that the runtimes ship; the worst measured is beside each row.
"""

from __future__ import annotations

from typing import Final

from .op_row import Ufunc

COMPLEX: Final = ("complex.cl",)
FLOAT: Final = ("float.cl",)

DEFINE_COMPLEX: Final = "DEFINE_COMPLEX_FUNCTIONS({R})"


def builtin(name: str, weight: float, opencl: str = "", is_complex: bool = True) -> Ufunc:
    """Make the row of a function of one operand that is a builtin of OpenCL C for floats."""
    expressions = {"float": f"{opencl or name}({{0}})"}
    define = {}
    if is_complex:
        expressions["complex"] = f"complex_{name}_{{R}}({{0}})"
        define["complex"] = DEFINE_COMPLEX
    return Ufunc(name, 1, expressions, define=define,
                 libraries=COMPLEX if is_complex else (), weight=weight, ulp=4)


ROWS: Final = (
    builtin("exp", 8),
    builtin("exp2", 8),
    builtin("expm1", 10),
    builtin("log", 8),
    builtin("log2", 8),
    builtin("log10", 8),
    builtin("log1p", 10),
    builtin("sin", 10),
    builtin("cos", 10),
    builtin("tan", 14),
    builtin("arcsin", 12, "asin"),
    builtin("arccos", 12, "acos"),
    builtin("arctan", 12, "atan"),
    builtin("sinh", 14),
    builtin("cosh", 14),
    builtin("tanh", 14),
    builtin("arcsinh", 16, "asinh"),
    builtin("arccosh", 16, "acosh"),
    builtin("arctanh", 14, "atanh"),
    builtin("cbrt", 14, is_complex=False),
    Ufunc("arctan2", 2, {"float": "atan2({0}, {1})"}, weight=16, ulp=4),
    Ufunc("hypot", 2, {"float": "hypot({0}, {1})"}, weight=10, ulp=4),
    # NumPy's formula; where the sum cancels, the error is of the size of the larger operand's ulp.
    Ufunc("logaddexp", 2, dict.fromkeys(("float", "float64"), "logaddexp_{T}({0}, {1})"),
          define={"float": "DEFINE_LOGADDEXP({T}, M_LN2_F)",
                  "float64": "DEFINE_LOGADDEXP({T}, M_LN2)"}, libraries=FLOAT, weight=20, ulp=4),
    Ufunc("logaddexp2", 2, dict.fromkeys(("float", "float64"), "logaddexp2_{T}({0}, {1})"),
          define={"float": "DEFINE_LOGADDEXP2({T}, M_LOG2E_F)",
                  "float64": "DEFINE_LOGADDEXP2({T}, M_LOG2E)"}, libraries=FLOAT, weight=22, ulp=4),
)

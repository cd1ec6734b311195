"""Op-table rows that compare, choose, and combine truth values and bits.

Where NumPy's own result depends on its code path (the sign of ``maximum(-0.0, 0.0)``, the payload
of a NaN), any of its answers is taken.
"""

from __future__ import annotations

from typing import Final

from .row import Ufunc

COMPLEX: Final = ("complex.cl",)
INTEGER: Final = ("lanes.cl", "integer.cl")


def with_vectors(text: str) -> dict[str, str]:
    """The expression of a complex number, and the same for vectors of them."""
    return {"complex": text, "complexes": text.replace(".x", ".even").replace(".y", ".odd")}


def _order(first: str, second: str, operator: str) -> str:
    """As complex.cl's: by the real part, then the imaginary; an unordered pair is no order."""
    return (
        f"(({first}.even > {second}.even & {first}.odd == {first}.odd"
        f" & {second}.odd == {second}.odd)"
        f" | ({first}.even == {second}.even & {first}.odd {operator} {second}.odd))"
    )


_OF_COMPLEXES: Final = {
    "equal": "(({0} == {1}).even & ({0} == {1}).odd)",
    "not_equal": "(({0} != {1}).even | ({0} != {1}).odd)",
    "greater": _order("{0}", "{1}", ">"),
    "greater_equal": _order("{0}", "{1}", ">="),
    "less": _order("{1}", "{0}", ">"),
    "less_equal": _order("{1}", "{0}", ">="),
}


def comparison(name: str, operator: str, masks: str, mixed: tuple[str, str]) -> Ufunc:
    """Make the row of one of NumPy's six comparisons.

    `mixed` are the expressions of NumPy's loops for int64 against uint64 and the other way round:
    they compare the numbers, not their bits.
    """
    plain = f"({{0}} {operator} {{1}})"
    return Ufunc(
        name,
        2,
        {
            "bool": masks,
            "signed": plain,
            "unsigned": plain,
            "float": plain,
            "complex": f"complex_{name}_{{R}}({{0}}, {{1}})",
            "complexes": _OF_COMPLEXES[name],
            "int64,uint64": mixed[0],
            "uint64,int64": mixed[1],
        },
        define={"complex": "DEFINE_COMPLEX_COMPARISONS({R})"},
        libraries=COMPLEX,
    )


def choice(name: str, order: str, chosen_nan: str, builtin: str, masks: str) -> Ufunc:
    """Make the row of maximum, minimum, fmax or fmin.

    `chosen_nan` is the operand whose NaN makes the first operand the result.
    """
    # The builtin fmax drops a NaN as fmax must, but leaves the choice open for signalling ones and
    # is no faster than this compare and blend, which both runtimes keep in vectors.
    floats = f"({chosen_nan} != {chosen_nan} || {{0}} {order} {{1}} ? {{0}} : {{1}})"
    return Ufunc(
        name,
        2,
        {
            "bool": masks,
            "signed": f"{builtin}({{0}}, {{1}})",
            "unsigned": f"{builtin}({{0}}, {{1}})",
            "float": floats,
            "complex": f"complex_{name}_{{R}}({{0}}, {{1}})",
        },
        define={"complex": "DEFINE_COMPLEX_CHOICES({R})"},
        libraries=COMPLEX,
    )


_TRUE: Final = "({0} != ({T})(0))"
_OTHER_TRUE: Final = "({1} != ({T})(0))"
_COMPLEX_TRUE: Final = "({0}.x != 0 || {0}.y != 0)"
_COMPLEX_OTHER_TRUE: Final = "({1}.x != 0 || {1}.y != 0)"


def logical(name: str, operator: str, masks: str) -> Ufunc:
    """Make the row of logical_and, logical_or or logical_xor."""
    real = f"({_TRUE} {operator} {_OTHER_TRUE})"
    return Ufunc(
        name,
        2,
        {
            "bool": masks,
            "signed": real,
            "unsigned": real,
            "float": real,
            **with_vectors(f"({_COMPLEX_TRUE} {operator} {_COMPLEX_OTHER_TRUE})"),
        },
    )


def bitwise(name: str, operator: str) -> Ufunc:
    """Make the row of bitwise_and, bitwise_or or bitwise_xor: right for masks as for integers."""
    text = f"({{0}} {operator} {{1}})"
    return Ufunc(name, 2, {"bool": text, "signed": text, "unsigned": text})


def shift(name: str, signed: str, unsigned: str) -> Ufunc:
    """Make the row of a shift; a count that is negative or past the width shifts all bits out."""
    inside = "(as_{U}({1}) < ({U})(8 * sizeof({S})) ? "
    return Ufunc(name, 2, {"signed": inside + signed, "unsigned": inside + unsigned})


def property_of_floats(name: str, real: str, complex_: str, integer: str) -> Ufunc:
    """Make the row of isnan, isinf or isfinite; `integer` is a constant mask."""
    return Ufunc(
        name,
        1,
        {
            "bool": integer,
            "signed": integer,
            "unsigned": integer,
            "float": real,
            **with_vectors(complex_),
        },
    )


ROWS: Final = (
    comparison("equal", "==", "({0} == {1})",
               ("({0} >= 0 && as_{U}({0}) == {1})", "({1} >= 0 && {0} == as_{T}({1}))")),
    comparison("not_equal", "!=", "({0} != {1})",
               ("({0} < 0 || as_{U}({0}) != {1})", "({1} < 0 || {0} != as_{T}({1}))")),
    comparison("less", "<", "(!{0} && {1})",
               ("({0} < 0 || as_{U}({0}) < {1})", "({1} >= 0 && {0} < as_{T}({1}))")),
    comparison("less_equal", "<=", "(!{0} || {1})",
               ("({0} < 0 || as_{U}({0}) <= {1})", "({1} >= 0 && {0} <= as_{T}({1}))")),
    comparison("greater", ">", "({0} && !{1})",
               ("({0} >= 0 && as_{U}({0}) > {1})", "({1} < 0 || {0} > as_{T}({1}))")),
    comparison("greater_equal", ">=", "({0} || !{1})",
               ("({0} >= 0 && as_{U}({0}) >= {1})", "({1} < 0 || {0} >= as_{T}({1}))")),
    choice("maximum", ">=", "{0}", "max", "({0} || {1})"),
    choice("minimum", "<=", "{0}", "min", "({0} && {1})"),
    choice("fmax", ">=", "{1}", "max", "({0} || {1})"),
    choice("fmin", "<=", "{1}", "min", "({0} && {1})"),
    logical("logical_and", "&&", "({0} && {1})"),
    logical("logical_or", "||", "({0} || {1})"),
    # OpenCL C has no ^^; masks of one lane size differ exactly where one of them is set.
    logical("logical_xor", "!=", "({0} != {1})"),
    Ufunc("logical_not", 1, {
        "bool": "(!{0})",
        "signed": "({0} == ({T})(0))",
        "unsigned": "({0} == ({T})(0))",
        "float": "({0} == ({T})(0))",
        **with_vectors("({0}.x == 0 && {0}.y == 0)"),
    }),
    bitwise("bitwise_and", "&"),
    bitwise("bitwise_or", "|"),
    bitwise("bitwise_xor", "^"),
    Ufunc(
        "invert", 1, {"bool": "(!{0})", "signed": "({T})(~{0})", "unsigned": "({T})(~{0})"},
        define=dict.fromkeys(("signed", "unsigned"), "DEFINE_KEPT_INVERT({T}, {S})"),
        libraries=INTEGER,
    ),
    # Shifting a negative number left is undefined in C, so it is done on the bits.
    shift("left_shift", "as_{T}(({U})(as_{U}({0}) << as_{U}({1}))) : ({T})(0))",
          "({T})({0} << {1}) : ({T})(0))"),
    shift("right_shift", "({T})({0} >> {1}) : ({T})({0} >> ({T})(8 * sizeof({S}) - 1)))",
          "({T})({0} >> {1}) : ({T})(0))"),
    Ufunc("bitwise_count", 1, {
        "signed": "convert_uchar{W}(popcount(abs({0})))",  # of the magnitude, as Python's
        "unsigned": "convert_uchar{W}(popcount({0}))",
    }, weight=4),
    property_of_floats("isnan", "({0} != {0})", "({0}.x != {0}.x || {0}.y != {0}.y)", "({I})(0)"),
    property_of_floats("isinf", "(fabs({0}) == ({T})(INFINITY))",
                       "(fabs({0}.x) == INFINITY || fabs({0}.y) == INFINITY)", "({I})(0)"),
    property_of_floats("isfinite", "(fabs({0}) < ({T})(INFINITY))",
                       "(fabs({0}.x) < INFINITY && fabs({0}.y) < INFINITY)", "({0} == {0})"),
    # The builtin signbit of a vector is a mask too, but the bits need no library call.
    Ufunc("signbit", 1, {"float": "(as_{I}({0}) < ({I})(0))"}),
)

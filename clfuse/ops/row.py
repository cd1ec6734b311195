"""The records of the op tables: ufuncs, reductions, and builtins that some drivers get wrong.

What an expression may use, and what it may rely on:

``{0} {1} {2}``
    the operands: names or parenthesised text, of the loop's input types, repeatable.
``{T} {S}``
    the OpenCL C type of the operand that `Ufunc.typed_by` names at this width, and of one lane
    (``double8``, ``double``; at width 1 both are ``double``).
``{W}``
    the width as a suffix: ``""``, ``2``, ``4``, ``8`` or ``16``.
``{I} {U}``
    the signed and unsigned integer types with lanes of the size of ``{S}`` (``long8``, ``ulong8``).
``{O}``
    the type of the result at this width.
``{R}``
    the real type of a complex dtype (``float``, ``double``).

A comparison gives 1 at width 1 but -1 in the lanes of a vector, so a result that is a mask is only
ever asked whether it is zero.  bool operands are such masks too, in lanes of one size.  The value
of an expression is complete only once it is stored in a variable of type ``{O}``: at width 1 C
computes chars and shorts as ints, and storing them is what makes them wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


def class_of(dtype_name: str) -> str:
    """Return the class of a dtype: the key that is looked up after the dtype's own name; one of
    bool, signed, unsigned, float and complex.

    Examples
    --------
    >>> class_of("uint8"), class_of("float16"), class_of("complex64")
    ('unsigned', 'float', 'complex')
    """
    if dtype_name == "bool":
        return "bool"
    for prefix, name in (("uint", "unsigned"), ("int", "signed"), ("float", "float")):
        if dtype_name.startswith(prefix):
            return name
    return "complex"


@dataclass(frozen=True, slots=True, eq=False)
class Ufunc:
    """One element-wise function, with an OpenCL C expression for every class that is native.

    name: NumPy's own name of the ufunc (``numpy.mod.__name__`` is ``"remainder"``), or a name of
        ours for what NumPy's public functions are made of (``"real"``, ``"where"``).
    arity: how many operands the expression has.
    expressions: key to OpenCL C.  A key is a dtype's name, a class, or the names of all input
        dtypes joined by commas where these differ (``"int64,uint64"``).  A class that is missing is
        not native. ``"complexes"`` is for several complex numbers in one vector, as they lie in
        memory; `kernels/lib/complexes.cl` says what ``{T} {V} {I} {R} {W}`` are there, and ``{M}``
        are the integers with the lanes of ``{T}``.  Without it they are computed one after the
        other.
    define: key to text that must stand once above the kernel, for this dtype and width: one
        definition a line, each needing only those before it; equal lines are one line.  No text
        means that nothing need stand there.
    libraries: names of the files in ``kernels/lib`` whose text must come before a `define` text,
        and after ``#pragma OPENCL FP_CONTRACT OFF``.
    weight: cost of one evaluation in additions.
    ulp: allowed distance of a float result from the exact one; 0 promises NumPy's bits.
    complex_ulp: the same for complex results, where the distance is taken in the plane, in units in
        the last place of the larger part.
    typed_by: the operand that gives the key and ``{T}``.
    each_number: whether the `define` text of ``"complexes"`` calls ``each_complex_<name>_{T}``,
        which is the expression of ``"complex"`` for one number after the other.
    output: output dtype of an internal row: a dtype name, ``"same"`` or ``"real"`` (the part of a
        complex one).  Empty for NumPy's own ufuncs, whose `resolve_dtypes` knows.
    define_lanes: like `define`, for vectors on CPUs, by dtype name; there may also be ``{F}``, the
        float type with the same lanes that holds the integers (float up to 16 bits), and ``{P}``,
        the integer type by which it becomes one of up to 32 bits.
    """

    name: str
    arity: int
    expressions: Mapping[str, str]
    define: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    weight: float = 1.0
    ulp: int = 0
    complex_ulp: int = 0
    typed_by: int = 0
    each_number: bool = False
    output: str = ""
    define_lanes: Mapping[str, str] = field(default_factory=dict)

    def key(self, inputs: Sequence[str]) -> str | None:
        """Return the key of `expressions` for these input dtype names, None if not native.

        Examples
        --------
        >>> Ufunc("f", 1, {"float": "f({0})", "float16": "g({0})"}).key(["float16"])
        'float16'
        """
        leading = inputs[self.typed_by]
        for key in (",".join(inputs), leading, class_of(leading)):
            if key in self.expressions:
                return key
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A binary ufunc that folds an axis.

    name: NumPy's name of the ufunc; its row in `UFUNCS` combines two partial results.
    identity: class or dtype name to the OpenCL C text of the value that changes nothing, formatted
        with ``{T}`` and ``{S}``; a class is missing where there is none, and then a reduction
        starts with its first element.
    pairwise: whether NumPy sums pairwise: partial results must then be combined in a tree of
        bounded depth so as not to be less accurate.
    neutral: whether `identity` is NumPy's own, so that an empty axis gives it.  Otherwise it only
        fills lanes and an empty axis is NumPy's ValueError.
    """

    name: str
    identity: Mapping[str, str]
    pairwise: bool = False
    neutral: bool = True

    def identity_of(self, dtype_name: str) -> str | None:
        """Return the identity's text for a dtype, None where there is none."""
        return self.identity.get(dtype_name, self.identity.get(class_of(dtype_name)))


@dataclass(frozen=True, slots=True, eq=False)
class FaultyBuiltins:
    """Builtins that one runtime has wrong or slow, and what its kernels use instead.

    platform: regular expression for the platform's name.
    expressions: (ufunc name, dtype name) to the OpenCL C that replaces the row's expression there;
        what it calls is in the row's `define` text on every device.
    reason: what was measured.
    """

    platform: str
    expressions: Mapping[tuple[str, str], str]
    reason: str

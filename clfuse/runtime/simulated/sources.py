"""Checks of OpenCL C for what compilers of other devices refuse and the one at hand takes."""

from __future__ import annotations

import re

from clfuse.target.simulated_devices import SimulatedDevice

__all__ = ["problem_of", "restricted"]

_WIDTHS = ("", "2", "3", "4", "8", "16")
_DOUBLE = tuple([f"{word}double{width}" for word in ("", "as_", "convert_") for width in _WIDTHS])
_HALF = tuple([f"half{width}" for width in _WIDTHS if width])
"""The scalar is a type of memory without the extension, too (``vload_half``)."""

_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_KERNEL = re.compile(r"\b(?:__)?kernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(")


def restricted(source: str, row: SimulatedDevice) -> str:
    """The source for a compiler that is to know no type that the device has not.

    Its lines keep their numbers. A name that a macro drops is no use of the type: so the names are
    macros themselves, for something that is not declared.
    """
    lines = []
    if not row.fp64:
        lines += ["#undef cl_khr_fp64", *[f"#define {name} no_cl_khr_fp64" for name in _DOUBLE]]
    if not row.fp16:
        lines += [
            "#undef cl_khr_fp16",
            "#pragma OPENCL EXTENSION cl_khr_fp16 : disable",
            *[f"#define {name} no_cl_khr_fp16" for name in _HALF],
        ]
    return "\n".join([*lines, "#line 1", source]) if lines else source


def problem_of(source: str) -> str:
    """Why a compiler of another device may refuse a source; empty where nothing is known.

    Examples
    --------
    >>> problem_of("kernel void f(global int *x) { x[0] = 1; }")
    ''
    >>> problem_of("kernel void f() {} kernel void g() { f(); }")
    'error: kernel f is called like a function, which ptxas refuses'
    """
    text = _COMMENT.sub(" ", source)
    if not text.isascii():
        other = next(letter for letter in text if not letter.isascii())
        # The source character set, OpenCL C 1.2, section 6.1 (that of C99, section 5.2.1).
        return f"error: {other!r} is not in the character set of OpenCL C"
    for name in dict.fromkeys(_KERNEL.findall(text)):
        # `void f(` is a definition or a declaration, `f(` alone a call.
        if re.search(rf"(?<!\bvoid\s)\b{name}\s*\(", re.sub(r"\bvoid\s+", "void ", text)):
            return f"error: kernel {name} is called like a function, which ptxas refuses"
    return ""

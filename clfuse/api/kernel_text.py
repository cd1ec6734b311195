"""Text of user-written kernels: parameter lists, types, bodies as functions; `elementwise_kernel`,
`reduction_kernel` and `raw_kernel` use it.

Parameter lists are CuPy's: ``"T x, raw float32 table, int32 n"``. A type of one letter is a
placeholder, which the arrays decide; others are names of NumPy's dtypes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from ..dtypes import register_type
from ..graph.functions import Function
from .handle import DTYPES, Handle, native_dtype

RESERVED: Final = ("i", "n")
"""Names that bodies have for the index and the number of elements."""

UINT8: Final = DTYPES["uint8"]


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter: `dtype` is None where `type` is a placeholder."""

    name: str
    type: str
    dtype: np.dtype | None
    is_raw: bool


def parameters(text: str) -> tuple[Declared, ...]:
    """The parameters of a list.

    Raises
    ------
    ValueError
        The list cannot be read, or a name is reserved or there twice.
    TypeError
        A type is neither a placeholder nor a dtype that lives on devices.

    >>> [(p.name, p.type, p.is_raw) for p in parameters("T x, raw float32 t")]
    [('x', 'T', False), ('t', 'float32', True)]
    """
    found: list[Declared] = []
    for part in text.split(","):
        words = part.split()
        if not words and not text.strip():
            continue
        is_raw = words[:1] == ["raw"]
        words = [word for word in words[is_raw:] if word != "const"]
        if len(words) != 2 or not all(re.fullmatch(r"[A-Za-z]\w*", word) for word in words):
            raise ValueError(f"parameter {part.strip()!r}: expected [raw] type name")
        kind, name = words
        if name in RESERVED:
            raise ValueError(f"parameter {part.strip()!r}: the name {name} is reserved")
        if name in [other.name for other in found]:
            raise ValueError(f"parameter {part.strip()!r}: there are two of that name")
        dtype = None
        if len(kind) > 1:
            try:
                dtype = native_dtype(np.dtype(kind))
            except TypeError:
                dtype = None
            if dtype is None:
                raise TypeError(
                    f"parameter {part.strip()!r}: {kind} is neither one letter, a placeholder, nor "
                    f"one of {', '.join(DTYPES)}"
                )
        found.append(Declared(name, kind, dtype, is_raw))
    return tuple(found)


def decide_types(
    name: str, declared: Sequence[Declared], arguments: Sequence[Any]
) -> dict[str, np.dtype]:
    """The dtype of every placeholder.

    `arguments` are handles, scalars, or None for what is not given yet. Arrays decide; only where
    there is none do scalars.

    Raises
    ------
    TypeError
        An array is not of the type that was declared, or that others of its placeholder have.
    ValueError
        Nothing decides.
    """
    types: dict[str, np.dtype] = {}
    for parameter, argument in zip(declared, arguments, strict=True):
        if not isinstance(argument, Handle):
            continue
        dtype = argument._dtype
        wanted = parameter.dtype or types.setdefault(parameter.type, dtype)
        if dtype != wanted:
            raise TypeError(
                f"{name}: type is mismatched: {parameter.name} is {dtype}, not {wanted}"
            )
    for parameter, argument in zip(declared, arguments, strict=True):
        if parameter.dtype is None and parameter.type not in types:
            if argument is None:
                continue
            found = native_dtype(np.asarray(argument).dtype)
            if found is None:
                raise TypeError(f"{name}: {parameter.name} is no number: {argument!r}")
            types[parameter.type] = found
    for parameter in declared:
        if parameter.dtype is None and parameter.type not in types:
            raise ValueError(
                f"{name}: nothing decides the type {parameter.type} of {parameter.name}: pass the "
                "output array, or declare its type"
            )
    return types


def type_of(parameter: Declared, types: dict[str, np.dtype]) -> np.dtype:
    """The dtype of a parameter."""
    return parameter.dtype or types[parameter.type]


def c_type(dtype: np.dtype) -> str:
    """What a body computes in: a bool is a uchar, a half a float."""
    return "uchar" if dtype.kind == "b" else register_type(dtype)


def computed(dtype: np.dtype) -> np.dtype:
    """What a function takes and gives for `dtype`: bool as 0 and 1."""
    return UINT8 if dtype.kind == "b" else dtype


def concrete(text: str, types: dict[str, np.dtype]) -> str:
    """`text` with C types for placeholders."""
    for kind, dtype in types.items():
        text = re.sub(rf"\b{kind}\b", c_type(dtype), text)
    return text


def uses(text: str, name: str) -> bool:
    """Whether `name` stands in a text."""
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def without_comments(text: str) -> str:
    """C without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def statements(text: str) -> list[str]:
    """The statements of a body at its outermost level; blocks stay whole.

    >>> statements("if (x) { y = 1; } z = f(1, 2)")
    ['if (x) { y = 1; }', 'z = f(1, 2)']
    """
    found = []
    depth = 0
    start = 0
    for place, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        if depth == 0 and letter in ";}":
            found.append(text[start : place + (letter == "}")].strip())
            start = place + 1
    return [each for each in [*found, text[start:].strip()] if each]


def is_assigned(text: str, name: str) -> bool:
    """Whether a body certainly gives `name` a value before it looks at it."""
    for statement in statements(without_comments(text)):
        found = re.match(rf"{name}\s*=(?!=)", statement)
        if found:
            return not uses(statement[found.end() :], name)
        if uses(statement, name):
            return False
    return False


def identifier(name: str, text: str) -> str:
    """A C identifier that no other text gets."""
    word = re.sub(r"\W", "_", name)
    return f"{word}_{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


@cache
def own_names(preamble: str) -> dict[str, str]:
    """Functions, macros and types that a preamble defines -> names that no other preamble's have.

    Several kernels' preambles may come into one source.
    """
    text = without_comments(preamble)
    found = re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE)
    found += re.findall(r"\b(\w+)\s*\([^()]*\)\s*\{", text)
    found += re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text)
    found += re.findall(r"\btypedef\b[^;{]*?(?:\{[^}]*\}[^;]*?)?\b(\w+)\s*;", text)
    found += re.findall(r"\b__constant\s+\w+\s+(\w+)", text)
    keywords = ("if", "for", "while", "switch", "return")
    return {name: identifier(name, preamble) for name in found if name not in keywords}


def renamed(text: str, names: dict[str, str]) -> str:
    """`text` with other names for what a preamble defines."""
    for old, new in names.items():
        text = re.sub(rf"(?<!\.)\b{old}\b", new, text)
    return text


def weight_of(text: str) -> float:
    """What a body costs, in additions, roughly: operators, calls, and loops ten times."""
    operators = len(re.findall(r"[-+*/%&|^<>?]+", text))
    calls = len(re.findall(r"\b[a-z]\w*\s*\(", text))
    weight = 1.0 + operators + 6 * calls
    return weight * 10 if re.search(r"\b(for|while|do)\b", text) else weight


def decode(dims: range, number: str, rest: str) -> list[str]:
    """Lines that split a running number into the indices ``i<dim>``, the last one fastest."""
    lines = [f"long {rest} = {number};"] if dims else []
    for dim in reversed(dims):
        if dim == dims[0]:
            lines.append(f"const long i{dim} = {rest};")
        else:
            lines.append(f"const long i{dim} = {rest} % n{dim}; {rest} /= n{dim};")
    return lines


def function_of(
    name: str,
    body: str,
    inputs: Sequence[tuple[str, np.dtype]],
    outputs: Sequence[tuple[str, np.dtype]],
    result: int,
    starts: Sequence[str],
    preamble: str = "",
) -> Function:
    """The function of `inputs` that gives output `result` of a body.

    Parameters
    ----------
    body : str
        With C types.
    inputs, outputs : sequence of (str, dtype)
    starts : sequence of str
        What every output is before the body: an input's name, or empty: nothing.
    preamble : str
        What must stand above it, with names of its own.
    """
    target, dtype = outputs[result]
    kind = c_type(dtype)
    parameters = ", ".join([f"const {c_type(each)} {word}" for word, each in inputs])
    locals_ = " ".join([
        f"{c_type(each)} {word} = ({c_type(each)})({start or 0});"
        for (word, each), start in zip(outputs, starts, strict=True)
    ])
    lines = f"{{\n    {locals_}\n    {{ {body}; }}\n    return {target};\n}}"
    unique = identifier(name, f"{preamble}{kind}({parameters}){lines}")
    text = f"static inline {kind} {unique}({parameters})\n{lines}"
    if preamble:
        text = f"{preamble}\n{text}"
    dtypes = tuple([computed(each) for _, each in inputs])
    weight = weight_of(body) + weight_of(preamble) * bool(preamble)
    return Function(unique, text, dtypes, computed(dtype), weight)

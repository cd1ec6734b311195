"""Text of user-written kernels: parameter lists, types, bodies as functions.

Parameter lists are CuPy's: ``"T x, raw float32 table, int32 n"``. A type of one letter is a
placeholder, which the arrays decide; others are names of NumPy's dtypes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.handle import DTYPES, Handle, fresh, native_dtype, node_of
from clfuse.dataclass import frozen
from clfuse.dtypes import register_type
from clfuse.ir import build
from clfuse.ir.identifiers import MOST_LETTERS
from clfuse.ir.scalar_functions import Function

from .names import (
    KEYWORDS,
    declared_names,
    defined_macros,
    members,
    rename_words,
    without_comments,
    words,
)

RESERVED: Final = ("i", "n")
"""Names that bodies have for the index and the number of elements."""

UINT8: Final = DTYPES["uint8"]

_C_TYPES: Final = {
    "bool": "bool", "char": "int8", "uchar": "uint8", "unsigned char": "uint8", "short": "int16",
    "ushort": "uint16", "unsigned short": "uint16", "int": "int32", "uint": "uint32",
    "unsigned": "uint32", "long": "int64", "ulong": "uint64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "float": "float32", "double": "float64",
    "float2": "complex64", "double2": "complex128",
}


def dtype_of(c_type: str) -> np.dtype | None:
    """The dtype of a number's type in C, if it is one; ``long long`` is CUDA's name of it.

    >>> dtype_of("signed short int"), dtype_of("unsigned"), dtype_of("float"), dtype_of("float3")
    (dtype('int16'), dtype('uint32'), dtype('float32'), None)
    """
    kinds = c_type.split()
    if len(kinds) > 1 or kinds == ["signed"]:  # `unsigned short int` and `int unsigned`
        kinds = sorted([kind for kind in kinds if kind not in ("signed", "int")],
                       key=lambda kind: kind != "unsigned") or ["int"]
    name = _C_TYPES.get(" ".join(kinds))
    return None if name is None else DTYPES[name]


_WORD: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)


@frozen
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
        parts = part.split()
        if not parts and not text.strip():
            continue
        is_raw = parts[:1] == ["raw"]
        parts = [word for word in parts[is_raw:] if word != "const"]
        if len(parts) != 2 or not all(map(_WORD.fullmatch, parts)):
            raise ValueError(f"parameter {part.strip()!r}: expected [raw] type name")
        kind, name = parts
        if name in KEYWORDS:
            raise ValueError(f"parameter {part.strip()!r}: {name} is a word of OpenCL C's own")
        if name in RESERVED:
            raise ValueError(f"parameter {part.strip()!r}: the name {name} is reserved")
        if name in [other.name for other in found]:
            raise ValueError(f"parameter {part.strip()!r}: there are two of that name")
        dtype = None
        if len(kind) > 1:
            try:
                dtype = DTYPES.get(np.dtype(kind).name) if np.dtype(kind).isnative else None
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
    """The dtype of every placeholder, and of declared types for which float32 stands now
    (``CLFUSE_FP64=downcast``).

    `arguments` are handles, scalars, or None for what is not given yet. Arrays decide; only where
    there is none do scalars, lazy ones as well as NumPy's and Python's.

    Raises TypeError: an array is not of the type that was declared, or that others of its
        placeholder have.
    Raises ValueError: nothing decides.
    """
    types: dict[str, np.dtype] = {}
    for parameter in declared:
        if parameter.dtype is not None:
            stands = native_dtype(parameter.dtype)
            if stands is not None and stands is not parameter.dtype:
                types[parameter.type] = stands
    for parameter, argument in zip(declared, arguments, strict=True):
        if not isinstance(argument, Handle) or type(argument) in handles.SCALARS:
            continue
        dtype = argument._dtype
        if parameter.dtype is None:
            types.setdefault(parameter.type, dtype)
        wanted = type_of(parameter, types)
        if dtype != wanted:
            raise TypeError(
                f"{name}: type is mismatched: {parameter.name} is {dtype}, not {wanted}"
            )
    for parameter, argument in zip(declared, arguments, strict=True):
        if parameter.dtype is None and parameter.type not in types:
            if argument is None:
                continue
            found = (
                argument._dtype if isinstance(argument, Handle)
                else native_dtype(np.asarray(argument).dtype)
            )
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


def type_of(parameter: Declared, types: Mapping[str, np.dtype]) -> np.dtype:
    """The dtype of a parameter."""
    return types.get(parameter.type) or parameter.dtype or types[parameter.type]


def settle_arguments(
    values: Sequence[Any], declared: Sequence[Declared], types: Mapping[str, np.dtype]
) -> list[Any]:
    """Arguments with lazy scalars as arrays of the type that they are taken as, as NumPy's scalars
    are; all else as it is."""
    scalars = handles.SCALARS
    return [
        fresh(build.cast(node_of(value), type_of(parameter, types)))
        if type(value) in scalars else value
        for value, parameter in zip(values, declared, strict=True)
    ]


def c_type(dtype: np.dtype) -> str:
    """What a body computes in: a half is a float."""
    return "bool" if dtype.kind == "b" else register_type(dtype)


def stored_type(dtype: np.dtype) -> str:
    """What an array has for `c_type`."""
    if dtype.kind == "b":
        return "uchar"
    return "half" if dtype.char == "e" else register_type(dtype)


def computed_type(dtype: np.dtype) -> np.dtype:
    """What a function takes and gives for `dtype`: bool as 0 and 1."""
    return UINT8 if dtype.kind == "b" else dtype


def concrete(text: str, types: Mapping[str, np.dtype]) -> str:
    """`text` with C types for placeholders."""
    return rename_words(text, {kind: c_type(dtype) for kind, dtype in types.items()})


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


_LEAVES: Final = frozenset(["return", "continue", "break", "goto"])


def is_assigned(text: str, name: str) -> bool:
    """Whether a body certainly gives `name` a value before it looks at it or ends."""
    for statement in statements(without_comments(text)):
        found = re.match(rf"{name}\s*=(?!=)", statement)
        if found:
            return name not in words(statement[found.end() :])
        used = words(statement)
        if name in used or used & _LEAVES:
            return False
    return False


def identifier(name: str, text: str) -> str:
    """A C identifier that no other text gets."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)[:MOST_LETTERS]
    return f"{word}_{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


class Parts:
    """The texts of a kernel for one choice of types.

    What a preamble declares has names that no other preamble's have, so that several kernels'
    preambles may come into one source.

    Parameters
    ----------
    preamble : str
    types : mapping
        Placeholder -> dtype.
    parameters : sequence of Declared
        Whose names hide what the preamble declares.
    """

    def __init__(
        self, preamble: str, types: Mapping[str, np.dtype], parameters: Sequence[Declared]
    ) -> None:
        self._types = types
        text = concrete(preamble, types)
        names = {name: identifier(name, text) for name in declared_names(text)}
        self._members = members(text)
        self.preamble = rename_words(text, names, self._members)
        self._own = frozenset([parameter.name for parameter in parameters])
        self._names = {name: other for name, other in names.items() if name not in self._own}

    def concrete(self, text: str) -> str:
        """A body or an expression, with C types and the preamble's names.

        Macros that it defines get names of their own, too: those would mean something in all that
        comes after it, other kernels' bodies and generated text.
        """
        text = concrete(text, self._types)
        macros = {name: identifier(name, text) for name in defined_macros(text) - self._own}
        return rename_words(text, self._names | macros, self._members)


def block_of(body: str, end: str) -> str:
    """A body in braces of its own; where it returns, or continues with the next element, comes
    `end`: statements that end the function.

    >>> print(block_of("if (x < 0) return; y = x", "return y;"))
    {
    if (x < 0) { return y; } y = x
    ;}
    """
    found = words(body)
    if "return" in found:
        body = re.sub(r"\breturn\s*;", f"{{ {end} }}", without_comments(body))
    text = f"{{\n{body}\n;}}"  # on a line of its own: the last one may be a comment
    return f"do {text} while (0);" if "continue" in found else text


def weight_of(text: str) -> float:
    """What a body costs, in additions, roughly: operators, calls, and loops ten times."""
    operators = len(re.findall(r"[-+*/%&|^<>?]+", text))
    calls = len(re.findall(r"\b[a-z]\w*\s*\(", text))
    weight = 1.0 + operators + 6 * calls
    return weight * 10 if re.search(r"\b(for|while|do)\b", text) else weight


def decode(dims: range, number: str, rest: str) -> list[str]:
    """Lines that split a running number into the indices ``_i<dim>``, the last one fastest."""
    lines = [f"long {rest} = {number};"] if dims else []
    for dim in reversed(dims):
        if dim == dims[0]:
            lines.append(f"const long _i{dim} = {rest};")
        else:
            lines.append(f"const long _i{dim} = {rest} % _n{dim}; {rest} /= _n{dim};")
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
    kind = register_type(computed_type(dtype))
    parameters = ", ".join([f"const {c_type(each)} {word}" for word, each in inputs])
    locals_ = " ".join([
        f"{c_type(each)} {word} = ({c_type(each)})({start or 0});"
        for (word, each), start in zip(outputs, starts, strict=True)
    ])
    lines = f"{{\n{locals_}\n{block_of(body, f'return {target};')}\nreturn {target};\n}}"
    lines += "".join([f"\n#undef {each}" for each in sorted(defined_macros(body))])
    unique = identifier(name, f"{preamble}{kind}({parameters}){lines}")
    text = f"static inline {kind} {unique}({parameters})\n{lines}"
    dtypes = tuple([computed_type(each) for _, each in inputs])
    weight = weight_of(body) + weight_of(preamble) * bool(preamble)
    return Function(unique, text, dtypes, computed_type(dtype), weight, preamble)

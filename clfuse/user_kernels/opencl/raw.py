"""`RawKernel`, as CuPy's: a whole kernel in OpenCL C, recorded as a launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.handle import DTYPES, Handle, fresh, is_contiguous, is_writeable, node_of, write
from clfuse.codegen import signatures
from clfuse.dataclass import frozen
from clfuse.ir.launch_nodes import LocalParameter
from clfuse.ir.traced_number import TracedNumber

from .elementwise import array_of
from .names import require_name, require_text, without_comments
from .record_launch import record_launch
from .text import dtype_of

_QUALIFIERS: Final = frozenset(
    "const restrict __restrict volatile global __global constant __constant local __local private"
    " __private".split()
)


MOST_GROUPS: Final = (1 << 31) - 1
"""Of a dimension: drivers count them in 32 bits (PoCL ends the process), as CUDA does."""


@frozen
class Formal:
    """One parameter of a kernel: ``array`` (`mode` says how it is used), ``scalar`` or ``local``.

    `dtype` is a scalar's; None for a type that is the program's own.
    """

    name: str
    kind: str
    mode: str = ""
    dtype: np.dtype | None = None


class RawKernel:
    """A kernel in OpenCL C, as `cupy.RawKernel` in CUDA C.

    A call is recorded, in order with what is done to its arrays; what it reads is computed first,
    and it is launched when somebody looks at what it writes. A pointer to ``const`` is only read;
    all other arrays of a call may be changed by it. Calls that differ in where their arrays begin
    and in numbers become one launch. Where macros or directives hide the kernel's parameters, every
    call is a launch, and views that do not begin where their buffer does are copied.

    Parameters
    ----------
    code : str
        OpenCL C.
    name : str
        A ``__kernel`` function in it.
    options : tuple of str
        ``-DNAME`` and ``-DNAME=value``.

    Raises
    ------
    ValueError
        There is no such kernel, or an option is none of these.
    TypeError
        A parameter is neither a pointer nor a number.
    KernelBuildError
        When something that it writes is looked at: it is not OpenCL C; `log` is the compiler's.

    Examples
    --------
    >>> import clfuse as np
    >>> axpy = np.RawKernel('''
    ... __kernel void axpy(const double a, __global const double *x, __global double *y)
    ... { const size_t i = get_global_id(0); y[i] += a * x[i]; }''', "axpy")
    >>> x, y = np.arange(4.0), np.ones(4)
    >>> axpy((2,), (2,), (3.0, x, y))            # two groups of two work-items
    >>> y
    array([ 1.,  4.,  7., 10.])
    """

    def __init__(self, code: str, name: str, options: Sequence[str] = (), **more: Any) -> None:
        if more:
            raise TypeError(f"RawKernel has no option {', '.join(more)} in OpenCL")
        require_text(code=code)
        self.code = code
        self.name = require_name(name)
        self.options = _options(name, options)
        defines = []
        for option in self.options:
            found = _OPTION.fullmatch(option)
            if found is None or "//" in option or "/*" in option:
                raise ValueError(f"{name}: option {option!r}: -DNAME and -DNAME=value are known")
            value = found.group(2)
            defines.append(f"#define {found.group(1)} {'1' if value is None else value}\n")
        self._source = "".join(defines) + code
        self.parameters = formals(self._source, name)
        self._count = sum(formal.kind != "local" for formal in self.parameters)

    def __repr__(self) -> str:
        return f"<RawKernel {self.name}>"

    def __call__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Record a launch.

        Parameters
        ----------
        grid : tuple of int
            Work-groups in every dimension, one to three.
        block : tuple of int
            Work-items of a group in every dimension.
        args : sequence
            Arrays and scalars in the kernel's order, without its ``__local`` pointers. An array
            whose elements do not lie side by side in C order is copied, and back if it is written.
        shared_mem : int
            Bytes of local memory, for the kernel's ``__local`` pointer.

        Raises
        ------
        TypeError
            The number or the kind of the arguments is wrong.
        ValueError
            An array that is written is read-only; the sizes are wrong.
        """
        sizes, items = _sizes(_extents("grid", grid), _extents("block", block))
        if not isinstance(args, Sequence):
            raise TypeError(f"{self.name}: args is a {type(args).__name__}: expected a tuple")
        if len(args) != self._count:
            raise TypeError(f"{self.name} takes {self._count} arguments, not {len(args)}")
        given = iter(args)
        arguments: list[Any] = []
        back: list[tuple[Any, Any]] = []
        for formal in self.parameters:
            if formal.kind == "local":
                if as_index(shared_mem) <= 0:
                    raise ValueError(f"{self.name}: {formal.name} needs shared_mem=")
                arguments.append(LocalParameter(int(shared_mem)))
            elif formal.kind == "scalar":
                arguments.append(self._scalar(formal, next(given)))
            else:
                array = self._array(formal, next(given))
                passed = array
                if not is_contiguous(array):
                    passed = fresh(node_of(array))
                    if formal.mode != "r":
                        back.append((array, passed))
                arguments.append((passed, formal.mode))
        record_launch(self._source, self.name, arguments, sizes, items)
        for target, copy in back:
            write(target, node_of(copy))

    def _scalar(self, formal: Formal, value: Any) -> Any:
        if type(value) in handles.SCALARS:
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())[()]
        if formal.dtype is None:
            if not isinstance(value, np.generic) or value.dtype.name not in DTYPES:
                raise TypeError(
                    f"{self.name}: {formal.name} is of a type of its own: pass a NumPy scalar of "
                    f"that size, not a {type(value).__name__}"
                )
            return value
        is_number = isinstance(value, bool | int | float | complex | np.number | np.bool)
        if not is_number and type(value) is not TracedNumber:
            raise TypeError(f"{self.name}: {formal.name} is a scalar, not a {type(value).__name__}")
        if isinstance(value, complex | np.complexfloating) and formal.dtype.kind != "c":
            raise TypeError(f"{self.name}: {formal.name} is real, not {value}")
        if isinstance(value, float | np.floating) and formal.dtype.kind in "iu":
            raise TypeError(f"{self.name}: {formal.name} is an integer, not {value}")
        return value, formal.dtype

    def _array(self, formal: Formal, value: Any) -> Any:
        if formal.mode != "r" and not isinstance(value, Handle):
            raise TypeError(
                f"{self.name}: {formal.name} is written to: pass an ndarray, not a "
                f"{type(value).__name__}"
            )
        array = value if isinstance(value, Handle) else array_of(value, formal.name)
        if formal.mode != "r" and not is_writeable(array):
            raise ValueError(f"{self.name}: {formal.name} is written to, and read-only")
        return array


def formals(code: str, name: str) -> tuple[Formal, ...]:
    """The parameters of a kernel, from its text.

    >>> [(f.kind, f.mode) for f in formals("kernel void f(global const int *a, float b) {}", "f")]
    [('array', 'r'), ('scalar', '')]
    """
    found = signatures.find(code, name)
    if found is not None:
        known = found.definitions[0].formals
        return tuple([_formal(" ".join(formal.expanded), name) for formal in known])
    # Macros or directives are part of it: what is in front of them is read.
    text = without_comments(code)
    pattern = rf"\b(?:__)?kernel\b(?:[^(){{}};]|\([^{{}};]*?\))*?\bvoid\s+{re.escape(name)}\s*\("
    head = re.search(pattern, text)
    if head is None:
        raise ValueError(f"the code has no kernel {name}: expected __kernel void {name}(...)")
    depth, start = 1, head.end()
    end = start
    while depth and end < len(text):
        depth += (text[end] == "(") - (text[end] == ")")
        end += 1
    inside = text[start : end - 1].strip()
    if inside in ("", "void"):
        return ()
    return tuple([_formal(part, name) for part in inside.split(",")])


def _formal(part: str, kernel: str) -> Formal:
    words = re.findall(r"\w+|\*|\[|\]", re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", part))
    if not words:
        raise ValueError(f"{kernel}: a parameter without a name")
    if "*" in words or "[" in words:
        pointer = words.index("*") if "*" in words else len(words)
        qualifiers = set(words[:pointer])
        name = next(word for word in reversed(words) if word not in "*[]" and not word.isdigit())
        if qualifiers & {"local", "__local"}:
            return Formal(name, "local")
        is_read = qualifiers & {"const", "constant", "__constant"}
        return Formal(name, "array", "r" if is_read else "rw")
    *kind, name = [word for word in words if word not in _QUALIFIERS]
    if kind and kind[0].startswith(("image", "sampler", "pipe", "event")):
        raise TypeError(f"{kernel}: parameter {name} is a {kind[0]}: arrays and numbers are known")
    return Formal(name, "scalar", "", dtype_of(" ".join(kind) or "int"))


_OPTION: Final = re.compile(
    r"-D *([A-Za-z_]\w*)(?:=((?:[^\x00-\x1f\x7f-\x9f\\]|\\\S)*))?", re.ASCII
)
"""A definition: nothing in it may end the line, or join the next one to it."""


def _options(name: str, options: Any) -> tuple[str, ...]:
    is_right = not isinstance(options, str) and isinstance(options, Iterable)
    found = tuple(options) if is_right else ()
    if not is_right or not all(isinstance(option, str) for option in found):
        raise TypeError(f"{name}: options are {options!r}: expected a tuple of str")
    return found


def _extents(what: str, given: Any) -> tuple[int, ...]:
    """A number, or one for every dimension, as a tuple."""
    if type(given) is tuple and all(type(each) is int for each in given):
        return given
    try:
        if isinstance(given, Iterable) and not isinstance(given, str | Handle):
            return tuple([as_index(each) for each in given])
        return (as_index(given),)
    except TypeError:
        raise TypeError(f"{what} is {given!r}: expected one to three integers") from None


@lru_cache(maxsize=1024)
def _sizes(
    groups: tuple[int, ...], items: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Work-items, and those of a group.

    >>> _sizes((2, 3), (4,))
    ((8, 3), (4, 1))
    """
    rank = max(len(groups), len(items))
    groups += (1,) * (rank - len(groups))
    items += (1,) * (rank - len(items))
    if not 1 <= rank <= 3 or min(groups) < 0 or min(items) < 1:
        raise ValueError(f"{groups} groups of {items} work-items: one to three dimensions, no 0")
    if max(groups) > MOST_GROUPS:
        raise ValueError(f"{groups} groups: {MOST_GROUPS:,} a dimension at most")
    return tuple([n * each for n, each in zip(groups, items, strict=True)]), items

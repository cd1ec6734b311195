"""The arguments of a kernel's call: its ranges, and the others completed and sorted."""

from __future__ import annotations

from dataclasses import field
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import as_handle
from clfuse.arrays.handle import Handle, native_dtype, node_of
from clfuse.arrays.promotion import weak_kind
from clfuse.dataclass import mutable
from clfuse.errors import KernelError
from clfuse.ir import build
from clfuse.ir.traced_number import TracedNumber
from clfuse.user_kernels.language.array_route.accesses import Domain
from clfuse.user_kernels.language.source.checked_source import Source
from clfuse.user_kernels.language.source.types import (
    COMPLEX,
    FLOAT,
    INT,
    LEAST,
    MOST,
    WEAK_BOOL,
    Type,
    array_type,
    strong,
)

_WEAK_TYPES: Final[dict[Any, Type]] = {bool: WEAK_BOOL, int: INT, float: FLOAT, complex: COMPLEX}

_MOST_UNSIGNED: Final = (1 << 64) - 1


@mutable
class Arguments:
    """What one call was given, in the order of the parameters behind the indices.

    key: everything but offsets and values.
    cells: without repetition
    handles: the arrays
    offsets: one an array
    numbers: A node, or a Python number.
    kinds: one an argument
    places: of every argument the place in `handles` or `numbers`.
    snapshots: those of `handles` that were NumPy arrays: nobody would see what is written to them.
    """

    key: list[Any] = field(default_factory=list)
    cells: list[Any] = field(default_factory=list)
    handles: list[Handle] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    kinds: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    cell_of: list[int] = field(default_factory=list)
    snapshots: list[Handle] = field(default_factory=list)


def _rank(ranges: Any) -> int:
    """How many indices there are."""
    return len(ranges) if isinstance(ranges, tuple | list) else 1


def domain_of(source: Source, ranges: Any, count: int) -> Domain:
    """The range of every index of a call with `count` other arguments."""
    items = ranges if isinstance(ranges, tuple | list) else (ranges,)
    domain = []
    for item in items:
        if isinstance(item, range):
            if item.step != 1:
                raise ValueError(
                    f"{source.function.__name__}: ranges have steps of 1, not {item.step}: "
                    "calculate the index in the kernel"
                )
            domain.append((item.start, item.stop))
        elif isinstance(item, tuple | list):
            if len(item) != 2:
                raise TypeError(
                    f"{source.function.__name__}: a range is n or (start, stop), not {item!r}"
                )
            domain.append((as_index(item[0]), as_index(item[1])))
        else:
            domain.append((0, as_index(item)))
    if not domain or len(domain) + count != len(source.parameters):
        raise TypeError(
            f"{source.function.__name__}({', '.join(source.parameters)}): {len(domain)} index(es) "
            f"and {count} argument(s) given"
        )
    return tuple(domain)


def complete(
    source: Source, ranges: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments by their place: those by name, and defaults."""
    names = source.parameters[_rank(ranges):]
    if not named and len(args) == len(names):
        return args
    kernel = source.function.__name__
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name in given:
            raise TypeError(f"{kernel}() got multiple values for argument {name!r}")
        if name not in names:
            raise TypeError(
                f"{kernel}({', '.join(source.parameters)}) got an unexpected keyword "
                f"argument {name!r}; behind {_rank(ranges)} index(es) there are "
                f"{', '.join(names)}"
            )
        given[name] = value
    given = source.defaults | given
    missing = [name for name in names if name not in given]
    if missing and len(args) <= len(names):
        raise TypeError(f"{kernel}() misses {', '.join(missing)}")
    return (*[given[name] for name in names if name in given], *args[len(names):])


def given_by(name: str, args: tuple[Any, ...]) -> Arguments:
    """The arguments of a call of the kernel `name`, sorted; numbers of the surroundings aside."""
    found = Arguments()
    key, cells = found.key, found.cells
    numbers: dict[int, int] = {}
    for argument in args:
        kind = type(argument)
        if kind is handles.ARRAY and argument._shape:
            _add_array(found, numbers, argument)
            continue
        if kind is np.ndarray and native_dtype(argument.dtype) is None:
            kind = argument.dtype.type  # refused below
        elif kind is np.ndarray and argument.ndim:
            made = as_handle(argument)
            _add_array(found, numbers, made)
            found.snapshots.append(made)
            key.append("snapshot")
            continue
        if isinstance(argument, Handle) or kind is np.ndarray:
            node = node_of(as_handle(argument))
            found.kinds.append(strong(node.dtype))
            value: Any = node
        elif kind in _WEAK_TYPES or kind is TracedNumber:
            found.kinds.append(_WEAK_TYPES[weak_kind(argument) or bool])
            value = argument
            if kind is int and not LEAST <= argument <= MOST:
                value = _large(name, found, argument)
        elif isinstance(argument, np.generic) and native_dtype(argument.dtype) is not None:
            value = build.constant(argument)
            found.kinds.append(strong(value.dtype))
        elif isinstance(argument, int | float | complex):  # an IntEnum, or its like
            base: Any = next(each for each in (int, float, complex) if isinstance(argument, each))
            value = base(argument)
            found.kinds.append(_WEAK_TYPES[base])
            if base is int and not LEAST <= value <= MOST:
                value = _large(name, found, value)
        else:
            raise KernelError(
                f"{name}: argument {len(found.kinds) + 1} is {_described(argument)}; kernels "
                "take arrays and numbers: clfuse.asarray(...) makes an array"
            )
        found.places.append(len(found.numbers))
        found.numbers.append(value)
        key.append(found.kinds[-1])
    if len(cells) < len(found.handles):
        key.append(tuple(found.cell_of))
        key.append(_distances(found))
    return found


def _large(name: str, found: Arguments, value: int) -> Any:
    """A Python integer that an int64 does not hold: a uint64, as such a literal is."""
    if not 0 <= value <= _MOST_UNSIGNED:
        raise OverflowError(
            f"{name}: argument {len(found.kinds)} is {value}: integers of kernels have 64 bits; "
            "pass a float, or several numbers"
        )
    number = build.constant(np.uint64(value))
    found.kinds[-1] = strong(number.dtype)
    return number


def _described(argument: Any) -> str:
    """What was passed that kernels do not take."""
    if type(argument) is np.ndarray:
        return f"an array of dtype {argument.dtype.str!r}"
    return type(argument).__name__


def _add_array(found: Arguments, numbers: dict[int, int], array: Handle) -> None:
    view = array._view
    storage = array._storage
    if view is None:
        found.offsets.append(0)
        strides, writeable = None, True
    else:
        found.offsets.append(view.offset)
        strides, writeable = view.strides, view.writeable
    cell = numbers.setdefault(id(storage), len(found.cells))
    if cell == len(found.cells):
        found.cells.append(storage)
    found.cell_of.append(cell)
    found.places.append(len(found.handles))
    found.handles.append(array)
    shape, dtype = array._shape, array._dtype
    found.kinds.append(array_type(dtype, len(shape)))
    found.key.append((shape, dtype, strides, storage.node.dtype, writeable))


def may_write(given: Arguments, handle: Handle) -> bool:
    is_snapshot = any(made is handle for made in given.snapshots)
    return (handle._view is None or handle._view.writeable) and not is_snapshot


def _distances(found: Arguments) -> tuple[int, ...]:
    """How far arrays lie behind the first one of their storage."""
    first: dict[int, int] = {}
    return tuple([
        offset - first.setdefault(cell, offset)
        for cell, offset in zip(found.cell_of, found.offsets, strict=True)
    ])



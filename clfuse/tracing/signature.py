"""Signatures: the arguments of one call of a jitted function, flattened, with its arrays.

The docstring of `jit` says what becomes of which argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, from_host
from clfuse.arrays.handle import Handle, native_dtype
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.errors import JitError
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Storage
from clfuse.ir.trace import Trace
from clfuse.ir.traced_number import TracedNumber

__all__ = ["Arguments", "is_scalar"]

_new: Final = object.__new__


def is_scalar(node: Node) -> bool:
    """Whether a cell with this node holds a scalar of the program: a kernel argument."""
    return node.buffer is None and node.op.kind is Kind.CONSTANT


class _Same:
    """An object as part of a key: equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Arguments:
    """The arguments of one call, flattened.

    key (list): what of them belongs to the signature.
    leaves (list of Handle): the arrays, in order.
    cells (dict): storage cell -> its number, in order of first use.
    numbers (list): python's floats and ints, in order.
    uploaded (list of Storage): those that were NumPy arrays.
    objects (list): arguments that are neither arrays nor plain values.
    """

    __slots__ = ("cells", "key", "leaves", "numbers", "objects", "uploaded")

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.leaves: list[Any] = []
        self.cells: dict[Storage, int] = {}
        self.numbers: list[Any] = []
        self.uploaded: list[Storage] = []
        self.objects: list[Any] = []

    def add(self, value: Any) -> Any:
        """Note `value`; returns what the function is to see instead, as a rule itself."""
        kind = type(value)
        if kind is handles.ARRAY or kind in handles.SCALARS:
            self._add_array(value, kind)
            return value
        key = self.key
        if kind is float or kind is int:
            key.append(kind)
            self.numbers.append(value)
            return value
        if kind is bool or kind is str or kind is bytes or value is None:
            key.append((kind, value))
            return value
        if kind is complex:
            key.append((complex, value.real.hex(), value.imag.hex()))
            return value
        if kind is tuple or kind is list:
            key.append((kind, len(value)))
            seen = [self.add(item) for item in value]
            return value if all(map(_is, seen, value)) else kind(seen)
        if kind is dict:
            key.append((dict, *map(_key_of, value)))
            found = {name: self.add(item) for name, item in value.items()}
            return value if all(map(_is, found.values(), value.values())) else found
        return self._add_other(value, kind)

    def values_at(self, places: Sequence[int]) -> tuple[Any, ...]:
        """The numbers at these places, as part of a key."""
        numbers = self.numbers
        # 0.0 is not -0.0, and NaN is NaN.
        return tuple(
            [
                numbers[place].hex() if type(numbers[place]) is float else numbers[place]
                for place in places
            ]
        )

    def traced(self, value: Any, trace: Trace, known: Set[int]) -> Any:
        """What `add` returned for all arguments, with numbers that the trace watches.

        Those at the places `known` stay what they are.
        """
        trace.numbers = len(self.numbers)
        return _with_numbers(value, trace, known, iter(range(len(self.numbers))))

    def _add_array(self, handle: Any, kind: Any) -> None:
        cell = handle._storage
        number = self.cells.setdefault(cell, len(self.cells))
        node = cell.node
        if node.buffer is None and node.op.kind is not Kind.CONSTANT:
            evaluate_nodes([node])
            node = cell.node
        is_scalar = node.buffer is None
        view = handle._view
        if view is None:
            self.key.append((number, handle._shape, handle._dtype.num, is_scalar, kind))
        else:
            self.key.append((
                number, handle._shape, handle._dtype.num, is_scalar, kind, view.offset,
                view.strides, view.writeable, view.ordered, view.base is None, node.shape,
                node.dtype.num,
            ))  # fmt: skip
        self.leaves.append(handle)

    def _add_other(self, value: Any, kind: Any) -> Any:
        if isinstance(value, np.generic):
            dtype = native_dtype(value.dtype)
            if dtype is not None:
                handle = _new(handles.SCALAR_OF[dtype])
                handle._storage = Storage(build.constant(dtype.type(value)))
                handle._shape, handle._dtype, handle._view = (), dtype, None
                self._add_array(handle, type(handle))
                return handle
        elif isinstance(value, np.ndarray):
            if kind is not np.ndarray and kind is not np.memmap:
                raise JitError(f"{kind.__name__}: jit takes no subclasses of numpy.ndarray")
            try:
                handle = from_host(value)
            except NotNative as reason:
                raise JitError(f"an argument of jit: {reason}") from None
            self.uploaded.append(handle._storage)
            self._add_array(handle, handles.ARRAY)
            return handle
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self.key.append((kind, len(value)))
            seen = [self.add(item) for item in value]
            return value if all(map(_is, seen, value)) else kind(*seen)
        elif isinstance(value, np.dtype | slice | type | range):
            self.key.append((kind, repr(value), _Same(value) if kind is type else None))
            return value
        elif isinstance(value, Handle):
            raise JitError(f"{kind.__name__}: jit takes no subclasses of clfuse.ndarray")
        self.key.append(_Same(value))
        self.objects.append(value)
        return value


def _with_numbers(value: Any, trace: Trace, known: Set[int], places: Iterator[int]) -> Any:
    kind = type(value)
    if kind is float or kind is int:
        place = next(places)
        if place in known:
            return value
        return TracedNumber(trace, value, place, frozenset([place]))
    if kind is dict:
        named = {name: _with_numbers(item, trace, known, places) for name, item in value.items()}
        return value if all(map(_is, named.values(), value.values())) else named
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
        items = [_with_numbers(item, trace, known, places) for item in value]
        if all(map(_is, items, value)):
            return value
        return kind(items) if kind is tuple or kind is list else kind(*items)
    return value


def _is(one: Any, other: Any) -> bool:
    return one is other


def _key_of(name: Any) -> Any:
    return name if type(name) is str else (type(name), name)

"""Record cache: reductions and composed functions, recorded once for equal arguments.

``a.std(0)`` of a long array is 35 nodes, and Python takes 100 us to find out which. For an array of
the same shape and dtype the nodes are the same again, so a list of them is enough: it takes a tenth
of the time.

The cache pays even for ``a.sum()``, which is one node: Python takes 9 us for it, and 120 us where
the processor's caches hold what the last kernel read, as after every sum of a large array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.handle import Handle, native_dtype, result
from clfuse.arrays.host_array import DEFER
from clfuse.arrays.promotion import FLOAT64
from clfuse.ir.nodes import Kind, Node, Op
from clfuse.user_frames import warnings_issued

from .host_call import REMEMBERED

__all__ = ["cache_recording"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_Step = tuple[Op, tuple[int | Node, ...], tuple[int, ...], np.dtype, Any]
"""An operation on numbers of earlier nodes, or on constants."""

MAX_KNOWN: Final = 2048
"""So many are remembered; more are forgotten all at once."""

known: Final[dict[Any, list[_Step] | None]] = {}
"""What was recorded, by `_key`; None is for what is not to be remembered."""


def cache_recording(function: _Function) -> _Function:
    """Decorator: what `function` records for an array depends on the shape, the dtype and the other
    arguments alone, where these are whole numbers, booleans, None or tuples of whole numbers.

    For results that are new arrays. A call that warned is not remembered. Where clfuse is compiled,
    ``_core/record_cache.pxi`` looks into `known` first.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        key = _key(function, args, kwargs)
        if key is None:
            return function(*args, **kwargs)
        try:
            steps = known[key]
        except KeyError:
            warned = warnings_issued[0]
            made = function(*args, **kwargs)
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[key] = _steps_of(made, args[0]) if warnings_issued[0] == warned else None
            return made
        if steps is None:
            return function(*args, **kwargs)
        return result(_recorded(args[0]._storage.node, steps))

    REMEMBERED[call] = function, known
    return call  # type: ignore[return-value]


def _key(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...] | None:
    """What a call is known under; None where it is not to be remembered."""
    if not args or type(args[0]) is not handles.ARRAY:
        return None
    source = args[0]
    shape = source._shape
    kind = source._storage.node.op.kind
    if source._view is not None or kind in _SEEN_THROUGH or min(shape, default=0) < 2:
        return None
    key = [function, shape, source._dtype, native_dtype(FLOAT64), errstate.mode[0]]
    for value in args[1:]:
        value = _simple(value)
        if value is DEFER:
            return None
        key.append(value)
    for name, value in kwargs.items():
        value = _simple(value)
        if value is DEFER:
            return None
        key.append((name, value))
    return tuple(key)


_SEEN_THROUGH: Final = (Kind.VIEW, Kind.CONSTANT, Kind.COMPACT)
"""What recording looks through: other nodes may come of it."""


def _simple(value: Any) -> Any:
    """An argument as a part of a key, or `DEFER`: as keys True and 1 are the same, but no axis may
    be True."""
    kind = type(value)
    if value is None or value is np._NoValue or kind is int or kind is str:
        return value
    if kind is bool:
        return bool, value
    if kind is tuple and all(type(item) is int for item in value):
        return value
    return DEFER


def _steps_of(made: Any, source: Handle) -> list[_Step] | None:
    """How `made` was recorded; None where it is no array of its own, or takes other arrays."""
    if not isinstance(made, Handle) or made is source:
        return None
    if made._view is not None:
        return None
    return _steps(source._storage.node, made._storage.node)


def _steps(source: Node, target: Node) -> list[_Step] | None:
    """How to make `target` of `source`; None where it takes other arrays."""
    numbers = {id(source): 0}
    steps: list[_Step] = []
    open_nodes = [target]
    while open_nodes:
        node = open_nodes[-1]
        if id(node) in numbers or node.op.kind is Kind.CONSTANT:
            open_nodes.pop()
            continue
        if node.buffer is not None or node.op.kind is Kind.LEAF:
            return None
        missing = [
            other
            for other in node.inputs
            if id(other) not in numbers and other.op.kind is not Kind.CONSTANT
        ]
        if missing:
            open_nodes += missing
            continue
        inputs = tuple([numbers.get(id(other), other) for other in node.inputs])
        numbers[id(node)] = len(numbers)
        steps.append((node.op, inputs, node.shape, node.dtype, node.param))
        open_nodes.pop()
    return steps


def _recorded(source: Node, steps: list[_Step], new: Any = object.__new__) -> Node:
    """The last of the nodes that `steps` say."""
    nodes = [source]
    made = source
    for op, inputs, shape, dtype, param in steps:
        made = new(Node)  # as its constructor does, in half the time
        made.op = op
        made.inputs = tuple(
            [nodes[other] if type(other) is int else other for other in inputs]
        )
        made.shape = shape
        made.dtype = dtype
        made.param = param
        made.buffer = None
        made.computed = False
        nodes.append(made)
    return made

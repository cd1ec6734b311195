"""The call cache: known calls of kernels, in the form that ``_core/kernel_calls.pxi`` compares.

Between two kernels that read large arrays the processor's caches hold nothing of Python's. Every
function of a dozen lines takes 5 us then, and from ``dot.reduce(n, x, y)`` to what it records there
are twenty of them. A call whose signature came before goes that way in C: the C code compares the
arguments with those of the earlier call, and carries out the steps of the recipe. In every other
case, and for every error, `Kernel` runs as without a cache.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Sequence
from enum import IntEnum
from types import CellType, ModuleType
from typing import Any, Final, Protocol

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.config import changed, settings
from clfuse.dispatch.host_call import REMEMBERED
from clfuse.ir import build
from clfuse.ir.launch_nodes import Part
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Node, Storage
from clfuse.user_kernels.language.array_route import steps
from clfuse.user_kernels.language.array_route.recipe import Cell, Number, Place, Recipe, Term

from .arguments import Arguments
from .merged_calls import DTYPES

MOST_KNOWN: Final = 8
"""Signatures of a kernel that are compared with the arguments, one after the other."""

MOST_CELLS: Final = 16
"""Storage cells of a call, which are compared with each other; as in ``_core/kernel_calls.pxi``."""

_NUMBERS: Final = frozenset((bool, int, float, complex))
"""Classes of numbers of the surroundings that, as NumPy's scalars, never change."""


class _Code(IntEnum):
    """What a step is; ``_core/kernel_calls.pxi`` knows the commonest."""

    VIEW = 0
    ELEMENTWISE = 1
    FILLED = 2
    UPDATE = 3
    NUMBER = 4
    CONVERTED = 5
    OTHER = 6


class _Argument(IntEnum):
    """What an argument of a step of another kind is."""

    ITSELF = 0
    VALUE = 1
    PLACE = 2
    NUMBER = 3
    SEVERAL = 4


class Knowing(Protocol):
    """A kernel that knows calls."""

    def forget_calls(self) -> None:
        """Let the next call be as the first one."""


made: Final[weakref.WeakSet[Knowing]] = weakref.WeakSet()
"""Every kernel: known calls end with the value of ``CLFUSE_FP64`` that they were made under."""

_fp64: Final = [""]


def _follow_settings() -> None:
    now = vars(settings).get("fp64", "")
    if now and now != _fp64[0]:
        _fp64[0] = now
        for kernel in made:
            kernel.forget_calls()


changed.append(_follow_settings)


def remember(
    calls: list[Any], recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...],
    structural: Sequence[int], fixed: Sequence[tuple[Any, ast.expr]],
) -> None:
    """Know calls like this one from now on, if they are of a kind that is compared in C.

    calls: those that a kernel knows; this one becomes the first.
    structural: places of the numbers whose values the recipe depends on.
    fixed: numbers of the surroundings that the kernel uses.
    """
    if _core is None or any(known.recipe is recipe for known in calls):
        return
    if settings.fp64 == "downcast":  # a known call does not ask which device is the current one
        return
    expected = _arguments(given, args, structural)
    scopes = _surroundings(fixed)
    if expected is None or scopes is None or not _is_plain(ranges):
        return
    if len(given.cells) > MOST_CELLS:
        return
    cells = len(given.cells)
    calls.insert(0, _core.KnownCall(
        recipe, ranges, settings.check, expected, scopes, cells,
        [_step(step, cells) for step in recipe.steps], tuple(recipe.written),
        tuple([item if isinstance(item, Node) else cells + item.number for item in recipe.results]),
        recipe.alike is not None,
    ))
    del calls[MOST_KNOWN:]


def _is_plain(ranges: Any) -> bool:
    if type(ranges) is tuple:
        return all(map(_is_plain, ranges))
    return type(ranges) is int or type(ranges) is range


def _arguments(
    given: Arguments, args: tuple[Any, ...], structural: Sequence[int]
) -> list[tuple[Any, ...]] | None:
    """What arguments are compared with; None where that would not do."""
    found: list[tuple[Any, ...]] = []
    first: dict[int, int] = {}
    for argument, place in zip(args, given.places, strict=True):
        kind = type(argument)
        if kind in DTYPES:
            value = argument if place in structural else None
            found.append((kind, None, value))
        elif kind in handles.SCALARS and argument._view is None:
            if place in structural or given.numbers[place] is not argument._storage.node:
                return None
            found.append((kind, None, argument._dtype))
        elif kind is handles.ARRAY and argument._shape and given.handles[place] is argument:
            storage = argument._storage
            view = argument._view
            if type(storage) is not Storage:
                return None
            strides, writeable = (None, True) if view is None else (view.strides, view.writeable)
            cell, offset = given.cell_of[place], given.offsets[place]
            found.append((
                kind, argument._shape, argument._dtype, strides, writeable, storage.node.dtype,
                cell, offset - first.setdefault(cell, offset),
            ))
        else:
            return None
    return found


def _surroundings(
    fixed: Sequence[tuple[Any, ast.expr]]
) -> list[tuple[dict[str, Any] | CellType, str, Any]] | None:
    """Where each of these numbers is looked up, and what has to be there: scopes and cells of
    functions, names, objects. None for what is no attribute of a module."""
    found: list[tuple[dict[str, Any] | CellType, str, Any]] = []
    for source, node in fixed:
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        cell, value = source.cell_of(node.id), source.lookup(node.id)
        if cell is not None:
            found.append((cell, node.id, value))
        elif node.id in source.function.__globals__:
            found.append((source.function.__globals__, node.id, value))
        else:
            return None  # of a builtin name: one that hides it may come
        for name in reversed(names):
            if type(value) is not ModuleType or name not in vars(value):
                return None
            found.append((vars(value), name, vars(value)[name]))
            value = vars(value)[name]
        if type(value) not in _NUMBERS and not isinstance(value, np.generic):
            return None
    return found


def _step(step: Any, cells: int) -> tuple[Any, ...]:
    """A step by numbers: of the cells, then of the terms."""

    def number(item: Any) -> int | None:
        if isinstance(item, Cell):
            return item.number
        return cells + item.number if isinstance(item, Term) else None

    target, function, given = number(step.target), step.function, step.arguments
    source = number(given[0]) if given else None
    if function is build.view and source is not None and isinstance(given[2], int | Place):
        _, shape, offset, strides = given
        is_whole = strides == contiguous_strides(shape)
        return (_Code.VIEW, target, source, shape, *_offset(offset), strides, is_whole)
    if function is build.elementwise and all(
        isinstance(operand, Term | Cell | Node) for operand in given[1]
    ):
        op, operands, shape = given
        numbers = tuple([
            operand if isinstance(operand, Node) else number(operand) for operand in operands
        ])
        return _Code.ELEMENTWISE, target, op, numbers, shape
    if function is steps.fill_indices and source is not None:
        return _Code.FILLED, target, source, given[1], given[2]
    if function is build.update and source is not None and isinstance(given[1], Term):
        _, value, offset, strides = given
        is_whole = strides == contiguous_strides(value.shape)
        return (_Code.UPDATE, target, source, number(value), *_offset(offset), strides, is_whole)
    if function is steps.number:
        return _Code.NUMBER, target, given[0].position, given[1]
    if function is steps.convert_node and source is not None:
        return _Code.CONVERTED, target, source, given[1]
    return _Code.OTHER, target, function, tuple([_written(item, cells) for item in given])


def _offset(offset: int | Place) -> tuple[int, int]:
    """The number of an array, or -1, and what is added to its offset."""
    return (-1, offset) if isinstance(offset, int) else (offset.array, offset.offset)


def _written(item: Any, cells: int) -> tuple[Any, ...]:
    """An argument of a step of another kind."""
    if isinstance(item, Cell):
        return _Argument.VALUE, item.number
    if isinstance(item, Term):
        return _Argument.VALUE, cells + item.number
    if isinstance(item, Place):
        return _Argument.PLACE, item.array, item.offset
    if isinstance(item, Number):
        return _Argument.NUMBER, item.position
    if type(item) is tuple and any(isinstance(part, Cell | Term | Place | Number) for part in item):
        return _Argument.SEVERAL, tuple([_written(part, cells) for part in item])
    return _Argument.ITSELF, item


def _remembered(function: Any) -> tuple[Any, dict[Any, Any]]:
    """What `dispatch.record_cache` keeps of a function: what it is of, and what it knows."""
    while function not in REMEMBERED:
        function = function.__wrapped__
    return REMEMBERED[function]


_core: Final = loading.load()


def accelerate(kernel: type, operations: dict[str, Any]) -> None:
    """Let calls of kernels, and what folds their values, look for a known call first."""
    if _core is not None:
        _core.connect_kernels(kernel, {
            "MOST_CELLS": MOST_CELLS, "Node": Node, "Part": Part, "converted": steps.convert_node,
            "filled": steps.fill_indices, "number": steps.number, "update": build.update,
            "view": build.view,
            "operations": {
                name: (function, *_remembered(function))
                for name, function in operations.items()
            },
        })

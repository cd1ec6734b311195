"""Nodes for a part, along one axis, of other nodes.

    y = exp(x - x.max(1, keepdims=True))       rows 100 to 200 of y are the same operations
    rows 100 to 200 of x -> max -> subtract -> exp

Each operation says which part of its operands is needed: a map needs the same rows, a stencil some
rows more, a transposed array columns. Operands that are needed as a whole (a fold of the axis that
is cut, an array that positions are taken from) have to be in memory before; so have those that
cannot be cut (`Slices.whole`). The graph that was recorded does not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides, delinearize, linearize, reach
from clfuse.ir.nodes import Kind, Node

__all__ = ["Slices", "is_given"]

Request = tuple[Node, int, int, int]
"""A node, and which part: axis, first index, end."""

Cut = Callable[[Node, int, int, int], Node]
"""The part of what lies in memory."""

Given = Callable[[Node], Node]
"""What to read in place of all of a node that `is_given`."""

ALL: Final = -1
"""In place of an axis: all of the node."""

INT64: Final = np.dtype(np.int64)


def is_given(node: Node) -> bool:
    """Whether all of a node takes nothing to be computed: it is in memory, or takes none."""
    while node.buffer is None:
        kind = node.op.kind
        if kind is Kind.CONSTANT or kind is Kind.IOTA:
            return True
        if kind is not Kind.VIEW:
            return False
        (node,) = node.inputs
    return True


class Slices:
    """Parts of nodes, each made once.

    Parameters
    ----------
    cut, given : callable
        As `Cut` and `Given`.

    whole (dict of Node): what the parts that were made need all of, in the order in which it was
        met. Where it is not in memory, it has to be computed, and the parts to be made again.
    later (dict of Node): what cannot be cut before it is in memory, and how many elements of it
        were needed at most.
    """

    def __init__(self, cut: Cut, given: Given = lambda node: node) -> None:
        self._cut = cut
        self._given = given
        self._made: dict[Request, Node] = {}
        self.whole: dict[Node, None] = {}
        self.later: dict[Node, int] = {}

    def part(self, node: Node, axis: int, start: int, stop: int) -> Node:
        """The elements of `node` with an index along `axis` from `start` up to `stop`: some."""
        return self._find((node, axis, start, stop))

    def narrowed(self, node: Node) -> Node:
        """All of a node, for which views take no more than they need of what they are views of."""
        return self._find((node, ALL, 0, 0))

    def missing(self) -> list[Node]:
        """What has to be computed before the parts that were made are right."""
        whole = [node for node in self.whole if not is_given(node)]
        return list(dict.fromkeys([*whole, *self.later]))

    def _find(self, wanted: Request) -> Node:
        """No recursion: graphs may be deep."""
        stack = [wanted]
        made = self._made
        while stack:
            request = stack[-1]
            if request in made:
                stack.pop()
                continue
            needs, make = self._rule(*request)
            missing = [each for each in needs if each is not None and each not in made]
            if missing:
                stack += missing
                continue
            made[request] = make([None if each is None else made[each] for each in needs])
            stack.pop()
        return made[wanted]

    def all_of(self, node: Node) -> Node:
        """The node itself, or what is read in its place."""
        self.whole[node] = None
        return self._given(node) if is_given(node) else node

    def _rule(
        self, node: Node, axis: int, start: int, stop: int
    ) -> tuple[Sequence[Request | None], Callable[[Sequence[Any]], Node]]:
        """The parts of other nodes that a part needs, and what makes it of them."""
        if axis == ALL:
            return self._rule_of_all(node)
        if node.buffer is not None:
            return (), lambda _: self._cut(node, axis, start, stop)
        inputs = node.inputs  # of a late node before the rest
        if 0 in node.shape:
            return (), lambda _: self._cut_later(node, axis, start, stop)
        rule = _RULES.get(node.op.kind)
        found = None if rule is None else rule(self, node, inputs, axis, start, stop)
        if found is None:
            return (), lambda _: self._cut_later(node, axis, start, stop)
        return found  # type: ignore[no-any-return]

    def _rule_of_all(
        self, node: Node
    ) -> tuple[Sequence[Request | None], Callable[[Sequence[Any]], Node]]:
        if is_given(node):
            return (), lambda _: self.all_of(node)
        inputs = node.inputs  # as in `_rule`
        if 0 in node.shape or node.op.kind not in _RULES:
            return (), lambda _: node
        if node.op.kind is Kind.VIEW:
            (source,) = inputs
            found = None
            if math.prod(source.shape) > 1:
                offset, strides = node.param
                found = _along_axis(source.shape, node.shape, offset, strides)
            if found is not None:
                along, low, high, offset, strides = found
                return [(source, along, low, high)], lambda parts: build.view(
                    parts[0], node.shape, offset, strides
                )

        def make(parts: Sequence[Any]) -> Node:
            if all(part is each for part, each in zip(parts, inputs, strict=True)):
                return node
            return Node(node.op, tuple(parts), node.shape, node.dtype, node.param)

        return [(each, ALL, 0, 0) for each in inputs], make

    def _cut_later(self, node: Node, axis: int, start: int, stop: int) -> Node:
        made = _viewed(node, axis, start, stop)
        self.later[node] = max(self.later.get(node, 0), math.prod(made.shape))
        return made

    # -- one kind of operation each ----------------------------------------------------------------

    def _iota(self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int) -> Any:
        # A constant is no part of a plan's structure: one plan serves all parts.
        first = build.constant(np.int64(start))

        def make(_: Sequence[Any]) -> Node:
            return build.apply("add", (build.iota(stop - start), first), INT64, (stop - start,))

        return (), make

    def _map(self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int) -> Any:
        needs = [self._broadcast(node, operand, axis, start, stop) for operand in inputs]
        shape = _with(node.shape, axis, stop - start)

        def make(parts: Sequence[Any]) -> Node:
            return Node(node.op, self._filled(parts, inputs), shape, node.dtype, node.param)

        return needs, make

    def _view(self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int) -> Any:
        (source,) = inputs
        offset, strides = node.param
        shape = _with(node.shape, axis, stop - start)
        offset += start * strides[axis]
        found = None
        # What does not move with the part is the same for all parts.
        if math.prod(source.shape) > 1 and (strides[axis] or node.shape[axis] == 1):
            found = _along_axis(source.shape, shape, offset, strides)
        if found is None:
            return (), lambda _: build.view(self.all_of(source), shape, offset, strides)
        along, low, high, offset, strides = found

        def make(parts: Sequence[Any]) -> Node:
            return build.view(parts[0], shape, offset, strides)

        return [(source, along, low, high)], make

    def _update(
        self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int
    ) -> Any:
        old, value = inputs
        axes = delinearize(old.shape, value.shape, *node.param)
        if axes is None:
            return None
        below = (old, axis, start, stop)
        first, coefficients = axes[axis]
        moving = [dim for dim, coefficient in enumerate(coefficients) if coefficient]
        if len(moving) > 1:
            return None
        if not moving:
            if not start <= first < stop:
                return [below], lambda parts: parts[0]
            dim, low, high = None, 0, 0
        else:
            (dim,) = moving
            low, high = _within(first, coefficients[dim], value.shape[dim], start, stop)
            if low >= high:
                return [below], lambda parts: parts[0]
        moved = []
        for number, (begin, row) in enumerate(axes):
            begin = begin + (0 if dim is None else row[dim] * low)
            moved.append((begin - start if number == axis else begin, row))
        shape = _with(old.shape, axis, stop - start)
        offset, strides = linearize(shape, moved, len(value.shape))

        def make(parts: Sequence[Any]) -> Node:
            written = self.all_of(value) if dim is None else parts[1]
            return build.update(parts[0], written, offset, strides)

        return [below, None if dim is None else (value, dim, low, high)], make

    def _concatenate(
        self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int
    ) -> Any:
        if axis != node.param:
            needs = [(operand, axis, start, stop) for operand in inputs]
        else:
            needs = []
            before = 0
            for operand in inputs:
                extent = operand.shape[axis]
                low, high = max(start - before, 0), min(stop - before, extent)
                if low < high:
                    needs.append((operand, axis, low, high))
                before += extent
        return needs, lambda parts: build.concatenate(list(parts), node.param)

    def _fold(self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int) -> Any:
        (source,) = inputs
        kept = [number for number in range(len(source.shape)) if number not in node.param]
        shape = _with(node.shape, axis, stop - start)

        def make(parts: Sequence[Any]) -> Node:
            return Node(node.op, (parts[0],), shape, node.dtype, node.param)

        return [(source, kept[axis], start, stop)], make

    def _scan(self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int) -> Any:
        if axis in node.param:
            return None
        return self._map(node, inputs, axis, start, stop)

    def _gather(
        self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int
    ) -> Any:
        source, position = inputs
        offset, strides = node.param
        param = (offset + start * strides[axis], strides)
        need = self._broadcast(node, position, axis, start, stop)
        shape = _with(node.shape, axis, stop - start)

        def make(parts: Sequence[Any]) -> Node:
            (place,) = self._filled(parts, [position])
            return Node(node.op, (self.all_of(source), place), shape, node.dtype, param)

        return [need], make

    def _library(
        self, node: Node, inputs: tuple[Node, ...], axis: int, start: int, stop: int
    ) -> Any:
        if node.op.name != "matmul" or len(node.shape) != 2:
            return None
        if any(len(operand.shape) != 2 for operand in inputs):
            return None
        needs: list[Request | None] = [None, None]
        needs[axis] = (inputs[axis], axis, start, stop)
        shape = _with(node.shape, axis, stop - start)

        def make(parts: Sequence[Any]) -> Node:
            return Node(node.op, self._filled(parts, inputs), shape, node.dtype, node.param)

        return needs, make

    def _broadcast(
        self, node: Node, operand: Node, axis: int, start: int, stop: int
    ) -> Request | None:
        """What the part of a node needs of an operand that broadcasts to it; None: all."""
        own = axis - (len(node.shape) - len(operand.shape))
        if own < 0 or (operand.shape[own] == 1 and node.shape[axis] != 1):
            return None
        return operand, own, start, stop

    def _filled(self, parts: Sequence[Any], operands: Sequence[Node]) -> tuple[Node, ...]:
        """The operands, or parts of them where there are some."""
        pairs = zip(parts, operands, strict=True)
        return tuple([self.all_of(each) if part is None else part for part, each in pairs])


_RULES: Final[dict[Kind, Callable[..., Any]]] = {
    Kind.IOTA: Slices._iota,
    Kind.MAP: Slices._map,
    Kind.VIEW: Slices._view,
    Kind.UPDATE: Slices._update,
    Kind.CONCATENATE: Slices._concatenate,
    Kind.REDUCE: Slices._fold,
    Kind.ARGREDUCE: Slices._fold,
    Kind.SCAN: Slices._scan,
    Kind.GATHER: Slices._gather,
    Kind.LIBRARY: Slices._library,
}


def _with(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _viewed(node: Node, axis: int, start: int, stop: int) -> Node:
    """The part as a view of all of the node."""
    strides = contiguous_strides(node.shape)
    shape = _with(node.shape, axis, stop - start)
    return build.view(node, shape, start * strides[axis], strides)


def _within(first: int, step: int, count: int, start: int, stop: int) -> tuple[int, int]:
    """For which indices, from one up to another, ``first + step * index`` is within a part.

    >>> _within(1, 2, 10, 4, 8), _within(9, -1, 10, 0, 3), _within(0, 1, 4, 6, 8)
    ((2, 4), (7, 10), (4, 4))
    """
    if step > 0:
        low, high = -((first - start) // step), -((first - stop) // step)
    else:
        low, high = (first - stop) // -step + 1, (first - start) // -step + 1
    low = min(max(low, 0), count)
    return low, max(min(high, count), low)


def _along_axis(
    extents: tuple[int, ...], shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> tuple[int, int, int, int, tuple[int, ...]] | None:
    """A part of the array of these `extents` in which a view lies: axis, first index, end; and the
    view's offset and strides in that part. None where the view reaches over all of it.

    >>> _along_axis((100, 6), (10, 6), 120, (6, 1))  # rows 20 to 30
    (0, 20, 30, 0, (6, 1))
    >>> _along_axis((100, 6), (2, 100), 3, (1, 6))  # columns 3 and 4
    (1, 3, 5, 0, (1, 2))
    >>> _along_axis((100, 6), (12,), 15, (1,))  # elements of rows 2 to 4
    (0, 2, 5, 3, (1,))
    """
    axes = delinearize(extents, shape, offset, strides)
    if axes is not None:
        best = None
        for number, (start, row) in enumerate(axes):
            low, high = reach(shape, start, row)
            share = (high + 1 - low) / extents[number]
            if share < 1 and (best is None or share < best[0]):
                best = share, number, low, high + 1
        if best is None:
            return None
        _, along, low, high = best
        moved = [
            (start - low if number == along else start, row)
            for number, (start, row) in enumerate(axes)
        ]
        offset, strides = linearize(_with(extents, along, high - low), moved, len(shape))
        return along, low, high, offset, strides
    row_size = math.prod(extents[1:])
    first, last = reach(shape, offset, strides)
    low, high = first // row_size, last // row_size + 1
    if low == 0 and high == extents[0]:
        return None
    return 0, low, high, offset - low * row_size, strides

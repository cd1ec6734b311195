"""Boxes: parts of the range in which a condition on the indices alone is true or false.

``0 < i and i < n - 1`` over ``range(n)`` is false at 0, true from 1 to n - 2, false at n - 1: three
boxes. A branch runs in the boxes where it is taken, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from clfuse.dataclass import frozen
from clfuse.user_kernels.language.source import tree
from clfuse.user_kernels.language.source.types import INT

from .accesses import Affine, Domain

_LIMIT: Final = 64
"""Boxes of one kernel: each statement in them is written down once a box."""


class NotArrays(Exception):
    """Why a kernel is a launch of its own."""


@frozen
class Segments:
    """Along one axis, from where on a condition is true or false, and where the last one ends."""

    axis: int
    parts: tuple[tuple[int, int, bool], ...]


def _merged(parts: list[tuple[int, int, bool]]) -> tuple[tuple[int, int, bool], ...]:
    """Without what is empty, neighbours of one truth as one."""
    found: list[tuple[int, int, bool]] = []
    for start, stop, truth in parts:
        if start >= stop:
            continue
        if found and found[-1][2] == truth:
            found[-1] = (found[-1][0], stop, truth)
        else:
            found.append((start, stop, truth))
    return tuple(found)


def compare_index(name: str, difference: Affine, axis: int, start: int, stop: int) -> Segments:
    """Where ``difference (name) 0`` holds, for one index that runs from `start` to `stop`.

    >>> compare_index("less", Affine(-3, (1,)), 0, 0, 10).parts
    ((0, 3, True), (3, 10, False))
    """
    factor, constant = difference.coefficient(axis), difference.constant
    if name in ("equal", "not_equal"):
        place, rest = divmod(-constant, factor)
        inside = not rest and start <= place < stop
        ends = (place, place + 1) if inside else (stop, stop)
        is_equal = name == "equal"
        parts = [(start, ends[0], not is_equal), (*ends, is_equal), (ends[1], stop, not is_equal)]
        return Segments(axis, _merged(parts))
    # factor * i + constant < 0, and its kind: true up to a limit, or from it on.
    if name in ("greater", "greater_equal"):
        factor, constant = -factor, -constant
    strict = name in ("less", "greater")
    if factor > 0:  # i < -constant / factor: the first i for which it is false
        limit = -(constant // factor) if strict else -constant // factor + 1
        truths = (True, False)
    else:  # i > constant / -factor: the first i for which it is true
        limit = constant // -factor + 1 if strict else -(-constant // -factor)
        truths = (False, True)
    limit = min(max(limit, start), stop)
    return Segments(axis, _merged([(start, limit, truths[0]), (limit, stop, truths[1])]))


class Boxes:
    """What `Translation` knows of conditions; it has the domain and the values."""

    domain: Domain
    boxes: int
    frame: Any

    def affine(self, value: Any) -> Affine | None:
        """A value as an integer of the indices."""
        raise NotImplementedError

    def value(self, node: tree.Expr) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def parts(self, segments: Segments) -> Iterator[tuple[Domain, bool]]:
        """The boxes of the present domain, and whether the condition holds in them."""
        self.boxes += len(segments.parts) - 1
        if self.boxes > _LIMIT:
            raise NotArrays("its conditions cut the range into too many parts")
        outer = self.domain
        for start, stop, truth in segments.parts:
            yield (*outer[: segments.axis], (start, stop), *outer[segments.axis + 1 :]), truth

    def segments(self, test: tree.Expr) -> Segments | None:
        """Where a condition holds, if that depends on one index alone; None otherwise."""
        if isinstance(test, tree.Const):
            return self._constant(bool(test.value))
        if isinstance(test, tree.Not):
            found = self.segments(test.arg)
            if found is None:
                return None
            return Segments(found.axis, tuple([(a, b, not t) for a, b, t in found.parts]))
        if isinstance(test, tree.Logic):
            return self._combined(test)
        if isinstance(test, tree.Apply) and test.op.name in _NAMES and len(test.args) == 2:
            one, other = [self._whole(argument) for argument in test.args]
            if one is not None and other is not None:
                return self._compared(test.op.name, one - other)
        return None

    def _constant(self, truth: bool) -> Segments:
        return Segments(0, ((*self.domain[0], truth),))

    def _compared(self, name: str, difference: Affine) -> Segments | None:
        axes = [axis for axis, factor in enumerate(difference.coefficients) if factor]
        if len(axes) > 1:
            return None
        if not axes:
            # One index that runs over a single place has a coefficient all the same.
            return self._constant(bool(_NAMES[name](difference.constant)))
        return compare_index(name, difference, axes[0], *self.domain[axes[0]])

    def _combined(self, test: tree.Logic) -> Segments | None:
        total: Segments | None = None
        for argument in test.args:
            found = self.segments(argument)
            if found is None:
                return None
            if total is None or len(total.parts) == 1:
                if total is not None and total.parts[0][2] != test.both:
                    continue
                total = found
            elif len(found.parts) == 1:
                if found.parts[0][2] != test.both:
                    return found
            elif found.axis != total.axis:
                return None
            else:
                total = _both(total, found, test.both)
        return total

    def _whole(self, node: tree.Expr) -> Affine | None:
        """An integer of the indices, found without writing anything down."""
        if node.type != INT:
            return None
        if isinstance(node, tree.Const | tree.Index | tree.Extent | tree.Scalar | tree.Local):
            return self.affine(self.value(node))
        if isinstance(node, tree.Apply):
            known = [self._whole(argument) for argument in node.args]
            if all(item is not None for item in known):
                return self.whole(node.op.name, known)
        return None

    def whole(self, name: str, values: list[Any]) -> Affine | None:
        """Arithmetic of integers of the indices."""
        raise NotImplementedError


def _both(one: Segments, other: Segments, both: bool) -> Segments:
    """``and`` (`both`) or ``or`` of two conditions on one index."""
    cuts = sorted({edge for part in (*one.parts, *other.parts) for edge in part[:2]})
    parts = []
    for start, stop in pairwise(cuts):
        truths = [next(t for a, b, t in side.parts if a <= start < b) for side in (one, other)]
        parts.append((start, stop, all(truths) if both else any(truths)))
    return Segments(one.axis, _merged(parts))


_NAMES: Final = {
    "equal": lambda d: d == 0,
    "not_equal": lambda d: d != 0,
    "less": lambda d: d < 0,
    "less_equal": lambda d: d <= 0,
    "greater": lambda d: d > 0,
    "greater_equal": lambda d: d >= 0,
}

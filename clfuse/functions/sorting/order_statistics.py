"""Order statistics of one long lane: NumPy's own code, which is given the few elements it asks for.

    median(x)   NumPy's code asks for ``partition(x, n // 2)`` and takes element n // 2
    sample      16,384 elements, sorted: the middle one lies between lo and hi, nearly surely
    counts      of elements below lo, at lo, below hi, at hi: one kernel reads x
    packed      x[(lo < x) & (x < hi)], some percent of it: partitioned on the host
    element     number n // 2 - counts[at or below lo] of these

NumPy partitions the whole lane, on one core. What its code does with the elements, how it
interpolates, and what it says of NaN, is left to it: it sees an array (`Lane`) that has a shape and
a dtype, and no elements but those of the ranks that it has asked to be in their places.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clfuse.arrays.conversion import NotNative
from clfuse.arrays.expressions import combine, convert
from clfuse.arrays.handle import Handle, node_of
from clfuse.arrays.promotion import INT64
from clfuse.dataclass import mutable
from clfuse.engine.evaluate import Left, by_kernels_alone, evaluate_nodes
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.functions.indexing.masks import select_by_mask
from clfuse.ir import build
from clfuse.ir.nodes import Node

__all__ = ["is_understood", "of_lane"]

SAMPLED: Final = 1 << 14

WIDTH: Final = 3.5
"""Standard deviations, of where an element lies in the sample, that it is looked for to each side:
one of 2,000 is not found there."""

MARGIN: Final = 8
"""Places of the sample beside these: near the ends the deviation is none."""

MOST: Final = 6
"""Stretches of ranks that are looked for at once: each is four counts in a kernel."""


@mutable
class _Stretch:
    """Elements between two of the sample, and how many are below and up to either of these.

    Without an end it goes to the least or the largest number. Of the elements `inside` those of the
    ranks `placed` are in their places.
    """

    low: Any
    high: Any
    below: int
    to_low: int
    below_high: int
    to_high: int
    inside: npt.NDArray[Any]
    placed: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many elements are inside."""
        return max(self.below_high - self.to_low, 0)

    def fill(self, packed: npt.NDArray[Any], *, is_all: bool) -> None:
        """Take the elements inside from those of all stretches."""
        if is_all:
            packed = packed.copy()
        elif self.low is not None:
            packed = packed[packed > self.low]
        if not is_all and self.high is not None:
            packed = packed[packed < self.high]
        if len(packed) != self.count:
            raise NotNative("of elements that changed meanwhile")
        self.inside = packed

    def place(self, ranks: Sequence[int]) -> None:
        """Have the elements of these ranks in their places, if they are inside."""
        wanted = {rank for rank in ranks if self.to_low <= rank < self.below_high} - self.placed
        if wanted:
            self.placed |= wanted
            self.inside.partition([rank - self.to_low for rank in self.placed])

    def element(self, rank: int) -> Any:
        """The element of this rank, which is placed; None where it lies elsewhere."""
        if not self.below <= rank < self.to_high:
            return None
        if rank < self.to_low:
            return self.low
        return self.high if rank >= self.below_high else self.inside[rank - self.to_low]


class _Ranks:
    """The elements of an array by their ranks, NaN last."""

    def __init__(self, handle: Handle, values: npt.NDArray[Any]) -> None:
        self.count = values.size
        self._lane = build.reshape(node_of(handle), (self.count,))
        values = values.reshape(-1)
        # Places as far from each other as those of the golden section, in no step of the array's.
        turns = np.arange(SAMPLED, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        places = (turns >> np.uint64(32)) * np.uint64(self.count) >> np.uint64(32)
        self._sample = np.sort(values[places.astype(np.int64)])
        self._nans = -1
        self._known: list[_Stretch] = []

    def elements(self, ranks: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The elements of these ranks, as an array of their shape.

        Raises NotNative: they are too many, or lie where they are not looked for.
        """
        wanted = np.unique(ranks).tolist()
        missing = [rank for rank in wanted if self._element(rank) is None]
        if missing:
            self._look_for(missing)
        for stretch in self._known:
            stretch.place(wanted)
        found = [self._element(rank) for rank in wanted]
        if any(each is None for each in found):
            raise NotNative("of elements that the sample does not show")
        return np.array(found, self._sample.dtype)[np.searchsorted(wanted, ranks)]

    def _element(self, rank: int) -> Any:
        if self._nans >= 0 and rank >= self.count - self._nans:
            return self._sample.dtype.type(np.nan)
        each = (stretch.element(rank) for stretch in self._known)
        return next((element for element in each if element is not None), None)

    def _ends(self, ranks: Sequence[int]) -> list[tuple[Any, Any]]:
        """The ends of stretches that these ranks lie in, nearly surely, apart from each other."""
        size = SAMPLED
        ends: list[list[int]] = []
        for rank in ranks:
            part = (rank + 0.5) / self.count
            reach = WIDTH * math.sqrt(size * part * (1 - part)) + MARGIN
            low, high = math.floor(part * size - reach), math.ceil(part * size + reach)
            if ends and low <= ends[-1][1]:
                ends[-1][1] = high
            else:
                ends.append([low, high])
        if len(ends) > MOST:
            raise NotNative("of elements in many places")
        # NaN is behind all numbers: up to there a stretch has no high end.
        numbers = self._sample[self._sample == self._sample]
        if not len(numbers):
            raise NotNative("of elements anywhere")
        return [
            (
                None if low < 0 else numbers[min(low, len(numbers) - 1)],
                None if high >= len(numbers) else numbers[high],
            )
            for low, high in ends
        ]

    def _look_for(self, ranks: Sequence[int]) -> None:
        lane, ends = self._lane, self._ends(ranks)
        asks_for_nans = self._sample.dtype.kind == "f" and self._nans < 0
        tests = [combine(np.not_equal, lane, lane)] if asks_for_nans else []
        inside: Node | None = None
        for low, high in ends:
            within = [
                combine(function, lane, build.constant(end))
                for function, end in ((np.greater, low), (np.less, high)) if end is not None
            ]
            if not within:
                raise NotNative("of elements anywhere")
            both = within[0] if len(within) == 1 else combine(np.logical_and, *within)
            inside = both if inside is None else combine(np.logical_or, inside, both)
            tests += [
                combine(function, lane, build.constant(end))
                for end in (low, high) if end is not None
                for function in (np.less, np.less_equal)
            ]
        assert inside is not None
        counts = [build.reduce("add", convert(test, INT64), (0,), INT64) for test in tests]
        try:
            with by_kernels_alone():
                evaluate_nodes(counts)
                numbers = iter([int(stored_view(count)) for count in counts])
                if asks_for_nans:
                    self._nans = next(numbers)
                found = [self._counted(low, high, numbers) for low, high in ends]
                if any(stretch.count for stretch in found):
                    packed_node = select_by_mask(lane, inside)
                    evaluate_nodes([packed_node])
                    for stretch in found:
                        stretch.fill(stored_view(packed_node), is_all=len(found) == 1)
        except Left as cause:
            raise NotNative("before there are kernels") from cause
        self._known += found

    def _counted(self, low: Any, high: Any, numbers: Iterator[int]) -> _Stretch:
        """A stretch whose elements are not known yet."""
        whole = self.count - max(self._nans, 0)
        below, to_low = (next(numbers), next(numbers)) if low is not None else (0, 0)
        below_high, to_high = (
            (next(numbers), next(numbers)) if high is not None else (whole, whole)
        )
        return _Stretch(low, high, below, to_low, below_high, to_high, self._sample[:0])


_SEEN: Final = frozenset((
    "shape", "ndim", "size", "dtype", "itemsize", "partition", "take", "copy", "flatten", "ravel",
    "__class__", "__array_function__", "__array_finalize__", "__array_ufunc__", "__dict__",
    "_ranks",
))  # fmt: skip


class Lane(np.ndarray):
    """An array in NumPy's code whose elements are asked for by their ranks: there is no memory
    behind it, and whatever else is asked of it raises `NotNative`."""

    _ranks: _Ranks | _Listed

    def __getattribute__(self, name: str) -> Any:
        if name not in _SEEN:
            raise NotNative(f"with {name} of the array")
        return super().__getattribute__(name)

    def partition(self, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> None:
        """Have the elements of these ranks in their places."""
        del axis, kind, order
        ranks = np.asarray(kth)
        self._ranks.elements(np.where(ranks < 0, ranks + self.size, ranks))

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """Elements at places that are ranks."""
        del axis, mode
        if out is not None:
            raise NotNative("into an array")
        return self[np.asarray(indices)]

    def __getitem__(self, index: Any) -> Any:
        parts = [part for part in (index if isinstance(index, tuple) else (index,))
                 if part is not Ellipsis]  # fmt: skip
        if len(parts) != 1:
            raise NotNative("with several indices of one lane")
        (part,) = parts
        if isinstance(part, slice):
            part = range(*part.indices(self.size))
        ranks = np.asarray(part)
        if ranks.dtype.kind not in "iu" or ranks.size > SAMPLED:
            raise NotNative("with indices of another kind")
        found = self._ranks.elements(np.where(ranks < 0, ranks + self.size, ranks))
        return found[()] if not found.ndim else found

    def copy(self, order: Any = "C") -> Lane:
        """Itself: nothing is written to it."""
        return self

    flatten = ravel = copy

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.partition:
            self.partition(*args[1:], **kwargs)
            return self
        if func is np.take:
            return self.take(*args[1:], **kwargs)
        raise NotNative(f"with {func.__name__} of the array")

    def __array_ufunc__(self, ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotNative(f"with {ufunc.__name__} of the array")


class _Listed:
    """Few elements by their ranks, in place of `_Ranks`."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._sorted = np.sort(values)

    def elements(self, ranks: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._sorted[ranks]
        return found


def _lane(dtype: np.dtype, size: int, ranks: _Ranks | _Listed) -> Lane:
    lane = np.broadcast_to(dtype.type(0), (size,)).view(Lane)
    lane._ranks = ranks
    return lane


@functools.cache
def is_understood(reference: Any) -> bool:
    """Whether this release's code for a function asks a `Lane` for elements alone: it is tried on
    a few. Code that read its memory would find zeros."""
    arguments: list[tuple[Any, ...]] = [()]
    if reference is not np.median:
        arguments = [(25,), ([12.5, 75],)] if reference is np.percentile else [(0.25,), ([0.2, 1],)]
    try:
        for values in (np.array([7, 3, 9, 5, 8, 4]), np.array([7.0, 3.0, np.nan, 5.0, 8.0, 4.0])):
            for count in (5, 6):
                few = values[:count]
                for given in arguments:
                    lane = _lane(few.dtype, count, _Listed(few))
                    made = reference.__wrapped__(lane, *given)
                    if not np.array_equal(made, reference(few, *given), equal_nan=True):
                        return False
    except NotNative:
        return False
    return True


def of_lane(reference: Any, handle: Handle) -> Callable[..., Any]:
    """NumPy's function of order statistics for what `handle` holds, all of it one lane: to be
    called with the same array on the host, and the other arguments."""

    def call(values: npt.NDArray[Any], *args: Any, **kwargs: Any) -> Any:
        if is_understood(reference):
            try:
                lane = _lane(values.dtype, values.size, _Ranks(handle, values))
                return reference.__wrapped__(lane, *args, **kwargs)
            except NotNative:
                pass
        return reference(values, *args, **kwargs)

    return call

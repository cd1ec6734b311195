"""Random kernels over random views that may overlap, and what is true of them by brute force.

`tests/nodevice/user_kernels/test_independence.py` asks whether the proof that iterations are
independent is sound; `tests/device/user_kernels/test_kernels_fuzz.py` compares fused, unfused and
plain Python.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

import clfuse as cf
from tests.support.kernel_bodies import function_of

LENGTH = 48
"""Elements of a base buffer."""


@dataclass
class Access:
    """``name[coefficients * indices + constants]``, one an axis of the view.

    It happens where the last index is above `guard`.
    """

    name: str
    places: list[tuple[list[int], int]]
    writes: bool
    guard: int = -1

    @property
    def text(self) -> str:
        parts = []
        for coefficients, constant in self.places:
            terms = [f"{c} * {'ij'[k]}" for k, c in enumerate(coefficients) if c]
            parts.append(" + ".join([*terms, str(constant)]))
        return f"{self.name}[{', '.join(parts)}]"


@dataclass
class Call:
    """A kernel, its range, and for every array the base buffer and the view of it."""

    kernel: Any
    text: str
    domain: tuple[tuple[int, int], ...]
    views: dict[str, tuple[int, tuple[int, ...], int, tuple[int, ...]]]
    accesses: list[Access]

    def arrays(self, bases: list[Any]) -> list[Any]:
        """The views, of NumPy or of clfuse."""
        return [view_of(bases[b], shape, offset, strides)
                for b, shape, offset, strides in self.views.values()]

    def is_defined(self) -> bool:
        """Whether no iteration touches what another writes: by trying all of them."""
        touched: dict[tuple[int, int], tuple[set[Any], set[Any]]] = {}
        for index in itertools.product(*[range(*each) for each in self.domain]):
            for access in self.accesses:
                if index[-1] <= access.guard:
                    continue
                base, _, offset, strides = self.views[access.name]
                place = offset
                for (coefficients, constant), step in zip(access.places, strides, strict=True):
                    place += step * (constant + sum(
                        c * k for c, k in zip(coefficients, index, strict=True)))
                everyone, writers = touched.setdefault((base, place), (set(), set()))
                everyone.add(index)
                if access.writes:
                    writers.add(index)
        return not any(writers and len(everyone) > 1 for everyone, writers in touched.values())


def view_of(base: Any, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Any:
    """A view by basic indexing, so that NumPy and clfuse make the same one."""
    if len(shape) == 1:
        stop = offset + strides[0] * shape[0]
        return base[offset:None if stop < 0 else stop:strides[0]]
    rows, columns = shape
    step = max(strides)
    square = base[: LENGTH // step * step].reshape(LENGTH // step, step)
    square = square[: (rows if strides[0] == step else columns)]
    square = square[:, offset:offset + (columns if strides[0] == step else rows)]
    return square if strides[0] == step else square.T


def random_view(random: np.random.Generator, rank: int) -> tuple[tuple[int, ...], int, Any]:
    """Shape, offset and strides of a view on `LENGTH` elements."""
    if rank == 2:
        step = int(random.integers(6, 9))
        offset = int(random.integers(0, step - 5))
        shape = (5, 5)
        return shape, offset, (step, 1) if random.random() < 0.6 else (1, step)
    extent = int(random.integers(8, 17))
    step = int(random.choice([1, 1, 1, 2, -1]))
    reach = abs(step) * (extent - 1)
    offset = int(random.integers(0, LENGTH - reach))
    return (extent,), offset if step > 0 else offset + reach, (step,)


def random_access(
    random: np.random.Generator, name: str, shape: tuple[int, ...], rank: int, writes: bool,
    domain: tuple[tuple[int, int], ...],
) -> Access:
    """An access that stays within the view for every index of the domain."""
    while True:
        places = []
        axes = list(random.permutation(rank)) if rank == len(shape) else [0] * len(shape)
        if random.random() < 0.6:
            axes = list(range(len(shape)))
        for axis, extent in zip(axes, shape, strict=True):
            coefficients = [0] * rank
            kind = random.random()
            if axis < rank and kind < 0.9:
                coefficients[axis] = int(random.choice([1, 1, 1, 1, 1, 2, -1]))
            ends = [c * (e - (k > 0)) for c, d in zip(coefficients, domain, strict=True) if c
                    for k, e in enumerate(d)]
            low, high = (min(ends), max(ends)) if ends else (0, 0)
            if extent - 1 - high < -low:
                break
            near = min(max(int(random.integers(-1, 2)), -low), extent - 1 - high)
            places.append((coefficients, near))
        else:
            return Access(name, places, writes)


@cf.device_function
def bent(v, w=0.5, turns=1):
    """What random kernels call: a loop, a condition, defaults."""
    for k in range(turns):
        if v > 2:
            v = v - w * k
        else:
            return v + w
    return v


@cf.device_function
def divided(v):
    q, r = divmod(v, 2)
    return q - r


def random_call(random: np.random.Generator, odd: bool = False) -> Call:
    """A kernel of one to three statements over views of one or two buffers.

    `odd` ones call functions, and have a number with a default.
    """
    rank = int(random.integers(1, 3))
    names = ["x", "y", "z"][: int(random.integers(2, 4))]
    views = {}
    for name in names:
        shape, offset, strides = random_view(random, rank)
        views[name] = (int(random.integers(0, 2)), shape, offset, strides)
    extents = [min(views[n][1][axis] for n in names) for axis in range(rank)]
    domain = tuple((int(random.integers(0, 2)), e - int(random.integers(0, 3))) for e in extents)
    accesses: list[Access] = []

    def some(writes: bool) -> Access:
        if writes or random.random() < 0.6:
            known = [a for a in accesses if a.writes == writes or random.random() < 0.5]
            if known and random.random() < 0.5:
                found = known[int(random.integers(len(known)))]
                found = Access(found.name, found.places, writes)
                accesses.append(found)
                return found
        name = str(random.choice(names))
        accesses.append(random_access(random, name, views[name][1], rank, writes, domain))
        return accesses[-1]

    lines = []
    for _ in range(int(random.integers(1, 4))):
        one, other, target = some(False), some(False), some(True)
        symbol = str(random.choice(["+", "-", "*"]))
        second = f"0.5 * {other.text}"
        if odd and random.random() < 0.4:
            second = str(random.choice([
                f"bent({other.text})", f"bent({other.text}, w=a)", f"max({other.text}, 0) * a",
                f"({other.text} if {one.text} > 0 else a)", f"divided({other.text})",
            ]))
        statement = f"{target.text} = {one.text} {symbol} {second} + {rank}"
        kind = random.random()
        if kind < 0.2:
            statement = f"if {one.text} > 1:\n        {statement}"
        elif kind < 0.4:
            guard = int(random.integers(1, 4))
            statement = f"if {'ij'[rank - 1]} > {guard}:\n        {statement}"
            for access in accesses[-3:]:
                access.guard = guard
        lines.append(statement)
    indices = ", ".join("ij"[:rank])
    number = f", a={random.choice([0.5, 1, 2.0])}" if odd else ""
    kernel, text = written(f"{indices}, {', '.join(names)}{number}", lines)
    return Call(kernel, text, domain, views, accesses)


def written(parameters: str, lines: list[str]) -> tuple[Any, str]:
    """A kernel of these lines, and its source."""
    function = function_of("\n".join(lines), parameters, {"bent": bent, "divided": divided})
    return cf.kernel(function), inspect.getsource(function)

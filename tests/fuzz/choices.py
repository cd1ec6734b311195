"""What a random step is made of: variables, numbers, shapes, axes, index expressions.

The generator draws its steps from these; they know the values that NumPy has so far.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.program import Constant, Data, Scalar, Var
from tests.fuzz.reference import Reference
from tests.support import hostile

MOST_ELEMENTS = 400        # of a variable in an ordinary program
MOST_ELEMENTS_LARGE = 8000  # in one whose axes fill vector bodies, tails and several chunks
CHARACTERS = ("small", "small", "halves", "unit", "positive", "hostile")


class Choices:
    """Draws parts of steps.

    Attributes
    ----------
    random : random.Random
        The only source of chance.
    reference : Reference
        What NumPy has so far.
    constants : dict
        Host arrays that the program begins with.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.constants: dict[str, Constant] = {}
        self.reference = Reference(self.constants)
        self.dtypes = self.random.sample(hostile.DTYPES, self.random.randint(1, 4))
        large = self.random.random() < 0.12
        self.most_elements = MOST_ELEMENTS_LARGE if large else MOST_ELEMENTS
        sizes = [1000, 4099, 5000, 70, 33] if large else [2, 3, 4, 5, 7, 8, 13, 17, 33, 67]
        # Few axis lengths in a program, so that shapes meet and broadcast.
        self.lengths = [self.random.choice(sizes), self.random.choice(sizes[-3:] if large
                                                                      else sizes[:6])]
        self.odd_lengths = [1, 1, 0]

    def name(self, wanted: Callable[[Any], bool] = lambda value: True) -> str | None:
        """A variable whose value is as wanted; later ones more often."""
        names = [n for n, v in self.reference.values.items() if wanted(v)]
        if not names:
            return None
        return names[-1 - min(int(self.random.expovariate(0.35)), len(names) - 1)]

    def variable(self) -> Var | None:
        name = self.name()
        return None if name is None else Var(name)

    def array(self, fewest_axes: int = 0) -> str | None:
        return self.name(lambda v: isinstance(v, np.ndarray) and v.ndim >= fewest_axes)

    def value(self, name: str) -> Any:
        return self.reference.values[name]

    def length(self) -> int:
        if self.random.random() < 0.15:
            return self.random.choice(self.odd_lengths)
        return self.random.choice(self.lengths)

    def shape(self) -> tuple[int, ...]:
        while True:
            axes = self.random.choices([0, 1, 2, 3, 4], [1, 6, 5, 2, 1])[0]
            shape = tuple(self.length() for _ in range(axes))
            if np.prod(shape, dtype=int) <= self.most_elements:
                return shape

    def dtype(self) -> str:
        if self.random.random() < 0.1:
            return self.random.choice(hostile.DTYPES)
        return self.random.choice(self.dtypes)

    def constant(self, shape: tuple[int, ...], dtype: str) -> Data:
        name = f"c{len(self.constants)}"
        seed, character = self.random.randrange(1000), self.random.choice(CHARACTERS)
        values = hostile.ordinary(seed, shape, dtype, character)
        recipe = f"ordinary({seed}, {shape}, {dtype!r}, {character!r})"
        self.constants[name] = Constant(np.asarray(values), recipe)
        return Data(name)

    def number(self) -> Any:
        """A Python number, weak in promotion, or a NumPy scalar, strong."""
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice([0, 1, 2, 3, 5, -1, -2, 7, 127, 300])
        if kind < 0.7:
            return self.random.choice([0.5, 1.0, 2.0, -0.0, 0.25, 3.0, -1.5, float("inf"),
                                       float("nan"), 1e30])
        if kind < 0.75:
            return self.random.choice([True, False])
        if kind < 0.8:
            return self.random.choice([complex(0, 1), complex(2, -0.5)])
        dtype = self.dtype()
        value = hostile.ordinary(self.random.randrange(1000), (), dtype,
                                 self.random.choice(CHARACTERS))
        return Scalar(dtype, value.item())

    def partner(self, name: str) -> Any:
        """Something that goes with a variable: mostly one that broadcasts, or a number."""
        if self.random.random() < 0.3:
            return self.number()
        shape = np.shape(self.value(name))

        def fits(value: Any) -> bool:
            try:
                return bool(np.prod(np.broadcast_shapes(shape, np.shape(value)), dtype=int)
                            <= self.most_elements)
            except ValueError:
                return False

        if self.random.random() < 0.03:
            return self.variable()
        other = self.name(fits)
        return self.number() if other is None else Var(other)

    def axis(self, ndim: int) -> int:
        if ndim == 0 or self.random.random() < 0.03:
            return self.random.choice([0, ndim, -ndim - 1])
        return self.random.randrange(-ndim, ndim)

    def axes(self, ndim: int) -> Any:
        if ndim and self.random.random() < 0.4:
            return tuple(self.random.sample(range(ndim), self.random.randint(1, ndim)))
        return self.axis(ndim) if self.random.random() < 0.7 else None

    def key(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """A basic index: integers, slices with any step, Ellipsis, newaxis."""
        key: list[Any] = []
        for n in shape:
            kind = self.random.random()
            if kind < 0.3 and n:
                key.append(self.random.randrange(-n, n))
            elif kind < 0.34:
                key.append(n)  # out of range
            else:
                key.append(self.cut(n))
        if self.random.random() < 0.25:
            place = self.random.randint(0, len(key))
            del key[place:place + self.random.randint(0, 2)]
            key.insert(place, Ellipsis)
        elif self.random.random() < 0.2:
            del key[self.random.randint(0, len(key)):]
        if self.random.random() < 0.12:
            key.insert(self.random.randint(0, len(key)), None)
        return tuple(key)

    def indices(self, n: int, target: str) -> Any:
        """An integer array that selects from an axis of length `n` of the array `target`."""
        def suits(value: Any) -> bool:
            return (isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim > 0
                    and value.size > 0 and -n <= int(value.min()) and int(value.max()) < n
                    and not np.may_share_memory(value, self.value(target)))

        known = self.name(suits) if n and self.random.random() < 0.6 else None
        if known is not None:
            return Var(known)
        count = self.random.choice([1, 2, 3, 5, n])
        wrong = self.random.random() < 0.04 or not n
        shape = (count,) if self.random.random() < 0.8 else (count, self.random.choice([1, 2]))
        numbers = [self.random.randrange(-n - wrong, max(n, 1) + wrong)
                   for _ in range(int(np.prod(shape)))]
        if len(shape) == 1 and self.random.random() < 0.4:
            return numbers
        name = f"c{len(self.constants)}"
        dtype = self.random.choice(["int64", "int64", "int32", "int8"] if n < 128 else ["int64"])
        self.constants[name] = Constant(np.array(numbers, dtype).reshape(shape))
        return Data(name)

    def cut(self, n: int) -> slice:
        kind = self.random.random()
        if kind < 0.3:
            return slice(None, None, None)
        if kind < 0.5:
            return slice(None, None, self.random.choice([-1, 2, -2, 3]))
        if kind < 0.7:
            return self.random.choice([slice(1, None), slice(None, -1), slice(1, -1),
                                       slice(None, -2), slice(2, None)])
        low, high = sorted((self.random.randint(0, n), self.random.randint(0, n)))
        return slice(low, high, self.random.choice([None, None, 2]))

    def _reshaping(self, size: int) -> Any:
        """A shape of as many elements, sometimes with -1, rarely a wrong one."""
        if self.random.random() < 0.05:
            return (self.random.choice([-1, 3]), size + 1)
        if self.random.random() < 0.3:
            return -1
        factors = []
        while size > 1 and len(factors) < 3:
            n = self.random.choice([d for d in range(1, min(size, 80) + 1) if size % d == 0])
            factors.append(n)
            size //= n
        shape = (*factors, size)
        if self.random.random() < 0.3 and 0 not in shape:
            place = self.random.randrange(len(shape))
            return (*shape[:place], -1, *shape[place + 1:])
        return shape

    @staticmethod
    def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
        try:
            return np.broadcast_shapes(shape, target) == target
        except ValueError:
            return False

"""How many cases a test takes: all of them with ``CLFUSE_TEST_LONG=1``, a part of them otherwise.

A case costs what a compiler takes for its kernels. Faults that only one combination of three
conditions shows are rare; nearly all need one condition, or two together: `covering` keeps these.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, Final

IS_LONG: Final = bool(os.environ.get("CLFUSE_TEST_LONG"))
"""Whether tests take as long as they like: `ci/test --long`."""


def rounds(number: int) -> int:
    """How many of `number` random cases to take."""
    return number if IS_LONG else -(-number // 4)


def covering(
    *axes: Sequence[Any], together: int = 2, key: object = "", is_long: bool = IS_LONG
) -> list[tuple[Any, ...]]:
    """Return combinations of a value of each axis in which any values of `together` axes meet.

    Parameters
    ----------
    *axes : sequence
        Values of each condition.
    together : int
        How many conditions a fault may need at once; with 1 each value is there once.
    key : object
        Another one, as of another dtype, has other combinations of all axes.
    is_long : bool
        Whether all combinations are taken.

    Examples
    --------
    >>> covering("ab", "cd", "ef", is_long=False)
    [('a', 'c', 'e'), ('a', 'd', 'f'), ('b', 'c', 'f'), ('b', 'd', 'e')]
    >>> len(covering(range(3), range(3), range(3), is_long=True))
    27
    """
    every = list(product(*(range(len(axis)) for axis in axes)))
    if not is_long:
        turn = zlib.crc32(str(key).encode()) if key else 0
        every = _covering(every, min(together, len(axes)), turn)
    return [tuple(axis[place] for axis, place in zip(axes, case, strict=True)) for case in every]


def part_of(
    values: Sequence[Any], count: int, key: object, *, is_long: bool = IS_LONG
) -> list[Any]:
    """Return `count` values that stand behind each other, which ones by a key: all are there for
    some keys.

    Examples
    --------
    >>> [part_of("abcde", 2, key, is_long=False) for key in range(3)]
    [['d', 'e'], ['a', 'b'], ['e', 'a']]
    """
    if is_long:
        return list(values)
    first = zlib.crc32(str(key).encode()) % len(values)
    return [values[(first + place) % len(values)] for place in range(min(count, len(values)))]


def _covering(
    every: list[tuple[int, ...]], together: int, turn: int
) -> list[tuple[int, ...]]:
    """Take the case with most that is new, again and again, from the turn-th on."""
    turn %= len(every)
    left = every[turn:] + every[:turn]
    groups = list(combinations(range(len(left[0])), together))
    met: set[tuple[Any, ...]] = set()
    taken = []
    while True:
        gains = [
            sum((group, *(case[axis] for axis in group)) not in met for group in groups)
            for case in left
        ]
        best = max(gains)
        if not best:
            return sorted(taken)
        case = left[gains.index(best)]
        taken.append(case)
        met |= {(group, *(case[axis] for axis in group)) for group in groups}

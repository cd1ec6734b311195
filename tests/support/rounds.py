"""How many cases a test takes: all of them with ``CLFUSE_TEST_LONG=1``, a part of them otherwise.

A case costs what a compiler takes for its kernels. Faults that only one combination of three
conditions shows are rare; nearly all need one condition, or two together: `covering` keeps these.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, Final

IS_LONG: Final = bool(os.environ.get("CLFUSE_TEST_LONG"))
"""Whether tests take as long as they like: `ci/test --long`."""


def rounds(number: int) -> int:
    """How many of `number` random cases to take."""
    return number if IS_LONG else -(-number // 4)


HERE: Final = "{CLFUSE_DEVICE} {CLFUSE_SIMULATE}".format_map(defaultdict(str, os.environ))
"""Of a key: the device that is asked for, so that a test takes other cases on another one. Not for
cases of `pytest.mark.parametrize`, which are dealt to the devices by their names."""


def covering(
    *axes: Sequence[Any],
    key: object = "",
    allows: Callable[..., bool] | None = None,
    is_long: bool = IS_LONG,
) -> list[tuple[Any, ...]]:
    """Return combinations of a value of each axis in which any values of two axes meet.

    Parameters
    ----------
    *axes : sequence
        Values of each condition.
    key : object
        Another one, as of another dtype, has other combinations of all axes.
    allows : callable, optional
        Whether there is such a combination, by its values: all are there by default. Values that
        meet in none are not asked to.
    is_long : bool
        Whether all combinations are taken.

    Examples
    --------
    >>> covering("ab", "cd", "ef", is_long=False)
    [('a', 'c', 'e'), ('a', 'd', 'f'), ('b', 'c', 'f'), ('b', 'd', 'e')]
    >>> len(covering(range(3), range(3), range(3), is_long=True))
    27
    """
    places = [
        place for place in product(*(range(len(axis)) for axis in axes))
        if allows is None or allows(*_values_at(axes, place))
    ]  # fmt: skip
    if not is_long:
        places = _covering(places, zlib.crc32(str(key).encode()) if key else 0)
    return [_values_at(axes, place) for place in places]


def _values_at(axes: Sequence[Sequence[Any]], place: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(axis[index] for axis, index in zip(axes, place, strict=True))


def _covering(every: list[tuple[int, ...]], turn: int) -> list[tuple[int, ...]]:
    """Take the case with most pairs that are new, again and again; of equal ones the next from the
    turn-th on."""
    turn %= max(len(every), 1)
    left = {case: set(combinations(enumerate(case), 2)) for case in every[turn:] + every[:turn]}
    missing = set().union(*left.values())
    taken = []
    while missing:
        case = max(left, key=lambda case: len(left[case] & missing))
        missing -= left[case]
        taken.append(case)
    return sorted(taken)

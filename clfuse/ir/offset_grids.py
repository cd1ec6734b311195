"""Offsets cut into regular grids, so that many small writes can become one.

    a[0], a[1], a[2] of an array (3, 10)      offsets 0, 10, 20: one grid, extents (3,), steps (10,)
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["grids"]


def grids(
    offsets: npt.NDArray[np.int64],
) -> list[tuple[list[int], tuple[int, ...], list[list[int]]]]:
    """Cut the rows of `offsets` (n, c) into regular grids: (members, extents, steps a dimension).

    >>> [(m, e, s) for m, e, s in grids(np.array([[0], [1], [10], [11], [20], [21], [50]]))]
    [([0, 1, 2, 3, 4, 5], (3, 2), [[10], [1]]), ([6], (), [])]
    """
    # A grid's members in C order; its dimensions, outermost first.
    found: list[tuple[list[int], tuple[int, ...], list[list[int]]]]
    found = [([row], (), []) for row in range(len(offsets))]
    while True:
        groups: dict[Any, list[int]] = {}
        for number, (_, extents, steps) in enumerate(found):
            groups.setdefault((extents, tuple(map(tuple, steps))), []).append(number)
        longer = []
        for (extents, _), numbers in groups.items():
            starts = offsets[[found[number][0][0] for number in numbers]]
            for low, high in _runs(starts):
                parts = [found[number] for number in numbers[low:high]]
                members = list(chain.from_iterable([part[0] for part in parts]))
                steps = parts[0][2]
                if high - low > 1:
                    step = (starts[low + 1] - starts[low]).tolist()
                    longer.append((members, (high - low, *extents), [step, *steps]))
                else:
                    longer.append((members, extents, steps))
        if len(longer) == len(found):
            return longer
        found = longer


def _runs(starts: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Rows ``low:high`` with equal differences, one after another, each as long as it can be."""
    count = len(starts)
    if count == 1:
        return [(0, 1)]
    differences = np.diff(starts, axis=0)
    (changes,) = np.nonzero((differences[1:] != differences[:-1]).any(axis=1))
    stops = [*(changes + 2).tolist(), count]
    runs = []
    low = 0
    for stop in stops:
        if stop > low + 1 or stop == count:
            if low < count:
                runs.append((low, stop))
            low = stop
    return runs

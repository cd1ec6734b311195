"""Interleaved access: short rows of which a loop uses several elements are loaded and stored whole.

    p[:, 0], p[:, 1], p[:, 2]       of three columns: three vectors side by side, and the elements
                                    of each column are chosen from there, or written to there
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from clfuse.schedule.records import Item, Load, Store

__all__ = ["filled_rows", "interleaved"]

MOST_INTERLEAVED: Final = 8
"""Elements of a row that is loaded whole, where several of them are wanted for every index."""


def interleaved(items: Sequence[Item], vector: int) -> dict[int, list[Load]]:
    """Loads of which each row has the first and the last element, by the register of the one that
    comes first: the sum of ``p[:, 0]``, ``p[:, 1]`` and ``p[:, 2]``, of three columns.

    All that lies between is there, and what is loaded side by side comes sooner than lane by lane:
    sums of (1000000, 4) doubles on PoCL, which gathers them, take a quarter of the time.
    """
    rows: dict[tuple[int, np.dtype, tuple[int, ...]], list[Load]] = {}
    for item in items:
        if not isinstance(item, Load) or item.position is not None or item.dtype.kind == "c":
            continue
        access = item.access
        if vector >= len(access.strides) or access.jumps or access.within or item.turned:
            continue
        if 1 < access.strides[vector] <= MOST_INTERLEAVED:
            rows.setdefault((item.value, item.dtype, access.strides), []).append(item)
    found = {}
    for (_, _, strides), loads in rows.items():
        var = loads[0].var
        loads.sort(key=lambda load: load.access.offset)
        if loads[-1].access.offset - loads[0].access.offset == strides[vector] - 1:
            found[var] = loads
    return found


def filled_rows(stores: Sequence[Store], vector: int) -> list[list[Store]]:
    """Stores that together write all elements of short rows, in their order: ``p[:, 0]``,
    ``p[:, 1]`` and ``p[:, 2]`` of three columns."""
    rows: dict[tuple[int, np.dtype, tuple[int, ...]], list[Store]] = {}
    for store in stores:
        strides = store.access.strides
        if store.dtype.kind != "c" and 1 < strides[vector] <= MOST_INTERLEAVED:
            rows.setdefault((store.value, store.dtype, strides), []).append(store)
    found = []
    for (_, _, strides), row in rows.items():
        row.sort(key=lambda store: store.access.offset)
        start = row[0].access.offset
        if [store.access.offset - start for store in row] == list(range(strides[vector])):
            found.append(row)
    return found

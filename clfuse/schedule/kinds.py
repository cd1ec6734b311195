"""The kinds of kernels: what passes may read of a kernel without knowing which kind it is.

A kind is made of four things, each in its layer: the facts here; the function that fixes a kernel's
geometry (`schedule.finish.finishers`); the function that fills a template (`codegen.kinds`); and
the rule that makes such kernels (`schedule.lower.lowering`, or a pass of `schedule.fuse`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelKind:
    """One kind of kernel. Kinds are compared by identity.

    name: as plans show it; labels of kernels begin with it, so it is a name in OpenCL C.
    elementwise: each iteration reads and stores elements for its own index, and nothing else
        happens.
    folds: the last dimensions are folded by accumulators.
    scans: there are `Prefix` items along the last dimension.
    stays_apart: why such a kernel takes in no kernel over other ranges, as a reason for users;
        empty where it may.
    stores_elsewhere: it stores at other elements than those that it has just read.
    stores_side_by_side: it stores as many elements as are selected, whatever the accesses of its
        stores say.
    by_tiles: it walks tiles, and reads borders around each of them: another tile may need what a
        tile has read where it writes.
    has_given_pieces: its range is cut into pieces of a given length, each of which has a result: it
        takes in nothing that makes the range longer.
    free: the fields of its records' geometry on which no result depends, where arithmetic is exact:
        tuning may choose them (`schedule.shape.variants`). Not those that fix in which order
        something is added up, selected or stored; nor `streams`, of which the next kernels feel
        most.
    """

    name: str
    elementwise: bool = False
    folds: bool = False
    scans: bool = False
    stays_apart: str = ""
    stores_elsewhere: bool = False
    stores_side_by_side: bool = False
    by_tiles: bool = False
    has_given_pieces: bool = False
    free: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return self.name


MAP: Final = KernelKind(
    "map",
    elementwise=True,
    free=frozenset(["work_items", "work_group", "width", "unroll"]),
)
REDUCE: Final = KernelKind(
    "reduce", folds=True, stores_elsewhere=True, free=frozenset(["work_items"])
)
SCAN: Final = KernelKind("scan", scans=True, free=frozenset(["work_items"]))

COUNT: Final = KernelKind("count", folds=True, stores_elsewhere=True, has_given_pieces=True)
"""What a mask selects, counted piece by piece; the pieces are given."""

COMPACT: Final = KernelKind(
    "compact", stays_apart="selects elements", stores_elsewhere=True, stores_side_by_side=True
)
"""Elements that a mask selects, packed side by side."""

EXPAND: Final = KernelKind("expand", stays_apart="selects elements")
"""Packed elements, put back where a mask is true."""

TALLY: Final = KernelKind(
    "tally", stays_apart="counts in local memory", stores_elsewhere=True, stores_side_by_side=True
)
"""Elements counted by their places, or their weights added up, piece by piece in local memory."""

SCATTER: Final = KernelKind(
    "scatter",
    stays_apart="stores at computed positions",
    stores_elsewhere=True,
    stores_side_by_side=True,
)
"""Elements stored at computed positions, or combined with what lies there."""

TILES: Final = KernelKind("tiles", by_tiles=True)
"""Steps over neighbours, one after another, tile by tile in local memory or the cache."""


def is_sequential(name: str, dtype: np.dtype) -> bool:
    """Whether a scan keeps NumPy's order: regrouping would change more than the last digits.

    A product of some floats may overflow where the running product does not; sums of halves round
    after every addition.
    """
    return (name == "multiply" and dtype.kind in "fc") or (name == "add" and dtype.char == "e")

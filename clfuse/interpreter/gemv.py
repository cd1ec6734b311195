"""Matrix-vector products by NumPy's BLAS, found among recorded multiplications and sums.

Products of vectors with matrices and vectors are recorded as multiplications and sums. This module
finds them in a snapshot, and computes each without the array of all products.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import Snapshot

from .host_functions import is_part_of_product

__all__ = ["multiply_by_blas", "products"]

def products(snapshot: Snapshot, stored: Collection[int]) -> dict[int, int]:
    """Multiplication -> the sum over its last axis which alone reads it; by position."""
    items = snapshot.items
    readers: dict[int, list[int]] = {}
    for position, item in enumerate(items):
        op = item[0]
        if op is None or op.kind is Kind.CONSTANT:
            continue
        for below in item[3:]:
            other = items[below][0]
            if other is not None and is_part_of_product(other):
                readers.setdefault(below, []).append(position)
    found = {}
    for multiplication, (reader, *others) in readers.items():
        op, _, axes = items[reader][:3]
        if others or multiplication in stored or op.kind is not Kind.REDUCE or op.name != "add":
            continue
        item = items[multiplication]
        shapes = [snapshot.nodes[operand].shape for operand in item[3:]]
        is_plain = op.dtype is item[0].dtype and op.dtype.kind in "fc" and op.dtype.itemsize > 2
        if not is_plain or axes != (len(item[1]) - 1,) or min(map(len, shapes)) != 1:
            continue
        if all(shape[-1:] == item[1][-1:] for shape in shapes):  # none is stretched
            found[multiplication] = reader
    return found


def multiply_by_blas(one: Any, two: Any) -> Any:
    """The sums over the last axis of ``one * two``, of which one is a vector."""
    return np.matmul(one, two) if two.ndim == 1 else np.matmul(two, one)

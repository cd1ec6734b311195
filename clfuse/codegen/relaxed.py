"""Which kernels ``CLFUSE_FP=fast`` may relax: those without anything that fast-math breaks.

Under fast-math a compiler cancels ``(x + m) - m``, by which halves are rounded, and the error of a
sum that a compensated total keeps; and it takes every value for finite, so that a test for NaN is
never true. So a kernel stays strict as a whole if anything in it rounds to half, adds up floats,
calls a function of ``kernels/lib`` (which split numbers exactly) or decides by a float's value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.schedule.records import Index, Item, Kernel, Prefix, Step
from clfuse.target.traits import DeviceTraits

CALCULATING: Final = frozenset(
    """
    add subtract multiply divide negative positive absolute fabs square sqrt reciprocal
    exp exp2 expm1 log log2 log10 log1p power float_power cbrt hypot
    sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh
    deg2rad rad2deg where
    """.split()
)
"""Rows whose results fast-math changes in the last places only, if all values are finite."""

DIVIDING: Final = frozenset(["floor_divide", "remainder", "fmod"])
"""Rows that divide integers by way of floats, exactly (``kernels/lib/quotients.cl``)."""

_COMPLEX: Final = frozenset(["add", "subtract", "negative", "positive", "where", "cast"])
"""Those that are operators on complex numbers too; the others are functions of ``complex.cl``."""


def may_relax(kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether fast-math leaves every step of the kernel what it is for.

    A row that is not listed keeps its kernel strict where it takes or makes floats, and so does a
    cast of floats to integers, which may jump; integers and masks are the same under fast-math.
    """
    if kernel.tiling is not None:
        return all(may_relax(stage.kernel, traits) for stage in kernel.tiling.stages)
    if kernel.then:
        return all(may_relax(replace(phase, then=[]), traits) for phase in kernel.phases)
    if any(is_float(accumulator.dtype) for accumulator in kernel.accumulators):
        return False
    if any(store.dtype.char == "e" for store in kernel.stores + kernel.results):
        return False
    return all(_calculates(item, traits) for item in kernel.body + kernel.epilogue)


def _calculates(item: Item, traits: DeviceTraits) -> bool:
    if isinstance(item, Index):
        return True
    if isinstance(item, Prefix):
        return not is_float(item.dtype)
    if not isinstance(item, Step):
        return item.dtype.char != "e"
    dtypes = (item.dtype, *item.op.input_dtypes)
    name = item.op.name
    if not any(map(is_float, dtypes)):
        return name not in DIVIDING
    if name == "cast" and not is_float(item.dtype):
        return False
    if name != "cast" and name not in CALCULATING:
        return False
    if any(dtype.kind == "c" for dtype in dtypes) and name not in _COMPLEX:
        return False
    replaced = any(
        own == name and any(dtype.name == of for dtype in dtypes) for own, of in traits.expressions
    )
    return not replaced and all(dtype.char != "e" for dtype in dtypes)


def is_float(dtype: np.dtype) -> bool:
    """Whether fast-math has to do with values of the dtype."""
    return dtype.kind in "fc"

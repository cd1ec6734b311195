"""Rules of dtypes: bytes and digits that nobody needs, and powers that are products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from clfuse.ir.nodes import Kind

from ..collector import PlanSeen
from ..places import NOWHERE
from ..provenance import with_readers
from ..summary import Summary
from ..words import size, time_of
from .piece import LARGE, Advice, is_worth
from .source import whole_powers

_WIDER: Final = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


def _dtype_of(item: tuple[Any, ...]) -> Any:
    if item[0] is None:
        return item[3]
    return item[0].dtype


def _shape_of(item: tuple[Any, ...]) -> tuple[int, ...]:
    return item[1] if len(item) > 1 else ()


def _widened(
    summary: Summary, is_narrow: Callable[[Any, Any], bool], meant: Sequence[str]
) -> Iterator[tuple[tuple[str, int], Any, Any, Any, int]]:
    """Where a large operand of a narrow dtype gives a wide result, once a line, at its largest.

    Parameters
    ----------
    is_narrow : callable
        Whether an operand of the first dtype has no need of a result of the second.
    meant : sequence of str
        Words of a line that ask for the wide dtype by name.

    Yields
    ------
    place : tuple of (str, int)
    dtype, operand, other : dtype
        Of the result, of the narrow operand, and of another one.
    nbytes : int
        Of the result.
    """
    found: dict[tuple[str, int], tuple[Any, Any, Any, int]] = {}
    for plan in summary.collector.plans:
        items, readers = plan.items, with_readers(plan.lines, plan.items)
        for position, item in enumerate(items):
            op = item[0]
            if op is None or op.kind is not Kind.MAP or op.dtype not in _WIDER:
                continue
            # What a function of NumPy's does with its operands first is recorded by no line.
            operands = [_before_cast(each, plan) for each in item[3:]]
            narrow = [
                dtype for operand in operands
                if is_narrow(dtype := _dtype_of(items[operand]), op.dtype)
                and math.prod(_shape_of(items[operand])) >= LARGE
            ]  # fmt: skip
            others = [_dtype_of(items[each]) for each in operands]
            others = [each for each in others if narrow and each != narrow[0]]
            if not narrow or (plan.lines[position] == NOWHERE and not others):
                continue
            place = summary.place(readers[position])
            line = summary.line(place) if place is not None else None
            if line is None or place is None or any(word in line.text for word in meant):
                continue
            nbytes = math.prod(item[1]) * op.dtype.itemsize
            if place not in found or nbytes > found[place][3]:
                found[place] = op.dtype, narrow[0], others[0] if others else op.dtype, nbytes
    for place, widest in found.items():
        yield place, *widest


def _before_cast(position: int, plan: PlanSeen) -> int:
    """The operand of a conversion that no line has asked for; or the position itself."""
    item = plan.items[position]
    is_cast = item[0] is not None and item[0].kind is Kind.MAP and item[0].name == "cast"
    return item[3] if is_cast and plan.lines[position] == NOWHERE else position


_WIDE_WORDS: Final = ("float64", "double", "complex128")


def doubled_dtype(summary: Summary) -> Iterator[Advice]:
    """float32 meets float64, and the result has twice the bytes."""

    def is_half(operand: Any, result: Any) -> bool:
        return bool(operand == _WIDER[result])

    for place, dtype, narrow, other, nbytes in _widened(summary, is_half, ("astype", *_WIDE_WORDS)):
        line = summary.line(place)
        yield Advice(
            "doubled_dtype",
            f"Line {place[1]} makes {dtype} of {narrow}",
            f"Another operand is {other}, and of both NumPy makes {dtype}: {size(nbytes)} in place"
            f" of {size(nbytes / 2)}, and all that follows moves twice the bytes. Make the other"
            f" operand {narrow} (`dtype=`, or `.astype` once, before the loop); a plain Python"
            " number widens nothing, a NumPy scalar does.",
            *place, 0.0 if line is None else line.device_ns / 2,
        )  # fmt: skip


def double_precision(summary: Summary) -> Iterator[Advice]:
    """Kernels of float64 alone take most of the run, and nothing in the program asks for it."""
    spent = 0.0
    for plan in summary.collector.plans:
        floats = {
            _dtype_of(item) for item in plan.items
            if _dtype_of(item).kind in "fc" and math.prod(_shape_of(item)) >= LARGE
        }  # fmt: skip
        if floats and all(dtype in _WIDER for dtype in floats):
            entries = [entry for each in plan.entries.values() for entry in each]
            spent += sum([entry.total_ns for entry in entries])
    lines = [(file, line) for file, line in summary.all_lines() if line.device_ns]
    if not lines or not spent or not is_worth(spent / 8, summary):
        return
    if any(word in line.text for file, _ in lines for line in file.lines for word in _WIDE_WORDS):
        return
    file, line = max(lines, key=lambda each: each[1].device_ns)
    yield Advice(
        "double_precision",
        f"Kernels of float64 take {time_of(spent)}",
        "That is NumPy's dtype where none is named. Where seven digits are enough, float32 has"
        " half the bytes, and vectors twice as long; many GPUs compute it thirty times as fast."
        " Name it where arrays are made (`np.zeros(shape, dtype=np.float32)`,"
        " `data.astype(np.float32)`): what is computed of these alone is float32, too. Sums keep"
        " more digits with `x.sum(dtype=np.float64)`.",
        file.path, line.number, spent / 2,
    )  # fmt: skip


def _product_for(base: str, exponent: int) -> str:
    """A whole power as a product of few."""
    if exponent == 3:
        return f"{base} * {base} * {base}"
    if exponent == 4:
        return f"({base} * {base}) ** 2"
    if exponent == 6:
        return f"({base} * {base} * {base}) ** 2"
    if exponent == 8:
        return f"(({base} * {base}) ** 2) ** 2"
    return f"{base} * {_product_for(base, exponent - 1)}"


def whole_power(summary: Summary) -> Iterator[Advice]:
    """Floats are raised to a small whole power, which costs more than products."""
    raised: set[tuple[str, int]] = set()
    for plan in summary.collector.plans:
        for position, item in enumerate(plan.items):
            op = item[0]
            if op is None or op.kind is not Kind.MAP or op.name != "power":
                continue
            is_product = "finite_pow" in plan.traits.expressions.get((op.name, op.dtype.name), "")
            place = summary.place(plan.lines[position])
            if op.dtype.kind == "f" and not is_product and math.prod(item[1]) >= LARGE and place:
                raised.add(place)
    for file in summary.files:
        numbers = {
            number for path, number in raised
            if path == file.path and is_worth(file.lines[number - 1].device_ns, summary)
        }  # fmt: skip
        for base, exponent, number in whole_powers([line.text for line in file.lines], numbers):
            line = file.lines[number - 1]
            yield Advice(
                "whole_power",
                f"Line {number} raises to the power {exponent}",
                f"Of each element that is a logarithm and an exponential; products are some ten"
                f" times as fast, and differ by a rounding: `{_product_for(base, exponent)}` for"
                f" `{base} ** {exponent}` (`x ** 2` is a product as it stands). The kernels of the"
                f" line take {time_of(line.device_ns)}.",
                file.path, number, line.device_ns,
            )  # fmt: skip


NARROW_NBYTES: Final = 2
"""Bytes of whole numbers that float32 has room for."""


def wide_of_narrow(summary: Summary) -> Iterator[Advice]:
    """Whole numbers of one or two bytes become float64."""

    def is_short(operand: Any, result: Any) -> bool:
        return operand.kind in "iu" and operand.itemsize <= NARROW_NBYTES

    if not is_worth(summary.device_ns / 4, summary):
        return
    for place, dtype, narrow, _, nbytes in _widened(summary, is_short, _WIDE_WORDS):
        line = summary.line(place)
        yield Advice(
            "wide_of_narrow",
            f"Line {place[1]} makes {dtype} of {narrow}",
            f"{size(nbytes)} of them. {_WIDER[dtype]} holds every {narrow} exactly, has seven"
            f" digits after that, and half the bytes: `.astype(np.{_WIDER[dtype]})` here, and"
            f" arrays of that dtype beside it, where seven digits are enough.",
            *place, 0.0 if line is None else line.device_ns / 2,
        )  # fmt: skip



"""Analysis of a row's values: which of them cannot be NaN as long as the loaded ones are finite.

    ((p[:, None] - q) ** 2).sum(2)        a sum of squares is NaN only where p or q is NaN, or both
                                          are infinite

Where all rows read the same vectors (`q` here), these are tested once a work-item, and a row's own
numbers (`p`) once a row: the loop then need not test for NaN. Such a test was a sixth of the
additions of this distance, and an eighth of the time (both runtimes of an EPYC).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from clfuse.dataclass import frozen
from clfuse.schedule.records import Carried, Index, Item, Kernel, Load, Scalar, Step

__all__ = ["Sources", "sources_of"]

MIN_ROWS: Final = 8
"""Rows of a work-item that are worth looking through what all of them read."""


@frozen
class Sources:
    """What has to be finite: `vectors` that all rows read, and registers of a row's own numbers."""

    vectors: tuple[Load, ...]
    numbers: tuple[int, ...]


class _Range(NamedTuple):
    """What is known of a value that is no NaN; `sign` is ``+``, ``-`` (both: or zero) or ``?``."""

    is_finite: bool
    sign: str


_ANY: Final = _Range(True, "?")

_TURNED: Final = {"+": "-", "-": "+", "?": "?"}


def _sum(left: _Range, right: _Range) -> _Range | None:
    """NaN where both are infinite, with other signs."""
    alike = left.sign == right.sign and left.sign != "?"
    if not (left.is_finite or right.is_finite or alike):
        return None
    return _Range(False, left.sign if alike else "?")


def _difference(left: _Range, right: _Range) -> _Range | None:
    return _sum(left, _Range(right.is_finite, _TURNED[right.sign]))


def _product(left: _Range, right: _Range) -> _Range | None:
    """NaN where one is infinite, and the other zero."""
    if not (left.is_finite and right.is_finite):
        return None
    if "?" in left.sign + right.sign:
        return _Range(False, "?")
    return _Range(False, "+" if left.sign == right.sign else "-")


def _root(of: _Range) -> _Range | None:
    return of if of.sign == "+" else None


def _extreme(left: _Range, right: _Range) -> _Range:
    sign = left.sign if left.sign == right.sign else "?"
    return _Range(left.is_finite and right.is_finite, sign)


_RULES: Final[dict[str, Callable[..., _Range | None]]] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "maximum": _extreme,
    "minimum": _extreme,
    "square": lambda of: _Range(False, "+"),
    "absolute": lambda of: _Range(of.is_finite, "+"),
    "fabs": lambda of: _Range(of.is_finite, "+"),
    "negative": lambda of: _Range(of.is_finite, _TURNED[of.sign]),
    "positive": lambda of: of,
    "sqrt": _root,
    "exp": lambda of: _Range(False, "+"),
    "cast": lambda of: _Range(False, of.sign),  # of more digits, it may be too large
}
"""By the name of an operation: the range of its result for those of its operands, none of which is
NaN; None where the result may be."""


def sources_of(phase: Kernel, operand: int) -> Sources | None:
    """What has to be finite, so that register `operand` of a phase is never NaN; None where that
    does not suffice, or is not soon looked at.

    phase: one that folds along its last dimension, the lanes' one, in one piece.
    operand: a register of its body, real numbers.
    """
    last = len(phase.extents) - 1
    if phase.chunk >= 0 or math.prod(phase.extents[:-1]) < MIN_ROWS * phase.work_items:
        return None
    items = {item.var: item for item in phase.body}
    ranges: dict[int, _Range] = {}
    vectors: list[Load] = []
    numbers: list[int] = []
    for item in _needed(phase, items, operand):
        found: _Range | None = _ANY
        if isinstance(item, Step):
            found = _of_step(item, ranges)
        elif isinstance(item, Index):
            pass
        elif isinstance(item, Scalar | Carried):
            numbers.append(item.var)
        elif isinstance(item, Load) and _is_plain(item):
            strides = item.access.strides
            if not strides[last]:
                numbers.append(item.var)
            elif not any(strides[:last]):
                vectors.append(item)
            else:
                return None
        else:
            return None
        if found is None:
            return None
        ranges[item.var] = found
    return Sources(
        tuple([load for load in vectors if _is_float(load)]),
        tuple([var for var in numbers if _is_float(items[var])]),
    )


def _is_float(item: Item) -> bool:
    return not isinstance(item, Index) and item.dtype.kind == "f"


def _is_plain(load: Load) -> bool:
    access = load.access
    return load.position is None and load.other is None and not access.jumps and not access.within


def _of_step(step: Step, ranges: dict[int, _Range]) -> _Range | None:
    kinds = {step.dtype.kind, *[dtype.kind for dtype in step.dtypes]}
    if not kinds <= set("biuf"):
        return None
    if step.dtype.kind != "f":
        return _ANY
    if step.op.name == "multiply" and step.operands[0] == step.operands[1]:
        return _RULES["square"](ranges[step.operands[0]])
    rule = _RULES.get(step.op.name)
    if rule is None:
        return None
    return rule(*[ranges[operand] for operand in step.operands])


def _needed(phase: Kernel, items: dict[int, Item], operand: int) -> list[Item]:
    """The items that register `operand` is made of, in order."""
    needed, stack = set(), [operand]
    while stack:
        var = stack.pop()
        if var in needed:
            continue
        needed.add(var)
        item = items.get(var)
        if isinstance(item, Step):
            stack += item.operands
    return [item for item in phase.body if item.var in needed]

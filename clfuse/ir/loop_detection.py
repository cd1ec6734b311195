"""Detection of loops in the recorded operations: the shortest period at their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

LEAST_ROUNDS: Final = 3
"""Rounds that make a loop: two equal statements in a row are none."""

MAX_LOOKED_AT: Final = 4096
"""Operations that are looked at, from the last one on: a third of them is the longest round."""


def period(operations: Sequence[Any]) -> tuple[int, int] | None:
    """How many operations a round of the loop has that `operations` end with, and where it begins.

    Of several loops within each other it is the one that goes back furthest. None where there is
    none. The time is linear (the failure function of Knuth, Morris and Pratt, from the end).

    >>> period("start" + "abcc" * 5 + "ab")
    (4, 5)
    >>> period("start" + "abcc") is None
    True
    """
    tail = operations[: -MAX_LOOKED_AT - 1 : -1]
    borders = [0]
    found = None
    border = 0
    for count, operation in enumerate(tail[1:], 2):
        while border and tail[border] != operation:
            border = borders[border - 1]
        if tail[border] == operation:
            border += 1
        borders.append(border)
        if (count - border) * LEAST_ROUNDS <= count:
            found = count - border, len(operations) - count
    return found


def rotation(operations: Sequence[Any], round_: Sequence[Any]) -> int:
    """With which operation of a round a sequence of as many begins, if it is one round of the same
    loop; 0 where it begins with the first, or is not of this loop.

    >>> rotation("cdab", "abcd"), rotation("abcd", "abcd"), rotation("abdc", "abcd")
    (2, 0, 0)
    """
    count = len(round_)
    wanted, twice = list(operations), [*round_, *round_]
    for start in range(count):
        if twice[start : start + count] == wanted:
            return start
    return 0

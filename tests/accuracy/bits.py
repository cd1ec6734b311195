"""``+ - * /`` and sqrt of floats against NumPy's bits: ``python -m tests.accuracy bits``.

Of float16 all pairs of every number with some hundred hard ones, or (``--all``) with every other
one; of float32 and float64 pairs of random bits, among which are subnormal numbers, infinities and
NaN, and pairs that lie near each other, where sums cancel. A NaN need not have NumPy's bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}

PIECE: Final = 1 << 20
"""Pairs at a time."""

HARD: Final = 300


@dataclass(slots=True)
class Bits:
    """How many pairs (numbers, for sqrt) had other bits than NumPy's, and one of them."""

    compared: int = 0
    wrong: int = 0
    example: str = ""


def wrong_bits(found: Array, wanted: Array) -> Array:
    """Where two arrays differ in their bits; NaN is NaN."""
    unsigned = f"u{wanted.dtype.itemsize}"
    different = found.view(unsigned) != wanted.view(unsigned)
    return np.asarray(different & ~(np.isnan(found) & np.isnan(wanted)))


def compare(xp: ModuleType, name: str, x: Array, y: Array, bits: Bits) -> None:
    """Count what is wrong with an operation on these operands."""
    call = (lambda m, a, b: m.sqrt(a)) if name == "sqrt" else (
        lambda m, a, b: OPERATIONS[name](a, b))
    with np.errstate(all="ignore"):
        wanted = np.asarray(call(np, x, y))
        found = np.asarray(call(xp, xp.asarray(x), xp.asarray(y)))
    assert found.dtype == wanted.dtype
    wrong = wrong_bits(found, wanted)
    bits.compared += wanted.size
    count = int(np.count_nonzero(wrong))
    if count and not bits.wrong:
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        one, other = (np.broadcast_to(each, wrong.shape)[at] for each in (x, y))
        bits.example = f"{one!r} {name} {other!r}: {found[at]!r}, NumPy {wanted[at]!r}"
    bits.wrong += count


def hard_halves(count: int = HARD) -> Array:
    """Of float16: the ends of its ranges, powers of two and their neighbours, and random ones."""
    bits = [0, 1, 2, 3, 0x1FF, 0x200, 0x3FE, 0x3FF, 0x400, 0x401, 0x7BFE, 0x7BFF, 0x7C00, 0x7E00]
    bits += [(exponent << 10) + offset for exponent in range(1, 31) for offset in (0, 1, 0x3FF)]
    drawn = np.random.default_rng(0).integers(0, 0x7C00, max(count // 2 - len(bits), 0)).tolist()
    positive = np.array((bits + drawn)[: count // 2], np.uint16)
    return np.concatenate([positive, positive | 0x8000]).view(np.float16)


def halves(others: Array) -> Iterator[tuple[Array, Array]]:
    """Every float16 with each of the others, in pieces that broadcast."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rows = max(1, PIECE // len(every))
    for begin in range(0, len(others), rows):
        yield np.broadcast_to(others[begin : begin + rows, None], (
            len(others[begin : begin + rows]), len(every))).copy(), every


def random_pairs(dtype: str, count: int, seed: int = 0) -> Iterator[tuple[Array, Array]]:
    """Pairs of random bits; of a quarter the second is near the first, of another both are
    ordinary."""
    random = np.random.default_rng([seed, *dtype.encode()])
    unsigned = f"u{np.dtype(dtype).itemsize}"
    most = np.iinfo(unsigned).max
    for begin in range(0, count, PIECE):
        size = min(PIECE, count - begin)
        x, y = (random.integers(0, most, size, unsigned, endpoint=True) for _ in range(2))
        quarter = size // 4
        y[:quarter] = x[:quarter] ^ (y[:quarter] >> np.array(np.iinfo(unsigned).bits // 2 + 4,
                                                             unsigned))
        x, y = x.view(dtype), y.view(dtype)
        for each in (x, y):
            each[quarter : 2 * quarter] = random.standard_normal(quarter).astype(dtype)
        yield x, y


def run(
    xp: ModuleType, dtype: str, count: int, *, every: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Bits]:
    """Compare all operations of a dtype: `count` pairs, or of float16 `HARD` (all where `every`)
    times 65,536."""
    found = {name: Bits() for name in (*OPERATIONS, "sqrt")}
    if dtype == "float16":
        others = np.arange(1 << 16, dtype=np.uint16).view(np.float16) if every else hard_halves()
        pairs = halves(others)
    else:
        pairs = random_pairs(dtype, count)
    for x, y in pairs:
        for name in OPERATIONS:
            compare(xp, name, x, y, found[name])
        if dtype != "float16" or not found["sqrt"].compared:
            compare(xp, "sqrt", y, y, found["sqrt"])
        tell(f"{dtype}: {found['+'].compared:,} pairs")
    return found

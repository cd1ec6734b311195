"""What random programs call beyond NumPy's names: `drawn` and `replayed`, under any module.

NumPy has neither clfuse's random numbers nor `jit`. Here the numbers are written once more, by what
clfuse promises about them, and a function that is traced and replayed is called instead.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RANGE = 1000  # of integers


def words(key: int, position: int, count: int) -> tuple[Array, Array]:
    """Philox4x32-10 with 64-bit products: both halves for elements 0 to count-1.

    The kernels' own is held to Random123's known answers by test_op_rows.
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    index = np.arange(count, dtype=np.uint64)
    words = [index & low, index >> half, np.full(count, position & 0xFFFFFFFF, np.uint64),
             np.full(count, position >> 32, np.uint64)]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        one, two = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(two >> half) ^ words[1] ^ np.uint64(keys[0]), two & low,
                 (one >> half) ^ words[3] ^ np.uint64(keys[1]), one & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words[1] << half | words[0], words[3] << half | words[2]


def uniform_of(bits: Array, kept: int = 53) -> Array:
    return (bits >> np.uint64(64 - kept)) / 2.0**kept


def drawn(module: ModuleType, what: str, key: int, position: int, shape: tuple[int, ...]) -> Any:
    """Random numbers by seed and position: ``float64``, ``float32``, or ``int64`` below `RANGE`."""
    kind = getattr(module.random, "Philox4x32", None)
    if kind is None:
        first, _ = words(key, position, int(np.prod(shape, dtype=int)))
        if what == "int64":
            return np.array([int(a) * RANGE >> 64 for a in first], np.int64).reshape(shape)
        kept = 53 if what == "float64" else 24
        return uniform_of(first, kept).astype(what).reshape(shape)
    bits = kind(0)
    bits.state = {"bit_generator": "Philox4x32", "state": {"key": key, "position": position}}
    generator = module.random.Generator(bits)
    if what == "int64":
        return generator.integers(0, RANGE, shape)
    return generator.random(shape, dtype=what)


class Replayer:
    """``replayed(function, *calls)``: calls a function with these arguments, one call after the
    other, through the module's `jit`; the last result.

    A function that `jit` refuses is called as it is.
    """

    def __init__(self, module: ModuleType) -> None:
        self._jit: Callable[[Any], Any] = getattr(module, "jit", lambda function: function)
        self._refusal: Any = getattr(module, "JitError", ())

    def __call__(self, function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
        traced = self._jit(function)
        result = None
        for call in calls:
            try:
                result = traced(*call)
            except self._refusal:
                result = function(*call)
        return result

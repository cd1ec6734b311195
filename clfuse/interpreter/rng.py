"""Random bits and the numbers made of them on the host, by NumPy or the compiled part.

The bits are those of the kernels (``kernels/lib/philox.cl``, ``normal.cl``, ``rejection.cl``).
Normal numbers, and those that are drawn until one is accepted, need fma, which NumPy does not have.
Without the compiled part only kernels make them; where no kernel can run, the numbers here are
nearly the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from clfuse._core import loading

__all__ = ["DRAWN", "NEARLY", "NUMBERS"]

Array = Any

_WORD: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)
_MULTIPLIERS: Final = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL: Final = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


_core: Final = loading.load()


def _philox(first: int, second: int) -> Callable[..., Array]:
    """Philox4x32-10 as in ``kernels/lib/philox.cl``: two words of the four."""
    if _core is not None:
        kind = _core.MADE_OF_BITS["philox_more_bits" if first else "philox_bits"]
        return partial(_compiled_philox, kind)

    def draw(index: Array, key: Array, stream: Array) -> Array:
        parts = [np.asarray(part).astype(np.uint64) for part in (index, stream)]
        key0 = np.asarray(key).astype(np.uint64)
        key1 = key0 >> _BITS
        word0, word1 = parts[0] & _WORD, parts[0] >> _BITS
        word2, word3 = parts[1] & _WORD, parts[1] >> _BITS
        for _ in range(10):
            product0 = word0 * _MULTIPLIERS[0]
            product2 = word2 * _MULTIPLIERS[1]
            word0 = (product2 >> _BITS) ^ word1 ^ (key0 & _WORD)
            word2 = (product0 >> _BITS) ^ word3 ^ (key1 & _WORD)
            word1, word3 = product2 & _WORD, product0 & _WORD
            key0, key1 = key0 + _WEYL[0], key1 + _WEYL[1]
        words = word0, word1, word2, word3
        return words[first] | (words[second] << _BITS)

    return draw


def _compiled_philox(kind: int, *operands: Any) -> Array:
    given = [np.asarray(operand) for operand in operands]
    out = np.empty(np.broadcast_shapes(*[each.shape for each in given]), np.uint64)
    whole = [each if each.size == 1 else np.broadcast_to(each, out.shape) for each in given]
    _core.bits_of(  # type: ignore[union-attr]
        kind, *[np.ascontiguousarray(each, np.int64) for each in whole], out
    )
    return out


def _compiled_numbers(name: str) -> Callable[[np.dtype[Any]], Callable[..., Array]]:
    """What the compiled part makes of random bits: all rows, with the kernels' own formulas."""
    kind = _core.MADE_OF_BITS[name]  # type: ignore[union-attr]

    def make(dtype: np.dtype[Any]) -> Callable[..., Array]:
        def numbers(bits: Array) -> Array:
            bits = np.asarray(bits, np.uint64, order="C")
            out = np.empty(bits.shape, dtype)
            _core.numbers_made(kind, bits, out)  # type: ignore[union-attr]
            return out

        return numbers

    return make


def _compiled_draws(name: str) -> Callable[[np.dtype[Any]], Callable[..., Array]]:
    """What the compiled part draws until it is accepted, with the kernels' own formulas."""
    kind = _core.DRAWN[name]  # type: ignore[union-attr]

    def make(dtype: np.dtype[Any]) -> Callable[..., Array]:
        def draw(*operands: Array) -> Array:
            out = np.empty(np.broadcast_shapes(*[np.shape(each) for each in operands]), dtype)
            given = [
                np.ascontiguousarray(
                    each if np.size(each) == 1 else np.broadcast_to(each, out.shape),
                    np.int64 if place < _COUNTER else dtype,
                )
                for place, each in enumerate(operands)
            ]
            _core.drawn(kind, given, out)  # type: ignore[union-attr]
            return out

        return draw

    return make


_COUNTER: Final = 3
"""Operands of a draw before its parameters: the element's number in its stream, key, position."""


DRAWN: Final[dict[str, Callable[..., Array]]] = {}
"""Rows of the op tables that `rejection` has, which is imported without the compiled part alone."""


def _by_numpy(name: str) -> Callable[..., Array]:
    def draw(*operands: Array) -> Array:
        return DRAWN[name](*operands)

    return draw


def _of_bits(
    shift: Mapping[str, int], middle: float, exponent: Mapping[str, int]
) -> Callable[[np.dtype[Any]], Callable[..., Array]]:
    """A float from random bits: those above `shift`, as a whole number, plus `middle`, scaled."""

    def make(dtype: np.dtype[Any]) -> Callable[..., Array]:
        dropped = np.uint64(shift[dtype.name])
        half, scale = dtype.type(middle), dtype.type(2.0 ** exponent[dtype.name])
        return lambda bits: ((bits >> dropped).astype(dtype) + half) * scale

    return make


_DRAWN: Final = {
    "uniform": _of_bits({"float64": 11, "float32": 40}, 0.0, {"float64": -53, "float32": -24}),
    "open": _of_bits({"float64": 12, "float32": 41}, 0.5, {"float64": -52, "float32": -23}),
    "positive": _of_bits({"float64": 0, "float32": 0}, 0.5, {"float64": -64, "float32": -64}),
}

NUMBERS: Final[dict[str, Callable[[np.dtype[Any]], Callable[..., Array]]]] = {
    "philox_bits": lambda dtype: _philox(0, 1),
    "philox_more_bits": lambda dtype: _philox(2, 3),
    **{
        f"{name}_of_bits_{dtype}": make
        for name, make in _DRAWN.items()
        for dtype in ("float64", "float32")
    },
}
"""Rows of the op tables: function of the result's dtype -> function of the operands."""

if _core is not None:
    NUMBERS.update({
        name: _compiled_numbers(name) for name in _core.MADE_OF_BITS if "_of_bits_" in name
    })
    NUMBERS.update({name: _compiled_draws(name) for name in _core.DRAWN})


@lru_cache(maxsize=1)
def _quantile() -> Callable[..., Array]:
    from statistics import NormalDist  # and decimal numbers, fractions

    return np.frompyfunc(NormalDist().inv_cdf, 1, 1)


def _normal(dtype: type[np.floating[Any]]) -> Callable[..., Array]:
    """Normal numbers as in ``kernels/lib/normal.cl``, but for the last digits."""

    def draw(bits: Array) -> Array:
        quantile = _quantile()
        whole = np.asarray(bits).view(np.int64) >> 11
        rest = (0xFFFFFFFFFFFFF - (whole ^ (whole >> 63)) + 0.5) * 2.0**-53  # from the nearer end
        return np.copysign(quantile(rest).astype(dtype), whole + 0.5).astype(dtype)

    return draw


_MIXED: Final = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35), np.uint32(0x9E3779B1)
_ROUNDS: Final = 48


def _mixed(bits: Array) -> Array:
    bits = bits ^ (bits >> np.uint32(16))
    bits = bits * _MIXED[0]
    bits = bits ^ (bits >> np.uint32(13))
    bits = bits * _MIXED[1]
    return bits ^ (bits >> np.uint32(16))


def _shuffled_place(place: Array, count: Array, key: Array, other: Array) -> Array:
    """Where elements go in a random permutation, as in ``kernels/lib/permutation.cl``."""
    parts = [np.asarray(part).astype(np.uint32) for part in (place, count, key, other)]
    if _core is not None and parts[1].size == 1:
        shape = np.broadcast_shapes(*[part.shape for part in parts])
        places = np.array(np.broadcast_to(parts[0], shape), order="C")
        random = [
            np.ascontiguousarray(part if part.size == 1 else np.broadcast_to(part, shape))
            for part in parts[2:]
        ]
        _core.shuffled_places(places, int(parts[1].reshape(())), *random)
        return places
    place, count, key, other = parts
    with np.errstate(over="ignore"):
        for _ in range(_ROUNDS):
            key, other = key + _WEYL[0].astype(np.uint32), other + _WEYL[1].astype(np.uint32)
            number = _mixed(key ^ other).astype(np.uint64) * count >> _BITS
            number = number.astype(np.uint32)
            partner = number - place + np.where(place <= number, np.uint32(0), count)
            bits = _mixed((np.maximum(place, partner) ^ key) * _MIXED[2] + other)
            place = np.where(bits >> np.uint32(31) != 0, partner, place)
    return place


if _core is not None:  # without it a place takes as long as some hundred in a kernel
    NUMBERS["shuffled_place"] = lambda dtype: _shuffled_place

NEARLY: Final[dict[str, Callable[..., Array]]] = {
    "shuffled_place": _shuffled_place,
    "normal_of_bits_float64": _normal(np.float64),
    "normal_of_bits_float32": _normal(np.float32),
    **{
        name: _by_numpy(name)
        for name in (
            "gamma_draw_float64", "gamma_draw_float32", "poisson_draw_float64",
            "binomial_draw_float64", "hypergeometric_draw_float64", "zipf_draw_float64",
            "von_mises_draw_float64",
        )
    },
}  # fmt: skip
"""Rows for which NumPy has not the bits, but the values; or takes much longer than any kernel."""

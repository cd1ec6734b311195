"""Library calls of NumPy on mapped memory: sorts, Fourier transforms, determinants, correlation.

Every function has the parameter ``(shapes, extra)``: the shapes that its operands are stretched to,
and what it needs besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse.runtime.drivers.threads import in_parts

Array = Any


def _computed(
    function: Callable[[list[Array], Array, Any], None],
) -> Callable[[Sequence[Array], Array, Any], None]:
    def call(operands: Sequence[Array], out: Array, param: Any) -> None:
        shapes, extra = param
        arrays = [
            np.broadcast_to(operand, shape) for operand, shape in zip(operands, shapes, strict=True)
        ]
        function(arrays, out, extra)

    return call


def _argsort(arrays: list[Array], out: Array, how: Any) -> None:
    def change(part: Array, order: Array) -> None:
        np.copyto(order, np.argsort(part, **dict(how)))

    in_parts(change, (arrays[0], out), [dict(how)["axis"]], _SORTING * out.nbytes)


def _argpartition(arrays: list[Array], out: Array, how: Any) -> None:
    def change(part: Array, order: Array) -> None:
        np.copyto(order, np.argpartition(part, np.array(how[0], int), how[1]))

    in_parts(change, (arrays[0], out), [how[1]], out.nbytes)


def _lexsort(arrays: list[Array], out: Array, axis: int) -> None:
    def change(order: Array, *parts: Array) -> None:
        np.copyto(order, np.lexsort(parts, axis))

    in_parts(change, (out, *arrays), [axis], _SORTING * out.nbytes)


_SORTING: Final = 8
"""How many copies of an array take as long as to sort it, or to transform it."""


def _fourier(arrays: list[Array], out: Array, how: Any) -> None:
    name, sizes, axes, norm = how
    function = getattr(np.fft, name)
    # Between several axes the sizes change, and NumPy wants all of them in `out`.
    several = sizes is not None and name[-1] in "2n"

    def change(part: Array, transformed: Array) -> None:
        made = function(part, sizes, axes, norm, out=None if several else transformed)
        if made is not transformed:
            np.copyto(transformed, made)

    rank = out.ndim
    along = range(rank) if axes is None else [axes] if isinstance(axes, int) else axes
    in_parts(change, (arrays[0], out), along, _SORTING * out.nbytes)


def _det(arrays: list[Array], out: Array, _: Any) -> None:
    def change(matrices: Array, results: Array) -> None:
        results[...] = np.linalg.det(matrices)

    in_parts(change, (arrays[0], out), (-1, -2), arrays[0].nbytes)


def _slogdet(arrays: list[Array], out: Array, _: Any) -> None:
    def change(matrices: Array, signs: Array, logarithms: Array) -> None:
        signs[...], logarithms[...] = np.linalg.slogdet(matrices)

    parts = (arrays[0], out[0, ...], out[1, ...])
    in_parts(change, parts, (-1, -2), arrays[0].nbytes)


def _correlate(arrays: list[Array], out: Array, mode: Any) -> None:
    signal, kernel = arrays
    if mode != "valid":
        out[...] = np.correlate(signal, kernel.conj(), mode)
        return
    windows = np.lib.stride_tricks.sliding_window_view(signal, len(kernel))

    def change(part: Array, sums: Array) -> None:
        # Windows overlap: what they look at is one stretch of the signal.
        start = part[0, :1]
        stretch = np.lib.stride_tricks.as_strided(
            start, (len(part) + len(kernel) - 1,), signal.strides
        )
        sums[...] = np.correlate(stretch, kernel.conj(), "valid")

    in_parts(change, (windows, out), [1], out.nbytes * len(kernel))


NUMERICS: Final[dict[str, Callable[[Sequence[Array], Array, Any], None]]] = {
    "argsort": _computed(_argsort),
    "argpartition": _computed(_argpartition),
    "lexsort": _computed(_lexsort),
    "fourier": _computed(_fourier),
    "transform": _computed(_fourier),  # `schedule.device_libraries`: VkFFT makes it where it can
    "correlate": _computed(_correlate),
    "det": _computed(_det),
    "slogdet": _computed(_slogdet),
}
"""Name of a LIBRARY operation -> function of (operands, result to fill, param)."""

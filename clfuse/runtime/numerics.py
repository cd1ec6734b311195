"""What NumPy's compiled parts do best, from mapped memory into mapped memory: orders, Fourier
transforms, determinants; `runtime.host` calls it.

Every function has the parameter ``(shapes, extra)``: the shapes that its operands are stretched to,
and what it needs besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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
    np.copyto(out, np.argsort(arrays[0], **dict(how)))


def _argpartition(arrays: list[Array], out: Array, how: Any) -> None:
    np.copyto(out, np.argpartition(arrays[0], *how))


def _lexsort(arrays: list[Array], out: Array, axis: int) -> None:
    np.copyto(out, np.lexsort(arrays, axis))


def _fourier(arrays: list[Array], out: Array, how: Any) -> None:
    name, sizes, axes, norm = how
    function = getattr(np.fft, name)
    # Between several axes the sizes change, and NumPy wants all of them in `out`.
    several = sizes is not None and name[-1] in "2n"
    made = function(arrays[0], sizes, axes, norm, out=None if several else out)
    if made is not out:
        np.copyto(out, made)


def _det(arrays: list[Array], out: Array, _: Any) -> None:
    np.copyto(out, np.linalg.det(arrays[0]))


def _slogdet(arrays: list[Array], out: Array, _: Any) -> None:
    out[0], out[1] = np.linalg.slogdet(arrays[0])


NUMERICS: Final[dict[str, Callable[[Sequence[Array], Array, Any], None]]] = {
    "argsort": _computed(_argsort),
    "argpartition": _computed(_argpartition),
    "lexsort": _computed(_lexsort),
    "fourier": _computed(_fourier),
    "det": _computed(_det),
    "slogdet": _computed(_slogdet),
}
"""Name of a LIBRARY operation -> function of (operands, result to fill, param)."""

"""Copies in parts, between which an interrupt comes and a bar is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["COPIED_AT_ONCE", "TOUCHED_AT_ONCE", "as_bytes", "fresh_copy", "parts"]

COPIED_AT_ONCE: Final = 1 << 28
"""Bytes of a copy between host and device, which takes some 20 ms."""

TOUCHED_AT_ONCE: Final = 1 << 26
"""Bytes of a copy to fresh memory of the host: 25 ms, and twenty times that where the system has to
make room for it first."""


def as_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of an array in C order, without a copy."""
    return array.reshape(-1).view(np.uint8)


def parts(
    content: npt.NDArray[np.uint8], what: str, most: int | None = None
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Bytes to copy, in parts of `most`: where each begins, and the bytes.

    Parameters
    ----------
    content : numpy.ndarray
        All of them.
    what : str
        What is done, for the bar.
    most : int, optional
        `COPIED_AT_ONCE` if left out.
    """
    most = COPIED_AT_ONCE if most is None else most
    if len(content) <= most:
        yield 0, content
        return
    from clfuse.progress import Bar

    with Bar(what, len(content), "B") as bar:
        for start in range(0, len(content), most):
            bar.at(start)
            yield start, content[start : start + most]


def fresh_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy in C order, in memory of its own."""
    if array.nbytes <= TOUCHED_AT_ONCE:
        return np.array(array, order="C")
    from clfuse.progress import Bar

    made = np.empty(array.shape, array.dtype)
    done = 0
    with Bar("copying", array.nbytes, "B") as bar:
        for target, source in _blocks(made, np.asarray(array)):
            bar.at(done)
            target[...] = source
            done += target.nbytes
    return made


def _blocks(
    target: npt.NDArray[Any], source: npt.NDArray[Any]
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """The same parts of two arrays of one shape, of `TOUCHED_AT_ONCE` bytes at most."""
    if target.nbytes <= max(TOUCHED_AT_ONCE, target.itemsize):
        yield target, source
        return
    rows = len(target)
    if rows == 1:
        yield from _blocks(target[0], source[0])
        return
    step = max(rows * TOUCHED_AT_ONCE // target.nbytes, 1)
    for first in range(0, rows, step):
        yield from _blocks(target[first : first + step], source[first : first + step])

"""Copies in parts, between which an interrupt comes and a bar is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from clfuse.progress import Bar

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["fresh_copy", "parts"]

def parts(
    content: npt.NDArray[np.uint8], what: str, most: int
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Bytes to copy, in parts of `most`: where each begins, and the bytes.

    Parameters
    ----------
    content : numpy.ndarray
        All of them.
    what : str
        What is done, for the bar.
    most : int
    """
    with Bar(what, len(content), "B") as bar:
        for start in range(0, len(content), most):
            bar.at(start)
            yield start, content[start : start + most]


def fresh_copy(array: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """A copy in C order, in memory of its own, made in parts of `most` bytes."""
    made = np.empty(array.shape, array.dtype)
    done = 0
    with Bar("copying", array.nbytes, "B") as bar:
        for target, source in _blocks(made, np.asarray(array), most):
            bar.at(done)
            target[...] = source
            done += target.nbytes
    return made


def _blocks(
    target: npt.NDArray[Any], source: npt.NDArray[Any], most: int
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """The same parts of two arrays of one shape, of `most` bytes at most."""
    if target.nbytes <= max(most, target.itemsize):
        yield target, source
        return
    rows = len(target)
    if rows == 1:
        yield from _blocks(target[0], source[0], most)
        return
    step = max(rows * most // target.nbytes, 1)
    for first in range(0, rows, step):
        yield from _blocks(target[first : first + step], source[first : first + step], most)

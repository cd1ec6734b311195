"""Steps to views of host arrays by methods of NumPy, such as transpose, in place of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided


class Step:
    """A call of one of NumPy's methods that gave a view, and gives one of whatever lies alike.

    function (callable): a method of `numpy.ndarray`, such as ``transpose``.
    arguments (tuple): what it is given beside the array.
    """

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments

    def taken(self, array: Any) -> Any:
        """The view of a NumPy array."""
        return self.function(array, *self.arguments)

    def layout(
        self, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """Shape, offset and strides of the view of what lies so, all in elements.

        >>> Step(np.ndarray.reshape, (-1, 2)).layout((8,), 3, (-5,))
        ((4, 2), 3, (-10, -5))
        """
        # Of elements of one byte, which nobody reads.
        memory = as_strided(np.empty(1, np.int8), shape, strides)
        seen = self.taken(memory)
        return seen.shape, offset + _address(seen) - _address(memory), seen.strides


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])

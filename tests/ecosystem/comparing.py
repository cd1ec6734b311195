"""One body under NumPy and under clfuse; used by the tests beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import clfuse

VALUES = np.random.default_rng(7).standard_normal((8, 6))
VALUES[0, 0] = -0.0
HOLES = np.where(VALUES > 1, np.nan, VALUES)
LINE = np.random.default_rng(8).random(50)
MATRIX = VALUES.T @ VALUES + np.eye(6)


def plain(value: Any) -> Any:
    """What a library gave, as NumPy arrays and Python's numbers."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return np.asarray(value)


def agree(body: Callable[[Any], Any], rtol: float = 1e-10) -> Any:
    """Run `body` with each of the modules; their results must agree. Returns clfuse's.

    >>> type(agree(lambda np: np.arange(3) + 1)).__name__
    'ndarray'
    """
    expected, actual = plain(body(np)), body(clfuse)
    found = plain(actual)
    for one, other in (zip(found, expected, strict=True) if isinstance(found, list)
                       else [(found, expected)]):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    return actual


def agree_on_pixels(draw: Callable[[Any, Any], Any]) -> None:
    """Let ``draw(axes, m)`` draw with matplotlib for each of the modules: the same pixels."""
    from matplotlib import pyplot, use

    use("agg")

    def picture(m: Any) -> Any:
        figure, axes = pyplot.subplots(figsize=(2, 1.5))
        draw(axes, m)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba()).copy()  # type: ignore[attr-defined]
        pyplot.close(figure)
        return pixels

    agree(picture, rtol=0)

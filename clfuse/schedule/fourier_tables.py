"""Tables of Fourier transforms: roots of unity, chirps, and the spectra of chirps.

They are made on the host in NumPy's widest precision, each of an angle of at most an eighth of a
turn: none is more than a rounding off, however long the transform is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clfuse.dataclass import frozen

_PI: Final = np.longdouble("3.14159265358979323846264338327950288")

FINE: Final = 4096
"""Roots that a table has one by one; of finer turns it has two parts, whose products are the
roots."""


@frozen
class Table:
    """What a kernel reads besides its operands.

    kind: ``roots``: ``exp(-2 pi i k / n)`` for ``k < n``; ``parts``: those of `FINE` successive
        ``k``, then those of every multiple of it. ``chirp``: ``exp(-pi i k * k / n)`` for ``k <
        n``; ``spectrum``: the transform of its conjugate, periodic with `length`, divided by
        `length`.
    is_inverse: whether all of them are conjugated.
    char: the dtype's character, ``F`` or ``D``.
    length: of a spectrum.
    """

    kind: str
    n: int
    is_inverse: bool
    char: str
    length: int = 0

    @property
    def nbytes(self) -> int:
        """Its size."""
        count = {"parts": FINE + -(-self.n // FINE), "spectrum": self.length}.get(self.kind, self.n)
        return count * np.dtype(self.char).itemsize

    def values(self) -> npt.NDArray[Any]:
        """The numbers, as a vector of the dtype."""
        return _MADE[self.kind](self).astype(self.char)


def roots(k: npt.NDArray[np.int64], n: int, *, is_inverse: bool = False) -> npt.NDArray[Any]:
    """``exp(-2 pi i k / n)`` for ``0 <= k < n``, or their conjugates, as complex128.

    >>> roots(np.arange(4), 4).tolist() == [1, -1j, -1, 1j]
    True
    """
    quarters, rest = np.divmod(4 * k, n)  # turns of a quarter, and what is left in 4 n parts
    is_late = 2 * rest > n
    rest = np.where(is_late, n - rest, rest)
    angles = rest.astype(np.longdouble) * (_PI / (2 * n))
    cosine, sine = np.cos(angles).astype(float), np.sin(angles).astype(float)
    cosine, sine = np.where(is_late, sine, cosine), np.where(is_late, cosine, sine)
    real = np.choose(quarters, [cosine, -sine, -cosine, sine])
    imaginary = np.choose(quarters, [sine, cosine, -sine, -cosine])
    made = np.empty(k.shape, complex)
    made.real = real + 0.0  # without the sign of a zero
    made.imag = (imaginary if is_inverse else -imaginary) + 0.0
    return made


def _roots(table: Table) -> npt.NDArray[Any]:
    return roots(np.arange(table.n), table.n, is_inverse=table.is_inverse)


def _parts(table: Table) -> npt.NDArray[Any]:
    n = table.n
    places = np.concatenate([np.arange(FINE), FINE * np.arange(-(-n // FINE))])
    return roots(places, n, is_inverse=table.is_inverse)


def _chirp(table: Table) -> npt.NDArray[Any]:
    k = np.arange(table.n)
    return roots(k * k % (2 * table.n), 2 * table.n, is_inverse=table.is_inverse)


def _spectrum(table: Table) -> npt.NDArray[Any]:
    chirp = _chirp(table).conj()
    whole = np.zeros(table.length, complex)
    whole[: table.n] = chirp
    whole[table.length - table.n + 1 :] = chirp[:0:-1]
    return np.fft.fft(whole) / table.length


_MADE: Final = {"roots": _roots, "parts": _parts, "chirp": _chirp, "spectrum": _spectrum}

"""Library calls in the form in which they are made on a device: the matrices and the transforms of
libraries, and where our own Fourier transforms load and store."""

from __future__ import annotations

import numpy as np

from clfuse.dataclass import frozen

from .fourier_tables import Table

__all__ = ["Dim", "Matrix", "Product", "Side", "Transform"]


@frozen
class Matrix:
    """Matrices of one operand as BLAS takes them: rows (columns, where `turned`) lie `leading`
    elements apart, matrices `step`; offsets in elements."""

    value: int
    offset: int
    leading: int
    turned: bool
    step: int


@frozen
class Product:
    """As many products of a `rows` x `inner` with an `inner` x `columns` matrix as `batch` says."""

    rows: int
    columns: int
    inner: int
    batch: int
    left: Matrix
    right: Matrix


@frozen
class Transform:
    """A Fourier transform along `axes` of an array in C order, unscaled forwards, divided by
    its points back. ``kind`` is ``complex``, ``real`` (to half of a spectrum, forwards) or
    ``halved`` (from it, back); `shape` is that of the larger side."""

    kind: str
    is_forward: bool
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    value: int


@frozen
class Dim:
    """One dimension of the transforms of a `FourierPass`: how many there are along it, and how far
    apart: their elements in memory, and their positions on the axis, where several launches share
    it; each where they are loaded and where they are stored."""

    extent: int
    load_stride: int
    load_position: int
    store_stride: int
    store_position: int


@frozen
class Side:
    """Where a `FourierPass` loads or stores: elements of a value from `offset` on, `stride` apart
    on the axis, of which there are `count` (others are 0, or not stored).

    `form` is ``complex``, ``real``, or ``halved``: the first half of a spectrum of real values.
    `conjugates` says that each is conjugated, `table` by what each is multiplied.
    """

    value: int
    dtype: np.dtype
    offset: int
    stride: int
    count: int
    form: str
    conjugates: bool
    table: Table | None

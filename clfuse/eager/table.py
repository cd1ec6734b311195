"""Eager functions and methods that only read small arrays on the host: a table of them.

The table has how many arguments each may have, and what each costs. Where all arrays lie on the
host already (see `arrays.host_array`) NumPy's own function computes the result on their memory, and
the result becomes an array of ours: values, dtypes, errors and warnings are NumPy's by
construction. So it is with an `out` by name that lies on the host. All other calls (with an
argument that is no number, text, dtype or array, with a floating-point error of which NumPy would
warn) go on as if there were no such table.

The rule by which a call is taken is in ``_core/eager_calls.pxi``; without the compiled part there
is none, and every call is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from clfuse.arrays.host_array import AT_ONCE, PRODUCT_SHARE, SCALARS
from clfuse.target.costs import COSTS


class Cost(IntEnum):
    """What a call costs by its operands, in additions, before it is weighed."""

    ELEMENTS = 0
    """All elements of all operands."""
    STRETCHED = 1
    """The elements of the operands stretched to each other."""
    PAIRS = 2
    """All pairs (triples ...) of elements of different operands."""
    TIMES = 3
    """The elements of the first one, as many times as the other operands, integers, say."""
    PRODUCT = 4
    """The multiplications of a product of two matrices or vectors."""
    CUBED = 5
    """All elements times the longest of the last two extents: of matrices that are solved or
    decomposed."""
    SQUARED = 6
    """All pairs of elements of all operands."""
    COUNTED = 7
    """All elements, and as many more as integers beside the first operand say, tuples of them as a
    shape."""
    TAKEN = 8
    """All elements of vectors; of more axes a part of all pairs, as what is chosen may be rows."""
    LABELLED = 9
    """The product of the extents of all labels of `einsum`'s subscripts, which are text."""
    COMOMENTS = 10
    """All elements, as many times as there are variables: rows, or operands that are vectors."""
    DIAGONAL = 11
    """The elements of one diagonal of the last two axes."""


class Row(NamedTuple):
    """How NumPy answers a call."""

    operands: int
    """So many of the first arguments may be arrays, or lists of arrays; by name all may."""
    cost: Cost
    weight: float
    most: int
    """More positional arguments than that are not taken: one is written to, or says so."""
    method: str | None = None
    """The method of the first argument that gives the same, which NumPy's function calls."""
    as_is: bool = False
    """Whether the answer has nothing to do with arrays of ours."""
    is_loop: bool = False
    """Whether it is one loop, of which NumPy warns under the name that the user calls, or warns of
    nothing; others may be composed, and are recorded where NumPy would warn."""


(
    ELEMENTS, STRETCHED, PAIRS, TIMES, PRODUCT, CUBED, SQUARED, COUNTED, TAKEN, LABELLED, COMOMENTS,
    DIAGONAL,
) = Cost  # fmt: skip

ALL: Final = 99
"""More arguments than functions have."""

WAITED_FOR: Final = COSTS.library_additions / AT_ONCE
"""Additions an element of a sort and its kind, which fuses with nothing: it may take as long as a
small program may (CLFUSE_HOST_US)."""

LINEAR: Final = 4 / AT_ONCE
"""The same of a few passes over the elements, written in Python, whose steps would be recorded one
by one."""

SOLVED: Final = 1 / 16
"""Additions of the cube of an extent: LAPACK is called for it at once in any case."""

_BY_ELEMENTS: Final = (
    np.sum, np.prod, np.max, np.min, np.any, np.all, np.argmax, np.argmin, np.mean, np.var, np.std,
    np.cumsum, np.cumprod, np.ptp,
)  # fmt: skip
"""Those that have methods of the same arguments, but for `ptp`."""

_NO_DTYPE: Final = (np.any, np.all)
"""Their methods want a `dtype` third where the functions have `out`."""

_SORTS: Final = (np.argsort, np.argpartition)

_ROWS: Final[Mapping[Any, Row]] = {
    **{
        function: Row(
            1, ELEMENTS, 1, 3 if function in _NO_DTYPE else ALL,
            function.__name__ if function is not np.ptp else None,
        )
        for function in _BY_ELEMENTS
    },
    **dict.fromkeys(
        (
            np.count_nonzero, np.copy, np.concatenate, np.stack, np.vstack, np.hstack, np.dstack,
            np.column_stack, np.triu, np.tril, np.roll, np.linalg.norm, np.linalg.vector_norm,
            np.diff, np.flatnonzero, np.argwhere, np.nansum, np.nanprod, np.nanmax, np.nanmin,
            np.nanmean, np.nanvar, np.nanstd, np.nanargmax, np.nanargmin, np.ediff1d, np.packbits,
            np.nancumsum, np.nancumprod, np.unpackbits,
        ),
        Row(1, ELEMENTS, 1, ALL),
    ),
    **dict.fromkeys((np.nan_to_num, np.unwrap), Row(1, ELEMENTS, 4, 1)),
    np.nonzero: Row(1, ELEMENTS, 1, ALL, "nonzero"),
    np.round: Row(1, ELEMENTS, 4, 2, "round"),
    **dict.fromkeys(
        (
            np.array_equal, np.append, np.average, np.trapezoid, np.vdot, np.insert,
            np.extract, np.ravel_multi_index, np.unravel_index, np.delete,
        ),
        Row(2, ELEMENTS, 1, ALL),
    ),
    # Ufuncs of vectors, of which NumPy 2.0 has one and 2.2 all: no `out`, by place or name.
    **{
        function: Row(2, ELEMENTS, 1 / 2, 2)
        for name in ("vecdot", "matvec", "vecmat")
        if (function := getattr(np, name, None)) is not None
    },
    np.linalg.vecdot: Row(2, ELEMENTS, 1 / 2, 2),
    np.linalg.matmul: Row(2, PRODUCT, 1 / (AT_ONCE * PRODUCT_SHARE), 2, is_loop=True),
    **{
        function: Row(1, ELEMENTS, 1, 1)
        for name in ("cumulative_sum", "cumulative_prod")  # since NumPy 2.1
        if (function := getattr(np, name, None)) is not None
    },
    np.vander: Row(1, SQUARED, 1, 3),
    np.histogram2d: Row(3, COUNTED, 2 * WAITED_FOR, 3),
    np.resize: Row(1, COUNTED, 1, 2),
    np.compress: Row(2, ELEMENTS, 1, 3),
    **dict.fromkeys((np.where, np.select, np.isclose, np.allclose), Row(3, STRETCHED, 2, ALL)),
    **dict.fromkeys((np.array_equiv, np.cross), Row(2, STRETCHED, 4, ALL)),
    **dict.fromkeys((np.diag, np.diagflat), Row(1, SQUARED, 1, 2)),
    **dict.fromkeys((np.ascontiguousarray, np.asfortranarray), Row(1, ELEMENTS, 1, 1)),
    np.piecewise: Row(3, STRETCHED, 4, 3),
    np.histogramdd: Row(2, COUNTED, 2 * WAITED_FOR, 2),
    np.sinc: Row(1, ELEMENTS, 8, 1),
    **dict.fromkeys((np.iscomplex, np.isreal), Row(1, ELEMENTS, 2, 1)),
    **dict.fromkeys((np.fix, np.isneginf, np.isposinf), Row(1, ELEMENTS, 1, 1)),
    np.angle: Row(1, ELEMENTS, 8, 2),
    np.meshgrid: Row(4, PAIRS, 4, 4),
    np.trace: Row(1, DIAGONAL, 8, ALL, "trace"),
    np.linalg.trace: Row(1, DIAGONAL, 8, ALL),
    np.linalg.matrix_norm: Row(1, ELEMENTS, 4, ALL),
    **dict.fromkeys((np.linalg.matrix_power, np.linalg.multi_dot), Row(1, CUBED, SOLVED, 2)),
    np.clip: Row(3, STRETCHED, 1, ALL, "clip"),
    np.choose: Row(2, STRETCHED, 2, 2),
    np.take: Row(2, TAKEN, 1, 3, "take"),
    np.take_along_axis: Row(2, ELEMENTS, 4, ALL),
    np.repeat: Row(2, TIMES, 1, 3, "repeat"),
    np.tile: Row(2, TIMES, 1, ALL),
    **dict.fromkeys((np.outer, np.kron, np.convolve, np.correlate), Row(2, PAIRS, 1, ALL)),
    np.linalg.outer: Row(2, PAIRS, 1, 2),
    np.dot: Row(2, PRODUCT, 1 / (AT_ONCE * PRODUCT_SHARE), 2, is_loop=True),
    np.inner: Row(2, PAIRS, 1 / (AT_ONCE * PRODUCT_SHARE), 2),
    np.tensordot: Row(2, PAIRS, 1 / (AT_ONCE * PRODUCT_SHARE), ALL),
    np.einsum: Row(9, LABELLED, 1, 9),
    **{function: Row(1, ELEMENTS, WAITED_FOR, ALL, function.__name__) for function in _SORTS},
    np.partition: Row(1, ELEMENTS, WAITED_FOR, ALL),
    np.searchsorted: Row(2, ELEMENTS, WAITED_FOR, ALL, "searchsorted"),
    np.bincount: Row(3, COUNTED, 1, ALL),
    # What NumPy writes in Python, of sorts and the like.
    **dict.fromkeys(
        (
            np.sort, np.unique, np.unique_all, np.unique_counts, np.unique_inverse,
            np.sort_complex, np.gradient, np.median, np.nanmedian, np.lexsort,
            np.poly, np.roots,
        ),
        Row(1, ELEMENTS, WAITED_FOR, 2),
    ),
    **dict.fromkeys(
        (np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin, np.digitize),
        Row(2, ELEMENTS, WAITED_FOR, 2),
    ),
    **dict.fromkeys(
        (
            np.percentile, np.quantile, np.nanpercentile, np.nanquantile, np.polymul, np.polydiv,
            np.polyval,
        ),
        Row(2, PAIRS, 1, 2),
    ),
    **dict.fromkeys((np.cov, np.corrcoef), Row(2, COMOMENTS, 4, 2)),
    **dict.fromkeys(
        (
            np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft,
            np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2,
            np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn,
        ),
        Row(2, COUNTED, WAITED_FOR, 4),
    ),
    **dict.fromkeys((np.fft.fftshift, np.fft.ifftshift), Row(1, ELEMENTS, 4, 2)),
    np.interp: Row(3, ELEMENTS, WAITED_FOR, ALL),
    np.polyfit: Row(3, COUNTED, 2 * WAITED_FOR, ALL),
    np.polyder: Row(1, ELEMENTS, LINEAR, 2),
    **dict.fromkeys((np.polyadd, np.polysub), Row(2, ELEMENTS, LINEAR, 2)),
    np.polyint: Row(2, COUNTED, LINEAR, 2),
    **dict.fromkeys((np.block, np.asarray_chkfinite), Row(1, ELEMENTS, 1, 1)),
    np.unique_values: Row(1, ELEMENTS, WAITED_FOR, 1),
    **dict.fromkeys((np.histogram, np.histogram_bin_edges), Row(2, COUNTED, WAITED_FOR, ALL)),
    **dict.fromkeys(
        (
            np.linalg.cholesky, np.linalg.cond, np.linalg.det, np.linalg.eig, np.linalg.eigh,
            np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.inv, np.linalg.matrix_rank,
            np.linalg.pinv, np.linalg.qr, np.linalg.slogdet, np.linalg.svd, np.linalg.svdvals,
        ),
        Row(1, CUBED, SOLVED, ALL),
    ),
    **dict.fromkeys((np.linalg.solve, np.linalg.lstsq), Row(2, CUBED, SOLVED, ALL)),
}  # fmt: skip

_SILENT: Final = frozenset(
    (
        np.any, np.all, np.argmax, np.argmin, np.count_nonzero, np.copy, np.concatenate, np.stack,
        np.vstack, np.hstack, np.dstack, np.column_stack, np.triu, np.tril, np.roll, np.nonzero,
        np.flatnonzero, np.argwhere, np.append, np.insert, np.delete, np.extract, np.compress,
        np.where, np.diag, np.diagflat, np.take, np.repeat, np.tile, np.argsort, np.argpartition,
        np.sort, np.searchsorted, np.bincount, np.unique, np.array_equal,
    )
)  # fmt: skip
"""Functions that move elements, or compare them: there is nothing to warn of."""

ROWS: Final[Mapping[Any, Row]] = {
    function: row._replace(is_loop=row.is_loop or function in _SILENT)
    for function, row in _ROWS.items()
}
"""Functions of NumPy's that read their arguments and give new arrays, scalars or tuples of them."""


FOREIGN: Final = Row(1, STRETCHED, 8, 1)
"""Ufuncs of others, such as SciPy's, of numbers that live on devices; how many operands each has
it says."""


def _sorted_values(x: Any) -> Any:
    """`unique_values`, in order, which NumPy's are no longer since 2.3."""
    if np.asarray(x).dtype.kind == "c":  # NumPy keeps other ones among equals than a sort does
        return np.unique_values(x)
    return np.unique(x, equal_nan=False)


IN_PLACE_OF: Final[Mapping[Any, Any]] = {np.unique_values: _sorted_values}
"""Functions of which not NumPy's own is called."""

MORE_THAN_METHODS: Final = frozenset((np.clip, np.std, np.var))
"""Functions with arguments that their methods have not, or in other combinations."""

_METHODS: Final[Mapping[str, Row]] = {
    **{row.method: row._replace(method=None) for row in ROWS.values() if row.method},
    "copy": Row(1, ELEMENTS, 1, 2, is_loop=True),
    "flatten": Row(1, ELEMENTS, 1, 2, is_loop=True),
    "astype": Row(1, ELEMENTS, 1, 2, is_loop=True),
    "compress": Row(2, ELEMENTS, 1, 3),
    "dot": ROWS[np.dot],
    "choose": Row(ALL, STRETCHED, 2, ALL),
    "tolist": Row(1, ELEMENTS, 1, 1, as_is=True, is_loop=True),
    "tobytes": Row(1, ELEMENTS, 1, 2, as_is=True, is_loop=True),
    "item": Row(1, ELEMENTS, 0, ALL, as_is=True, is_loop=True),
}
METHODS: Final[Mapping[str, Row]] = dict(sorted(_METHODS.items()))
"""The same of methods; the array is the first argument."""

VIEWS: Final = ("transpose", "reshape", "swapaxes", "ravel", "squeeze", "diagonal")
"""Methods that give views where NumPy's do, and functions of the same names."""

VIEWING: Final[Mapping[Any, int]] = {
    np.linalg.diagonal: 0, np.moveaxis: 2, np.rollaxis: 2, np.expand_dims: 1, np.rot90: 1,
    np.flipud: 0, np.fliplr: 0, np.atleast_1d: 0, np.atleast_2d: 0, np.atleast_3d: 0,
    np.broadcast_to: 1,
    **{
        function: 0
        for space in (np, np.linalg)
        if (function := getattr(space, "matrix_transpose", None)) is not None
    },
}  # fmt: skip
"""Functions that give views, and how many arguments they may have beside the array."""

NAMED: Final[Mapping[Any, str]] = {
    np.expand_dims: "axis", np.squeeze: "axis", np.transpose: "axes", np.broadcast_to: "shape",
}  # fmt: skip
"""The names by which these get the first argument beside the array."""

OF_SCALARS: Final = frozenset(
    (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.expand_dims, np.broadcast_to)
)
"""Those to which one of NumPy's scalars is an array: others give scalars then."""

NUMPYS_NUMBERS: Final = frozenset(np.dtype(char).type for char in "bhilqBHILQfdFD")
"""Classes of NumPy's scalars."""

VIEWING_ALL: Final[Mapping[Any, int]] = {
    np.split: 2, np.array_split: 2, np.hsplit: 1, np.vsplit: 1, np.dsplit: 1,
    **({np.unstack: 0} if hasattr(np, "unstack") else {}),  # since NumPy 2.1
}
"""The same of functions that give several."""

VIEWING_EACH: Final[Mapping[Any, bool]] = {np.ix_: False, np.broadcast_arrays: True}
"""Functions of several arrays that give a view of each, or (True) what they were given."""

VIEWING_PARTS: Final[Mapping[Any, Any]] = {np.real: np.ndarray.real, np.imag: np.ndarray.imag}
"""The same of complex numbers, and NumPy's attributes."""

OPERANDS_OF_VIEWS: Final = {
    "transpose": 1, "reshape": 1, "swapaxes": 2, "ravel": 1, "squeeze": 1,
    "diagonal": 3,
}  # fmt: skip
"""Positional arguments of these functions beside the array that the methods have too; more, as in
``x.reshape(2, 3)``, is something else."""

WRITERS: Final[Mapping[str, int]] = {"fill": 2, "sort": 1, "partition": 1, "put": 3}
"""Methods that write to the array, and how many arguments may be arrays."""

WRITING: Final[Mapping[Any, int]] = {
    np.copyto: 2, np.put: 3, np.putmask: 3, np.place: 3, np.fill_diagonal: 2,
    np.put_along_axis: 3,
}  # fmt: skip
"""The same of functions, whose first argument is written to."""

UFUNC_METHODS: Final = {
    "reduce": (1, ELEMENTS), "accumulate": (1, ELEMENTS), "outer": (2, PAIRS),
    "reduceat": (2, ELEMENTS),
}  # fmt: skip
"""Methods of ufuncs: of how many arguments, and what they cost."""

REFUSED: Final = frozenset(
    ("out", "like", "device", "overwrite_input", "copy", "subok", "descending", "sorted")
)
"""Names of arguments that are not taken: the result is no new array, or ours do it in another way
(values of `unique` are always sorted). An `out` is taken where it is an array of ours on the host
that may be written to."""

OPTIONS: Final = frozenset((*SCALARS, str, type, type(None), type(Ellipsis)))
"""Classes of arguments that NumPy may have as they are."""

LONGEST_LIST: Final = 256
"""Entries of a list among the arguments that are looked at, each of 20 ns; more where they are
arrays of ours."""

DEEPEST_LIST: Final = 3

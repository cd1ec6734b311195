"""Eager functions and methods that only read small arrays on the host.

One table has these functions, how many arguments each may have, and what each costs. Where all
arrays lie on the host already (see `arrays.host_array`) NumPy's own function computes the result on
their memory, and the result becomes an array of ours: values, dtypes, errors and warnings are
NumPy's by construction. All other calls (with an `out`, with an argument that is no number, text,
dtype or array, with a floating-point error of which NumPy would warn) go on as if there were no
such table.

The rules exist twice, here and in ``_core/eager_calls.pxi``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.host_array import (
    AT_ONCE,
    DEFER,
    NATIVE_DTYPES,
    PRODUCT_SHARE,
    ROWS_SHARE,
    SCALARS,
    affordable,
    bring_to_host,
    view_elements,
    wrap_result,
)
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.ir import trace
from clfuse.policy.choice import known_works
from clfuse.runtime.memory.buffers import BY_ROWS, Buffer, HostBuffer
from clfuse.target.costs import COSTS

from .arithmetic import attempt_silently
from .indexing import is_brief
from .sequences import IN_A_LIST
from .sequences import numbers as numbers_of


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


ELEMENTS, STRETCHED, PAIRS, TIMES, PRODUCT, CUBED, SQUARED, COUNTED = Cost

ALL: Final = 99
"""More arguments than functions have."""

WAITED_FOR: Final = COSTS.library_additions / AT_ONCE
"""Additions an element of a sort and its kind, which fuses with nothing: it may take as long as a
small program may (CLFUSE_HOST_US)."""

SOLVED: Final = 1 / 16
"""Additions of the cube of an extent: LAPACK is called for it at once in any case."""

_BY_ELEMENTS: Final = (
    np.sum, np.prod, np.max, np.min, np.any, np.all, np.argmax, np.argmin, np.mean, np.var, np.std,
    np.cumsum, np.cumprod, np.trace, np.ptp,
)  # fmt: skip
"""Those that have methods of the same arguments, but for `ptp`."""

_NO_DTYPE: Final = (np.any, np.all)
"""Their methods want a `dtype` third where the functions have `out`."""

_SORTS: Final = (np.argsort, np.argpartition)

ROWS: Final[Mapping[Any, Row]] = {
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
            np.nancumsum, np.nancumprod,
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
    np.compress: Row(2, ELEMENTS, 1, 3),
    **dict.fromkeys((np.where, np.select, np.isclose, np.allclose), Row(3, STRETCHED, 2, ALL)),
    **dict.fromkeys((np.array_equiv, np.cross), Row(2, STRETCHED, 4, ALL)),
    **dict.fromkeys((np.diag, np.diagflat), Row(1, SQUARED, 1, 2)),
    **dict.fromkeys((np.sinc, np.iscomplex, np.isreal), Row(1, ELEMENTS, 8, 1)),
    **dict.fromkeys((np.fix, np.isneginf, np.isposinf), Row(1, ELEMENTS, 8, 1)),
    np.angle: Row(1, ELEMENTS, 8, 2),
    np.meshgrid: Row(4, PAIRS, 4, 4),
    **dict.fromkeys((np.linalg.trace, np.linalg.matrix_norm), Row(1, ELEMENTS, 4, ALL)),
    **dict.fromkeys((np.linalg.matrix_power, np.linalg.multi_dot), Row(1, CUBED, SOLVED, 2)),
    np.clip: Row(3, STRETCHED, 1, ALL, "clip"),
    np.choose: Row(2, STRETCHED, 2, 2),
    np.take: Row(2, PAIRS, 1 / 16, 3, "take"),  # of vectors it is less
    np.take_along_axis: Row(2, ELEMENTS, 4, ALL),
    np.repeat: Row(2, TIMES, 1, 3, "repeat"),
    np.tile: Row(2, TIMES, 1, ALL),
    **dict.fromkeys((np.outer, np.kron, np.convolve, np.correlate), Row(2, PAIRS, 1, ALL)),
    np.dot: Row(2, PRODUCT, 1 / (AT_ONCE * PRODUCT_SHARE), 2),
    np.inner: Row(2, PAIRS, 1 / (AT_ONCE * PRODUCT_SHARE), 2),
    np.tensordot: Row(2, PAIRS, 1 / (AT_ONCE * PRODUCT_SHARE), ALL),
    np.einsum: Row(9, PAIRS, 1, 9),
    **{function: Row(1, ELEMENTS, WAITED_FOR, ALL, function.__name__) for function in _SORTS},
    np.partition: Row(1, ELEMENTS, WAITED_FOR, ALL),
    np.searchsorted: Row(2, ELEMENTS, WAITED_FOR, ALL, "searchsorted"),
    np.bincount: Row(3, COUNTED, 1, ALL),
    # What NumPy writes in Python, of sorts and the like.
    **dict.fromkeys(
        (
            np.sort, np.unique, np.unique_all, np.unique_counts, np.unique_inverse,
            np.sort_complex, np.gradient, np.median, np.nanmedian, np.lexsort,
            np.poly, np.polyder, np.roots,
        ),
        Row(1, ELEMENTS, WAITED_FOR, 2),
    ),
    **dict.fromkeys(
        (
            np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin, np.digitize,
            np.polyadd, np.polysub,
        ),
        Row(2, ELEMENTS, WAITED_FOR, 2),
    ),
    **dict.fromkeys(
        (
            np.percentile, np.quantile, np.nanpercentile, np.nanquantile, np.polymul, np.polydiv,
            np.polyval,
        ),
        Row(2, PAIRS, 1, 2),
    ),
    **dict.fromkeys((np.cov, np.corrcoef), Row(2, SQUARED, SOLVED, 2)),
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
    np.polyint: Row(2, COUNTED, WAITED_FOR, 2),
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
"""Functions of NumPy's that read their arguments and give new arrays, scalars or tuples of them."""

_METHODS: Final[Mapping[str, Row]] = {
    **{row.method: row._replace(method=None) for row in ROWS.values() if row.method},
    "copy": Row(1, ELEMENTS, 1, 2),
    "flatten": Row(1, ELEMENTS, 1, 2),
    "astype": Row(1, ELEMENTS, 1, 2),
    "compress": Row(2, ELEMENTS, 1, 3),
    "dot": ROWS[np.dot],
    "choose": Row(ALL, STRETCHED, 2, ALL),
    "tolist": Row(1, ELEMENTS, 1, 1, as_is=True),
    "tobytes": Row(1, ELEMENTS, 1, 2, as_is=True),
    "item": Row(1, ELEMENTS, 0, ALL, as_is=True),
}
METHODS: Final[Mapping[str, Row]] = dict(sorted(_METHODS.items()))
"""The same of methods; the array is the first argument."""

VIEWS: Final = ("transpose", "reshape", "swapaxes", "ravel", "squeeze")
"""Methods that give views where NumPy's do; compiled, their functions of the same names too."""

WRITERS: Final[Mapping[str, int]] = {"fill": 2, "sort": 1, "partition": 1, "put": 3}
"""Methods that write to the array, and how many arguments may be arrays; compiled alone."""

WRITING: Final[Mapping[Any, int]] = {
    np.copyto: 2, np.put: 3, np.putmask: 3, np.place: 3, np.fill_diagonal: 2,
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
"""Names of arguments that are not taken: something is written to, the result is no new array, or
ours do it in another way (values of `unique` are always sorted)."""

OPTIONS: Final = frozenset((*SCALARS, str, type, type(None), type(Ellipsis)))
"""Classes of arguments that NumPy may have as they are."""

LONGEST_LIST: Final = 256
"""Entries of a list among the arguments that are looked at, each of 20 ns (0.3 us in Python);
more where they are arrays of ours."""

DEEPEST_LIST: Final = 3


# -- the rule --------------------------------------------------------------------------------------


class _Refused(Exception):
    """An argument is nothing for NumPy as it is."""


class _Given:
    """What the arguments of one call have of arrays."""

    __slots__ = ("device", "shapes", "share", "size")

    def __init__(self) -> None:
        self.device: Any = None
        self.share = 1  # of what is affordable: see `host_array.affordable`
        self.shapes: list[tuple[int, ...]] = []
        self.size = 0

    def operand(self, value: Any, depth: int = 0) -> Any:
        """What NumPy is given in its place."""
        kind = type(value)
        if kind is handles.ARRAY or kind in handles.SCALARS:
            buffer = value._storage.node.buffer
            if type(buffer) is not HostBuffer or self.device not in (None, buffer.device):
                raise _Refused
            self.device = buffer.device
            if buffer.use >= BY_ROWS:
                self.share = ROWS_SHARE
            array = buffer.array if value._view is None else view_elements(buffer.array, value)
            self.shapes.append(value._shape)
            self.size += array.size
            return array[()] if kind in handles.SCALARS else array
        if kind in OPTIONS:
            return value
        if kind is tuple or kind is list:
            many = len(value) > LONGEST_LIST
            if depth == DEEPEST_LIST or (many and type(value[0]) is not handles.ARRAY):
                raise _Refused
            before = self.size
            found = [self.operand(item, depth + 1) for item in value]
            if many:  # to record each of them takes longer
                self.size = max(before, self.size - IN_A_LIST * len(value))
            for item, old in zip(found, value, strict=True):
                if item is not old:
                    return found if kind is list else tuple(found)
            self.shapes.append((len(value),))
            self.size += len(value)
            return value
        if kind is np.ndarray and value.dtype in NATIVE_DTYPES:
            self.shapes.append(value.shape)
            self.size += value.size
            return value
        if isinstance(value, np.dtype):
            return value
        raise _Refused

    def cost(self, cost: Cost, args: Sequence[Any]) -> float:
        """What the call costs, before it is weighed."""
        if cost is ELEMENTS:
            return self.size
        if cost is SQUARED:
            return self.size**2
        if cost is COUNTED:
            return self.size + sum(
                [_times(value) for value in args if type(value) in (int, tuple)]
            )
        shapes = self.shapes
        if not shapes:
            raise _Refused
        if cost is STRETCHED:
            if shapes.count(shapes[0]) == len(shapes):
                return math.prod(shapes[0])
            rank = max(map(len, shapes))
            filled = [(1,) * (rank - len(shape)) + shape for shape in shapes]
            common: list[int] = [max(extents) for extents in zip(*filled, strict=True)]
            return math.prod(common)
        sizes = [math.prod(shape) for shape in shapes]
        if cost is PRODUCT and len(sizes) > 1:
            other = shapes[1]
            return max(sizes[0] * (other[-1] if len(other) > 1 else 1), sizes[1])
        if cost is CUBED:
            return self.size * max([max(shape[-2:]) for shape in shapes if shape], default=1)
        times = math.prod([size for size in sizes if size > 1])
        return times * math.prod(map(_times, args)) if cost is TIMES else times


def _times(value: Any) -> int:
    """How many times an argument of `Cost.TIMES` or `Cost.COUNTED` lets something be there."""
    if value is None:
        return 1
    if type(value) is int:
        return max(1, abs(value))
    if type(value) is not tuple or not all(type(item) is int for item in value):
        raise _Refused
    return math.prod(map(_times, value))


def _is_option(value: Any) -> bool:
    kind = type(value)
    if kind is tuple or kind is list:
        return len(value) <= LONGEST_LIST and all(type(item) in OPTIONS for item in value)
    return kind in OPTIONS or isinstance(value, np.dtype)


def call_reader(
    apply: Callable[..., Any], row: Row, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """``apply(*args, **kwargs)`` of NumPy's, by its row of the table, or `DEFER`."""
    operands, cost, weight, most, method, as_is = row
    if len(args) > most or (kwargs and not kwargs.keys().isdisjoint(REFUSED)):
        return DEFER
    given = _Given()
    found: list[Any] = []
    named: dict[str, Any] = {}
    try:
        for place, value in enumerate(args):
            if place < operands:
                found.append(given.operand(value))
            elif type(value) in OPTIONS or _is_option(value):
                found.append(value)
            else:
                return DEFER
        if kwargs:
            if cost is TIMES and len(args) < operands:
                return DEFER
            for key, value in kwargs.items():
                named[key] = given.operand(value)
        if given.device is None and args and (
            numbers_of(args[0]) is not DEFER
            or (type(args[0]) is np.ndarray and trace.active() is None)
        ):
            from clfuse.runtime.devices.selection import current_device

            device = current_device()
            given.device = device if device.fp64 else None
        if given.device is None:
            return DEFER
        numbers = (*args[1:operands], *kwargs.values()) if kwargs else args[1:operands]
        additions = given.cost(cost, numbers) * weight
        share = ROWS_SHARE if additions in known_works else given.share
        if not affordable(additions / share):
            return DEFER
    except _Refused:
        return DEFER
    if method is not None and type(found[0]) is np.ndarray:
        apply = getattr(np.ndarray, method)
    value = attempt_silently(apply, *found, **named)
    if type(value) is FloatingPointError:
        return DEFER  # it may be composed of others, under whose names NumPy warns
    if as_is:
        return value
    if type(value) is np.ndarray and value.base is None:
        for seen, given_here in zip(found, args, strict=True):
            if seen is value:
                return given_here if type(given_here) is handles.ARRAY else DEFER
        if not named:
            return wrap_result(value, given.device)
    elif type(value) is not np.ndarray and not isinstance(value, tuple):
        return wrap_result(value, given.device)
    pairs = [*zip(found, args, strict=True), *zip(named.values(), kwargs.values(), strict=True)]
    return _answered(value, pairs, given.device)


def _answered(value: Any, pairs: list[tuple[Any, Any]], device: Any) -> Any:
    """What NumPy has made, as ours; `DEFER` where it is a view of an operand."""
    if type(value) is np.ndarray:
        for seen, handle in pairs:
            if seen is value:
                return handle if type(handle) is handles.ARRAY else DEFER
            if any(_sees(value, array) for array in _arrays(seen)):
                return DEFER
        return wrap_result(value if value.base is None else value.copy("K"), device)
    if isinstance(value, tuple):
        items = [_answered(item, pairs, device) for item in value]
        if any(item is DEFER for item in items):
            return DEFER
        return tuple(items) if type(value) is tuple else type(value)(*items)
    return wrap_result(value, device)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if type(value) is np.ndarray:
        yield value
    elif type(value) is tuple or type(value) is list:
        for item in value:
            yield from _arrays(item)


def _sees(value: np.ndarray, array: np.ndarray) -> bool:
    base = value.base
    return base is array or (base is not None and base is array.base)


# -- before what records ---------------------------------------------------------------------------


def _method(name: str | None) -> Any:
    return None if name is None else getattr(np.ndarray, name)


def _before(plain: Callable[..., Any], apply: Callable[..., Any], row: Row) -> Callable[..., Any]:
    core = loading.load()
    if core is not None:
        call = core.reader(
            plain, apply, _method(row.method), row.operands, row.most, row.cost, row.weight,
            row.as_is,
        )  # fmt: skip
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = call_reader(apply, row, args, kwargs)
            return plain(*args, **kwargs) if answer is DEFER else answer

    return functools.update_wrapper(call, plain)


def _before_method_of_ufunc(
    plain: Callable[..., Any], name: str, operands: int, cost: Cost
) -> Callable[..., Any]:
    core = loading.load()
    if core is not None:
        call = core.method_of_ufunc(plain, name, operands, cost)
    else:

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = DEFER
            if self.numpy.signature is None:
                row = Row(operands, cost, self.weight, ALL)
                answer = call_reader(getattr(self.numpy, name), row, args, kwargs)
            return plain(self, *args, **kwargs) if answer is DEFER else answer

    return functools.update_wrapper(call, plain)


def before(reference: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    """`plain`, which answers for NumPy's function `reference`, with NumPy itself before it where
    the table says so."""
    row = ROWS.get(reference)
    if row is not None:
        if reference in _MORE_THAN_METHODS:
            row = row._replace(method=None)
        call = _before(plain, reference, row)
        core = loading.load()
        if reference is np.dot and core is not None:
            call = functools.update_wrapper(core.product_of_two(call), plain)
        return call
    core = loading.load()
    if core is None:
        return plain
    if reference is np.array:
        call = core.of_arrays(plain, _before(plain, reference, Row(1, ELEMENTS, 1, 2)))
    elif reference in (np.asarray, np.asanyarray):
        call = core.itself(plain)
    elif reference is np.flip:
        call = core.flipper(plain)
    elif reference in WRITING:
        call = core.writer(plain, reference, WRITING[reference])
    elif reference in _VIEWING:
        call = core.viewer(plain, _VIEWING[reference], _OPERANDS_OF_VIEWS[reference.__name__])
    else:
        return plain
    return functools.update_wrapper(call, plain)


def settled(reference: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    """`plain`, which runs NumPy's code step by step and may wait in it, with NumPy itself before it
    also where operands are small and only recorded: those are computed first."""
    row = ROWS.get(reference)
    if row is None:
        return plain

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        nodes = []
        for value in (*args[: row.operands], *kwargs.values()):
            for item in value if type(value) is list or type(value) is tuple else (value,):
                if type(item) is handles.ARRAY:
                    nodes.append(item._storage.node)
        if nodes and not all(type(node.buffer) is HostBuffer for node in nodes) and (
            all(map(is_brief, nodes))
        ):
            evaluate_nodes(nodes)
            for node in nodes:
                if type(node.buffer) is Buffer:
                    bring_to_host(node)
            answer = call_reader(reference, row, args, kwargs)
            if answer is not DEFER:
                return answer
        return plain(*args, **kwargs)

    return call


_OPERANDS_OF_VIEWS: Final = {
    "transpose": 1, "reshape": 1, "swapaxes": 2, "ravel": 1, "squeeze": 1,
}  # fmt: skip
"""Positional arguments of these functions beside the array that the methods have too; more, as in
``x.reshape(2, 3)``, is something else."""

_MORE_THAN_METHODS: Final = frozenset((np.clip, np.std, np.var))
"""Functions with arguments that their methods have not, or in other combinations."""

_VIEWING: Final = {getattr(np, name): getattr(np.ndarray, name) for name in VIEWS}


def put_before(array: type, ufunc: type) -> None:
    """The same for the methods of the class of arrays, and of that of ufuncs."""
    for name, (operands, cost) in UFUNC_METHODS.items():
        setattr(ufunc, name, _before_method_of_ufunc(getattr(ufunc, name), name, operands, cost))
    for name, row in METHODS.items():
        plain = getattr(array, name)
        setattr(array, name, _before(plain, getattr(np.ndarray, name), row))
    core = loading.load()
    if core is None:
        return
    at = core.writing_method_of_ufunc(ufunc.at, "at", 3)  # type: ignore[attr-defined]
    ufunc.at = functools.update_wrapper(at, ufunc.at)  # type: ignore[attr-defined]
    for name in VIEWS:
        plain = getattr(array, name)
        call = core.viewer(plain, getattr(np.ndarray, name), ALL)
        setattr(array, name, functools.update_wrapper(call, plain))
    turned = core.viewer(array.T.fget, np.ndarray.transpose, 0)  # type: ignore[attr-defined]
    array.T = property(turned, doc=array.T.__doc__)  # type: ignore[attr-defined]
    for name, operands in WRITERS.items():
        plain = getattr(array, name)
        call = core.writer(plain, getattr(np.ndarray, name), operands)
        setattr(array, name, functools.update_wrapper(call, plain))

"""NumPy's dispatch protocols, host copies, DLPack and pickles of an array."""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    OF_PROGRAM,
    adopt_host_array,
    device_of,
    from_host,
    host_copy,
    host_scalar,
    host_view,
)
from clfuse.arrays.handle import Handle, fresh, is_contiguous, is_writeable, layout, node_of
from clfuse.arrays.host_array import SCALARS
from clfuse.arrays.memory_order import stride_order
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.dispatch.host_call import host_call
from clfuse.dispatch.registry import BY_NUMPY, NATIVE
from clfuse.dtypes import is_native
from clfuse.eager import before
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.functions.math.ufunc import ufunc
from clfuse.functions.shaping.creation import array
from clfuse.ir import build
from clfuse.ir.nodes import Kind
from clfuse.numpy_releases import HAS_DLPACK_1
from clfuse.runtime.memory.buffers import HostBuffer

from . import interrupts
from .scipy_ufuncs import of_scipy

DLPACK_CPU: Final = (1, 0)
"""DLPack's code of host memory: what is exported is a copy there."""


class _Active(threading.local):
    """The NumPy functions that this thread is inside of, on the host."""

    def __init__(self) -> None:
        self.functions: list[Any] = []


_active = _Active()


# -- dispatch -------------------------------------------------------------------------------------


def array_ufunc(self: Handle, function: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: NumPy's ufuncs on our arrays are recorded like our own."""
    if len(inputs) == 2 and not kwargs and type(function) is np.ufunc and method == "__call__":
        # A scalar of NumPy's comes first: what an element of an array on the host is.
        known = BY_NUMPY.get(function)
        if known is not None and type(inputs[0]) in SCALARS and inputs[1] is self:
            return known(*inputs)
    if not isinstance(function, np.ufunc | ufunc):
        raise TypeError(f"__array_ufunc__() argument 1 must be a ufunc, not {function!r}")
    for operand in (*inputs, *kwargs.get("out", ()), kwargs.get("where")):
        if isinstance(operand, Handle | np.ndarray | np.generic):
            continue
        if hasattr(type(operand), "__array_ufunc__"):
            return NotImplemented
    ours = BY_NUMPY.get(function) or of_scipy(function)
    if ours is None:
        if method == "__call__" and not kwargs and isinstance(function, np.ufunc):
            return _foreign(function)(*inputs)
        name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        return host_call(getattr(function, method), inputs, kwargs, NOT_NUMPYS, name)
    return getattr(ours, method)(*inputs, **kwargs)


NOT_NUMPYS: Final = "it is no ufunc of NumPy's"
"""Why the host calls it."""

_NUMBERS: Final = frozenset("?bBhHiIlLqQefdgFDG->")
"""What the loops of a ufunc are of that knows nothing but numbers."""


@functools.lru_cache(maxsize=256)
def _foreign(function: np.ufunc) -> Callable[..., Any]:
    """A ufunc of others, as SciPy's are: at the call where the arrays are small."""

    def call(*inputs: Any) -> Any:
        return host_call(function, inputs, {}, NOT_NUMPYS, function.__name__)

    is_of_numbers = function.signature is None and _NUMBERS.issuperset("".join(function.types))
    return before(function, call) if is_of_numbers else call


def array_function(self: Handle, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """`__array_function__`: NumPy's functions on our arrays are ours, or run on the host."""
    for kind in types:
        if not issubclass(kind, Handle | np.ndarray):
            return NotImplemented
    ours = NATIVE.get(func)
    if ours is not None:
        return ours(*args, **kwargs)
    if func in _active.functions:
        return NotImplemented  # an array of ours was hidden where `host_call` does not look
    _active.functions.append(func)
    try:
        return host_call(func, args, kwargs)
    finally:
        _active.functions.pop()


# -- host copies ----------------------------------------------------------------------------------


def to_numpy(handle: Handle, dtype: Any, copy: bool | None) -> np.ndarray:
    """`__array__`: a read-only snapshot, without a copy where memory is shared; or a copy."""
    interrupts.again(handle, interrupts.ARRAY)
    if dtype is not None and np.dtype(dtype) != handle._dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return host_view(handle).astype(dtype)
    return host_copy(handle) if copy else host_view(handle)


def for_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """An ``__array__`` of a program's class, as NumPy takes it: an array of NumPy's in the place of
    one of ours, which `conversion.own_array` still gets."""

    @functools.wraps(method)
    def __array__(self: Any, *args: Any, **options: Any) -> Any:
        made = method(self, *args, **options)
        return to_numpy(made, None, None) if isinstance(made, Handle) else made

    setattr(__array__, OF_PROGRAM, method)
    return __array__


def interface(handle: Handle) -> dict[str, Any]:
    """`__array_interface__`: a read-only snapshot on the host, which `data` keeps alive; for those
    who keeps what it gets in order to write to it (`shares`), memory that is shared.

    It lies as ``x.strides`` says, because there is code that steps through what it gets with the
    strides of what it asked. These are always named.
    """
    interrupts.again(handle, interrupts.INTERFACE)
    if type(handle) is handles.ARRAY and shares(sys._getframe(2), handle):
        seen_by_numpy(handle)
        storage: Any = handle._storage
        run = storage.memory
        if not handles.is_writeable(handle):
            run = run.view()
            run.flags.writeable = False
        offset, strides = byte_layout(handle)
    else:
        try:
            run, offset, strides = laid_out(handle)
        except KeyboardInterrupt:
            interrupts.keep(handle, interrupts.INTERFACE)
            raise
    return {
        "version": 3,
        "shape": handle._shape,
        "typestr": handle._dtype.str,
        "strides": strides,
        "offset": offset,
        "data": _Memory.of(run, offset),
    }


class _Memory(np.ndarray):
    """What `__array_interface__` has for its data: memory, whose items are what NumPy has there:
    the address of the first element and whether it is read-only."""

    first: tuple[int, bool]

    @classmethod
    def of(cls, run: np.ndarray, offset: int) -> _Memory:
        """The memory of `run`, in which the first element lies `offset` bytes from the start."""
        made = run.view(cls)
        made.first = run.__array_interface__["data"][0] + offset, not run.flags.writeable
        return made

    def __getitem__(self, index: Any) -> Any:
        return self.first[index]

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Any:
        return iter(self.first)

    def __repr__(self) -> str:
        return repr(self.first)

    def __eq__(self, other: object) -> Any:
        return self.first == (other.first if isinstance(other, _Memory) else other)

    __hash__ = None


def laid_out(handle: Handle) -> tuple[np.ndarray, int, tuple[int, ...]]:
    """A read-only snapshot: memory in C order, and where the elements lie there, in bytes."""
    if _lies_there(handle):
        return stored_view(handle._storage.node), *byte_layout(handle)
    run = host_view(handle)
    order = stride_order(run.shape, run.strides)
    run = run if order is None else run.transpose(order)
    if not run.flags.c_contiguous:
        run = run.copy()
        run.flags.writeable = False
    return run, 0, run.strides if order is None else _strides_in_order(run.strides, order)


def byte_layout(handle: Handle) -> tuple[int, tuple[int, ...]]:
    """Offset and strides of an array in its storage, in bytes."""
    offset, strides = layout(handle)
    size = handle._dtype.itemsize
    return offset * size, tuple([stride * size for stride in strides])


def shares(asking: types.FrameType, handle: Handle) -> bool:
    """Whether the code that asks for the memory of `handle` gets what the array sees, too."""
    if asking.f_code in _masked():
        return True
    module = asking.f_globals.get("__name__")
    if _writes(module) or (
        _fills(module) and (asking.f_code.co_name in KEEPING or _may_be_blank(handle))
    ):
        return handles.is_writeable(handle)
    return _is_of_package(asking.f_code.co_filename) and _judge_of_receivers()(asking)


def _may_be_blank(handle: Handle) -> bool:
    """Whether it may have been made by ``numpy.empty_like`` just now: nothing was written to it, or
    it lies on the host, where sharing it costs little."""
    node = handle._storage.node
    if node.buffer is None and node.op.kind is Kind.VIEW:
        (node,) = node.inputs
    return node.op.kind is Kind.CONSTANT or type(node.buffer) is HostBuffer


def _masked() -> tuple[Any, ...]:
    """The code that makes masked arrays: such an array writes to the elements of what it is of."""
    masked = sys.modules.get("numpy.ma")
    if masked is None or not hasattr(masked, "masked_where"):
        return ()
    return masked.MaskedArray.__new__.__code__, masked.masked_where.__code__


INSTALLED: Final = frozenset(("site-packages", "dist-packages"))
"""What installers call the folders that they install into."""

_NOT_ASKED: Final = ("clfuse", "numpy")
"""Packages that know what they get."""


@functools.lru_cache(maxsize=1024)
def _is_of_package(file: str) -> bool:
    parts = file.split(os.sep)
    places = [place for place, part in enumerate(parts[:-1]) if part in INSTALLED]
    return bool(places) and parts[places[-1] + 1] not in _NOT_ASKED


@functools.cache
def _judge_of_receivers() -> Callable[[types.FrameType], bool]:
    from .receivers import is_written_to  # few programs hand arrays to packages

    return is_written_to


WRITERS: Final = (
    "scipy._lib", "scipy.cluster", "scipy.integrate", "scipy.interpolate", "scipy.io",
    "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.spatial", "scipy.sparse.csgraph",
    "scipy.sparse.linalg", "scipy.stats",
)  # fmt: skip
"""Packages whose compiled code asks for memory that it may write to, whether it does (``output=``)
or not: what their Python code takes by ``numpy.asarray`` is no snapshot. The rest of SciPy (fft,
linalg, special, operands of sparse matrices) only reads, and gets it without a copy."""

FILLERS: Final = ("scipy.sparse",)
"""Packages that make ``numpy.empty_like(x)`` of an array of ours that they were given
(``matrix.data = x``), and let compiled code fill that."""

KEEPING: Final = frozenset((
    "__init__", "getdata", "check_format", "<genexpr>",  # of coordinates
    "eliminate_zeros", "sort_indices", "sum_duplicates",
))  # fmt: skip
"""What makes a sparse matrix of arrays that it keeps, to be written to (``matrix.data *= 2``), and
what has compiled code write to them."""


@functools.lru_cache(maxsize=1024)
def _writes(module: str | None) -> bool:
    return _is_in(WRITERS, module)


@functools.lru_cache(maxsize=1024)
def _fills(module: str | None) -> bool:
    return _is_in(FILLERS, module)


def _is_in(packages: tuple[str, ...], module: str | None) -> bool:
    return module is not None and any(
        module == name or module.startswith(f"{name}.") for name in packages
    )


MOST_SPREAD: Final = 16
"""Of memory that only a device has, so many bytes are copied for each byte of a view, in order that
the copy lies as the view does; of a view that is thinner only what it shows."""


def _lies_there(handle: Handle) -> bool:
    """Whether what the array is a view of is, or is to be made, the memory that others get."""
    if handle._view is None or 0 in handle._shape:
        return False
    node = handle._storage.node
    if node.buffer is None:
        is_seen = device_of(handle).traits.unified_memory
    else:
        is_seen = node.buffer.seen_by_host
    if is_seen:
        return True
    shown = math.prod(handle._shape) * handle._dtype.itemsize
    return math.prod(node.shape) * node.dtype.itemsize <= MOST_SPREAD * shown


def _strides_in_order(strides: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array that was transposed by `order`: the strides of what it was."""
    found = [0] * len(order)
    for place, axis in enumerate(order):
        found[axis] = strides[place]
    return tuple(found)


class _Lent:
    """Memory of a read-only array, as one that says that it may be written to."""

    def __init__(self, owner: np.ndarray) -> None:
        self._owner = owner
        described = owner.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


_HOST = (1, 0)
"""DLPack's name of the host: kDLCPU, the first one."""


def to_dlpack(handle: Handle, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """`__dlpack__`: a copy on the host; with ``copy=False`` a snapshot in the array's own memory.

    Before version 1.0 the protocol cannot say that memory must not be written to: whoever asks for
    such a snapshot promises it.

    Raises BufferError: ``copy=False`` on a device that does not work in the host's memory, another
        `dl_device` than the host.
    """
    if copy is not None:
        copy = bool(copy)
    is_old = max_version is None or max_version[0] < 1 or not HAS_DLPACK_1
    if is_old and not handle.flags.writeable:
        raise BufferError(
            "Cannot export readonly array since signalling readonly is unsupported by DLPack."
        )
    options = {"stream": stream}
    if HAS_DLPACK_1:
        options |= {"max_version": max_version, "dl_device": dl_device}
    elif dl_device not in (None, _HOST):
        raise BufferError(f"dl_device {dl_device}: the installed NumPy exports to {_HOST} only")
    if copy is not False:
        return host_copy(handle).__dlpack__(**options)
    if not device_of(handle).traits.unified_memory:
        raise BufferError("the array's memory belongs to the device; DLPack gets a copy of it")
    host = host_view(handle)
    if is_old:
        host = np.asarray(_Lent(host))
    return host.__dlpack__(**options, copy=False) if HAS_DLPACK_1 else host.__dlpack__(**options)


def wrap_host_result(made: Any, return_scalar: bool) -> Any:
    """`__array_wrap__`: what a function of NumPy's made of an array of ours, as one of ours."""
    if not isinstance(made, Handle | np.ndarray):
        raise TypeError(f"__array_wrap__() argument 1 must be an array, not {type(made).__name__}")
    if isinstance(made, np.ndarray):
        made = array(made)
    return host_scalar(made) if return_scalar and not made.shape else made


OUT_OF_BAND: Final = 5
"""The protocol of pickles that may leave memory where it is."""


def reduced(handle: Handle, protocol: int) -> tuple[Any, tuple[Any, ...]]:
    """`__reduce_ex__`: what is repeated once, and by protocol 5 out of band: where memory is
    shared, the array's own memory is what travels. As with NumPy, only that stays read-only."""
    writeable = protocol < OUT_OF_BAND or not is_contiguous(handle) or is_writeable(handle)
    host = host_view(handle)
    shape = host.shape
    if is_contiguous(handle):
        return restored, (host, bool(writeable), shape)
    # A copy from a device lies side by side, in whatever order: the array's own strides count.
    _, strides = layout(handle)
    if 0 in strides and 0 not in shape:
        host = host[tuple([slice(None) if stride else slice(1) for stride in strides])]
    if not host.flags.forc or not handle.flags.forc:
        host = np.ascontiguousarray(host)
    return restored, (host, bool(writeable), shape)


def restored(values: np.ndarray, writeable: bool, shape: tuple[int, ...] | None = None) -> Any:
    """An array from its pickle. Where memory is shared, it keeps the memory that was received, and
    a buffer that was given to ``pickle.loads`` must not be written to."""
    made = adopt_host_array(values, is_given=True)
    if shape is not None and shape != values.shape:
        made = fresh(build.broadcast(node_of(made), shape))
    if not writeable:
        made.flags.writeable = False
    return made


def set_state(handle: Handle, state: Any) -> None:
    """`__setstate__`: become the array of a state of NumPy's. Views of what the array was keep its
    elements."""
    values: np.ndarray = np.ndarray((0,))
    values.__setstate__(state)
    if not is_native(values.dtype):
        raise TypeError(f"an array of dtype {values.dtype} is NumPy's: numpy.ndarray.__setstate__")
    node_of(handle)
    made = from_host(values)
    node_of(made)
    handle._storage, handle._shape, handle._dtype = made._storage, made._shape, made._dtype
    handle._view = made._view


def token(handle: Handle) -> tuple[str, Any]:
    """`__dask_tokenize__`: the same for the same contents, in every process."""
    from dask.tokenize import normalize_token

    return "clfuse.ndarray", normalize_token(host_view(handle))


def memory_nbytes(handle: Handle) -> int:
    """`__sizeof__`: as NumPy's, with the elements where the array owns them."""
    own = object.__sizeof__(handle)
    if handle._view is not None and handle._view.base is not None:
        return own
    node = handle._storage.node
    return own + math.prod(node.shape) * node.dtype.itemsize

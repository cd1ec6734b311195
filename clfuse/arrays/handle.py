"""The state of an array: a storage cell, and how the array lies on it.

`Handle` has the state and no methods. `fresh`, `result` and `view_of` make new handles. `set_types`
registers the two public classes that are derived from `Handle`, so that no lower module has to
import these classes.

Views count strides and offsets in elements of *their own* dtype over the flat C order of the
storage, as if its bytes were of that dtype. ``x.real`` of a complex array has twice the strides of
`x`. `reinterpret` turns such a description into nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.config import settings
from clfuse.dtypes import needs_fp64
from clfuse.engine.evaluate import lock
from clfuse.events import recorders
from clfuse.ir import build, trace
from clfuse.ir.layout import contiguous_strides, without_unit_strides
from clfuse.ir.nodes import (
    Node,
    Op,
    Storage,
    check,
    check_at,
    operations,
    rebind,
    record,
    recorded,
    tell,
)
from clfuse.ir.updates import modify_view
from clfuse.runtime.devices.selection import current_device

from . import reinterpret

DTYPES: Final[dict[str, np.dtype]] = {
    name: np.dtype(name)
    for name in (
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}
"""The dtypes that live on a device, one object each."""

_BOOL: Final = DTYPES["bool"]

MOST_NOT_NATIVE: Final = 1024
"""Entries of `_native` from which on dtypes of records, texts and times are looked at each time."""

_native: dict[np.dtype, np.dtype | None] = {}


def has_metadata(native: np.dtype | None, dtype: np.dtype) -> bool:
    """Whether a dtype that is equal to a native one has metadata, which that has not. (Others are
    not asked: NumPy 2.4's StringDType has no memory for an answer.)"""
    return native is not None and dtype.metadata is not None


def native_dtype(dtype: np.dtype) -> np.dtype | None:
    """The one object for a dtype that lives on the device, None for all others.

    Under ``CLFUSE_FP64=downcast``, on a device without double precision, float32 stands for
    float64.

    >>> native_dtype(np.dtype("longlong")) is np.dtype(np.int64), native_dtype(np.dtype(">f4"))
    (True, None)
    """
    found = _native.get(dtype, dtype)
    if found is dtype and dtype not in _native:
        # C's `long long`, which is equal, must not replace the usual object.
        found = DTYPES.get(dtype.name) if dtype.isnative and dtype.names is None else None
        if (found is not None or len(_native) < MOST_NOT_NATIVE) and not has_metadata(found, dtype):
            _native[dtype] = found
    if found is not dtype and has_metadata(found, dtype):
        return None
    if settings.fp64 == "downcast" and found is not None and needs_fp64(found) and lacks_fp64():
        return DTYPES["complex64" if found.kind == "c" else "float32"]
    return found


def downcasts() -> bool:
    """Whether float32 stands for float64 here and now: by the setting and by the current device,
    which a block, a thread or a task may have for itself.

    A part of every key under which an answer of `native_dtype` is kept.
    """
    return settings.fp64 == "downcast" and lacks_fp64()


def lacks_fp64() -> bool:
    """Whether the current device has no double precision."""
    return not current_device().fp64


class View:
    """How a handle lies on its storage, where that is not simply all of it in C order.

    offset, strides: in elements of the handle's dtype.
    writeable (bool): what ``flags.writeable`` says.
    base (Handle or None): the array that owns the storage; None for the owner itself.
    ordered (bool): whether strides fall from the first axis to the last and none is 0, as in C
        order: results of such operands lie in C order too (see `memory_order`).
    """

    __slots__ = ("base", "offset", "ordered", "strides", "writeable")

    def __init__(
        self,
        offset: int,
        strides: tuple[int, ...],
        base: Handle | None,
        ordered: bool,
        writeable: bool = True,
    ) -> None:
        self.offset = offset
        self.strides = strides
        self.base = base
        self.ordered = ordered
        self.writeable = writeable


class Handle:
    """Storage cell, shape, dtype, and a `View` or None for the whole storage in C order.

    The slots `_host`, `_device`, `_use`, `_owner` and `_seen` are for the compiled part
    (`_core/unstored_arrays.pxi`), which makes the cell of a result on the host, and the description
    of a view of it, only when they are read.
    """

    __slots__ = (
        "__weakref__", "_device", "_dtype", "_host", "_owner", "_seen", "_shape", "_storage",
        "_use", "_view",
    )  # fmt: skip
    _storage: Storage
    _shape: tuple[int, ...]
    _dtype: np.dtype
    _view: View | None

    if TYPE_CHECKING:
        # Every handle is of one of the public classes (`clfuse.classes.ndarray`). This is what
        # functions ask of one as they ask it of NumPy's arrays.

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> np.dtype: ...

        @property
        def ndim(self) -> int: ...

        @property
        def flags(self) -> Any: ...

        def __getitem__(self, index: Any, /) -> Any: ...

        def astype(self, *args: Any, **kwargs: Any) -> Any: ...

        def reshape(self, *shape: Any, **kwargs: Any) -> Any: ...

        def swapaxes(self, axis1: Any, axis2: Any, /) -> Any: ...

        def tolist(self) -> Any: ...


_new: Final = object.__new__
ARRAY: Any = Handle
SCALAR: Any = Handle
SCALAR_OF: Final[dict[np.dtype, Any]] = {}
"""dtype -> the class of its lazy scalars, all of them derived from `SCALAR`."""
SCALARS: Any = frozenset()
"""Those classes."""


def set_types(array: type[Handle], scalar: type[Handle]) -> None:
    """Set the classes that new handles get.

    Scalars of each dtype have a class that is called as NumPy's, for who prints or compares names.
    """
    global ARRAY, SCALAR, SCALARS
    ARRAY, SCALAR = array, scalar
    for dtype in DTYPES.values():
        about = {"__slots__": (), "__module__": scalar.__module__, "__doc__": scalar.__doc__}
        SCALAR_OF[dtype] = type(dtype.type.__name__, (scalar,), about)  # of the metaclass of scalar
    SCALARS = frozenset(SCALAR_OF.values())


# -- new handles ----------------------------------------------------------------------------------


def fresh(node: Node) -> Any:
    """A new array that owns its storage, with the value of `node`."""
    handle = _new(ARRAY)
    handle._storage = record(node)
    handle._shape = node.shape
    handle._dtype = node.dtype
    handle._view = None
    return handle


def result(node: Node) -> Any:
    """What an operation returns: an array, or where NumPy returns a scalar, a lazy scalar."""
    handle = _new(ARRAY if node.shape else SCALAR_OF[node.dtype])
    handle._storage = record(node)
    handle._shape = node.shape
    handle._dtype = node.dtype
    handle._view = None
    return handle


def recorded_array(
    op: Op,
    inputs: tuple[Node, ...],
    shape: tuple[int, ...],
    dtype: np.dtype,
    cells: list[Any] = recorded,
    append: Callable[[Any], None] = recorded.append,
    note: Callable[[Any], None] = operations.append,
    reference: Callable[[Any], Any] = weakref.ref,
    new: Any = object.__new__,
    node_class: Any = Node,
    cell_class: Any = Storage,
) -> Any:
    """``fresh(Node(op, inputs, shape, dtype))``, for the operations that programs are made of.

    Written out, because calling the constructors takes twice the time (0.9 instead of 0.4 us).
    """
    node = new(node_class)
    node.op = op
    node.inputs = inputs
    node.shape = shape
    node.dtype = dtype
    node.param = None
    node.buffer = None
    node.computed = False
    storage = new(cell_class)
    storage.node = node
    append(reference(storage))
    note(op)
    if recorders:
        tell(node)
    if len(cells) >= check_at[0]:
        check()
    handle = new(ARRAY)
    handle._storage = storage
    handle._shape = shape
    handle._dtype = dtype
    handle._view = None
    return handle


def view_of(
    owner: Handle,
    shape: tuple[int, ...],
    offset: int,
    strides: tuple[int, ...],
    dtype: np.dtype | None = None,
    *,
    writeable: bool = True,
    rearranged: bool = False,
) -> Any:
    """An array on the storage of `owner`; what is written to one is seen in the other.

    `rearranged` says that axes may lie in another order than the owner's, or be stretched.
    """
    if type(owner) in SCALARS:
        if not shape:
            return owner  # the methods of NumPy's scalars give scalars
        owner = fresh(owner._storage.node)  # or arrays of their own
    handle = _new(ARRAY)
    handle._storage = owner._storage
    handle._shape = shape
    handle._dtype = owner._dtype if dtype is None else dtype
    old = owner._view
    view = handle._view = _new(View)  # as its constructor does, in half the time
    view.offset = offset
    view.strides = strides
    if old is None:
        view.base = owner
        view.ordered = not rearranged or is_ordered(shape, strides)
        view.writeable = writeable
    else:
        view.base = owner if old.base is None else old.base
        view.ordered = (old.ordered and not rearranged) or is_ordered(shape, strides)
        view.writeable = writeable and old.writeable
    return handle


# -- layout ---------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's strides of a new C-ordered array, in elements.

    >>> c_strides((2, 1, 4)), c_strides((0, 3))
    ((4, 4, 1), (3, 1))
    """
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides))


def is_ordered(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides fall from the first axis to the last, and none is 0 (extents of 1 aside).

    >>> is_ordered((2, 3), (6, -2)), is_ordered((2, 3), (1, 2)), is_ordered((2, 3), (0, 1))
    (True, False, False)
    """
    last = 0
    for extent, stride in zip(shape[::-1], strides[::-1], strict=True):
        if extent != 1:
            stride = abs(stride)
            if stride == 0 or stride < last:
                return False
            last = stride
    return True


def layout(handle: Handle) -> tuple[int, tuple[int, ...]]:
    """Offset and strides, in elements of the handle's dtype."""
    view = handle._view
    if view is None:
        return 0, c_strides(handle._shape)
    return view.offset, view.strides


def is_contiguous(handle: Handle) -> bool:
    """Whether the elements lie side by side in C order."""
    view = handle._view
    if view is None or 0 in handle._shape:
        return True
    strides = tuple(
        [0 if n == 1 else stride for n, stride in zip(handle._shape, view.strides, strict=True)]
    )
    return strides == contiguous_strides(handle._shape)


def is_writeable(handle: Handle) -> bool:
    """What ``flags.writeable`` says."""
    return handle._view is None or handle._view.writeable


# -- reading and writing --------------------------------------------------------------------------


def node_of(handle: Handle) -> Node:
    """The value that the array has now."""
    view = handle._view
    if view is None:
        return handle._storage.node
    return reinterpret.read_as(
        handle._storage.node, handle._shape, handle._dtype, view.offset, view.strides
    )


def write(handle: Handle, value: Node) -> None:
    """Let the array have `value`, whose shape broadcasts to its own; other dtypes are cast.

    Whoever shares the storage sees it. The caller has checked that the array may be written to.
    """
    view = handle._view
    if view is not None:
        write_region(handle, handle._shape, view.offset, view.strides, value)
    else:
        value = build.broadcast(build.cast(value, handle._dtype), handle._shape)
        rebind(handle._storage, value)


def write_region(
    handle: Handle, shape: tuple[int, ...], offset: int, strides: tuple[int, ...], value: Node
) -> None:
    """`write` to the elements at ``offset + sum(index * strides)`` of the handle's storage."""
    storage = handle._storage
    dtype = handle._dtype
    if value.dtype is not dtype:
        value = build.cast(value, dtype)
    if value.shape != shape:
        value = build.broadcast(value, shape)
    with lock:
        keep_bytes(handle)
        rebind(storage, reinterpret.write(storage.node, value, dtype, offset, strides))


def keep_bytes(handle: Handle) -> None:
    """Before a write to `handle`: where it is a view of another dtype of a bool array, its storage
    holds bytes from here on, because others than 0 and 1 may come; the array that owns it becomes a
    view of them.

    Not where NumPy sees the memory, nor in a trace, whose cells keep their dtypes.
    """
    view, storage = handle._view, handle._storage
    if view is None or handle._dtype is _BOOL or type(storage) is not Storage:
        return
    if storage.node.dtype is not _BOOL or trace.active() is not None:
        return
    owner = view.base
    if owner is None or owner._storage is not storage:
        return
    if owner._view is None:
        owner._view = View(0, c_strides(owner._shape), None, True)
    rebind(storage, build.cast(storage.node, DTYPES["uint8"]))


def bytes_of(handle: Handle) -> Any:
    """The array's bytes, where it is one of bools whose storage holds bytes (`keep_bytes`); None of
    any other, and in a trace."""
    if handle._dtype is not _BOOL or handle._view is None or trace.active() is not None:
        return None
    if handle._storage.node.dtype is not DTYPES["uint8"]:
        return None
    made = _new(ARRAY)
    made._storage = handle._storage
    made._shape = handle._shape
    made._dtype = DTYPES["uint8"]
    made._view = handle._view
    return made


def modify(handle: Handle, op: Op, operand: Node) -> None:
    """Write ``op(handle, operand)`` to the array; it has the array's shape and dtype."""
    storage = handle._storage
    shape = handle._shape
    dtype = handle._dtype
    view = handle._view
    with lock:
        node = storage.node
        if view is None:
            rebind(storage, Node(op, (node, operand), shape, dtype))
        elif node.dtype is dtype:
            strides = view.strides
            if 1 in shape:
                strides = without_unit_strides(shape, strides)
            rebind(storage, modify_view(node, op, operand, shape, view.offset, strides))
        else:
            write(handle, Node(op, (node_of(handle), operand), shape, dtype))

"""Iteration over arrays, and ``x.flat``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from clfuse.arrays.conversion import host_view
from clfuse.arrays.handle import Handle, fresh, layout, node_of, view_of
from clfuse.arrays.host_array import host_elements
from clfuse.arrays.views import reshape_view
from clfuse.functions.indexing import subscripts
from clfuse.numpy_releases import FLAT_BY_BOOL, FLAT_BY_FLOATS
from clfuse.runtime.memory.buffers import BY_ROWS, HostBuffer


def rows(handle: Handle) -> Iterator[Any]:
    """``iter(handle)``: views along the first axis, or of a vector its elements as NumPy scalars.

    Elements come from the host, read at once; again, where the array was written to meanwhile.
    """
    shape = handle._shape
    if not shape:
        raise TypeError("iteration over a 0-d array")
    buffer = handle._storage.node.buffer
    if type(buffer) is HostBuffer:
        buffer.use = max(buffer.use, BY_ROWS)
    return _elements(handle) if len(shape) == 1 else _views(handle)


def _views(handle: Handle) -> Iterator[Any]:
    offset, strides = layout(handle)
    for position in range(handle._shape[0]):
        yield view_of(handle, handle._shape[1:], offset + position * strides[0], strides[1:])


def _elements(handle: Handle) -> Iterator[np.generic]:
    node: Any = None
    values: Any = ()
    for position in range(handle._shape[0]):
        if handle._storage.node is not node:
            here = host_elements(handle)
            if here is not None:  # not held meanwhile, so that it can be written to in place
                yield here[position]
                here = None
                continue
            values = host_view(handle)
            node = handle._storage.node
        yield values[position]


class flatiter:
    """``x.flat``: the elements in C order, to iterate over, index and assign to."""

    def __init__(self, handle: Handle) -> None:
        self.base = handle
        self._position = 0
        self._iterator: Iterator[Any] | None = None

    def _flat(self) -> Any:
        """The elements as a vector that shares storage, or None where they do not lie so."""
        flat = reshape_view(self.base, (len(self),))
        return flat if flat._storage is self.base._storage else None

    def __len__(self) -> int:
        return math.prod(self.base._shape)

    def __iter__(self) -> flatiter:
        return self

    def _restart(self) -> None:
        """Begin anew, as NumPy's does when it is indexed."""
        self._position = 0
        self._iterator = None

    def __next__(self) -> Any:
        if self._iterator is None:
            flat = self._flat()
            if flat is None:
                flat = reshape_view(fresh(node_of(self.base)), (len(self),))
            self._iterator = _elements(flat)
        value = next(self._iterator)
        self._position += 1
        return value

    @property
    def index(self) -> int:
        """Position of the next element."""
        return self._position

    @property
    def coords(self) -> tuple[int, ...]:
        """Index of the next element, one number an axis."""
        shape = self.base._shape
        if self._position < len(self):
            return tuple(int(place) for place in np.unravel_index(self._position, shape))
        # Beyond the last element NumPy counts on along the first axis.
        return (shape[0], *(0 for _ in shape[1:])) if shape else ()

    def copy(self) -> Any:
        """The elements as a new vector."""
        return fresh(node_of(reshape_view(self.base, (len(self),))))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(host_view(self.copy()), dtype)

    def __getitem__(self, index: Any) -> Any:
        index = _flat_index(index, len(self))
        self._restart()
        chosen = subscripts.get(reshape_view(self.base, (len(self),)), index)
        return fresh(node_of(chosen)) if getattr(chosen, "_view", None) is not None else chosen

    def __setitem__(self, index: Any, value: Any) -> None:
        from clfuse.functions.shaping.manipulation import resize

        if isinstance(index, tuple) and not index:
            raise IndexError("Assigning to a flat iterator with a 0-D index is not supported")
        index = _flat_index(index, len(self))
        self._restart()
        flat = reshape_view(self.base, (len(self),))
        shape = subscripts.get(flat, index).shape
        if not shape:
            _put_one(flat, index, value)
        else:
            if not isinstance(value, Handle):
                value = np.asarray(value, self.base._dtype)  # NumPy's error for no such number
            if math.prod(shape):
                # NumPy repeats the values for as long as there are elements to fill.
                subscripts.put(flat, index, resize(value, shape))
        if flat._storage is not self.base._storage:
            subscripts.put(self.base, Ellipsis, reshape_view(flat, self.base._shape))

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __eq__(self, other: object) -> Any:
        return self.copy() == other

    def __ne__(self, other: object) -> Any:
        return self.copy() != other

    __hash__ = None  # type: ignore[assignment]


def _put_one(flat: Any, index: Any, value: Any) -> None:
    """``flat[index] = value``, one element: NumPy has one error for all that is no such number."""
    try:
        subscripts.put(flat, index, value)
    except (TypeError, ValueError, OverflowError):
        if not isinstance(index, int | np.integer):
            raise
        raise ValueError("Error setting single item of array.") from None


_COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"
_INVALID = (
    "only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid indices"
)


def _flat_index(index: Any, size: int) -> Any:
    """The one index that `flatiter` takes, as arrays take it; NumPy's errors and warnings.

    It knows no None and no lists of booleans; other numbers are still cut off to whole ones.
    """
    if isinstance(index, tuple):
        if len(index) > 1:
            raise IndexError(
                "too many indices for flat iterator: flat iterator is 1-dimensional, but "
                f"{len(index)} were indexed"
            )
        index = index[0] if index else Ellipsis
    if isinstance(index, flatiter | np.flatiter):
        index = index.copy()
    if isinstance(index, np.ndarray) and index.dtype.kind in "SU":
        if index.size:
            raise IndexError(_INVALID)
        return []
    if index is None or isinstance(index, str):
        raise IndexError(_INVALID)
    if isinstance(index, bool):
        if FLAT_BY_BOOL:
            _warned(FLAT_BY_BOOL)
        return 0 if index else slice(0, 0)
    if isinstance(index, Handle | np.ndarray) and index.dtype == bool and index.ndim:
        if index.shape != (size,):
            raise IndexError(
                "boolean index did not match indexed flat iterator along dimension 0; dimension "
                f"is {size} but boolean dimension is {index.shape[0]}"
            )
        return index
    if isinstance(index, slice | int | Handle | np.ndarray) or index is Ellipsis:
        return index
    found = np.asarray(index)
    if not FLAT_BY_FLOATS and found.dtype.kind in "bfc":
        if not found.ndim:
            raise IndexError("unsupported iterator index")
        return found.astype(np.intp)
    if found.dtype == bool:
        raise IndexError(
            "boolean indices for iterators are not supported because of previous behavior that was "
            "confusing (valid boolean indices are expected to work in the future)"
        )
    if found.dtype.kind in "fc" and found.size:
        if found.dtype.kind == "c":
            _warned(_COMPLEX_TO_REAL, np.exceptions.ComplexWarning)
            found = found.real
        _warned(FLAT_BY_FLOATS)
        found = found.astype(np.intp)
    if found.ndim:
        return found if found.size else []
    return int(found) if found.dtype.kind in "iu" else index


def _warned(message: str, category: type[Warning] = DeprecationWarning) -> None:
    import warnings

    from clfuse.user_frames import user_stacklevel

    warnings.warn(message, category, user_stacklevel())

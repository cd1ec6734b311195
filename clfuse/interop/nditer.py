"""``clfuse.nditer``: NumPy's iterator over host copies of our arrays.

NumPy's class cannot be derived from, and takes memory to work on. It gets copies that lie as the
arrays do; operands on one storage share a copy. Elements that were written are copied back when the
iteration ends: at the last element, at `close`, or at the end of ``with``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clfuse.arrays.conversion import host_node
from clfuse.arrays.handle import Handle, is_writeable, layout
from clfuse.dispatch.host_call import count_fallback
from clfuse.engine.evaluate import host_copy as stored_copy
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.ir.nodes import Storage, rebind

_Written = dict[int, tuple[Storage, np.ndarray]]
"""Storage cells by their `id`, each with the memory that stands for it."""

_WRITING = frozenset({"readwrite", "writeonly"})


def _flags_of(count: int, op_flags: Any) -> list[Sequence[str]]:
    if op_flags is None:
        return [()] * count
    if op_flags and all(isinstance(flag, str) for flag in op_flags):
        return [op_flags] * count
    return [flags or () for flags in op_flags]


class nditer:
    """NumPy's `numpy.nditer`, on the host; `operands` and what is iterated over are NumPy's arrays.

    Examples
    --------
    >>> import clfuse as np
    >>> a = np.arange(3)
    >>> with np.nditer(a, op_flags=["readwrite"]) as it:
    ...     for x in it:
    ...         x[...] = 2 * x
    >>> a
    array([0, 2, 4])
    """

    _iterator: Any
    _written: _Written

    def __init__(
        self, op: Any, flags: Any = None, op_flags: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        operands, written = _all_lent(op, op_flags, "nditer")
        object.__setattr__(self, "_written", written)
        object.__setattr__(self, "_iterator", np.nditer(operands, flags, op_flags, *args, **kwargs))

    @classmethod
    def _around(cls, iterator: Any, written: _Written) -> nditer:
        made = object.__new__(cls)
        object.__setattr__(made, "_written", written)
        object.__setattr__(made, "_iterator", iterator)
        return made

    def _write_back(self) -> None:
        for storage, memory in self._written.values():
            rebind(storage, host_node(memory.copy()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._iterator, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._iterator, name)

    def __enter__(self) -> nditer:
        self._iterator.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        answer = self._iterator.__exit__(*error)
        self._write_back()
        return answer

    def close(self) -> None:
        """End the iteration; what was written is in the arrays then."""
        self._iterator.close()
        self._write_back()

    def __iter__(self) -> nditer:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._write_back()
            raise

    def iternext(self) -> bool:
        """Go on to the next element; whether there is one."""
        is_left = self._iterator.iternext()
        if not is_left:
            self._write_back()
        return bool(is_left)

    def copy(self) -> nditer:
        """An iterator at the same place."""
        return self._around(self._iterator.copy(), self._written)

    __copy__ = copy

    def __len__(self) -> int:
        return len(self._iterator)

    def __getitem__(self, place: Any) -> Any:
        return self._iterator[place]

    def __delitem__(self, place: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __setitem__(self, place: Any, value: Any) -> None:
        self._iterator[place] = np.asarray(value) if isinstance(value, Handle) else value


def nested_iters(
    op: Any, axes: Any, flags: Any = None, op_flags: Any = None, *args: Any, **kwargs: Any
) -> tuple[nditer, ...]:
    """NumPy's `numpy.nested_iters`; what was written comes back when the outermost one ends."""
    operands, written = _all_lent(op, op_flags, "nested_iters")
    made = np.nested_iters(operands, axes, flags, op_flags, *args, **kwargs)
    return tuple(nditer._around(it, {} if place else written) for place, it in enumerate(made))


def _all_lent(op: Any, op_flags: Any, name: str) -> tuple[list[Any], _Written]:
    """The operands as NumPy takes them, and the memory of those that are written to."""
    operands = list(op) if isinstance(op, tuple | list) else [op]
    if any(isinstance(operand, Handle) for operand in operands):
        count_fallback(name)
    written: _Written = {}
    for operand, names in zip(operands, _flags_of(len(operands), op_flags), strict=False):
        if isinstance(operand, Handle) and not _WRITING.isdisjoint(names):
            storage = operand._storage
            written.setdefault(id(storage), (storage, stored_copy(storage.node)))
    lent = [_lent(item, written) if isinstance(item, Handle) else item for item in operands]
    return lent, written


def _lent(handle: Handle, written: _Written) -> np.ndarray:
    """The array's elements in host memory, with its own strides."""
    storage = handle._storage
    known = written.get(id(storage))
    memory = stored_view(storage.node) if known is None else known[1]
    offset, strides = layout(handle)
    flat = memory.reshape(-1).view(handle._dtype)
    if not flat.size:
        return np.empty(handle._shape, handle._dtype)
    return np.lib.stride_tricks.as_strided(
        flat[offset:],
        handle._shape,
        [step * handle._dtype.itemsize for step in strides],
        writeable=known is not None and is_writeable(handle),
    )

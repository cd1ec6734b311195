"""What Dask looks up by the type of a chunk, and the array backend ``"clfuse"``."""

from __future__ import annotations

import math
from typing import Any

import dask
import dask.array as da
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.dispatch import (
    empty_lookup,
    numel_lookup,
    percentile_lookup,
    to_numpy_dispatch,
)
from dask.array.percentile import _percentile
from dask.sizeof import sizeof

import clfuse
from clfuse.arrays.handle import SCALAR, Handle
from clfuse.functions.random.bits import Philox4x32
from clfuse.functions.random.module import RandomState
from clfuse.functions.shaping.creation import array, empty, full

# -- what Dask looks up by type -------------------------------------------------------------------


def _numel(chunk: Handle, axis: Any = None, keepdims: bool = False, dtype: Any = float) -> Any:
    """How many elements of the chunk each result of a reduction is made of: a constant."""
    shape = chunk._shape
    named = range(len(shape)) if axis is None else axis if hasattr(axis, "__len__") else (axis,)
    axes = {place % len(shape) for place in named}
    count = math.prod(shape[place] for place in axes)
    places = [place for place in range(len(shape)) if keepdims or place not in axes]
    return full([1 if place in axes else shape[place] for place in places], count, dtype)


def _to_numpy(chunk: Any, **options: Any) -> Any:
    return chunk.get()


def _nbytes(chunk: Any) -> int:
    """Bytes, as Dask counts those of NumPy's arrays: of a view its own, and no repetitions."""
    axes = zip(chunk.shape, chunk.strides, strict=True)
    return int(chunk.itemsize * math.prod([n if stride else min(n, 1) for n, stride in axes]))


def register() -> None:
    """Tell Dask's tables about our arrays and lazy scalars.

    What is not in here (`concatenate_lookup`, `tensordot_lookup` ...) Dask asks of NumPy's
    functions, and those ask ours.
    """
    for kind in (clfuse.ndarray, SCALAR):
        empty_lookup.register(kind, empty)
        numel_lookup.register(kind, _numel)
        percentile_lookup.register(kind, _percentile)
        to_numpy_dispatch.register(kind, _to_numpy)
        sizeof.register(kind, _nbytes)
    # An entry point names it too: it then is found where nobody has imported this.
    array_creation_dispatch.register_backend("clfuse", Backend())


# -- collections ----------------------------------------------------------------------------------


def to_chunk(values: Any) -> Any:
    """A chunk as an array of ours."""
    return values if isinstance(values, Handle) else array(values)


def _made(name: str, args: tuple[Any, ...], options: dict[str, Any], like: str = "meta") -> Any:
    """Dask's function of that name, with chunks of ours."""
    if options.get(like) is None:
        options[like] = empty((0,))
    with dask.config.set({"array.backend": "numpy"}):
        return getattr(da, name)(*args, **options)


class Backend(ArrayBackendEntrypoint):
    """The array backend ``"clfuse"``.

    ``dask.config.set({"array.backend": "clfuse"})`` lets `dask.array.ones`, `arange` and their
    like, and `dask.array.random`, make chunks on the device; ``x.to_backend("clfuse")`` brings a
    collection there, ``x.to_backend("numpy")`` back.
    """

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """What converts a chunk."""
        return to_chunk

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """The collection with chunks of ours."""
        if isinstance(data._meta, Handle):
            return data
        return data.map_blocks(to_chunk, meta=to_chunk(data._meta), **options)

    @property
    def RandomState(self) -> Any:
        """What `dask.array.random.RandomState` draws with."""
        return RandomState

    @property
    def default_bit_generator(self) -> Any:
        """What `dask.array.random.default_rng` draws with."""
        return Philox4x32

    @staticmethod
    def ones(*args: Any, **options: Any) -> Any:
        """`dask.array.ones`."""
        return _made("ones", args, options)

    @staticmethod
    def zeros(*args: Any, **options: Any) -> Any:
        """`dask.array.zeros`."""
        return _made("zeros", args, options)

    @staticmethod
    def empty(*args: Any, **options: Any) -> Any:
        """`dask.array.empty`."""
        return _made("empty", args, options)

    @staticmethod
    def full(*args: Any, **options: Any) -> Any:
        """`dask.array.full`."""
        return _made("full", args, options)

    @staticmethod
    def arange(*args: Any, **options: Any) -> Any:
        """`dask.array.arange`."""
        return _made("arange", args, options, "like")

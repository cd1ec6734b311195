"""Library steps: recorded operations that NumPy computes on mapped memory of the device."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from clfuse.arrays import errstate
from clfuse.arrays.conversion import NotNative
from clfuse.arrays.handle import native_dtype
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.runtime.devices.selection import current_device

from .host_call import count_copies


def step(
    name: str,
    nodes: Sequence[Node],
    shape: tuple[int, ...],
    dtype: np.dtype,
    extra: Hashable,
    called: str = "",
) -> Node:
    """What ``runtime.host.numerics.NUMERICS[name]`` makes of the nodes; nothing in it is empty.

    `called` is what NumPy warns of floating-point errors in, if it does.
    """
    count_copies(name)
    return recorded(name, nodes, shape, dtype, extra, called)


def recorded(
    name: str,
    nodes: Sequence[Node],
    shape: tuple[int, ...],
    dtype: np.dtype,
    extra: Hashable,
    called: str = "",
) -> Node:
    """The same of a step that kernels of the device make: nothing is copied for it."""
    shapes = tuple([node.shape for node in nodes])
    node = build.library(name, nodes, shape, dtype, (shapes, extra))
    return errstate.apply_errstate(node, called)


def has_sorts() -> bool:
    """Whether the current device sorts by kernels of ours (`schedule.lower.sorting`)."""
    return current_device().assumed_traits.schedule == "gpu"


def dtype_of(function: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.dtype:
    """What dtype NumPy's function gives for one: asked with ones of that shape.

    Raises NotNative: it refuses the dtype, or gives one that lives on no device.
    """
    try:
        found = native_dtype(_numpys_dtype(function, dtype, shape))
    except TypeError as error:
        raise NotNative(str(error)) from None
    if found is None:
        raise NotNative(f"of {dtype}")
    return found


@lru_cache(maxsize=512)
def _numpys_dtype(function: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.dtype:
    found: np.dtype = function(np.ones(shape, dtype)).dtype
    return found


def size_of(shape: tuple[int, ...]) -> int:
    """Elements of an array; `NotNative` where it has none: NumPy says what comes of it."""
    size = math.prod(shape)
    if not size:
        raise NotNative("of an empty array")
    return size

"""Text of arrays: NumPy's own, of a host view; called by `ndarray`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .conversion import host_scalar, host_view
from .fallback import native
from .handle import Handle


def representation(handle: Handle) -> str:
    """``repr`` of an array: the same text as NumPy's."""
    return repr(host_view(handle))


def text(handle: Handle) -> str:
    """``str`` of an array."""
    return str(host_view(handle))


def formatted(handle: Handle, specification: str) -> str:
    """``format`` of an array: 0-d as its element, others take no specification."""
    return format(host_view(handle), specification)


def scalar_representation(handle: Handle) -> str:
    """``repr`` of a lazy scalar: as of the NumPy scalar that it stands for."""
    return repr(host_scalar(handle))


def _hosted_text(value: Any) -> Any:
    return host_view(value) if isinstance(value, Handle) else value


@native(np.array2string)
def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """`numpy.array2string` of an array."""
    return np.array2string(_hosted_text(a), *args, **kwargs)


@native(np.array_repr)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """`numpy.array_repr` of an array."""
    return np.array_repr(_hosted_text(arr), *args, **kwargs)


@native(np.array_str)
def array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    """`numpy.array_str` of an array."""
    return np.array_str(_hosted_text(a), *args, **kwargs)

"""The text of arrays, formatted by NumPy from a host view."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from clfuse.arrays.conversion import host_scalar, host_view
from clfuse.arrays.handle import Handle, node_of
from clfuse.dispatch.host_call import native
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.functions.indexing import subscripts
from clfuse.ir.nodes import Kind


def representation(handle: Handle) -> str:
    """``repr`` of an array: the same text as NumPy's."""
    return repr(_shown(handle))


def text(handle: Handle) -> str:
    """``str`` of an array."""
    return str(_shown(handle))


def notebook(handle: Handle) -> str:
    """``_repr_html_``: what a notebook shows, NumPy's text below a line that says what it is."""
    import html

    shown = html.escape(representation(handle))
    node = handle._storage.node
    where = "host" if node.buffer is None else str(node.buffer.device.name)
    if node.buffer is None and node.op.kind is not Kind.CONSTANT:
        where = "not computed yet"
    size = math.prod(handle._shape) * handle._dtype.itemsize
    return (
        f"<div><small>clfuse.ndarray, shape {handle._shape}, {handle._dtype}, {size:,} bytes, "
        f"{html.escape(where)}</small><pre>{shown}</pre></div>"
    )


def _shown(handle: Handle) -> np.ndarray:
    """The array on the host; of a large one, where that takes a copy or where it is not computed
    and somebody waits at a prompt, only what NumPy prints."""
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if math.prod(handle._shape) <= options["threshold"]:
        return host_view(handle)
    if is_interactive() and (shown := _previewed(handle, edge)) is not None:
        return shown
    evaluate_nodes([node_of(handle)])
    buffer = handle._storage.node.buffer
    if buffer is None or buffer.seen_by_host:
        return host_view(handle)
    shown = np.zeros(handle._shape, handle._dtype)  # the system gives no memory to the rest of it
    parts = [
        (slice(edge), slice(extent - edge, None)) if extent > 2 * edge else (slice(None),)
        for extent in handle._shape
    ]
    for corner in itertools.product(*parts):
        shown[corner] = host_view(subscripts.get(handle, corner))
    return shown


def is_interactive() -> bool:
    """Whether somebody sits at a prompt: only there arrays are shown that are not computed."""
    return hasattr(sys, "ps1")


def _previewed(handle: Handle, edge: int) -> np.ndarray | None:
    """An array with what NumPy prints, none of it computed but that."""
    from clfuse.engine.previews import corners

    node = node_of(handle)
    if node.buffer is not None:
        return None
    spans = [
        ((0, edge), (extent - edge, extent)) if extent > 2 * edge else ((0, extent),)
        for extent in handle._shape
    ]
    places = list(itertools.product(*spans))
    found = corners(node, places)
    if found is None:
        return None
    shown = np.zeros(handle._shape, handle._dtype)  # as in `_shown`
    for place, values in zip(places, found, strict=True):
        shown[tuple([slice(start, stop) for start, stop in place])] = values
    return shown


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


def _scalar_text(function: Callable[..., str]) -> None:
    @functools.wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> str:
        return function(_hosted_text(x), *args, **kwargs)

    native(function)(call)


_scalar_text(np.format_float_positional)
_scalar_text(np.format_float_scientific)

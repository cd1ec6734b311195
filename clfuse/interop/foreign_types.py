"""Our arrays where another library asks for the type of what it is given, and has a protocol or a
table for the types that it did not know.

autoray looks functions up by the package that the type of an array comes from.

JAX looks the type of an argument up: for its abstract value, and for what is copied to its device.
Arrays and lazy scalars of ours are entered there as what NumPy's arrays in their memory are; its
``jax.numpy`` asks for ``__jax_array__`` besides. CasADi asks for ``__DM__``, a matrix of its own,
xarray for ``_repr_inline_``, a line of text.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_scalar, host_view
from clfuse.arrays.handle import Handle

__all__ = [
    "enter_table", "index_in_xarray", "register_with_autoray", "register_with_casadi",
    "register_with_jax", "register_with_xla", "show_in_xarray",
]  # fmt: skip



def register_with_jax(abstract_arrays: types.ModuleType) -> None:
    """Enter our types into the tables that this module of JAX's has filled with NumPy's."""
    _enter(abstract_arrays.core.pytype_aval_mappings)
    dtypes = abstract_arrays.dtypes
    if hasattr(dtypes, "register_canonicalize_value_handler"):  # before: `register_with_xla`
        for kind in _kinds():
            dtypes.register_canonicalize_value_handler(
                kind, lambda handle: dtypes.canonicalize_value(_on_host(handle))
            )
    _answer("__jax_array__", _as_jax_array)


def register_with_xla(xla: types.ModuleType) -> None:
    """Enter our types where releases of JAX before 0.7 look up what is copied to the device."""
    _enter(getattr(xla, "canonicalize_dtype_handlers", {}))


def enter_table(module: types.ModuleType, *path: str) -> None:
    """In a table by class, which lies in the module at `path`: what stands for NumPy's classes, or
    for a tuple of them, stands for ours, too."""
    found: Any = module
    for name in path:
        found = getattr(found, name, None)
    of_class = {
        kind: value
        for key, value in (found or {}).items()
        for kind in (key if isinstance(key, tuple) else (key,))
    }
    kinds = [(dtype.type, scalar) for dtype, scalar in handles.SCALAR_OF.items()]
    for theirs, ours in [(np.ndarray, handles.ARRAY), *kinds]:
        value = next((of_class[kind] for kind in theirs.__mro__ if kind in of_class), None)
        if value is not None:
            found[ours] = value


def _enter(table: dict[type, Callable[[Any], Any]]) -> None:
    def call(handle: Handle) -> Any:
        host = _on_host(handle)
        return table[type(host)](host)

    table.update(dict.fromkeys(_kinds(), call))


def register_with_autoray(autoray: types.ModuleType) -> None:
    """Let autoray's functions be NumPy's for our arrays, which these leave to ours."""
    autoray._MODULE_ALIASES["clfuse"] = "numpy"
    for table in (autoray._FUNCS, autoray._SUBMODULE_ALIASES, autoray._CUSTOM_WRAPPERS):
        entries = {name: made for (package, name), made in table.items() if package == "numpy"}
        table.update({("clfuse", name): made for name, made in entries.items()})
    autoray._FUNCS["clfuse", "to_numpy"] = _on_host


def register_with_casadi(casadi: types.ModuleType) -> None:
    """Have CasADi's functions take our arrays for matrices of numbers."""
    _answer("__DM__", lambda handle: casadi.DM(_on_host(handle)))


def show_in_xarray(formatting: types.ModuleType) -> None:
    """Let the texts of datasets show some numbers of our arrays, as of NumPy's."""
    _answer("_repr_inline_", formatting.format_array_flat)


def index_in_xarray(indexing: Any) -> None:
    """Have our arrays indexed as those that take NumPy's indices, element by element, too: xarray
    asks for the array API first, which has none of these."""
    plain = indexing.as_indexable

    def as_indexable(array: Any) -> Any:
        if type(array) is handles.ARRAY:
            return indexing.NdArrayLikeIndexingAdapter(array)
        return plain(array)

    indexing.as_indexable = as_indexable


def _answer(protocol: str, method: Callable[..., Any]) -> None:
    for kind in _kinds():
        setattr(kind, protocol, method)


def _kinds() -> tuple[type, ...]:
    return (handles.ARRAY, *handles.SCALARS)


def _on_host(handle: Handle) -> Any:
    return host_scalar(handle) if type(handle) in handles.SCALARS else host_view(handle)


def _as_jax_array(handle: Handle) -> Any:
    import jax.numpy

    return jax.numpy.asarray(_on_host(handle))

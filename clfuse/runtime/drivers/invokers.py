"""Keeps pyopencl's generated functions in memory, not in a database on disk.

For every kernel object pyopencl makes two Python functions, which clfuse never calls. It keeps
them in an SQLite file of the user's cache, and reads them back with `pickle`: with a damaged file
or a full disk no kernel can be made, and a file that another user has written runs that user's
code. In memory they cost less, too: 1 us for a kernel object in place of 300.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

__all__ = ["keep_in_memory"]


class _InMemory:
    """What pyopencl uses of `pytools.persistent_dict.WriteOncePersistentDict`."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return self._kept[_without_name(key)]

    def store_if_not_present(self, key: tuple[Any, ...], value: Any) -> None:
        self._kept.setdefault(_without_name(key), value)


def _without_name(key: tuple[Any, ...]) -> Hashable:
    """The key without the kernel's name, which the functions do not use: they take the kernel
    object. So there are as many as there are numbers of arguments, and lists of their types in
    programs of the user's that call pyopencl."""
    others = key[1:]
    try:
        hash(others)
    except TypeError:
        return repr(others)
    return others


def keep_in_memory() -> None:
    """Have pyopencl keep the functions of this process in memory."""
    import pyopencl as cl

    before = cl._PYOPENCL_NO_CACHE
    cl._PYOPENCL_NO_CACHE = True  # the import would open the database
    try:
        from pyopencl import invoker
    finally:
        cl._PYOPENCL_NO_CACHE = before
    if not isinstance(getattr(invoker, "invoker_cache", None), _InMemory):
        invoker.invoker_cache = _InMemory()  # type: ignore[assignment]

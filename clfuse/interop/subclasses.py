"""Subclasses of our array class: they derive from NumPy's, and their instances live on the host.

A program's ``class Sub(np.ndarray)`` needs NumPy's `__array_finalize__`, its memory, and its place
in functions of NumPy's. So the metaclasses here derive it from `numpy.ndarray`.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import types
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import host_copy
from clfuse.arrays.handle import DTYPES, Handle
from clfuse.dispatch.host_call import HostArguments
from clfuse.dispatch.overrides import METHODS, numpys, tell


class HostArray(np.ndarray):
    """What subclasses derive from: NumPy's array, which takes ours where it takes its own."""

    __module__ = "clfuse"

    def __new__(
        cls,
        shape: Any,
        dtype: Any = float,
        buffer: Any = None,
        offset: Any = 0,
        strides: Any = None,
        order: Any = None,
    ) -> Any:
        if isinstance(buffer, Handle):
            buffer = host_copy(buffer)
        return super().__new__(cls, shape, dtype, buffer, offset, strides, order)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        tell(cls)

    def __array_wrap__(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(array, Handle):
            array = host_copy(array)
        return super().__array_wrap__(array, *args, **kwargs)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """`numpy.ndarray.view`; as our array class it is one of NumPy's."""
        named = {name: _numpys(value) for name, value in kwargs.items()}
        return super().view(*map(_numpys, args), **named)


HostArray.__name__ = HostArray.__qualname__ = "ndarray"

class AskedForUfuncs:
    """What ``super().__array_ufunc__`` finds in a subclass of arrays that has its own."""

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # NumPy's refuses where any of them has a method of its own: our arrays do.
        host = HostArguments()
        named = {name: host.to_host(value) for name, value in kwargs.items()}
        return np.ndarray.__array_ufunc__(
            self, numpys(function), method, *map(host.to_host, inputs), **named  # type: ignore[arg-type]
        )


class AskedForFunctions:
    """What ``super().__array_function__`` finds in a subclass of arrays that has its own."""

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        host = HostArguments()
        return np.ndarray.__array_function__(
            self,  # type: ignore[arg-type]
            numpys(function),
            tuple([kind for kind in types if issubclass(kind, np.ndarray)]),
            host.to_host(args),
            host.to_host(kwargs),
        )


_ASKED = {"__array_ufunc__": AskedForUfuncs, "__array_function__": AskedForFunctions}


@functools.cache
def _base(names: tuple[str, ...]) -> type:
    """What a subclass derives from that has methods of these names, of `METHODS`."""
    if not names:
        return HostArray
    return type("ndarray", (*map(_ASKED.__getitem__, names), HostArray), {"__module__": "clfuse"})


_NUMPYS: Final[Mapping[str, type]] = {dtype.type.__name__: dtype.type for dtype in DTYPES.values()}
"""NumPy's classes of the scalars that there are lazy ones of."""


def _numpys(kind: Any) -> Any:
    return np.ndarray if isinstance(kind, ArrayType) else kind


class ArrayType(type):
    """The class of `ndarray`: arrays that stay on the host are instances too."""

    shown_module = "clfuse"
    """The module in the class's representation: ``numpy``, in a program that knows no other."""

    def __repr__(cls) -> str:
        return f"<class '{ArrayType.shown_module}.{cls.__qualname__}'>"

    def __eq__(cls, other: object) -> bool:
        """``type(x) == np.ndarray`` holds for arrays that stay on the host, too.

        They have different hashes nonetheless: whoever keeps what he found out about a class, or
        registers functions by it, is to tell ours from NumPy's, as compiled code does.
        """
        return cls is other or other is np.ndarray

    __hash__ = type.__hash__

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        if not any(isinstance(base, ArrayType) for base in bases):
            return super().__new__(cls, name, bases, namespace)
        host = _base(tuple(filter(namespace.__contains__, METHODS)))
        theirs = tuple(host if isinstance(base, ArrayType) else base for base in bases)
        return types.new_class(name, theirs, options, lambda made: made.update(namespace))

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or issubclass(subclass, np.ndarray)


class ScalarType(type):
    """The class of lazy scalars' classes, which are shown as NumPy's are, and equal to them."""

    def __eq__(cls, other: object) -> bool:
        """``type(x) == np.float64``, ``type(x) in (np.float32, np.float64)``; see `ArrayType`."""
        return cls is other or (other is not None and other is _NUMPYS.get(cls.__name__))

    __hash__ = type.__hash__

    @property
    def dtype(cls) -> Any:
        """What NumPy finds where the class is given as a dtype (``numpy.zeros(3, type(x.sum()))``):
        it would make objects of any other class. Of an instance it is another attribute."""
        theirs = _NUMPYS.get(cls.__name__)
        if theirs is None:
            raise AttributeError(f"{cls.__qualname__} has no dtype")
        return np.dtype(theirs)

    def __repr__(cls) -> str:
        return f"<class '{ArrayType.shown_module}.{cls.__qualname__}'>"


def _reduced(cls: ScalarType) -> Any:
    """What pickle keeps of the class of a lazy scalar: NumPy's class of that name, which is what
    the name stands for in our namespace, and which is equal to it."""
    theirs = _NUMPYS.get(cls.__name__)
    if theirs is None:
        return cls.__qualname__
    return operator.attrgetter("type"), (np.dtype(theirs),)


copyreg.pickle(ScalarType, _reduced)

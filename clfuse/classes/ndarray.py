"""`ndarray` and `scalar`, the array and the lazy scalar that programs see.

Attributes, indexing and protocols are here; `methods` has the methods, `operators` the operators.

Reductions, and everything else for which NumPy returns a scalar, return a `scalar`: a value that
may not be computed yet and behaves like a NumPy scalar. It cannot be written to, ``+=`` makes a new
one, it hashes and formats as a number, and ``isinstance(x, numpy.floating)`` holds. Only
``type(x)`` and C code that looks at it can tell the difference.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle, views
from clfuse.arrays.conversion import device_of, host_copy, host_scalar
from clfuse.arrays.flags import flagsobj
from clfuse.arrays.handle import Handle, fresh, is_writeable, layout, native_dtype, node_of
from clfuse.arrays.host_array import standard
from clfuse.arrays.memory_order import copy_in_order
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.dispatch.numpy_errors import error_to_raise
from clfuse.dispatch.overrides import answers_itself
from clfuse.functions import attributes
from clfuse.functions.indexing import subscripts
from clfuse.functions.linalg.products import matmul
from clfuse.functions.shaping.creation import array as make_array
from clfuse.functions.shaping.creation import zeros
from clfuse.interop import buffers, protocols
from clfuse.interop.subclasses import ArrayType, ScalarType

from . import iteration, operators, printing
from .acceleration import accelerate
from .methods import ArrayMethods, MutatingMethods


class _Common(ArrayMethods):
    """What arrays and lazy scalars share."""

    __slots__ = ()

    # -- attributes -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, one an axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self._shape:
            size *= extent
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, one number an axis."""
        itemsize = self._dtype.itemsize
        if 0 in self._shape and self._view is None:
            return np.empty(self._shape, self._dtype).strides  # NumPy's versions differ
        return tuple([stride * itemsize for stride in layout(self)[1]])

    @property
    def flags(self) -> flagsobj:
        """How the array lies in memory and whether it may be written to."""
        return flagsobj(self)

    @property
    def base(self) -> Any:
        """The array whose storage this one looks at; None if that is its own."""
        return None if self._view is None else self._view.base

    @property
    def T(self) -> Any:
        """The array with its axes reversed: a view."""
        return views.permute_axes(self, range(len(self._shape))[::-1])

    @property
    def real(self) -> Any:
        """The real parts: a view."""
        return attributes.real_part(self)

    @property
    def imag(self) -> Any:
        """The imaginary parts: a view."""
        return attributes.imaginary_part(self)

    @property
    def flat(self) -> iteration.flatiter:
        """The elements in C order, to iterate over, index and assign to."""
        return iteration.flatiter(self)

    @property
    def data(self) -> memoryview:
        """The elements on the host as a `memoryview`, in memory that both share; of a scalar a
        copy."""
        return memoryview(buffers.shared_memory(self))  # type: ignore[arg-type] # both are buffers

    @property
    def device(self) -> Any:
        """The device that the array is, or will be, on."""
        return device_of(self)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return protocols.interface(self)

    # -- protocols --------------------------------------------------------------------------------

    __array_ufunc__ = protocols.array_ufunc
    __array_function__ = protocols.array_function

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return protocols.to_numpy(self, dtype, copy)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return protocols.wrap_host_result(array, return_scalar)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        # NumPy's error for a version that it does not know.
        np.empty(0).__array_namespace__(api_version=api_version)  # type: ignore[arg-type]
        standard[0] = True
        return sys.modules["clfuse"]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        return protocols.to_dlpack(self, stream, max_version, dl_device, copy)

    if sys.version_info >= (3, 12):  # where classes of Python's may be buffers
        __buffer__ = buffers.buffer
    elif loading.load() is None:  # no buffer, which `bytes` would take for a list of integers
        __bytes__ = buffers.in_bytes

    def __dlpack_device__(self) -> tuple[int, int]:
        return protocols.DLPACK_CPU

    __dask_tokenize__ = protocols.token

    def get(self) -> np.ndarray:
        """A copy on the host, as a `numpy.ndarray` that may be written to."""
        return host_copy(self)

    def to_numpy(self, dtype: Any = None, copy: bool = False) -> np.ndarray:
        """``numpy.asarray``, under the name by which pandas, xarray and matplotlib look for it."""
        return protocols.to_numpy(self, dtype, copy)


for _name, _function in operators.table().items():
    setattr(_Common, _name, _function)


class ndarray(MutatingMethods, _Common, metaclass=ArrayType):
    """An N-dimensional array on an OpenCL device, with NumPy's semantics.

    What is done with it is recorded; it is computed when a value is looked at.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
        One of NumPy's bool, integer, float16/32/64 and complex64/128 dtypes.
    buffer, offset, strides
        As for `numpy.ndarray`. On a buffer that may be written to, by others too (an array of ours
        is one), it is an array of NumPy's; of another one the contents are copied.
    order : {"C", "F"}

    Examples
    --------
    >>> import clfuse as np
    >>> x = np.arange(3.0)
    >>> x[1:] *= 2
    >>> x
    array([0., 2., 4.])
    """

    __slots__ = ()
    __module__ = "clfuse"
    __array_priority__ = 0.0
    __hash__ = None  # type: ignore[assignment]
    __class_getitem__ = classmethod(type(list[int]))  # type: ignore[var-annotated]

    def __new__(
        cls: type,
        shape: Any = None,
        dtype: Any = float,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: Any = None,
    ) -> Any:
        if type(buffer) is ndarray:
            buffer = seen_by_numpy(buffer)
        elif isinstance(buffer, Handle):
            buffer = host_scalar(buffer)
        if issubclass(cls, np.ndarray):  # a subclass calls what it derives from by name
            return np.ndarray.__new__(cls, shape, dtype, buffer, offset, strides, order)
        host = np.ndarray(shape, dtype, buffer, offset, strides, order)
        if native_dtype(host.dtype) is None:
            return host
        if buffer is None:
            columns = host.flags.f_contiguous and not host.flags.c_contiguous
            return zeros(host.shape, host.dtype, "F" if columns else "C")
        if host.flags.writeable:
            return host
        return make_array(host)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, one an axis; may be set where that needs no copy."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        attributes.set_shape(self, shape)

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of the elements; may be set to see the same bytes as another one."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        attributes.set_dtype(self, dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, one number an axis; may be set, which NumPy
        deprecates."""
        return super().strides

    @strides.setter
    def strides(self, strides: Any) -> None:
        attributes.set_strides(self, strides)

    @property
    def real(self) -> Any:
        """The real parts: a view; may be assigned to."""
        return attributes.real_part(self)

    @real.setter
    def real(self, value: Any) -> None:
        attributes.set_part(attributes.real_part(self), value)

    @property
    def imag(self) -> Any:
        """The imaginary parts: a view; may be assigned to."""
        return attributes.imaginary_part(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        attributes.set_part(attributes.imaginary_part(self), value)

    @property
    def flat(self) -> iteration.flatiter:
        """The elements in C order; may be assigned to."""
        return iteration.flatiter(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        if not is_writeable(self):
            raise ValueError("array is read-only")
        if isinstance(value, int | float | complex | list | tuple):
            np.asarray(value, self._dtype)  # NumPy's error for what does not fit
        iteration.flatiter(self)[:] = value

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped: a view."""
        if len(self._shape) < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return views.swap_axes(self, -1, -2)

    @property
    def ctypes(self) -> Any:
        """NumPy's ctypes object, of memory on the host that the array shares."""
        return seen_by_numpy(self).ctypes

    def __getitem__(self, index: Any) -> Any:
        try:
            return subscripts.get(self, index)
        except (IndexError, TypeError, ValueError) as error:
            wrong = error_to_raise(error, operator.getitem, self, index)
            if wrong is error:
                raise
            raise wrong from None

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            subscripts.put(self, index, value)
        except (IndexError, TypeError, ValueError) as error:
            wrong = error_to_raise(error, operator.setitem, self, index, value)
            if wrong is error:
                raise
            raise wrong from None

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iteration.rows(self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __repr__(self) -> str:
        return printing.representation(self)

    def _repr_html_(self) -> str:
        return printing.notebook(self)

    def __str__(self) -> str:
        return printing.text(self)

    def __format__(self, specification: str) -> str:
        return printing.formatted(self, specification)

    def __copy__(self) -> Any:
        return copy_in_order(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return copy_in_order(self)

    def __reduce__(self) -> Any:
        return protocols.reduced(self, 0)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return protocols.reduced(self, protocol)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        protocols.set_state(self, state)

    __sizeof__ = protocols.memory_nbytes

    def __matmul__(self, other: Any) -> Any:
        answer = operators.defers(self, other)
        return matmul(self, other) if answer is None else answer

    def __rmatmul__(self, other: Any) -> Any:
        answer = operators.defers(self, other)
        return matmul(other, self) if answer is None else answer

    def __imatmul__(self, other: Any) -> Any:
        if operators.comes_first(type(other)):
            return NotImplemented
        if self._shape and not answers_itself(other) and np.ndim(other) == 1:
            raise error_to_raise(
                ValueError(
                    "inplace matrix multiplication requires the first operand to have at least one "
                    "and the second at least two dimensions."
                ),
                operator.imatmul, self, other,
            )  # fmt: skip
        return matmul(self, other, out=self)


for _name, _function in operators.in_place_table().items():
    setattr(ndarray, _name, _function)


class scalar(_Common, metaclass=ScalarType):
    """A value that NumPy would have returned as a scalar, not necessarily computed yet.

    Immutable. ``isinstance(x, numpy.float64)`` and the like hold; arithmetic with it is recorded.
    """

    __slots__ = ()
    __module__ = "clfuse"
    __array_priority__ = -1000000.0
    __iter__ = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """``type(x)(value)``: a scalar of NumPy's, as its class would make it."""
        return getattr(np, cls.__name__)(*args, **kwargs)

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        return self._dtype.type

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not tuple:
            index = (index,)
        if not index:
            return self
        try:
            return subscripts.get(fresh(node_of(self)), index)
        except IndexError:
            raise IndexError("invalid index to scalar variable.") from None

    @property
    def flat(self) -> iteration.flatiter:
        """The one element, of a copy: what is assigned to it changes no scalar."""
        return iteration.flatiter(fresh(node_of(self)))

    def __hash__(self) -> int:
        return hash(host_scalar(self))

    def __repr__(self) -> str:
        return printing.scalar_representation(self)

    def __str__(self) -> str:
        return str(host_scalar(self))

    def __format__(self, specification: str) -> str:
        return format(host_scalar(self), specification)

    def __round__(self, ndigits: Any = None) -> Any:
        return round(host_scalar(self), ndigits)  # type: ignore[call-overload] # not of complex

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return host_scalar(self).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return host_scalar(self).__reduce__()

    def __conform__(self, protocol: Any) -> Any:
        """PEP 246, by which `sqlite3` asks: the number."""
        return host_scalar(self)

    def __getattr__(self, name: str) -> Any:
        # What only NumPy's or Python's numbers have: is_integer, hex, bit_count ...
        if name.startswith("__") or not hasattr(self._dtype.type, name):
            raise AttributeError(f"'{self._dtype.type.__name__}' object has no attribute '{name}'")
        return getattr(host_scalar(self), name)

    def __dir__(self) -> list[str]:
        return dir(self._dtype.type)


ndarray.__index__ = operators.to_index  # type: ignore[attr-defined]
for _name in ("__mul__", "__rmul__"):
    setattr(scalar, _name, operators.product_of_scalar(operators.table()[_name]))

handle.set_types(ndarray, scalar)


def _of_number(name: str) -> Any:
    """A method that `math` asks for: NumPy's, of the number."""

    def method(self: Any) -> Any:
        return getattr(host_scalar(self), name)()

    method.__name__ = name
    return method


for _dtype, _class in handle.SCALAR_OF.items():
    for _name in ("__trunc__", "__floor__", "__ceil__", "__getnewargs__"):
        if hasattr(_dtype.type, _name):  # float64 has them of Python's float
            setattr(_class, _name, _of_number(_name))
    if _dtype.kind in "iu":
        _class.__index__ = operators.to_index

_OPERATOR = "__add__"


def _name_methods() -> None:
    """Let every method say that it is ``clfuse.ndarray.<name>``: methods are pickled by that."""
    functions = types.FunctionType, type(ndarray.copy), type(getattr(ndarray, _OPERATOR))
    for kind in ndarray.__mro__[:-1]:
        for name, method in vars(kind).items():
            if isinstance(method, functions) and getattr(ndarray, name) is method:
                method.__module__ = "clfuse"
                method.__name__ = name
                method.__qualname__ = f"ndarray.{name}"


_name_methods()
accelerate(ndarray)  # by methods around those, which get the names too
_name_methods()

"""The operators of arrays, built for recording speed.

An operator first tries the one path that matters: another array of the same shape, or a Python
scalar, with a loop that was resolved before. It makes a node, a storage cell and a handle, and
nothing else. Everything else goes through the ufunc.
"""

from __future__ import annotations

import array
import collections
import math
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy._core._exceptions import UFuncTypeError

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_scalar, host_view, is_subclass
from clfuse.arrays.expressions import broadcast_shapes
from clfuse.arrays.handle import modify, native_dtype, node_of, recorded_array
from clfuse.arrays.host_array import is_number
from clfuse.arrays.promotion import FLOAT64, constant_of
from clfuse.dispatch.host_call import HostArguments, announced, count_fallback
from clfuse.dispatch.registry import UFUNCS
from clfuse.functions.math.ufunc import ufunc
from clfuse.ir.nodes import boundary
from clfuse.ir.trace import tracers
from clfuse.ir.traced_number import concrete
from clfuse.numpy_releases import EMPTY_IS_FALSE, ONE_IS_A_NUMBER, POWERS_OF_SCALARS
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.user_frames import user_stacklevel

BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
"""Name of the operator, without underscores -> the ufunc; there are reflected and in-place
forms."""

COMPARISONS: Final = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

UNARY: Final = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def defers(self: Any, other: Any) -> Any:
    """What an operator does about an operand of a foreign type: None to go on, else its answer.

    By NumPy's rules: `NotImplemented` where the other has turned ufuncs off, or wants to come
    first.
    """
    kind = type(other)
    if is_subclass(kind):
        return NotImplemented  # Python asks the instance of a subclass first
    if issubclass(kind, np.ndarray | np.generic | list | tuple | str | bytes) or other is None:
        return None
    missing = object()
    protocol = getattr(kind, "__array_ufunc__", missing)
    if protocol is not missing:
        return NotImplemented if protocol is None else None
    if getattr(kind, "__array_priority__", -1.0) > 0:
        return NotImplemented
    return None


def deferring(theirs: str) -> Callable[[Any, Any], Any]:
    """`defers` of an operator for which the other operand's method `theirs` may answer, too.

    Where it knows nothing of arrays of ours (scipy's sparse matrices ask ``isinstance(x,
    numpy.ndarray)``) it is asked again, about NumPy's array. After ``self + other`` was left to it,
    Python would not come back here.
    """

    def method(self: Any, other: Any) -> Any:
        answer = defers(self, other)
        kind = type(other)
        is_scalar = type(self) in handles.SCALARS
        is_ours = is_scalar or type(self) is handles.ARRAY
        if answer is not NotImplemented or is_subclass(kind) or not is_ours:
            return answer
        ask = getattr(kind, theirs, None)
        if ask is None:
            return answer
        answer = ask(other, self)
        if answer is NotImplemented:
            answer = ask(other, host_scalar(self) if is_scalar else host_view(self))
            if answer is not NotImplemented:
                count_fallback(theirs, f"{kind.__name__} knows NumPy's arrays")
        return answer

    return method


def comes_first(kind: type) -> bool:
    """Whether ``self += other`` leaves it to the other class: by NumPy's old rule alone."""
    if hasattr(kind, "__array_ufunc__") or issubclass(kind, np.generic):
        return False
    return getattr(kind, "__array_priority__", -1.0) > 0


def binary(
    function: ufunc,
    defers: Callable[[Any, Any], Any] = defers,
) -> Callable[[Any, Any], Any]:
    """``self + other``; `defers` says what happens to operands of foreign types."""
    loops = function.loops
    get_loop = loops.get
    call = function.record

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        shape = self._shape
        if kind is handles.ARRAY or kind in handles.SCALARS:
            op = get_loop((self._dtype, other._dtype))
            if op is None:
                return call(self, other)
            if shape is not other._shape and shape != other._shape:
                if is_number(self) or is_number(other):
                    return call(self, other)
                shape = broadcast_shapes(shape, other._shape)
            if not shape:
                return call(self, other)
            view = self._view
            if view is None:
                left = self._storage.node
            elif view.ordered:
                left = node_of(self)
            else:
                return call(self, other)
            view = other._view
            if view is None:
                right = other._storage.node
            elif view.ordered:
                right = node_of(other)
            else:
                return call(self, other)
            return recorded_array(op, (left, right), shape, op.dtype)
        if kind is float or kind is int:
            op = get_loop((self._dtype, kind))
            view = self._view
            if op is not None and shape and (view is None or view.ordered):
                try:
                    right = constant_of(other, op.input_dtypes[1])
                except OverflowError:
                    return call(self, other)
                left = self._storage.node if view is None else node_of(self)
                return recorded_array(op, (left, right), shape, op.dtype)
            return call(self, other)
        if kind is complex or kind is bool:
            return call(self, other)
        answer = defers(self, other)
        return call(self, other) if answer is None else answer

    return method


_REPEATED: Final = (list, tuple, str, bytes, bytearray, array.array, collections.deque)
"""Python's types that know a repetition and no multiplication."""


def product_of_scalar(product: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``scalar * other``, from that of arrays: with a list or text it is a repetition, as NumPy's
    scalars do it."""

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, _REPEATED):
            if self._dtype.kind not in "iu":
                name = f"numpy.{self._dtype.type.__name__}"
                raise TypeError(f"can't multiply sequence by non-int of type '{name}'")
            return other * to_index(self)
        return product(self, other)

    return method


_LARGEST_POWER: Final = 2.0**64
_reciprocals: dict[Any, float | None] = {}


def _exact_reciprocal(value: Any) -> float | None:
    """``1 / value`` of a power of two of moderate size, else None."""
    try:
        return _reciprocals[value]
    except KeyError:
        size = abs(value)
        exact = 1 / _LARGEST_POWER <= size <= _LARGEST_POWER and math.frexp(size)[0] == 0.5
        if len(_reciprocals) >= _RECIPROCALS_KEPT:
            _reciprocals.clear()
        _reciprocals[value] = 1.0 / value if exact else None
        return _reciprocals[value]


_RECIPROCALS_KEPT: Final = 1024


def divide(self: Any, other: Any) -> Any:
    """``self / other``; by a power of two as a product, which has the same bits and takes less."""
    kind = type(other)
    if (
        (kind is float or kind is int)
        and type(self._storage.node.buffer) is not HostBuffer
        and self._dtype in _DIVIDED_AS_PRODUCT
    ):
        factor = _exact_reciprocal(other)
        if factor is not None:
            return _multiply(self, factor)
    return _divide(self, other)


_DIVIDED_AS_PRODUCT: Final = (np.dtype(np.float32), np.dtype(np.float64))
_multiply = binary(UFUNCS["multiply"])
_divide = binary(UFUNCS["divide"], deferring("__rtruediv__"))


def reflected(function: ufunc, short: str) -> Callable[[Any, Any], Any]:
    """``other + self``, where `other` did not know what to do; `short` is the operator's name."""
    get_loop = function.loops.get
    call = function.__call__
    defers = deferring(f"__{short}__")

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        shape = self._shape
        if kind is float or kind is int:
            op = get_loop((kind, self._dtype))
            view = self._view
            if op is not None and shape and (view is None or view.ordered):
                left = constant_of(other, op.input_dtypes[0])
                right = self._storage.node if view is None else node_of(self)
                return recorded_array(op, (left, right), shape, op.dtype)
            return call(other, self)
        if kind is complex:
            answer = _of_complex(other, f"__{short}__", self)
            return call(other, self) if answer is None else answer
        if is_subclass(kind):  # it does not know arrays of ours
            reason = f"{kind.__name__} is a subclass of numpy.ndarray"
            with announced(function.__name__, reason):
                return getattr(other, f"__{short}__")(host_view(self))
        answer = defers(self, other)
        # Asked in vain, a class that wants to come first gets what the ufunc makes, as with NumPy.
        is_ours = answer is None or (answer is NotImplemented and comes_first(kind))
        if is_ours and answer is not None and type(self) in handles.SCALARS:
            other = np.asarray(other)  # NumPy's scalars ask for no class of the result
        return call(other, self) if is_ours else answer

    return method


def _of_complex(left: complex, operator: str, right: Any) -> Any:
    """What Python's complex makes of a scalar of float64, which is a float to it: a complex of
    Python's, which adapts to arrays. None of what it knows nothing of."""
    ask = getattr(left, operator, None)
    is_float = type(right) is handles.SCALAR_OF[FLOAT64] and not tracers[0]
    return ask(float(right)) if is_float and ask is not None else None


def in_place(function: ufunc) -> Callable[[Any, Any], Any]:
    """``self += other``: writes into the array, whatever shares its storage sees it."""
    get_loop = function.loops.get
    call = function.__call__

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        view = self._view
        if view is None or view.writeable:
            shape = self._shape
            dtype = self._dtype
            if kind is handles.ARRAY:
                op = get_loop((dtype, other._dtype))
                if op is not None and op.dtype is dtype and shape == other._shape:
                    right = other._storage.node if other._view is None else node_of(other)
                    modify(self, op, right)
                    return self
            elif kind is float or kind is int:
                if boundary.due:
                    boundary.reached()
                op = get_loop((dtype, kind))
                if op is not None and op.dtype is dtype:
                    modify(self, op, constant_of(other, op.input_dtypes[1]))
                    return self
        if comes_first(kind):
            return NotImplemented
        answer = call(self, other, out=(self,))
        if kind is handles.ARRAY:
            function.learn((self._dtype, other._dtype))
        elif kind is float or kind is int:
            function.learn((self._dtype, kind))
        return answer

    return method


def comparison(function: ufunc) -> Callable[[Any, Any], Any]:
    """``self < other``; of values that cannot be compared, NumPy decides what that means."""
    name = function.__name__
    defers = deferring(_TURNED[name])

    def by_numpy(self: Any, other: Any) -> Any:
        arguments = HostArguments()
        with announced(name, f"not for {type(other).__name__}"):
            host = arguments.to_host(self)
            made = getattr(host, _DUNDER[name])(arguments.to_host(other))
        return arguments.to_device(made)

    def answer(self: Any, other: Any) -> Any:
        on_host = isinstance(other, np.ndarray | np.generic) and native_dtype(other.dtype) is None
        if on_host or other is None or isinstance(other, str | bytes):
            return by_numpy(self, other)
        return defers(self, other)

    compared = binary(function, answer)

    def method(self: Any, other: Any) -> Any:
        try:
            return compared(self, other)
        except UFuncTypeError:
            pass
        # numpy.equal has no loop for text beside numbers, yet `==` answers False: only NumPy's
        # operator knows.
        return by_numpy(self, other)

    return method


_DUNDER: Final = {name: f"__{short}__" for short, name in COMPARISONS.items()}
_TURNED: Final = {
    "equal": "__eq__",
    "not_equal": "__ne__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
}
"""Comparison -> what it is with its operands exchanged."""


def unary(function: ufunc) -> Callable[[Any], Any]:
    """``-self``."""
    get_loop = function.loops.get
    call = function.record

    def method(self: Any) -> Any:
        op = get_loop(self._dtype)
        shape = self._shape
        view = self._view
        if op is None or not shape or not (view is None or view.ordered):
            return call(self)
        node = self._storage.node if view is None else node_of(self)
        return recorded_array(op, (node,), shape, op.dtype)

    return method


for _function in UFUNCS.values():
    if _function.nin == 2 and _function.nout == 1 and _function.signature is None:
        _function.fast = binary(_function)


# -- power ----------------------------------------------------------------------------------------

_POWERS: Final = {-1.0: "reciprocal", 0.5: "sqrt", 1.0: "positive", 2.0: "square"}


def _fast_power(base: Any, exponent: Any) -> str | None:
    """The ufunc of one operand that NumPy takes for ``base ** exponent``; None for `power` itself.

    Only Python scalars select it: an int of 2 for every dtype but that of a boolean scalar, the
    others for inexact dtypes.
    """
    kind = type(exponent)
    if kind is int:
        if exponent == 2:
            return None if type(base) in handles.SCALARS and base._dtype.kind == "b" else "square"
        if exponent not in (-1, 1):
            return None
    elif kind is not float:
        return None
    if base._dtype.kind not in "fc":
        return None
    return _POWERS.get(exponent)


def _as_python(exponent: np.generic) -> Any:
    """An exponent which selects another ufunc as a number of Python's, which adapts to the base."""
    value = exponent.item()
    is_selecting = value in (*_POWERS, 0.0) if type(value) is float else value == 2
    return value if is_selecting and type(value) in (int, float) else exponent


def power(self: Any, other: Any, modulo: Any = None) -> Any:
    """``self ** other``, by multiplication or a root where NumPy does it so."""
    if modulo is not None:
        return NotImplemented
    other = concrete(other)
    if POWERS_OF_SCALARS and isinstance(other, np.generic):
        other = _as_python(other)
    name = _fast_power(self, other)
    return _power(self, other) if name is None else of_one[name](self)


def power_in_place(self: Any, other: Any) -> Any:
    """``self **= other``."""
    other = concrete(other)
    if POWERS_OF_SCALARS and isinstance(other, np.generic):
        other = _as_python(other)
    name = _fast_power(self, other)
    if name is not None:
        return UFUNCS[name](self, out=(self,))
    return _power_in_place(self, other)


of_one: Final = {name: unary(UFUNCS[name]) for name in _POWERS.values()}
_power = binary(UFUNCS["power"], deferring("__rpow__"))
_power_in_place = in_place(UFUNCS["power"])


# -- divmod and matmul ----------------------------------------------------------------------------


def divided(self: Any, other: Any) -> Any:
    """``divmod(self, other)``."""
    answer = defers(self, other)
    return UFUNCS["divmod"](self, other) if answer is None else answer


def divided_reflected(self: Any, other: Any) -> Any:
    """``divmod(other, self)``."""
    answer = defers(self, other)
    return UFUNCS["divmod"](other, self) if answer is None else answer


# -- conversions to Python ------------------------------------------------------------------------


def to_bool(self: Any) -> bool:
    """``bool(self)``: the truth of the one element; ValueError for several."""
    if self._shape:
        size = math.prod(self._shape)
        if size == 0 and EMPTY_IS_FALSE:
            warnings.warn(EMPTY_IS_FALSE, DeprecationWarning, user_stacklevel())
            return False
        if size == 0:
            raise ValueError(
                "The truth value of an empty array is ambiguous. Use `array.size > 0` to check "
                "that an array is not empty."
            )
        if size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
    return bool(_host_value(self))


def _host_value(self: Any) -> Any:
    """What Python's conversions are asked about: a NumPy scalar for a lazy scalar, else an
    array."""
    value = host_view(self)
    return value[()] if type(self) in handles.SCALARS else value


def python_conversion(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``float(self)`` and its like; NumPy's TypeError for what is not one number."""

    def method(self: Any) -> Any:
        if math.prod(self._shape) != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if self._shape and ONE_IS_A_NUMBER:
            warnings.warn(ONE_IS_A_NUMBER, DeprecationWarning, user_stacklevel())
            return convert(host_view(self).reshape(()))
        return convert(_host_value(self))

    return method


CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "__bool__": bool, "__float__": float, "__int__": int, "__complex__": complex,
}
"""The classes of Python's that a lazy scalar becomes, by the name of the method."""


def to_index(self: Any) -> int:
    """``operator.index(self)``."""
    if self._shape or self._dtype.kind not in "iu":
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(_host_value(self))


def table() -> dict[str, Callable[..., Any]]:
    """The operators that arrays and lazy scalars have in common, by dunder name."""
    found: dict[str, Callable[..., Any]] = {}
    for short, name in BINARY.items():
        found[f"__{short}__"] = binary(UFUNCS[name], deferring(f"__r{short}__"))
        found[f"__r{short}__"] = reflected(UFUNCS[name], short)
    for short, name in COMPARISONS.items():
        found[f"__{short}__"] = comparison(UFUNCS[name])
    for short, name in UNARY.items():
        found[f"__{short}__"] = unary(UFUNCS[name])
    found["__truediv__"] = divide
    found["__pow__"] = power
    found["__rpow__"] = reflected(UFUNCS["power"], "pow")
    found["__divmod__"] = divided
    found["__rdivmod__"] = divided_reflected
    found["__bool__"] = to_bool
    for name in ("__float__", "__int__", "__complex__"):
        found[name] = python_conversion(CONVERSIONS[name])
    return found


def in_place_table() -> dict[str, Callable[..., Any]]:
    """The operators that write into an array; lazy scalars, being immutable, have none."""
    found = {f"__i{short}__": in_place(UFUNCS[name]) for short, name in BINARY.items()}
    found["__ipow__"] = power_in_place
    return found

"""Eager operators, ufuncs and products of small arrays that lie on the host.

`arrays.host_array` says which arrays these are. Every function here returns `DEFER`, or False,
where the operation has to be recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, Final

import numpy as np
from numpy._core.umath import _extobj_contextvar, _make_extobj

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.handle import Handle
from clfuse.arrays.host_array import (
    ADDITIONS_A_US,
    AT_ONCE,
    FEW_ADDITIONS,
    DEFER,
    NATIVE_DTYPES,
    PRODUCT_SHARE,
    ROWS_OF_A_PRODUCT,
    SCALARS,
    affordable,
    expect_rows,
    host_elements,
    stored_elements,
    use_of,
    view_elements,
)

# Exported: `classes.acceleration` puts what is compiled in its place.
from clfuse.arrays.host_array import wrap_result as wrap_result
from clfuse.config import settings
from clfuse.engine.evaluate import lock
from clfuse.interpreter.interpret import warning_of
from clfuse.runtime.memory.buffers import BY_ROWS, IN_PARTS, SELECTED, HostBuffer

from .sequences import array_of_sequence
from .writes import writable_view

# Errors of which NumPy would warn, to be raised.
_RAISING: Final = _make_extobj(divide="raise", over="raise", invalid="raise", under="ignore")


def raising() -> Context:
    """A context in which they are: to enter it takes a twentieth of `numpy.errstate`."""
    context = Context()
    context.run(_extobj_contextvar.set, _RAISING)
    return context


_run_raising: Final = raising().run


def is_attempt() -> bool:
    """Whether what would be warned of here is an error."""
    return _extobj_contextvar.get() is _RAISING


def calculate_at_user_line(apply: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `apply` gives, asked once more where NumPy warns: at the user's line."""
    value = attempt_silently(apply, *args, **kwargs)
    if type(value) is not FloatingPointError:
        return value
    with warning_of(str(value).rpartition(" encountered in ")[2]):
        return apply(*args, **kwargs)


def attempt_silently(apply: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `apply` gives; the error where NumPy would warn."""
    if errstate.mode[0] is not errstate.LOUD:
        return apply(*args, **kwargs)
    try:
        return _run_raising(apply, *args, **kwargs)
    except FloatingPointError as error:
        return error
    except RuntimeError:
        # One thread at a time may be in a context. NumPy itself raises nothing of that kind here.
        try:
            return raising().run(apply, *args, **kwargs)
        except FloatingPointError as error:
            return error


def _change(array: Any, apply: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Let `apply` write to `array`, warning as `calculate_at_user_line` does."""
    attempts: list[Any] = []

    def change() -> None:
        if attempts:
            array[...] = attempts[0]
        else:
            attempts.append(array.copy())
        apply(*args, **kwargs)

    calculate_at_user_line(change)


# -- to new arrays ---------------------------------------------------------------------------------


def pair(apply: Callable[[Any, Any], Any], weight: float, self: Handle, other: Any) -> Any:
    """``apply(self, other)``, by an operator or ufunc of two operands, or `DEFER`.

    The caller has seen that one of them lies on the host.
    """
    kind = type(other)
    size = 1
    if kind in SCALARS:
        right = other
    elif kind is handles.ARRAY:
        buffer = other._storage.node.buffer
        right = buffer.array if type(buffer) is HostBuffer else _read(other, weight, self)
        if right is None:
            return DEFER
        if other._view is not None:
            right = view_elements(right, other)
        if self._shape != other._shape:
            size = right.size
    elif kind in handles.SCALARS:
        right = host_elements(other)
        if right is None:
            return DEFER
        right = right[()]
    elif kind is np.ndarray and other.dtype in NATIVE_DTYPES:
        right = other
        size = right.size
    else:
        right = array_of_sequence(other)
        if right is DEFER:
            return DEFER
        size = right.size
    buffer = self._storage.node.buffer
    left = buffer.array if type(buffer) is HostBuffer else _read(self, weight, other)
    if left is None:
        return DEFER
    if self._view is not None:
        left = view_elements(left, self)
    additions = left.size * weight
    if size > 1:
        additions *= size
        if additions > FEW_ADDITIONS:
            additions = _stretched(left, right) * weight
    is_little = additions <= FEW_ADDITIONS and additions <= settings.host_us * ADDITIONS_A_US
    use = max(use_of(self), use_of(other))
    if use == SELECTED and additions > weight * max(left.size, size):
        # All pairs of what was selected are the beginning of something else.
        if not affordable(additions):
            return DEFER
        use = IN_PARTS
    elif not (is_little and settings.fusion) and not affordable(additions, self, other):
        return DEFER
    if type(self) in handles.SCALARS:
        left = left[()]
    value = calculate_at_user_line(apply, left, right)
    if type(value) is tuple:
        return tuple([wrap_result(item, buffer.device) for item in value])
    result = wrap_result(value, buffer.device)
    if not is_little and type(result) is handles.ARRAY:
        _pass_on(use, result)
    return result


def both(function: Any, left: Any, right: Any) -> Any:
    """Both results of a ufunc of two operands, divmod, or `DEFER`."""
    for apply, one, other in ((function.numpy, left, right), (function.reversed, right, left)):
        if type(one) is handles.ARRAY and type(one._storage.node.buffer) is HostBuffer:
            return pair(apply, function.weight, one, other)
    return DEFER


def _read(handle: Handle, weight: float, other: Any) -> Any:
    """`stored` of the array's storage, to calculate with it and `other`; None where the array is
    too large: nobody waits then."""
    additions = math.prod(handle._shape) * weight
    if not affordable(additions, other):
        return None
    return stored_elements(handle._storage.node)


def product(apply: Callable[[Any, Any], Any], self: Any, other: Any) -> Any:
    """``apply(self, other)``, by one of NumPy's products of vectors and matrices, or `DEFER`."""
    if type(self) is not handles.ARRAY or type(other) is not handles.ARRAY:
        return _product_of_list(apply, self, other)
    one, two = self._storage.node, other._storage.node
    if type(one.buffer) is not HostBuffer and type(two.buffer) is not HostBuffer:
        row = self if len(self._shape) == 1 else other
        if row._view is None or len(row._shape) != 1 or len(row._storage.node.shape) == 1:
            return DEFER
        expect_rows(row._storage, row._shape, ROWS_OF_A_PRODUCT)
        if type(row._storage.node.buffer) is not HostBuffer:
            return DEFER
    columns = 1 if len(other._shape) < 2 else other._shape[-1]
    additions = max(math.prod(self._shape) * columns, math.prod(other._shape))
    if not affordable(additions / (AT_ONCE * PRODUCT_SHARE)):
        return DEFER
    left, right = stored_elements(one), stored_elements(two)
    if left is None or right is None:
        return DEFER
    if self._view is not None:
        left = view_elements(left, self)
    if other._view is not None:
        right = view_elements(right, other)
    value = calculate_at_user_line(apply, left, right)
    return wrap_result(value, one.buffer.device)


def _product_of_list(apply: Callable[[Any, Any], Any], self: Any, other: Any) -> Any:
    """The same of an array that lies on the host and a list of numbers."""
    array, beside = (self, other) if type(self) is handles.ARRAY else (other, self)
    if type(array) is not handles.ARRAY or (here := host_elements(array)) is None:
        return DEFER
    made_of_it = array_of_sequence(beside)
    if made_of_it is DEFER or not affordable(here.size * made_of_it.size / PRODUCT_SHARE / AT_ONCE):
        return DEFER
    pair_of_them = (here, made_of_it) if array is self else (made_of_it, here)
    calculated = calculate_at_user_line(apply, *pair_of_them)
    return wrap_result(calculated, array._storage.node.buffer.device)


def alone(apply: Callable[[Any], Any], weight: float, self: Handle) -> Any:
    """``apply(self)``, by an operator or ufunc of one operand, or `DEFER`: see `pair`."""
    buffer = self._storage.node.buffer
    array = buffer.array if self._view is None else view_elements(buffer.array, self)
    additions = array.size * weight
    if not affordable(additions, self):
        return DEFER
    if type(self) in handles.SCALARS:
        array = array[()]
    value = calculate_at_user_line(apply, array)
    if type(value) is tuple:
        return tuple([wrap_result(item, buffer.device) for item in value])
    result = wrap_result(value, buffer.device)
    if buffer.use == SELECTED and type(result) is handles.ARRAY:
        _pass_on(SELECTED, result)
    return result


def _pass_on(use: int, made_of_it: Handle) -> None:
    """What is made of arrays in a loop is as good as these."""
    if use >= BY_ROWS:
        made_of_it._storage.node.buffer.use = use


def _stretched(*operands: Any) -> float:
    """Elements of operands stretched to each other; of those that do not fit, of the first."""
    try:
        return np.broadcast(*[operand for operand in operands if operand is not None]).size
    except ValueError:
        return float(np.size(operands[0]))


# -- in place --------------------------------------------------------------------------------------


def modify_in_place(
    apply: Callable[[Any, Any], Any], weight: float, self: Handle, other: Any
) -> bool:
    """Make ``self += other`` in place, by that operator; False where that has to be recorded.

    The caller has seen that `self` lies on the host and may be written to.
    """
    kind = type(other)
    if kind is handles.ARRAY or kind in handles.SCALARS:
        if host_elements(other) is None:
            return False
    elif kind not in SCALARS:
        other = array_of_sequence(other)
        if other is DEFER:
            return False
    additions = math.prod(self._shape) * weight
    if not affordable(additions, self):
        return False
    if kind is handles.ARRAY or kind in handles.SCALARS:
        other = host_elements(other)
        if other is None:
            return False
        if kind in handles.SCALARS:
            other = other[()]
    with lock:
        array = writable_view(self)
        if array is None:
            return False
        _change(array, apply, array, other)
    return True


def into(
    function: np.ufunc, weight: float, args: Sequence[Any], out: Handle
) -> bool:
    """Make ``function(*args, out=out)`` in place; False where that has to be recorded."""
    if type(out._storage.node.buffer) is not HostBuffer or not handles.is_writeable(out):
        return False
    for value in args:
        kind = type(value)
        if kind is handles.ARRAY or kind in handles.SCALARS:
            if type(value._storage.node.buffer) is not HostBuffer:
                return False
        elif kind not in SCALARS:
            return False
    additions = math.prod(out._shape) * weight
    if not affordable(additions, out, *args):
        return False
    with lock:
        array = writable_view(out)
        if array is None:
            return False
        found = [host_elements(value) if isinstance(value, Handle) else value for value in args]
        _change(array, function, *found, out=array)
    return True

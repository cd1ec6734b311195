"""Objects of libraries with arrays of their own, as operands, indices and arguments.

A tensor of PyTorch's, say: NumPy reads it by ``__array__`` and hands it the result of a ufunc by
``__array_wrap__``. Each line runs with NumPy's names and with ours.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy
import pytest

from tests.support.releases import IS_BEFORE_2_4

BODY = """
class Taking:  # computes with floats, of which NumPy's float64 is one, and takes no others
    __array_priority__ = 1000

    def __mul__(self, other):
        return 2 * other if isinstance(other, float) else NotImplemented

    __rmul__ = __add__ = __mul__


class Tensor:
    __array_priority__ = 1000

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return Tensor(array)

    def __index__(self):
        if self.values.ndim:
            raise TypeError("only tensors of one element are indices")
        return int(self.values)

    def _unknown(self, other):
        return NotImplemented

    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __truediv__ = __pow__ = _unknown

    @property
    def real(self):
        return "real"


x = np.arange(6.0).reshape(2, 3)
t = Tensor(numpy.arange(1.0, 7.0, dtype="f4").reshape(2, 3))
places = Tensor(numpy.array([1, 0]))
last = Tensor(numpy.array(1))
mask = Tensor(numpy.array([[True, False, True], [False, True, False]]))


def assigned(place, value):
    y = x.copy()
    y[place] = value
    return y


def counted(places):
    y = np.zeros(3)
    np.add.at(y, places, 1)
    return y
"""

WRAPPED_BEFORE_2_4 = ("t / x.sum()",)
"""Calls of which older releases make tensors."""


def run(namespace: ModuleType, call: str) -> tuple[bool, Any, Any]:
    """Whether `call` gives a tensor, the values and their dtype."""
    names: dict[str, Any] = {"np": namespace, "numpy": numpy, "__name__": "program"}
    exec(compile(BODY, "program", "exec"), names)
    try:
        value = eval(call, names)
    except Exception as error:
        return False, type(error), None
    is_tensor = type(value).__name__ == "Tensor"
    found = numpy.asarray(value.values if is_tensor else value)
    return is_tensor, found.tolist(), found.dtype


@pytest.mark.parametrize(
    "call",
    ["np.sin(t)", "np.add(x, t)", "np.add(t, x)", "np.multiply(t, 2)", "np.isnan(t)",
     "np.add(x, 1, where=mask, out=x.copy())", "np.maximum(x[0, 1], t)", "np.matmul(x, t.values.T)",
     "t * x", "x * t", "t + x", "t / x.sum()", "t - 2 * x", "t ** x[0]", "x.sum() * t",
     "Taking() * x.sum()", "x.sum() * Taking()", "Taking() + x[0, 1]", "x * Taking()",
     "np.add.reduce(t)", "np.add.accumulate(t, axis=1)", "np.linspace(t, x, 3)",
     "np.linspace(0, last, 3)", "np.real(t)", "np.real([1 + 2j])", "np.imag(t)",
     "x[places]", "x[last]", "x[last, places]", "x[:, places]", "x[mask]", "x[..., last]",
     "assigned(places, 7)", "assigned(mask, 7)", "assigned(last, t.values[0])",
     "assigned(0, t.values[1])", "assigned((last, last), 5)", "x.take(places.values)",
     "counted(places)", "np.concatenate([x, t])", "np.where(mask, x, t)", "np.array([t, t])",
     "np.asarray(t) + x", "np.dot(x, t.values.T)"],
)  # fmt: skip
def test_tensors_are_what_they_are_to_numpy(xp: ModuleType, call: str) -> None:
    ours, theirs = run(xp, call), run(numpy, call)
    if call in WRAPPED_BEFORE_2_4 and IS_BEFORE_2_4:
        ours, theirs = ours[1:], theirs[1:]
    assert str(ours) == str(theirs)


LIBRARY = """
import numpy

class Matrix:
    def __init__(self, kinds):
        self.kinds = kinds

    def __array_function__(self, function, types, args, kwargs):
        if not all(issubclass(kind, (numpy.ndarray, Matrix)) for kind in types):
            return NotImplemented
        if function is numpy.dot or function is numpy.concatenate:
            return function.__name__, sorted(kind.__name__ for kind in types)
        return function._implementation(*[1.0 if arg is self else arg for arg in args], **kwargs)
"""


def test_functions_asked_of_a_library_are_numpys(xp: ModuleType) -> None:
    found = []
    for module in (xp, numpy):
        names: dict[str, Any] = {"__name__": "library"}
        exec(compile(LIBRARY, "library", "exec"), names)
        matrix = names["Matrix"](None)
        found.append((
            module.dot(module.ones(3), matrix), module.concatenate([module.ones(3), matrix]),
            float(module.sum(matrix)),
            module.append(module.ones(2), matrix).tolist(),
        ))
    assert found[0] == found[1]

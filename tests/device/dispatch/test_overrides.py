"""Classes of a program that answer for NumPy's functions: which function they are asked about.

Each body runs with NumPy's names and with ours: what it finds, ``is`` included, is the same.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy
import pytest

import clfuse

BODY = """
class Quantity(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, values, unit):
        self.values, self.unit = np.asarray(values, float), unit

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        found = {np.add: "plus", np.multiply: "times"}.get(ufunc, "?")
        exact = [ufunc is known for known in (np.add, np.multiply, np.sqrt, np.absolute)]
        values = [i.values if isinstance(i, Quantity) else i for i in inputs]
        made = getattr(ufunc, method)(*values, **kwargs)
        return found, exact, method, float(np.sum(made)), sorted(kwargs)

    def __array_function__(self, function, types, args, kwargs):
        exact = [function is known for known in (np.sum, np.concatenate, np.median, np.fft.fft,
                                                 np.linalg.norm, np.unique)]
        return function.__name__, exact, len(args), sorted(kwargs), len(types)


class Plain:
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc is np.add, ufunc is np.true_divide, ufunc in (np.add, np.sin), method


class Measured(np.ndarray):
    def __new__(cls, values, unit):
        made = np.asarray(values, float).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", "")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        unit = self.unit
        if ufunc is np.multiply and method == "__call__":
            unit = "*".join(i.unit for i in inputs if isinstance(i, Measured))
        plain = [i.view(np.ndarray) if isinstance(i, Measured) else i for i in inputs]
        made = super().__array_ufunc__(ufunc, method, *plain, **kwargs)
        return Measured(made, unit) if isinstance(made, np.ndarray) else made

    def __array_function__(self, function, types, args, kwargs):
        if function is np.sum:
            return "sum"
        return super().__array_function__(function, types, args, kwargs)


def told(value):
    if isinstance(value, Measured):
        return value.unit, value.tolist()
    return value if isinstance(value, tuple | str) else np.asarray(value).tolist()


q, p, ones = Quantity([1.0, 2], "m"), Plain(), np.ones(2)
a, b = Measured([1, 2, 3], "m"), Measured([4, 5, 6], "s")
found = [told(f()) for f in (
    lambda: np.add(q, 1), lambda: q + q, lambda: 2 * q, lambda: ones * q, lambda: ones + q,
    lambda: np.sqrt(q), lambda: abs(q), lambda: np.add.reduce(q), lambda: np.add(q, 1, dtype="f4"),
    lambda: np.multiply.outer(ones, q), lambda: np.float64(2) * q,
    lambda: np.sum(q), lambda: np.sum(q, axis=0), lambda: np.concatenate([ones, q]),
    lambda: np.median(q), lambda: np.fft.fft(q), lambda: np.linalg.norm(q), lambda: np.unique(q),
    lambda: np.dot(ones, q),
    lambda: np.add(p, 1), lambda: ones + p, lambda: ones / p, lambda: np.float64(1) + p,
    lambda: a * b, lambda: a + b, lambda: np.multiply(a, 2), lambda: ones[:1] * a, lambda: a[1:],
    lambda: np.sum(a), lambda: np.median(a), lambda: np.sort(a), lambda: a.sum(),
    lambda: np.add.reduce(a), lambda: -a, lambda: a @ b, lambda: np.stack([a, b]).sum(),
)]
"""


def run(namespace: ModuleType) -> Any:
    names: dict[str, Any] = {"np": namespace, "__name__": "program"}
    exec(compile(BODY, "program", "exec"), names)
    return names["found"]


def test_classes_are_asked_about_functions_their_module_knows() -> None:
    for ours, expected in zip(run(clfuse), run(numpy), strict=True):
        assert ours == expected


def test_classes_that_know_numpy_are_asked_about_numpys() -> None:
    class Theirs:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return ufunc

    made: dict[str, Any] = {"__name__": "package"}
    exec(compile(
        "class Theirs:\n"
        "    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs): return ufunc\n",
        "package", "exec"), made)
    assert clfuse.add(made["Theirs"](), 1) is numpy.add
    assert clfuse.ones(3) + made["Theirs"]() is numpy.add
    assert clfuse.add(Theirs(), 1) is clfuse.add  # this module knows clfuse


def test_what_none_of_the_classes_answers_is_a_type_error() -> None:
    class Silent:
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

        def __array_function__(self, *args: Any) -> Any:
            return NotImplemented

    for call in (lambda: clfuse.ones(2) + Silent(), lambda: clfuse.sum(Silent()),
                 lambda: clfuse.median(Silent()), lambda: clfuse.concatenate([Silent()])):
        with pytest.raises(TypeError):
            call()


class Sub(numpy.ndarray):
    """A subclass of NumPy's own arrays."""


def test_an_operator_in_place_defers_to_a_class_that_precedes() -> None:
    class First:
        __array_priority__ = 100

        def __radd__(self, other: Any) -> str:
            return "radd"

        def __rmul__(self, other: Any) -> str:
            return "rmul"

    for np in (numpy, clfuse):
        x = np.arange(3.0)
        x += First()
        assert x == "radd"
        y = np.arange(300_000.0)[1:]
        y *= First()
        assert y == "rmul"
        z = np.arange(300_000.0)
        z += numpy.float64(1)
        z += numpy.ones(1)
        z += numpy.ones(1).view(Sub)
        z += [1]
        assert z[:2].tolist() == [4, 5]


@pytest.mark.parametrize("name", ["matmul", "add", "divmod"])
def test_an_operand_with_array_ufunc_is_asked_and_not_read(
    xp: ModuleType, name: str
) -> None:
    class Answering:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return method, kwargs

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("it was read")

    x = xp.ones(3)
    assert getattr(xp, name)(x, Answering()) == ("__call__", {})
    assert getattr(xp, name)(Answering(), x) == ("__call__", {})
    if name == "matmul":
        assert x @ Answering() == ("__call__", {})
        x @= Answering()
        assert x[0] == "__call__"


ANSWERING = """
class Answering:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        known = ufunc is getattr(np, ufunc.__name__)
        values = [i.values if isinstance(i, Answering) else i for i in inputs]
        return "answered", known, method, str(getattr(ufunc, method)(*values, **kwargs))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

x = Answering([3, 1, 2])
"""


@pytest.mark.parametrize(
    "call",
    ["np.add.reduce(x)", "np.maximum.reduce(x, axis=0, keepdims=True)", "np.add.accumulate(x)",
     "np.multiply.accumulate(x, dtype=float)", "np.add.reduceat(x, [0, 2])",
     "np.add.outer(x, [1, 2])", "np.subtract.outer([1, 2], x)", "np.add.at(x, [0, 0], 1)",
     "np.sum(x)", "np.prod(x, keepdims=True)",
     "np.max(x)", "np.min(x)", "np.all(x)", "np.cumsum(x)", "np.mean(x)", "np.where(x, 1, 2)"],
)  # fmt: skip
def test_a_class_with_array_ufunc_answers_for_ufunc_methods(
    xp: ModuleType, call: str
) -> None:
    found = []
    for module in (xp, numpy):
        names: dict[str, Any] = {"np": module, "__name__": "program"}
        exec(compile(ANSWERING, "program", "exec"), names)
        found.append(eval(call, names))
    ours, theirs = found
    assert str(ours) == str(theirs)
    assert isinstance(ours, tuple) == isinstance(theirs, tuple)


PARTS = (
    "np.insert(a, 0, [0])", "np.insert(a, [], [])", "np.insert(a, slice(1, 2), [1, 2])",
    "np.delete(a, 0)", "np.delete(a, [0, 1])", "np.delete(a, slice(1, 2))", "np.ix_(a, a)[0]",
    "np.median(a)", "np.percentile(a, 30)", "np.unique(a)", "np.trim_zeros(a)", "np.polyval(a, 2)",
    "np.cov(a)", "np.unwrap(a)", "np.piecewise(a, [a > 1], [1, 2])", "np.block([a, a])",
)  # fmt: skip


@pytest.mark.parametrize("statement", PARTS)
def test_functions_of_numpys_code_keep_subclasses(statement: str) -> None:
    expected = eval(statement, {"np": numpy, "a": numpy.arange(6.0).view(Sub)})
    found = eval(statement, {"np": clfuse, "a": numpy.arange(6.0).view(Sub)})
    assert isinstance(found, Sub) == isinstance(expected, Sub)
    assert numpy.asarray(found).tolist() == numpy.asarray(expected).tolist()


class Wrapping:
    """No array, but its results are of its class."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return numpy.asarray(self.values, dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return Wrapping(array)


@pytest.mark.parametrize("statement", PARTS[:6])
def test_functions_of_numpys_code_wrap_their_results(statement: str) -> None:
    expected = eval(statement, {"np": numpy, "a": Wrapping(numpy.arange(6.0))})
    found = eval(statement, {"np": clfuse, "a": Wrapping(numpy.arange(6.0))})
    assert type(found) is type(expected)
    assert numpy.asarray(found).tolist() == numpy.asarray(expected).tolist()

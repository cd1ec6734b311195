"""Python numbers during a trace: arguments of kernels, until the program looks at their value.

A function that `clfuse.jit` traces sees a `TracedNumber` where it was called with a float or an
int. With arrays it becomes a kernel's argument; with other numbers another one, which a replay
computes again in Python. A use of its value (`if`, `int()`, ``math.sin``, an index, printing) gets
the value, and the number belongs to the signature by value from then on. So both are right: the
kernel that is replayed for any number, and the branch that was taken for this one.

An interface of NumPy's or clfuse's that does not know these numbers would take one for an array,
which has another dtype: it meets `__array__`, and the function is traced again, with the number
itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .nodes import Kind, Node, structural
from .trace import Calculation, Placeholder, Trace

__all__ = ["Calculated", "Computed", "TracedNumber", "calculate", "concrete"]

class Calculated(NamedTuple):
    """A scalar of `dtype`: number `place` of a call, where those of the arguments come first."""

    place: int
    dtype: np.dtype[Any]

    def value(self, numbers: Sequence[Any]) -> Any:
        """The scalar in one call; OverflowError where the dtype does not hold the number."""
        return self.dtype.type(numbers[self.place])


class Computed(Placeholder):
    """Stands for a `Calculated` scalar."""

    __slots__ = ("calculated",)

    def __init__(self, trace: Trace, calculated: Calculated) -> None:
        super().__init__(trace, -1)
        self.calculated = calculated


def calculate(arguments: Sequence[Any], steps: Sequence[Calculation]) -> list[Any]:
    """All numbers of one call: those of the arguments, and what was computed of them."""
    numbers = list(arguments)
    for step in steps:
        numbers.append(step(numbers))
    return numbers


def concrete(value: Any) -> Any:
    """`value`, or the number that it stands for, which is looked at by that."""
    return value.look() if type(value) is TracedNumber else value


class TracedNumber:
    """A float or an int in a trace.

    Parameters
    ----------
    trace : Trace
    value : float or int
        What it is in this call.
    place : int
        Its number in every call.
    sources : frozenset of int
        Places of the arguments that it is computed from.
    """

    __slots__ = ("_nodes", "_place", "_sources", "_trace", "_value")

    def __init__(self, trace: Trace, value: Any, place: int, sources: frozenset[int]) -> None:
        self._trace = trace
        self._value = value
        self._place = place
        self._sources = sources
        self._nodes: dict[np.dtype[Any], Node] = {}

    @property
    def __class__(self) -> type:  # isinstance(t, float) holds
        return type(self._value)

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("a number's class cannot be changed")

    @property
    def kind(self) -> type:
        """float or int."""
        return type(self._value)

    def look(self) -> Any:
        """The number itself, which decides from now on."""
        self._trace.looked_at |= self._sources
        return self._value

    @property
    def place(self) -> int:
        """Its number in every call."""
        return self._place

    def _then(self, value: Any, more: frozenset[int], step: Calculation) -> TracedNumber:
        """What is computed of it, by a step that every call repeats."""
        trace = self._trace
        trace.calculations.append(step)
        place = trace.numbers + len(trace.calculations) - 1
        return TracedNumber(trace, value, place, self._sources | more)

    def node(self, dtype: np.dtype[Any]) -> Node:
        """It as a scalar of `dtype`; OverflowError where that does not hold it."""
        found = self._nodes.get(dtype)
        if found is None:
            dtype.type(self._value)
            found = Node(structural(Kind.LEAF, "leaf", dtype), (), (), dtype)
            found.buffer = Computed(self._trace, Calculated(self._place, dtype))
            self._nodes[dtype] = found
        return found

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """Whether it may stand in an array of `dtype` without a look at its value."""
        return dtype.kind in ("fc" if self.kind is float else "iufc")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._trace.traced_in_vain |= self._sources
        return np.asarray(self.look(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that a number does not have
            raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")
        return getattr(self.look(), name)

    def __reduce__(self) -> Any:
        return self.kind, (self.look(),)


def _binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    """Arithmetic whose result has a type that does not depend on the values."""

    def method(self: TracedNumber, other: Any) -> Any:
        kind = type(other)
        if kind is TracedNumber:
            left, right = self._place, other._place
            return self._then(
                function(self._value, other._value),
                other._sources,
                lambda numbers: function(numbers[left], numbers[right]),
            )
        if kind is int or kind is float:
            left = self._place
            return self._then(
                function(self._value, other),
                frozenset(),
                lambda numbers: function(numbers[left], other),
            )
        return _of_others(function, self, other)

    def reflected(self: TracedNumber, other: Any) -> Any:
        if type(other) is int or type(other) is float:
            right = self._place
            return self._then(
                function(other, self._value),
                frozenset(),
                lambda numbers: function(other, numbers[right]),
            )
        return _of_others(lambda one, two: function(two, one), self, other)

    setattr(TracedNumber, f"__{name}__", method)
    setattr(TracedNumber, f"__r{name}__", reflected)


def _of_others(function: Callable[[Any, Any], Any], number: TracedNumber, other: Any) -> Any:
    """With plain numbers: the value. Arrays know what to do, and may be left to it."""
    if isinstance(other, bool | complex | np.generic):
        return function(number.look(), other)
    return NotImplemented


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    def method(self: TracedNumber) -> Any:
        inner = self._place
        return self._then(
            function(self._value), frozenset(), lambda numbers: function(numbers[inner])
        )

    setattr(TracedNumber, f"__{name}__", method)


def _look(name: str) -> None:
    """What asks for the value."""

    def method(self: TracedNumber, *others: Any) -> Any:
        found = getattr(self._value, name, None)
        if found is None:
            raise TypeError(f"{self.kind.__name__!r} object has no {name}")
        if any(_is_array(other) for other in others):
            return NotImplemented
        self.look()
        return found(*[concrete(other) for other in others])

    setattr(TracedNumber, name, method)


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "__array_ufunc__") or hasattr(type(value), "_storage")


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    _binary(_name, getattr(operator, _name))
for _name, _function in (("neg", operator.neg), ("pos", operator.pos), ("abs", abs)):
    _unary(_name, _function)
# The type of a power depends on the values: 2 ** -1 is a float, (-2.0) ** 0.5 complex.
for _name in """
    pow rpow divmod rdivmod and rand or ror xor rxor lshift rlshift rshift rrshift invert
    lt le gt ge eq ne bool int float complex index hash str repr format round trunc floor ceil
""".split():
    _look(f"__{_name}__")


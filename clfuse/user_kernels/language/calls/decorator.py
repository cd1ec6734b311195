"""``@clfuse.kernel``: the decorator, and for every signature the choice of how the kernel runs.

A signature is what the translation depends on: ranges, dtypes, shapes and strides of the arrays,
which of them share storage and how far apart they lie, the kinds of the numbers, and the values of
integers that indices or conditions depend on. Signatures are remembered, so that a call that comes
again costs little more than recording its operations.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import field
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import Handle, c_strides, downcasts, fresh, node_of
from clfuse.config import settings
from clfuse.dataclass import mutable
from clfuse.engine.evaluate import lock
from clfuse.errors import KernelError
from clfuse.functions.math import reductions
from clfuse.functions.math.scans import along
from clfuse.ir import build, trace
from clfuse.ir.nodes import Node, boundary
from clfuse.ir.traced_number import concrete
from clfuse.runtime.devices.selection import get_device
from clfuse.user_kernels.language.array_route import steps
from clfuse.user_kernels.language.array_route.accesses import Domain
from clfuse.user_kernels.language.array_route.arrays import NotArrays, Translation
from clfuse.user_kernels.language.array_route.operands import Array, Given, OutOfBounds
from clfuse.user_kernels.language.array_route.recipe import Recipe
from clfuse.user_kernels.language.launch_route import launches
from clfuse.user_kernels.language.source.calls import check_calls
from clfuse.user_kernels.language.source.checked_source import Source
from clfuse.user_kernels.language.source.syntax import read_source
from clfuse.user_kernels.language.source.tree import Function
from clfuse.user_kernels.language.source.types import INT, LEAST, MOST, ArrayType

from . import call_cache, python_backend
from .arguments import Arguments, complete, domain_of, given_by, may_write
from .call_batching import Series, begin
from .merged_calls import Alike
from .specializations import Specializations

_SIGNATURES: Final = 1024
"""Signatures that a kernel remembers; a loop over ever new sizes must not fill the memory."""

_REPEATED: Final = 64
"""Storages (by their identity) and offsets that a kernel remembers as those of calls on the same
bytes: a batch of such would be given up at the third, or would have no other call."""

_ALONE: Final = 2
"""Batches in a row that began with a call on the same bytes, and had no other call, after which
such a call begins none."""

_NEVER: Final = [0], 0
"""How many calls the last batch had that began so, and how many before it had one; of none."""

_SNAPSHOT: Final = (
    "; of a NumPy array kernels see a copy: pass clfuse.asarray(...), or call .python(...)"
)

_MOST_INDICES: Final = 8
"""Of a kernel, with that of a batch; the planner follows any number, but not for nothing."""

OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": reductions.sum, "prod": reductions.prod, "min": reductions.min, "max": reductions.max,
    "argmin": reductions.argmin, "argmax": reductions.argmax, "any": reductions.any,
    "all": reductions.all,
}
"""What `Kernel.reduce` folds with, by name."""
_SCANS: Final = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


@mutable
class Signature:
    """A function with its types, and what its calls have become.

    `structural` names the numbers whose values the recipes depend on; `recipes` has one for their
    values, or the reason why there is none; `calls` counts those that were not known in C.
    """

    function: Function
    structural: tuple[tuple[str, int], ...] = ()
    calls: int = 0
    recipes: dict[tuple[int, ...], Recipe | str] = field(default_factory=dict)

    def values_of(self, given: Arguments) -> tuple[int, ...]:
        """The numbers of a call that the recipe depends on."""
        return tuple([concrete(given.numbers[place]) for _, place in self.structural])


class _Decorated:
    """A Python function of the language: its source, checked, and what Python says about it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__clfuse_source__: Source = read_source(function)
        check_calls(self.__clfuse_source__)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __reduce__(self) -> str:
        return self.__qualname__  # by its name, as functions are pickled


class Kernel(_Decorated):
    """A function that runs for every index of a range, recorded like an array operation.

    Made by `kernel`. The first parameters are the indices, as many as the range has; the others
    are arrays and numbers.
    """

    known: list[Any]
    """Calls that came before, for what is compiled: see `call_cache.remember`."""

    def __init__(self, function: Callable[..., Any], group: int = 0) -> None:
        if not hasattr(type(group), "__index__"):
            raise TypeError(
                f"group={group!r}: expected the number of a group's work-items, as group=64; a "
                "group lies along the last index"
            )
        if as_index(group) < 0:
            raise ValueError(f"group={group}: it is how many work-items a group has")
        super().__init__(function)
        self.group = as_index(group)
        self._signatures: dict[Any, Signature] = {}
        self._programs: dict[Any, launches.Program] = {}
        self._last: Callable[[], Series | None] = _nothing
        self._repeated: set[tuple[int, ...]] = set()
        self._alone: set[tuple[int, ...]] = set()
        self._begun: dict[tuple[int, ...], tuple[list[int], int]] = {}
        self.known = []
        # Known calls look at no numbers of the surroundings but those that were found before.
        self._typed = Specializations(
            self.__clfuse_source__, self.group, on_more_fixed=self.known.clear
        )
        call_cache.made.add(self)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}({', '.join(self.__clfuse_source__.parameters)})>"

    def forget_calls(self) -> None:
        """Let the next call be as the first one: what stands for float64 has changed."""
        self.known.clear()
        self._last = _nothing

    # -- calling ----------------------------------------------------------------------------------

    def __call__(self, ranges: Any, *args: Any, **named: Any) -> None:
        """Run the kernel for every index of `ranges`; recorded, as array operations are.

        Parameters
        ----------
        ranges : int or tuple
            ``n`` for ``range(n)``, ``(n, m)`` for two indices, ``((1, n - 1), (1, m - 1))`` for
            indices that begin elsewhere.
        *args, **named : ndarray or number
            By place or by name; those with defaults may be left out.

        Raises KernelError: the arguments' dtypes do not fit, or the kernel returns a value.
        Raises IndexError: an index that is known now leaves its array.
        Raises ValueError: an array that is written to is read-only.
        """
        if named or self.__clfuse_source__.defaults:
            args = complete(self.__clfuse_source__, ranges, args, named)
        last, in_python = self._last(), python_backend.running()
        if last is not None and not (in_python or boundary.due) and last.again(ranges, args):
            return
        if in_python:
            python_backend.call(self, (ranges, *args))
            return
        if self.__clfuse_source__.returns_value:
            raise KernelError(
                f"{self.__name__} returns a value: call {self.__name__}.reduce(...) or .scan(...)"
            )
        if boundary.due:
            boundary.reached()
        self._record(ranges, args)

    def reduce(self, ranges: Any, *args: Any, op: str = "sum", **named: Any) -> Any:
        """Fold what the kernel returns for every index of `ranges`.

        Parameters
        ----------
        ranges, *args, **named
            As in a call.
        op : {"sum", "prod", "min", "max", "argmin", "argmax", "any", "all"}
            ``argmin`` and ``argmax`` give the place in C order of the range.

        Returns
        -------
        scalar or tuple of scalar
            Lazy; as many as the kernel returns values.
        """
        if op not in OPERATIONS:
            raise ValueError(f"op={op!r}: it is one of {', '.join(OPERATIONS)}")
        made = [OPERATIONS[op](values) for values in self._values(ranges, args, named)]
        return made[0] if len(made) == 1 else tuple(made)

    def scan(
        self, ranges: Any, *args: Any, op: str = "sum", exclusive: bool = False, **named: Any
    ) -> Any:
        """Every partial result of `reduce`, in C order of the range.

        Parameters
        ----------
        ranges, *args, **named
            As in a call.
        op : {"sum", "prod", "min", "max"}
        exclusive : bool
            Leave an element's own value out: the first result is 0 (``prod``: 1). Not for ``min``
            and ``max``, which have no such value.

        Returns
        -------
        ndarray or tuple of ndarray
            ``(n,)``; as many as the kernel returns values.
        """
        if op not in _SCANS:
            raise ValueError(f"op={op!r}: it is one of {', '.join(_SCANS)}")
        function = _SCANS[op]
        if exclusive and function.identity is None:
            raise ValueError(f"{op} has no value to begin with: exclusive=True is for sum and prod")
        made = [self._scanned(function, v, exclusive) for v in self._values(ranges, args, named)]
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _scanned(function: np.ufunc, values: Any, exclusive: bool) -> Any:
        if not exclusive or not values._shape[0]:
            return along(function, values, None, None, None)
        found = along(function, values[:-1], None, None, None)  # stored where it is joined
        start = build.full(found._dtype.type(function.identity), (1,))
        return fresh(build.concatenate((start, node_of(found)), 0))

    def _values(self, ranges: Any, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        args = complete(self.__clfuse_source__, ranges, args, named)
        if not self.__clfuse_source__.returns_value:
            raise KernelError(f"{self.__name__} returns no value: call {self.__name__}(...)")
        if boundary.due:
            boundary.reached()
        return [fresh(node) for node in self._record(ranges, args)]

    # -- recording --------------------------------------------------------------------------------

    def _record(self, ranges: Any, args: tuple[Any, ...]) -> list[Node]:
        if settings.kernels == "python":
            return python_backend.on_arrays(self._typed, self._domain(ranges, len(args)), args)
        given = given_by(self.__name__, args)
        try:
            hash(ranges)
        except TypeError:  # a list of them
            ranges = self._domain(ranges, len(args))
        signature = self._signature(ranges, given)
        values = signature.values_of(given) if signature.structural else ()
        recipe = signature.recipes.get(values)
        if recipe is None:
            recipe = self._translated(signature, self._domain(ranges, len(args)), given)
        if isinstance(recipe, Recipe):
            signature.calls += 1
            if signature.calls & (signature.calls - 1) == 0 and signature.calls > 1:
                places = [place for _, place in signature.structural]
                call_cache.remember(
                    self.known, recipe, ranges, given, args, places, self._typed.fixed
                )
            can_compare = not signature.structural and not self._typed.fixed
            with lock:
                return self._run(recipe, ranges, given, args if can_compare else None)
        domain = self._domain(ranges, len(args))
        with lock:
            return self._launch(signature.function, domain, given, recipe)

    def _run(
        self, recipe: Recipe, ranges: Any, given: Arguments, args: tuple[Any, ...] | None
    ) -> list[Node]:
        """Record array operations, or append the call to a batch of such."""
        is_alone = recipe.alike is None or settings.fp64 == "downcast"
        if is_alone or not settings.fusion or trace.active() is not None:
            return recipe.run(given.cells, given.offsets, given.numbers)
        for position, dtype in recipe.numbers:
            value = given.numbers[position]
            steps.number(value, dtype)  # what does not fit raises at the call
            if type(value) is int and not LEAST <= value <= MOST:  # a batch has tables of int64
                return recipe.run(given.cells, given.offsets, given.numbers)
        where = (id(recipe), *map(id, given.cells), *given.offsets)
        series = self._last()
        if where in self._repeated and (series is None or series.ended_at(given.offsets)):
            return recipe.run(given.cells, given.offsets, given.numbers)
        if series is not None and series.recipe is recipe:
            if series.append(given):
                return []
            if series.repeats(given.offsets):
                self._records_at_once(where)
        ended, times = self._begun.get(where, _NEVER)
        was_alone = ended[0] == 1 or (
            series is not None and series.ended is ended and series.is_alone()
        )
        times = times + 1 if was_alone else 0
        if times >= _ALONE:
            self._records_at_once(where)
            self._alone.add(where)
            return recipe.run(given.cells, given.offsets, given.numbers)
        if self._alone:
            self._begins_elsewhere(where[: 1 + len(given.cells)], given)
        series = begin(recipe, ranges, given, args)
        if len(self._begun) >= _REPEATED:
            self._begun.clear()
        self._begun[where] = series.ended, times
        self._last = weakref.ref(series)
        return []

    def _records_at_once(self, where: tuple[int, ...]) -> None:
        """Begin no batch with calls on these bytes."""
        if len(self._repeated) >= _REPEATED:
            self._repeated.clear()
            self._alone.clear()
        self._repeated.add(where)

    def _begins_elsewhere(self, where: tuple[int, ...], given: Arguments) -> None:
        """A call on other bytes of the same storages comes before anybody has looked: those that
        were alone may be one batch with it from now on."""
        if any(cell.node.buffer is None for cell in given.cells):
            together = {place for place in self._alone if place[: len(where)] == where}
            self._alone -= together
            self._repeated -= together
            for place in together:
                self._begun.pop(place, None)

    def _signature(self, ranges: Any, given: Arguments) -> Signature:
        key = (ranges, settings.check, downcasts(), self._typed.captured(), *given.key)
        found = self._signatures.get(key)
        if found is None:
            if len(self._signatures) >= _SIGNATURES:
                self._signatures.clear()
            domain = self._domain(ranges, len(given.kinds))
            function = self._typed.function(given.kinds, len(domain))
            for name, handle in zip(function.arrays, given.handles, strict=True):
                if name in function.writes and not may_write(given, handle):
                    raise ValueError(
                        f"{self.__name__} writes to `{name}`: assignment destination is read-only"
                        f"{_SNAPSHOT if given.snapshots else ''}"
                    )
            # Typing may have found more numbers in the surroundings.
            key = (ranges, settings.check, downcasts(), self._typed.captured(), *given.key)
            found = self._signatures[key] = Signature(function)
        return found

    def _domain(self, ranges: Any, count: int) -> Domain:
        return domain_of(self.__clfuse_source__, ranges, count)

    def _translated(self, signature: Signature, domain: Domain, given: Arguments) -> Recipe | str:
        """The kernel as array operations, or why it is none; remembered."""
        function = signature.function
        if any(stop <= start for start, stop in domain):
            empty = _empty(function, domain)
            signature.recipes[signature.values_of(given)] = empty
            return empty
        arrays, scalars, integers = self._operands(function, given)
        names = function.parameters
        try:
            made = Translation(function, domain, arrays, scalars, integers)
        except NotArrays as reason:
            found: Recipe | str = str(reason)
            structural = set(integers)
        except OutOfBounds as error:
            raise IndexError(f"kernel {self.__name__} ({function.filename}), {error}") from None
        else:
            found, structural = made.recipe, made.structural
            if found.written and not found.results and len(domain) < _MOST_INDICES:
                found.alike = Alike(function, domain, arrays, scalars, integers)
        more = {(n, p) for n, p in zip(names, given.places, strict=True) if n in structural}
        if not more <= set(signature.structural):
            signature.structural = tuple(sorted(more | set(signature.structural)))
            signature.recipes.clear()
            self.known.clear()
        signature.recipes[signature.values_of(given)] = found
        return found

    @staticmethod
    def _operands(
        function: Function, given: Arguments
    ) -> tuple[dict[str, Array], dict[str, Any], dict[str, int]]:
        """Arrays, numbers, and the values of integers, by parameter."""
        arrays: dict[str, Array] = {}
        scalars: dict[str, Any] = {}
        integers: dict[str, int] = {}
        names = function.parameters
        for name, kind, place in zip(names, given.kinds, given.places, strict=True):
            if isinstance(kind, ArrayType):
                array = given.handles[place]
                view = array._view
                arrays[name] = Array(
                    name, place, given.cell_of[place], array._shape, array._dtype,
                    array._storage.node.dtype, given.offsets[place],
                    c_strides(array._shape) if view is None else view.strides,
                )
            else:
                scalars[name] = Given(name, place, kind)
                value = given.numbers[place]
                if kind == INT:
                    integers[name] = value if type(value) is int else concrete(value)
        return arrays, scalars, integers

    def _launch(
        self, function: Function, domain: Domain, given: Arguments, reason: str
    ) -> list[Node]:
        program, arrays, numbers = self._program(function, domain, given)
        return launches.record(program, domain, arrays, numbers, reason)

    def _program(
        self, function: Function, domain: Domain, given: Arguments
    ) -> tuple[launches.Program, dict[str, Handle], dict[str, Any]]:
        """The OpenCL kernel for these arguments, and the arguments by name."""
        self._typed.check_groups(domain)
        arrays: dict[str, Handle] = {}
        numbers: dict[str, Any] = {}
        for name, kind, place in zip(function.parameters, given.kinds, given.places, strict=True):
            if isinstance(kind, ArrayType):
                arrays[name] = given.handles[place]
            else:
                numbers[name] = given.numbers[place]
        extents = tuple([stop - start for start, stop in domain])
        shape = launches.shape_of(function, arrays, numbers, self.group, settings.check == "bounds")
        key = (id(function), extents, shape)
        found = self._programs.get(key)
        if found is None:
            if len(self._programs) >= _SIGNATURES:
                self._programs.clear()
            found = self._programs[key] = launches.Program(function, extents, shape)
        return found, arrays, numbers

    # -- looking ----------------------------------------------------------------------------------

    def route(self, ranges: Any, *args: Any, **named: Any) -> str:
        """How such a call runs: as array operations, or as a launch of its own, and why.

        Nothing is recorded.
        """
        args = complete(self.__clfuse_source__, ranges, args, named)
        given = given_by(self.__name__, args)
        domain = self._domain(ranges, len(args))
        signature = self._signature(domain, given)
        found = self._translated(signature, domain, given)
        if isinstance(found, Recipe):
            return "array operations"
        return f"a launch of its own: {found}"

    def source(self, ranges: Any, *args: Any, **named: Any) -> str:
        """The OpenCL C that such a call is, or would be, as a launch of its own on this device.

        Where the call is array operations (`route`), `clfuse.explain` shows the fused kernel.
        """
        args = complete(self.__clfuse_source__, ranges, args, named)
        given = given_by(self.__name__, args)
        domain = self._domain(ranges, len(args))
        function = self._signature(domain, given).function
        return self._program(function, domain, given)[0](get_device().traits)[0]

    def python(self, ranges: Any, *args: Any, **named: Any) -> Any:
        """The same body in plain Python, index by index, with checked bounds.

        NumPy arrays among the arguments are written to in place, arrays of clfuse's as well.
        Returns an array of what the kernel returns, of the shape of the range; a tuple of arrays
        where it returns several values, None where it returns none.

        Raises IndexError: names kernel, line, array and index.
        """
        args = complete(self.__clfuse_source__, ranges, args, named)
        return python_backend.run(self._typed, self._domain(ranges, len(args)), args)


def _nothing() -> None:
    """The calls of a kernel that was not called yet."""


def _empty(function: Function, domain: Domain) -> Recipe:
    made = Recipe(function.name)
    shape = tuple([max(stop - start, 0) for start, stop in domain])
    made.results = [build.full(t.dtype.type(0), shape) for t in function.results]
    return made


class DeviceFunction(_Decorated):
    """A function that kernels may call; called from Python, it is the function itself."""

    def __repr__(self) -> str:
        return f"<device function {self.__name__}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        return python_backend.call(self, args, named)


def kernel(function: Any = None, *, group: int = 0) -> Any:
    """Make a kernel of a Python function: a decorator.

    Parameters
    ----------
    function : function
        Its first parameters are the indices. clfuse/guide/kernels.md says what may
        stand in it.
    group : int
        Work-items of a work-group, for kernels that use `clfuse.group`; the innermost range must be
        a multiple of it.

    Returns
    -------
    Kernel

    Raises
    ------
    KernelError
        Something in it is not in the language: file, line, and what to write instead.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel
    ... def axpy(i, a, x, y):
    ...     y[i] = a * x[i] + y[i]
    >>> x, y = np.arange(4.0), np.ones(4)
    >>> axpy(4, 2.0, x, y)
    >>> y
    array([1., 3., 5., 7.])
    """
    if function is None:
        return lambda decorated: Kernel(decorated, group)
    return Kernel(function, group)


def device_function(function: Callable[..., Any]) -> DeviceFunction:
    """Make a function that kernels may call: a decorator.

    Parameters
    ----------
    function : callable
        Written in the language of kernels, without an index: it gets numbers, and returns some.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.device_function
    ... def half(v):
    ...     return v / 2
    >>> @np.kernel
    ... def halve(i, x):
    ...     x[i] = half(x[i])
    """
    return DeviceFunction(function)

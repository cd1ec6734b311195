"""``clfuse.jit``: a function recorded once per signature, and replayed without recording.

What a call's signature is, and what becomes of each argument:

- Arrays: shape, dtype and layout, and which of them share storage. Their contents are inputs.
- NumPy arrays are uploaded at every call; the function sees arrays of clfuse's.
- NumPy scalars and lazy scalars are inputs too: their values are kernel arguments, so another value
  is no other signature. Looking at one is an error, as for arrays.
- Python's floats and ints are inputs as long as the function only calculates with them and with
  arrays. It sees a `TracedNumber` in their place, which is a float or an int to `isinstance`, but
  not to ``type(t) is float``. Where it looks at the value (to branch on it, as a size or an index,
  in ``math.sin(t)``), that value belongs to the signature: another one is traced again.
- Booleans, strings and None are part of the signature by value.
- Tuples, lists and dicts of these, to any depth.
- Other objects, `self` say, by identity; guards compare their attributes, as globals and
  closures (`guards`).

The device and the settings that plans depend on belong to every signature. Sizes are not symbolic:
another shape is traced again, with the same kernels where they do not depend on it.

Random numbers: a replay draws as often as the function did, from the same generators, and gets the
numbers that the function would have got.

Results are new arrays that nobody else holds, except where the function returns an argument or a
view. Writing into an argument, a closure's array or a view of one happens at every replay.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, overload

from clfuse.arrays.handle import Handle, View, downcasts
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.engine.replay import NoKernels, NoRoom, Replay
from clfuse.errors import JitError, JitWarning, warn_user
from clfuse.functions.indexing.gathering import check_bounds
from clfuse.functions.random import module as _random  # noqa: F401  (it makes a generator)
from clfuse.functions.random.bits import ADOPTIONS
from clfuse.ir import build
from clfuse.ir.nodes import Node, Storage
from clfuse.ir.trace import Calculation, GivenAway, Trace, active, tracing
from clfuse.ir.traced_number import calculate
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import when_renewed

from .guards import Surroundings
from .outputs import Results
from .signature import Arguments, is_scalar

__all__ = ["jit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

SIGNATURES_KEPT: Final = 64
"""Signatures of one function; the least recently used goes first. Each holds its kernels."""

_Family = dict[tuple[int, ...], dict[tuple[Any, ...], "_Recorded"]]
"""Places of the numbers that decided -> their values -> what was recorded."""

_new: Final = object.__new__


# -- one signature --------------------------------------------------------------------------------


class _Recorded:
    """What one signature of a function has become.

    Parameters
    ----------
    results : Results
    make : callable
        Handles -> what the function returns.
    captured : list of (Storage, bool)
        Cells that the function found by itself, and whether each holds a scalar of the program.
    generators : list of (Philox4x32, int)
        Whom it draws random numbers from, and how often.
    replay : Replay
    surroundings : Surroundings
    given_away : list of int
        Numbers of the donated cells that hold nothing afterwards.
    name : str
        Of the function.
    calculations : list of callable
        What it computes of numbers among the arguments.
    indices : list of (int, tuple, int)
        See `Trace`.
    places : tuple of int
        The numbers among the arguments that it has looked at.
    """

    def __init__(
        self,
        results: Results,
        make: Callable[[Sequence[Any], Sequence[Any]], Any],
        captured: list[tuple[Storage, bool]],
        generators: list[tuple[Any, int]],
        replay: Replay,
        surroundings: Surroundings,
        given_away: list[int],
        name: str,
        calculations: list[Calculation],
        indices: list[tuple[int, tuple[Any, ...], int]],
        places: tuple[int, ...],
    ) -> None:
        self._handles = results.handles
        self._made = results.made
        self._written = results.written
        self._make = make
        self._captured = captured
        self._captured_cells = [cell for cell, _ in captured]
        self._generators = generators
        self._replay = replay
        self._surroundings = surroundings
        self._given_away = given_away
        self._name = name
        self._calculations = calculations
        self._indices = list(dict.fromkeys(indices))
        #: Which numbers decided what was recorded, and what they are.
        self.places = places
        self.values: tuple[Any, ...] = ()

    def holds(self) -> bool:
        """Whether what the function found by itself is still so."""
        for cell, was_scalar in self._captured:
            if is_scalar(cell.node) is not was_scalar:
                return False
        return self._surroundings.are_same()

    def run(self, arguments: Arguments) -> Any:
        """Compute, write, and return what the function would; `evaluate.lock` is held."""
        replay = self._replay
        numbers: Sequence[Any] = arguments.numbers
        if self._calculations:
            numbers = calculate(numbers, self._calculations)
        cells = [*arguments.cells, *self._captured_cells]
        nodes = [cell.node for cell in cells]
        pending = [nodes[number] for number in replay.inputs if nodes[number].buffer is None]
        if pending:
            evaluate_nodes(pending)
            pending.clear()  # `run` counts references
        for number, views, extent in self._indices:
            check_bounds(nodes[number], views, extent)
        draws = [generator.take(count)[:2] for generator, count in self._generators]
        storages: list[Storage] = []
        put = functools.partial(self._put, storages, cells, nodes)
        try:
            replay.run(nodes, put, draws, numbers)
        except NoRoom:
            for (generator, count), (_, position) in zip(self._generators, draws, strict=True):
                generator.untake(count, position)
            raise
        made = arguments.leaves.copy()
        for kind, number, shape, dtype, view in self._handles:
            handle = _new(kind)
            handle._storage = cells[number] if number >= 0 else storages[-1 - number]
            handle._shape = shape
            handle._dtype = dtype
            if view is None:
                handle._view = None
            else:
                offset, strides, base, ordered, writeable = view
                owner = None if base is None else made[base]
                handle._view = View(offset, strides, owner, ordered, writeable)
            made.append(handle)
        return self._make(made, numbers)

    def require_repeatable(self, refused: NoKernels) -> None:
        """Raise what the driver has said where the function cannot simply be called instead: it
        draws random numbers, and `run` has moved the generators."""
        if self._generators:
            raise refused.__cause__ or refused

    def _put(
        self,
        storages: list[Storage],
        cells: list[Storage],
        nodes: list[Node],
        computed: list[Node],
    ) -> None:
        """Make the cells of new arrays, and write to those that the function has written to."""
        storages.clear()
        for kind, source in self._made:
            if kind == "root":
                storages.append(Storage(computed[source]))
            else:
                storages.append(Storage(nodes[source] if kind == "cell" else source))
        for number, (kind, source) in self._written:
            if kind == "root":
                cells[number].node = computed[source]
            else:
                cells[number].node = nodes[source] if kind == "cell" else source
        for number in self._given_away:
            node = nodes[number]
            gone = GivenAway(self._name, self._replay.device)
            cells[number].node = build.leaf(gone, node.shape, node.dtype)


def _layouts(leaves: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What may be set on arrays besides their values."""
    return [
        (leaf, leaf._shape, leaf._dtype, leaf._view, leaf._view and leaf._view.writeable)
        for leaf in leaves
    ]


def _restore_layouts(before: Sequence[tuple[Any, ...]]) -> bool:
    """Put layouts back; whether one had changed."""
    changed = False
    for leaf, shape, dtype, view, writeable in before:
        now = (leaf._shape, leaf._dtype, leaf._view, leaf._view and leaf._view.writeable)
        if now != (shape, dtype, view, writeable):
            changed = True
            leaf._shape, leaf._dtype, leaf._view = shape, dtype, view
            if view is not None:
                view.writeable = writeable
    return changed


def _cells_in(value: Any) -> set[Storage]:
    """The cells of the arrays in an argument."""
    if isinstance(value, Handle):
        return {value._storage}
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return set()
    return set().union(*map(_cells_in, value))


def _record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arguments: Arguments,
    donate: tuple[str, ...],
    device: Any,
) -> _Recorded:
    """Trace the function; nothing that existed before is changed, and nothing is computed.

    It is traced again where somebody took one of the numbers for an array.
    """
    known: set[int] = set()
    while True:
        try:
            return _trace(function, args, kwargs, arguments, donate, device, frozenset(known))
        except _InVain as again:
            known |= again.places


class _InVain(BaseException):
    """What was traced says nothing; the numbers at `places` have to be passed as they are."""

    def __init__(self, places: set[int]) -> None:
        super().__init__(places)
        self.places = places


def _trace(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arguments: Arguments,
    donate: tuple[str, ...],
    device: Any,
    known: frozenset[int],
) -> _Recorded:
    name = getattr(function, "__qualname__", repr(function))
    surroundings = Surroundings(name, [function], arguments.objects)
    layouts = _layouts(arguments.leaves)
    trace = Trace(name, device, list(arguments.cells))
    try:
        args, kwargs = arguments.traced((args, kwargs), trace, known)
        containers = Surroundings(name, [], [args, kwargs])
        counters["jit_traces"] += 1
        try:
            with tracing(trace):
                result = function(*args, **kwargs)
        finally:
            trace.over = True  # before any call, at which an interrupt might come
            # Also when the function has failed: what it did to arrays was done in the trace alone.
            reshaped = _restore_layouts(layouts)
            if trace.traced_in_vain:
                containers.restore()
                surroundings.restore()
                counters["jit_traces"] -= 1
                raise _InVain(trace.traced_in_vain)
        if trace.error is not None:
            raise trace.error  # the function has caught it, and gone a way of its own
        changed = "the shape, dtype or flags of an argument" if reshaped else ""
        changed = containers.restore() or surroundings.restore() or changed
        if changed:
            raise JitError(
                f"{name} changes {changed}, which a replay, running no Python, would not do again; "
                "return the new value, or write into an array"
            )
        results = Results(trace, arguments.leaves, name)
        make = results.maker(result)
        written = dict(results.written)
        if any(arguments.cells[cell] in written for cell in arguments.uploaded):
            raise JitError(
                f"{name} writes into an argument that is a numpy.ndarray; it was given a copy on "
                "the device: pass an array of clfuse's (clfuse.asarray), or return the new values"
            )
        kinds = [is_scalar(cell.node) for cell in trace.cells]
        donated = set()
        if donate:
            bound = inspect.signature(function).bind(*args, **kwargs).arguments
            for cell in _cells_in([bound.get(parameter) for parameter in donate]):
                number = arguments.cells[cell]
                if number not in results.survivors and not kinds[number]:
                    donated.add(number)
        scalars = {number for number, is_scalar in enumerate(kinds) if is_scalar}
        with lock:
            replay = Replay(results.roots, scalars, donated, device)
        captured = list(zip(trace.cells, kinds, strict=True))[len(arguments.cells) :]
        generators = [(made, count) for made, (_, count, _) in trace.generators.items()]
        given_away = sorted(donated - written.keys())
        recorded = _Recorded(
            results, make, captured, generators, replay, surroundings, given_away, name,
            trace.calculations, trace.indices, tuple(sorted(known | trace.looked_at)),
        )
        recorded.values = arguments.values_at(recorded.places)
        return recorded
    finally:
        trace.forget()


def _device_of(cells: Iterable[Storage]) -> Any:
    """Where a call runs: where its arrays are, the current device for several places or none."""
    from clfuse.runtime.devices.selection import get_device

    found = None
    for cell in cells:
        buffer = cell.node.buffer
        if buffer is not None and not buffer.device.lost:
            if found is None:
                found = buffer.device
            elif buffer.device is not found:
                return get_device()
    return get_device() if found is None else found


_NO_RESULT: Final = object()
"""Of a call for whose replay there was no memory."""


@overload
def jit(function: _Function) -> _Function: ...


@overload
def jit(function: _Function, *, donate: str | Iterable[str]) -> _Function: ...


@overload
def jit(*, donate: str | Iterable[str] = ()) -> Callable[[_Function], _Function]: ...


def jit(function: Any = None, *, donate: Any = ()) -> Any:
    """Record a function once for every signature, and replay its kernels after that.

    The first call with a signature (shapes, dtypes and layouts of arrays, values of Python numbers)
    runs the function to record it; later calls run no Python of it. A decorator.

    Parameters
    ----------
    function : callable
        It may do with arrays whatever is recorded: also write into arguments and into arrays from
        its surroundings, which are looked up at every call. It may not look at values (`if x > 0`,
        ``float(x)``, `print`), nor use what runs on the host, nor change anything but arrays.
    donate : str or iterable of str
        Names of parameters whose arrays the caller gives up: their memory may hold the results.
        Using such an array after the call is an error, unless the function wrote into it.

    Returns
    -------
    callable
        The function, with `cache_clear()`, which forgets every signature.

    Raises
    ------
    JitError
        At the call: for what a replay could not do. The message names the line.

    Warns
    -----
    JitWarning
        Once, when there are more signatures than are kept.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.jit
    ... def step(x, y):
    ...     return np.exp(-(x - y) ** 2) + 0.5 * x
    >>> x = np.linspace(0, 1, 3)
    >>> for _ in range(3):  # recorded once, replayed twice
    ...     x = step(x, 0.5)
    >>> x
    array([1.17230285, 1.21449204, 1.21811546])
    """
    if function is None:
        return functools.partial(jit, donate=donate)
    if not callable(function):
        raise TypeError(f"jit: {function!r} is not callable")
    donated = (donate,) if isinstance(donate, str) else tuple(donate)
    if donated:
        unknown = [name for name in donated if name not in inspect.signature(function).parameters]
        if unknown:
            raise ValueError(f"jit: donate names {', '.join(unknown)}, which is no parameter")
    families: dict[tuple[Any, ...], _Family] = {}
    order: OrderedDict[_Recorded, tuple[Any, ...]] = OrderedDict()
    warned: list[bool] = []
    without_kernels: set[tuple[Any, ...]] = set()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if active() is not None:
            return function(*args, **kwargs)  # part of what is traced
        if settings.check == "bounds" or settings.kernels == "python":
            return function(*args, **kwargs)  # every call of a kernel in it is looked at
        with lock:
            arguments = Arguments()
            added = arguments.add(args), arguments.add(kwargs)
            device = _device_of(arguments.cells)
            if device.forked:  # nothing can be launched here
                return function(*args, **kwargs)
            args, kwargs = added
            key = (
                device,
                settings.planning,
                downcasts(),
                settings.exact_random,
                ADOPTIONS[0],
                *arguments.key,
            )
            for places, known in families.get(key, {}).items():
                recorded = known.get(arguments.values_at(places))
                if recorded is not None:
                    if recorded.holds():
                        order.move_to_end(recorded)
                        counters["jit_replays"] += 1
                        try:
                            return recorded.run(arguments)
                        except NoRoom:
                            pass  # what is recorded runs in tiles
                        except NoKernels as refused:
                            recorded.require_repeatable(refused)
                        return function(*args, **kwargs)
                    del known[recorded.values], order[recorded]
                    break
        try:
            if key in without_kernels:
                raise NoKernels
            recorded = _record(function, args, kwargs, arguments, donated, device)
        except NoKernels:
            if len(without_kernels) < SIGNATURES_KEPT:
                without_kernels.add(key)
            return function(*args, **kwargs)
        with lock:
            try:
                result = recorded.run(arguments)
            except NoRoom:
                result = _NO_RESULT
            except NoKernels as refused:
                recorded.require_repeatable(refused)
                return function(*args, **kwargs)
            known = families.setdefault(key, {}).setdefault(recorded.places, {})
            replaced = known.get(recorded.values)
            # What is in `families` is in `order`: an interrupt may come at any call.
            order[recorded] = key
            known[recorded.values] = recorded
            if replaced is not None:  # another thread was faster
                del order[replaced]
            dropped = len(order) > SIGNATURES_KEPT
            while len(order) > SIGNATURES_KEPT:
                old = next(iter(order))
                old_key = order[old]
                family = families.get(old_key, {})
                if family.get(old.places, {}).get(old.values) is old:
                    del family[old.places][old.values]
                if not any(family.values()):
                    families.pop(old_key, None)
                del order[old]
        if dropped and not warned:
            warned.append(True)
            warn_user(
                f"{getattr(function, '__qualname__', function)}: clfuse.jit has traced it for "
                f"{SIGNATURES_KEPT} signatures and forgets the oldest now; Python numbers whose "
                "value the function looks at belong to the signature: pass those that change as "
                "numpy.float64(...) or another NumPy scalar, and arrays in few shapes",
                JitWarning,
            )
        return function(*args, **kwargs) if result is _NO_RESULT else result

    def cache_clear() -> None:
        """Forget every signature."""
        with lock:
            families.clear()
            order.clear()
            without_kernels.clear()

    call.cache_clear = cache_clear  # type: ignore[attr-defined]
    _jitted.add(call)
    return call


_jitted: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Every function that `jit` has made."""


def _forget_lost(device: Device) -> None:
    """Let go of kernels that were bound for a device that was lost."""
    for function in list(_jitted):
        function.cache_clear()


when_renewed.append(_forget_lost)

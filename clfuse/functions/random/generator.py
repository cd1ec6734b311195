"""`Generator`: draws in kernels by counter, or on the host where the stream is NumPy's.

Its bit generator decides which. `Philox4x32` is native: arrays of uniform and normal numbers are
recorded, the distributions of `formulas`, and random orders (`permutations`). NumPy draws the rest
on the host, also from key and position alone. A bit generator of NumPy's was chosen for its stream,
so everything is drawn from that stream, on the host.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, adopt_host_array, as_handle, host_view
from clfuse.arrays.handle import Handle, native_dtype
from clfuse.arrays.host_array import SCALARS, host_elements
from clfuse.arrays.promotion import FLOAT64, INT64
from clfuse.config import settings
from clfuse.counters import when_seeded
from clfuse.dispatch.host_call import announce_fallback, host_call, refuse_fallback
from clfuse.dispatch.numpy_errors import note_final
from clfuse.dispatch.stand_ins import GENERATORS, StandInType
from clfuse.errors import warn_user
from clfuse.process import locks

from . import distributions, formulas, permutations
from .bits import Draw, Philox4x32, SingleDraw, as_array
from .methods import EXAMINER, Distributions, natively, on_host
from .single_draws import single

_core: Final = loading.load()

_FAR: Final = 1 << 62
"""Bounds of `integers` within this need no second look."""

_NUMPYS_INTEGERS: Final = frozenset(np.dtype(char).type for char in "bBhHiIlLqQ")


class Generator(Distributions, metaclass=StandInType, stands_for=np.random.Generator):
    """Random numbers as lazy arrays; the interface of `numpy.random.Generator`.

    Parameters
    ----------
    bit_generator : Philox4x32, numpy.random.BitGenerator
        With `Philox4x32` numbers are made in the kernels that use them and never stored, unless
        somebody asks for them. With one of NumPy's they are NumPy's, drawn on the host.

    Examples
    --------
    >>> import clfuse as np
    >>> rng = np.random.default_rng(7)
    >>> inside = rng.random(1_000_000) ** 2 + rng.random(1_000_000) ** 2 < 1
    >>> abs(float(4 * inside.mean()) - np.pi) < 0.01
    True
    """

    def __init__(self, bit_generator: Any) -> None:
        self._numpy: Any = None
        self.bit_generator = self._source = bit_generator
        if not isinstance(bit_generator, Philox4x32):
            self._numpy = np.random.Generator(bit_generator)
            self.bit_generator = self._numpy.bit_generator

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        # SciPy and its like take a generator for one when it is an instance of NumPy's.
        return np.random.Generator

    def __reduce__(self) -> Any:
        return Generator, (self.bit_generator,)

    def __repr__(self) -> str:
        return f"{self} at 0x{id(self):X}"

    def __str__(self) -> str:
        return f"{type(self).__name__}({type(self.bit_generator).__name__})"

    def spawn(self, n_children: int) -> list[Generator]:
        """New independent generators; a `TypeError` where the bit generator cannot spawn."""
        children = (
            self.bit_generator.spawn(n_children)
            if self._numpy is None
            else [child.bit_generator for child in self._numpy.spawn(n_children)]
        )
        return [Generator(child) for child in children]

    @property
    def _bit_generator(self) -> Any:
        """A bit generator of NumPy's with the same seed: SciPy (`qmc`) spawns others from it, which
        its compiled code draws from."""
        bits = self.bit_generator
        return bits if self._numpy is not None else np.random.PCG64(bits.seed_seq)

    # -- on the host -------------------------------------------------------------------------------

    def _hosted(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str = ""
    ) -> Any:
        """NumPy's method `name`, counted; a native generator gives it one position."""
        label = f"Generator.{name}"
        if self._numpy is not None:
            return hosted_method(getattr(self._numpy, name), args, kwargs, label, reason)
        with HOST.placed(self.bit_generator):
            return hosted_method(getattr(HOST.generator, name), args, kwargs, label, reason)

    # -- uniform bits ------------------------------------------------------------------------------

    @natively
    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform in [0, 1); float64 in steps of 2**-53, float32 of 2**-24."""
        if dtype is np.float64 and out is None:
            if size is None:
                return self.bit_generator.number("uniform")
            if (few := self.bit_generator.few("uniform", size)) is not None:
                return few
        return self._standard("random", lambda draw, of: draw.uniform(of), size, dtype, out)

    @natively
    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Normal with mean 0 and standard deviation 1."""
        if dtype is np.float64 and out is None:
            if size is None:
                return self.bit_generator.number("normal")
            if (few := self.bit_generator.few("normal", size)) is not None:
                return few
        return self._standard("standard_normal", lambda draw, of: draw.normal(of), size, dtype, out)

    @natively
    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Exponential with mean 1; `method` changes nothing."""
        if size is None and out is None and dtype is np.float64 and loading.load() is not None:
            return single(self.bit_generator, formulas.exponential, ())
        return self._standard("standard_exponential", formulas.exponential, size, dtype, out)

    def _standard(
        self, name: str, formula: Callable[..., Any], size: Any, dtype: Any, out: Any
    ) -> Any:
        if size is None and out is None and (dtype is np.float64 or dtype is float):
            return formula(SingleDraw(self.bit_generator), FLOAT64).item()
        wanted = distributions.is_native_float(dtype, name)
        if out is not None:
            shape: tuple[int, ...] | None = distributions.into(out, size, wanted)
        else:
            shape = distributions.requested_size(size)
        if shape is None:
            return float(formula(SingleDraw(self.bit_generator), wanted))
        value = as_array(formula(Draw(self.bit_generator, shape), wanted))
        return value if out is None else distributions.deliver_draws(value, out)

    @natively
    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Whole numbers from `low` (0 where `high` is None) up to `high`, excluded unless
        `endpoint`; no value is more than one part in 2**32 more frequent than another.

        Bounds that are lazy arrays are computed, as NumPy raises at the call for bad ones.
        """
        return self._integers(EXAMINER.integers, low, high, size, dtype, endpoint)

    def _integers(
        self,
        examiner: Callable[..., Any],
        low: Any,
        high: Any,
        size: Any,
        dtype: Any,
        endpoint: bool,
    ) -> Any:
        if type(low) in _NUMPYS_INTEGERS:
            low = int(low)
        if type(high) in _NUMPYS_INTEGERS:
            high = int(high)
        if type(low) is int and (dtype is np.int64 or dtype is int):
            first, last = (0, low) if high is None else (low, high)
            if type(last) is int and -_FAR < first < last < _FAR:
                last -= not endpoint
                if size is not None:
                    few = self.bit_generator.few_below(first, last - first + 1, size)
                    if few is not None:
                        return few
                shape = distributions.requested_size(size)
                made = distributions.integers(self.bit_generator, first, last, shape, INT64)
                return dtype(made) if shape is None else made
        low, high = on_host(low), on_host(high)
        is_array = bool(np.ndim(low) or (high is not None and np.ndim(high)))
        wanted = np.dtype(dtype)
        given = {"endpoint": True} if endpoint else {}
        if size is not None and 0 in (distributions.requested_size(size) or ()):
            raise NotNative("of no numbers, for which any bounds will do")
        examiner(low, high, None if is_array else 1, dtype, **given)
        native = native_dtype(wanted)
        assert native is not None
        low, high = (0, low) if high is None else (low, high)
        if is_array:
            lows, highs = np.asarray(low), np.asarray(high)
            if lows.dtype.kind not in "iub" or highs.dtype.kind not in "iub":
                raise NotNative("bounds that are arrays of other dtypes than integers")
            highs = highs if endpoint else highs.astype(np.uint64) - np.uint64(1)
            return distributions.integers_between(self.bit_generator, lows, highs, size, native)
        shape = distributions.requested_size(size)
        first, last = int(low), int(high) - (not endpoint)
        made = distributions.integers(self.bit_generator, first, last, shape, native)
        if shape is not None:
            return made
        return dtype(made) if dtype is bool or dtype is int else wanted.type(made)

    @natively
    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Elements of `a`, or of ``arange(a)``, also with probabilities `p`."""
        shape = distributions.requested_size(size)
        if not replace or p is not None:
            return self._choose(a, shape, p, axis, once=not replace)
        wanted = shape is None or 0 not in shape
        if not isinstance(a, Handle):
            a = np.asarray(a) if not isinstance(a, int) else a
        if not np.ndim(a):
            count = _population(a)
            if count <= 0 and wanted:
                raise ValueError("a must be a positive integer unless no samples are taken")
            return self._positions(max(count, 1), shape)
        array = as_handle(a) if native_dtype(a.dtype) is not None else a
        count = array.shape[axis]
        if count == 0 and wanted:
            raise ValueError("a cannot be empty unless no samples are taken")
        index = self._positions(max(count, 1), shape)
        if array is not a or isinstance(a, Handle):
            return array[index] if array.ndim == 1 else array.take(index, axis=axis)
        return array.take(np.asarray(index), axis=axis)

    def _positions(self, count: int, shape: tuple[int, ...] | None) -> Any:
        """Random whole numbers below `count`."""
        if shape is not None:
            few = self.bit_generator.few_below(0, count, shape)
            if few is not None:
                return few
        return distributions.integers(self.bit_generator, 0, count - 1, shape, INT64)

    def _choose(
        self, a: Any, shape: tuple[int, ...] | None, p: Any, axis: int, *, once: bool
    ) -> Any:
        """`choice` with probabilities, or without replacement."""
        if shape is None:
            among: Any = a if type(a) is int else np.asarray(on_host(a))
            if type(a) is int or among.ndim == 1:
                drawn = HOST.generator.choice
                return HOST.drawn(self.bit_generator, drawn, among, None, not once, on_host(p))
        if shape is None or 0 in shape:
            raise NotNative("one alone, or none")
        array = None if not np.ndim(a) else permutations.as_array(a)
        count = _population(a) if array is None else array.shape[axis]
        if p is None:
            index = permutations.chosen_once(self.bit_generator, HOST, count, shape)
        else:
            chosen = permutations.probable_once if once else permutations.probable
            index = chosen(self.bit_generator, EXAMINER, count, p, shape)
        return index if array is None else array.take(index, axis=axis)

    @natively
    def permutation(self, x: Any, axis: int = 0) -> Any:
        """``arange(x)``, or the elements of `x` along an axis, in a random order."""
        if type(x) is int or type(x) in handles.SCALARS or not np.ndim(x):
            count = int(on_host(x).__index__())
            if count <= 0:
                raise NotNative("of no elements")
            return as_array(permutations.numbers(self.bit_generator, HOST, count))
        return permutations.ordered(self.bit_generator, HOST, permutations.as_array(x), axis)

    @natively
    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Any:
        """The elements along an axis in random orders, each slice in its own."""
        array = permutations.as_array(x)
        if out is not None and not isinstance(out, Handle):
            raise NotNative("into an array of NumPy's")
        kind = (array._shape, array._dtype, True)
        if out is not None and (out._shape, out._dtype, handles.is_writeable(out)) != kind:
            raise NotNative("into an array of another kind")
        found = permutations.permuted(self.bit_generator, HOST, array, axis)
        return as_array(found) if out is None else distributions.deliver_draws(found, out)

    @natively
    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the elements of `x` along an axis into a random order, in place."""
        if type(x) is list:
            HOST.drawn(self.bit_generator, HOST.generator.shuffle, x, axis)
        else:
            permutations.shuffle_in_place(self.bit_generator, HOST, x, axis)


def _population(a: Any) -> int:
    """The number that `choice` was given for an array."""
    if isinstance(a, Handle):
        a = host_view(a)
    try:
        return int(a.__index__())
    except (AttributeError, TypeError):
        raise ValueError(
            f"a must be a sequence or an integer, not {type(np.asarray(a).item())}"
        ) from None


class HostBits:
    """NumPy's Philox4x64, keyed by key and position of one draw: what is drawn on the host.

    One for all generators: making one takes 20 us, as it asks the system for entropy.

    Attributes
    ----------
    generator : numpy.random.Generator
    lock : threading.RLock
        Held while somebody draws.
    """

    def __init__(self) -> None:
        self.lock = locks.make()
        self._start: Any = None
        if _core is None:
            self._bits: Any = np.random.Philox(0)
            self._start = self._bits.state
            self._start["state"]["counter"] = np.zeros(4, np.uint64)
        else:
            self._bits = _core.NumpysBits(self.lock)
        self.generator = np.random.Generator(self._bits)

    @contextmanager
    def placed(self, bit_generator: Philox4x32) -> Iterator[Any]:
        """Take the next position of `bit_generator` and draw from there, for one draw."""
        key, position, _ = bit_generator.take()
        with self.lock:
            self._place(key, position)
            yield self._bits

    def drawn(self, bit_generator: Philox4x32, method: Any, *args: Any, **kwargs: Any) -> Any:
        """One draw by a method of `generator`, at the next position of `bit_generator`."""
        key, position, _ = bit_generator.take()
        with self.lock:
            self._place(key, position)
            return method(*args, **kwargs)

    def _place(self, key: int, position: int) -> None:
        if self._start is None:
            self._bits.place(key, position)
            return
        self._start["state"]["key"] = np.array([key, position], np.uint64)
        self._bits.state = self._start


HOST: Final = HostBits()


_DRAWN_INTO: Final = frozenset(
    {"random", "standard_normal", "standard_exponential", "standard_gamma"}
)
"""Methods that take only an `out` without gaps."""


def hosted_method(
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    reason: str = "",
) -> Any:
    """A bound method of NumPy's that draws, with its arrays brought to the device."""
    if method.__name__ == "shuffle" and args and not isinstance(args[0], Handle):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            method(*args, **kwargs)
        for warning in seen:  # NumPy's compiled code warns its caller, which is not the user's
            warn_user(str(warning.message), warning.category)
        return None
    into = _output(args, kwargs) if method.__name__ in _DRAWN_INTO else None
    if into is not None:
        distributions.check_output(into)  # NumPy will see a copy
    if into is not None or method.__name__ in _WRITING or not (
        _are_only_read(args) and _are_only_read(kwargs.values())
    ):
        return host_call(method, args, kwargs, reason, name=f"random.{name}")
    refuse_fallback(f"random.{name}", reason)
    try:
        drawn = method(*map(_seen, args), **{key: _seen(value) for key, value in kwargs.items()})
    except Exception as error:
        note_final(error, method)
        raise
    announce_fallback(f"random.{name}", reason)
    return adopt_host_array(drawn) if type(drawn) is np.ndarray and drawn.dtype in _DRAWN else drawn


def _output(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The array of ours that a method of `_DRAWN_INTO` draws into; by place `out` is the last."""
    out = kwargs.get("out", args[-1] if len(args) > _BEFORE_OUT else None)
    return out if isinstance(out, Handle) else None


_BEFORE_OUT: Final = 2
"""Arguments before `out` by place: two or three, of which the third is no array."""

_NUMBERS: Final = frozenset((*SCALARS, type(None), str, type))

_DRAWN: Final = frozenset(map(np.dtype, "bBhHiIlLqQfd?"))
"""Dtypes of arrays that are drawn, which `host_call` would make arrays of ours, too."""


def _are_only_read(arguments: Iterable[Any]) -> bool:
    """Whether what a draw is given is arrays that lie on the host, numbers, and tuples or lists of
    numbers."""
    for value in arguments:
        kind = type(value)
        if kind is handles.ARRAY:
            if host_elements(value) is None:
                return False
        elif kind is tuple or kind is list:
            if not all(type(item) in _NUMBERS for item in value):
                return False
        elif kind not in _NUMBERS:
            return False
    return True


def _seen(value: Any) -> Any:
    """An argument of a draw as NumPy takes it."""
    return host_elements(value) if type(value) is handles.ARRAY else value


_WRITING: Final = frozenset(("shuffle", "permuted"))
"""Methods that write to an argument, or give one back."""


def documentation(function: Any) -> str:
    """NumPy's documentation of a function down to its notes: the numbers in its examples are
    NumPy's."""
    text = inspect.cleandoc(function.__doc__ or "")
    for heading in ("Notes", "Examples"):
        text = text.partition(f"\n{heading}\n---")[0]
    return text


def _left_to_numpy(name: str) -> Callable[..., Any]:
    reference = getattr(np.random.Generator, name)

    def call(self: Generator, *args: Any, **kwargs: Any) -> Any:
        return self._hosted(name, args, kwargs)

    call.__name__ = name
    call.__qualname__ = f"Generator.{name}"
    call.__doc__ = documentation(reference)
    return call


GENERATORS.add(Generator)

for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name != "bit_generator" and not hasattr(Generator, _name):
        setattr(Generator, _name, _left_to_numpy(_name))


def note_seed() -> None:
    """Tell who wants to know that a program has set a seed."""
    for function in tuple(when_seeded):
        function()


def default_rng(seed: Any = None) -> Generator:
    """A `Generator` for a seed.

    Parameters
    ----------
    seed : None, int, array_like of ints, SeedSequence, BitGenerator, Generator, RandomState
        As for `numpy.random.default_rng`. A generator is returned as it is; a bit generator of
        NumPy's is drawn from on the host.

    Returns
    -------
    Generator
        For the same seed the same numbers on every device, but not NumPy's: for those set
        ``CLFUSE_EXACT_RANDOM=on`` (``python -m clfuse run --exact-random``), or pass
        ``numpy.random.PCG64(seed)``.

    Raises
    ------
    TypeError, ValueError
        For what is no seed.
    """
    seed = on_host(seed)
    if Generator.is_class_of(seed):
        return seed  # type: ignore[no-any-return]
    if isinstance(seed, Philox4x32 | np.random.BitGenerator):
        return Generator(seed)
    shared = getattr(seed, "_shared_bit_generator", None)  # our RandomState
    if isinstance(shared, types.MethodType):
        return Generator(shared())
    is_numpys = isinstance(seed, np.random.Generator | np.random.RandomState)
    if settings.exact_random or is_numpys:
        return Generator(np.random.default_rng(seed).bit_generator)
    if seed is not None:
        note_seed()
    return Generator(Philox4x32(seed))

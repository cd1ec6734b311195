"""``clfuse.random``: random numbers by counter, in kernels; NumPy's own streams where asked for.

`Generator`, `default_rng`, `RandomState` and the functions of the module draw from the same kind of
bits. Under ``CLFUSE_EXACT_RANDOM=on`` everything is drawn on the host, with NumPy's streams for the
same seeds, counted as fallbacks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.random import mtrand

from clfuse.arrays.conversion import NotNative
from clfuse.config import settings
from clfuse.dispatch.stand_ins import GENERATORS, StandInType

from .bit_generators import SEEDED
from .bits import ADOPTIONS, Philox4x32, refuse_in_trace
from .generator import (
    HOST,
    Generator,
    default_rng,
    documentation,
    hosted_method,
    note_seed,
)
from .known_draws import drawing_single
from .methods import EXAMINER, on_host
from .single_draws import ONE_NUMBER

_STATES: Final = frozenset({"seed", "get_state", "set_state", "spawn"})
"""Methods of `numpy.random` that deal with states, not with arrays."""

_RENAMED: Final = {"random_sample": "random", "randint": "integers"}
"""Methods of RandomState that Generator has under another name."""

_NATIVE: Final = frozenset(
    """
    random random_sample standard_normal standard_exponential uniform normal lognormal exponential
    laplace logistic gumbel rayleigh weibull pareto power triangular standard_cauchy binomial
    permutation shuffle poisson geometric negative_binomial hypergeometric logseries zipf gamma
    standard_gamma chisquare noncentral_chisquare f noncentral_f standard_t beta wald vonmises
    dirichlet multinomial multivariate_normal
""".split()
)
"""Methods that RandomState has of Generator."""

_STRICTER: Final = frozenset({"dirichlet", "hypergeometric", "logseries", "multinomial"})
"""Those of them in which RandomState refuses what Generator takes."""

_LEGACY_EXAMINER: Final = np.random.RandomState(0)


@cache
def _parameters(name: str) -> tuple[str, ...]:
    """The names of the arguments of a method, in their order."""
    return tuple(inspect.signature(getattr(_LEGACY_EXAMINER, name)).parameters)


def _are_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a method takes these arguments, as far as their names say."""
    names = _parameters(name)
    return len(args) <= len(names) and (not kwargs or kwargs.keys() <= set(names[len(args) :]))


class RandomState(metaclass=StandInType, stands_for=np.random.RandomState):
    """The older interface, `numpy.random.RandomState`, over the same bits as `Generator`.

    Parameters
    ----------
    seed : None, int, array_like of ints, BitGenerator
        What NumPy takes. With a bit generator of NumPy's, or under ``CLFUSE_EXACT_RANDOM=on``, the
        stream is NumPy's, drawn on the host; also after `set_state` with a state of MT19937.
    """

    def __init__(self, seed: Any = None) -> None:
        self._numpy: Any = None
        seed = on_host(seed)
        if isinstance(seed, Philox4x32):
            self._adopt(seed)
        elif isinstance(seed, np.random.BitGenerator) or settings.exact_random:
            self._numpy = np.random.RandomState(seed)
        else:
            self._adopt(_seeded(seed))

    def _adopt(self, bit_generator: Any) -> None:
        """Draw from `bit_generator` from now on."""
        ADOPTIONS[0] += 1
        if isinstance(bit_generator, Philox4x32):
            self._numpy = None
            self._source = bit_generator
            self._generator = Generator(bit_generator)
        else:
            self._numpy = np.random.RandomState(bit_generator)

    def _shared_bit_generator(self) -> Any:
        return self._generator.bit_generator if self._numpy is None else self._numpy._bit_generator

    @property
    def _bit_generator(self) -> Any:
        return self._shared_bit_generator()

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        # SciPy and its like take a generator for one when it is an instance of NumPy's.
        return np.random.RandomState

    def __reduce__(self) -> Any:
        if self._numpy is None:
            return RandomState, (self._generator.bit_generator,)
        return _around, (self._numpy,)

    def __repr__(self) -> str:
        return f"{self} at 0x{id(self):X}"

    def __str__(self) -> str:
        return f"RandomState({type(self._shared_bit_generator()).__name__})"

    # -- the state ---------------------------------------------------------------------------------

    def seed(self, seed: Any = None) -> None:
        """Start again from a seed."""
        refuse_in_trace("a generator is seeded")
        if self._numpy is not None:
            self._numpy.seed(on_host(seed))
        else:
            self._adopt(_seeded(on_host(seed)))

    def get_state(self, legacy: bool = True) -> Any:
        """The state: a dict as `Philox4x32.state`, or NumPy's where the stream is NumPy's."""
        if self._numpy is not None:
            return self._numpy.get_state(legacy=legacy)
        return self._generator.bit_generator.state

    def set_state(self, state: Any) -> None:
        """Return to a state. One of MT19937 makes the stream NumPy's."""
        refuse_in_trace("the state of a generator is set")
        if isinstance(state, dict) and state.get("bit_generator") == Philox4x32.__name__:
            bit_generator = Philox4x32(0)
            bit_generator.state = state
            self._adopt(bit_generator)
            return
        numpys = np.random.RandomState() if self._numpy is None else self._numpy
        numpys.set_state(state)  # raises before anything has changed
        self._numpy = numpys

    # -- drawing -----------------------------------------------------------------------------------

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._numpy is not None:
            return hosted_method(getattr(self._numpy, name), args, kwargs, f"RandomState.{name}")
        if name in _NATIVE and _are_of(name, args, kwargs):
            method = getattr(self._generator, _RENAMED.get(name, name))
            try:
                if name in _STRICTER:
                    _examine(name, args, kwargs)
                return method(*args, **kwargs)
            except (OverflowError, TypeError, ValueError):
                pass  # it checks other things than this class does: NumPy's draws, or raises
        return self._on_host(name, args, kwargs)

    def _on_host(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's method `name`, which takes one position of the native generator."""
        with HOST.placed(self._generator.bit_generator) as bits:
            numpys = np.random.RandomState(bits)  # a new one keeps no normal number back
            return hosted_method(getattr(numpys, name), args, kwargs, f"RandomState.{name}")

    def _standard(self, name: str, numbers: str, size: Any) -> Any:
        """Numbers made of bits, without further parameters; by `_call` of the method `name` where
        they are not few."""
        if self._numpy is None:
            bit_generator = self._generator.bit_generator
            if size is None:
                return bit_generator.number(numbers)
            if (few := bit_generator.few(numbers, size)) is not None:
                return few
        return self._call(name, (size,), {})

    def random_sample(self, size: Any = None) -> Any:
        """Uniform numbers in [0, 1)."""
        return self._standard("random_sample", "uniform", size)

    def random(self, size: Any = None) -> Any:
        """Uniform numbers in [0, 1)."""
        return self._standard("random_sample", "uniform", size)

    def standard_normal(self, size: Any = None) -> Any:
        """Normal numbers with mean 0 and standard deviation 1."""
        return self._standard("standard_normal", "normal", size)

    def rand(self, *args: Any) -> Any:
        """Uniform numbers in [0, 1); the arguments are the shape."""
        return self._standard("random_sample", "uniform", args or None)

    def randn(self, *args: Any) -> Any:
        """Normal numbers; the arguments are the shape."""
        return self._standard("standard_normal", "normal", args or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Whole numbers from `low` (0 where `high` is None) up to `high`, excluded."""
        if self._numpy is not None:
            return self._call("randint", (low, high, size, dtype), {})
        examiner = _LEGACY_EXAMINER.randint
        try:
            return self._generator._integers(examiner, low, high, size, dtype, endpoint=False)
        except (NotNative, TypeError, ValueError):
            return self._on_host("randint", (low, high, size, dtype), {})  # or NumPy's error

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        """Elements of the vector `a`, or of ``arange(a)``."""
        if self._numpy is not None:
            return self._call("choice", (a, size, replace, p), {})
        if np.ndim(a) > 1:
            raise ValueError("a must be 1-dimensional")
        if replace and p is None:
            return self._generator.choice(a, size)
        try:
            return self._generator.choice(a, size, replace, p)
        except (TypeError, ValueError):
            return self._on_host("choice", (a, size, replace, p), {})  # or NumPy's error

    def tomaxint(self, size: Any = None) -> Any:
        """Whole numbers from 0 up to the largest int."""
        if self._numpy is not None:
            return self._call("tomaxint", (size,), {})
        return self._generator.integers(0, np.iinfo(np.int_).max, size, np.int_, endpoint=True)


def _examine(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """NumPy's errors for numbers, or for the vector, that `RandomState` is told to draw with; of
    arrays in the place of numbers TypeError."""
    names = _parameters(name)
    given = dict(zip(names, args, strict=False)) | kwargs
    given.pop("size", None)
    parameters = {key: on_host(value) for key, value in given.items()}
    if name not in ("dirichlet", "multinomial") and any(map(np.ndim, parameters.values())):
        raise TypeError("the older interface is asked about numbers alone")
    getattr(_LEGACY_EXAMINER, name)(**parameters, size=0)


def _around(numpys: Any) -> RandomState:
    state = RandomState(Philox4x32(0))
    state._numpy = numpys
    return state


def _seeded(seed: Any) -> Philox4x32:
    """A bit generator for a seed of the older kind, with NumPy's errors for what is none."""
    if seed is not None:
        np.random.MT19937()._legacy_seeding(seed)
        note_seed()
    return Philox4x32(seed)


def _drawing(
    call: Callable[..., Any], name: str, holders: list[Any] | None = None
) -> Callable[..., Any]:
    stricter = _LEGACY_EXAMINER if name in _STRICTER else None
    return drawing_single(call, name, EXAMINER, holders, stricter=stricter)


def _delegated(name: str) -> Callable[..., Any]:
    def call(self: RandomState, *args: Any, **kwargs: Any) -> Any:
        return self._call(name, args, kwargs)

    call.__name__ = name
    call.__qualname__ = f"RandomState.{name}"
    call.__doc__ = documentation(getattr(np.random.RandomState, name))
    return call


for _name in dir(np.random.RandomState):
    if not _name.startswith("_") and not hasattr(RandomState, _name):
        setattr(RandomState, _name, _delegated(_name))

GENERATORS.add(RandomState)

for _name in (*ONE_NUMBER, *_NATIVE):
    if hasattr(RandomState, _name):
        setattr(RandomState, _name, _drawing(getattr(RandomState, _name), _name))


# -- the module -----------------------------------------------------------------------------------

_global: Final = [RandomState(Philox4x32())]
"""What the functions of the module draw from."""


def get_bit_generator() -> Any:
    """The bit generator that the functions of this module draw from."""
    if settings.exact_random:
        return mtrand.get_bit_generator()
    return _global[0]._shared_bit_generator()


def set_bit_generator(bitgen: Any) -> None:
    """Let the functions of this module draw from `bitgen`."""
    refuse_in_trace("a generator is replaced")
    if settings.exact_random:
        mtrand.set_bit_generator(bitgen)
    else:
        _global[0]._adopt(bitgen)


def seed(seed: Any = None) -> None:
    """Start the functions of this module again from a seed, and NumPy's, by which other packages
    draw that are given no generator (``scipy.stats.norm.rvs()``)."""
    refuse_in_trace("a generator is seeded")
    np.random.seed(on_host(seed))
    if not settings.exact_random:
        _global[0].seed(seed)


def _function(name: str) -> Callable[..., Any]:
    """A function of the module: a method of the global `RandomState`, or NumPy's function."""
    reference = getattr(np.random, name)
    method = {"ranf": "random_sample", "sample": "random_sample"}.get(name, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not settings.exact_random:
            return getattr(_global[0], method)(*args, **kwargs)
        if name in _STATES:
            return reference(*args, **kwargs)
        return hosted_method(reference, args, kwargs, name)

    call.__module__ = "clfuse.random"
    call.__name__ = call.__qualname__ = name
    call.__doc__ = documentation(reference)
    return _drawing(call, name, _global)


def contents() -> dict[str, Any]:
    """What is in the module."""
    made: dict[str, Any] = {"__doc__": __doc__}
    for name in dir(np.random):
        if name.startswith("_"):
            continue
        found = getattr(np.random, name)
        draws = callable(found) and not inspect.isclass(found) and name != "test"
        made[name] = _function(name) if draws else found
    own: tuple[Any, ...] = (
        Generator,
        RandomState,
        Philox4x32,
        default_rng,
        seed,
        get_bit_generator,
        set_bit_generator,
    )
    return made | {item.__name__: item for item in (*own, *SEEDED.values())}


def contents_of_mtrand(ours: dict[str, Any]) -> dict[str, Any]:
    """What is in `numpy.random.mtrand`, given the contents of our module: `_rand` is the state that
    the functions of the module draw from."""
    names = [name for name in dir(mtrand) if not name.startswith("__")]
    state = _around(mtrand._rand) if settings.exact_random else _global[0]
    return {name: ours.get(name, getattr(mtrand, name)) for name in names} | {"_rand": state}

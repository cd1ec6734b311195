"""``clfuse.random``: NumPy's random numbers, drawn on the host and put on the device.

Everything of `numpy.random` is here with the same streams for the same seeds: what `Generator` and
`RandomState` draw is NumPy's own, counted as fallbacks.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .conversion import host_view
from .fallback import host_call
from .handle import Handle

_PLAIN: Final = frozenset(
    {"seed", "get_state", "set_state", "get_bit_generator", "set_bit_generator"}
)
"""Functions of `numpy.random` that deal with states, not with arrays."""


class _Drawn:
    """An object of `numpy.random` whose methods give arrays of clfuse's."""

    _kind: Any = object

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._numpy = self._kind(*[_host(item) for item in args], **kwargs)

    @classmethod
    def _around(cls, generator: Any) -> Any:
        made = object.__new__(cls)
        made._numpy = generator
        return made

    def __getattr__(self, name: str) -> Any:
        if name == "_numpy":
            raise AttributeError(name)
        found = getattr(self._numpy, name)
        if not callable(found) or name in _PLAIN or name.startswith("_"):
            return found
        return _method(found, f"random.{type(self).__name__}.{name}")

    def __repr__(self) -> str:
        return repr(self._numpy)

    def __reduce__(self) -> Any:
        return _rewrapped, (type(self).__name__, self._numpy)


def _rewrapped(name: str, generator: Any) -> Any:
    return {"Generator": Generator, "RandomState": RandomState}[name]._around(generator)


def _host(value: Any) -> Any:
    return host_view(value) if isinstance(value, Handle) else value


def _method(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A bound method that draws: on the host, with its arrays brought to the device."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if method.__name__ == "shuffle" and args and not isinstance(args[0], Handle):
            return method(*args, **kwargs)
        return host_call(method, args, kwargs, name=name)

    call.__doc__ = method.__doc__
    call.__name__ = method.__name__
    return call


class Generator(_Drawn):
    """`numpy.random.Generator` whose arrays are clfuse's."""

    _kind = np.random.Generator

    def spawn(self, n_children: int) -> list[Any]:
        """New independent generators."""
        return [self._around(child) for child in self._numpy.spawn(n_children)]


class RandomState(_Drawn):
    """`numpy.random.RandomState` whose arrays are clfuse's."""

    _kind = np.random.RandomState


def default_rng(seed: Any = None) -> Generator:
    """A `Generator`; NumPy's stream for the seed."""
    if isinstance(seed, Generator):
        return seed
    return Generator._around(np.random.default_rng(_host(seed)))


def build_namespace() -> types.ModuleType:
    """The module that ``clfuse.random`` is."""
    module = types.ModuleType("clfuse.random", __doc__)
    for name in dir(np.random):
        if name.startswith("_"):
            continue
        found = getattr(np.random, name)
        is_method = isinstance(found, types.BuiltinMethodType | types.MethodType)
        if is_method or isinstance(found, types.BuiltinFunctionType | types.FunctionType):
            found = found if name in _PLAIN else _method(found, f"random.{name}")
        setattr(module, name, found)
    module.Generator = Generator  # type: ignore[attr-defined]
    module.RandomState = RandomState  # type: ignore[attr-defined]
    module.default_rng = default_rng  # type: ignore[attr-defined]
    return module

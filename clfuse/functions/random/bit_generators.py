"""NumPy's bit generators and `SeedSequence`, which also take arrays of ours as seeds.

NumPy's classes look at the C structure of a seed, so a seed becomes an array of NumPy's. The
objects that are made are NumPy's own. Only the class that programs call is another one, and NumPy's
objects are instances of it.
"""

from __future__ import annotations

import copyreg
from typing import Any, Final

import numpy as np

from .methods import on_host

__all__ = ["SEEDED"]


class SeededType(type):
    """The class of these classes; what programs derive from them is made as it stands."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kind = _numpys(cls)
        given = [on_host(value) for value in args]
        named = {name: on_host(value) for name, value in kwargs.items()}
        return type.__call__(kind, *given, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(_numpys(cls), instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(_numpys(cls), subclass)


def _numpys(kind: Any) -> Any:
    """The class of NumPy's in the place of one of ours; any other as it is."""
    ours = SEEDED.get(kind.__name__)
    return ours.__base__ if ours is not None and ours is kind else kind


def _seeded(kind: type) -> SeededType:
    about = {"__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__}
    return SeededType(kind.__name__, (kind,), about)


SEEDED: Final[dict[str, SeededType]] = {
    kind.__name__: _seeded(kind)
    for kind in (
        np.random.SeedSequence, np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM,
        np.random.Philox, np.random.SFC64,
    )
}  # fmt: skip


def _by_name(name: str) -> type:
    return SEEDED[name]


def _reduced(kind: SeededType) -> Any:
    """The classes themselves, pickled: by NumPy's name something else is found."""
    return (_by_name, (kind.__name__,)) if SEEDED.get(kind.__name__) is kind else kind.__qualname__


copyreg.pickle(SeededType, _reduced)

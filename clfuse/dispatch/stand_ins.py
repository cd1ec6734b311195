"""The class of classes that stand in NumPy's place: NumPy's objects are instances of them, too.

A program tests what it is given by the name that it knows: ``isinstance(f, np.ufunc)``. What it is
given may come from a package, which has NumPy's own objects.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["GENERATORS", "StandInType"]

GENERATORS: Final[set[type]] = set()
"""Those of our classes that draw random numbers, as far as they are imported."""


class StandInType(type):
    """The class of our `ufunc`, `Generator` and `RandomState`.

    Classes that derive from these have their own instances alone, as with NumPy.

    stands_for (type): NumPy's class.

    Examples
    --------
    >>> import clfuse, numpy, scipy.special
    >>> isinstance(scipy.special.gamma, clfuse.ufunc), isinstance(clfuse.add, clfuse.ufunc)
    (True, True)
    """

    stands_for: type | None

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        stands_for: type | None = None,
    ) -> StandInType:
        made = super().__new__(cls, name, bases, namespace)
        made.stands_for = stands_for
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any):
        super().__init__(name, bases, namespace)

    def is_class_of(cls, instance: Any) -> bool:
        """Whether it is an instance of this class itself, not of NumPy's."""
        return type.__instancecheck__(cls, instance)

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls.is_class_of(instance):
            return True
        return cls.stands_for is not None and isinstance(instance, cls.stands_for)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if type.__subclasscheck__(cls, subclass):
            return True
        return cls.stands_for is not None and issubclass(subclass, cls.stands_for)

"""Every public name: clfuse's own where there is one, else NumPy's, run on the host for arrays.

`lookup` finds names that are not in `clfuse` itself; those of NumPy's that cost no import are there
from the start (`at_hand`). Classes, constants and functions that have nothing to do with arrays are
NumPy's own objects.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from typing import Any, Final

import numpy as np

from .arrays.errstate import errstate, seterr
from .classes import printing  # noqa: F401
from .classes.ndarray import ndarray
from .dispatch.host_call import host_call, make_hosted
from .dispatch.overrides import Mixin
from .dispatch.placement import HAS_INFO, __array_namespace_info__
from .dispatch.registry import AT_CALL, BY_NUMPY, NATIVE, shown
from .functions import rebound
from .functions.fft import signals, transforms  # noqa: F401  (these register their functions)
from .functions.indexing import masks, positions, taking  # noqa: F401
from .functions.linalg import contraction, decompositions, products  # noqa: F401
from .functions.math import cumulative, logic, reductions, selection, statistics  # noqa: F401
from .functions.math.ufunc import ufunc
from .functions.shaping import (  # noqa: F401
    creation,
    differences,
    joining,
    manipulation,
    matrices,
)
from .functions.shaping.files import FILES, load
from .functions.shaping.sequences import mgrid, ogrid
from .functions.sorting import quantiles, searching, sorting  # noqa: F401
from .interop import opening
from .interop.nditer import nditer, nested_iters
from .numpy_submodules import NumPysModules, Submodule

PLAIN: Final = frozenset(
    """
    base_repr binary_repr geterr geterrcall get_include get_printoptions getbufsize info isdtype
    isfortran isscalar issubdtype iterable mintypecode printoptions promote_types set_printoptions
    setbufsize can_cast common_type min_scalar_type result_type seterr seterrcall show_config
    show_runtime test typename frompyfunc
    busday_count busday_offset datetime_as_string datetime_data is_busday
""".split()
)
"""Functions of NumPy's that do not compute with arrays that a device holds: they are NumPy's
own."""

_FUNCTIONS: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    type(np.concatenate),  # NumPy's dispatchers
)


class _Concatenator:
    """``r_`` and ``c_``: NumPy's index tricks, whose result is an array of clfuse's."""

    def __init__(self, trick: Any, name: str) -> None:
        self._trick = trick
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return NATIVE[np.bmat](key)  # of names that the caller sees
        return host_call(self._trick.__getitem__, (key,), {}, name=self._name)

    def __len__(self) -> int:
        return 0


class vectorize(np.vectorize):
    """`numpy.vectorize`: a Python function on every element, on the host."""

    __module__ = "clfuse"  # type: ignore[assignment]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return host_call(super().__call__, args, kwargs, name="vectorize")


def _submodule(name: str) -> Submodule:
    """NumPy's submodule with its functions replaced by ours, or run on the host."""
    return Submodule(name, functools.partial(_contents, name), is_package=True)


def _contents(name: str) -> dict[str, Any]:
    module = importlib.import_module(f"numpy.{name}")
    found: dict[str, Any] = {"__doc__": module.__doc__}
    for attribute in dir(module):
        path = f"{name}.{attribute}"
        if attribute.startswith("_") or attribute == "test":
            continue
        found[attribute] = SUBMODULES.get(path) or _ours(getattr(module, attribute), path)
    return found


def _random() -> dict[str, Any]:
    from .functions.random.module import contents  # and NumPy's, which takes long

    return contents() | {"mtrand": UNDOCUMENTED["random.mtrand"]}


def _mtrand() -> dict[str, Any]:
    from .functions.random.module import contents_of_mtrand

    return contents_of_mtrand(vars(SUBMODULES["random"]))


def _testing() -> dict[str, Any]:
    from .functions.testing import contents

    return contents()


def _mixins() -> dict[str, Any]:
    return _contents("lib.mixins") | {"NDArrayOperatorsMixin": Mixin}


def _unique(*args: Any, **kwargs: Any) -> Any:
    if len(args) < 5 and kwargs.get("axis") is None:
        return NotImplemented
    from .functions.sorting.sets import unique_rows  # seldom used: the import is to be short

    return unique_rows(*args, **kwargs)


def _unique_hash(array: Any, **kwargs: Any) -> Any:
    if array.dtype.kind != "c":
        return NotImplemented
    from .functions.sorting.sets import unique_numbers

    return unique_numbers(array, **kwargs)


def _of_lane(reference: Any, array: Any) -> Any:
    from .functions.sorting.order_statistics import of_lane

    return of_lane(reference, array)


rebound.INSTEAD.update({np.unique: _unique, "_unique_hash": _unique_hash, "_of_lane": _of_lane})


def _ours(found: Any, name: str) -> Any:
    if isinstance(found, np.ufunc):
        known = BY_NUMPY.get(found)
        return found if known is None else shown(known, found, name)
    if isinstance(found, _FUNCTIONS):
        known = NATIVE.get(found)
        return shown(make_hosted(found, name) if known is None else known, found, name)
    return found


SUBMODULES: Final[dict[str, types.ModuleType]] = {
    "linalg": _submodule("linalg"),
    "fft": _submodule("fft"),
    "random": Submodule("random", _random),
    "testing": Submodule("testing", _testing, is_package=True),
    "lib": _submodule("lib"),
    "lib.stride_tricks": _submodule("lib.stride_tricks"),
    "lib.mixins": Submodule("lib.mixins", _mixins, is_package=True),
}
"""Modules of ours below `clfuse`, by their paths."""

UNDOCUMENTED: Final[dict[str, types.ModuleType]] = {
    "random.mtrand": Submodule("random.mtrand", _mtrand),
}
"""Others, which NumPy has and names nowhere."""

_OWN: Final[dict[str, Any]] = {
    **({"__array_namespace_info__": __array_namespace_info__} if HAS_INFO else {}),
    "ndarray": ndarray,
    "ufunc": ufunc,
    "mgrid": mgrid,
    "ogrid": ogrid,
    "errstate": errstate,
    "load": shown(load, np.load, "load"),
    "seterr": shown(seterr, np.seterr, "seterr"),
    "r_": _Concatenator(np.r_, "r_"),
    "c_": _Concatenator(np.c_, "c_"),
    "vectorize": vectorize,
    "nditer": nditer,
    "nested_iters": nested_iters,
    **SUBMODULES,
}


def register_submodules() -> None:
    """Make ``import clfuse.linalg`` and its like find the modules above."""
    for name, module in (SUBMODULES | UNDOCUMENTED).items():
        sys.modules[f"clfuse.{name}"] = module
    sys.meta_path.insert(0, NumPysModules())
    opening.install()


def lookup(name: str) -> Any:
    """The object that ``clfuse.<name>`` is.

    Raises
    ------
    AttributeError
        When NumPy has no such name either.
    """
    own = _OWN.get(name)
    if own is not None:
        return own
    try:
        found = getattr(np, name)
    except AttributeError as error:
        raise AttributeError(
            f"module 'clfuse' has no attribute {name!r}: {error}",
            name=name, obj=sys.modules["clfuse"],
        ) from None  # fmt: skip
    return found if name in PLAIN else _ours(found, name)


def at_hand() -> dict[str, Any]:
    """Public name -> object, for all that ``vars(numpy)`` holds, which takes 0.5 ms: packages that
    wrap NumPy (autograd) take its functions from there."""
    return {name: lookup(name) for name in tuple(vars(np)) if name[0] != "_"}


def exported() -> list[str]:
    """What ``from numpy import *`` gives: it leaves names of Python's builtins alone."""
    return list(np.__all__)


def names() -> list[str]:
    """Public names of NumPy's main namespace."""
    return [name for name in dir(np) if not name.startswith("_")]


@functools.cache
def coverage() -> dict[str, str]:
    """Public callable of NumPy's main namespace -> native, library (NumPy, at once, without copies
    where memory is shared), files (read and written by NumPy), host, or numpy (nothing to
    compute)."""
    found = {}
    for name in sorted(np.__all__):  # not what others have put there, as numexpr does
        reference = getattr(np, name)
        if inspect.ismodule(reference) or not callable(reference):
            continue
        if reference in BY_NUMPY:
            found[name] = "native"
        elif reference in FILES:
            found[name] = "files"
        elif name in PLAIN or inspect.isclass(reference):
            found[name] = "native" if name == "ndarray" else "numpy"
        else:
            is_native = reference in NATIVE and reference not in AT_CALL
            found[name] = "native" if is_native else "host"
            if reference in AT_CALL:
                found[name] = "library"
    return found

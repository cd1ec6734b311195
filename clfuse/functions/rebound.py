"""NumPy's functions that are written in Python, run with our functions in their globals.

Much of NumPy is composed of other NumPy functions: `cov` is a mean, a difference and a product of
matrices. Such a function is taken as it is installed, and its code gets a copy of its module's
globals in which every ufunc, every function that we have (`registry.NATIVE`) and the array class
are ours. Signature, defaults, errors and results are NumPy's own by construction, of whatever
version. The operations that the code records are planned together with everything around them.

Functions of the same module that it calls are treated alike. Other functions that we do not have
run on the host, counted as usual.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import numpy as np
from numpy.lib import _arraysetops_impl as sets
from numpy.lib.array_utils import normalize_axis_index

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, contains_handles, is_subclass
from clfuse.arrays.errstate import errstate
from clfuse.arrays.handle import Handle, downcasts, lacks_fp64, native_dtype
from clfuse.arrays.numpy_calls import is_attempt
from clfuse.dispatch.host_call import dispatch_to, host_call, make_hosted, shares_memory
from clfuse.dispatch.library_steps import has_sorts
from clfuse.dispatch.overrides import wraps_results
from clfuse.dispatch.registry import BY_NUMPY, NATIVE, OTHERWISE
from clfuse.eager import before, settled
from clfuse.errors import OutsideWarnings
from clfuse.process import locks
from clfuse.user_frames import passed_over

BORROWED: Final = (
    # statistics
    np.cov, np.corrcoef, np.median, np.percentile, np.quantile, np.nanargmax, np.nanargmin,
    np.histogram_bin_edges, np.histogram2d, np.histogramdd,
    # sets
    np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values,
    np.sort_complex, np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin,
    # polynomials
    np.poly, np.polyadd, np.polyder, np.polydiv, np.polyfit, np.polyint, np.polymul, np.polysub,
    np.polyval, np.roots,
    # windows and signals
    np.bartlett, np.blackman, np.hamming, np.hanning, np.kaiser, np.i0, np.unwrap,
    # indices
    np.diag_indices, np.diag_indices_from, np.mask_indices, np.tril_indices, np.tril_indices_from,
    np.triu_indices, np.triu_indices_from,
    # parts of arrays
    np.block, np.delete, np.insert, np.piecewise, np.trim_zeros, np.apply_over_axes,
    np.asarray_chkfinite, np.real_if_close,
    *([np.row_stack] if hasattr(np, "row_stack") else []),
)  # fmt: skip
"""In NumPy's documentation's order of topics."""


class _Module:
    """One of NumPy's modules as rebound code sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = ours(getattr(self._module, name))
        return found


_modules: dict[types.ModuleType, _Module] = {}
_globals: dict[str, dict[str, Any]] = {}

_FUNCTIONS: Final = (types.BuiltinFunctionType, type(np.concatenate))


def ours(value: Any) -> Any:
    """What rebound code finds where NumPy's code finds `value`."""
    if isinstance(value, types.ModuleType):
        if not _is_numpys(value.__name__):
            return _REPLACED.get(value, value)
        return _modules.setdefault(value, _Module(value))
    if type(value) is dict:  # tables of functions, such as that of the methods of quantiles
        return {key: ours(entry) for key, entry in value.items()}
    if value is np.ndarray:
        return handles.ARRAY
    if isinstance(value, np.ufunc):
        return BY_NUMPY.get(value, value)
    if isinstance(value, Hashable) and value in _REPLACED:
        return _REPLACED[value]
    if isinstance(value, _FUNCTIONS):
        if not _is_numpys(getattr(value, "__module__", None) or ""):
            return value
        # Compiled functions have a name of their own below some dispatchers (concatenate).
        known = NATIVE.get(value) or NATIVE.get(getattr(np, value.__name__, None))
        if known is not None:
            return known
        written = getattr(value, "__wrapped__", None)
        if value.__name__[0] == "_" and isinstance(written, types.FunctionType):
            return rehomed(written)
        return make_hosted(value, value.__name__)
    if isinstance(value, types.FunctionType) and _is_numpys(value.__globals__["__name__"]):
        return NATIVE.get(value) or rehomed(value)
    return value


def _is_numpys(name: str) -> bool:
    return name == "numpy" or name.startswith("numpy.")


_making = locks.make()
"""Held while functions are made: until the first one is complete, those that it needs are not."""

_made: dict[types.FunctionType, types.FunctionType] = {}
_unfinished: list[types.FunctionType] = []
_ready: dict[types.FunctionType, types.FunctionType] = {}
"""Those whose globals are complete, and those of all functions that they call."""


def rehomed(function: types.FunctionType) -> types.FunctionType:
    """A function of NumPy's with the same code, which finds our functions by NumPy's names."""
    found = _ready.get(function)
    if found is not None:
        return found
    with _making:
        is_outermost = not _unfinished
        found = _made.get(function)
        if found is None:
            _unfinished.append(function)
            try:
                found = _rehomed(function)
            finally:
                _unfinished.pop()
            _made[function] = found
        if is_outermost:
            _ready.update(_made)
        return found


def _rehomed(function: types.FunctionType) -> types.FunctionType:
    made = types.FunctionType(
        function.__code__,
        _globals_for(function),
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _globals_for(function: types.FunctionType) -> dict[str, Any]:
    # Not `__module__`: that is where NumPy shows a function to its users.
    name = function.__globals__["__name__"]
    found = _globals.get(name)
    if found is None:
        # Known before it is complete: functions of one module call each other.
        found = _globals[name] = {}
        for name, value in list(function.__globals__.items()):
            found[name] = value if name == "__builtins__" else ours(value)
    return found


# -- what NumPy's code takes from its compiled parts ----------------------------------------------


INSTEAD: Final[dict[Any, Callable[..., Any]]] = {}
"""NumPy's function, or the name of one that it calls -> ours, which is asked before NumPy's code.
It may say NotImplemented, or raise NotNative where the host has to do the work."""


def _no_hash_table(*args: Any, **kwargs: Any) -> Any:
    """`numpy.unique` then sorts."""
    return INSTEAD["_unique_hash"](*args, **kwargs)


def _any(a: Any, *args: Any, **kwargs: Any) -> Any:
    """`numpy.quantile` asks whether None is true: of integers nothing can be NaN."""
    return False if a is None else NATIVE[np.any](a, *args, **kwargs)


class _ArrayConverter:
    """NumPy's ``_array_converter``, whose own would bring the elements to the host: arrays of ours
    stay as they are, others become ours."""

    def __init__(self, *values: Any) -> None:
        as_array = NATIVE[np.asanyarray]
        self._arrays = tuple([as_array(value) for value in values])

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, place: int) -> Any:
        return self._arrays[place]

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert") -> tuple[Any, ...]:
        """The arrays; there are no subclasses among them."""
        return self._arrays

    def wrap(self, value: Any, *, to_scalar: bool | None = None) -> Any:
        """A result of the class of what was given."""
        return value


def _is_of_nans(frame: types.FrameType) -> bool:
    return bool(frame.f_globals["__name__"] == "numpy.lib._nanfunctions_impl")


class _Warnings(OutsideWarnings):
    """Stands for Python's module in NumPy's code. It ends an eager attempt
    (`arrays.numpy_calls`) that would warn, as a floating-point error does; the call that follows
    warns. It lets pass what is said of slices without a number, of which kernels do not warn."""

    @staticmethod
    def warn(
        message: Any,
        category: type[Warning] | None = None,
        stacklevel: int = 1,
        source: Any = None,
        *,
        skip_file_prefixes: tuple[str, ...] = (),
    ) -> None:
        """`warnings.warn`."""
        if category is RuntimeWarning and is_attempt() and not _is_of_nans(sys._getframe(1)):
            raise FloatingPointError(message)
        OutsideWarnings.warn(
            message, category, stacklevel + 1, source, skip_file_prefixes=skip_file_prefixes
        )


def _replaced() -> Mapping[Any, Any]:
    found: dict[Any, Any] = {
        normalize_axis_index: normalize_axis_index, np.any: _any, np.errstate: errstate,
        warnings: _Warnings(),
    }  # fmt: skip
    if hasattr(sets, "_unique_hash"):
        found[sets._unique_hash] = _no_hash_table
    if hasattr(sets, "_array_converter"):
        found[sets._array_converter] = _ArrayConverter
    return found


_REPLACED: Final[Mapping[Any, Any]] = _replaced()


WARNING: Final = (
    "_core._methods", "_core.fromnumeric", "_core.function_base", "_core.numeric",
    "lib._arraysetops_impl", "lib._function_base_impl", "lib._histograms_impl",
    "lib._nanfunctions_impl", "lib._npyio_impl", "lib._polynomial_impl", "lib._shape_base_impl",
    "lib._twodim_base_impl", "lib._type_check_impl", "lib._ufunclike_impl", "linalg._linalg",
    "fft._pocketfft",
)  # fmt: skip
"""NumPy's modules whose functions warn their caller, with a frame of this module between."""


def _name_the_users_line() -> None:
    """Let NumPy's functions take no frame of clfuse's for their caller's, when they warn."""
    for name in WARNING:
        module = sys.modules.get(f"numpy.{name}")
        if getattr(module, "warnings", None) is warnings:
            module.warnings = _REPLACED[warnings]  # type: ignore[union-attr]


_name_the_users_line()


# -- marking --------------------------------------------------------------------------------------


def _needs_host(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Why a call is nothing for the device; empty if it is."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, np.poly1d) or is_subclass(type(value)) or wraps_results(value):
            return f"of {type(value).__name__}"
        if isinstance(value, np.ndarray) and native_dtype(value.dtype) is None:
            return f"of {value.dtype}"
    return ""


def borrow(reference: Any, *, library: Callable[..., bool] | None = None) -> None:
    """Let NumPy's own code answer for `reference`, with our functions in it.

    `library` tells the calls (by their arguments) that NumPy makes at once, on mapped memory.
    """

    @functools.wraps(reference)
    def call(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if not isinstance(value, Handle | np.ndarray) and hasattr(value, "__array_function__"):
                return dispatch_to(NATIVE[reference], value, args, kwargs)
        if reference in _ITERATING and not _is_iterable(*args, **kwargs):
            return host_call(reference, args, kwargs, "of no sequence")
        reason = _needs_host(args, kwargs)
        if reference in _IN_DOUBLE and not reason and lacks_fp64() and not downcasts():
            reason = "in double precision, which the device has not"
        at_once = library is not None and library(*args, **kwargs)
        if reason or at_once:
            ours = _with_ranks(reference, args, kwargs) if at_once else reference
            name = reference.__name__
            return host_call(ours, args, kwargs, reason, name, library=at_once)
        if reference in INSTEAD:
            try:
                made = INSTEAD[reference](*args, **kwargs)
            except NotNative as missing:
                return host_call(reference, args, kwargs, str(missing), library=True)
            if made is not NotImplemented:
                return made
        # At the first call all of our functions are known.
        return rehomed(getattr(reference, "__wrapped__", reference))(*args, **kwargs)

    NATIVE[reference] = before(reference, settled(reference, call))


_IN_DOUBLE: Final = frozenset((np.percentile, np.quantile))
"""What calculates in double precision, whatever it is of; results may be of single precision."""

_ITERATING: Final = frozenset((np.poly, np.roots))
"""What NumPy's dispatcher iterates over, before the function sees it: TypeError of a number."""


def _is_iterable(*args: Any, **kwargs: Any) -> bool:
    return all(map(np.iterable, (*args, *kwargs.values())))


def for_ours(function: types.FunctionType) -> Callable[..., Any]:
    """`function`, written in Python like all of its module: a call with an array of ours in it runs
    its code with our functions, any other is left alone."""

    @functools.wraps(function)
    @passed_over
    def call(*args: Any, **kwargs: Any) -> Any:
        if contains_handles((*args, *kwargs.values())):
            return rehomed(function)(*args, **kwargs)
        return function(*args, **kwargs)

    return call


_SETS: Final = frozenset(
    (
        np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values,
        np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin,
    )
)  # fmt: skip


def _is_no_order(*args: Any, **kwargs: Any) -> bool:
    """Whether a set is of rows, which NumPy compares as structures, or of complex numbers, which
    it keeps in a table: it is NumPy's where no kernels sort by several keys."""
    if has_sorts():
        return False
    if kwargs.get("axis") is not None or (len(args) > 4 and args[4] is not None):
        return True
    dtypes = [getattr(value, "dtype", None) for value in args]  # pandas has some of its own
    return any(getattr(dtype, "kind", None) == "c" for dtype in dtypes)


_ORDER_STATISTICS: Final = frozenset((np.median, np.percentile, np.quantile))

LEAST_RANKED: Final = 1 << 19
"""Elements of a lane from which on NumPy takes longer to partition them than small kernels take."""

FEW_IN_LANES: Final = 1 << 17
"""Elements of several lanes that NumPy partitions while the steps of its code, recorded one by one,
wait for each other: five waits take a millisecond on PoCL, in which two cores partition so many."""


def _waits_in_vain(
    a: Any,
    *args: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    weights: Any = None,
    **kwargs: Any,
) -> bool:
    """Whether an order statistic, of which every step waits for the one before, is NumPy's from the
    start: of one lane, which one core partitions in any case, or of few elements."""
    if type(a) is not handles.ARRAY or a._dtype.kind == "c":
        return False
    if out is not None or overwrite_input or weights is not None or not shares_memory():
        return False
    size = math.prod(a._shape)
    return size <= FEW_IN_LANES or axis is None or len(a._shape) == 1


def _with_ranks(reference: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """NumPy's function, or the same that finds the elements it needs by kernels: of one lane that
    is long, and given by place."""
    if reference not in _ORDER_STATISTICS or not args or type(args[0]) is not handles.ARRAY:
        return reference
    array = args[0]
    if array._dtype.kind not in "iuf" or math.prod(array._shape) < LEAST_RANKED:
        return reference
    # Of several axes all are one lane, if no result is to have as many.
    is_plain = len(args) <= 1 + (reference is not np.median) and "keepdims" not in kwargs
    if len(array._shape) != 1 and not (is_plain and kwargs.get("axis") is None):
        return reference
    return functools.wraps(reference)(INSTEAD["_of_lane"](reference, array))


def _order_statistic(reference: Any) -> Callable[..., bool]:
    """The same of a call as it comes: what is given by place has a name."""
    signature = inspect.signature(reference)

    def waits_in_vain(*args: Any, **kwargs: Any) -> bool:
        try:
            named = signature.bind(*args, **kwargs).arguments
        except TypeError:  # NumPy's code has the error
            return False
        return _waits_in_vain(**named)

    return waits_in_vain


COMPLETED: Final = (np.average, np.histogram, np.nan_to_num, np.pad)
"""Ours is faster where it can do what is asked for; the rest is rebound."""


def _complete(reference: Any) -> None:
    def call(*args: Any, **kwargs: Any) -> Any:
        reason = _needs_host(args, kwargs)
        if reason:
            return host_call(reference, args, kwargs, reason)
        return rehomed(reference.__wrapped__)(*args, **kwargs)

    OTHERWISE[reference] = call


for _reference in COMPLETED:
    _complete(_reference)
for _borrowed in BORROWED:
    if _borrowed in _ORDER_STATISTICS:
        borrow(_borrowed, library=_order_statistic(_borrowed))
    else:
        borrow(_borrowed, library=_is_no_order if _borrowed in _SETS else None)

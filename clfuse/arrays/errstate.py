"""Floating-point errors: `errstate`, `seterr`, and how their mode changes what is recorded.

NumPy warns of a division by zero, or raises, when the division happens. Here it happens later, in a
kernel. A kernel has no floating-point flags, and instructions that find such errors would cost
every kernel. So the mode in force when a ufunc, a cast, a reduction, a scan or a product is called
decides:

- *strict* (a kind of error is to ``raise``, ``call``, ``print`` or ``log``): NumPy computes what
  may err, at the call, on the device's memory. Exception, name and moment are NumPy's.
- *loud* (NumPy's default, ``warn``): the operation is recorded. Where NumPy computes it after all
  (small programs in `interpreter.interpret`, and library calls), it warns when the value is
  observed. Kernels do not warn.
- *quiet* (``ignore``): the operation is recorded, and nothing warns.

Operators read their loops from `ufunc.loops` and from nowhere else. A change of the mode fills
these tables again: with `ir.nodes.loud` operations, with plain ones, or with none. So a program
that never changes the mode pays nothing.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np

from clfuse.ir.nodes import Node, Op, loud
from clfuse.process import locks

_Function = TypeVar("_Function", bound=Callable[..., Any])

LOUD: Final = "loud"
QUIET: Final = "quiet"
STRICT: Final = "strict"

CHECKED: Final = "floating-point errors are not only warned of: see numpy.errstate"
"""Why NumPy calculates in the strict mode."""

CALCULATING: Final = frozenset(
    (
        np.sum, np.prod, np.mean, np.var, np.std, np.average, np.cumsum, np.cumprod, np.nansum,
        np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.dot, np.vdot, np.inner, np.outer,
        np.tensordot, np.einsum, np.linalg.norm, np.trapezoid, np.interp, np.gradient, np.ptp,
        np.linspace, np.geomspace, np.logspace, np.convolve, np.correlate, np.diff, np.around,
        np.linalg.matmul, np.linalg.vector_norm, np.linalg.matrix_norm, np.nancumsum,
        np.nancumprod, np.kron, np.cross, np.linalg.det,
        np.linalg.slogdet, np.linalg.multi_dot, np.linalg.matrix_power, np.linalg.vecdot,
        np.linalg.tensordot, np.linalg.outer, np.linalg.cross, np.cov, np.corrcoef, np.polyval,
        *[getattr(np.fft, name) for name in np.fft.__all__ if "fft" in name[-4:]],
        *[getattr(np, name) for name in ("cumulative_sum", "cumulative_prod") if hasattr(np, name)],
    )
)  # fmt: skip
"""Functions that are no ufuncs, and that NumPy makes in the strict mode too."""

_KINDS: Final = ("divide", "over", "invalid")
_HANDLED: Final = frozenset(("raise", "call", "print", "log"))

mode: Final = [LOUD]
"""What is in force: strict if it is for one of the threads, else quiet if it is for one of them."""

_of_threads: Final[dict[int, str]] = {}
_lock: Final = locks.make()

changed: Final[list[Callable[[], None]]] = []
"""Functions that are called after `mode` has changed."""

_minding: Final[set[int]] = set()
"""Threads in which underflow is not ignored, as it usually is."""

underflow_minded: Final[list[Callable[[bool], None]]] = []
"""Functions that are told when the first of them begins, or the last one ends."""


def apply_errstate(node: Node, called: str) -> Node:
    """`node`, which has just been made, as what the user has called by that name, if by any: it
    warns of floating-point errors, where the mode in force says so."""
    if called and mode[0] is LOUD:
        node.op = loud(node.op.plain, called)
    return node


def _asked() -> str:
    """The mode that NumPy's state of this thread asks for."""
    modes = np.geterr()
    if not _HANDLED.isdisjoint(modes.values()):
        return STRICT
    return QUIET if any(modes[kind] == "ignore" for kind in _KINDS) else LOUD


def _asks_for_underflow() -> bool:
    return np.geterr()["under"] != "ignore"


def _put(own: str, *, minds_underflow: bool) -> None:
    """Let this thread have a mode."""
    with _lock:
        before = bool(_minding)
        (_minding.add if minds_underflow else _minding.discard)(threading.get_ident())
        if before != bool(_minding):
            for told in underflow_minded:
                told(not before)
        if own == LOUD:
            _of_threads.pop(threading.get_ident(), None)
        else:
            _of_threads[threading.get_ident()] = own
        now = set(_of_threads.values())
        found = STRICT if STRICT in now else QUIET if QUIET in now else LOUD
        if found != mode[0]:
            mode[0] = found
            for function in changed:
                function()


class errstate(np.errstate):
    """`numpy.errstate`: what happens on floating-point errors, inside a ``with`` block.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.errstate(divide="raise"):
    ...     np.ones(3) / np.zeros(3)
    Traceback (most recent call last):
    FloatingPointError: divide by zero encountered in divide
    """

    __module__ = "clfuse"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._options = options

    def __enter__(self) -> None:
        super().__enter__()
        self._before = _of_threads.get(threading.get_ident(), LOUD)
        self._minded = threading.get_ident() in _minding
        _put(_asked(), minds_underflow=_asks_for_underflow())

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        # Not what NumPy's state asks for now: a block of `numpy.errstate` around this is not seen.
        _put(self._before, minds_underflow=self._minded)

    def __call__(self, function: _Function) -> _Function:
        options = self._options

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with errstate(**options):
                return function(*args, **kwargs)

        return cast("_Function", call)


def seterr(*args: Any, **kwargs: Any) -> Any:
    """`numpy.seterr`: what happens on floating-point errors from here on; what happened before."""
    before = np.seterr(*args, **kwargs)
    _put(_asked(), minds_underflow=_asks_for_underflow())
    return before


_DIVISIONS: Final = frozenset(("floor_divide", "remainder", "fmod", "power", "reciprocal"))


def may_err(op: Op) -> bool:
    """Whether NumPy may find a floating-point error (or a division of integers by zero)."""
    return op.input_dtypes[0].kind in "fc" or op.dtype.kind in "fc" or op.name in _DIVISIONS  # type: ignore[union-attr]


def casts_may_err(keys: tuple[Any, ...], wanted: tuple[np.dtype, ...]) -> bool:
    """The same of the casts of operands (dtypes, or Python types), which only an asked-for dtype
    makes narrower."""
    return any(
        isinstance(key, np.dtype) and key.kind in "fc" and key is not dtype
        for key, dtype in zip(keys, wanted, strict=True)
    )

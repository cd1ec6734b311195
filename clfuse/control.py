"""The names beyond NumPy's: evaluate, synchronize, stats, explain, profile, and devices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from . import counters
from ._core import loading
from .arrays.conversion import as_handle
from .arrays.handle import Handle, node_of
from .config import changed, override, settings
from .engine.evaluate import evaluate_all, evaluate_nodes
from .ir import nodes, trace
from .runtime.devices import selection

if TYPE_CHECKING:
    from .engine.explain import Plan
    from .runtime.devices.device import Device


def _follow_debug_level() -> None:
    """Have plans and launches printed, where the setting says so; no module is imported before."""
    level = settings.debug_level if vars(settings) else 0
    if level > 1 or "clfuse.engine.debug_output" in sys.modules:
        from .engine import debug_output

        debug_output.follow_level(level)


changed.append(_follow_debug_level)
_follow_debug_level()


def _handles(arrays: Iterable[Any]) -> list[Handle]:
    """The arrays of ours among the arguments, also inside lists and tuples."""
    found: list[Handle] = []
    for item in arrays:
        if isinstance(item, Handle):
            found.append(item)
        elif isinstance(item, list | tuple):
            found += _handles(item)
    return found


def evaluate(*arrays: Any, wait: bool = True, build: bool = False) -> None:
    """Compute these arrays now; without arguments, everything that was recorded and is still held.

    Parameters
    ----------
    *arrays : ndarray
        What is not an array of clfuse's is ignored: it has a value already.
    wait : bool
        Whether to wait for the device; False only enqueues.
    build : bool
        Whether to wait for kernels that are not built yet; False leaves it to NumPy until they are
        worth it, and while they are built. What is too small for kernels is NumPy's in any case.

    Examples
    --------
    >>> import clfuse as np
    >>> x = np.arange(4) * 2
    >>> np.evaluate(x)
    """
    if trace.active() is not None:
        return  # a function that is traced: its replay computes everything at once
    if build:
        with override(build_after_ms=0):
            evaluate(*arrays, wait=wait)
    elif not arrays:
        evaluate_all(wait=wait)
    else:
        evaluate_nodes([handle._storage.node for handle in _handles(arrays)], wait=wait)


def synchronize() -> None:
    """Wait until the current device has done everything that was enqueued.

    Examples
    --------
    >>> import clfuse as np
    >>> x = np.arange(1000.0)
    >>> np.evaluate(np.sin(x), wait=False)
    >>> np.synchronize()
    """
    selection.current_device().finish()


def stats() -> dict[str, int]:
    """Counters since the start: kernels, programs, plans, fallbacks, bytes, nodes.

    Returns
    -------
    dict
        A copy: later work does not change it.

    Examples
    --------
    >>> import clfuse as np
    >>> before = np.stats()["jit_replays"]
    >>> twice = np.jit(lambda x: 2 * x)
    >>> for _ in range(3):
    ...     y = twice(np.arange(3))
    >>> np.stats()["jit_replays"] - before
    2
    """
    found = counters.snapshot()
    found["nodes_recorded"] += nodes.recorded_count()
    return found


def explain(*arrays: Any) -> Plan:
    """What would run to compute these arrays, and why it is not fused further; nothing runs.

    Parameters
    ----------
    *arrays : ndarray

    Returns
    -------
    Plan
        `.kernels` with name, kind, source, reads, writes, nbytes and ops; `.cuts` with reasons. It
        prints as a table.

    Examples
    --------
    >>> import clfuse as np
    >>> x = np.linspace(0, 1, 1_000_000)
    >>> plan = np.explain(np.sqrt(x * x + 1))
    >>> [kernel.ops[-1] for kernel in plan.kernels]
    ['sqrt']
    """
    from .engine.explain import explain_nodes

    return explain_nodes([node_of(as_handle(item)) for item in arrays])


def profile() -> AbstractContextManager[Any]:
    """Time every kernel of a ``with`` block; see `clfuse.engine.profile.Profile`.

    Examples
    --------
    >>> import clfuse as np
    >>> x = np.linspace(0, 1, 1_000_000)
    >>> with np.profile() as measured:
    ...     np.evaluate(np.sqrt(x), build=True)
    >>> len(measured.kernels)
    1
    """
    from .engine.profile import profile as measured

    return measured()


def devices() -> list[Device]:
    """All usable devices, as ``python -m clfuse devices`` lists them.

    Returns
    -------
    list of Device
        Each with `name`, `index` and `traits`; `set_device` and `device` take them.

    Examples
    --------
    >>> import clfuse as np
    >>> np.get_device() in np.devices()
    True
    """
    return selection.devices()


def get_device() -> Device:
    """The device that new work goes to: that of a ``with`` block, of `set_device`, of
    ``CLFUSE_DEVICE``, or the best one.

    Returns
    -------
    Device

    Examples
    --------
    >>> import clfuse as np
    >>> first = np.devices()[0]
    >>> with np.device(first):
    ...     np.get_device() is first
    True
    """
    return selection.get_device()


def set_device(spec: Any) -> Device:
    """Send new work of all threads to another device.

    Parameters
    ----------
    spec : str or Device or None
        ``cpu``, ``gpu``, part of a platform's or device's name, ``0``, ``0:1``, ``nvidia:1``; None
        goes back to what CLFUSE_DEVICE says.

    Examples
    --------
    >>> import clfuse as np
    >>> _ = np.set_device("cpu")
    >>> _ = np.set_device(None)
    """
    return selection.set_device(spec)


def device(spec: Any) -> AbstractContextManager[Device]:
    """Send the work of a ``with`` block to another device, in this thread alone.

    Parameters
    ----------
    spec : str or Device
        As in `set_device`.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.device("cpu"):
    ...     x = np.arange(3)
    """
    return selection.device(spec)


_core: Final = loading.load()
if _core is not None:
    evaluate = functools.update_wrapper(_core.evaluating_arrays(evaluate, evaluate_nodes), evaluate)
    synchronize = functools.update_wrapper(_core.synchronizing(synchronize), synchronize)

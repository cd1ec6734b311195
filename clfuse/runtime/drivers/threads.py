"""Library calls on several cores of the host: independent rows, and both sides of a partition.

NumPy lets go of the interpreter's lock while it sorts, copies and transforms, and uses one core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse.process import forks

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["copy", "in_parts", "prepare", "sort", "worker_count"]

Array = Any

#: From this many bytes on a part is worth a thread: waking one takes 50 us, in which a core copies
#: half a megabyte and sorts 10,000 numbers.
PART_NBYTES: Final = 1 << 18

#: A vector of this many elements is partitioned and its sides sorted side by side: for 2 million
#: float32 (two cores, ms) 9.1 become 6.5, for 100,000 both take 0.3.
LEAST_SPLIT: Final = 1 << 19


@cache
def worker_count() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


@cache
def prepare() -> type[ThreadPoolExecutor] | None:
    """What runs threads; None where the interpreter has begun to end, and no thread may be begun.

    Its module has functions called before and after a fork, as `logging` has, which pyopencl
    imports: if what is computed or waited for just before a fork imported them, only the second
    would be called.
    """
    try:
        import logging  # noqa: F401
        from concurrent.futures import ThreadPoolExecutor
    except RuntimeError:
        return None
    forks.go_first()
    return ThreadPoolExecutor


@cache
def _workers() -> ThreadPoolExecutor | None:
    made = prepare()
    return None if made is None else made(worker_count(), "clfuse")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads, and would wait for them.
    os.register_at_fork(after_in_child=_workers.cache_clear)


def _together(calls: Sequence[Callable[[], Any]]) -> None:
    """Make these calls at the same time, the last one in this thread, with its state of
    floating-point errors; raises what one of them raises.

    What no worker has begun when this thread is done, it makes by itself. So nobody waits for a
    call that waits for a worker: all of them may be in calls that wait, too.
    """
    workers = _workers()
    futures: list[tuple[Future[Any], Callable[[], Any]]] = []
    for call in calls[:-1]:
        try:
            if workers is not None:
                futures.append((workers.submit(copy_context().run, call), call))
                continue
        except RuntimeError:  # the interpreter ends
            pass
        call()
    try:
        calls[-1]()
    finally:
        for future, call in futures:
            if future.cancel():
                call()
            else:
                future.result()


def in_parts(
    change: Callable[..., Any], arrays: Sequence[Array], axes: Iterable[int], nbytes: int
) -> None:
    """Call `change` on `arrays`, or on equal parts of all of them at the same time.

    change: takes one array for each of `arrays`; computes elements apart along all axes but `axes`.
    arrays: alike along the axes of the first one that are not in `axes`.
    axes: axes of the first one, along which nothing may be cut.
    nbytes: how much work it is.
    """
    parts = min(worker_count(), nbytes // PART_NBYTES)
    shape = arrays[0].shape
    kept = {axis % len(shape) for axis in axes} if shape else set()
    free = [axis for axis in range(len(shape)) if axis not in kept and shape[axis] >= parts]
    if parts < 2 or not free:
        change(*arrays)
        return
    axis = free[0]  # the slowest: parts lie side by side in memory
    starts = [shape[axis] * part // parts for part in range(parts + 1)]
    before = (slice(None),) * axis

    def call(part: int) -> Callable[[], Any]:
        cut = (*before, slice(starts[part], starts[part + 1]))
        pieces = [array[cut] for array in arrays]
        return lambda: change(*pieces)

    _together([call(part) for part in range(parts)])


def copy(target: Array, source: Array) -> None:
    """``numpy.copyto`` of arrays of one shape."""
    if source.shape != target.shape:
        np.copyto(target, source)
        return
    in_parts(np.copyto, (target, source), (), target.nbytes)


def sort(array: Array, **how: Any) -> None:
    """Sort an array where it lies, as its method does: equal to what that gives.

    Elements that compare equal, and yet are not the same (0.0 and -0.0), come in an order of their
    own where no stable one is asked for; NumPy's vectorised sorts have theirs.
    """
    axis = how.pop("axis", -1) % array.ndim
    any_order = not how.get("stable") and how.get("kind") in (None, "quicksort")
    if array.dtype.itemsize == 1 and any_order:
        how = {"kind": "stable"}  # NumPy's radix sort: a third of the time, with equal results
    rows = array.size // array.shape[axis]
    if any_order and rows < worker_count() and array.shape[axis] >= LEAST_SPLIT:
        turned = np.moveaxis(array, axis, -1)
        for index in np.ndindex(turned.shape[:-1]):
            _sort_vector(turned[index], how, worker_count())
        return
    in_parts(lambda part: part.sort(axis=axis, **how), [array], [axis], 4 * array.nbytes)


def _sort_vector(vector: Array, how: dict[str, Any], workers: int) -> None:
    """Sort by halves, each at most `workers` cores' work."""
    if workers < 2 or len(vector) < LEAST_SPLIT or vector.dtype.itemsize == 1:
        vector.sort(**how)
        return
    middle = len(vector) // 2
    vector.partition(middle)
    _together(
        [
            lambda: _sort_vector(vector[:middle], how, workers // 2),
            lambda: _sort_vector(vector[middle:], how, workers - workers // 2),
        ]
    )

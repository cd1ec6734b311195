"""Waits for a device: a long one goes in steps, so that an interrupt ends it and a bar is shown.

The driver's own wait (``clFinish``) cannot be ended, and says nothing meanwhile; it is the quickest
for what is short. So what is launched is added up, as the bytes that a CPU would move in the same
time. From `LONG` on the wait asks for the state of a marker behind it, and sleeps in between.

An interrupt ends the wait, not the work: it stays in the queue, and the next wait is for it, too.
A program that launches and never looks would fill the queue without end; who ends it would wait for
all of that. So a plan that is run waits (`keep_up`) until no more than twice `DEEP` lies before it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from clfuse._core import loading

from . import lost

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = [
    "DEEP", "LONG", "add", "finish", "in_steps", "is_deep", "is_long", "keep_up", "reach_at_exit",
    "waited_ns",
]  # fmt: skip

LONG: Final = float(1 << 30)
"""From so much work on a wait goes in steps: a tenth of a second on two cores."""

DEEP: Final = 4 * LONG
"""So much work lies between two markers of a queue; the device is never without, as the next
plan is launched while as much is left."""

LAUNCH_WORK: Final = float(1 << 17)
"""Counted beside its work for each launch: the driver keeps memory and takes 10 us for it."""

STEP_SHARE: Final = 1 / 64
"""The part of the time waited so far that the next step takes: so much later the end is noticed."""

SHORTEST_S: Final = 20e-6

QUICK_S: Final = 2e-3
"""A wait that is known to be shorter is the driver's."""

QUICK_TIMES: Final = 2
"""Waits in a row that were quick, for the next to be so, too. Nobody knows before what a kernel of
OpenCL C takes; a wait in steps takes 20 to 200 us longer than the driver's."""

MOST_KNOWN: Final = 64
"""Amounts of work that are told apart, of one program."""

QUIET_S: Final = 0.5
"""At the end of the interpreter nothing is said before."""

LONGEST_S: Final = 0.05
"""Of a step: so late an interrupt is noticed at most."""

_core: Final = loading.load()
_added: Final = [0.0, 0.0]  # since the last wait, and since the last marker
_waited: Final = [0]  # nanoseconds, where the compiled part does not count them
_markers: Final[dict[int, Any]] = {}
"""Address of a queue -> the last marker that was put into it."""


before_waits: Final[list[Callable[[bool], bool]]] = []
"""Called in the wait after `ask`, again and again as long as one of them says so and what is in the
queue is not done; and with True when it is."""

_asked: Final = [0.0]
"""Work that was added for that."""


def add(work: float) -> None:
    """Note that something was put into a queue, of so much work."""
    if _core is not None:
        _core.add_work(work)
    else:
        _added[0] += work
        _added[1] += work + LAUNCH_WORK


def is_long() -> bool:
    """Whether what was put into queues since the last wait may take long."""
    return (_core.work_added() if _core is not None else _added[0]) >= LONG


def is_deep() -> bool:
    """Whether so much was put into queues that the next plan has to `keep_up`."""
    return (_core.work_unmarked() if _core is not None else _added[1]) >= DEEP


def waited_ns() -> int:
    """How long all waits were that have ended, of all threads, in nanoseconds."""
    return _core.waited_ns() if _core is not None else _waited[0]


def _note_since(start_ns: int) -> None:
    elapsed_ns = perf_counter_ns() - start_ns
    if _core is not None:
        _core.add_waited(elapsed_ns)
    else:
        _waited[0] += elapsed_ns


def keep_up(queue: cl.CommandQueue) -> None:
    """Put a marker into a queue, and wait until the one before it is reached.

    Called where nothing of a plan is launched yet: an interrupt leaves all as it was.
    """
    from clfuse.runtime.drivers import opencl as cl

    last = _markers.get(queue.int_ptr)
    _markers[queue.int_ptr] = cl.enqueue_marker(queue)
    queue.flush()
    if _core is not None:
        _core.forget_unmarked()
    else:
        _added[1] = 0.0
    if last is not None:
        start_ns = perf_counter_ns()
        try:
            _reach(last)
        finally:
            _note_since(start_ns)


def finish(queue: cl.CommandQueue) -> None:
    """Wait until a queue is done; what pyopencl raises is the caller's."""
    start_ns = perf_counter_ns()
    try:
        if is_long():
            in_steps(queue)
        queue.finish()
    finally:
        _note_since(start_ns)
    _markers.pop(queue.int_ptr, None)
    if _core is not None:
        _core.forget_work()
    else:
        _added[:] = 0.0, 0.0


def ask() -> None:
    """Have the next wait call `before_waits`, also where the compiled part waits: it goes in steps,
    as for what takes long."""
    add(LONG)
    _asked[0] += LONG


def _ask_until_done(queue: cl.CommandQueue) -> None:
    from clfuse.runtime.drivers import opencl as cl

    marker = cl.enqueue_marker(queue)
    queue.flush()
    begin = time.monotonic()
    while any([function(False) for function in before_waits]):  # noqa: C419 (each of them)
        if marker.command_execution_status <= cl.command_execution_status.COMPLETE:
            for function in before_waits:
                function(True)
            return
        time.sleep(min(max((time.monotonic() - begin) * STEP_SHARE, SHORTEST_S), LONGEST_S))


def in_steps(queue: cl.CommandQueue) -> None:
    """Wait until a queue is done or something in it has failed, by many short waits; or return at
    once, where the driver's own wait for the same was short (`QUICK_TIMES`)."""
    from clfuse.runtime.drivers import opencl as cl

    work = _core.work_added() if _core is not None else _added[0]
    if _asked[0]:
        work -= _asked[0]
        _asked[0] = 0.0
        _ask_until_done(queue)
        if work < LONG:
            return
    quick = _quick_of(work)
    if quick is not None and quick.get(work, 0) >= QUICK_TIMES:
        return
    begin = time.monotonic()
    marker = cl.enqueue_marker(queue)
    queue.flush()
    _reach(marker)
    if quick is not None:
        is_quick = time.monotonic() - begin < QUICK_S
        quick[work] = quick.get(work, 0) + 1 if is_quick else 0


def _quick_of(work: float) -> dict[float, int] | None:
    """How often in a row waits were quick that had so much work before them, of what was launched
    last; None where that is not known."""
    latest = lost.latest[0]
    if type(latest) is list:
        latest = latest[-1] if latest else None
    found: dict[float, int] | None = getattr(getattr(latest, "program", latest), "quick", None)
    if found is not None and len(found) > MOST_KNOWN and work not in found:
        found.clear()
    return found


def _reach(marker: Any) -> None:
    """Wait until a queue has come to a marker, or something before it has failed."""
    from clfuse.progress import Bar
    from clfuse.runtime.drivers import opencl as cl

    complete = cl.command_execution_status.COMPLETE
    begin = time.monotonic()
    with Bar("waiting for the device") as bar:
        while marker.command_execution_status > complete:
            waited = time.monotonic() - begin
            step = min(max(waited * STEP_SHARE, SHORTEST_S), LONGEST_S)
            time.sleep(step)
            bar.at()


def reach_at_exit(queue: cl.CommandQueue, name: str) -> None:
    """Wait when the interpreter ends: an interrupt ends the process, as nobody can look at the
    results any more, and who has interrupted the program is told what is waited for."""
    import signal

    from clfuse.runtime.drivers import opencl as cl

    marker = cl.enqueue_marker(queue)
    queue.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        end = time.monotonic() + QUIET_S
        while marker.command_execution_status > cl.command_execution_status.COMPLETE:
            if time.monotonic() > end:
                if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
                    text = f"clfuse: {name} still computes what was launched; Ctrl-C ends it"
                    print(text, file=sys.stderr, flush=True)
                _reach(marker)
                return
            time.sleep(SHORTEST_S)
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


if _core is not None:
    _core.connect_long_waits(in_steps, LONG)
    _core.connect_deep_queues(keep_up, DEEP, LAUNCH_WORK)

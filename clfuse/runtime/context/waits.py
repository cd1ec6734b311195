"""Waits for a device: a long one goes in steps, so that an interrupt ends it and a bar is shown.

The driver's own wait (``clFinish``) cannot be ended, and says nothing meanwhile; it is the quickest
for what is short. So what is launched is added up, as the bytes that a CPU would move in the same
time. From `LONG` on the wait asks for the state of a marker behind it, and sleeps in between.

An interrupt ends the wait, not the work: it stays in the queue, and the next wait is for it, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from clfuse._core import loading

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["LONG", "add", "finish", "in_steps", "is_long"]

LONG: Final = float(1 << 30)
"""From so much work on a wait goes in steps: a tenth of a second on two cores."""

STEP_SHARE: Final = 1 / 64
"""The part of the time waited so far that the next step takes: so much later the end is noticed."""

SHORTEST_S: Final = 20e-6

LONGEST_S: Final = 0.05
"""Of a step: so late an interrupt is noticed at most."""

_core: Final = loading.load()
_added: Final = [0.0]


def add(work: float) -> None:
    """Note that something was put into a queue, of so much work."""
    if _core is not None:
        _core.add_work(work)
    else:
        _added[0] += work


def is_long() -> bool:
    """Whether what was put into queues since the last wait may take long."""
    return (_core.work_added() if _core is not None else _added[0]) >= LONG


def finish(queue: cl.CommandQueue) -> None:
    """Wait until a queue is done; what pyopencl raises is the caller's."""
    if is_long():
        in_steps(queue)
    queue.finish()
    if _core is not None:
        _core.forget_work()
    else:
        _added[0] = 0.0


def in_steps(queue: cl.CommandQueue) -> None:
    """Wait until a queue is done or something in it has failed, by many short waits."""
    import pyopencl as cl

    from clfuse.progress import Bar

    marker: Any = cl.enqueue_marker(queue)
    queue.flush()
    complete = cl.command_execution_status.COMPLETE
    begin = time.monotonic()
    with Bar("waiting for the device") as bar:
        while marker.command_execution_status > complete:
            waited = time.monotonic() - begin
            time.sleep(min(max(waited * STEP_SHARE, SHORTEST_S), LONGEST_S))
            bar.at()


if _core is not None:
    _core.connect_long_waits(in_steps, LONG)

"""Auto-flush: evaluates recorded work before it grows too large.

Three things start an evaluation: so many operations that planning them takes long and much memory,
so many bytes that pending work holds, and a loop of equal rounds. The operations of a loop are cut
at the end of a round: every cut has the structure of the one before, and one plan serves all of
them.

    for _ in range(1000):            32 operations a round: 16 rounds, then the next 16 ...
        u = u + 0.1 * lap(u)         63 evaluations with one plan, none of which is large

Where NumPy has worked at the call for a while (`policy.allowance`), recording goes on in the midst
of a round. What is left of that round, and some more, are NumPy's too. So the pieces that follow
begin where all the others have begun.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from clfuse.config import settings
from clfuse.counters import counters
from clfuse.dataclass import mutable
from clfuse.ir import loop_detection, snapshot, trace
from clfuse.ir import nodes as ir
from clfuse.policy import choice

from . import evaluate

SLACK: Final = 8
"""A part of CLFUSE_MAX_NODES, one in so many, that may be recorded beyond it, to cut after a
write."""

WAITING_SHARE: Final = 0.75
"""The part of CLFUSE_MAX_NODES, or of CLFUSE_LOOP_NODES, that must still wait to be computed when
so much was recorded; with less, counting goes on: a cut within an expression gives a plan and
kernels that are used once."""

PINNED_SHARE: Final = 0.5
"""The part of CLFUSE_MAX_PINNED_BYTES that only recorded work must hold, when memory has grown by
as much: what else has grown belongs to the program."""

LOOP_SHARE: Final = 0.5
"""The part of CLFUSE_LOOP_NODES that equal rounds must have recorded to be a loop: three additions
in a row are none."""


@mutable
class _Loop:
    """The loop that the program is in, as far as is known.

    turn: of `ir.nodes.turn`: what the rest is about
    period: operations of a round; 0 if none was found
    round: the operations of a round as it was cut last; empty if none was
    look_at: how many operations there are when it is looked at next
    end: after how many operations it is cut; 0 if that is not known yet
    done: what NumPy had done at the call when the turn before began
    is_resumed: NumPy has worked since, so this turn may begin in the midst of a round
    is_rest: what ends at `end` is the rest of such a round, and some rounds more
    """

    turn: int = -1
    period: int = 0
    round: list[Any] = field(default_factory=list)
    look_at: int = 0
    end: int = 0
    done: float = 0.0
    is_resumed: bool = False
    is_rest: bool = False

    def begin(self, limit: int) -> None:
        """Nothing of this turn is known, but that the loop may go on."""
        self.turn = ir.turn[0]
        self.end = 0
        self.is_rest = False
        before, self.done = self.done, choice.done_at_call()
        self.is_resumed = bool(self.round) and before != self.done
        self.look_at = limit
        if self.period:
            self.look_at = -(-limit // self.period) * self.period
        if self.is_resumed:
            self.look_at = min(self.look_at, len(self.round))

    def find(self) -> bool:
        """Whether what was recorded in this turn ends with a loop; where it is to be cut."""
        operations = ir.operations
        count = len(operations)
        start = 0
        if not self.period or operations[self.period :] != operations[: -self.period]:
            self.period, start = loop_detection.period(operations) or (0, 0)
            if count - start < LOOP_SHARE * settings.loop_nodes:
                self.period = 0
        if self.period:
            self.end = start + -(-(count - start) // self.period) * self.period
        return bool(self.period)

    def align(self, limit: int) -> None:
        """Where the turn begins in the midst of the round that is known, end it with a round."""
        operations, period = ir.operations, len(self.round)
        before = loop_detection.rotation(operations[:period], self.round)
        is_same = operations[period:] == operations[:-period]
        self.begin(limit)
        self.is_resumed = False
        if before and is_same:
            self.end = -(-(len(operations) + before) // period) * period - before
            self.is_rest = True

    def cut(self) -> None:
        """Evaluate what was recorded; it ends here."""
        if self.is_rest:
            with evaluate.lock, choice.aside():
                evaluate.evaluate_all(raising=False)
        else:
            self.round = ir.operations[-self.period :]
            evaluate.evaluate_all(raising=False)

    def writes(self) -> bool:
        """Whether a round writes to arrays: best cut after that, between two statements."""
        return any(type(each) is not ir.Op for each in ir.operations[-self.period :])


_loop = _Loop()


def _when_full(at_boundary: bool = False) -> None:
    """Evaluate if so much was recorded."""
    if trace.active() is not None:
        return
    if _ends_round(at_boundary):
        _loop.cut()
    elif _is_full(at_boundary):
        evaluate.evaluate_all(raising=False)
    else:
        return
    evaluate.grown_from[0] = counters["device_bytes_now"]


def _is_full(at_boundary: bool) -> bool:
    count = ir.waiting_count()
    limit = settings.max_nodes
    if count < limit:
        return False
    if not ir.boundary.full:
        with evaluate.lock:
            if not ir.is_waiting(max(int(WAITING_SHARE * limit), 1)):
                return False
    if at_boundary or count >= limit + limit // SLACK:
        return True
    ir.boundary.full = True
    return False


def _ends_round(at_boundary: bool) -> bool:
    """Whether a loop that has recorded enough is at the end of a round."""
    limit = settings.loop_nodes
    if not limit:
        return False
    if _loop.turn != ir.turn[0]:
        _loop.begin(limit)
    count = len(ir.operations)
    if _loop.is_resumed and count >= len(_loop.round):
        _loop.align(limit)
    if count >= _loop.look_at and not _loop.end:
        with evaluate.lock:
            waits = ir.is_waiting(max(int(WAITING_SHARE * limit), 1))
        if not waits or not _loop.find():
            _loop.look_at = 2 * count
    if not _loop.end or count < _loop.end:
        ir.check_after(max((_loop.end or _loop.look_at) - count, 1))
        return False
    if at_boundary or count >= _loop.end + _loop.period or not _loop.writes():
        return True
    ir.boundary.full = True
    ir.check_after(_loop.end + _loop.period - count)
    return False


def _when_grown() -> None:
    """Evaluate when pending work holds many bytes that nobody else needs any more."""
    grown = counters["device_bytes_now"] - evaluate.grown_from[0]
    if grown < 0:  # what was freed leaves no room for pending work
        evaluate.grown_from[0] += grown
    if grown <= settings.max_pinned_bytes or trace.active() is not None:
        return
    with evaluate.lock:
        if _pinned_nbytes() > PINNED_SHARE * settings.max_pinned_bytes:
            evaluate.evaluate_all(raising=False)
    evaluate.grown_from[0] = counters["device_bytes_now"]


def _pinned_nbytes() -> int:
    """Bytes of the arrays that wait to be read by recorded work, and that nobody else holds."""
    cells = [cell for reference in ir.recorded if (cell := reference()) is not None]
    waiting = {cell.node: None for cell in cells if cell.node.buffer is None}
    nodes = trace.without_traced(list(waiting))
    if not nodes:
        return 0
    found = snapshot.take(nodes)
    leaves = [
        (item[2], flag)
        for item, flag in zip(found.items, found.flags, strict=True)
        if item[0] is None
    ]
    held = {number for number, flag in leaves if flag & snapshot.LIVE}
    pinned = {number for number, _ in leaves if number not in held}
    return sum([found.buffers[number].nbytes for number in pinned])


def start() -> None:
    """From here on."""
    ir.set_check(_when_full)
    evaluate.when_grown[0] = _when_grown

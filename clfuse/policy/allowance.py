"""Allowances: what NumPy may do at the call before kernels are thought of again.

A structure that has not earned its kernels is NumPy's for some time, and to record it only to
interpret it takes longer than NumPy does. So the program gets an allowance: of so much work all in
all, for operations that are no larger than those of the structure. The compiled part counts what is
taken. While some is left nothing of that size is recorded, by any loop.

Once it is used up the program is watched: a structure that comes twice now has earned its kernels.
A program in which none does, because each is another one, gets twice as much the next time.

A program begins with an allowance, too (`begin`): many end before anything has come often enough,
and to meet the first structures takes milliseconds.

While kernels are built in the background an allowance is lent in the same way. The thread that has
built them takes it back.

Most allowances end in the midst of a round (`was_cut`): what is evaluated next is the rest of it.
"""

from __future__ import annotations

from typing import Final

from clfuse._core import loading
from clfuse.counters import counters
from clfuse.interpreter.prepared import size_of
from clfuse.ir.nodes import Kind
from clfuse.ir.snapshot import Snapshot
from clfuse.target.costs import COSTS

from .cost import fresh_ns
from .feedback import of_kernels, works

__all__ = [
    "MOST_TURNS", "begin", "covers", "done", "forget", "give", "is_given", "is_watching",
    "left_ns", "lend", "note_earned", "note_turn", "note_wait", "take_back", "used_ns", "was_cut",
]  # fmt: skip

SLACK: Final = 2
"""The compiled part counts some operations by other rules than `feedback.works`."""

MOST_WATCHED: Final = 16
"""Evaluations left to NumPy that end the watch."""

MOST_TURNS: Final = 64
"""Evaluations, of all that are not small, that end it."""

MOST_TIMES: Final = 8
"""How many times the usual allowance a program gets that has no loops."""

FIRST_NS: Final = 1e7
"""What NumPy may do at the call when a program begins, in nanoseconds by estimate."""

FIRST_MOST: Final = 1 << 16
"""The additions of one operation by this allowance: 26 us, about what a launch costs."""

_core = loading.load()


class _State:
    """What was given, and what came of it.

    Attributes
    ----------
    given, used : float
        Additions: of the allowance at hand, and of those before that were used up.
    begun : int or None
        The turn when it was seen to be used up; None while there is one, or none was given.
    watched : int
        Evaluations left to NumPy since then.
    times : int
        How many times the usual allowance the next one is.
    is_lent : bool
        The allowance at hand is one of `lend` or `begin`.
    is_first : bool
        It is that of `begin`.
    launched : int
        Kernels that had been launched when `lend` was called last.
    """

    __slots__ = ("begun", "given", "is_first", "is_lent", "launched", "times", "used", "watched")

    def __init__(self) -> None:
        self.given = self.used = 0.0
        self.begun: int | None = None
        self.watched = 0
        self.times = 1
        self.is_first = self.is_lent = False
        self.launched = -1


_state: Final = [_State()]


def begin() -> None:
    """Lend what a program gets to begin with, until something waits for kernels. It says nothing of
    the program when it is used up."""
    if _core is not None:
        _state[0].is_lent = _state[0].is_first = True
        _core.allow(float(FIRST_MOST), FIRST_NS / COSTS.addition_ns)


def give(snapshot: Snapshot, nanoseconds: float) -> None:
    """Allow that much of NumPy's work at the call, for operations like the snapshot's, unless the
    program is watched. What is left of an allowance that was given before stays, and holds for
    these operations, too. Where the program had its first allowance until now, parts of the
    snapshot may have been done by that: it is seen as a whole first, and may be known then."""
    state = _state[0]
    if _core is None or state.begun is not None:
        return
    is_first, is_lent = state.is_first, state.is_lent
    state.is_first = state.is_lent = False
    if is_first or is_lent:
        _core.allow(0.0, 0.0)
    if is_first:
        return
    most, memory = SLACK * _work(snapshot), _memory(snapshot)
    left, largest, fresh = _core.allowed()
    if left:
        _core.allow(max(most, largest), left, False, max(memory, fresh))
        return
    state.given = state.times * nanoseconds / COSTS.addition_ns
    _core.allow(most, state.given, False, memory)


def lend(snapshot: Snapshot, nanoseconds: float) -> None:
    """Allow that much of NumPy's work at the call, for operations like the snapshot's, whose
    kernels are being built: until `take_back`. Nobody watches the program afterwards. Where no
    kernel ran since the last time, the work of other kernels is allowed, too."""
    state = _state[0]
    if _core is None or (is_given() and not state.is_lent):
        return
    launched = counters["kernels_launched"]
    is_alone, state.launched = launched == state.launched, launched
    state.is_first, state.is_lent = False, True
    most, given = SLACK * _work(snapshot), nanoseconds / COSTS.addition_ns
    _core.allow(most, given, is_alone, _memory(snapshot))


def take_back() -> None:
    """End what was lent: the kernels are there. Called from another thread."""
    state = _state[0]
    if _core is not None and state.is_lent:
        _core.end_allowance()
        state.is_first = state.is_lent = False


def was_cut() -> bool:
    """Whether an allowance has ended since this was asked for last, maybe in the midst of a round:
    what is evaluated now may be the rest of one, which comes never again."""
    if _core is None or not _core.was_cut():
        return False
    state = _state[0]
    if state.is_first:
        state.is_first = state.is_lent = False
    return True


def is_watching(turn: int) -> bool:
    """Whether an allowance was used up, and the program shows what it does over and over; `turn`
    counts evaluations that are not small."""
    begun = turn if _is_used_up() else _state[0].begun
    return begun is not None and turn - begun <= MOST_TURNS


def note_turn(turn: int) -> None:
    """Note that something is evaluated that is not small: a watch begins with it, or ends."""
    state = _state[0]
    if _is_used_up():
        state.used += state.given
        state.given = 0.0
        state.begun, state.watched = turn, 0
    elif not is_watching(turn):
        state.begun = None


def note_wait() -> None:
    """Note that a structure is left to NumPy."""
    state = _state[0]
    if state.begun is not None:
        state.watched += 1
        if state.watched > MOST_WATCHED:
            state.begun = None
            state.times = min(2 * state.times, MOST_TIMES)


def note_earned() -> None:
    """Note that a structure has earned its kernels: in a program that is watched, a loop."""
    if _state[0].begun is not None:
        _state[0].times = 1


def is_given() -> bool:
    """Whether there is one, and some of it is left."""
    return _left() > 0


def covers(snapshot: Snapshot) -> bool:
    """Whether none of a snapshot's operations would be recorded at the call."""
    if not is_given() or not of_kernels.isdisjoint(works(snapshot)):
        return False
    _, most, _ = _core.allowed()  # type: ignore[union-attr]
    return _work(snapshot) <= float(most)


def left_ns() -> float:
    """What is left of it."""
    return _left() * COSTS.addition_ns


def used_ns() -> float:
    """What NumPy has done so far by allowances."""
    state = _state[0]
    left = 0.0 if state.is_lent else _left()
    return (state.used + state.given - left) * COSTS.addition_ns


def done() -> float:
    """What NumPy has done at the call by allowances of all kinds, in additions, since the start."""
    return float(_core.done_by_allowance()) if _core is not None else 0.0


def forget() -> None:
    """Begin anew, with no allowance."""
    _state[0] = _State()
    if _core is not None:
        _core.allow(0.0, 0.0)


def _is_used_up() -> bool:
    state = _state[0]
    return state.given > 0 and (state.is_lent or not _left())


def _left() -> float:
    left: float = _core.allowed()[0] if _core is not None else 0.0
    return left


def _work(snapshot: Snapshot) -> float:
    """The most work of an operation."""
    sizes = [
        size_of(item[1])
        for item in snapshot.items
        if item[0] is not None and item[0].kind is not Kind.CONSTANT
    ]
    return max(max(sizes, default=0), max(works(snapshot), default=0.0))


def _memory(snapshot: Snapshot) -> float:
    """The most that memory takes for a result of it, in additions."""
    return max([fresh_ns(node, COSTS) for node in snapshot.nodes], default=0.0) / COSTS.addition_ns

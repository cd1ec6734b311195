"""Evaluations that end early, by an interrupt, a refused launch or a host error, and go on later.

A plan overwrites arrays that nothing needs any more, launch by launch. When it stops after some of
its launches, each array is in one of three states, and `leave` puts it there:

- *done*: no later launch writes to its memory. The node gets its buffer, as after the whole plan.
- *recorded*, as before: the operands that it is computed from are intact. The node does not change.
- *suspended*: a launch that is done has overwritten an operand that it is computed from. The node
  becomes one that stands for the rest of the plan (`Rest`): its value is computed by doing the rest
  first.

    x += 1; y = (x - 1) @ w        y's product fails: x is done, y is recorded (it reads the new x)
    t = x * 2; x += 1; y = t @ w   y's product fails: x is done, y is suspended (the old x is gone)

How far a plan has come is the length of its list of *tickets*: a launch that the driver has taken
adds one by the same call of C, so that no signal handler runs between the two. A step that is not a
kernel adds its ticket afterwards, because doing it twice changes nothing.

Each step of a rest has a list of its own. Where one fails, those that need nothing of it are done
all the same. An array that needs it is computed in another way, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from clfuse.errors import AllocationError, DeviceError
from clfuse.ir.journal import Refused, rests
from clfuse.ir.nodes import Kind, Node, structural
from clfuse.runtime.context import lost
from clfuse.runtime.host import host_steps
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.buffers import Buffer
from clfuse.schedule.memory.buffers import reads_of, writes_of
from clfuse.schedule.memory.hazards import Place, place_of
from clfuse.schedule.records import Schedule

from .rerecord import is_host_step, latest_values

__all__ = ["Rest", "commit_values", "is_refusal", "leave"]

Launch = Callable[[int, "list[Buffer | None]", "list[Any]"], None]
"""Does the step of this number, with values in these places, and adds its ticket to the list."""

Keeps = Sequence[tuple[Node, int]]
"""Nodes, each with the value of the plan that it is."""


Again = Callable[[int, "list[Buffer | None]", "list[bool]", "set[int]"], "Node | None"]
"""Records a value of the plan once more, given where values lie, which steps were done, and which
on the host may have written a part (`rerecord`)."""

Compute = Callable[[Sequence[Node], Refused], None]
"""Computes nodes in another way than by kernels that were refused."""


class _Failed(NamedTuple):
    """A step that was not done, or one that has to come after it, and why."""

    reads: set[Place | None]
    writes: set[Place | None]
    error: Exception
    is_part: bool = False
    """Whether it was refused and makes nothing that a node is, such as the sums of a scan's pieces:
    who reads that may be computed in another way."""


class Rest:
    """The steps of a plan that are not done yet, and the nodes that wait for them."""

    __slots__ = ("__weakref__", "_again", "_begun", "_keeps", "_launch", "_schedule", "_state")

    def __init__(
        self,
        schedule: Schedule,
        launch: Launch,
        keeps: Keeps,
        places: list[Buffer | None],
        done: int,
        again: Again | None,
    ) -> None:
        self._schedule = schedule
        self._launch = launch
        self._keeps = keeps
        # Where each value lies, and the tickets of each step: what changes both changes them at
        # once, whenever an interrupt comes.
        self._state: tuple[list[Buffer | None], list[list[Any]]] = (
            places,
            [[None] if number < done else [] for number in range(len(schedule.steps))],
        )
        self._again = again
        steps = schedule.steps
        self._begun = {done} if done < len(steps) and is_host_step(steps[done]) else set()

    def finish(self, node: Node, compute: Compute) -> None:
        """Do what can be done of the rest, so that `node` has its value; `evaluate.lock` is held.

        What fails is tried again at the next look.

        Raises Exception: what the step says that `node` waits for, where `compute` cannot do
            without it.
        """
        if not self._keeps or node.buffer is not None:
            return
        failed: list[_Failed] = []
        try:
            for number in range(len(self._schedule.steps)):
                if node.buffer is None and not self._is_done(number):
                    self._do(number, node, failed, compute)
        finally:
            self._put()
        if node.buffer is None:
            place = place_of(self._schedule, self._value_of(node))
            raise next(each.error for each in reversed(failed) if place in each.writes)

    def _is_done(self, number: int) -> bool:
        return bool(self._state[1][number])

    def _are_done(self) -> list[bool]:
        return [bool(tickets) for tickets in self._state[1]]

    def _do(self, number: int, node: Node, failed: list[_Failed], compute: Compute) -> None:
        """Do a step, unless it has to come after one that has failed."""
        step = self._schedule.steps[number]
        reads = _places(self._schedule, [value for each in step for value, _ in reads_of(each)])
        writes = _places(self._schedule, [value for each in step for value in writes_of(each)])
        for other in failed:
            if writes & (other.reads | other.writes) or reads & other.writes:
                if not other.is_part or not self._do_refused(number, node, other.error, compute):
                    failed.append(_Failed(reads, writes, other.error))
                return
        places, tickets = self._state
        if is_host_step(step):
            self._begun.add(number)
        try:
            self._launch(number, places, tickets[number])
        except DeviceError:
            raise
        except Exception as error:  # noqa: BLE001 (observing what it writes raises it)
            if self._is_done(number):
                return
            if not is_refusal(error):
                failed.append(_Failed(reads, writes, error))
            elif not self._do_refused(number, node, error, compute):
                made = {value for each in step for value in writes_of(each)}
                is_part = made.isdisjoint(self._schedule.stored.values())
                failed.append(_Failed(reads, writes, error, is_part))

    def _do_refused(self, number: int, node: Node, error: Exception, compute: Compute) -> bool:
        """Have what a step would make computed in another way; whether that could be done."""
        # What is intact now may be written over by the next step.
        return self._do_without(number, node, error, compute) or self._do_otherwise(
            number, error, compute
        )

    def _value_of(self, node: Node) -> int:
        return next(value for other, value in self._keeps if other is node)

    def _made(
        self, values: Iterable[int], number: int, error: Exception, compute: Compute
    ) -> dict[int, Buffer]:
        """These values, computed without the step of this number, which is refused with `error`;
        none of them where that cannot be."""
        made: dict[int, Node] = {}
        for value in values:
            node = self._again and self._again(value, self._state[0], self._are_done(), self._begun)
            if node is None:
                return {}
            made[value] = node
        try:
            compute(list(made.values()), Refused(self._schedule.steps[number], error))
        except (DeviceError, Warning):
            raise
        except Exception:  # noqa: BLE001 (the step's own error says why)
            return {}
        return {value: node.buffer for value, node in made.items()}

    def _do_without(self, number: int, node: Node, error: Exception, compute: Compute) -> bool:
        """Compute a node alone, without a step that is refused; whether that could be done."""
        value = self._value_of(node)
        made = self._made([value], number, error, compute)
        if made:
            node.buffer = made[value]
            node.param = None  # others may wait for this, and let go of it with them
        return bool(made)

    def _do_otherwise(self, number: int, error: Exception, compute: Compute) -> bool:
        """Compute what a step that is refused would have stored; whether that could be done.

        It does not go where the step would have put it: what the step reads may lie there, and has
        to be intact until all is done.
        """
        schedule, (places, tickets) = self._schedule, self._state
        values = latest_values(schedule, schedule.steps[number]).values()
        for other, step in enumerate(schedule.steps):
            if other == number or self._is_done(other):
                continue
            if any(value in values for launch in step for value in writes_of(launch)):
                return False  # the step stores only a part of it
        made = self._made(values, number, error, compute)
        if not made:
            return False
        moved = places.copy()
        for value, new in made.items():
            old = places[value]
            assert old is not None
            try:
                held = buffers.allocate(old.device, old.nbytes)
                host_steps.copy(new.on_device(), held, schedule.values[value].nbytes)
            except (AllocationError, lost.driver_error()):
                return False
            place = place_of(schedule, value)
            for other in range(len(places)):
                if place_of(schedule, other) == place:
                    moved[other] = held
        self._state = moved, [*tickets[:number], [None], *tickets[number + 1 :]]
        return True

    def _put(self) -> None:
        """Give the nodes that are computed their buffers."""
        left = commit_values(self._schedule, self._keeps, self._state[0], self._are_done())
        self._keeps = left
        if not left:
            rests.discard(self)
            # The nodes hold this, and it them.
            self._state, self._launch, self._again = ([], []), _nothing, None


def is_refusal(error: BaseException) -> bool:
    """Whether the driver has refused a call alone: there may be another way to the same values."""
    if isinstance(error, DeviceError):
        return False
    return isinstance(error, AllocationError | lost.driver_error())


def _nothing(number: int, places: list[Buffer | None], tickets: list[Any]) -> None:
    """No step."""


def _places(schedule: Schedule, values: Sequence[int]) -> set[Place | None]:
    return {place_of(schedule, value) for value in values}


def _written(schedule: Schedule, steps: Iterable[Sequence[Any]]) -> set[Place | None]:
    """Where these steps of a plan write to."""
    launches = [launch for step in steps for launch in step]
    return _places(schedule, [value for launch in launches for value in writes_of(launch)])


def commit_values(
    schedule: Schedule, keeps: Keeps, places: Sequence[Buffer | None], is_done: Sequence[bool]
) -> list[tuple[Node, int]]:
    """Give the nodes whose values are complete after these steps their buffers; the others."""
    steps = zip(schedule.steps, is_done, strict=True)
    later = _written(schedule, [step for step, done in steps if not done])
    left = []
    for node, value in keeps:
        if node.buffer is not None:
            continue
        if place_of(schedule, value) in later:
            left.append((node, value))
            continue
        buffer = places[value]
        assert buffer is not None
        node.buffer = buffer.of(node.dtype, node.shape)
        node.inputs = ()
        if node.op.kind is Kind.SUSPENDED:
            node.param = None
    return left


def leave(
    schedule: Schedule,
    launch: Launch,
    keeps: Keeps,
    places: list[Buffer | None],
    tickets: list[Any],
    *,
    whole: bool = False,
    again: Again | None = None,
) -> bool:
    """Put the nodes of a plan in order that ended after as many steps as there are tickets.

    keeps: those that the plan computes.
    places: where each value of the plan lies.
    whole: the nodes are of no graph: they stand for nothing before the plan, and for all of it
        afterwards.
    again: records a value once more.

    Returns
    -------
    bool
        False where `whole` nodes stand for nothing: the plan has not come to its end, and no array
        was overwritten.
    """
    gone = _overwritten(schedule, places, len(tickets))
    if whole and not gone and len(tickets) < len(schedule.steps):
        return False
    done = len(tickets)
    are_done = [number < done for number in range(len(schedule.steps))]
    left = commit_values(schedule, keeps, places, are_done)
    if not left:
        return True
    if not whole:
        if not any(_is_from(node, gone) for node, _ in left):
            return True
        # The rest overwrites more: what is computed from that belongs to it.
        gone |= _overwritten(schedule, places, len(schedule.steps))
        left = [each for each in left if _is_from(each[0], gone)]
    rest = Rest(schedule, launch, left, places, done, again)
    for node, _ in left:
        node.param = rest
        node.op = structural(Kind.SUSPENDED, "suspended", node.dtype)
        node.inputs = ()
    rests.add(rest)
    return True


def _overwritten(schedule: Schedule, places: Sequence[Buffer | None], done: int) -> set[Any]:
    """The buffers of the graph that the first `done` steps write to; and what a host function that
    is the next one may have written before it failed."""
    steps = schedule.steps
    is_host_next = done < len(steps) and is_host_step(steps[done])
    touched = _written(schedule, steps[: done + is_host_next])
    return {
        places[number]
        for number, value in enumerate(schedule.values)
        if value.buffer is not None and ("buffer", value.buffer) in touched
    }


def _is_from(node: Node, gone: set[Any]) -> bool:
    """Whether a node is computed from one of these buffers, or waits for the rest of a plan."""
    stack, seen = [node], {node}
    while stack:
        found = stack.pop()
        if found.buffer is not None:
            if found.buffer in gone:
                return True
            continue
        if found.op.kind is Kind.SUSPENDED:
            return True
        for operand in found.inputs:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return False

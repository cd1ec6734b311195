"""What becomes of an evaluation that ends early: by an interrupt, a refused launch, a host error.

A plan overwrites arrays that nobody asks for any more, launch by launch. When it stops after some
of its launches, each array is in one of three states, and `leave` puts it there:

- *done*: no later launch writes to its memory. The node gets its buffer, as after the whole plan.
- *recorded*, as before: what it is computed from is intact. The node does not change.
- *suspended*: what it is computed from was overwritten by a launch that is done. The node becomes
  one that stands for the rest of the plan (`Rest`): whoever looks at it has the rest done first.

    x += 1; y = (x - 1) @ w        y's product fails: x is done, y is recorded (it reads the new x)
    t = x * 2; x += 1; y = t @ w   y's product fails: x is done, y is suspended (the old x is gone)

How far a plan has come is the length of its list of *tickets*: a launch that the driver has taken
adds one by the same call of C, so that no signal handler runs between the two. What is not a kernel
adds its ticket afterwards, because to do it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph.ir import Kind, Node, structural
from .plan.hazards import Place, place_of
from .plan.memory import writes_of
from .plan.schedule import Kernel, Schedule, SortPass, UserLaunch
from .runtime.buffers import Buffer
from .unfinished import journal, rests, settle

__all__ = ["Rest", "leave", "put"]

Launch = Callable[[int, "list[Any]"], None]
"""Does the step of this number, and adds its ticket to the list."""

Keeps = Sequence[tuple[Node, int]]
"""Nodes, each with the value of the plan that it is."""


class Rest:
    """The launches of a plan that are not done yet, and the nodes that wait for them."""

    __slots__ = ("__weakref__", "_keeps", "_launch", "_places", "_schedule", "_tickets")

    def __init__(
        self,
        schedule: Schedule,
        launch: Launch,
        keeps: Keeps,
        places: list[Buffer | None],
        tickets: list[Any],
    ) -> None:
        self._schedule = schedule
        self._launch = launch
        self._keeps = keeps
        self._places = places
        self._tickets = tickets

    def finish(self) -> None:
        """Do the rest; `evaluate.lock` is held. What fails is tried again at the next look."""
        if not self._keeps:
            return
        journal[0] = self._put, ()
        try:
            for number in range(len(self._tickets), len(self._schedule.steps)):
                self._launch(number, self._tickets)
        finally:
            settle()

    def _put(self) -> None:
        """Give the nodes that are computed their buffers."""
        left = put(self._schedule, self._keeps, self._places, len(self._tickets))
        self._keeps = left
        if not left:
            rests.discard(self)
            # The nodes hold this, and it them.
            self._places, self._launch = [], _nothing


def _nothing(number: int, tickets: list[Any]) -> None:
    """No step."""


def _written(schedule: Schedule, steps: Sequence[Sequence[Any]]) -> set[Place | None]:
    """Where these steps of a plan write to."""
    launches = [launch for step in steps for launch in step]
    return {place_of(schedule, value) for launch in launches for value in writes_of(launch)}


def put(
    schedule: Schedule, keeps: Keeps, places: Sequence[Buffer | None], done: int
) -> list[tuple[Node, int]]:
    """Give the nodes whose values are complete after `done` steps their buffers; the others."""
    later = _written(schedule, schedule.steps[done:])
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
    return left


def leave(
    schedule: Schedule,
    launch: Launch,
    keeps: Keeps,
    places: list[Buffer | None],
    tickets: list[Any],
    *,
    whole: bool = False,
) -> bool:
    """Put the nodes of a plan in order that ended after as many steps as there are tickets.

    Parameters
    ----------
    keeps : sequence of (Node, int)
        Those that the plan computes.
    places : list of Buffer
        Where each value of the plan lies.
    whole : bool
        The nodes are of no graph: they stand for nothing before the plan, and for all of it
        afterwards.

    Returns
    -------
    bool
        False where `whole` nodes stand for nothing: the plan has not come to its end, and no array
        was overwritten.
    """
    gone = _overwritten(schedule, places, len(tickets))
    if whole and not gone and len(tickets) < len(schedule.steps):
        return False
    left = put(schedule, keeps, places, len(tickets))
    if not left:
        return True
    if not whole:
        if not any(_is_from(node, gone) for node, _ in left):
            return True
        # The rest overwrites more: what is computed from that belongs to it.
        gone |= _overwritten(schedule, places, len(schedule.steps))
        left = [each for each in left if _is_from(each[0], gone)]
    rest = Rest(schedule, launch, left, places, tickets)
    for node, _ in left:
        node.param = rest
        node.op = structural(Kind.SUSPENDED, "suspended", node.dtype)
        node.inputs = ()
    rests.add(rest)
    return True


def _overwritten(
    schedule: Schedule, places: Sequence[Buffer | None], done: int
) -> set[Any]:
    """The buffers of the graph that the first `done` steps write to; and what a host function that
    is the next one may have written before it failed."""
    steps = schedule.steps
    is_host_next = done < len(steps) and not isinstance(
        steps[done][0], Kernel | SortPass | UserLaunch
    )
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

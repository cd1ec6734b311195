"""Replays: a traced program, planned once and with its kernels bound, run at every call.

A replay allocates the results, sets the arguments that change, and launches. It plans, renders and
records nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clfuse import events
from clfuse.codegen.arguments import ConstantArgument
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.errors import AllocationError
from clfuse.ir import build
from clfuse.ir.journal import journal, settle
from clfuse.ir.nodes import Kind, Node, Storage, structural
from clfuse.ir.snapshot import LIVE, Snapshot, take
from clfuse.ir.trace import Drawn, Placeholder
from clfuse.ir.traced_number import Calculated, Computed
from clfuse.runtime.context import waits
from clfuse.runtime.host import host_steps
from clfuse.runtime.launches.launch import BoundKernel
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.blocks import note_use
from clfuse.runtime.memory.buffers import Buffer
from clfuse.schedule.records import Copy, LibraryCall, UserLaunch

from .evaluate import find_plan
from .executable import (
    NEVER,
    Prepared,
    bind,
    observers,
    run_without_kernel,
    tuned_after,
)
from .resume import is_refusal, leave

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

    from .tuning.launches import Tuning

__all__ = ["NoKernels", "NoRoom", "Replay"]

_Step = tuple[BoundKernel | None, Prepared | Copy | LibraryCall, Sequence[tuple[int, Any]]]

_WORD: Final = (1 << 64) - 1


class _Scalar(NamedTuple):
    """A scalar that a replay has to look up: of a cell, or of the draws from a generator.

    `number` is the cell's or the generator's, `offset` that of the draw; None is the key.
    """

    number: int
    drawn: bool
    offset: int | None


class NoKernels(Exception):
    """The driver refuses kernels without which there is nothing to replay, or a launch before
    anything was overwritten: then the cause says which."""


class NoRoom(AllocationError):
    """There is no memory for a replay, of which nothing was done."""


class Replay:
    """The plan of a trace's values.

    Parameters
    ----------
    roots : sequence of Node
        What is computed, each node once; in terms of placeholders.
    scalars : set of int
        Numbers of the cells that hold a scalar of the program: a kernel argument, not memory.
    donated : set of int
        Numbers of the cells whose memory may hold results afterwards.
    device : Device
        Where it runs.

    inputs (list of int): numbers of the cells whose bytes are read.

    Raises
    ------
    NoKernels
        NumPy has to compute the values.
    """

    def __init__(
        self, roots: Sequence[Node], scalars: set[int], donated: set[int], device: Device
    ) -> None:
        self.device = device
        self.inputs: list[int] = []
        self.donated: list[int] = []
        self._leaves = [
            (structural(Kind.LEAF, "leaf", root.dtype), root.shape, root.dtype) for root in roots
        ]
        self._steps: list[_Step] = []
        self._slots: list[tuple[int, int | Buffer | None]] = []
        self._places: list[Any] = []
        self._roots: list[int] = []
        # After so many runs its tuning is looked at.
        self._left = tuned_after[0] if settings.tuning else NEVER
        self._tuning: Tuning | None = None
        if not roots:
            return
        snapshot = _snapshot(roots, scalars, donated)
        planned = find_plan(snapshot, device)
        if planned.by_host:
            raise NoKernels
        schedule = self._schedule = planned.schedule
        for listener in events.listeners:
            listener.traced(self, schedule, snapshot)
        # Graph buffers: those of cells, by position among `inputs`, and those that are fixed.
        sources: list[int | Buffer] = []
        for buffer in snapshot.buffers:
            if type(buffer) is Placeholder:
                sources.append(len(self.inputs))
                self.inputs.append(buffer.number)
                if buffer.number in donated:
                    self.donated.append(len(self.inputs) - 1)
            else:
                sources.append(buffer)
        self._slots = [
            (nbytes, None if reused is None else sources[reused])
            for nbytes, reused in (
                (nbytes, schedule.reuses.get(number))
                for number, nbytes in enumerate(schedule.slots)
            )
        ]
        # Where every value lies: (slot), (input) or a fixed buffer.
        self._from_slots: list[tuple[int, int]] = []
        self._from_inputs: list[tuple[int, int]] = []
        for number, value in enumerate(schedule.values):
            self._places.append(None)
            if value.slot is not None:
                self._from_slots.append((number, value.slot))
            elif value.buffer is not None:
                source = sources[value.buffer]
                if isinstance(source, int):
                    self._from_inputs.append((number, source))
                else:
                    self._places[number] = source
        self._passed: list[tuple[_Scalar | Calculated, np.dtype[Any]]] = []
        self._constants = {
            position: node.param
            for position, node in enumerate(snapshot.nodes)
            if node.op.kind is Kind.CONSTANT
        }
        for step in planned.steps:
            if isinstance(step, Prepared):
                bound = self._bind(step)
                self._steps.append((bound, replace(step, bound=bound), ()))
            else:
                numbers = step.scalars if isinstance(step, LibraryCall) else ()
                operands = [(place, snapshot.nodes[number].param) for place, number in numbers]
                self._steps.append((None, step, operands))
        self._roots = [schedule.keeps[position] for position in snapshot.roots]

    def _bind(self, step: Prepared) -> BoundKernel:
        def scalar(constant: ConstantArgument) -> tuple[int | None, Any]:
            source = self._constants[constant.position]
            if type(source) is not _Scalar and type(source) is not Calculated:
                return None, source
            entry = (source, constant.dtype)
            if entry not in self._passed:
                self._passed.append(entry)
            return self._passed.index(entry), None

        return bind(step, scalar)

    def _look(self) -> list[_Step]:
        """Look at the tuning of its kernels, which is due; the steps of the run that comes now."""
        from .tuning import launches

        def use(index: int, step: Prepared) -> None:
            self._steps[index] = (step.bound, step, ())

        timed = None
        if self._tuning is None:
            prepared = [step for _, step, _ in self._steps]
            self._tuning = launches.begin(prepared, self._schedule, self.device, self._bind, use)
            if self._tuning is not None:
                self._tuning.ran(tuned_after[0])
        else:
            timed = self._tuning.look()
        self._left = NEVER if self._tuning is None else self._tuning.left
        if timed is None:
            return self._steps
        index, step = timed
        return [*self._steps[:index], (step.bound, step, ()), *self._steps[index + 1 :]]

    def run(
        self,
        nodes: Sequence[Node],
        put: Callable[[list[Node]], None],
        draws: Sequence[tuple[int, int]] = (),
        numbers: Sequence[Any] = (),
    ) -> None:
        """Launch everything; `evaluate.lock` is held.

        Parameters
        ----------
        nodes : sequence of Node
            What the cells hold, by number. Those of `inputs` have their bytes, and those of
            scalars are constants.
        put : callable
            Called with a leaf for each root, when its buffer is there. Where this ends early and
            arrays were overwritten, leaves stand for what is to come. It may be called twice.
        draws : sequence of (int, int)
            Key and first position of every generator that is drawn from.
        numbers : sequence of float or int
            The Python numbers among the arguments, and what is calculated of them.

        Raises NoRoom: memory is short; nothing has been launched.
        Raises NoKernels: the driver refuses a launch, and every array is as it was.
        """
        if not self._roots:
            put([])
            return
        if waits.is_deep():
            waits.keep_up(self.device.queue)
        self._left -= 1
        steps = self._steps if self._left > 0 else self._look()
        scalars = [_scalar(source, nodes, draws, numbers) for source, _ in self._passed]
        device = self.device
        held: list[Buffer] = [nodes[number].buffer for number in self.inputs]
        slots: list[Buffer] = []
        try:
            for number in range(len(held)):  # no names for buffers: references are counted below
                if held[number].device is not device:
                    held[number] = buffers.transfer(held[number], device)
            for number in self.donated:
                if is_shared(nodes, self.inputs[number], held, number):
                    held[number] = _copied(held[number])
            for nbytes, reused in self._slots:
                if reused is None:
                    slots.append(buffers.allocate(device, nbytes))
                else:
                    slots.append(held[reused] if isinstance(reused, int) else reused)
            if device.pool is not None and device.pool.is_tight:
                note_use(held)
                for number in range(len(held)):
                    held[number].on_device()
        except AllocationError as error:
            raise NoRoom(str(error)) from None
        places: list[Any] = self._places.copy()
        for value, number in self._from_inputs:
            places[value] = held[number]
        for value, number in self._from_slots:
            places[value] = slots[number]
        results = [Node(op, (), shape, dtype) for op, shape, dtype in self._leaves]
        tickets: list[Any] = []
        for watcher in events.watchers:
            watcher.replaying(self, self._schedule, device)
        journal[0] = self._leave, (results, places, tickets, scalars, nodes, draws, numbers, put)
        try:
            with device.lock:
                for bound, step, sources in steps:
                    if bound is None:
                        found = [
                            (place, _scalar(source, nodes, draws, numbers))
                            for place, source in sources
                        ]
                        run_without_kernel(step, places, found, tickets)  # type: ignore[arg-type]
                        continue
                    event = bound.enqueue(places, scalars, tickets, wants_event=bool(observers))
                    counters["user_launches"] += isinstance(step.kernel, UserLaunch)  # type: ignore
                    if observers:
                        for observer in observers:
                            observer(step, event)  # type: ignore[arg-type]
            for node, value in zip(results, self._roots, strict=True):
                node.buffer = places[value].of(node.dtype, node.shape)
            put(results)
            journal[0] = None
            for watcher in events.watchers:
                watcher.stored(results)
        except BaseException as error:
            settle()
            is_untouched = all(
                node.buffer is None and node.op.kind is Kind.LEAF for node in results
            )
            if is_untouched and is_refusal(error):
                raise NoKernels from error
            raise

    def _leave(
        self,
        results: list[Node],
        places: list[Any],
        tickets: list[Any],
        scalars: list[Any],
        nodes: Sequence[Node],
        draws: Sequence[tuple[int, int]],
        numbers: Sequence[Any],
        put: Callable[[list[Node]], None],
    ) -> None:
        """Have results put where a run that ended early has overwritten arrays, or was all done."""
        operands = [
            [(place, _scalar(source, nodes, draws, numbers)) for place, source in sources]
            for _, _, sources in self._steps
        ]

        def launch(number: int, places: list[Any], tickets: list[Any]) -> None:
            bound, step, _ = self._steps[number]
            if bound is None:
                run_without_kernel(step, places, operands[number], tickets)  # type: ignore[arg-type]
            else:
                bound.enqueue(places, scalars, tickets)
                counters["user_launches"] += isinstance(step.kernel, UserLaunch)  # type: ignore

        keeps = list(zip(results, self._roots, strict=True))
        if leave(self._schedule, launch, keeps, places, tickets, whole=True):
            put(results)


def _scalar(
    source: Any, nodes: Sequence[Node], draws: Sequence[tuple[int, int]], numbers: Sequence[Any]
) -> Any:
    """The value that a scalar has in one replay; itself where it is always the same."""
    if type(source) is Calculated:
        return source.value(numbers)
    if type(source) is not _Scalar:
        return source
    if not source.drawn:
        return nodes[source.number].param
    key, position = draws[source.number]
    word = key if source.offset is None else position + source.offset
    return np.uint64(word & _WORD).astype(np.int64)


def _snapshot(roots: Sequence[Node], scalars: set[int], donated: set[int]) -> Snapshot:
    """What is below `roots`, with scalars as constants, and nothing alive but the inputs.

    Nobody outside can hold a traced value: what the function gives back are new arrays.
    """
    found = take(roots)
    nodes = found.nodes
    items = found.items
    buffers: dict[Any, int] = {}
    flags = bytearray(len(nodes))
    for position, node in enumerate(nodes):
        buffer = node.buffer
        if buffer is None:
            continue
        source: _Scalar | Calculated | None = None
        if type(buffer) is Computed:
            source = buffer.calculated
        elif type(buffer) is Drawn:
            source = _Scalar(buffer.number, True, buffer.offset)
        elif type(buffer) is Placeholder and buffer.number in scalars:
            source = _Scalar(buffer.number, False, None)
        if source is not None:
            op = structural(Kind.CONSTANT, "constant", node.dtype)
            nodes[position] = Node(op, (), (), node.dtype, source)
            items[position] = (op,)
            continue
        number = buffers.setdefault(buffer, len(buffers))
        items[position] = (None, node.shape, number, node.dtype)
        if not (type(buffer) is Placeholder and buffer.number in donated):
            flags[position] = LIVE
    return Snapshot(nodes, items, bytes(flags), found.roots, list(buffers))


# -- donation -------------------------------------------------------------------------------------


def is_shared(nodes: Sequence[Node], number: int, held: Sequence[Buffer], position: int) -> bool:
    """Whether anybody but one cell can see the bytes of ``nodes[number]``.

    `nodes` and `held` must be the only other references to the node and its buffer.
    """
    return (
        type(held[position]) is not Buffer  # memory of a NumPy array
        or held[position].exported > 0
        or sys.getrefcount(nodes[number]) > _ALONE[0]
        or sys.getrefcount(held[position]) > _ALONE[1]
    )


def _calibrate() -> tuple[int, int]:
    """The reference counts that `is_shared` sees of a node and a buffer that are not shared."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1  # counts are not exact: everything is shared
    dtype = np.dtype(np.float64)
    node = build.leaf(object(), (2,), dtype)
    cell = Storage(node)
    nodes = [node]
    del node
    held = [nodes[0].buffer]
    counts = sys.getrefcount(nodes[0]), sys.getrefcount(held[0])
    return counts if cell.node is nodes[0] else (-1, -1)


_ALONE = _calibrate()


def _copied(buffer: Buffer) -> Buffer:
    made = buffers.allocate(buffer.device, buffer.nbytes)
    host_steps.copy(buffer, made, buffer.nbytes)
    return made

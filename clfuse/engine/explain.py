"""`clfuse.explain`: what would run for some arrays, and why: sources, bytes and cuts as a table.

Nothing runs here: arrays stay unevaluated.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clfuse.config import settings
from clfuse.counters import bytes_text
from clfuse.ir.journal import finish_below, settle
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import take
from clfuse.policy import choice
from clfuse.runtime.memory.blocks import pool_of
from clfuse.schedule.dataflow import operations_of, storage_roots
from clfuse.schedule.device_libraries import is_ours
from clfuse.schedule.planner import plan
from clfuse.schedule.records import (
    Copy,
    Cut,
    Launch,
    LibraryCall,
    Pass,
    Schedule,
    SortPass,
    UserLaunch,
)
from clfuse.schedule.traffic import (
    call_nbytes,
    pass_nbytes,
    reads_of,
    reads_of_call,
    uses_of_launch,
    writes_of,
    writes_of_call,
)

from . import plans
from .evaluate import compute_otherwise, lock, pending
from .out_of_core import describe
from .tuning import kept

if TYPE_CHECKING:
    from clfuse.target.traits import DeviceTraits

_SMALL = "so small that NumPy calculates it (CLFUSE_HOST_US); on the device it would be:"
_WAITING = (
    "has no kernels yet, and NumPy calculates it until they are worth building, and built"
    " (CLFUSE_BUILD_AFTER_MS); then it will be:"
)


@dataclass(frozen=True)
class ArrayUse:
    """One array that a kernel reads or writes.

    Attributes
    ----------
    name : str
        ``input 0``, ``result 0`` or ``temporary 3``.
    dtype : str
    nbytes : int
        Bytes that this kernel moves, each element once.
    """

    name: str
    dtype: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype}, {bytes_text(self.nbytes)})"


@dataclass(frozen=True)
class ExplainedKernel:
    """One kernel of the plan.

    Attributes
    ----------
    name : str
        The kernel's name in the OpenCL C.
    kind : str
        ``map``, ``reduce``, ``scan``, ``compact``, ``expand``, ``tally``, ``scatter``, ``tiles``,
        ``copy``, ``library``, or ``launch``: a kernel that somebody wrote, which nothing was fused
        with.
    source : str
        OpenCL C; empty for copies and library calls.
    reads, writes : tuple of ArrayUse
    nbytes : int
        Global memory that it moves, every array once.
    ops : tuple of str
        The operations that were fused, in order.
    follows : bool
        It is no launch of its own: the work-item that is the last to be done with the kernel before
        it runs it.
    tuned : str
        What tuning has chosen for it or its like on this device, and what that has gained; empty
        where nothing was tried.
    """

    name: str
    kind: str
    source: str
    reads: tuple[ArrayUse, ...]
    writes: tuple[ArrayUse, ...]
    nbytes: int
    ops: tuple[str, ...]
    follows: bool = False
    tuned: str = ""


@dataclass(frozen=True)
class Plan:
    """What `explain` returns; prints as a table, shows as HTML in a notebook.

    Attributes
    ----------
    kernels : tuple of ExplainedKernel
        In order of execution.
    cuts : tuple of Cut
        Values that go through memory although nobody asked for them: ``.what .reason .nbytes``.
    device : str
    small : bool
        NumPy on the host would calculate it instead (``CLFUSE_HOST_US``).
    waiting : bool
        It has no kernels yet, and NumPy would calculate it this time (``CLFUSE_BUILD_AFTER_MS``).
    written : tuple of str
        The kernels in Python whose calls became array operations, and as such part of `kernels`.
    memory : tuple of str
        That there is not enough of it, and how the arrays are computed in tiles; operands that were
        spilled to the host.
    nbytes : int
        Bytes moved by all kernels.
    """

    kernels: tuple[ExplainedKernel, ...]
    cuts: tuple[Cut, ...]
    device: str
    small: bool = False
    written: tuple[str, ...] = ()
    waiting: bool = False
    memory: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes moved by all kernels."""
        return sum(kernel.nbytes for kernel in self.kernels)

    def __str__(self) -> str:
        if not self.kernels:
            return "nothing to compute: every array is in memory already"
        launches = sum([not kernel.follows for kernel in self.kernels])
        lines = [f"{launches} launch(es), {bytes_text(self.nbytes)} moved, on {self.device}"]
        if self.small:
            lines.insert(0, _SMALL)
        if self.waiting:
            lines.insert(0, _WAITING)
        for number, kernel in enumerate(self.kernels):
            where = f", in the launch of {number - 1}" if kernel.follows else ""
            moved = bytes_text(kernel.nbytes)
            lines.append(f"{number}: {kernel.kind} {kernel.name}, {moved}{where}")
            lines.append(f"   fused: {', '.join(kernel.ops) or 'nothing'}")
            lines.append(f"   reads: {', '.join(map(str, kernel.reads)) or 'nothing'}")
            lines.append(f"   writes: {', '.join(map(str, kernel.writes))}")
            if kernel.tuned:
                lines.append(f"   tuned: {kernel.tuned}")
        if self.written:
            lines.append(self._routes())
        for cut in self.cuts:
            lines.append(f"cut: {cut.what} ({bytes_text(cut.nbytes)}): {cut.reason}")
        lines += self.memory
        return "\n".join(lines)

    __repr__ = __str__

    def _routes(self) -> str:
        return f"kernels in Python that became array operations: {', '.join(self.written)}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{number}</td><td>{kernel.kind}</td>"
            f"<td><details><summary>{html.escape(kernel.name)}</summary>"
            f"<pre>{html.escape(kernel.source)}</pre></details></td>"
            f"<td>{html.escape(', '.join(kernel.ops))}"
            f"{html.escape(f'; tuned: {kernel.tuned}') if kernel.tuned else ''}</td>"
            f"<td>{html.escape(', '.join(map(str, kernel.reads)))}</td>"
            f"<td>{html.escape(', '.join(map(str, kernel.writes)))}</td>"
            f"<td>{bytes_text(kernel.nbytes)}</td></tr>"
            for number, kernel in enumerate(self.kernels)
        )
        cuts = "".join(
            f"<li>{html.escape(cut.what)}: {html.escape(cut.reason)}</li>" for cut in self.cuts
        )
        written = self._routes() if self.written else ""
        return (
            f"<p>{_SMALL if self.small else _WAITING if self.waiting else ''}</p>"
            "<table><tr><th></th><th>kind</th><th>kernel</th><th>fused</th><th>reads</th>"
            f"<th>writes</th><th>moved</th></tr>{rows}</table>"
            f"<p>{html.escape(written)}</p><ul>{cuts}</ul>"
            f"<p>{'<br>'.join(map(html.escape, self.memory))}</p>"
        )


def explain_nodes(nodes: Sequence[Node]) -> Plan:
    """The plan that evaluating `nodes` together would follow now."""
    from clfuse.runtime.devices import selection

    current = selection.get_device()
    with lock:
        settle()
        finish_below(nodes, compute_otherwise)
        roots = pending(nodes)
        if not roots:
            return Plan((), (), current.name)
        snapshot = take(roots)
    schedule = plan(snapshot, current.traits, fuse=settings.fusion)
    kernels = explained(schedule, current.traits)
    known = plans.look(snapshot, current)
    small, waiting = choice.forecast(snapshot, current, is_planned=known is not None)
    waiting = waiting or (known is not None and known.is_awaited)
    memory: tuple[str, ...] = ()
    if not current.forked and not current.lost:
        memory = tuple(describe(roots, schedule, snapshot, current.pool or pool_of(current)))
    cuts = tuple(schedule.cuts)
    return Plan(kernels, cuts, current.name, small, _written(roots), waiting, memory)


def _written(roots: Sequence[Node]) -> tuple[str, ...]:
    """The kernels in Python that recorded something of what is to be computed, each once."""
    found: dict[str, None] = {}
    seen = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        name = getattr(node, "kernel", None)
        if name is not None:
            found[name] = None
        for operand in node.inputs:
            if operand.buffer is None and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return tuple(reversed(found))


def explained(
    schedule: Schedule, traits: DeviceTraits, most: int | None = None
) -> tuple[ExplainedKernel, ...]:
    """The kernels of a plan for a device with these traits; the first `most` of them."""
    return tuple([_explained(launch, schedule, traits) for launch in schedule.launches[:most]])


def _explained(launch: Launch, schedule: Schedule, traits: DeviceTraits) -> ExplainedKernel:
    if isinstance(launch, Copy):
        return ExplainedKernel(
            "copy",
            "copy",
            "",
            (_use(launch.source, "bytes", launch.nbytes, schedule),),
            (_use(launch.target, "bytes", launch.nbytes, schedule),),
            2 * launch.nbytes,
            (),
        )
    if isinstance(launch, Pass):
        from clfuse.codegen.passes import render_pass

        elements = "keys" if isinstance(launch, SortPass) else str(launch.dtype)
        rendered = render_pass(launch, traits, storage_roots(schedule))
        reads, writes = (
            tuple([_use(each, elements, schedule.values[each].nbytes, schedule) for each in side])
            for side in (launch.reads, launch.writes)
        )
        moved = pass_nbytes(launch, schedule)
        ops = [launch.call.name]
        name, source = rendered.name, rendered.source
        return ExplainedKernel(name, "library", source, reads, writes, moved, tuple(ops))
    if isinstance(launch, UserLaunch):
        from clfuse.codegen.launches import render_launch

        rendered = render_launch(launch, traits, storage_roots(schedule))
        uses = uses_of_launch(launch, schedule)
        reads, writes = (tuple([_use(*use, schedule) for use in side]) for side in uses)
        moved = sum(use.nbytes for use in reads + writes)
        count = launch.round.count
        calls = f"{count} call{'s' if count > 1 else ''} of {launch.spec.name}"
        calls += f" ({launch.spec.reason})"
        name, source = rendered.name, rendered.source
        return ExplainedKernel(name, "launch", source, reads, writes, moved, (calls,))
    if isinstance(launch, LibraryCall):
        reads = tuple([_use(*use, schedule) for use in reads_of_call(launch, schedule)])
        writes = tuple([_use(*use, schedule) for use in writes_of_call(launch, schedule)])
        source, ops = "", [launch.name]
        if is_ours(launch, traits):
            from clfuse.codegen.matmul import render_matmul

            source = render_matmul(launch, traits, storage_roots(schedule)).source
        if launch.epilogue is not None:
            ops += operations_of(launch.epilogue.body)
        moved = call_nbytes(launch, schedule)
        return ExplainedKernel(launch.name, "library", source, reads, writes, moved, tuple(ops))
    from clfuse.codegen.kernels import render

    root = storage_roots(schedule)
    rendered = render(launch, traits, root)
    found = None
    if settings.tuning and [launch] in schedule.steps:
        found = kept.of_plan(traits, root)(launch, rendered)
    source = rendered.source if found is None else found[0].source
    tuned = "" if found is None else str(found[1])
    reads = tuple([_use(*use, schedule) for use in reads_of(launch, schedule)])
    writes = tuple([_use(*use, schedule) for use in writes_of(launch, schedule)])
    items = [item for phase in launch.computed for item in phase.body]
    if launch.where:  # bodies for boxes share what they do in several of them
        items = list(dict.fromkeys(items))
    ops = operations_of(items)
    ops += [accumulator.name for accumulator in launch.accumulators]
    ops += operations_of(launch.epilogue)
    moved = sum(use.nbytes for use in reads + writes)
    return ExplainedKernel(
        launch.label, launch.kind.name, source, reads, writes, moved, tuple(ops), launch.follows,
        tuned,
    )


def _use(value: int, dtype: str, nbytes: int, schedule: Schedule) -> ArrayUse:
    known = schedule.values[value]
    if known.buffer is not None:
        name = f"input {known.buffer}"
    elif value in set(schedule.keeps.values()):
        name = f"result {sorted(set(schedule.keeps.values())).index(value)}"
    else:
        name = f"temporary {value}"
    return ArrayUse(name, dtype, nbytes)

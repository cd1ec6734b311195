"""Reductions, and row programs of several phases, as the contents of their templates.

    reduce_rows      lanes run along a folded dimension; a row is one result, or a piece of it
    reduce_strips    lanes run along a kept dimension (`codegen.kinds.strips`)
    reduce_groups    work-groups of a GPU, along rows or down columns (`codegen.kinds.group_folds`)

A phase passes once over the row: it folds, stores, or both. Its epilogue's registers are there for
the next phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

from clfuse.codegen.arguments import Arguments
from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Preamble, Register
from clfuse.codegen.lines.folds import Fold, beside
from clfuse.codegen.lines.loops import (
    asked_once,
    before,
    chunk_arguments,
    compute,
    decode,
    epilogue_lines,
    folding,
    mask_lanes,
    outer_loops,
    partial_lines,
)
from clfuse.codegen.lines.nan_tracking import WatchedFold, is_watched
from clfuse.codegen.lines.remainder import rests_of
from clfuse.codegen.lines.unroll2 import pair
from clfuse.schedule.records import Kernel
from clfuse.schedule.shape.geometry import SHORT_SUM
from clfuse.schedule.shape.positions import is_searched, sought
from clfuse.schedule.shape.unroll2 import waits_long
from clfuse.target.traits import DeviceTraits

from . import group_folds, row_blocks, strips
from .column_moments import AroundGuess
from .moments import MOST_CANCELLED, Moments, moments_of
from .searches import BLOCK, SearchedFold
from .writing import Writing


def _folds(kernel: Kernel, first: int) -> list[Fold]:
    """The folds of one phase, numbered from `first`."""
    folds: list[Fold] = []
    for number, accumulator in enumerate(kernel.accumulators, first):
        kind = Fold
        if is_searched(kernel, kernel, accumulator):
            kind = SearchedFold
        elif is_watched(kernel, accumulator):
            kind = WatchedFold
        fold = kind(number, accumulator, mask_lanes(kernel, accumulator))
        if isinstance(fold, SearchedFold) and kernel.width > 1:
            fold.spare_sums(kernel)
        folds.append(fold)
    return folds


class _Phases:
    """Writes the phases one after another: groups, folds and registers go on counting."""

    def __init__(
        self, kernel: Kernel, traits: DeviceTraits, arguments: Arguments, preamble: Preamble
    ) -> None:
        self.kernel = kernel
        self.bodies: list[Body] = []
        self.folds: list[list[Fold]] = []
        folds = 0
        numbers = count()
        for phase in kernel.passes:
            self.bodies.append(Body(phase, traits, arguments, preamble, numbers))
            self.folds.append(_folds(phase, folds))
            folds += len(phase.accumulators)

    def __iter__(self) -> Iterator[tuple[Kernel, Body, list[Fold], bool]]:
        """(phase, its body, its folds, whether it is the last)."""
        last = len(self.bodies) - 1
        for number, body in enumerate(self.bodies):
            yield body.kernel, body, self.folds[number], number == last

    def body_of(self, phase: Kernel) -> Body:
        """The body of one more phase, over the same rows as the first."""
        return self.bodies[0].beside(phase)

    def around_a_guess(self, moments: Moments) -> tuple[Body, list[Fold]]:
        """The body and the folds of the pass that stands for the first two phases."""
        folds = _folds(moments.phase, sum(len(its) for its in self.folds))
        return self.body_of(moments.phase), folds

    def carry(self, registers: dict[int, Register]) -> None:
        """Let all phases know the registers of an epilogue."""
        for body in self.bodies:
            body.carried.update(registers)


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill in what the template needs; returns the template's name."""
    traits, arguments, preamble = writing.traits, writing.arguments, writing.preamble
    k = writing.context
    phases = _Phases(kernel, traits, arguments, preamble)
    body = phases.bodies[0]
    if kernel.schedule == "gpu":
        return group_folds.fill(kernel, phases, body, k)
    if kernel.vector < len(kernel.extents) - kernel.reduced:
        around = None
        moments = moments_of(kernel)
        if moments is not None:
            body_of_sample = phases.body_of(moments.sample)
            around = AroundGuess(moments, body_of_sample, *phases.around_a_guess(moments))
        strips.fill(kernel, [(phase, its, folds) for phase, its, folds, _ in phases], around, k)
        return "reduce_strips.cl.mako"
    kept = len(kernel.extents) - kernel.reduced
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(kept)]
    chunk_arguments(kernel, body, k)
    k.decode = decode(body, list(range(kept)), "row")
    k.once = []
    k.phases = []
    made: dict[int, Register] = {}
    for phase, phase_body, folds, last in phases:
        part, registers = _row_phase(phase, phase_body, folds, last)
        phases.carry(registers)
        made.update(registers)
        k.phases.append(part)
        for fold in folds:
            if isinstance(fold, SearchedFold):
                k.once += fold.look_once(phases.body_of(phase), phase, (part.begin, part.end))
    k.blocks = k.phases[0].blocks
    k.moments = None
    moments = moments_of(kernel)
    if moments is not None:
        k.moments = _one_pass(moments, phases, made, k.phases)
    return "reduce_rows.cl.mako"


def _one_pass(
    moments: Moments, phases: _Phases, made: dict[int, Register], parts: list[SimpleNamespace]
) -> SimpleNamespace:
    """The pass around a guess, what it needs, and what the first two phases get of it."""
    body, folds = phases.around_a_guess(moments)
    moments.carry(body)
    part, _ = _row_phase(moments.phase, body, folds, False)
    sums = [f"q{fold.number}" for fold in folds[:2]]
    mean = made[moments.mean]
    single = body.writer(1)
    declared, taken, known = [], [], []
    for fold, first in zip(folds[2:], phases.folds[0], strict=True):
        name = f"fold{first.number}"
        declared.append(f"{fold.type_at(single)} {name} = 0;")
        taken.append(f"{name} = q{fold.number};")
        known.append(f"q{first.number} = {name};")
    parts[0].known = known
    parts[1].known = [
        f"q{fold.number} = {moments.known(number, mean.text, 'guess', 'off', 'squares')};"
        for number, fold in enumerate(phases.folds[1])
    ]
    length = body.arguments.integer(f"n{body.vector}", moments.phase.extents[moments.phase.vector])
    kind = moments.kind()
    return SimpleNamespace(
        kind=kind,
        part=part,
        length=length,
        sums=sums,
        declared=declared,
        taken=taken,
        mean=mean.text,
        most=f"({kind}){MOST_CANCELLED}",
    )


def _row_phase(
    kernel: Kernel, body: Body, folds: list[Fold], last: bool
) -> tuple[SimpleNamespace, dict[int, Register]]:
    """One pass over a row: its loops, what follows them, and the registers that it leaves.

    `shared` runs in every work-item of a row, `own` in one.
    """
    p = SimpleNamespace(last=last, compensated=kernel.compensated, unroll=kernel.unroll)
    arguments = body.arguments
    kept = len(kernel.extents) - kernel.reduced
    width, unroll = kernel.width, kernel.unroll
    widths = [1 << power for power in range(5) if 1 << power <= width]
    writers = {lanes: body.writer(lanes) for lanes in widths}
    inner = kernel.vector
    extent = arguments.integer(f"n{inner}", kernel.extents[inner])
    p.outer_loops = outer_loops(kernel, body, list(range(kept, inner)))
    chunked_here = kernel.chunk == inner
    p.begin, p.end = ("low", "high") if chunked_here else ("0", extent)
    p.run_end = body.run_end(p.end) if body.seams else ""
    p.before, uniform = before(body, kernel)
    p.start, p.pause = [], []
    p.block = f"{width * unroll * SHORT_SUM}"
    single = writers[1]
    for fold in folds:
        number = str(fold.number)
        p.start += fold.start(single, f"q{number}", f"z{number}")
        if isinstance(fold, SearchedFold) and width > 1:
            p.block = f"{BLOCK * width}"
            p.start += fold.start_vectors(writers[width], kernel, p.begin, unroll)
        elif width > 1:
            for copy in range(unroll):
                p.start += fold.start(writers[width], f"v{number}_{copy}", f"p{number}_{copy}")
        if kernel.compensated and fold.compensates:
            p.start += fold.start_total(single, f"q{number}")
            if width > 1:
                p.start += fold.start_total(writers[width], f"v{number}")
    _write_loops(p, kernel, body, folds, uniform)
    if width > 1:
        p.pause = _pause(kernel, folds, writers[width])
    p.rests = rests_of(kernel, body, folds, writers, uniform)
    for rest in p.rests:
        p.start += rest.start
    p.blocks = row_blocks.of(kernel, body, folds, uniform)
    p.groups = list(body.group_lines)
    body.group_lines.clear()
    p.test = body.is_within(kernel.where)
    p.settle = _settle_rest(kernel, folds, single) if width > 1 else []
    p.others = [_other_loops(body, folds, other) for other in kernel.then if kernel.where]
    if p.others:
        p.others[-1].test = ""  # what is left
    p.known = []
    joining = []
    if width > 1:
        for rest in p.rests:
            joining += rest.joining
        joining += _join_lanes(kernel, body, folds, writers, uniform, p)
    results: dict[int, Register] = {}
    for fold in folds:
        text = f"q{fold.number}"
        if kernel.compensated and fold.compensates:
            joining.append(f"q{fold.number} = {fold.total(f'q{fold.number}')};")
        results[fold.accumulator.var] = fold.result(f"z{fold.number}" if fold.is_argument else text)
    if kernel.chunk >= 0:
        names = [(f"q{fold.number}", f"z{fold.number}") for fold in folds]
        place = "row * chunks + piece"
        p.joining, p.shared = joining, []
        p.own = partial_lines(body, single, folds, names, place)
        return p, results
    body.begin_scope()
    computed, stores, results = epilogue_lines(kernel, body, 1, results)
    p.joining, computed = joining, body.group_lines + computed
    p.shared, p.own = ([], computed + stores) if last else (computed, stores)
    return p, results


def _write_loops(
    b: SimpleNamespace, kernel: Kernel, body: Body, folds: list[Fold], uniform: dict[int, Register]
) -> None:
    """Fill in what the loops over a run do: vector by vector, and one by one."""
    single = body.writer(1)
    b.scalar_body, registers = compute(body, kernel, 1, uniform)
    b.vector_bodies = []
    for fold in folds:
        item, position = fold.item(single, registers)
        alone = kernel.width == 1
        if kernel.compensated and fold.compensates and alone:
            b.scalar_body = b.scalar_body + fold.add_to_total(single, item, f"q{fold.number}")
        else:
            b.scalar_body = b.scalar_body + folding(kernel, fold)(
                single, f"q{fold.number}", f"z{fold.number}", item, position
            )
    b.lead = body.first_aligned()
    if kernel.width > 1:
        b.single_body = _vector_copy(kernel, body, uniform, folds, 0)
        if kernel.unroll == 2 and waits_long(kernel, body.traits):
            b.vector_bodies.append(_paired_copies(kernel, body, uniform, folds))
        else:
            b.vector_bodies.append(b.single_body)
            for copy in range(1, kernel.unroll):
                b.vector_bodies.append(_vector_copy(kernel, body, uniform, folds, copy))


def _other_loops(first: Body, folds: list[Fold], other: Kernel) -> SimpleNamespace:
    """What `other` does in its boxes of the range of the first, with the same accumulators."""
    body = first.in_boxes(other)
    b = SimpleNamespace(test=body.is_within(other.where), rests=[])
    b.before, uniform = before(body, body.kernel)
    _write_loops(b, body.kernel, body, [fold for _, fold in beside(folds, other)], uniform)
    b.groups = body.group_lines
    return b


def _vector_copy(
    kernel: Kernel, body: Body, uniform: dict[int, Register], folds: list[Fold], copy: int
) -> list[str]:
    """One unrolled copy of the vector body, folding into accumulator number `copy`."""
    width = kernel.width
    writer = body.writer(width)
    copied = replace(kernel, body=asked_once(kernel.body, width, copy))
    lines, registers = compute(body, copied, width, uniform, sought(kernel, kernel))
    for fold in folds:
        item, position = fold.item(writer, registers)
        lines += folding(kernel, fold)(
            writer, f"v{fold.number}_{copy}", f"p{fold.number}_{copy}", item, position
        )
    if copy:
        index = body.arguments.index_type
        later = f"const {index} j_ = j + {copy * width};"
        return [later, "{", f"const {index} j = j_;", *lines, "}"]
    return lines


def _paired_copies(
    kernel: Kernel, body: Body, uniform: dict[int, Register], folds: list[Fold]
) -> list[str]:
    """Two copies of the vector body in turn, each folding into its own accumulators."""
    writer = body.writer(kernel.width)
    lines, registers = pair(body, kernel, uniform, sought(kernel, kernel))
    for fold in folds:
        for copy, own in enumerate(registers):
            item, position = fold.item(writer, own)
            lines += folding(kernel, fold)(
                writer, f"v{fold.number}_{copy}", f"p{fold.number}_{copy}", item, position
            )
    return lines


def _pause(kernel: Kernel, folds: list[Fold], writer: Expressions) -> list[str]:
    """What the vector loop stops for now and then: accumulators are moved into their compensated
    totals, or compared with the best so far, and started anew."""
    lines, unroll = [], kernel.unroll
    for fold in folds:
        if isinstance(fold, SearchedFold):
            lines += fold.end_block(writer, kernel, unroll)
        if not (kernel.compensated and fold.compensates):
            continue
        number = fold.number
        parts = [f"v{number}_{copy}" for copy in range(unroll)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [f"({parts[i]} + {parts[i + half]})" for i in range(half)]
        lines += fold.add_to_total(writer, parts[0], f"v{number}")
        for copy in range(unroll):
            lines.append(f"v{number}_{copy} = {fold.identity(writer)};")
    return lines


def _settle_rest(kernel: Kernel, folds: list[Fold], single: Expressions) -> list[str]:
    """Move the sum of the few elements behind a run's vectors into the compensated total."""
    lines = []
    for fold in folds:
        if kernel.compensated and fold.compensates:
            value = f"q{fold.number}"
            lines += fold.add_to_total(single, value, value)
            lines.append(f"{value} = {fold.identity(single)};")
    return lines


def _join_lanes(
    kernel: Kernel,
    body: Body,
    folds: list[Fold],
    writers: dict[int, Expressions],
    uniform: dict[int, Register],
    p: SimpleNamespace,
) -> list[str]:
    """Fold the unrolled accumulators, then their lanes, then the scalar rest, into ``q``."""
    lines = []
    width, unroll = kernel.width, kernel.unroll
    wide, single = writers[width], writers[1]
    for fold in folds:
        number = fold.number
        if kernel.compensated and fold.compensates:
            parts = " + ".join(f"v{number}_{copy}" for copy in range(unroll))
            lines += fold.add_to_total(wide, f"({parts})", f"v{number}")
            lines += fold.total_across_lanes(writers, width)
            continue
        if isinstance(fold, SearchedFold):
            bounds, again = (p.begin, p.end), p.groups + p.before
            lines += fold.settle(body, kernel, writers, uniform, bounds, again)
        else:
            lines += fold.join_copies(wide, unroll)
            if fold.compensates:
                # To add the rest to the whole sum would round once more as much as that.
                real_and_imaginary = [".x", ".y"] if fold.dtype.kind == "c" else [""]
                for lane, which in enumerate(real_and_imaginary):
                    lines.append(f"v{number}_0.s{lane} += q{number}{which};")
                lines += [*fold.across_lanes(writers, width), f"q{number} = l{number};"]
                continue
            lines += fold.across_lanes(writers, width)
        lines += fold.fold(single, f"q{number}", f"z{number}", f"l{number}", f"m{number}")
    return lines

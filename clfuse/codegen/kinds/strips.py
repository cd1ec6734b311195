"""Kernels over columns on a CPU as the contents of their template: reductions, row programs, scans.

Whatever belongs to a column is an element of an array, ``[v]`` for vector number v of the unit;
columns that are left over have arrays of their own:

    for (int j = start, v = 0; j < wide; j += 16, v++) {
        const float16 r0 = vload16(0, a0 + x0 + j);
        q0[v] = q0[v] + r0;
    }
    for (int j = wide, v = 0; j < end; j++, v++) { ... y0[v] = y0[v] + r0; }

Where every unit has the same few vectors, their loops are unrolled, so that the arrays become
registers. Short bodies fold several rows into the vector of an accumulator while it is in a
register (`_depth`).

Bodies in boxes go down from where a row of theirs begins to where it ends, from some column on to
another one. Columns before the first whole vector and behind the last one are lanes of the vectors'
arrays (`lines.lanes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Register, vector
from clfuse.codegen.lines.folds import Fold, beside
from clfuse.codegen.lines.lanes import Lanes, both
from clfuse.codegen.lines.loops import (
    COLUMN_PLACE,
    before,
    column_arguments,
    compute,
    epilogue_lines,
    folding,
    outer_loops,
    partial_lines,
    unasked,
)
from clfuse.dtypes import mask_type
from clfuse.schedule.records import Kernel, Step
from clfuse.schedule.shape.geometry import LONG_SUM
from clfuse.schedule.shape.strips import carried_registers

from .column_moments import AroundGuess
from .moments import SAMPLES
from .scan_loops import PrefixFold, carries_of_columns

DEPTH: Final = 8
"""Rows that are folded at once. Row by row, an accumulator costs a load and a store for each
element, and memory is read one run of a few kilobytes after the other: sums of (4000, 5000) float64
along their columns took 1.8 times the processor time (both runtimes of an EPYC). It divides
`LONG_SUM`, so that sums have their pauses where they had them."""

MAX_DEEP_ITEMS: Final = 12
"""Loads and operations of a body that is repeated for so many rows: longer ones are not slowed down
by their accumulators, and take long to compile."""


def fill(
    kernel: Kernel,
    phases: list[tuple[Kernel, Body, list[Fold]]],
    around: AroundGuess | None,
    k: Any,
) -> None:
    """Fill in what the template needs for a reduction, or a row program; `around` a guess is a pass
    that may stand for its first two phases."""
    body = phases[0][1]
    _begin(kernel, body, k)
    carried = carried_registers(kernel)
    ways = both(kernel, body)
    k.phases = []
    k.moments = None if around is None else _pass_around_a_guess(around, ways)
    for number, phase in enumerate(phases):
        part = _phase(*phase, ways, carried)
        if around is not None and number < 2:
            knows = around.known_of_distances if number else around.known_of_folds
            part.known = _part(ways, lines=knows(ways, part.names)).lines
        k.phases.append(part)
    k.arrays = [line for way in ways for line in way.arrays]


def _begin(kernel: Kernel, body: Body, k: Any) -> None:
    column_arguments(kernel, body, k)
    reduced = range(len(kernel.extents) - kernel.reduced, len(kernel.extents))
    k.outer_loops = outer_loops(kernel, body, list(reduced))
    body.arguments.integer("tile", kernel.strips * kernel.width)
    k.boxed = bool(kernel.where)
    if k.boxed:
        dim, _, end = k.outer_loops[-1]
        k.run_end, k.rows_end = body.run_end("end"), body.rows_end(dim, end)
    k.pause = LONG_SUM
    k.even = kernel.strips if kernel.even else 0


def _part(ways: list[Lanes], **lines: list[list[str]]) -> SimpleNamespace:
    """Lists of lines for the template, by way: of vectors (none where there are none), of single
    columns."""
    part = SimpleNamespace()
    for name, of_ways in lines.items():
        found = [way.around(own) for way, own in zip(ways, of_ways, strict=True)]
        whole = found if ways[0].width > 1 else [[], *found]
        setattr(part, name, [*whole, []][:2])
    return part


def _phase(
    kernel: Kernel, body: Body, folds: list[Fold], ways: list[Lanes], carried: set[int]
) -> SimpleNamespace:
    """One pass down some columns: its loops, and what follows them."""
    names: list[list[tuple[str, str]]] = []
    start: list[list[str]] = []
    pause: list[list[str]] = []
    end: list[list[str]] = []
    for way in ways:
        found = []
        started: list[str] = []
        paused: list[str] = []
        ended: list[str] = []
        for fold in folds:
            value, position = _accumulator(fold, way)
            found.append((value, position))
            started += _started(fold, way.writer, value, position)
            if kernel.compensated and fold.compensates:
                more = _compensated(fold, way, value)
                started += more.start
                paused += more.pause
                ended += more.end
        names.append(found)
        start.append(started)
        pause.append(paused)
        end.append(ended)
    bodies = [_loops(body, folds, ways, names)]
    for sister in kernel.then if kernel.where else ():
        own = beside(folds, sister)
        chosen = [folds.index(fold) for fold, _ in own]
        places = [[of_way[number] for number in chosen] for of_way in names]
        bodies.append(_loops(body.in_boxes(sister), [fold for _, fold in own], ways, places))
    body.begin_scope()
    for number, way in enumerate(ways):
        body.carried = way.carried
        end[number] += _finish(kernel, body, folds, way, names[number], carried)
    part = _part(ways, start=start, pause=pause, finish=end)
    part.bodies, part.names, part.known = bodies, names, None
    part.groups_after = list(body.group_lines)
    body.group_lines.clear()
    return part


def _loops(
    body: Body, folds: list[Fold], ways: list[Lanes], names: list[list[tuple[str, str]]]
) -> SimpleNamespace:
    """What is done with the elements of a body's rows; `names` are, by way, those of the folds."""
    kernel = body.kernel
    depth = _depth(kernel, body)
    if depth > 1:
        kernel = replace(kernel, body=unasked(kernel.body))
    uniform_lines, uniform = before(body, kernel)

    def lines_of(way: Lanes, names: list[tuple[str, str]]) -> list[str]:
        body.carried = way.carried
        lines, registers = compute(body, kernel, way.width, uniform)
        for fold, (value, position) in zip(folds, names, strict=True):
            item, item_position = fold.item(way.writer, registers)
            lines += folding(kernel, fold)(way.writer, value, position, item, item_position)
        return lines

    aligned, streamed = body.are_aligned(), []
    if aligned:  # compilers make one plain store of both where a loop asks at every store
        body.streams = True
        streamed = lines_of(ways[0], names[0])
        body.streams = False
    loop = list(map(lines_of, ways, names))
    return _body_part(body, ways, loop, uniform_lines, depth, aligned, streamed)


def _body_part(
    body: Body,
    ways: list[Lanes],
    loop: list[list[str]],
    uniform: list[str],
    depth: int = 1,
    aligned: str = "",
    streamed: Sequence[str] = (),
) -> SimpleNamespace:
    """The lines of a body for the template; where results are `aligned`, `streamed` ones of
    vectors."""
    b = _part(ways, body=loop)
    b.aligned, b.streamed = aligned, streamed
    b.depth, b.before, b.test = depth, uniform, body.is_within(body.kernel.where)
    b.groups = list(body.group_lines)
    body.group_lines.clear()
    return b


def _pass_around_a_guess(around: AroundGuess, ways: list[Lanes]) -> SimpleNamespace:
    """The loops that guess the means, those around the guess, and whether it was good enough."""
    moments = around.moments
    sample = replace(moments.sample, body=unasked(moments.sample.body))
    sampled = _phase(sample, around.body_of_sample, [around.guess()], ways, set())
    around.carry(ways, sampled.names)
    part = _phase(moments.phase, around.body, around.folds, ways, set())
    around.names = part.names
    along = len(sample.extents) - 1
    return SimpleNamespace(
        sample=sampled,
        samples=SAMPLES,
        part=part,
        check=_part(ways, lines=around.check(ways)).lines,
        kind=moments.kind(),
        dim=along,
        length=around.body.arguments.integer(f"n{along}", sample.extents[along]),
    )


def _depth(kernel: Kernel, body: Body) -> int:
    """How many rows a step down takes.

    What belongs to a row alone is then inside the loop over its columns: loads, which compilers
    move out again, but no operations, which they may not.
    """
    if not kernel.accumulators or len(kernel.body) > MAX_DEEP_ITEMS:
        return 1
    if body.seams and not kernel.where:
        return 1
    if kernel.strips * kernel.width >= kernel.extents[kernel.vector]:
        return 1  # a unit reads whole rows, one after the other
    same, _ = body.split(kernel.body)
    if any(isinstance(item, Step) for item in same):
        return 1
    down = kernel.chunk_length if kernel.chunk == len(kernel.extents) - 1 else kernel.extents[-1]
    return DEPTH if down >= 2 * DEPTH else 1


def _accumulator(fold: Fold, way: Lanes) -> tuple[str, str]:
    """The texts of a fold's value and position in one way."""
    value = way.array(f"q{fold.number}", fold.type_at(way.writer), _mask(fold))
    if not fold.is_argument:
        return value, ""
    return value, way.array(f"z{fold.number}", vector("long", way.width))


def _mask(fold: Fold) -> str:
    """The type of the lanes of what is folded, where these are truths."""
    return mask_type(fold.lane_nbytes) if fold.dtype.kind == "b" else ""


def _started(fold: Fold, writer: Expressions, value: str, position: str) -> list[str]:
    lines = [f"{value} = {fold.identity(writer)};"]
    if position:
        lines.append(f"{position} = ({vector('long', writer.width)})(LONG_MAX);")
    return lines


def _compensated(fold: Fold, way: Lanes, value: str) -> SimpleNamespace:
    """What keeps a sum's total beside its accumulator: at the start, now and then, in the end."""
    kind = fold.type_at(way.writer)
    total = way.array(f"tq{fold.number}", kind)
    error = way.array(f"eq{fold.number}", kind)
    pause = fold.add_to_total(way.writer, value, value)
    if way.width == 1:
        result = fold.total(value)
    else:
        result = f"(isfinite({error}) ? {total} + {error} : {total})"
    return SimpleNamespace(
        start=[f"{total} = {error} = ({kind})(0);"],
        pause=[*pause, f"{value} = {fold.identity(way.writer)};"],
        end=[*pause, f"{value} = {result};"],
    )


def _finish(
    kernel: Kernel,
    body: Body,
    folds: list[Fold],
    way: Lanes,
    names: list[tuple[str, str]],
    carried: set[int],
) -> list[str]:
    """What follows the loops, for one vector or column; keeps what later phases carry."""
    if kernel.chunk >= 0:
        return partial_lines(body, way.writer, folds, names, COLUMN_PLACE)
    results = {}
    for fold, (value, position) in zip(folds, names, strict=True):
        results[fold.accumulator.var] = fold.result(position if fold.is_argument else value)
    computed, stores, registers = epilogue_lines(kernel, body, way.width, results)
    lines = computed + stores
    for var, register in registers.items():
        if var in carried:
            if var not in results:
                kind = way.writer.type_of(register.dtype, register.lane_nbytes)
                element = way.array(f"h{var}_", kind)
                lines.append(f"{element} = {register.text};")
                register = Register(element, register.dtype, register.lane_nbytes)
            way.carried[var] = register
    return lines


def fill_scan(
    kernel: Kernel, body: Body, folds: dict[int, PrefixFold], reading: Callable[..., Any], k: Any
) -> None:
    """Fill in what the template needs for a scan; `reading` writes a `Prefix`."""
    _begin(kernel, body, k)
    ways = both(kernel, body)
    bodies = [body, *[body.in_boxes(sister) for sister in kernel.then]]
    carries = [
        [
            way.array(f"q{fold.number}", fold.fold.type_at(way.writer), _mask(fold.fold))
            for fold in folds.values()
        ]
        for way in ways
    ]
    start = []
    for way, own in zip(ways, carries, strict=True):
        started: list[str] = []
        for fold, carry in zip(folds.values(), own, strict=True):
            fold.carry = carry
            started.append(f"{fold.carry} = {fold.identity(way.writer)};")
            if kernel.chunk >= 0:
                started += carries_of_columns(fold, body, way.writer)
        start.append(started)
    parts = []
    for each in bodies:
        loop = []
        uniform_lines, uniform = before(each, each.kernel)
        each.scan = reading
        for way, own in zip(ways, carries, strict=True):
            for fold, carry in zip(folds.values(), own, strict=True):
                fold.carry = carry
            lines, _ = compute(each, each.kernel, way.width, uniform)
            loop.append(lines)
        parts.append(_body_part(each, ways, loop, uniform_lines))
    none: list[list[str]] = [[] for _ in ways]
    part = _part(ways, start=start, pause=none, finish=none)
    part.bodies, part.groups_after, part.known = parts, [], None
    k.phases, k.moments = [part], None
    k.arrays = [line for way in ways for line in way.arrays]

"""Reductions and row programs on a GPU, whose work-groups fold some results in local memory.

    t0: q0 of elements 0, 8, 16, ...  ->  s0[0]
    t1: q0 of elements 1, 9, 17, ...  ->  s0[1]   ->  barrier  ->  every item folds s0[0 ... 7]

Up to `FOLDED_AT_ONCE` partial results are folded by each work-item alone, so all of them know the
result after one barrier. Of more, the first ones fold so many each before: two barriers, where a
tree of pairs has eight. Sums of floats are added in pairs there, too: in a row, each addition would
round about as much as the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Final

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Register
from clfuse.codegen.lines.folds import Fold, beside
from clfuse.codegen.lines.loops import (
    COLUMN_PLACE,
    before,
    chunk_arguments,
    column_arguments,
    compute,
    decode,
    epilogue_lines,
    folding,
    partial_lines,
)
from clfuse.schedule.records import Kernel
from clfuse.schedule.shape.groups import folding_items, runs_along_rows

__all__ = ["FOLDED_AT_ONCE", "fill"]

FOLDED_AT_ONCE: Final = 16
"""Partial results that one work-item folds one after the other."""

MOST_WAITED_FOR: Final = 2
"""Trees from which on a group need not wait between one unit and the next."""

CHOOSING: Final = frozenset(["minimum", "maximum", "fmin", "fmax"])
"""Folds whose result is one of the values."""

BARRIER: Final = "barrier(CLK_LOCAL_MEM_FENCE);"

Phase = tuple[Kernel, Body, list[Fold], bool]


def fill(kernel: Kernel, phases: Iterable[Phase], body: Body, k: Any) -> str:
    """Fill in what the template needs of these phases; returns the template's name."""
    kept = len(kernel.extents) - kernel.reduced
    k.columns = not runs_along_rows(kernel)
    k.deep = folding_items(kernel)
    k.beside = kernel.work_group // k.deep
    if k.columns:
        column_arguments(kernel, body, k)
    else:
        extents = kernel.extents[:kept]
        k.row_extents = [body.arguments.integer(f"n{dim}", n) for dim, n in enumerate(extents)]
        chunk_arguments(kernel, body, k)
        k.decode = decode(body, list(range(kept)), "row")
    _decode_reduced(kernel, body, k)
    k.seams = any(kernel.seams(kernel.vector))
    k.local_memory = []
    k.phases = []
    k.held_arrays = []
    k.held = kernel.held if any(part.lent for part in kernel.passes) else 0
    k.is_inside = "t < length"
    if k.held and kernel.chunk < 0 and (k.held - 1) * k.deep <= math.prod(kernel.extents[kept:]):
        # All but the last element of a work-item are: no branches between them.
        k.is_inside = f"exists && (nth < {k.held - 1} || t < length)"
    carried: dict[int, Register] = {}
    for phase, phase_body, folds, last in phases:
        phase_body.carried.update(carried)
        k.seams = k.seams or bool(phase_body.seams)
        part, registers = _phase(phase, phase_body, folds, last, k)
        carried.update(registers)
        k.phases.append(part)
    # Each tree has local memory of its own. Between two stores to it lie the barriers of another.
    k.waits = k.deep > 1 and sum(BARRIER in phase.tree for phase in k.phases) < MOST_WAITED_FOR
    return "reduce_groups.cl.mako"


def _decode_reduced(kernel: Kernel, body: Body, k: Any) -> None:
    """Split a work-item's running number ``t`` within a result into the folded indices."""
    kept = len(kernel.extents) - kernel.reduced
    dims = list(range(kept, len(kernel.extents)))
    extents = [
        "(high - low)"
        if dim == kernel.chunk
        else body.arguments.integer(f"n{dim}", kernel.extents[dim])
        for dim in dims
    ]
    index = body.arguments.index_type
    k.length = " * ".join(extents)
    k.decode_reduced = []
    rest = "t"
    for position, dim in enumerate(reversed(dims)):
        name = "j" if dim == kernel.vector else f"i{dim}"
        extent = extents[len(dims) - 1 - position]
        start = " + low" if dim == kernel.chunk else ""
        if position == len(dims) - 1:
            k.decode_reduced.append(f"const {index} {name} = {rest}{start};")
        else:
            following = f"over{dim}"
            k.decode_reduced.append(f"const {index} {following} = {rest} / {extent};")
            k.decode_reduced.append(
                f"const {index} {name} = {rest} - {following} * {extent}{start};"
            )
            rest = following


def _phase(
    kernel: Kernel, body: Body, folds: list[Fold], last: bool, k: Any
) -> tuple[SimpleNamespace, dict[int, Register]]:
    """One pass over a result's elements: its loop, what follows, and the registers that it leaves.

    `shared` runs in every work-item of a result, `own` in one.
    """
    p = SimpleNamespace(start=[], tree=[], shared=[])
    single = body.writer(1)
    first, held = _element(body, folds, k)
    p.bodies = [first]
    for sister in kernel.then if kernel.where else ():
        own = [fold for _, fold in beside(folds, sister)]
        p.bodies.append(_element(body.in_boxes(sister), own, k)[0])
    results: dict[int, Register] = {}
    for fold in folds:
        number = str(fold.number)
        p.start += fold.start(single, f"q{number}", f"z{number}")
        if _compensates(kernel, fold):
            p.start += fold.start_total(single, f"q{number}")
        text = f"z{number}" if fold.is_argument else f"q{number}"
        results[fold.accumulator.var] = fold.result(text)
    if folds and k.deep > 1:
        k.local_memory += _local_memory(kernel, folds, single, k.deep * k.beside)
        p.tree += _tree(kernel, folds, single, k)
    for fold in folds:
        if _compensates(kernel, fold):
            p.tree.append(f"q{fold.number} = {fold.total(f'q{fold.number}')};")
    if kernel.chunk >= 0:
        names = [(f"q{fold.number}", f"z{fold.number}") for fold in folds]
        place = COLUMN_PLACE if k.columns else "row * chunks + piece"
        p.own = partial_lines(body, single, folds, names, place)
        return p, results
    body.begin_scope()
    computed, stores, results = epilogue_lines(kernel, body, 1, results)
    computed = [*body.group_lines, *computed]
    body.group_lines.clear()
    p.shared, p.own = ([], computed + stores) if last else (computed, stores)
    return p, {**results, **held}


def _compensates(kernel: Kernel, fold: Fold) -> bool:
    return kernel.compensated and fold.compensates


def _element(body: Body, folds: list[Fold], k: Any) -> tuple[SimpleNamespace, dict[int, Register]]:
    """What is done with an element; in boxes, with one of those. And the registers that it keeps
    for later phases."""
    kernel, single = body.kernel, body.writer(1)
    uniform_lines, uniform = before(body, kernel)
    lines, registers = compute(body, kernel, 1, uniform)
    held = {}
    for source in sorted(kernel.lent):
        register = registers[source]
        name = f"h{len(k.held_arrays)}"
        kind = single.type_of(register.dtype, register.lane_nbytes)
        k.held_arrays.append(f"{kind} {name}[{k.held}];")
        lines.append(f"{name}[nth] = {register.text};")
        held[source] = Register(f"{name}[nth]", register.dtype, register.lane_nbytes)
    for fold in folds:
        number = str(fold.number)
        item, position = fold.item(single, registers)
        if _compensates(kernel, fold):
            lines = lines + fold.add_to_total(single, item, f"q{number}")
        else:
            fold_in = folding(kernel, fold)
            lines = lines + fold_in(single, f"q{number}", f"z{number}", item, position)
    b = SimpleNamespace(test=body.is_within(kernel.where))
    b.lines = [*body.group_lines, *uniform_lines, *lines]
    body.group_lines.clear()
    return b, held


def _local_memory(kernel: Kernel, folds: list[Fold], single: Expressions, group: int) -> list[str]:
    lines = []
    for fold in folds:
        kind = fold.type_at(single)
        lines.append(f"__local {kind} s{fold.number}[{group}];")
        if fold.is_argument:
            lines.append(f"__local long y{fold.number}[{group}];")
        if _compensates(kernel, fold):
            lines.append(f"__local {kind} w{fold.number}[{group}];")
    return lines


def _tree(kernel: Kernel, folds: list[Fold], single: Expressions, k: Any) -> list[str]:
    """What the work-items of a result have folded, put together: all of them have the whole."""
    first = f"across * {k.deep}" if not k.columns else "across"
    step = 1 if not k.columns else k.beside

    def place(item: str) -> str:
        return f"{first} + ({item}){f' * {step}' if step > 1 else ''}"

    lines = _kept(kernel, folds, place("item"))
    lines.append(BARRIER)
    heads = k.deep
    if k.deep > FOLDED_AT_ONCE:
        heads = k.deep // FOLDED_AT_ONCE

        def below(other: str) -> str:
            return place(f"item + {other} * {heads}")

        lines += [
            f"if (item < {heads}) {{",
            *_joined(kernel, folds, single, FOLDED_AT_ONCE, below),
            *_kept(kernel, folds, place("item")),
            "}",
            BARRIER,
        ]
    return lines + _joined(kernel, folds, single, heads, place)


def _kept(kernel: Kernel, folds: list[Fold], place: str) -> list[str]:
    """What a work-item has folded, to local memory."""
    lines = []
    for fold in folds:
        number = fold.number
        if _compensates(kernel, fold):
            lines += [f"s{number}[{place}] = tq{number};", f"w{number}[{place}] = eq{number};"]
            continue
        lines.append(f"s{number}[{place}] = q{number};")
        if fold.is_argument:
            lines.append(f"y{number}[{place}] = z{number};")
    return lines


def _joined(
    kernel: Kernel,
    folds: list[Fold],
    single: Expressions,
    count: int,
    place: Callable[[str], str],
) -> list[str]:
    """What lies at places 0 to `count` of local memory, folded.

    All of it is loaded before anything is decided by it: ``a != a || a >= s0[1]`` would be a branch
    and a load, one after the other.
    """
    lines, following = [], []
    for fold in folds:
        number = fold.number
        values = [f"s{number}[{place(str(other))}]" for other in range(count)]
        if _compensates(kernel, fold):
            here = f"s{number}[{place('other')}]"
            lines.append(f"tq{number} = {values[0]};")
            lines.append(f"eq{number} = w{number}[{place('0')}];")
            following += fold.add_to_total(single, here, f"q{number}")
            following.append(f"eq{number} += w{number}[{place('other')}];")
        elif fold.compensates:
            lines.append(f"q{number} = {_in_pairs(fold, single, values)};")
        else:
            lines += _loaded_and_folded(fold, single, values, [
                f"y{number}[{place(str(other))}]" for other in range(count)
            ])  # fmt: skip
    if following:
        lines += [f"for (int other = 1; other < {count}; other++) {{", *following, "}"]
    return lines


def _loaded_and_folded(
    fold: Fold, single: Expressions, values: list[str], positions: list[str]
) -> list[str]:
    """Values in local memory, folded in registers: neighbours first where the one in front wins if
    both are as good, so that this is the same as one after the other in fewer steps."""
    number, kind = fold.number, fold.type_at(single)
    names = [f"c{number}_{place}" for place in range(len(values))]
    lines = [f"const {kind} {name} = {value};" for name, value in zip(names, values, strict=True)]
    is_plain = type(fold) is Fold and fold.dtype.kind != "c"
    if is_plain and fold.accumulator.name in CHOOSING:
        while len(names) > 1:
            last = []
            for place in range(0, len(names) - 1, 2):
                name = f"{names[place]}_{len(names)}"
                one = fold.combined(single, names[place], names[place + 1])
                lines.append(f"const {kind} {name} = {one};")
                last.append(name)
            names = last + names[len(names) - len(names) % 2 :]
        return ["{", *lines, f"q{number} = {names[0]};", "}"]
    places = ["0"] * len(values)
    if fold.is_argument:
        places = [f"d{number}_{place}" for place in range(len(values))]
        lines += [f"const long {name} = {text};"
                  for name, text in zip(places, positions, strict=True)]
    lines.append(f"q{number} = {names[0]};")
    if fold.is_argument:
        lines.append(f"z{number} = {places[0]};")
    for name, where in zip(names[1:], places[1:], strict=True):
        lines += fold.fold(single, f"q{number}", f"z{number}", name, where)
    return ["{", *lines, "}"]


def _in_pairs(fold: Fold, single: Expressions, values: list[str]) -> str:
    """A power of two of values, added up as a tree."""
    while len(values) > 1:
        half = len(values) // 2
        pairs = zip(values[:half], values[half:], strict=True)
        values = [fold.combined(single, one, other) for one, other in pairs]
    return values[0]

"""Scans as the contents of their templates, along or across rows; called by `render.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ..plan.scans import needed
from ..plan.schedule import Kernel, Prefix
from . import strips
from .body import Body
from .loops import (
    before,
    chunk_arguments,
    column_arguments,
    compute,
    decode,
    mask_lanes,
    outer_loops,
)
from .scans import (
    PrefixFold,
    carries_before,
    carries_of_columns,
    carries_of_group,
    folds_of,
    group_lines,
    lane_lines,
    neutral_line,
    running_lines,
)


def fill(kernel: Kernel, body: Body, k: SimpleNamespace) -> str:
    """Fill in what the template needs; returns the template's name."""
    if kernel.vector == len(kernel.extents) - 1:
        _scan_rows(kernel, body, k)
        return "scan_rows.cl.mako"
    if kernel.schedule == "cpu":
        strips.fill_scan(kernel, body, folds_of(kernel, mask_lanes), k)
        return "reduce_strips.cl.mako"
    _scan_columns(kernel, body, k)
    return "reduce_columns.cl.mako"


def _scan_rows(kernel: Kernel, body: Body, k: Any) -> None:
    """Lanes, or the work-items of a group, are neighbours of a row."""
    arguments = body.arguments
    axis = kernel.vector
    width, group = kernel.width, kernel.work_group
    single = body.writer(1)
    folds = folds_of(kernel, mask_lanes)
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(axis)]
    k.extent = arguments.integer(f"n{axis}", kernel.extents[axis])
    k.group = group
    chunk_arguments(kernel, body, k)
    k.decode = decode(body, list(range(axis)), "row")
    k.start, k.local_memory = [], []
    for fold in folds.values():
        k.start += fold.start(single)
        if kernel.schedule == "gpu":
            k.local_memory.append(f"__local {fold.fold.type_at(single)} s{fold.number}[{group}];")
        elif kernel.chunk >= 0:
            k.start += carries_before(fold, body, single)
    k.run_end = body.run_end("high") if body.seams else ""
    bodies = [kernel, *kernel.then]
    if kernel.schedule == "gpu":
        every = list(folds.values())
        if kernel.chunk >= 0:
            k.start += carries_of_group(every, body, single, group)
        k.declared = [fold.neutral_operand(single) for fold in every]
        k.together = group_lines(every, single, group)
        k.bodies = [_group_body(kernel, body, folds, each) for each in bodies]
    else:
        if width > 1:
            writers = {lanes: body.writer(lanes) for lanes in (1, width)}
            k.start += [neutral_line(fold, writers, width) for fold in folds.values()]
        k.bodies = [_lane_body(kernel, body, folds, each) for each in bodies]
    k.bodies[-1].test = ""  # what is left


def _body_of(kernel: Kernel, body: Body, each: Kernel) -> Body:
    """The body of one that runs in boxes of the range of `kernel`, or `body` for itself."""
    if each is kernel:
        return body
    like = replace(kernel, body=each.body, stores=each.stores, where=each.where, then=[])
    made = Body(like, body.traits, body.arguments, body.preamble, body.group_numbers)
    made.seams = body.seams
    return made


def _lane_body(
    kernel: Kernel, first: Body, folds: dict[int, PrefixFold], each: Kernel
) -> SimpleNamespace:
    """What is done in boxes of a row on a CPU, vector by vector and one by one."""
    body = _body_of(kernel, first, each)
    b = SimpleNamespace(test=body.is_within(each.where), vector_body=[])
    b.before, uniform = before(body, body.kernel)
    body.scan = _by_fold(folds, running_lines)
    b.scalar_body, _ = compute(body, body.kernel, 1, uniform)
    if kernel.width > 1:
        body.scan = _by_fold(folds, lane_lines)
        b.vector_body, _ = compute(body, body.kernel, kernel.width, uniform)
    b.lead = body.first_aligned()
    b.groups = body.group_lines
    return b


def _group_body(
    kernel: Kernel, first: Body, folds: dict[int, PrefixFold], each: Kernel
) -> SimpleNamespace:
    """What a work-item of a GPU does with an element before the group scans together, and after.

    Several bodies compute again afterwards what both parts need: the first part is over by then.
    """
    body = _body_of(kernel, first, each)
    single = body.writer(1)
    b = SimpleNamespace(test=body.is_within(each.where), after=[])
    b.before, uniform = before(body, body.kernel)
    _, inside = body.split(each.body)
    own = {item.var: item for item in inside if isinstance(item, Prefix)}
    needs = needed(inside, {item.operand for item in own.values()})
    registers = dict(uniform)
    b.first = body.lines(needs, 1, registers)
    b.first += [folds[var].taken(single, registers, item) for var, item in own.items()]
    if kernel.then:
        registers, needs = dict(uniform), []
    registers.update({var: folds[var].register(f"r{folds[var].prefix.var}") for var in own})
    after = [item for item in inside if item not in needs and item.var not in own]
    b.after = body.lines(after, 1, registers)
    for store in each.stores:
        b.after += body.store(store, 1, registers[store.var])
    b.groups = body.group_lines
    return b


def _by_fold(folds: dict[int, PrefixFold], write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda item, writer, registers, name: write(
        folds[item.var].reading(item), writer, registers, name
    )


def _scan_columns(kernel: Kernel, body: Body, k: Any) -> None:
    """A work-item of a GPU walks down a column."""
    folds = folds_of(kernel, mask_lanes)
    body.scan = _by_fold(folds, running_lines)
    column_arguments(kernel, body, k)
    k.outer_loops = outer_loops(kernel, body, [len(kernel.extents) - 1])
    k.seams = False  # a scan reads joined arrays from memory
    writer = body.writer(1)
    part = SimpleNamespace(start=[], finish=[])
    part.before, uniform = before(body, kernel)
    part.body, _ = compute(body, kernel, 1, uniform)
    for fold in folds.values():
        part.start += fold.start(writer)
        if kernel.chunk >= 0:
            part.start += carries_of_columns(fold, body, writer)
    part.groups = body.group_lines
    k.phases = [part]

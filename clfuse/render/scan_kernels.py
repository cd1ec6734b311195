"""Scans as the contents of their templates, along or across rows; called by `render.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..plan.scans import needed
from ..plan.schedule import Kernel
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
    k.before, uniform = before(body, kernel)
    k.start, k.local_memory, k.stores, k.vector_body = [], [], [], []
    _, inside = body.split(kernel.body)
    for fold in folds.values():
        k.start += fold.start(single)
        if kernel.schedule == "gpu":
            k.local_memory.append(f"__local {fold.fold.type_at(single)} s{fold.number}[{group}];")
        elif kernel.chunk >= 0:
            k.start += carries_before(fold, body, single)
    if kernel.schedule == "gpu":
        every = list(folds.values())
        if kernel.chunk >= 0:
            k.start += carries_of_group(every, body, single, group)
        first = needed(inside, {fold.prefix.operand for fold in every})
        after = [item for item in inside if item not in first and item.var not in folds]
        registers = dict(uniform)
        names = [f"r{var}" for var in folds]
        k.scalar_body = body.lines(first, 1, registers)
        k.scalar_body += group_lines(every, single, registers, names, group)
        k.scalar_body += body.lines(after, 1, registers)
        for store in kernel.stores:
            k.stores += body.store(store, 1, registers[store.var])
    else:
        body.scan = _by_fold(folds, running_lines)
        k.scalar_body, _ = compute(body, kernel, 1, uniform)
        if width > 1:
            writers = {lanes: body.writer(lanes) for lanes in (1, width)}
            k.start += [neutral_line(fold, writers, width) for fold in folds.values()]
            body.scan = _by_fold(folds, lane_lines)
            k.vector_body, _ = compute(body, kernel, width, uniform)
    k.groups = body.group_lines


def _by_fold(folds: dict[int, PrefixFold], write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda item, writer, registers, name: write(folds[item.var], writer, registers, name)


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

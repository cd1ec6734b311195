"""Scans, along or across rows, as the contents of their templates."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.loops import (
    before,
    chunk_arguments,
    column_arguments,
    compute,
    decode,
    mask_lanes,
    outer_loops,
)
from clfuse.schedule.records import Kernel

from . import scan_tiles, strips
from .scan_loops import (
    PrefixFold,
    carries_before,
    carries_of_columns,
    folds_of,
    lane_lines,
    neutral_line,
    running_lines,
)
from .writing import Writing


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill in what the template needs; returns the template's name."""
    body, k = writing.body(kernel), writing.context
    if kernel.vector == len(kernel.extents) - 1:
        if kernel.schedule == "gpu":
            return scan_tiles.fill(kernel, body, k)
        _scan_rows(kernel, body, k)
        return "scan_rows.cl.mako"
    if kernel.schedule == "cpu":
        folds = folds_of(kernel, mask_lanes)
        strips.fill_scan(kernel, body, folds, _by_fold(folds, running_lines), k)
        return "reduce_strips.cl.mako"
    _scan_columns(kernel, body, k)
    return "scan_columns.cl.mako"


def _scan_rows(kernel: Kernel, body: Body, k: Any) -> None:
    """Lanes are neighbours of a row."""
    arguments = body.arguments
    axis, width = kernel.vector, kernel.width
    single = body.writer(1)
    folds = folds_of(kernel, mask_lanes)
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(axis)]
    k.extent = arguments.integer(f"n{axis}", kernel.extents[axis])
    chunk_arguments(kernel, body, k)
    k.decode = decode(body, list(range(axis)), "row")
    k.start = []
    for fold in folds.values():
        k.start += fold.start(single)
        if kernel.chunk >= 0:
            k.start += carries_before(fold, body, single)
    k.run_end = body.run_end("high") if body.seams else ""
    bodies = [body, *[body.in_boxes(sister) for sister in kernel.then]]
    if width > 1:
        writers = {lanes: body.writer(lanes) for lanes in (1, width)}
        k.start += [neutral_line(fold, writers, width) for fold in folds.values()]
    k.bodies = [_lane_body(each, folds) for each in bodies]
    k.bodies[-1].test = ""  # what is left


def _lane_body(body: Body, folds: dict[int, PrefixFold]) -> SimpleNamespace:
    """What is done in boxes of a row on a CPU, vector by vector and one by one."""
    kernel = body.kernel
    b = SimpleNamespace(test=body.is_within(kernel.where), vector_body=[])
    b.before, uniform = before(body, kernel)
    body.scan = _by_fold(folds, running_lines)
    b.scalar_body, _ = compute(body, kernel, 1, uniform)
    if kernel.width > 1:
        body.scan = _by_fold(folds, lane_lines)
        b.vector_body, _ = compute(body, kernel, kernel.width, uniform)
    b.lead = body.first_aligned()
    b.groups = body.group_lines
    return b


def _by_fold(folds: dict[int, PrefixFold], write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda item, writer, registers, name: write(
        folds[item.var].reading(item), writer, registers, name
    )


def _scan_columns(kernel: Kernel, body: Body, k: Any) -> None:
    """A work-item of a GPU walks down a column."""
    folds = folds_of(kernel, mask_lanes)
    column_arguments(kernel, body, k)
    k.outer_loops = outer_loops(kernel, body, [len(kernel.extents) - 1])
    k.seams = bool(body.seams)
    writer = body.writer(1)
    part = SimpleNamespace(start=[], finish=[], bodies=[])
    for each in [body, *[body.in_boxes(sister) for sister in kernel.then]]:
        each.scan = _by_fold(folds, running_lines)
        uniform_lines, uniform = before(each, each.kernel)
        lines, _ = compute(each, each.kernel, 1, uniform)
        b = SimpleNamespace(test=each.is_within(each.kernel.where))
        b.lines = [*each.group_lines, *uniform_lines, *lines]
        part.bodies.append(b)
    for fold in folds.values():
        part.start += fold.start(writer)
        if kernel.chunk >= 0:
            part.start += carries_of_columns(fold, body, writer)
    k.phases = [part]

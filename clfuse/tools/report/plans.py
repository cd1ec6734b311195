"""The plans of a run as HTML: what each kernel computes, and why there is more than one."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from clfuse.errors import ClfuseError

from .collector import PlanSeen
from .summary import Summary, operations_of_step
from .words import size, time_of, times

__all__ = ["plans"]

MOST_PLANS: Final = 60

MOST_STEPS: Final = 80
"""Of one plan."""

WITH_SOURCES: Final = 12
"""Plans whose OpenCL C is shown."""

MOST_RENDERED: Final = 6
"""Kernels that are written once more to be shown, of plans none of whose launches was seen: it
takes milliseconds a kernel."""

LONGEST_SOURCE: Final = 8000
"""Characters of one kernel's."""

MOST_OPERATIONS: Final = 40
"""Names of operations of one step."""

_escape = html.escape


def _elapsed(plan: PlanSeen) -> float:
    return sum([entry.total_ns for entries in plan.entries.values() for entry in entries])


def _named(names: Sequence[str]) -> str:
    """Operations in order, equal neighbours as one."""
    parts = []
    for name, equal in groupby(names):
        number = len(list(equal))
        parts.append(name if number == 1 else f"{number} x {name}")
    more = f", and {len(parts) - MOST_OPERATIONS} more" if len(parts) > MOST_OPERATIONS else ""
    return ", ".join(parts[:MOST_OPERATIONS]) + more


def _lines(numbers: Sequence[int], summary: Summary) -> str:
    places = {place for number in numbers if (place := summary.place(number)) is not None}
    script = summary.circumstances.script
    names = [
        str(line) if path == script else f"{summary.circumstances.title(path)}:{line}"
        for path, line in sorted(places)
    ]
    return ("line " if len(names) == 1 else "lines ") + ", ".join(names) if names else ""


def _steps(plan: PlanSeen, summary: Summary) -> str:
    steps = plan.schedule.steps
    rows = []
    for number, step in enumerate(steps[:MOST_STEPS]):
        entries = [each[number] for each in plan.entries.values()]
        ran = [entry for entry in entries if entry.count]
        name = ran[0].name if ran else getattr(step[0], "label", "") or "a step"
        positions = plan.computed[number]
        shares = [n for entry in ran for n in entry.shares] or [plan.lines[p] for p in positions]
        told = ""
        if ran:
            elapsed = sum([entry.total_ns for entry in ran])
            launches = times(sum([entry.count for entry in ran]))
            told = f": {launches}, {time_of(elapsed)}, {size(ran[0].nbytes)} each"
        operations = _named(operations_of_step(step, plan, positions))
        rows.append(
            f"<li><code>{_escape(name)}</code> {_escape(_lines(shares, summary))}{told}"
            f'<br><span class="quiet">{_escape(operations)}</span></li>'
        )
    left = len(steps) - MOST_STEPS
    return f"<ol>{''.join(rows)}</ol>" + (f"<p>And {left} more steps.</p>" if left > 0 else "")


def _cuts(plan: PlanSeen, summary: Summary) -> str:
    from .provenance import position_of_cut

    cuts = plan.schedule.cuts
    if not cuts:
        return '<p class="quiet">No value goes through memory that nobody asked for.</p>'
    rows = []
    for cut in cuts[:MOST_STEPS]:
        position = position_of_cut(cut, plan.schedule)
        where = "" if position is None else _lines([plan.lines[position]], summary)
        rows.append(
            f'<li><span class="cut">cut</span> {_escape(cut.what)} ({size(cut.nbytes)})'
            f" {_escape(where)}: {_escape(cut.reason)}</li>"
        )
    return f'<ul class="cuts">{"".join(rows)}</ul>'


def _sources(plan: PlanSeen) -> str:
    seen: dict[str, str] = {}
    for entries in plan.entries.values():
        for entry in entries:
            if entry.source:
                seen.setdefault(entry.name, entry.source)
    if not seen:
        from clfuse.engine.explain import explained

        try:
            kernels = explained(plan.schedule, plan.traits, MOST_RENDERED)
        except ClfuseError as error:  # a kernel that the device refuses, for one
            return f'<p class="quiet">Its sources cannot be written: {_escape(str(error))}</p>'
        seen = {kernel.name: kernel.source for kernel in kernels if kernel.source}
    texts = []
    for name, source in list(seen.items())[:MOST_STEPS]:
        text = source[max(source.find("__kernel"), 0) :].rstrip()
        short = text[:LONGEST_SOURCE] + (" ..." if len(text) > LONGEST_SOURCE else "")
        texts.append(
            f"<details><summary>OpenCL C of <code>{_escape(name)}</code></summary>"
            f"<pre>{_escape(short)}</pre></details>"
        )
    return "".join(texts)


def _plan(plan: PlanSeen, summary: Summary, *, is_sourced: bool) -> str:
    asked = _lines(list(plan.looks), summary)
    runs = sum(plan.looks.values())
    ran = f"ran {times(runs)} for {asked}" if runs else "was made, and did not run while watched"
    if plan.is_traced:
        ran += " (by jit)"
    launches, cuts = len(plan.schedule.steps), len(plan.schedule.cuts)
    title = (
        f"Plan {plan.number}: {launches} step{'s' if launches > 1 else ''}, {cuts}"
        f" cut{'s' if cuts != 1 else ''}, {ran}, {time_of(_elapsed(plan))}"
    )
    sources = _sources(plan) if is_sourced else ""
    return (
        f'<details class="plan" id="plan-{plan.number}"><summary>{_escape(title)}</summary>'
        f"{_steps(plan, summary)}{_cuts(plan, summary)}{sources}</details>"
    )


def plans(summary: Summary, chosen: Sequence[PlanSeen] | None = None) -> str:
    """The plans that ran, the longest first."""
    every = summary.collector.plans
    if not every:
        return '<p class="quiet">None was made.</p>'
    shown = sorted(every, key=lambda plan: -_elapsed(plan)) if chosen is None else list(chosen)
    parts = [
        _plan(plan, summary, is_sourced=number < WITH_SOURCES)
        for number, plan in enumerate(shown[:MOST_PLANS])
    ]
    left = len(every) + summary.collector.plans_left - len(parts)
    if left > 0:
        parts.append(f'<p class="quiet">And {left} more plans.</p>')
    return "".join(parts)

"""The page: a summary as one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any, Final

from . import timeline
from .advice import Advice, advice
from .collector import PlanSeen
from .places import STATES
from .plans import plans
from .summary import Circumstances, File, KernelSeen, Line, Summary
from .words import count, rate, short_path, size, time_of, times

__all__ = ["MOST_NBYTES", "render"]

MOST_NBYTES: Final = 5_000_000
"""Of a page."""

MOST_LINES: Final = 4000
"""Lines of source in full; of longer programs those at which something happened, and some"
" around."""

AROUND: Final = 3

MOST_COLUMNS: Final = 300

MOST_KERNELS: Final = 200
"""Rows of the table of kernels."""

_escape = html.escape


def _text_of(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _facts(summary: Summary) -> str:
    seen = summary.collector
    counted = summary.counted
    awaited = [build for build in seen.builds if not build.is_behind]
    waits = sum([build.end_ns - build.start_ns for build in awaited])
    facts = [
        (time_of(summary.elapsed_ns), "the program"),
        (time_of(summary.device_ns), "kernels on the device"),
        (count(counted["kernels_launched"]), "launches of kernels"),
        (count(counted["host_evaluations"]), "evaluations by NumPy"),
        (count(counted["fallbacks"]), "calls that no kernel does"),
        (time_of(waits), f"waiting for builds, {len(awaited)} of {len(seen.builds)}"),
        (size(max([each[1] for each in seen.memory], default=0)), "memory of arrays at the most"),
    ]
    moved = counted["bytes_to_device"] + counted["bytes_to_host"]
    if moved:
        facts.append((size(moved), "copied between host and device"))
    if summary.circumstances.copy_rate:
        copied = f"{summary.circumstances.copy_rate / 1e9:.1f} GB/s"
        facts.append((copied, "speed of a copy on the device"))
    items = "".join([f"<li><b>{_escape(value)}</b>{_escape(what)}</li>" for value, what in facts])
    went = summary.went()
    where = f'<p id="went">Where the time of the program went: {_escape(went)}.</p>' if went else ""
    return f'<ul class="facts">{items}</ul>{where}' + _notes(summary)


def _notes(summary: Summary) -> str:
    seen = summary.collector
    notes = []
    if summary.circumstances.outcome:
        notes.append(
            f'<p class="warn">The program did not come to its end: '
            f"{_escape(summary.circumstances.outcome)}. The report is of what ran before.</p>"
        )
    if summary.circumstances.unused:
        notes.append(f'<p class="warn" id="unused">{_escape(summary.circumstances.unused)}</p>')
    elif not summary.counted["kernels_launched"]:
        notes.append(
            "<p>No kernel ran: NumPy computed what there was, as is quicker for small arrays"
            " (<code>CLFUSE_HOST_US</code>) and until an expression has earned a kernel"
            " (<code>CLFUSE_BUILD_AFTER_MS</code>).</p>"
        )
    if seen.watched_share < 0.98:
        notes.append(
            f"<p>Evaluations came so quickly that {100 * seen.watched_share:.0f}% of the time"
            " they were"
            " watched one by one; launches of the rest of the time are counted, and spread over"
            " those"
            f" that were watched. The time of {count(sum(e.timed for e in summary.of_entry))}"
            " launches"
            " was measured.</p>"
        )
    if seen.unseen:
        notes.append(f"<p>Of {count(seen.unseen)} launches it is not known which they were.</p>")
    return "".join(notes)


def _advice(summary: Summary) -> str:
    found = advice(summary)
    if not found:
        return '<p id="advice">No rule has anything to say of this run.</p>'
    parts = []
    for each in found:
        link = f"#{_anchor(summary, each.path, each.line)}"
        parts.append(
            f'<div class="advice" data-rule="{each.rule}"><h3><a'
            f' href="{link}">{_escape(each.title)}</a>{_saved(each, summary)}'
            f"</h3><p>{_coded(each.text)}</p></div>"
        )
    return f'<div id="advice">{"".join(parts)}</div>'


def _saved(piece: Advice, summary: Summary) -> str:
    """How much of the run a piece of advice is about."""
    share = min(piece.saves_ns / max(summary.elapsed_ns, 1), 1.0)
    if round(100 * share) < 1:
        return ""
    title = "what the run would be shorter if this took no time at all"
    return f' <span class="quiet" title="{title}">up to {100 * share:.0f}% of the run</span>'


def _coded(text: str) -> str:
    """Text in which `this` is code."""
    parts = _escape(text).split("`")
    return "".join([f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(parts)])


def _anchor(summary: Summary, path: str, line: int) -> str:
    number = [file.path for file in summary.files].index(path)
    return f"f{number}-{line}"


# -- the table of lines ----------------------------------------------------------------------------


def _bar(kind: str, elapsed_ns: float, most_ns: float, title: str) -> str:
    if elapsed_ns < 1000:
        return f'<td class="bar {kind}"></td>'
    width = 100 * elapsed_ns / max(most_ns, 1)
    return (
        f'<td class="bar {kind}" title="{_escape(title)}"><i style="width:{width:.1f}%"></i>'
        f"<span>{time_of(elapsed_ns)}</span></td>"
    )


def _fused_with(line: Line, path: str, summary: Summary) -> str:
    others = {
        place for kernel in line.kernels for place in kernel.lines if place != (path, line.number)
    }
    return _list_of_lines(others, path, summary.circumstances)


def _list_of_lines(places: Iterable[tuple[str, int]], path: str, about: Circumstances) -> str:
    names = []
    for file, number in sorted(places, key=lambda place: (place[0] != path, place)):
        names.append(str(number) if file == path else f"{about.title(file)}:{number}")
    return ", ".join(names)


def _notes_of_line(line: Line, path: str, summary: Summary) -> str:
    notes = []
    fused = _fused_with(line, path, summary)
    if fused:
        notes.append(f"<b>in a kernel with</b> {_escape(fused)}")
    if line.evaluations >= 1:
        notes.append(f"<b>asks for values</b> {times(line.evaluations)}")
    for (name, reason), calls in line.fallbacks.items():
        why = f": {reason}" if reason else ""
        notes.append(f'<b class="warn">fell back</b> {_escape(name)}, {times(calls)}{_escape(why)}')
    for why, (often, elapsed_ns) in line.numpy.items():
        taken = f"{times(often)}, {time_of(elapsed_ns)}"
        notes.append(f"<b>NumPy computed</b> {taken}: {_escape(why)}")
    for kernel in line.kernels:
        if kernel.is_host:
            notes.append(
                f"<b>library on the host</b> {_escape(kernel.name)}, {times(kernel.count)},"
                f" {time_of(kernel.elapsed_ns)}"
            )
    if line.builds:
        spent = sum([build.end_ns - build.start_ns for build in line.builds])
        notes.append(f"<b>waited for builds</b> of {len(line.builds)} kernels, {time_of(spent)}")
    for is_to_device, copied in line.copies.items():
        way = "to the device" if is_to_device else "to the host"
        notes.append(
            f"<b>waited for copies</b> {way}: {count(copied.count)}, {size(copied.nbytes)},"
            f" {time_of(copied.elapsed_ns)}"
        )
    if line.held_nbytes:
        notes.append(f"<b>holds</b> {size(line.held_nbytes)} where memory is largest")
    return "".join([f"<span>{note}</span> " for note in notes])


def _states_of(line: Line) -> str:
    parts = sorted(line.host.items(), key=lambda item: -item[1])
    return "\n".join([f"{STATES[state]}: {time_of(elapsed)}" for state, elapsed in parts])


def _speed(line: Line, summary: Summary) -> str:
    if not line.device_ns or not line.nbytes:
        return ""
    copy_rate = summary.circumstances.copy_rate
    share = f" ({100e9 * line.nbytes / line.device_ns / copy_rate:.0f}%)" if copy_rate else ""
    return rate(line.nbytes, line.device_ns) + share


def _row(line: Line, file: File, summary: Summary, most: tuple[float, float]) -> str:
    anchor = _anchor(summary, file.path, line.number)
    kernels = " ".join([str(kernel.number) for kernel in line.kernels])
    data = f' data-kernels="{kernels}"' if kernels else ""
    kinds = "idle" if line.is_idle else "busy works" if kernels else "busy"
    text = line.text if len(line.text) <= MOST_COLUMNS else line.text[:MOST_COLUMNS] + " ..."
    return (
        f'<tr id="{anchor}" class="{kinds}"{data}>'
        f'<td class="number"><a href="#{anchor}">{line.number}</a></td>'
        f'<td class="source">{_escape(text)}</td>'
        + _bar("host", line.host_ns, most[0], _states_of(line))
        + _bar("device", line.device_ns, most[1], "its part of the kernels that it shares")
        + f"<td>{count(line.launches) if line.launches else ''}</td>"
        f"<td>{size(line.nbytes) if line.nbytes else ''}</td>"
        f"<td>{_speed(line, summary)}</td>"
        f'<td class="notes">{_notes_of_line(line, file.path, summary)}</td></tr>'
    )


def _shown(file: File) -> list[Line | None]:
    """The lines of a file that are shown; None stands for those between that are not."""
    if len(file.lines) <= MOST_LINES:
        return list(file.lines)
    near = {
        number
        for line in file.lines
        if not line.is_idle
        for number in range(line.number - AROUND, line.number + AROUND + 1)
    }
    found: list[Line | None] = []
    for line in file.lines:
        if line.number in near:
            found.append(line)
        elif found and found[-1] is not None:
            found.append(None)
    return found[: 2 * MOST_LINES]


HEAD: Final = (
    '<thead><tr><th scope="col"></th><th scope="col" class="left">source</th>'
    '<th scope="col" title="sampled: Python, and all that it waits for">host</th>'
    '<th scope="col" title="by the device\'s clock; lines that share a kernel have their parts'
    ' of it'
    ' by their operations">device</th>'
    '<th scope="col" title="of kernels that this line has a part of">launches</th>'
    '<th scope="col" title="global memory, each array once a kernel">moved</th>'
    '<th scope="col" title="and in percent of the speed of a copy">bandwidth</th>'
    '<th scope="col" class="left">what happened</th></tr></thead>'
)


def _lines(summary: Summary) -> str:
    every = [line for _, line in summary.all_lines()]
    longest = max([line.host_ns for line in every], default=0)
    most = longest, max([line.device_ns for line in every], default=0.0)
    parts = []
    for file in summary.files:
        if len(summary.files) > 1:
            title = summary.circumstances.titles.get(file.path) or short_path(file.path)
            parts.append(f"<h3>{_escape(title)}</h3>")
        if not file.lines:
            parts.append('<p class="quiet">Its source cannot be read.</p>')
            continue
        rows = [
            '<tr class="idle"><td></td><td class="source quiet">...</td><td colspan="6"></td></tr>'
            if line is None
            else _row(line, file, summary, most)
            for line in _shown(file)
        ]
        table = f"<table>{HEAD}<tbody>{''.join(rows)}</tbody></table>"
        parts.append(f'<div class="scroll">{table}</div>')
    return "\n".join(parts)


# -- kernels ---------------------------------------------------------------------------------------


def _kernel_row(kernel: KernelSeen, summary: Summary) -> str:
    copy_rate = summary.circumstances.copy_rate
    speed = rate(kernel.nbytes, kernel.elapsed_ns) if kernel.nbytes else ""
    share = ""
    if copy_rate and kernel.nbytes and kernel.elapsed_ns:
        share = f"{100e9 * kernel.nbytes / kernel.elapsed_ns / copy_rate:.0f}%"
    about = summary.circumstances
    name = kernel.name + (" (host library)" if kernel.is_host else "")
    return (
        f'<tr data-kernels="{kernel.number}"><td class="left mono">{_escape(name)}</td>'
        f"<td>{count(kernel.count)}</td><td>{time_of(kernel.elapsed_ns)}</td>"
        f"<td>{size(kernel.nbytes)}</td><td>{speed}</td><td>{share}</td>"
        f'<td class="left">{_escape(_list_of_lines(kernel.lines, about.script, about))}</td></tr>'
    )


def _kernels(summary: Summary) -> str:
    if not summary.kernels:
        return '<p class="quiet">None ran.</p>'
    rows = "".join([_kernel_row(kernel, summary) for kernel in summary.kernels[:MOST_KERNELS]])
    heads = ["launches", "time", "moved", "bandwidth", "of a copy's"]
    columns = "".join([f'<th scope="col">{head}</th>' for head in heads])
    left = len(summary.kernels) - MOST_KERNELS
    more = f'<p class="quiet">And {left} more.</p>' if left > 0 else ""
    return (
        f'<div class="scroll"><table><thead><tr><th scope="col" class="left">kernel</th>{columns}'
        '<th scope="col"'
        f' class="left">lines</th></tr></thead><tbody>{rows}</tbody></table></div>{more}'
    )


# -- the whole -------------------------------------------------------------------------------------


def _legend(summary: Summary) -> str:
    host = summary.host()
    items = [
        f'<li><i class="{"plan-time" if state == "plan" else state}"></i>{_escape(text)}'
        + (f", {time_of(host[state])}</li>" if host.get(state) else "</li>")
        for state, text in STATES.items()
    ]
    items.append('<li><i class="kernel"></i>a kernel on the device</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def _timeline(summary: Summary) -> str:
    ends = "".join([f"<span>{time_of(summary.elapsed_ns * part / 4)}</span>" for part in range(5)])
    memory = timeline.memory(summary)
    chart = f'<div class="chart"><div class="names"></div>{memory}</div>'
    names = "".join([f"<span>{name}</span>" for name in timeline.LANES])
    return (
        '<div class="controls"><button id="zoom-in">zoom in</button><button id="zoom-out">zoom out'
        '</button><button id="zoom-all">all</button><span class="quiet">or Ctrl and the wheel;'
        ' drag to'
        ' move</span></div><p id="say"></p>'
        f'<div class="chart"><div class="names">{names}</div>{timeline.lanes(summary)}</div>'
        f'<div class="ticks" id="ticks">{ends}</div>{_legend(summary)}'
        + (f"<h3>Memory of arrays</h3>{_holders(summary)}{chart}" if memory else "")
    )


def _holders(summary: Summary) -> str:
    """Who held memory where it was largest."""
    _, nbytes, held = summary.collector.memory[summary.peak]
    if not held:
        return ""
    named = sorted(held.items(), key=lambda item: -item[1])[:5]
    about = summary.circumstances
    parts = []
    rest = nbytes - sum([share for _, share in named])
    for number, share in named:
        place = summary.place(number)
        where = (
            "no line" if place is None else f"line {_list_of_lines([place], about.script, about)}"
        )
        parts.append(f"{where} {size(share)}")
    if rest > 0:
        parts.append(f"others {size(rest)}")
    text = f"Where it was largest ({size(nbytes)}), it was held by {', '.join(parts)}."
    return f'<p id="holders">{_escape(text)}</p>'


def _section(name: str, title: str, text: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{text}</section>'


def render(summary: Summary, explained: Sequence[PlanSeen] | None = None) -> str:
    """The page.

    Parameters
    ----------
    summary : Summary
    explained : sequence of PlanSeen, optional
        The plans that are shown; those that ran, the longest first, if left out.
    """
    about = summary.circumstances
    device = next((plan.device for plan in summary.collector.plans), "no device was used")
    sections: list[tuple[str, str, Any]] = [
        ("advised", "Advice", _advice(summary)),
        ("lines", "Lines",
         '<div class="controls"><button id="all-lines" aria-pressed="false">lines with time only'
         '</button><span class="quiet">Lines that share a kernel with the one under the pointer'
         ' light'
         f" up; a click holds them.</span></div>{_lines(summary)}"),
        ("time", "Time", _timeline(summary)),
        ("kernels", "Kernels", _kernels(summary)),
        ("plans", "Plans, and the reason at every cut", plans(summary, explained)),
    ]  # fmt: skip
    nav = "".join([f'<a href="#{name}">{title}</a>' for name, title, _ in sections])
    body = _facts(summary) + "\n".join([_section(*section) for section in sections])
    return Template(_text_of("page.html")).substitute(
        title=_escape(f"clfuse report: {about.command}"),
        about=_escape(f"Device: {device}. Times of the host are sampled."),
        style=_text_of("page.css"),
        script=_text_of("page.js"),
        nav=nav,
        body=body,
    )

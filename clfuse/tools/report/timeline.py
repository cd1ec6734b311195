"""The timeline and the chart of memory, as SVG that is right without JavaScript."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Final

from .places import STATES
from .summary import Summary
from .words import size, time_of

__all__ = ["LANES", "lanes", "memory"]

WIDTH: Final = 1200
"""Units of the drawing from the begin to the end of the run."""

NARROWEST: Final = WIDTH / 8000
"""What is narrower, and lies beside another of its kind, becomes one with it."""

LANE: Final = 26

MEMORY: Final = 90

MOST_STEPS: Final = 1200
"""Of memory."""

LANES: Final = ("host", "device", "copies", "builds")

Bar = tuple[float, float, str, str, str]
"""Start and end in nanoseconds from the begin, class, text, kernel's number or nothing."""


def _merged(bars: Iterable[Bar], ns_a_unit: float) -> Iterator[Bar]:
    """Neighbours of one class that the eye cannot part as one."""
    gap = NARROWEST * ns_a_unit
    held: Bar | None = None
    count = 1
    for bar in sorted(bars):
        if held is None:
            held = bar
            continue
        is_narrow = bar[1] - bar[0] < gap and held[1] - held[0] < 40 * gap
        if is_narrow and bar[2] == held[2] and bar[0] - held[1] < gap:
            count += 1
            text = held[3] if bar[3] == held[3] else held[3].partition(" (and")[0]
            if bar[3] != held[3]:
                text += f" (and {count - 1} more, short ones)"
            held = held[0], max(held[1], bar[1]), held[2], text, held[4]
            continue
        yield held
        held, count = bar, 1
    if held is not None:
        yield held


def _rects(bars: Iterable[Bar], top: float, height: float, elapsed_ns: float) -> Iterator[str]:
    scale = WIDTH / max(elapsed_ns, 1)
    for start, end, kind, text, kernel in _merged(bars, 1 / scale):
        number = f' data-kernel="{kernel}"' if kernel else ""
        yield (
            f'<rect class="{kind}"{number} x="{start * scale:.3f}" y="{top:g}" '
            f'width="{max((end - start) * scale, NARROWEST):.3f}" height="{height:g}">'
            f"<title>{html.escape(text)}</title></rect>"
        )


def _where(summary: Summary, line: int) -> str:
    place = summary.place(line)
    if place is None:
        return ""
    about = summary.circumstances
    file = "" if place[0] == about.script else f" of {about.title(place[0])}"
    return f", line {place[1]}{file}"


def _bars(summary: Summary) -> dict[str, list[Bar]]:
    seen = summary.collector
    begin = seen.start_ns
    bars: dict[str, list[Bar]] = {lane: [] for lane in LANES}
    for start, end, line, state in seen.sampler.stretches:
        text = f"{STATES[state]}{_where(summary, line)}: {time_of(end - start)}"
        kind = "plan-time" if state == "plan" else state
        bars["host"].append((start - begin, end - begin, kind, text, ""))
    for start, end, entry in seen.launched:
        kernel = summary.of_entry.get(entry)
        if kernel is None:
            continue
        lines = ", ".join([str(number) for _, number in sorted(kernel.lines)])
        text = f"{entry.name}: {time_of(end - start)}, lines {lines or 'unknown'}"
        kind = "library" if entry.is_host else "kernel"
        bars["device"].append((start - begin, end - begin, kind, text, str(kernel.number)))
    for start, end, is_to_device, nbytes, line in seen.copies:
        way = "to the device" if is_to_device else "to the host"
        text = f"{size(nbytes)} {way}: {time_of(end - start)}{_where(summary, line)}"
        bars["copies"].append((start - begin, end - begin, "copy", text, ""))
    for build in seen.builds:
        who = " in the background" if build.is_behind else " while the program waits"
        text = (
            f"{build.name} was built{who}: {time_of(build.end_ns - build.start_ns)}"
            f"{_where(summary, build.line)}"
        )
        bars["builds"].append((build.start_ns - begin, build.end_ns - begin, "build", text, ""))
    return bars


def lanes(summary: Summary) -> str:
    """What host, device, copies and compiler did, one lane each, from the begin to the end."""
    height = LANE * len(LANES)
    parts = [
        f'<svg id="timeline" viewBox="0 0 {WIDTH} {height}" height="{height * 1.6:g}" '
        f'data-ns="{summary.elapsed_ns}" preserveAspectRatio="none" role="img" '
        'aria-label="What host, device, copies and compiler did over time">'
    ]
    for number, (_, bars) in enumerate(_bars(summary).items()):
        parts += _rects(bars, number * LANE + 3, LANE - 6, summary.elapsed_ns)
        parts.append(
            f'<line class="axis" x1="0" x2="{WIDTH}" y1="{(number + 1) * LANE}" '
            f'y2="{(number + 1) * LANE}"/>'
        )
    return "\n".join([*parts, "</svg>"])


def memory(summary: Summary) -> str:
    """Bytes of arrays over time, with the line that held most of them."""
    seen = summary.collector
    samples = seen.memory
    if not any(nbytes for _, nbytes, _ in samples):
        return ""
    most = max([nbytes for _, nbytes, _ in samples])
    stride = -(-len(samples) // MOST_STEPS)
    parts = [
        f'<svg id="memory" viewBox="0 0 {WIDTH} {MEMORY}" height="{MEMORY}" '
        'preserveAspectRatio="none" role="img" aria-label="Memory of arrays over time">'
    ]
    scale = WIDTH / max(summary.elapsed_ns, 1)
    known: dict[int, int] = {}
    for first in range(0, len(samples), stride):
        part = samples[first : first + stride]
        now_ns, nbytes, _ = max(part, key=lambda sample: sample[1])
        held = known = next((each for _, _, each in reversed(part) if each is not None), known)
        start = part[0][0] - seen.start_ns
        end = seen.end_ns - seen.start_ns
        if first + stride < len(samples):
            end = samples[first + stride][0] - seen.start_ns
        if not nbytes:
            continue
        height = (MEMORY - 8) * nbytes / most
        text = f"{size(nbytes)} after {time_of(now_ns - seen.start_ns)}"
        if held:
            line, share = max(held.items(), key=lambda item: item[1])
            text += f"; {size(share)} of it{_where(summary, line) or ', line unknown'}"
        parts.append(
            f'<rect class="memory" x="{start * scale:.3f}" y="{MEMORY - height:.2f}" '
            f'width="{max((end - start) * scale, NARROWEST):.3f}" height="{height:.2f}">'
            f"<title>{html.escape(text)}</title></rect>"
        )
    return "\n".join([*parts, "</svg>"])

"""``python -m clfuse bench --traffic``: a table of the kernels' GPU memory traffic, without a GPU.

Oclgrind interprets the kernels that an H100 would run, on small inputs, and a plugin counts the
sectors that each warp's loads and stores touch (`oclgrind`). The plan says which bytes must move.
Nothing is timed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from clfuse.dataclass import frozen

from .oclgrind import SECTOR, Counts, Measured, measured, under
from .programs import QUICK
from .simulated import H100, UNITS, Planned, Seen

__all__ = ["Row", "flags", "markdown", "measure", "rows_of", "to_json"]

#: A multiprocessor of an H100 holds 2,048 work-items and hides the latency of its memory with a
#: quarter of them (CUDA C++ Best Practices Guide, "Occupancy": beyond 50 % more brings little).
ENOUGH_ITEMS: Final = 512
#: Work-items that move less than this are few because there is no more to do: launching takes
#: longer.
FEW_NBYTES: Final = 512
#: Sectors per request, as a multiple of what its bytes would fill, from which on lanes lie apart.
APART: Final = 2.0
#: The same for the pieces of vectors.
PIECES: Final = 1.5
#: How often a kernel's groups fetch what must move.
AGAIN: Final = 2.0
#: Passes over the banks of local memory, as a multiple of the least.
CONFLICTS: Final = 1.5
#: What moves less has no flags but ``few``: a launch takes longer.
LEAST_NBYTES: Final = 4096
#: A side (loads or stores) with less than this part of a kernel's sectors is left out of its flags.
SMALL_SIDE: Final = 0.1
#: How far the plan's bytes may be from those that were seen.
MISCOUNTED: Final = 1.1

#: Of the process under Oclgrind, whatever the settings here are.
ENVIRONMENT: Final = {
    "CLFUSE_DEVICE": "oclgrind", "CLFUSE_SIMULATE": "", "CLFUSE_SCHEDULE": "auto",
    "CLFUSE_FUSION": "on", "CLFUSE_TUNING": "off", "CLFUSE_FALLBACK": "allow", "CLFUSE_DEBUG": "",
}  # fmt: skip

HEADINGS: Final = (
    "program", "kernel", "class", "launches", "work-items", "must move kB", "loads kB", "stores kB",
    "ratio", "per vector", "by group", "requests/warp", "local kB", "atomics", "flags",
)  # fmt: skip
#: The part of whole inputs that ``--quick`` takes.
QUICKER: Final = 1 / 1000
#: Columns of text.
LEFT: Final = {0, 1, 2, 14}
LONGEST_NAME: Final = 44
MISSING: Final = "-"
#: The class of what NumPy does.
HOST: Final = "host"


@frozen
class Row:
    """All launches of one kernel in a program.

    program, kernel, kind: the kernel's name and class.
    work_items: of one launch: on whole inputs where that is known, else on the small ones.
    whole_nbytes: bytes that one launch must move on whole inputs; None where that is not known.
    nbytes: bytes that all launches must move on the small inputs, by the plan.
    seen: what the launches did; empty for a kernel that only whole inputs have.
    units: multiprocessors of the device that was simulated.
    """

    program: str
    kernel: str
    kind: str
    launches: int
    work_items: int
    whole_nbytes: int | None
    nbytes: int
    seen: tuple[Measured, ...]
    units: int

    def total(self, value: Callable[[Measured], float]) -> float:
        """Of all launches."""
        return sum(value(launch) for launch in self.seen)

    @property
    def sector_nbytes(self) -> int:
        """Bytes of the sectors that its requests touch."""
        return SECTOR * int(self.total(lambda one: one.loads.sectors + one.stores.sectors))

    @property
    def ratio(self) -> float:
        """Bytes of sectors to bytes that must move."""
        return self.sector_nbytes / max(self.nbytes, 1)

    @property
    def per_vector(self) -> float:
        """The sectors of whole vectors to those that their bytes would fill."""
        sectors = self.total(lambda one: one.loads.whole + one.stores.whole)
        return sectors / max(self.total(lambda one: one.loads.least + one.stores.least), 1)

    @property
    def by_group(self) -> float:
        """`ratio` if each work-group has a cache that forgets nothing."""
        return self.total(lambda one: one.cached_nbytes) / max(self.nbytes, 1)

    @property
    def touched_nbytes(self) -> float:
        """Different bytes that were read and written."""
        return self.total(lambda one: one.read_nbytes + one.written_nbytes)


def rows_of(program: str, launches: Iterable[Seen]) -> list[Row]:
    """The table's rows: the launches of a program, those of one kernel together."""
    kernels: dict[str, list[Seen]] = {}
    for seen in launches:
        plan = seen.planned or seen.whole
        assert plan is not None
        kernels.setdefault(plan.name, []).append(seen)
    rows = []
    for name, same in kernels.items():
        first = same[0]
        plan = first.whole or first.planned
        assert plan is not None
        rows.append(
            Row(
                program,
                name,
                plan.kind,
                len(same),
                plan.work_items,
                None if first.whole is None else first.whole.nbytes,
                sum(seen.planned.nbytes for seen in same if seen.planned is not None),
                tuple([seen.measured for seen in same if seen.measured is not None]),
                first.units,
            )
        )
    return rows


def flags(row: Row) -> list[str]:
    """What is remarkable about a kernel, the worst first.

    ``apart``: lanes of a warp touch sectors of their own. ``few``: not enough work-items for all
    multiprocessors, though each has much to move. ``again``: groups fetch what others fetch, too.
    ``pieces``: vectors are loaded or stored in pieces. ``banks``: lanes wait for one bank of local
    memory. ``plan``: other bytes were touched than the plan counts. ``host``: no kernel does it.
    """
    if row.kind == HOST:
        return [HOST]
    found = ["few"] if is_few(row) else []
    if row.nbytes < LEAST_NBYTES:
        return found
    sides = [side for side in ("loads", "stores") if is_large(row, side)]
    apart = any(multiple(row, side, "whole", "least") >= APART for side in sides)
    if apart:
        found.insert(0, "apart")
    if not apart and row.by_group >= AGAIN and row.seen:
        found.append("again")
    if any(multiple(row, side, "sectors", "whole") >= PIECES for side in sides):
        found.append("pieces")
    least = row.total(lambda one: one.local.least)
    if row.total(lambda one: one.local.passes) > CONFLICTS * least:
        found.append("banks")
    if row.seen and not 1 / MISCOUNTED <= row.touched_nbytes / max(row.nbytes, 1) <= MISCOUNTED:
        found.append("plan")
    return found


def is_few(row: Row) -> bool:
    """Whether a launch has too few work-items for the whole device, each with much to move."""
    if not row.work_items:
        return False
    nbytes = row.whole_nbytes
    if nbytes is None:
        nbytes = row.nbytes // max(len(row.seen), 1)
    each = nbytes / row.work_items
    return row.work_items < ENOUGH_ITEMS * UNITS and each >= FEW_NBYTES


def is_large(row: Row, side: str) -> bool:
    """Whether it is worth saying something of a kernel's loads, or of its stores."""
    sectors = row.total(lambda one: counts(one, side).sectors)
    return SECTOR * sectors > SMALL_SIDE * row.sector_nbytes


def multiple(row: Row, side: str, counted: str, least: str) -> float:
    """How many times one of the counts of a side is another one."""
    above = row.total(lambda one: getattr(counts(one, side), counted))
    return above / max(row.total(lambda one: getattr(counts(one, side), least)), 1)


def counts(launch: Measured, side: str) -> Counts:
    """The loads or the stores of a launch."""
    return launch.loads if side == "loads" else launch.stores


def measure(programs: Sequence[str], part: float = QUICK) -> list[Row]:
    """Run programs of the benchmark under Oclgrind, in another process.

    Parameters
    ----------
    programs : sequence of str
    part : float
        Which part of their whole inputs the small ones are.

    Raises bench.oclgrind.SimulatorError: oclgrind, its headers or a compiler is not installed; or a
        program failed.
    """
    with tempfile.TemporaryDirectory(prefix="clfuse-traffic-") as folder:
        target = Path(folder) / "programs.json"
        under(
            [sys.executable, "-m", "clfuse.tools.bench.simulated", str(target), str(part),
             *programs],
            Path(folder),
            ["--local-mem-size", str(H100.local_nbytes)],
            ENVIRONMENT,
        )
        found = json.loads(target.read_text(encoding="utf-8"))
    rows = []
    for name, record in found.items():
        rows += rows_of(name, map(launch, record["launches"]))
        if record["on_host"]:
            rows.append(Row(name, "NumPy, on the host", HOST, record["on_host"], 0, None, 0, (), 0))
    return rows


def launch(record: Mapping[str, Any]) -> Seen:
    """What `tools.bench.simulated` has written of a launch."""
    planned, whole = (
        Planned(**record[name]) if record[name] is not None else None
        for name in ("planned", "whole")
    )
    seen = measured(record["measured"]) if record["measured"] is not None else None
    return Seen(planned, seen, whole, record["units"])


def kilobytes(count: float) -> str:
    """Bytes as kB, with three digits."""
    return f"{count / 1000:.0f}" if count >= 1e5 or not count else f"{count / 1000:.3g}"


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    name = row.kernel if len(row.kernel) <= LONGEST_NAME else f"{row.kernel[:LONGEST_NAME - 1]}…"
    items = f"{row.work_items:,}" if row.whole_nbytes is not None else f"({row.work_items:,})"
    items = items if row.work_items else MISSING
    if not row.seen:
        start = (row.program, name, row.kind, str(row.launches), items)
        return (*start, *[MISSING] * (len(HEADINGS) - 6), " ".join(flags(row)))
    warps = max(row.total(lambda one: one.warps), 1)
    requests = row.total(lambda one: one.loads.requests + one.stores.requests)
    atomics = int(row.total(lambda one: one.atomics)), int(row.total(lambda one: one.local_atomics))
    return (
        row.program,
        name,
        row.kind,
        str(row.launches),
        items,
        kilobytes(row.nbytes),
        kilobytes(SECTOR * row.total(lambda one: one.loads.sectors)),
        kilobytes(SECTOR * row.total(lambda one: one.stores.sectors)),
        f"{row.ratio:.2f}",
        f"{row.per_vector:.2f}",
        f"{row.by_group:.2f}",
        f"{requests / warps:.1f}",
        kilobytes(row.total(lambda one: one.local.asked)),
        f"{atomics[0]} + {atomics[1]}" if any(atomics) else "0",
        " ".join(flags(row)),
    )


def markdown(rows: Sequence[Row]) -> str:
    """The table in Markdown, its columns aligned so that it reads as text too."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.ljust(widths[column]) if column in LEFT else text.rjust(widths[column])
            for column, text in enumerate(texts)
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 2) if column in LEFT else "-" * (width + 1) + ":"
        for column, width in enumerate(widths)
    )
    body = "\n".join(line(texts) for texts in lines[1:])
    return f"{line(HEADINGS)}\n|{rule}|\n{body}\n\n{LEGEND}\n"


LEGEND: Final = textwrap.fill(
    f"The kernels of an H100 ({UNITS} multiprocessors) on small inputs, interpreted by Oclgrind. A"
    " request is what a memory instruction touches in 32 work-items; memory moves in sectors of 32"
    " bytes. Work-items: of a launch on whole inputs; in brackets on small ones, where the plan"
    " depends on values. Must move: by the plan, every array once. Loads, stores: the sectors of"
    " all requests. Ratio: these to what must move. Per vector: sectors to those that the bytes of"
    " a request would fill, if no vector is loaded in pieces; 8 means that every lane of 4 bytes"
    " has a sector of its own. By group: the ratio if each work-group has a cache that forgets"
    " nothing. Atomics: in global and in local memory. Flags: apart (lanes of a warp touch sectors"
    " of their own), few (too few work-items for all multiprocessors, though each moves much),"
    " again (groups fetch what others fetch, too), pieces (vectors in pieces, as their alignment is"
    " not known), banks (conflicts in local memory), plan (other bytes were touched than the plan"
    " counts), host (no kernel does it).",
    100,
)


def to_json(rows: Sequence[Row]) -> str:
    """Everything that was counted."""
    records = [{**asdict(row), "ratio": row.ratio, "per_vector": row.per_vector,
                "by_group": row.by_group, "flags": flags(row)} for row in rows]
    return json.dumps({"traffic": records}, indent=1) + "\n"

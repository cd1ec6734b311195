"""What was measured, in files, and the page of the guide that is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clfuse.tools.check.functions import COMPLEXES, FLOATS, FUNCTIONS, Function

FOLDER: Final = Path(__file__).parent
PAGE: Final = FOLDER.parents[1] / "clfuse" / "guide" / "accuracy.md"

RUNTIMES: Final = {"pocl": "PoCL", "intel": "Intel"}
"""File name and heading of those whose figures the page has."""

BEGIN, END = "<!-- made by tests.accuracy -->", "<!-- end -->"
BEGIN_SUMS, END_SUMS = "<!-- sums, made by tests.accuracy -->", "<!-- end of sums -->"


@dataclass(frozen=True, slots=True)
class Figures:
    """The errors of one function in ulp: ours and NumPy's, the largest and the mean; NaN where
    NumPy has no such function."""

    count: int
    worst: float
    mean: float
    numpy_worst: float
    numpy_mean: float
    where: str


def path_of(runtime: str) -> Path:
    return FOLDER / f"figures-{runtime}.txt"


def read(runtime: str) -> tuple[str, dict[str, Figures]]:
    """Where the figures were measured, and those of each function by its label."""
    lines = path_of(runtime).read_text(encoding="utf-8").splitlines()
    found = {}
    for line in lines[1:]:
        label, count, *numbers, where = line.split("\t")
        found[label] = Figures(int(count), *map(float, numbers), where)
    return lines[0].removeprefix("# "), found


def unexplained(found: Mapping[str, Figures]) -> list[str]:
    """Functions that are worse than promised, and of which the page does not say why."""
    return [
        f"{function.label}: {found[function.label].worst:.3g}"
        for function in FUNCTIONS
        if not found[function.label].worst
        <= (function.limit if function.dtype in EXPLAINED else PROMISE)
    ]


def write(runtime: str, where: str, figures: Mapping[str, Figures]) -> None:
    """Keep figures, in the order of the op tables."""
    lines = [f"# {where}"]
    for function in FUNCTIONS:
        one = figures.get(function.label)
        if one is not None:
            numbers = [one.worst, one.mean, one.numpy_worst, one.numpy_mean]
            lines.append("\t".join([function.label, str(one.count),
                                    *(f"{number:.4g}" for number in numbers), one.where]))
    path_of(runtime).write_text("\n".join([*lines, ""]), encoding="utf-8")


# ---- sums ----

MORE_THAN_NUMPYS: Final = 1.15
"""What two samples of one error differ by."""

IN_TABLE: Final = ("sum", "mean", "var", "std", "cumsum")


def sums_path(runtime: str) -> Path:
    return FOLDER / f"sums-{runtime}.txt"


def write_sums(runtime: str, ratios: Mapping[str, Mapping[str, float]]) -> None:
    """Keep the largest ratio to NumPy's error of each dtype and call."""
    lines = [f"{dtype}\t{call}\t{ratio:.2f}" for dtype, calls in ratios.items()
             for call, ratio in calls.items()]  # fmt: skip
    sums_path(runtime).write_text("\n".join([*lines, ""]), encoding="utf-8")


def read_sums(runtime: str) -> dict[str, dict[str, float]]:
    """What `write_sums` has kept."""
    found: dict[str, dict[str, float]] = {}
    for line in sums_path(runtime).read_text(encoding="utf-8").splitlines():
        dtype, call, ratio = line.split("\t")
        found.setdefault(dtype, {})[call] = float(ratio)
    return found


def sums_table() -> Iterator[str]:
    """The largest ratios as lines of Markdown."""
    heads = [f"{heading} {call}" for heading in RUNTIMES.values() for call in IN_TABLE]
    yield f"| dtype | {' | '.join(heads)} |"
    yield f"|---|{'--:|' * len(heads)}"
    every = [read_sums(name) for name in RUNTIMES]
    for dtype in (*FLOATS, *COMPLEXES):
        cells = [number(found[dtype].get(call, float("nan"))) for found in every
                 for call in IN_TABLE]  # fmt: skip
        yield f"| {dtype} | {' | '.join(cells)} |"


# ---- the page ----

NOTES: Final[dict[str, str]] = {
    "logaddexp": "a", "logaddexp2": "a", "sinc": "b", "gammaln": "c", "exp2": "d", "power": "e",
    "float_power": "e",
}  # fmt: skip
"""What counts as an ulp is another thing there: the letters of the page. Those of exp2 and powers
are about complex numbers."""

PROMISE: Final = 4.0
"""In ulp; what is more has its reason on the page."""

EXPLAINED: Final = ("complex64", "complex128")
"""Dtypes whose functions may be worse, and that the page says why."""


def note_of(function: Function) -> str:
    letter = NOTES.get(function.name, "")
    return "" if letter in "de" and not function.is_complex else letter


def number(value: float) -> str:
    """Two digits behind the point; large ones short.

    >>> number(0.5), number(float("nan")), number(123456.0)
    ('0.50', '-', '1.2e+05')
    """
    if value != value:
        return "-"
    return f"{value:.2f}" if value < 1000 else f"{value:.1e}"


def table(dtype: str, measured: Mapping[str, Mapping[str, Figures]]) -> Iterator[str]:
    """One dtype's lines of Markdown."""
    heads = [f"{RUNTIMES[name]} {what}" for name in measured for what in ("worst", "mean")]
    yield f"| {dtype} | {' | '.join(heads)} | NumPy worst | mean |"
    yield f"|---|{'--:|' * (len(heads) + 2)}"
    for function in FUNCTIONS:
        if function.dtype != dtype:
            continue
        ours = [figures[function.label] for figures in measured.values()]
        cells = [number(each) for one in ours for each in (one.worst, one.mean)]
        cells += [number(ours[0].numpy_worst), number(ours[0].numpy_mean)]
        note = note_of(function)
        mark = f" ({note})" if note else ""
        yield f"| `{function.name}`{mark} | {' | '.join(cells)} |"


def tables(names: Iterable[str] = tuple(RUNTIMES)) -> str:
    """What stands between `BEGIN` and `END` on the page."""
    read_all = {name: read(name) for name in names}
    measured = {name: figures for name, (_, figures) in read_all.items()}
    lines = [BEGIN, ""]
    lines += [f"- {RUNTIMES[name]}: {where}" for name, (where, _) in read_all.items()]
    for dtype in (*FLOATS, *COMPLEXES):
        lines += ["", *table(dtype, measured)]
    return "\n".join([*lines, "", END])


def page() -> str:
    """The whole page, with today's tables."""
    text = PAGE.read_text(encoding="utf-8")
    made = "\n".join([BEGIN_SUMS, "", *sums_table(), "", END_SUMS])
    return _between(_between(text, BEGIN, END, tables()), BEGIN_SUMS, END_SUMS, made)


def _between(text: str, begin: str, end: str, made: str) -> str:
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{made}{after}"

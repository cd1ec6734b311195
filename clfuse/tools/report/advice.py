"""Advice: what a run shows that the program could do otherwise, one function a rule.

Each says what was seen, in numbers, and what to write instead. What takes less than a part of the
run (`LEAST_SHARE`) is not worth a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clfuse.ir.nodes import Kind

from .collector import PlanSeen
from .places import NOWHERE
from .source_rules import loops_over_elements, whole_powers
from .summary import File, Line, Summary, python_ns
from .words import count, size, time_of

__all__ = ["RULES", "Advice", "advice"]

LEAST_SHARE: Final = 0.05
"""The part of the run that something takes to be worth advice."""

MANY: Final = 20
"""Rounds from which something is in a loop."""

LARGE: Final = 1 << 16
"""Elements of an array whose bytes count."""

LARGE_NBYTES: Final = 1 << 16
"""Bytes of a copy that is one of an array."""

HOST_STATES: Final = ("python", "record", "plan")


@dataclass(frozen=True)
class Advice:
    """One piece: the rule's name, what was seen in one line, what to do, and where."""

    rule: str
    title: str
    text: str
    path: str
    line: int


def _is_worth(elapsed_ns: float, summary: Summary) -> bool:
    return elapsed_ns >= LEAST_SHARE * summary.elapsed_ns


def _asks_on_purpose(line: Line) -> bool:
    return "evaluate(" in line.text or "synchronize(" in line.text


def _kernels_of_looks(number: int, summary: Summary) -> float:
    """Time of the kernels that a line's looks have run: it is not saved by looking less."""
    found = 0.0
    for plan in summary.collector.plans:
        looks = sum(plan.looks.values())
        if looks:
            entries = [entry for each in plan.entries.values() for entry in each]
            part = plan.looks.get(number, 0.0) / looks
            found += part * sum([entry.total_ns for entry in entries])
    return found


def _numbers_of(file: File, line: Line, summary: Summary) -> list[int]:
    """The collector's numbers of a line's statements."""
    place = file.path, line.number
    return [n for n, each in enumerate(summary.collector.places.known) if each == place]


def look_in_loop(summary: Summary) -> Iterator[Advice]:
    """A value is looked at in every round, and that takes time beside the kernels."""
    for file, line in summary.all_lines():
        if line.evaluations < MANY or _asks_on_purpose(line):
            continue
        # Plans are made once, and NumPy computes until the kernels are there: looks or not.
        spent = line.host.get("wait", 0) + line.host.get("record", 0)
        numbers = _numbers_of(file, line, summary)
        kernels = sum([_kernels_of_looks(each, summary) for each in numbers])
        if not _is_worth(max(spent - kernels, 0.0), summary):
            continue
        yield Advice(
            "look_in_loop",
            f"Line {line.number} looks at a value {count(line.evaluations)} times",
            "Each look has everything computed that the value needs, and waits for it:"
            f" {time_of(spent)} in all, {time_of(min(kernels, spent))} of these in kernels. What is"
            " recorded in several rounds cannot fuse then. Look every few rounds, or keep the"
            " values in a list and look at them after the loop; a condition on an array"
            " (`if x.max() > limit`) may become `np.where`.",
            file.path, line.number,
        )  # fmt: skip


def _lines_of_plan(plan: PlanSeen, summary: Summary) -> list[tuple[File, Line]]:
    numbers = {n for entries in plan.entries.values() for each in entries for n in each.shares}
    places = {summary.place(number) for number in numbers.union(plan.looks)}
    return [
        (file, file.lines[number - 1])
        for file in summary.files
        for number in sorted([place[1] for place in places if place and place[0] == file.path])
        if 0 < number <= len(file.lines)
    ]


def jit_for_loop(summary: Summary) -> Iterator[Advice]:
    """The same work is recorded again and again, which takes longer than the work."""
    groups: dict[tuple[tuple[str, int], ...], list[PlanSeen]] = {}
    for plan in summary.collector.plans:
        lines = _lines_of_plan(plan, summary)
        if plan.entries and lines and not plan.is_traced:
            groups.setdefault(tuple([(f.path, line.number) for f, line in lines]), []).append(plan)
    told: set[tuple[str, int]] = set()
    for places, plans in groups.items():
        runs = max(
            max([entry.count for entry in entries], default=0.0)
            for plan in plans
            for entries in plan.entries.values()
        )
        found = [line for place in places if (line := summary.line(place)) is not None]
        spent = sum([line.host.get(each, 0) for line in found for each in HOST_STATES])
        device = sum([line.device_ns for line in found])
        if runs < MANY or spent < device or not _is_worth(spent, summary) or told & set(places):
            continue
        told |= set(places)
        path = places[0][0]
        numbers = [number for each, number in places if each == path]
        yield Advice(
            "jit_for_loop",
            f"The work of lines {min(numbers)} to {max(numbers)} is recorded {count(runs)} times",
            f"Python and recording take {time_of(spent)} there, the kernels {time_of(device)}."
            " Put one"
            " round into a function with `@clfuse.jit`: it is recorded once, and replayed after"
            " that."
            " Looks at values (`float(x)`, `if x.any()`) stay outside of the function.",
            path, min(numbers),
        )  # fmt: skip


_WIDER: Final = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


def _dtype_of(item: tuple[Any, ...]) -> Any:
    if item[0] is None:
        return item[3]
    return item[0].dtype


def _shape_of(item: tuple[Any, ...]) -> tuple[int, ...]:
    return item[1] if len(item) > 1 else ()


def _widened(
    summary: Summary, is_narrow: Callable[[Any, Any], bool], meant: Sequence[str]
) -> Iterator[tuple[tuple[str, int], Any, Any, int]]:
    """Where a large operand of a narrow dtype gives a wide result, once a line, at its largest.

    Parameters
    ----------
    is_narrow : callable
        Whether an operand of the first dtype has no need of a result of the second.
    meant : sequence of str
        Words of a line that ask for the wide dtype by name.

    Yields
    ------
    place : tuple of (str, int)
    dtype, operand : dtype
        Of the result, and of the narrow operand.
    nbytes : int
        Of the result.
    """
    found: dict[tuple[str, int], tuple[Any, Any, int]] = {}
    for plan in summary.collector.plans:
        for position, item in enumerate(plan.items):
            op = item[0]
            if op is None or op.kind is not Kind.MAP or op.dtype not in _WIDER:
                continue
            narrow = [
                dtype for operand in item[3:]
                if is_narrow(dtype := _dtype_of(plan.items[operand]), op.dtype)
                and math.prod(_shape_of(plan.items[operand])) >= LARGE
            ]  # fmt: skip
            place = summary.place(plan.lines[position])
            line = summary.line(place) if place is not None else None
            if not narrow or line is None or place is None:
                continue
            if any(word in line.text for word in meant):
                continue
            nbytes = math.prod(item[1]) * op.dtype.itemsize
            if place not in found or nbytes > found[place][2]:
                found[place] = op.dtype, narrow[0], nbytes
    for place, widest in found.items():
        yield place, *widest


_WIDE_WORDS: Final = ("float64", "double", "complex128")


def doubled_dtype(summary: Summary) -> Iterator[Advice]:
    """float32 meets float64, and the result has twice the bytes."""

    def is_half(operand: Any, result: Any) -> bool:
        return bool(operand == _WIDER[result])

    for place, dtype, narrow, nbytes in _widened(summary, is_half, ("astype", *_WIDE_WORDS)):
        yield Advice(
            "doubled_dtype",
            f"Line {place[1]} makes {dtype} of {narrow}",
            f"Another operand is {dtype}, so that the result is, too: {size(nbytes)} in place of"
            f" {size(nbytes / 2)}, and all that follows moves twice the bytes. Make the other"
            f" operand {narrow} (`dtype=`, or `.astype` once, before the loop); a plain Python"
            " number widens nothing, a NumPy scalar does.",
            *place,
        )  # fmt: skip


def fallback_in_loop(summary: Summary) -> Iterator[Advice]:
    """NumPy does on the host what no kernel does, again and again."""
    for file, line in summary.all_lines():
        calls = sum(line.fallbacks.values())
        spent = line.host.get("fallback", 0) + line.host.get("copy", 0)
        if calls < MANY or not _is_worth(spent, summary):
            continue
        (name, reason), _ = max(line.fallbacks.items(), key=lambda item: item[1])
        why = f" ({reason})" if reason else ""
        yield Advice(
            "fallback_in_loop",
            f"Line {line.number} calls `{name}` {count(calls)} times, which NumPy does on the host",
            f"There is no kernel for it{why}: {time_of(spent)} in all. What is recorded before"
            " it is"
            " computed at that point, and on a GPU copied. Take an operation that is recorded"
            " (`python -m clfuse coverage` lists them), call it once for all rounds, or write a"
            " `@clfuse.kernel`.",
            file.path, line.number,
        )  # fmt: skip


def element_loop(summary: Summary) -> Iterator[Advice]:
    """A loop of Python's goes over elements, or over rows."""
    for file in summary.files:

        def host_ns(first: int, last: int, file: File = file) -> int:
            lines = file.lines[first - 1 : last]
            return sum([python_ns(line) + line.host.get("record", 0) for line in lines])

        least_ns = 4 * LEAST_SHARE * summary.elapsed_ns
        for loop in loops_over_elements([line.text for line in file.lines], host_ns, least_ns):
            # Of lines that compute whole arrays, kernels or NumPy take the time.
            others = sum([line.device_ns + sum(each[1] for each in line.numpy.values())
                          for line in file.lines[loop.first - 1 : loop.last]])
            spent = host_ns(loop.first, loop.last)
            if others > spent:
                continue
            if loop.folds:
                title = f"The loop at line {loop.first} goes over rows in Python"
                named = ", ".join([f"`{fold}`" for fold in loop.folds[:3]])
                how = (
                    f" Give all rows to one call: {named} with `axis=1` (`keepdims=True` where"
                    " the result meets the rows again), on the whole array in the place of one"
                    " row; what each row stores becomes an array of the results."
                )
            else:
                title = f"The loop at line {loop.first} goes over elements in Python"
                how = (
                    " Write it for whole arrays (`a[1:] - a[:-1]`, `np.where`, `np.cumsum`), or,"
                    " where neighbours and conditions make that hard, as a `@clfuse.kernel`, whose"
                    " body is the same loop's."
                )
            yield Advice(
                "element_loop", title,
                f"It takes {time_of(spent)}, and kernels have no part in that." + how,
                file.path, loop.first,
            )  # fmt: skip


def _product_for(base: str, exponent: int) -> str:
    """A whole power as a product of few."""
    if exponent == 3:
        return f"{base} * {base} * {base}"
    if exponent == 4:
        return f"({base} * {base}) ** 2"
    if exponent == 6:
        return f"({base} * {base} * {base}) ** 2"
    if exponent == 8:
        return f"(({base} * {base}) ** 2) ** 2"
    return f"{base} * {_product_for(base, exponent - 1)}"


def whole_power(summary: Summary) -> Iterator[Advice]:
    """Floats are raised to a small whole power, which costs more than products."""
    raised: set[tuple[str, int]] = set()
    for plan in summary.collector.plans:
        for position, item in enumerate(plan.items):
            op = item[0]
            if op is None or op.kind is not Kind.MAP or op.name != "power":
                continue
            is_product = "finite_pow" in plan.traits.expressions.get((op.name, op.dtype.name), "")
            place = summary.place(plan.lines[position])
            if op.dtype.kind == "f" and not is_product and math.prod(item[1]) >= LARGE and place:
                raised.add(place)
    for file in summary.files:
        numbers = {
            number for path, number in raised
            if path == file.path and _is_worth(file.lines[number - 1].device_ns, summary)
        }  # fmt: skip
        for base, exponent, number in whole_powers([line.text for line in file.lines], numbers):
            line = file.lines[number - 1]
            yield Advice(
                "whole_power",
                f"Line {number} raises to the power {exponent}",
                f"Of each element that is a logarithm and an exponential; products are some ten"
                f" times as fast, and differ by a rounding: `{_product_for(base, exponent)}` for"
                f" `{base} ** {exponent}` (`x ** 2` is a product as it stands). The kernels of the"
                f" line take {time_of(line.device_ns)}.",
                file.path, number,
            )  # fmt: skip


NARROW_NBYTES: Final = 2
"""Bytes of whole numbers that float32 has room for."""


def wide_of_narrow(summary: Summary) -> Iterator[Advice]:
    """Whole numbers of one or two bytes become float64."""

    def is_short(operand: Any, result: Any) -> bool:
        return operand.kind in "iu" and operand.itemsize <= NARROW_NBYTES

    if not _is_worth(summary.device_ns / 4, summary):
        return
    for place, dtype, narrow, nbytes in _widened(summary, is_short, _WIDE_WORDS):
        yield Advice(
            "wide_of_narrow",
            f"Line {place[1]} makes {dtype} of {narrow}",
            f"{size(nbytes)} of them. {_WIDER[dtype]} holds every {narrow} exactly, has seven"
            f" digits after that, and half the bytes: `.astype(np.{_WIDER[dtype]})` here, and"
            f" arrays of that dtype beside it, where seven digits are enough.",
            *place,
        )


def first_builds(summary: Summary) -> Iterator[Advice]:
    """Much of the run is the compiler's, once."""
    waited: dict[int, int] = {}
    for build in summary.collector.builds:
        if not build.is_behind:
            waited[build.line] = waited.get(build.line, 0) + build.end_ns - build.start_ns
    spent = sum(waited.values())
    place = summary.place(max(waited, key=lambda line: waited[line])) if waited else None
    if place is None or not _is_worth(spent / 4, summary):
        return
    yield Advice(
        "first_builds",
        f"The program waits {time_of(spent)} for kernels to be built",
        "They are kept: the next run finds them, and its report shows what the program takes from"
        " then on. `python -m clfuse warm` with the program's name builds them beforehand.",
        *place,
    )


FEW_PLANS: Final = 8
"""Plans of one line that are each run once."""


def new_structures(summary: Summary) -> Iterator[Advice]:
    """Every round has other shapes or operations, and kernels of its own."""
    plans: dict[int, int] = {}
    for plan in summary.collector.plans:
        runs = sum(plan.looks.values())
        if plan.entries and runs <= 1:
            for line in plan.looks:
                plans[line] = plans.get(line, 0) + 1
    built = sum([build.end_ns - build.start_ns for build in summary.collector.builds])
    looks = summary.collector.sampler.elapsed
    planned = sum([spent for (_, state), spent in looks.items() if state == "plan"])
    for number, made in plans.items():
        place = summary.place(number)
        if made < FEW_PLANS or place is None or not _is_worth(built + planned, summary):
            continue
        yield Advice(
            "new_structures",
            f"Line {place[1]} asks for values of {made} different plans, each once",
            f"Planning takes {time_of(planned)} and building kernels {time_of(built)} in this"
            " run. A plan"
            " is used again where operations and dimensions are the same; sizes and numbers may"
            " differ. Look for what grows from round to round (a list of arrays that is joined,"
            " a sum"
            " that is never looked at, an `if` on the round), and evaluate it with"
            " `clfuse.evaluate(x)` at the end of each round.",
            place[0], place[1],
        )  # fmt: skip


def copies_in_loop(summary: Summary) -> Iterator[Advice]:
    """The same line copies between host and device again and again."""
    for file, line in summary.all_lines():
        for is_to_device, copied in line.copies.items():
            is_small = copied.nbytes < copied.count * LARGE_NBYTES  # numbers that are looked at
            if copied.count < MANY or is_small or not _is_worth(copied.elapsed_ns, summary):
                continue
            way = "to the device" if is_to_device else "to the host"
            yield Advice(
                "copies_in_loop",
                f"Line {line.number} copies {size(copied.nbytes)} {way}, in"
                f" {count(copied.count)} copies",
                f"They take {time_of(copied.elapsed_ns)}. Make an array of clfuse's of it once,"
                " before"
                " the loop (`x = np.asarray(x)`), and leave results there until they are needed;"
                " what `.get()` or `numpy.asarray` has brought to the host is copied back when"
                " it is"
                " used again.",
                file.path, line.number,
            )  # fmt: skip


RULES: Final[tuple[Callable[[Summary], Iterator[Advice]], ...]] = (
    jit_for_loop,
    look_in_loop,
    element_loop,
    fallback_in_loop,
    copies_in_loop,
    new_structures,
    doubled_dtype,
    wide_of_narrow,
    whole_power,
    first_builds,
)


def advice(summary: Summary) -> list[Advice]:
    """What all rules say of a run."""
    return [each for rule in RULES for each in rule(summary) if each.line != NOWHERE]

"""Advice: what a run shows that the program could do otherwise, one function a rule.

Each says what was seen, in numbers, and what to write instead. What takes less than a part of the
run (`LEAST_SHARE`) is not worth a word.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clfuse.ir.nodes import Kind

from .collector import PlanSeen
from .places import NOWHERE
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


def look_in_loop(summary: Summary) -> Iterator[Advice]:
    """A value is looked at in every round, so that rounds do not fuse and each waits."""
    for file, line in summary.all_lines():
        spent = sum([line.host.get(each, 0) for each in ("wait", "record", "numpy", "plan")])
        if line.evaluations < MANY or _asks_on_purpose(line) or not _is_worth(spent, summary):
            continue
        yield Advice(
            "look_in_loop",
            f"Line {line.number} looks at a value {count(line.evaluations)} times",
            "Each look has everything computed that the value needs, and waits for it:"
            f" {time_of(spent)}"
            " in all. What is recorded in several rounds cannot fuse then. Look every tenth"
            " round, or"
            " keep the values in a list and look at them after the loop; a condition on an array"
            " (`if x.max() > limit`) may become `np.where`.",
            file.path, line.number,
        )  # fmt: skip


def _lines_of_plan(plan: PlanSeen, summary: Summary) -> list[tuple[File, Line]]:
    places = {
        summary.place(number)
        for entries in plan.entries.values()
        for entry in entries
        for number in entry.shares
    }
    places |= {summary.place(number) for number in plan.looks}
    return [each for each in summary.all_lines() if (each[0].path, each[1].number) in places]


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


def doubled_dtype(summary: Summary) -> Iterator[Advice]:
    """float32 meets float64, and the result has twice the bytes."""
    found: dict[tuple[str, int], tuple[Any, int]] = {}
    for plan in summary.collector.plans:
        for position, item in enumerate(plan.items):
            op = item[0]
            if op is None or op.kind is not Kind.MAP or op.dtype not in _WIDER:
                continue
            narrow = [
                operand for operand in item[3:]
                if _dtype_of(plan.items[operand]) == _WIDER[op.dtype]
                and math.prod(_shape_of(plan.items[operand])) >= LARGE
            ]  # fmt: skip
            place = summary.place(plan.lines[position])
            line = summary.line(place) if place is not None else None
            if not narrow or line is None or place is None:
                continue
            if any(word in line.text for word in ("astype", "float64", "double", "complex128")):
                continue  # it is meant
            nbytes = math.prod(item[1]) * op.dtype.itemsize
            if nbytes > found.get(place, ("", 0))[1]:
                found[place] = op.dtype, nbytes
    for (path, number), (dtype, nbytes) in found.items():
        yield Advice(
            "doubled_dtype",
            f"Line {number} makes {dtype} of {_WIDER[dtype]}",
            f"Another operand is {dtype}, so that the result is, too: {size(nbytes)} in place of"
            f" {size(nbytes / 2)}, and all that follows moves twice the bytes. Make the other"
            " operand"
            f" {_WIDER[dtype]} (`dtype=`, or `.astype` once, before the loop); a plain Python"
            " number"
            " widens nothing, a NumPy scalar does.",
            path, number,
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


class _Loops(ast.NodeVisitor):
    """The ``for`` loops of a file that read or write elements at their variable."""

    def __init__(self) -> None:
        self.found: list[ast.For] = []

    def visit_For(self, loop: ast.For) -> None:
        """Look at one loop."""
        names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        for each in ast.walk(loop):
            if isinstance(each, ast.Subscript):
                used = {n.id for n in ast.walk(each.slice) if isinstance(n, ast.Name)}
                if used & names:
                    self.found.append(loop)
                    break
        else:
            self.generic_visit(loop)


def element_loop(summary: Summary) -> Iterator[Advice]:
    """A loop of Python's goes over elements."""
    for file in summary.files:
        try:
            tree = ast.parse("\n".join([line.text for line in file.lines]))
        except SyntaxError:
            continue
        visitor = _Loops()
        visitor.visit(tree)
        for loop in visitor.found:
            lines = file.lines[loop.lineno - 1 : loop.end_lineno]
            # Of lines that compute whole arrays, kernels or NumPy take the time.
            spent = sum([python_ns(line) + line.host.get("record", 0) for line in lines])
            others = sum([line.device_ns + sum(each[1] for each in line.numpy.values())
                          for line in lines])
            if others > spent or spent < 4 * LEAST_SHARE * summary.elapsed_ns:
                continue
            yield Advice(
                "element_loop",
                f"The loop at line {loop.lineno} goes over elements in Python",
                f"It takes {time_of(spent)}, and kernels have no part in that. Write it for whole"
                " arrays (`a[1:] - a[:-1]`, `np.where`, `np.cumsum`), or, where neighbours and"
                " conditions make that hard, as a `@clfuse.kernel`, whose body is the same loop's.",
                file.path, loop.lineno,
            )  # fmt: skip


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
)


def advice(summary: Summary) -> list[Advice]:
    """What all rules say of a run."""
    return [each for rule in RULES for each in rule(summary) if each.line != NOWHERE]

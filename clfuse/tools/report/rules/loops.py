"""Rules of loops: what is done again and again that could be done once, or otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..collector import PlanSeen
from ..summary import File, Line, Summary, python_ns
from ..words import count, size, time_of
from .piece import MANY, Advice, is_worth, least_ns
from .source import ElementLoop, lines_that_store, loops_of_calls, loops_over_elements

LARGE_NBYTES: Final = 1 << 16
"""Bytes of a copy that is one of an array."""

MUCH_MORE: Final = 4
"""So many times as much as kernels Python has to take where arrays are called small."""

HOST_STATES: Final = ("python", "record", "plan")


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
        if line.evaluations < MANY or _asks_on_purpose(line) or line.has_masks:
            continue
        # Plans are made once, and NumPy computes until the kernels are there: looks or not.
        spent = line.host.get("wait", 0) + line.host.get("record", 0)
        numbers = _numbers_of(file, line, summary)
        kernels = sum([_kernels_of_looks(each, summary) for each in numbers])
        if not is_worth(max(spent - kernels, 0.0), summary):
            continue
        yield Advice(
            "look_in_loop",
            f"Line {line.number} looks at a value {count(line.evaluations)} times",
            "Each look has everything computed that the value needs, and waits for it:"
            f" {time_of(spent)} in all, {time_of(min(kernels, spent))} of these in kernels. What is"
            " recorded in several rounds cannot fuse then. Look every few rounds"
            " (`if i % 20 == 0 and change < limit`), or keep the values in a list, without"
            " `float`, and look at them after the loop; a choice of elements"
            " (`if x[i] > limit`) becomes `np.where`.",
            file.path, line.number, max(spent - kernels, 0.0),
        )  # fmt: skip


def mask_in_loop(summary: Summary) -> Iterator[Advice]:
    """Elements are changed by a mask, again and again: their number has to be waited for.

    Selections that are only read wait, too; what would be written for them (``where=``, a product
    with the mask) took as long in k-means on CPUs.
    """
    for file, line in summary.all_lines():
        if not line.has_masks or line.evaluations < MANY:
            continue
        if line.number not in lines_that_store([each.text for each in file.lines]):
            continue
        spent = line.host_ns - sum(
            [_kernels_of_looks(each, summary) for each in _numbers_of(file, line, summary)]
        )
        if not is_worth(spent, summary):
            continue
        yield Advice(
            "mask_in_loop",
            f"Line {line.number} changes what a mask selects, and waits"
            f" {count(line.evaluations)} times",
            f"How many elements `x[mask]` has is known when the mask is computed: the line takes"
            f" {time_of(line.host_ns)}, and nothing fuses across it. `x = np.where(mask, new, x)`,"
            " with `new` computed of whole arrays, is recorded, fuses with what is around it, and"
            " waits for nothing.",
            file.path, line.number, spent,
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
        if runs < MANY or spent < device or not is_worth(spent, summary) or told & set(places):
            continue
        if any(line.has_masks for line in found):
            continue  # `jit` refuses these
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
            path, min(numbers), spent,
        )  # fmt: skip


def fallback_in_loop(summary: Summary) -> Iterator[Advice]:
    """NumPy does on the host what no kernel does, again and again."""
    for file, line in summary.all_lines():
        calls = sum(line.fallbacks.values())
        spent = line.host.get("fallback", 0) + line.host.get("copy", 0)
        if calls < MANY or not is_worth(spent, summary):
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
            file.path, line.number, spent,
        )  # fmt: skip


def element_loop(summary: Summary) -> Iterator[Advice]:
    """A loop of Python's goes over elements, or over rows."""
    for file in summary.files:

        def host_ns(first: int, last: int, file: File = file) -> int:
            lines = file.lines[first - 1 : last]
            return sum([python_ns(line) + line.host.get("record", 0) for line in lines])

        texts = [line.text for line in file.lines]
        for loop in loops_over_elements(texts, host_ns, 4 * least_ns(summary)):
            # Of lines that compute whole arrays, kernels or NumPy take the time.
            others = sum([line.device_ns + sum(each[1] for each in line.numpy.values())
                          for line in file.lines[loop.first - 1 : loop.last]])
            spent = host_ns(loop.first, loop.last)
            if others > spent:
                continue
            what, how = _for_whole_arrays(loop)
            yield Advice(
                "element_loop", f"The loop at line {loop.first} goes over {what} in Python",
                f"It takes {time_of(spent)}, and kernels have no part in that. {how}",
                file.path, loop.first, spent,
            )  # fmt: skip


def _for_whole_arrays(loop: ElementLoop) -> tuple[str, str]:
    """What a loop goes over, and what to write in its place."""
    named = ", ".join([f"`{fold}`" for fold in loop.folds[:3]])
    if loop.has_windows:
        fold = f", with {named} over its last axes" if named else ""
        return (
            "windows of an array",
            "Write shifted slices of the whole array in the place of one window (in one dimension"
            " `w[0] * a[:-2] + w[1] * a[1:-1] + w[2] * a[2:]`), which become one kernel; or take"
            f" `np.lib.stride_tricks.sliding_window_view(a, (3, 3))`{fold}; or make the body of the"
            " loop a `@clfuse.kernel`.",
        )
    if loop.folds and loop.is_nested:
        return (
            "pairs of rows",
            "Give each of the two loops an axis: `a[:, None] - b[None, :]` has all pairs, and"
            f" {named} with `axis=-1` their results. That becomes one kernel, and the differences"
            " are never stored.",
        )
    if loop.folds:
        return (
            "rows",
            f"Give all rows to one call: {named} with `axis=1` (`keepdims=True` where"
            " the result meets the rows again), on the whole array in the place of one"
            " row; what each row stores becomes an array of the results.",
        )
    return (
        "elements",
        "Write it for whole arrays (`a[1:] - a[:-1]`, `np.where`, `np.cumsum`), or,"
        " where neighbours and conditions make that hard, as a `@clfuse.kernel`, whose"
        " body is the same loop's.",
    )


def small_arrays(summary: Summary) -> Iterator[Advice]:
    """A loop of operations on small arrays: Python takes the time."""
    for file in summary.files:

        def host_ns(first: int, last: int, file: File = file) -> int:
            return sum([python_ns(line) for line in file.lines[first - 1 : last]])

        texts = [line.text for line in file.lines]
        for loop in loops_of_calls(texts, host_ns, 4 * least_ns(summary)):
            lines = [line for first, last in loop.spans for line in file.lines[first - 1 : last]]
            others = sum([line.device_ns + sum(each[1] for each in line.numpy.values())
                          for line in lines])
            spent = sum([python_ns(line) for line in lines])
            if others > spent / MUCH_MORE:
                continue
            if loop.carried:
                names = ", ".join([f"`{name}`" for name in loop.carried[:3]])
                how = (
                    f"A round needs what the one before has left ({names}): put a round into a"
                    " function with `@clfuse.jit`, which leaves one launch or a few of all its"
                    " operations; or, where many such loops run one after the other, give them an"
                    " axis of the arrays."
                )
            else:
                how = (
                    "A round needs nothing of the one before: give the loop's range to the arrays"
                    " as an axis, `rng.normal(size=(rounds, n))` for `rng.normal(size=n)`,"
                    " and fold with `axis=1`. Then each operation is one for all rounds, and they"
                    " become few kernels."
                )
            yield Advice(
                "small_arrays",
                f"The loop at line {loop.first} computes with small arrays",
                f"It takes {time_of(spent)}, nearly all of it Python's: a call takes a microsecond"
                f" or two, however few elements it has. {how}",
                file.path, loop.first, spent,
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
        if made < FEW_PLANS or place is None or not is_worth(built + planned, summary):
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
            place[0], place[1], built + planned,
        )  # fmt: skip


def copies_in_loop(summary: Summary) -> Iterator[Advice]:
    """The same line copies between host and device again and again."""
    for file, line in summary.all_lines():
        for is_to_device, copied in line.copies.items():
            is_small = copied.nbytes < copied.count * LARGE_NBYTES  # numbers that are looked at
            if copied.count < MANY or is_small or not is_worth(copied.elapsed_ns, summary):
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
                file.path, line.number, copied.elapsed_ns,
            )  # fmt: skip



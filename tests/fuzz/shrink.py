"""Makes a failing program small: fewer steps, fewer options, simpler values, shorter axes.

`shrink` tries one change after another and keeps those after which the same fault still shows. The
runner's reports print what remains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz import program
from tests.fuzz.bounds import Unbounded
from tests.fuzz.program import Constant, Data, Program, Step, Var
from tests.fuzz.reference import Reference
from tests.fuzz.runner import Checker, Difference, is_valid

SECONDS = 60.0  # a shrink may take; a kernel build is a tenth of a second


def shrink(failing: Program, difference: Difference, check: Checker, seconds: float = SECONDS,
           ) -> tuple[Program, Difference]:
    """A smaller program that fails in the same way, and how it fails."""
    deadline = time.monotonic() + seconds
    best, found = failing, difference
    improved = True
    while improved and time.monotonic() < deadline:
        improved = False
        for candidates in (_without_chunks, _without_settings, _cut_off, _bypassed,
                           _without_options, _shorter, _simpler_constants):
            # Candidates come from the best so far: start over after each success.
            again = True
            while again and time.monotonic() < deadline:
                again = False
                for candidate in candidates(best):
                    if time.monotonic() > deadline:
                        break
                    if _size(candidate) >= _size(best) or not is_valid(candidate):
                        continue
                    seen = check(candidate)
                    if difference.alike(seen) and seen is not None:
                        best, found = candidate, seen
                        improved = again = True
                        break
    return best, found


def _size(tried: Program) -> tuple[int, int, int, float]:
    used = set().union(*(s.constants() for s in tried.steps)) if tried.steps else set()
    constants = [tried.constants[name].values for name in used]
    elements = sum(c.size for c in constants)
    oddity = float(sum(np.count_nonzero(c) for c in constants))
    text = sum(len(s.text()) for s in tried.steps)
    return (len(tried.steps), len(tried.settings), elements, text + oddity / (1 + elements) / 2)


def _with_steps(tried: Program, steps: list[Step]) -> Program:
    """The program with these steps, less those that read what is no longer made."""
    known: set[str] = set()
    kept = []
    for step in steps:
        if step.reads() <= known:
            kept.append(step)
            known.update(step.targets)
            if step.kind == program.DELETE:
                known.discard(step.args[0].name)
    return replace(tried, steps=tuple(kept))


def _without_chunks(tried: Program) -> Iterator[Program]:
    steps = list(tried.steps)
    size = max(1, len(steps) // 2)
    while size:
        for start in range(len(steps) - size, -1, -1):
            yield _with_steps(tried, steps[:start] + steps[start + size:])
        size //= 2


def _without_settings(tried: Program) -> Iterator[Program]:
    for name in tried.settings:
        yield replace(tried, settings={k: v for k, v in tried.settings.items() if k != name})


def _cut_off(tried: Program) -> Iterator[Program]:
    """Everything before a step becomes constants: the values that its variables had under NumPy."""
    reference = Reference(tried.constants)
    states: list[dict[str, Any]] = []
    for step in tried.steps:
        states.append({name: np.array(v, order="C")
                       for name, v in reference.values.items()})
        try:
            reference.take(step)
        except Unbounded:
            return
    for place in range(len(tried.steps) - 1, 1, -1):
        needed: set[str] = set()
        made: set[str] = set()
        for step in tried.steps[place:]:
            needed |= step.reads() - made
            made |= set(step.targets)
        constants = dict(tried.constants)
        steps = []
        for name in sorted(needed):
            constants[f"k_{name}"] = Constant(states[place][name])
            steps.append(Step(program.CALL, "array", (name,), (Data(f"k_{name}"),)))
        yield replace(_with_steps(tried, [*steps, *tried.steps[place:]]), constants=constants)


def _bypassed(tried: Program) -> Iterator[Program]:
    """A variable replaced, where it is read, by one of those that it was made of."""
    for step in reversed(tried.steps):
        if len(step.targets) != 1:
            continue
        (gone,) = step.targets
        for source in sorted(step.reads()):
            def swap(leaf: Any, gone: str = gone, source: str = source) -> Any:
                return Var(source) if leaf == Var(gone) else leaf

            rest = [s.mapped(swap) for s in tried.steps if s is not step]
            yield _with_steps(tried, rest)


def _without_options(tried: Program) -> Iterator[Program]:
    for number, step in enumerate(tried.steps):
        for name in step.kwargs:
            less = replace(step, kwargs={k: v for k, v in step.kwargs.items() if k != name})
            yield replace(tried, steps=(*tried.steps[:number], less, *tried.steps[number + 1:]))


def _shorter(tried: Program) -> Iterator[Program]:
    """Every axis of one length made shorter, wherever that number stands."""
    lengths = {n for c in tried.constants.values() for n in c.values.shape}
    lengths |= {leaf for s in tried.steps for leaf in program.walk(s.args)
                if type(leaf) is int and leaf > 1}
    for length in sorted(lengths, reverse=True):
        for shorter in sorted({1, 2, 3, 5, length // 2, length - 1}):
            if 0 < shorter < length:
                yield _with_length(tried, length, shorter)


def _with_length(tried: Program, length: int, shorter: int) -> Program:
    def change(leaf: Any) -> Any:
        return shorter if type(leaf) is int and leaf == length else leaf

    constants = {}
    for name, constant in tried.constants.items():
        values = constant.values[tuple(slice(0, shorter if n == length else n)
                                       for n in constant.values.shape)]
        constants[name] = constant if values.shape == constant.values.shape else Constant(values)
    return replace(tried, constants=constants, steps=tuple(s.mapped(change) for s in tried.steps))


def _simpler_constants(tried: Program) -> Iterator[Program]:
    simpler: list[Callable[[Any], Any]] = [
        np.zeros_like, np.ones_like,
        lambda v: np.arange(v.size).reshape(v.shape).astype(v.dtype),
        lambda v: np.where(np.isfinite(v), v, 0).astype(v.dtype),
        lambda v: np.where(np.isfinite(v), np.rint(v), 0).astype(v.dtype)
        if v.dtype.kind in "fc" else v]
    used = set().union(*(s.constants() for s in tried.steps)) if tried.steps else set()
    for name in sorted(used):
        values = tried.constants[name].values
        for simple in simpler:
            yield replace(tried, constants={**tried.constants, name: Constant(simple(values))})

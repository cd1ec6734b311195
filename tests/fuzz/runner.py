"""Runs a program under NumPy and under another module and says where they first differ.

tests/device/test_fuzz.py and the command line call `check`; the shrinker calls it for each smaller
program that it tries.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from clfuse._core import loading
from clfuse.functions.indexing import masks
from tests.fuzz import program
from tests.fuzz.bounds import Unbounded
from tests.fuzz.program import Program, Step
from tests.fuzz.reference import Observation, Reference, execute, namespace
from tests.support import agreement

if loading.load() is not None:
    loading.load().reuse_from(1)  # memory of small temporaries, too
masks.LEAST_PIECE = 8  # several pieces of short masks, too


@dataclass(frozen=True, slots=True)
class Difference:
    """Where and how the two ran apart.

    ``kind`` is ``"error"`` (one raised, or another class), ``"form"`` (dtype or shape),
    ``"value"``, ``"text"`` (printed differently) or ``"evaluation"`` (an error that came late).
    """

    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.message}"

    def alike(self, other: Difference | None) -> bool:
        """Whether a smaller program shows the same fault."""
        return other is not None and self.kind == other.kind and self._cause() == other._cause()

    def _cause(self) -> str:
        """The class of an error, or that a value differs; not which one."""
        return self.message.split(":")[0] if self.kind in ("error", "evaluation") else ""


def expectations(tested: Program) -> tuple[list[Observation], Reference]:
    """What NumPy shows at each step, and its state at the end; `Unbounded` if there is no telling.
    """
    reference = Reference(tested.constants)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [reference.take(step) for step in tested.steps], reference


def check(tested: Program, xp: ModuleType) -> Difference | None:
    """The first difference between NumPy and `xp` on a program, or None."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, reference = expectations(tested)
        if hasattr(xp, "KernelBuildWarning"):  # the values are right, but the kernel is not
            warnings.simplefilter("error", xp.KernelBuildWarning)
        with _settings(tested, xp):
            return _compare(tested, xp, expected, reference)


def _settings(tested: Program, xp: ModuleType) -> contextlib.AbstractContextManager[Any]:
    override = getattr(getattr(xp, "config", None), "override", None)
    if override is None or not tested.settings:
        return contextlib.nullcontext()
    return override(**tested.settings)  # type: ignore[no-any-return]


def _compare(tested: Program, xp: ModuleType, expected: list[Observation],
             reference: Reference) -> Difference | None:
    seen: list[Any] = []
    names = namespace(xp, tested, seen.append)
    for number, (step, wanted) in enumerate(zip(tested.steps, expected, strict=True)):
        where = f"step {number}, {step.text()}"
        seen.clear()
        error = agreement.error_of(lambda step=step: execute(step, names))  # type: ignore[misc]
        if agreement.is_simulators(error):
            return None
        if not agreement.same_class(error, wanted.error):
            return Difference("error", where, f"{_class(error)}: {_short(error)}; "
                              f"NumPy: {_class(wanted.error)}: {_short(wanted.error)}")
        if wanted.error is None and step.kind == program.OBSERVE:
            difference = _observed(where, seen[0], wanted)
            if difference is not None:
                return difference
        for target in step.targets if wanted.error is None else ():
            form = _form(names[target])
            if form is None:
                return Difference("form", where, f"{target} is a {type(names[target])}")
    return _compare_variables(xp, names, reference)


def _form(value: Any) -> tuple[Any, Any] | None:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return None if dtype is None or shape is None else (dtype, shape)


def _compare_variables(xp: ModuleType, names: dict[str, Any], reference: Reference,
                       ) -> Difference | None:
    for name, value in reference.values.items():
        form = agreement.difference_of_form(names[name], value)
        if form:
            return Difference("form", name, form)
    evaluate = getattr(xp, "evaluate", None)
    arrays = [names[name] for name in reference.values
              if agreement.is_recorded(xp, names[name])]
    if evaluate is not None and arrays:
        error = agreement.error_of(lambda: evaluate(*arrays))
        if agreement.is_simulators(error):
            return None
        if error is not None:
            return Difference("evaluation", "the end", f"{_class(error)}: {_short(error)}")
    for name, value in reference.values.items():
        try:
            problem = agreement.problem_within(names[name], value,
                                               np.asarray(reference.bounds[name]))
        except Exception as error:  # whatever the module under test raises so late is a fault
            return Difference("evaluation", name, f"{_class(error)}: {_short(error)}")
        if problem:
            return Difference("value", name, problem)
    return None


def _observed(where: str, actual: Any, wanted: Observation) -> Difference | None:
    if isinstance(wanted.value, str):
        if actual == wanted.value:
            return None
        if agreement.SIMULATED:
            return None
        return Difference("text", where, f"{actual!r}, NumPy shows {wanted.value!r}")
    problem = agreement.problem_within(np.asarray(actual), wanted.value, np.asarray(wanted.bound))
    return Difference("value", where, problem) if problem else None


def _class(error: BaseException | None) -> str:
    return "no error" if error is None else type(error).__name__


def _short(error: BaseException | None) -> str:
    return "" if error is None else " ".join(str(error).split())[:600]


def report(tested: Program, difference: Difference) -> str:
    """A failing program for a bug report: the difference, and a script that shows it."""
    origin = "" if tested.seed is None else f"seed {tested.seed}, "
    printed = "\n".join(f"print(repr({name}))" for name in _alive(tested.steps))
    return f"{origin}{difference}\n\n{tested.script()}{printed}\n"


def _alive(steps: tuple[Step, ...]) -> list[str]:
    names: dict[str, None] = {}
    for step in steps:
        for target in step.targets:
            names[target] = None
        if step.kind == program.DELETE:
            names.pop(step.args[0].name, None)
    return list(names)


def is_valid(tested: Program) -> bool:
    """Whether NumPy runs the program and its results have bounds."""
    try:
        expectations(tested)
    except Unbounded:
        return False
    return True


Checker = Callable[[Program], Difference | None]

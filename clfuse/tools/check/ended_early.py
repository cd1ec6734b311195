"""Evaluations that end early: random programs of writes in place, stopped anywhere.

Afterwards every array has NumPy's values.

A trial records a program, has it computed, and ends that early in one of these ways:

- an interrupt: KeyboardInterrupt at one of the calls that clfuse makes in Python, which are the
  instructions where a signal handler may raise it;
- the same while one of the statements is recorded: each array is as before it or as after it;
- a fault: a call of the driver fails, once or from there on (`driver_faults`);
- a refusal: every launch of one kernel fails as long as the arrays are looked at. Where somebody
  wrote that kernel, what does not depend on it has its value all the same;
- an interrupt while a generator draws, or while what it drew is computed: it goes on as if the draw
  had not begun, or as if it was made.

Then it looks at every array. Where a *wait* has failed nobody knows what the device has done: then
DeviceError is right, too.
"""

from __future__ import annotations

import dis
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

import numpy as np

from clfuse.engine.evaluate import lock
from clfuse.ir import trace
from clfuse.ir.nodes import Storage
from clfuse.runtime.context import lost

from . import driver_faults

__all__ = [
    "WAYS", "Interrupt", "drawn", "faulty", "generate", "interrupted", "recorded", "refused", "run",
]

PACKAGE = str(Path(__file__).parents[2])
#: What only reads the program: thousands of instructions that leave nothing behind.
READERS = tuple(f"{PACKAGE}/{name}/" for name in ("schedule", "codegen"))

SHAPES = [(7, 7), (33, 33), (5, 5, 5)]
NAMES = "xyz"
APART = "uv"
"""Arrays that no statement of `TEMPLATES` reads or writes."""
TEMPLATES = """
    {x} += 1|{x} *= 2|{x} -= {y}|{x} += {y}[::-1]|{x}[1:] += 2|{x}[1:] += {x}[:-1]|{x}[...] = {y}
    {x}[::2] = {y}[::2]|{x}[:, 0] = {y}[:, 1]|{x}[0], {x}[-1] = {x}[-1], {x}[0]|{x}[2:, 1:] *= 3
    {x} = {y} + {z}|{x} = {y} @ {z}|{x} = np.roll({y}, 1, axis=0)|{x} = {y} * 2
    {x} = {y} - {y}.max()
    t = {x} * 2; {x} += 1; {y} = t @ {z}|{y} = ({x} + {z}) @ {z}|{x} += ({y} @ {z}) % 8
    np.add.at({x}, [0, 2, 0], 1)|{x}[[2, 0]] = 3|{x}[{y} > 3] = 0|{x}[{y} > 3] += 1
    np.maximum({x}, {y}, out={x})|{x}, {y} = np.divmod({y}, 3)|{x}.sort(axis=1)|{x}.sort(axis=0)
    {x} = np.cumsum({y}, axis=1)|s = {x}.sum(axis=0); {x} -= s; {y} += s|{x} /= 1; {x} -= {x}.min(0)
    {x} = np.concatenate([{y}[1:], {z}[:1]])|{x} = np.where({y} > 2, {x}, {z})|{x}.T[...] = {y}
    view = {x}[1:]; view += 1; view[0] = 5|c = {x}.copy(); {x} += c[::-1]; {y} -= c
    np.put({x}, [3, 1], 7)
    for i in range(4): {x}[i] += {x}[i - 1]; {y}[i] -= 1
    for i in range(3): {x} += {y}; {y} %= 7; {z}[1:-1] = {x}[2:] - {x}[:-2]
    axpy(len({x}), {x}, {y})|axpy(len({x}), {x}, {y}); {y} += 1; axpy(len({x}), {z}, {x})
    {x} = stepped({x}, {y})|{x} = blended({y}, {z}); {y} += {x}
"""
STATEMENTS = [each for line in TEMPLATES.strip().splitlines() for each in line.strip().split("|")]


def generate(seed: int) -> tuple[tuple[int, ...], list[str]]:
    """Shape of the arrays, and statements; all numbers stay small."""
    draw = random.Random(seed)
    shape = draw.choice(SHAPES)
    lines = []
    for _ in range(draw.randint(2, 9)):
        x, y, z = draw.sample(NAMES, 3)
        lines.append(draw.choice(STATEMENTS).format(x=x, y=y, z=z))
        if draw.random() < 0.4:
            lines.append(f"{x} %= 16")
    return shape, lines


def _stepped(a: Any, b: Any) -> Any:
    c = a + b
    c[1:] += 1
    return c % 16


def _numpys_axpy(n: int, x: Any, y: Any) -> None:
    x.reshape(len(x), -1)[:, 0] += 2 * y.reshape(len(y), -1)[:, 0]


class Subject:
    """clfuse, or NumPy, with what programs use of it by name."""

    def __init__(self, xp: ModuleType) -> None:
        self.xp = xp
        self.names: dict[str, Any] = {"np": xp, "axpy": _numpys_axpy, "stepped": _stepped,
                                      "blended": _stepped}
        if xp is not np:
            self.names |= {"axpy": _ours(xp), "stepped": xp.jit(_stepped, donate="a"),
                           "blended": xp.jit(_stepped)}

    def record(
        self, shape: tuple[int, ...], lines: Sequence[str],
        before: Callable[[int], Any] = lambda number: None,
    ) -> dict[str, Any]:
        """The arrays after the program, as they are then: recorded, as a rule. Before each line a
        function is called with its number; where it answers something, that is the end."""
        draw = np.random.RandomState(shape[0])
        names = dict(self.names)
        for name in NAMES + APART:
            names[name] = self.xp.array(draw.randint(0, 9, shape).astype("f8"))
        for number, line in enumerate(lines):
            code = compile(line, "<program>", "exec")
            interrupt = before(number)
            if interrupt:
                with suppress(KeyboardInterrupt), interrupt:
                    exec(code, names)
                break
            exec(code, names)
        return {name: value for name, value in names.items() if len(name) == 1}


def _ours(xp: ModuleType) -> Any:
    @xp.kernel
    def axpy(i, x, y):  # type: ignore[no-untyped-def]
        x[i] += 2 * y[i]

    def call(n: int, x: Any, y: Any) -> None:
        axpy(n, x.reshape(n, -1)[:, 0], y.reshape(n, -1)[:, 0])

    return call


TAKING = ("POP_TOP", "STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_ATTR", "UNPACK_SEQUENCE")
"""What a statement does first with what a call has returned."""


@cache
def _interruptible(code: CodeType) -> frozenset[int]:
    """The offsets of a code's calls, of what comes after them, and where it begins.

    At a call of ``__exit__`` by the end of a ``with`` block no handler runs: it would leave what
    the block has entered. After a call one runs, and what was returned is lost.
    """
    found, before = set(), ["", "", ""]
    for each in dis.get_instructions(code):
        name = each.opname
        is_end = before in (["LOAD_CONST None"] * 3, ["LOAD_CONST None", "DUP_TOP", "DUP_TOP"])
        is_taken = name in TAKING and before[-1].startswith("CALL")
        if name == "RESUME" or is_taken or (name.startswith("CALL") and not is_end):
            found.add(each.offset)
        if name not in ("PRECALL", "CACHE", "EXTENDED_ARG"):
            is_none = name == "LOAD_CONST" and each.argval is None
            before = [*before[1:], "LOAD_CONST None" if is_none else name]
    return frozenset(found)


MONITORING: Final[Any] = getattr(sys, "monitoring", None)  # from Python 3.12 on
TOOL: Final = 4  # one of the numbers that belong to nobody


class Interrupt:
    """Counts the calls that clfuse makes in Python, and raises at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.count = 0
        self.where = ""

    def __enter__(self) -> Interrupt:
        if MONITORING:  # `settrace` tells nothing there of a function that ran without it before
            events = MONITORING.events
            MONITORING.use_tool_id(TOOL, "clfuse's interrupts")
            MONITORING.register_callback(TOOL, events.INSTRUCTION, self._reached)
            MONITORING.set_events(TOOL, events.INSTRUCTION)
            MONITORING.restart_events()
        else:
            sys.settrace(self._called)
        return self

    def __exit__(self, *error: Any) -> None:
        if MONITORING:
            MONITORING.set_events(TOOL, 0)
            MONITORING.register_callback(TOOL, MONITORING.events.INSTRUCTION, None)
            MONITORING.free_tool_id(TOOL)
        else:
            sys.settrace(None)

    def is_meant(self, code: CodeType) -> bool:
        """Whether a function is interrupted."""
        name = code.co_filename
        return name.startswith(PACKAGE) and not name.startswith(READERS) and name != __file__

    def _reached(self, code: CodeType, offset: int) -> Any:
        if offset not in _interruptible(code) or not self.is_meant(code):
            return MONITORING.DISABLE
        self._note(code, sys._getframe(1).f_lineno)
        return None

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self.is_meant(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _interruptible(frame.f_code):
            self._note(frame.f_code, frame.f_lineno)
        return self._executed

    def _note(self, code: CodeType, line: int) -> None:
        self.count += 1
        if self.count == self.at:
            self.where = f"{Path(code.co_filename).name}:{line}"
            raise KeyboardInterrupt


def looked(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value).tolist() for name, value in arrays.items()}


def interrupted(
    subject: Subject, seed: int, trials: int, choose: random.Random
) -> tuple[int, list[str]]:
    """How many trials there were, and what was wrong."""
    shape, lines = generate(seed)
    wanted = looked(Subject(np).record(shape, lines))
    for _ in range(choose.choice([1, 1, 4, 6])):  # known plans are run in other ways
        with Interrupt() as counted:
            arrays = subject.record(shape, lines)
            counted.count = 0
            subject.xp.evaluate(*arrays.values())
    most = max(counted.count, 1)
    problems = []
    for _ in range(trials):
        arrays = subject.record(shape, lines)
        interrupt = Interrupt(choose.randrange(1, most + 1))
        with suppress(KeyboardInterrupt), interrupt:
            subject.xp.evaluate(*arrays.values())
        problem = _problem(arrays, wanted, choose)
        if problem:
            what = f"seed {seed}, interrupted at {interrupt.where}: {problem}"
            problems.append(_with_program(what, shape, lines))
    return trials, problems


def _with_program(what: str, shape: tuple[int, ...], lines: list[str]) -> str:
    """What was wrong, with the program that shows it."""
    return "\n    ".join([what, str(shape), *lines])


def _at(chosen: int, interrupt: Interrupt, number: int) -> Interrupt | None:
    return interrupt if number == chosen else None


def recorded(
    subject: Subject, seed: int, trials: int, choose: random.Random
) -> tuple[int, list[str]]:
    """As `interrupted`, while a statement is recorded."""
    shape, lines = generate(seed)
    # What was donated is gone where an interrupt comes before the result has a name.
    simple = [number for number, line in enumerate(lines)
              if ";" not in line and "stepped" not in line and not line.startswith("for")]
    problems = []
    for _ in range(trials if simple else 0):
        chosen = choose.choice(simple)
        counted = Interrupt()
        subject.record(shape, lines, partial(_at, chosen, counted))
        interrupt = Interrupt(choose.randrange(1, max(counted.count, 1) + 1))
        arrays = subject.record(shape, lines, partial(_at, chosen, interrupt))
        either = [looked(Subject(np).record(shape, lines[:end])) for end in (chosen, chosen + 1)]
        for name in arrays:
            texts = [_problem({name: arrays[name]}, wanted, choose) for wanted in either
                     if name in wanted]
            if texts and all(texts):
                what = f"seed {seed}, {lines[chosen]!r} interrupted at {interrupt.where}"
                problems.append(_with_program(f"{what}: {texts[0]}", shape, lines))
    return trials, problems


def faulty(
    subject: Subject, seed: int, trials: int, choose: random.Random
) -> tuple[int, list[str]]:
    """As `interrupted`, with calls of the driver that fail."""
    xp = subject.xp
    shape, lines = generate(seed)
    wanted = looked(Subject(np).record(shape, lines))
    problems = []
    for _ in range(trials):
        device = xp.get_device()
        name = choose.choice(["clEnqueueNDRangeKernel", "clSetKernelArg", "clEnqueueCopyBuffer",
                              "clEnqueueWriteBuffer", "clEnqueueMapBuffer", "clCreateBuffer"])
        arrays = subject.record(shape, lines)
        status, times = choose.choice([-4, -5, -6, -54]), choose.choice([1, 2, None])
        first = choose.randrange(8)
        with (
            suppress(xp.ClfuseError, MemoryError, lost.driver_error()),
            warnings.catch_warnings(),
            driver_faults.failing(device, name, status, first=first, times=times),
        ):
            warnings.simplefilter("ignore", xp.KernelBuildWarning)
            xp.evaluate(*arrays.values())
        problem = _problem(arrays, wanted, choose)
        if problem:
            what = f"seed {seed}, {name} after {first} gave {status} x {times}: {problem}"
            problems.append(_with_program(what, shape, lines))
        if device.lost:
            problems.append(f"seed {seed}: {name} with {status} is no reason to give the device up")
            xp.set_device(xp.set_device(None))
    return trials, problems


def refused(
    subject: Subject, seed: int, trials: int, choose: random.Random
) -> tuple[int, list[str]]:
    """As `interrupted`, with a kernel that the driver never launches."""
    xp = subject.xp
    shape, lines = generate(seed)
    for _ in range(choose.choice([0, 1, 2])):  # nothing else has anything to do with u and v
        line = choose.choice(["axpy(len(u), u, v)", "axpy(len(v), v, u); u += 1", "u[1:] = v[:-1]"])
        lines.insert(choose.randrange(len(lines) + 1), line)
    wanted = looked(Subject(np).record(shape, lines))
    problems = []
    for _ in range(trials):
        device = xp.get_device()
        launched: list[str] = []

        def noted(*arguments: Any, launched: list[str] = launched) -> bool:
            launched.append(driver_faults.kernel_of(*arguments))
            return False

        arrays = subject.record(shape, lines)
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", 0, which=noted):
            xp.evaluate(*arrays.values())
        if not launched:
            break
        name, status = choose.choice(launched), choose.choice([-4, -5, -54])
        is_users = "axpy" in name

        def is_chosen(*arguments: Any, name: str = name) -> bool:
            return driver_faults.kernel_of(*arguments) == name

        arrays = subject.record(shape, lines)
        apart = {key: arrays[key] for key in "xyz"}
        if is_users and any("axpy" in line and "u" not in line for line in lines):
            apart = {}
        with (
            warnings.catch_warnings(),
            driver_faults.failing(device, "clEnqueueNDRangeKernel", status, which=is_chosen),
        ):
            warnings.simplefilter("ignore", xp.KernelBuildWarning)
            if choose.random() < 0.8:
                with suppress(xp.ClfuseError, lost.driver_error()):
                    xp.evaluate(*arrays.values())
            problem = _problem(apart if is_users else arrays, wanted, choose)
        problem = problem or _problem(arrays, wanted, choose)
        if problem:
            what = f"seed {seed}, {name} is refused with {status}: {problem}"
            problems.append(_with_program(what, shape, lines))
    return trials, problems


DRAWS = """
    a = rng.random(7)|a = rng.random((40, 50))|b = rng.normal(size=(7, 5))
    d = rng.random()|a = rng.standard_normal(5000)|b = rng.permutation(20)|c = rng.choice(9, 4)
    a = rng.exponential(size=20)|d = rng.integers(9)|rng.shuffle(x)|b = sampled(x)|d = rng.normal()
    a = old.rand(20)|b = old.randint(0, 5, 30)|c = old.randn(9, 9)|b = rng.binomial(9, 0.5, 6)
    a = rng.random(20_000) * 2 + x[0]|c = x[rng.integers(0, 20, 30)]|c = rng.integers(0, 9, 20)
"""


def drawn(subject: Subject, seed: int, trials: int, choose: random.Random) -> tuple[int, list[str]]:
    """As `interrupted`, with programs that draw random numbers."""
    xp = subject.xp
    draw = random.Random(seed)
    statements = [each for line in DRAWS.strip().splitlines() for each in line.strip().split("|")]
    lines = [draw.choice(statements) for _ in range(draw.randint(2, 6))]

    def begun() -> dict[str, Any]:
        rng = xp.random.default_rng(seed)
        return {"rng": rng, "old": xp.random.RandomState(seed), "x": xp.arange(20.0),
                "sampled": xp.jit(lambda x: x + rng.random(20))}

    def values(names: dict[str, Any]) -> dict[str, Any]:
        return {name: np.array(names[name]).tolist() for name in "xabcd" if name in names}

    def following(names: dict[str, Any]) -> list[Any]:
        """What the generators draw next."""
        rng, old = names["rng"], names["old"]
        return [rng.random(3).tolist(), rng.normal(size=3).tolist(), rng.random(),
                rng.integers(0, 99, 5).tolist(), old.rand(3).tolist(), old.randn(2).tolist()]

    # Not texts: an interrupt in a text that runs makes 130 of the process's exit status.
    codes = [compile(line, "<program>", "exec") for line in lines]

    def after(count: int) -> tuple[dict[str, Any], list[Any]]:
        names = begun()
        for code in codes[:count]:
            exec(code, names)
        return values(names), following(names)

    wanted = [after(count) for count in range(len(lines) + 1)]
    problems = []
    for _ in range(trials):
        chosen = choose.randrange(len(lines) + 1)  # the last one: while all is computed
        at = 0
        for is_trial in (False, True):
            names = begun()
            interrupt = Interrupt(at)
            for code in codes[:chosen]:
                exec(code, names)
            with suppress(KeyboardInterrupt), interrupt:
                if chosen < len(lines):
                    exec(codes[chosen], names)
                else:
                    xp.evaluate(*[names[n] for n in "xabc" if n in names])
            if not is_trial:
                at = choose.randrange(1, max(interrupt.count, 1) + 1)
        left = _left_behind()
        if left:
            problems.append(f"seed {seed}, interrupted at {interrupt.where}: {left}")
            continue
        found = values(names), following(names)
        for name, (given, next_draws) in enumerate(zip(found, wanted[chosen], strict=True)):
            other = wanted[min(chosen + 1, len(lines))][name]
            if given not in (next_draws, other):
                problems.append(
                    f"seed {seed}, {[*lines, 'evaluate'][chosen]!r} interrupted at"
                    f" {interrupt.where}: {str(given)[:300]}\n    before: {str(next_draws)[:300]}\n"
                    f"    after: {str(other)[:300]}\n    " + "\n    ".join(lines))
    return trials, problems


def _left_behind() -> str:
    """What early ends must leave to nobody: a later program would fail that has nothing to do with
    them, and it may be long until then."""
    if lock._is_owned():  # type: ignore[attr-defined]
        lock.release()
        return "evaluations are locked"
    if trace.active() is not None or trace.tracers[0]:
        return "a trace goes on"
    if isinstance(vars(Storage)["node"], property):
        return "cells are shown to traces"
    if trace._alive[0] < 0:
        trace._alive[0] = 0
        return "leaves without bytes are miscounted"
    return ""


def _untouched(subject: Subject, seed: int) -> str:
    """What is wrong with a program that nothing ends early, after others: small enough for NumPy,
    which takes what waits along."""
    shape, lines = generate(seed)
    wanted = looked(Subject(np).record(shape, lines))
    with subject.xp.config.override(host_us=1_000_000):
        arrays = subject.record(shape, lines)
        problem = _problem(arrays, wanted, random.Random(seed))
        subject.xp.evaluate()
    return problem


def _problem(arrays: dict[str, Any], wanted: dict[str, Any], choose: random.Random) -> str:
    """Which array has another value than NumPy's; they are looked at in any order."""
    left = _left_behind()
    if left:
        return left
    names = sorted(arrays)
    choose.shuffle(names)
    for name in names:
        try:
            found = np.array(arrays[name]).tolist()
        except Exception as error:  # noqa: BLE001 (whatever is raised is not a value)
            return f"{name}: {type(error).__name__}: {error}"
        if found != wanted[name]:
            return f"{name} is {str(found)[:200]}; NumPy: {str(wanted[name])[:200]}"
    return ""


WAYS = (interrupted, recorded, faulty, refused, drawn)


def run(
    xp: ModuleType, seeds: Sequence[int], trials: int,
    ways: Sequence[Callable[..., tuple[int, list[str]]]] = WAYS,
    seconds: float = float("inf"),
) -> tuple[int, list[str]]:
    """Trials of the programs of these seeds: how many, and what was wrong.

    The ways come in any order, and after all of them a program that nothing ends early: what one
    leaves behind may meet another.
    """
    subject, begin = Subject(xp), time.monotonic()
    count, problems = 0, []
    for seed in seeds:
        choose = random.Random(seed)
        for way in choose.sample(ways, len(ways)):
            with xp.config.override(host_us=choose.choice([0, 0, 1_000_000])):
                done, found = way(subject, seed, trials, choose)
            count += done
            problems += found
        problem = _untouched(subject, seed)
        if problem:
            problems.append(f"seed {seed}, untouched: {problem}")
        if time.monotonic() - begin > seconds:
            break
    return count, problems

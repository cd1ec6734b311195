"""Random kernels with barriers, run by hand with the work-items of a group in any order between
barriers: in those that are not refused, all work-items come to every barrier."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import clfuse as cf
from clfuse.user_kernels.language.source import barriers
from clfuse.user_kernels.language.source.lower import lower
from clfuse.user_kernels.language.source.syntax import read_source
from clfuse.user_kernels.language.source.types import INT, ArrayType
from tests.support.kernel_bodies import function_of

SIZE: Final = 3  # work-items of the group, and elements of what they share
STEPS: Final = 400  # of a run, after which it is given up: a loop may have no end
RUNS: Final = 12  # of a kernel, in other orders
PROGRAMS: Final = int(os.environ.get("CLFUSE_FUZZ_PROGRAMS", "250"))

HEAD = """\
q = cf.group.local_id()
t = cf.group.local_array(3, np.int32)
p = cf.local_array(2, np.int32)
s = a
u = 1
"""


class Writer:
    """Writes the body of a kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.loops = 0

    def value(self, rounds: int = 0) -> str:
        choice = self.random.choice
        names = ["a", "s", "u", "q", *[f"k{number + 1}" for number in range(rounds)]]
        one = choice([
            "0", "1", "2", choice(names), choice("asu"), f"p[{choice('01')}]",
            f"t[{choice('012')}]", f"t[{choice(names)} % 3]",
        ])
        return f"({one} + {self.value(rounds)}) % 3" if self.random.random() < 0.25 else one

    def condition(self, rounds: int) -> str:
        operator = self.random.choice(["==", ">", "!="])
        return f"{self.value(rounds)} {operator} {self.random.choice('012')}"

    def block(self, rounds: int) -> list[str]:
        count = self.random.randint(1, 4)
        return [line for _ in range(count) for line in self.statement(rounds)]

    def inner(self, rounds: int) -> list[str]:
        self.depth += 1
        found = [f"    {line}" for line in self.block(rounds)]
        self.depth -= 1
        return found

    def statement(self, rounds: int) -> list[str]:
        kind = self.random.choices(
            ("barrier", "s", "u", "t", "p", "if", "for", "while", "jump", "return"),
            (6, 2, 2, 3, 1, 3, 2, 1, 1, 0.3),
        )[0]
        if kind == "barrier":
            return ["cf.group.barrier()"]
        if kind in "su":
            return [f"{kind} = {self.value(rounds)}"]
        if kind == "t":
            return [f"t[{self.random.choice('012q')}] = {self.value(rounds)}"]
        if kind == "p":
            return [f"p[{self.random.choice(['0', '1', 's % 2'])}] = {self.value(rounds)}"]
        if kind == "jump" and self.loops:
            jump = self.random.choice(("break", "continue"))
            return [f"if {self.condition(rounds)}:", f"    {jump}"]
        if kind == "return" and self.depth:
            return [f"if {self.condition(rounds)}:", "    return"]
        if kind == "if" and self.depth < 3:
            lines = [f"if {self.condition(rounds)}:", *self.inner(rounds)]
            return [*lines, "else:", *self.inner(rounds)] if self.random.random() < 0.4 else lines
        if kind == "for" and self.depth < 2:
            name = f"k{rounds + 1}"
            self.loops += 1
            body = self.inner(rounds + 1)
            self.loops -= 1
            return [f"for {name} in range({self.value(rounds)}):", *body]
        if kind == "while" and self.depth < 2:
            self.loops += 1
            body = self.inner(rounds)
            self.loops -= 1
            jump = [f"    if {self.condition(rounds)}:", "        break"]
            return [f"while {self.condition(rounds)}:", *body, *jump]
        return [f"u = {self.value(rounds)}"]


def steps_of(body: str) -> Any:
    """The same as a generator: it stops before every statement, and says which barrier it is at."""
    lines = ["def steps(q, a, t):", "    p = [0, 0]", "    s, u = a, 1"]
    for number, line in enumerate(body.splitlines()):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() == "else:":
            lines.append(f"    {line}")
        elif line.strip() == "cf.group.barrier()":
            lines.append(f"    {indent}yield {number}")
        else:
            lines += [f"    {indent}yield None", f"    {line}"]
        if line.strip().startswith("while "):
            lines.append(f"    {indent}    yield None")
    scope: dict[str, Any] = {}
    exec("\n".join([*lines, "    yield None"]), scope)
    return scope["steps"]


def diverges(steps: Any, order: random.Random) -> bool:
    """Whether only some work-items come to a barrier when they go on in this order."""
    t = [order.randrange(3) for _ in range(SIZE)]
    a = order.randrange(3)
    going: list[Iterator[int | None]] = [steps(q, a, t) for q in range(SIZE)]
    waiting: list[tuple[int, Iterator[int | None]]] = []
    ended = False
    for _ in range(STEPS):
        if not going:
            if not waiting:
                return False
            if ended or len({place for place, _ in waiting}) > 1:
                return True
            going, waiting = [item for _, item in waiting], []
        # One is often far ahead of the others.
        item = going[0] if order.random() < 0.3 else order.choice(going)
        for _ in range(order.choice((1, 1, 3, 20))):
            try:
                place = next(item)
            except StopIteration:
                going.remove(item)
                ended = True
                break
            if place is not None:
                going.remove(item)
                waiting.append((place, item))
                break
    return ended and bool(waiting)


def is_refused(body: str) -> bool:
    source = read_source(function_of(HEAD + body, "i, a, x", {"cf": cf, "np": np}))
    kinds = {"a": INT, "x": ArrayType(np.dtype(np.float32), 1)}
    typed = lower(source, kinds, ("i",))
    try:
        barriers.check(source, typed, SIZE)
    except cf.KernelError:
        return True
    return False


@pytest.mark.parametrize("part", range(4))
def test_all_work_items_reach_barriers_of_accepted_kernels(part: int) -> None:
    taken = on_memory = seen = 0
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        body = "\n".join(Writer(seed).block(0))
        if "barrier" not in body:
            continue
        steps, order = steps_of(body), random.Random(seed)
        if is_refused(body):
            seen += any(diverges(steps, order) for _ in range(RUNS))
            continue
        taken += 1
        on_memory += any("t[" in line and line.endswith(":") for line in body.splitlines())
        for _ in range(RUNS):
            assert not diverges(steps, order), body
    assert taken > PROGRAMS / 4
    assert on_memory > PROGRAMS / 50
    assert seen > PROGRAMS / 50

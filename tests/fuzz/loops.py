"""Draws loops of many rounds, and compares them with NumPy's, with clfuse's settings as they are.

What a loop does is first NumPy's, at the call or recorded, and its kernels come in the background,
so who computes changes within a program: between two rounds, two statements, or two views of the
same memory. `tests.fuzz.texts` has more statements, and few rounds.

Numbers stay small multiples of 1/4, so sums are exact and results are the same to the last digit.
Names that begin with w are of functions that round; what they hold shrinks with every round, so
errors do, too.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from tests.fuzz.texts import data, table

SIZES = [6, 60, 1200, 6000, 24_000, 60_000, 120_000]
DTYPES = ["f8", "f8", "f4", "i8", "i4", "u1"]
ROUNDS = [50, 80, 120, 300]
TRIED = 5            # rounds in which a statement must not raise
LATER = 0.15         # of the statements that run in some rounds only
TOLERANCE = {"f": 1e-4, "d": 1e-9}
SETTINGS: list[dict[str, Any]] = [{}, {}, {}, {}, {"build_after_ms": 10}, {"host_us": 5}]

WRITES = """
    {x} += {y}; {x} %= 16|{x}[1:] += {x}[:-1]; {x} %= 16|{x}[::-1] = {x}
    {x}[{x} > {k}] = i % 7|{x}[::2] = {y}[::2] % 9|{x}[...] = {x} * 3 % 16|{x}[1:] = {x}[:-1]
    {x}[i % len({x})] = i % 11|{x}[i % len({x}) :] = {k}|np.add({x}, {k}, out={x}); {x} %= 16
    {x}[{x} < {k}] += 2|{x}[{p}] = {x}[{p}] + 1; {x} %= 16|np.add.at({x}, {p}, 1); {x} %= 16
    np.copyto({x}, {y}, where={x} > {k})|np.remainder({x} + {y}, 16, out={y})
    t = {x}[1:-1]; t += 1; t %= 16|t = {x}.reshape(2, -1); t[0] = t[1]|t = {x}[::-2]; t[:] = {k}
    t = {x}; t += 1; t %= 13|{x}.reshape(-1, 3)[:, 1] = {k}|{x}.sort()|{x}.fill({k})
    {x}[:] = np.roll({x}, i % 5)|{x}[0], {x}[-1] = {x}[-1], {x}[0]|np.minimum({x}, {y}, out={x})
    {x}[: i + 1] = {y}[: i + 1]|{x} *= 2; {x} %= 16|{x}[{x} == {x}.max()] = 1
"""
STEPS = """
    {x} = ({x} + {y}) % 16|{x} = np.where({x} > {k}, {x} - {k}, {y})|{x}, {y} = {y}, {x}
    {x} = ({x} * 3 + 1) % 16|{x} = np.roll({x}, 1)|{x} = {x}[::-1]|{x} = {x}.copy()
    {x} = np.concatenate([{x}[-1:], {x}[:-1]])|{x} = np.maximum({x}, {y}[::-1])
    {x} = np.cumsum({x} % 3)[: len({x})].astype({x}.dtype) % 16|{x} = np.abs({x} - {y}) % 16
    {x} = f({x}, {y})|{x} = {x}.reshape(2, -1)[::-1].ravel()
    {x} = ({x} // 1 + 1) * ({y} // 1 + 1) % 16
    t = {x}[::2] + {y}[1::2]; {x}[::2] = t % 8|t = {x} - {x}.min(); {x} = t % 16
    t = {x} > {k}; {x} = {x} * t|t = {x}[: len({x}) - i % 7] + 1; {x}[: t.size] = t % 16
    {x} = np.repeat({x}[: len({x}) // 2], 2)|t = ({x}.reshape(-1, 3) % 4).sum(axis=1); look(t.max())
    if {x}.sum() > {y}.sum(): {x} = {y} + 0|{x} = np.pad({x}, 1)[1:-1]
    {x} = {x} + ({x}.max() < 9); {x} %= 16|m = ({x}[:36] % 3).reshape(6, -1); look((m @ m.T).sum())
    {x} = np.take({x}, {p}).sum() % 5 + {x}; {x} = ({x} % 16).astype(d)
    {x} = np.sort({x})[::-1]|{x} = np.clip({x}, 1, {k} + 3)|{x} = np.zeros_like({x}) + {k}
"""
LOOKS = """
    look({x}.sum())|look(float({x}[i % len({x})]))|look({x}.max(), {x}.argmin())|look({x}[:3])
    look(({x} > {k}).sum())|look(int({x}[0]) + 1)|t = {x}[{x} > {k}]; look(t.size, t.sum())
    look(np.count_nonzero({x} == {y}))|look(bool(({x} == {y}).all()))|look({x}.any())
    look({x}[1:].sum() - {x}[:-1].sum())|look({x}.tolist()[-2:])|look(np.nonzero({x} > {k})[0][:5])
    kept.append({x}[:4])|kept.append({x}.copy()[:9])|kept.append({x} + 1)|kept.append({x}.sum())
    look(np.dot({x} % 4, {y} % 4))|look(({x} % 4 * ({y} % 4)).sum())
    look(np.bincount({x}.astype('i8'), minlength=4))
    look(np.unique({x})[:5])|look({x}.reshape(2, -1).sum(axis=0)[:4])|look(str({x}[:2]))
    try: look({x} + np.ones(len({x}) + 2)); look(1)|look(np.searchsorted(np.sort({x}), {k}))
    look({x}.mean() > {k})|look((({x} % 4 - {y} % 4) ** 2).sum())|look({x}.cumsum()[-1])
"""
ROUNDED = """
    w = w * 0.5 + np.sin({x})|w[1:] = (w[1:] + w[:-1]) * 0.25|w = np.exp(-w * w) / 3 + {x} / 64
    w *= 0.75; w += {x}[: w.size] / 16.0|w = np.sqrt(np.abs(w)) * 0.125|w -= w.mean()
    look_near(w.sum() / w.size)|look_near(np.linalg.norm(w) / w.size)|w[w > 1] *= 0.5
"""
BEFORE = """
    {v} = {x}[1:-1]|{v} = {x}[::2]|{v} = {x}[::-1]|{v} = {x}.reshape(2, -1)[0]|{v} = {x}
    {v} = {x}[3:].view()|{v} = {x}.reshape(2, -1).T[:, 1]|{v} = {x}.copy()|{v} = {x} * 2 % 8
"""
FUNCTION = """
def f(a, b):
    c = a * 2 + b
    c[1:] += a[:-1]
    return c % 16
"""


class Loop:
    """One program: what comes before the loop, its rounds and its statements; and the settings."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.settings = self.random.choice(SETTINGS)
        dtype = self.random.choice(DTYPES)
        size = self.random.choice(SIZES[:-1] if dtype == "f4" else SIZES)
        names = ["v1", "v2", "v3"][: self.random.randint(2, 3)]
        self.before = [f"d = {dtype!r}", "kept = []"]
        shape = f"({size},)"
        for name in names:
            given = self.random.randrange(10**6)
            self.before.append(f"{name} = np.array(data({given}, {shape}, d)) % 16")
        self.before.append(f"w = np.arange({size}) % 5 / 8")
        if self.random.random() < 0.5:
            self.before.append("w = w.astype('f4')")
        self.before.extend(FUNCTION.strip().splitlines())
        if self.random.random() < 0.3:
            self.before.append("f = jit(f)")
        for name in ["v8", "v9"][: self.random.randint(0, 2)]:
            kept = self._drawn(BEFORE, names).replace("{v}", name)
            self.before.append(kept)
            names.append(name)
        self.rounds = self.random.choice(ROUNDS if size < 100_000 else ROUNDS[:3])
        self.body: list[str] = []
        wanted = self.random.randint(2, 9)
        tables = [WRITES, STEPS, LOOKS, ROUNDED]
        for _ in range(wanted * 3):
            if len(self.body) < wanted:
                chosen = self.random.choices(tables, [6, 5, 4, 1])[0]
                self._keep(self._drawn(chosen, names))

    def _drawn(self, entries: str, names: list[str]) -> str:
        draw = self.random
        text = draw.choice(table(entries))
        places = [draw.randint(-6, 5) for _ in range(draw.choice([1, 3, 6]))]
        return text.format(
            x=draw.choice(names), y=draw.choice(names), k=draw.randint(0, 9), v="{v}",
            p=f"np.array({places})",
        )

    def _keep(self, statement: str) -> None:
        lines = statement.split("; ")
        if lines[0].startswith("try: "):
            lines = ["try:", f"    {lines[0][5:]}", "except ValueError:", f"    {lines[1]}"]
        if self.random.random() < LATER:
            every = self.random.choice([2, 3, 10])
            lines = [f"if i % {every} == {every - 1}:", *["    " + line for line in lines]]
        elif self.random.random() < LATER:
            lines = [f"if i > {self.rounds // 2}:", *["    " + line for line in lines]]
        self.body.extend(["\n".join(lines)])
        found = Outcome(self, np, rounds=TRIED)
        last = Outcome(self, np, rounds=TRIED, first=self.rounds - TRIED)
        if found.error or last.error:
            self.body.pop()

    def text(self, rounds: int | None = None, first: int = 0) -> str:
        inner = [line for statement in self.body for line in statement.splitlines()] or ["pass"]
        end = self.rounds if rounds is None else first + rounds
        head = [*self.before, f"for i in range({first}, {end}):"]
        return "\n".join([*head, *["    " + line for line in inner]])


class Outcome:
    """What a program shows under a module: all that it looked at, its arrays at the end, and which
    share memory."""

    def __init__(
        self, loop: Loop, xp: ModuleType, rounds: int | None = None, first: int = 0
    ) -> None:
        self.looked: list[Any] = []
        self.near: list[float] = []
        self.error = ""
        self.arrays: dict[str, Any] = {}
        names: dict[str, Any] = {
            "np": xp, "data": data, "jit": getattr(xp, "jit", lambda function: function),
            "look": lambda *seen: self.looked.append([_form(each) for each in seen]),
            "look_near": lambda seen: self.near.append(float(seen)),
        }  # fmt: skip
        with warnings.catch_warnings(), xp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(compile(loop.text(rounds, first), f"<loop {loop.seed}>", "exec"), names)
            except Exception as error:
                self.error = f"{type(error).__name__}: {error}"
            kept = {f"kept[{n}]": value for n, value in enumerate(names.get("kept", []))}
            arrays = {name: value for name, value in names.items() if name[0] in "vwtm"} | kept
            last = list(arrays)
            random.Random(loop.seed).shuffle(last)
            for name in last:
                try:
                    self.arrays[name] = _form(arrays[name])
                except Exception as error:  # whatever comes so late is a fault
                    self.error = self.error or f"{name}: {type(error).__name__}: {error}"
                    self.arrays[name] = ()
            shared = [name for name in arrays if name[0] == "v" and len(arrays[name])]
            self.sharing = {
                pair for pair in itertools.combinations(shared, 2)
                if xp.shares_memory(arrays[pair[0]], arrays[pair[1]])
            }  # fmt: skip


def _form(value: Any) -> Any:
    """A value as plain data: class, dtype, shape and NumPy's array of it."""
    if isinstance(value, (bool, int, float, str, list)):
        return type(value).__name__, value
    host = np.array(value)
    return hasattr(value, "setflags") and bool(value.flags.writeable), str(value.dtype), \
        tuple(value.shape), host


def _differs(found: Any, wanted: Any, *, nearly: bool) -> bool:
    if len(found) != len(wanted) or found[:-1] != wanted[:-1]:
        return True
    one, other = found[-1], wanted[-1]
    if not isinstance(other, np.ndarray):
        return bool(one != other)
    if nearly:
        tolerance = TOLERANCE.get(other.dtype.char, 0)
        return not np.allclose(one, other, rtol=tolerance, atol=tolerance)
    return one.tobytes() != other.tobytes() and not np.array_equal(one, other, equal_nan=True)


def difference(found: Outcome, wanted: Outcome) -> str:
    """The first one, in words; empty without one."""
    if found.error != wanted.error:
        return f"error {found.error!r}; NumPy: {wanted.error!r}"
    for number, (one, other) in enumerate(zip(found.looked, wanted.looked, strict=False)):
        if any(_differs(a, b, nearly=False) for a, b in zip(one, other, strict=True)):
            return f"look {number}: {str(one)[:300]}; NumPy: {str(other)[:300]}"
    if len(found.looked) != len(wanted.looked):
        return f"{len(found.looked)} looks; NumPy: {len(wanted.looked)}"
    if not np.allclose(found.near, wanted.near, rtol=TOLERANCE["f"], atol=TOLERANCE["f"]):
        return f"sums: {found.near[:9]}; NumPy: {wanted.near[:9]}"
    for name, value in wanted.arrays.items():
        if _differs(found.arrays[name], value, nearly=name == "w"):
            return f"{name}: {str(found.arrays[name])[:300]}; NumPy: {str(value)[:300]}"
    if found.sharing != wanted.sharing:
        return f"{found.sharing} share memory; NumPy: {wanted.sharing}"
    return ""


def check(loop: Loop, xp: ModuleType, turns: int = 2) -> str:
    """The first difference, in words; empty without one. It runs several times: kernels that come
    late are there the next time."""
    wanted = Outcome(loop, np)
    config = getattr(xp, "config", None)
    for turn in range(turns):
        with config.override(**loop.settings) if config else contextlib.nullcontext():
            found = difference(Outcome(loop, xp), wanted)
        if found:
            return f"turn {turn}: {found}"
    return ""


def shrink(loop: Loop, xp: ModuleType) -> Loop:
    """The program without the statements that a difference does not need, where it comes again."""
    for place in reversed(range(len(loop.body))):
        kept = loop.body
        loop.body = kept[:place] + kept[place + 1:]
        if not check(loop, xp):
            loop.body = kept
    return loop


def report(loop: Loop, problem: str) -> str:
    """A script for a bug report."""
    given = " ".join(f"CLFUSE_{key.upper()}={value}" for key, value in loop.settings.items())
    return f"seed {loop.seed}, {problem}\n{given}\n\n{loop.text()}\n"

"""Random loops of time steps, as programs for any array module: states that take of themselves.

Their operations are exact (IEEE 754 or integers), so that every bit is NumPy's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_BINARY = ("add", "subtract", "multiply", "minimum", "maximum")
DTYPES = ("float64", "float32", "int32", "int64", "uint8", "bool", "complex128", "float16")


@dataclass(frozen=True, slots=True)
class _Statement:
    """``target = name(operands)``; a target that ends in a quote is next round's state."""

    target: str
    name: str
    operands: tuple[str, ...]


class TimeSteps:
    """A loop: `rounds` times the same statements over a few states.

    Calling it with an array module gives all that the loop leaves: its states, those of the round
    before, and copies that were kept on the way.
    """

    def __init__(
        self, seed: int, length: int = 1000, dtypes: Sequence[str] = DTYPES
    ) -> None:
        draws = random.Random(seed)
        self.length = length
        self.rounds = draws.choice([3, 5, 6, 9, 24, 41, 100, 137])
        self.dtypes = {f"s{n}": draws.choice(dtypes) for n in range(draws.randint(1, 4))}
        self.delays = {name: draws.choice([1, 1, 1, 2, 3]) for name in self.dtypes}
        self.fixed = {f"c{n}": draws.choice(dtypes) for n in range(draws.randint(0, 2))}
        self.kept_at = set(draws.sample(range(self.rounds), draws.choice([0, 0, 0, 1, 2])))
        self.starts_alike = draws.random() < 0.3
        known = {*self.dtypes, *self.fixed, *[f"{name}_" for name in self.dtypes]}
        self.statements: list[_Statement] = []
        for number in range(draws.randint(0, 5)):
            self.statements.append(self._statement(draws, f"t{number}", known))
            known.add(f"t{number}")
        for name in self.dtypes:
            if self.statements and draws.random() < 0.3:
                known -= {name}  # then this round's statements take what is new at once
            self.statements.append(self._statement(draws, f"{name}'", known))

    @staticmethod
    def _statement(draws: random.Random, target: str, known: set[str]) -> _Statement:
        names = sorted(known)
        if draws.random() < 0.2:
            return _Statement(target, "where", tuple(draws.choices(names, k=3)))
        if draws.random() < 0.15:
            return _Statement(target, "greater", tuple(draws.choices(names, k=2)))
        second = draws.choice(names) if draws.random() < 0.7 else draws.choice(["2", "3"])
        return _Statement(target, draws.choice(_BINARY), (draws.choice(names), second))

    def _start(self, module: Any, name: str, dtype: str, number: int) -> Any:
        if self.starts_alike and name.startswith("s"):
            return module.ones(self.length, dtype)
        return module.asarray(((np.arange(self.length) * (number + 3)) % 7 - 2).astype(dtype))

    def __call__(self, module: Any) -> list[Any]:
        values: dict[str, Any] = {}
        for number, (name, dtype) in enumerate({**self.dtypes, **self.fixed}.items()):
            values[name] = self._start(module, name, dtype, number)
        past = {name: [values[name]] * 3 for name in self.dtypes}
        kept = []
        for turn in range(self.rounds):
            for name in self.dtypes:
                values[f"{name}_"] = past[name][-self.delays[name]]
            new = {}
            for one in self.statements:
                taken = [values[each] if each in values else int(each) for each in one.operands]
                made = self._do(module, one.name, taken)
                if one.target.endswith("'"):
                    name = one.target[:-1]
                    new[name] = made.astype(self.dtypes[name])
                    values[name] = new[name]
                else:
                    values[one.target] = made
            for name in self.dtypes:
                past[name] = [*past[name][1:], values[name]]
            if turn in self.kept_at:
                kept.append(next(iter(new.values())))
        return [*kept, *[values[name] for name in self.dtypes],
                *[past[name][-2] for name in self.dtypes]]

    @staticmethod
    def _do(module: Any, name: str, taken: list[Any]) -> Any:
        if name == "where":
            return module.where(taken[0] != 0, *taken[1:])
        if name == "subtract" and all(getattr(each, "dtype", None) == np.bool_ for each in taken):
            name = "not_equal"  # NumPy subtracts no bools
        return getattr(module, name)(*taken)

"""Random kernels with a loop over a part of a vector that adds up; tests of lanes run them."""

from __future__ import annotations

import random

from tests.support.kernel_programs import written

__all__ = ["random_loop"]

BOUNDS = (
    ("b[i]", "e[i]", (1, 2, 3)),
    ("b[i] + i % 3", "e[i]", (1,)),
    ("0", "e[i] - b[i]", (1, 3)),
    ("e[i] - 1", "b[i] - 1", (-1, -2)),
)
TERMS = (
    "x[k]", "y[p[k]]", "0.5", "w[k % 7]", "float(k)", "y[i]", "x[len(x) - 1 - k]", "c[k % 5, i % 3]"
)


class _Loop:
    """Writes the statements of a round, indented; variables are read where they have values."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def term(self, depth: int, variables: list[str]) -> str:
        chance = self.chance
        kind = chance.random()
        if depth <= 0 or kind < 0.3:
            return chance.choice([*TERMS, *variables])
        one, other = self.term(depth - 1, variables), self.term(depth - 1, variables)
        if kind < 0.7:
            return f"({one} {chance.choice('+-*')} {other})"
        if kind < 0.8:
            return f"({one} if {self.condition(depth - 1, variables)} else {other})"
        return f"min({one}, {other})" if kind < 0.9 else f"abs({one})"

    def condition(self, depth: int, variables: list[str]) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.5:
            one, other = self.term(depth - 1, variables), self.term(depth - 1, variables)
            return f"{one} {chance.choice(['<', '>', '<=', '!='])} {other}"
        if kind < 0.7 or depth <= 0:
            return chance.choice(["k % 3 == 1", "i > 4", "p[k] > 20"])
        one, other = self.condition(depth - 1, variables), self.condition(depth - 1, variables)
        return f"not ({one})" if kind < 0.8 else f"({one} {chance.choice(['and', 'or'])} {other})"

    def block(self, count: int, variables: list[str], depth: int) -> list[str]:
        chance = self.chance
        lines: list[str] = []
        variables = list(variables)
        for _ in range(count):
            kind = chance.random()
            if kind < 0.3:
                name = chance.choice(["t0", "t1", "t2"])
                lines.append(f"{name} = {self.term(2, variables)}")
                variables.append(name)
            elif kind < 0.6 or depth == 0:
                sign = chance.choice(["+=", "-="])
                lines.append(f"{chance.choice('su')} {sign} {self.term(2, variables)}")
            elif kind < 0.7:
                lines.append(f"n += {chance.choice(['1', 'k', 'p[k]'])}")
            elif kind < 0.75:
                lines += [f"if {self.condition(2, variables)}:", "    continue"]
            else:
                lines.append(f"if {self.condition(2, variables)}:")
                lines += self._within(self.block(chance.randint(1, 3), variables, depth - 1))
                if chance.random() < 0.4:
                    other = self.block(chance.randint(1, 2), variables, depth - 1)
                    lines += ["else:", *self._within(other)]
        return lines

    @staticmethod
    def _within(lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]


def random_loop(seed: int) -> tuple[object, str]:
    """A kernel of ``(i, b, e, x, y, p, w, c, out)``, and its source.

    ``b`` and ``e`` bound the part of ``x``, ``y`` and ``p`` that index i adds up, ``p`` has places
    in ``y``, ``w`` and ``c`` are small.
    """
    chance = random.Random(seed)
    start, stop, steps = chance.choice(BOUNDS)
    loop = _Loop(chance)
    lines = [
        "s, u, n = 0.0, 1.0, 0",
        "t0, t1, t2 = 0.0, 0.0, 0.0",
        f"for k in range({start}, {stop}, {chance.choice(steps)}):",
        *loop._within(loop.block(chance.randint(2, 6), [], 2)),
        *[f"out[i, {place}] = {name}" for place, name in enumerate("sun")],
    ]
    return written("i, b, e, x, y, p, w, c, out", lines)

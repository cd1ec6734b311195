"""Loops of registers: steps that repeat, with what is carried from round to round.

    double8 carryr1_1 = r0;            what the first round takes
    for (int turn = 0; turn < rounds0; turn++) {
        const double8 r1 = sin(carryr1_1);
        carryr1_1 = r1;                what the next round takes
    }

Building takes the time of one round, and the text is the same for any number of rounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from clfuse.schedule.rounds import FURTHEST, Kept, Own, Rounds

from .expressions import Expressions, Register
from .names import CARRY

__all__ = ["loop_lines", "renumbered"]

_Copy = tuple[str, dict[int, Register], bool]
"""The prefix of its names, its registers, whether all lanes are the same."""


def loop_lines(
    rounds: Rounds, writer: Expressions, bound: str, index: str, copies: Sequence[_Copy]
) -> list[str] | None:
    """The loop of up to two copies of the registers side by side; adds what it leaves to theirs.

    None where masks have lanes of another size in each round.

    Parameters
    ----------
    rounds : Rounds
    writer : Expressions
    bound, index : str, the name of the argument with the number of rounds, and its type
    copies : sequence of (prefix of names, registers, whether all lanes are the same)
    """
    masks = _mask_lanes(rounds, writer, copies[0][1])
    if masks is None:
        return None
    before: list[str] = []
    inside: list[list[str]] = []
    after: list[str] = []
    for prefix, registers, uniform in copies:
        carried = {}
        for position, back in rounds.carried:
            step = rounds.steps[position]
            name = f"{CARRY}{prefix}{step.var}_{back}"
            register = Register(name, step.dtype, masks[position], uniform)
            carried[position, back] = register
            kind = writer.type_of(step.dtype, masks[position])
            first = rounds.initial.get((position, back))
            text = f"({kind})(0)"
            if first is not None:
                text = writer.cast(registers[first], step.dtype, masks[position])
            before.append(f"{kind} {name} = {text};")
            source = f"{CARRY}{prefix}{step.var}_{back - 1}" if back > 1 else f"{prefix}{step.var}"
            after.append(f"{name} = {source};")
        made: dict[int, Register] = {}
        lines = []
        for position, step in enumerate(rounds.steps):
            taken = _taken(rounds, position, registers, carried, made)
            text, register = writer.step(step.op, taken, f"{prefix}{step.var}")
            if uniform:
                register = Register(register.text, register.dtype, register.lane_nbytes, True)
            made[position] = register
            kind = writer.type_of(register.dtype, register.lane_nbytes)
            lines.append(f"const {kind} {register.text} = {text};")
        inside.append(lines)
        for var, key in rounds.left.items():
            registers[var] = carried[key]
    return [
        *before,
        f"for ({index} turn = 0; turn < {bound}; turn++) {{",
        *[f"    {line}" for together in zip(*inside, strict=True) for line in together],
        *[f"    {line}" for line in after],
        "}",
    ]


def _taken(
    rounds: Rounds,
    position: int,
    registers: Mapping[int, Register],
    carried: Mapping[tuple[int, int], Register],
    made: Mapping[int, Register],
) -> list[Register]:
    """The registers of a step's operands."""
    taken = []
    for source in rounds.sources[position]:
        if isinstance(source, Own):
            taken.append(made[source.position])
        elif isinstance(source, Kept):
            taken.append(carried[source.position, source.back])
        else:
            taken.append(registers[source.var])
    return taken


def _mask_lanes(
    rounds: Rounds, writer: Expressions, registers: Mapping[int, Register]
) -> dict[int, int] | None:
    """The lane size of what each step makes, which is that of what is carried."""
    assumed = dict.fromkeys(range(len(rounds.steps)), 4)
    for (position, back), var in rounds.initial.items():
        if back == 1:
            assumed[position] = registers[var].lane_nbytes
    for _ in range(FURTHEST):
        carried = {
            key: Register("", rounds.steps[key[0]].dtype, assumed[key[0]])
            for key in rounds.carried
        }
        made: dict[int, Register] = {}
        for position, step in enumerate(rounds.steps):
            taken = _taken(rounds, position, registers, carried, made)
            made[position] = writer.step(step.op, taken, "")[1]
        sizes = {position: register.lane_nbytes for position, register in made.items()}
        if sizes == assumed:
            return sizes
        assumed = sizes
    return None


_NUMBERED: Final = re.compile(rf"\b((?:{CARRY})?[ru])(\d+)")


def renumbered(text: str) -> str:
    """A kernel's text with the registers of its loops numbered in the order of the text: otherwise
    what follows a loop would be named by the number of its rounds."""
    numbers: dict[str, int] = {}
    return _NUMBERED.sub(
        lambda name: f"{name[1]}{numbers.setdefault(name[1][-1] + name[2], len(numbers))}", text
    )



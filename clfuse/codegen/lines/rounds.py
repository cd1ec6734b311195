"""Loops of registers: steps that repeat, with what is carried from round to round.

    double8 carryr1_1 = r0;            what the first round takes
    for (int turn = 0; turn < rounds0; turn++) {
        const double8 r1 = sin(carryr1_1);
        carryr1_1 = r1;                what the next round takes
    }

Building takes the time of one round, and the text is the same for any number of rounds, unless they
have numbers of their own.

    const double tabler3_0[] = {k0, k2, k4, k5, k6};
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from clfuse.dtypes import register_type
from clfuse.schedule.rounds import FURTHEST, Each, Kept, Own, Rounds

from .expressions import Expressions, Register
from .names import CARRY, TABLE

__all__ = ["loop_lines", "renumbered"]

_Copy = tuple[str, dict[int, Register], bool]
"""The prefix of its names, its registers, whether all lanes are the same."""


def loop_lines(
    rounds: Rounds, writer: Expressions, bound: str, index: str, copies: Sequence[_Copy]
) -> list[str] | None:
    """The loop of up to two copies of the registers side by side; adds what it leaves to theirs.

    None where masks have lanes of another size in each round, or numbers are vectors.

    Parameters
    ----------
    rounds : Rounds
    writer : Expressions
    bound, index : str, the name of the argument with the number of rounds, and its type
    copies : sequence of (prefix of names, registers, whether all lanes are the same)
    """
    masks = _mask_lanes(rounds, writer, copies[0][1])
    tables = _tables(rounds, copies[0])
    if masks is None or tables is None:
        return None
    before = [line for _, line in tables]
    listed = [register for register, _ in tables]
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
            taken = _taken(rounds, position, registers, carried, made, listed)
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


def _tables(rounds: Rounds, copy: _Copy) -> list[tuple[Register, str]] | None:
    """For each operand with a number of its own in each round: the number as it is read, and the
    line that says them all."""
    prefix, registers, _ = copy
    found = []
    for row, numbers in enumerate(rounds.numbers):
        one = registers[numbers[0]]
        if not all(registers[var].uniform for var in numbers):
            return None
        name = f"{TABLE}{prefix}{rounds.steps[0].var}_{row}"
        texts = ", ".join([registers[var].text for var in numbers])
        line = f"const {register_type(one.dtype)} {name}[] = {{{texts}}};"
        found.append((replace(one, text=f"{name}[turn]"), line))
    return found


def _taken(
    rounds: Rounds,
    position: int,
    registers: Mapping[int, Register],
    carried: Mapping[tuple[int, int], Register],
    made: Mapping[int, Register],
    listed: Sequence[Register],
) -> list[Register]:
    """The registers of a step's operands."""
    taken = []
    for source in rounds.sources[position]:
        if isinstance(source, Own):
            taken.append(made[source.position])
        elif isinstance(source, Kept):
            taken.append(carried[source.position, source.back])
        elif isinstance(source, Each):
            taken.append(listed[source.row])
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
            listed = [registers[numbers[0]] for numbers in rounds.numbers]
            taken = _taken(rounds, position, registers, carried, made, listed)
            made[position] = writer.step(step.op, taken, "")[1]
        sizes = {position: register.lane_nbytes for position, register in made.items()}
        if sizes == assumed:
            return sizes
        assumed = sizes
    return None


_NUMBERED: Final = re.compile(rf"\b((?:{CARRY}|{TABLE})?[ru])(\d+)")


def renumbered(text: str) -> str:
    """A kernel's text with the registers of its loops numbered in the order of the text: otherwise
    what follows a loop would be named by the number of its rounds."""
    numbers: dict[str, int] = {}
    return _NUMBERED.sub(
        lambda name: f"{name[1]}{numbers.setdefault(name[1][-1] + name[2], len(numbers))}", text
    )



"""Loops from their first round on: the time of all rounds beside NumPy's, a process for each loop.

Between small arrays, which are NumPy's, and large ones, which are kernels', lies a valley: rounds
that NumPy computes before kernels are worth it, planning, and waiting for the compiler. Only the
sum over all rounds shows it.

    python -m clfuse bench valley                 # every program, size and ending
    python -m clfuse bench valley decay heat      # some programs
"""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final

from clfuse.dataclass import frozen

__all__ = ["ENDINGS", "PROGRAMS", "SIZES", "Cell", "lines", "measure", "run"]

State = tuple[Any, Any]

SIZES: Final = (100, 1_000, 10_000, 30_000, 100_000, 1_000_000)
"""Elements of each of the two arrays."""

ENDINGS: Final = ("sum", "element", "evaluate")
"""How a round ends: a sum is looked at, or an element, or arrays are computed and nothing seen."""

ROUNDS: Final = 300
LAST: Final = 50
"""The rounds at the end that show the steady state."""

WORK: Final = 30_000_000
"""Elements of all rounds together, at most: fewer rounds of large arrays."""


def decay(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """Twenty steps of a nonlinear map."""
    for _ in range(20):
        x = np.exp(-((x - y) ** 2)) + 0.1 * x
    return (x, y), x


def normalize(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """Two arrays standardized and mixed."""
    a = (x - x.mean()) / (x.std() + 1e-9)
    b = (y - y.mean()) / (y.std() + 1e-9)
    return (a * 0.5 + b * 0.1, b + 0.01 * a), a


def masks(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """Conditions, and a write through a mask."""
    above = x > y
    z = np.where(above, x - 0.1 * y, x + 0.2) ** 2
    z[above] += 1.0
    return (np.sqrt(np.abs(z)) * 0.9, y), z


def heat(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """A step of the heat equation."""
    x = x.copy()
    x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
    return (x, y), x


def descent(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """A residual scaled by its length."""
    r = x - 0.1 * y
    x = r / (1e-9 + np.sqrt(r @ r)) + y
    return (x, y), x


def pendulum(np: Any, x: Any, y: Any) -> tuple[State, Any]:
    """Four steps of pendulums."""
    for _ in range(4):
        y = y - 0.01 * np.sin(x)
        x = x + 0.01 * y
    return (x, y), x


PROGRAMS: Final[dict[str, Callable[[Any, Any, Any], tuple[State, Any]]]] = {
    function.__name__: function
    for function in (decay, normalize, masks, heat, descent, pendulum)
}


@frozen
class Cell:
    """Ratios of clfuse's time to NumPy's: of all rounds, and of the last ones; and the longest
    round, in milliseconds."""

    program: str
    ending: str
    size: int
    ratio: float
    steady: float
    longest_ms: float


def run(np: Any, program: str, size: int, ending: str, rounds: int) -> list[float]:
    """Seconds of each round."""
    import numpy

    generator = numpy.random.default_rng(0)
    state = np.array(generator.random(size)), np.array(generator.random(size))
    # As the program of a user: what clfuse's own code calls has its warnings turned to that line.
    names = {"__name__": "program", "__builtins__": builtins}
    step = FunctionType(PROGRAMS[program].__code__, names)
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        state, result = step(np, *state)
        if ending == "sum":
            float(result.sum())
        elif ending == "element":
            float(result[size // 2])
        elif np is not numpy:
            np.evaluate(*state, result)
        taken.append(time.perf_counter() - start)
    return taken


def measure(program: str, size: int, ending: str) -> Cell:
    """One cell of the table; each library in a process of its own.

    Raises RuntimeError: a process failed; its standard error.
    """
    rounds = max(LAST, min(ROUNDS, WORK // size))
    theirs, ours = (_timed(module, program, size, ending, rounds) for module in ("numpy", "clfuse"))
    return Cell(
        program, ending, size, sum(ours) / sum(theirs), sum(ours[-LAST:]) / sum(theirs[-LAST:]),
        max(ours) * 1e3,
    )


def _timed(module: str, program: str, size: int, ending: str, rounds: int) -> list[float]:
    text = (
        f"import json, {module} as np; from clfuse.tools.bench import valley; "
        f"print(json.dumps(valley.run(np, {program!r}, {size}, {ending!r}, {rounds})))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module}, {program}: {done.stderr.strip()}")
    taken: list[float] = json.loads(done.stdout.splitlines()[-1])
    return taken


def lines(programs: Sequence[str], *, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """The table, a line when it is measured."""
    from .table import geometric_mean

    yield (
        "Time of all rounds of a loop, in units of NumPy's; in brackets that of the last"
        f" {LAST} rounds, and the longest round in ms."
    )
    yield f"{'':21}" + "".join(f"{size:>22,}" for size in sizes)
    found = []
    for program in programs or PROGRAMS:
        for ending in ENDINGS:
            row = [measure(program, size, ending) for size in sizes]
            found += row
            yield f"{program:11}{ending:10}" + "".join(
                f"{cell.ratio:8.2f} ({cell.steady:5.2f},{cell.longest_ms:5.0f})" for cell in row
            )
    above = sum(cell.ratio > 1.15 for cell in found)
    mean = geometric_mean(cell.ratio for cell in found)
    yield f"geometric mean {mean:.2f}; above 1.15: {above} of {len(found)}"

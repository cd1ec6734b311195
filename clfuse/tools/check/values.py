"""Random programs under clfuse and under NumPy, with all values compared.

Floats are compared within what the order of sums may change. tests/fuzz draws far more kinds of
programs.
"""

from __future__ import annotations

import importlib
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .finding import Budget, Finding

__all__ = ["check", "difference", "generate"]

DTYPES: Final = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex64")
SHAPES: Final = ((), (1,), (7,), (33, 20), (5, 6, 7), (1003,), (120, 131))
NAMES: Final = "abc"
MOST_SHOWN: Final = 5

KERNELS: Final[dict[str, Any]] = {"host_us": 0, "build_after_ms": 0}
WAYS: Final[tuple[dict[str, Any], ...]] = (
    KERNELS, {}, KERNELS, {}, {**KERNELS, "fusion": "off"}, {}
)  # fmt: skip
"""Settings: NumPy would calculate most of such small arrays, and does where nothing is set."""

#: Of arrays of one shape, of any dtypes; what raises under NumPy raises under clfuse.
EXPRESSIONS: Final = """
    {x} + {y}|{x} - {y}|{x} * {y}|{x} / {y}|{x} // {y}|{x} % {y}|{x} ** 2|-{x}|abs({x})|{x} < {y}
    {x} == {y}|np.sqrt(abs({x}))|np.where({x} > {y}, {x}, {z})|np.maximum({x}, {y})|{x} & {y}
    np.floor({x} / 3)|{x}.astype('f4')|{x}.astype('i4')|{x}.T|{x}[::-1]|{x}[1:]|{x}[..., ::2]
    {x}.sum()|{x}.sum(axis=0)|{x}.max(axis=-1)|{x}.min()|{x}.argmax()|{x}.any(axis=0)|{x}.prod()
    {x}.mean()|{x}.mean(axis=-1)|{x}.var()|np.cumsum({x}, axis=0)|np.sort({x}, axis=-1)
    np.concatenate([{x}, {y}])|np.roll({x}, 2)|np.pad({x}, 1)|{x}[{y} > 1]|np.flatnonzero({x})
    {x}.ravel()[[0, -1, 0]]|np.diff({x})|np.clip({x}, 1, 5)|({x} * 2 + {y}).sum(axis=-1)
    {x} @ {y}.T|np.stack([{x}, {y}]).max(axis=0)|np.broadcast_to({x}[:1], {x}.shape) + {y}
    np.unique({x})|np.count_nonzero({x})|{x}.real + {y}.imag|np.isfinite({x} / {y})|{x} << 1
"""
STATEMENTS: Final = """
    {x} += {y}|{x} *= 2|{x} -= {y}[::-1]|{x}[1:] = {y}[:-1]|{x}[::2] += 1|{x}[{y} > 2] = 3
    {x}[...] = {y}|{x} %= 5|{x}[0], {x}[-1] = {x}[-1], {x}[0]|np.add({x}, {y}, out={x})
    {x} = {x} + {y}|{x} = {y}.copy()|{x} = {y}[::-1]|{x} //= 2|{x}.sort()|view = {x}[1:]; view += 1
"""


def _texts(block: str) -> list[str]:
    return [each for line in block.strip().splitlines() for each in line.strip().split("|")]


_EXPRESSIONS, _STATEMENTS = _texts(EXPRESSIONS), _texts(STATEMENTS)


def generate(seed: int) -> list[str]:
    """The lines of a program: arrays, and what is done with them. ``np`` is either library.

    Examples
    --------
    >>> generate(3) == generate(3) and generate(3) != generate(4)
    True
    """
    draw = random.Random(seed)
    shape = draw.choice(SHAPES)
    dtypes = [draw.choice(DTYPES)] * 3 if draw.random() < 0.5 else draw.choices(DTYPES, k=3)
    lines = [f"draw = numpy.random.RandomState({seed})"]
    for name, dtype in zip(NAMES, dtypes, strict=True):
        lines.append(f"{name} = np.array(draw.randint(0, 9, {shape}).astype({dtype!r}))")
    for number in range(draw.randint(3, 8)):
        x, y, z = draw.choices(NAMES, k=3)
        if draw.random() < 0.4:
            lines.append(draw.choice(_STATEMENTS).format(x=x, y=y, z=z))
        else:
            first, second = (draw.choice(_EXPRESSIONS) for _ in range(2))
            text = first.format(x=x, y=y, z=z)
            if draw.random() < 0.3:
                text = f"({text}) + ({second.format(x=y, y=z, z=x)})"
            lines.append(f"r{number} = {text}")
    return lines


def run(xp: Any, lines: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The variables after the program, and the class of what each line raised."""
    names: dict[str, Any] = {"np": xp, "numpy": np}
    raised = []
    for line in lines:
        try:
            exec(compile(line, "<program>", "exec"), names)
        except Exception as error:  # noqa: BLE001 (the other library has to raise the same)
            raised.append(next(kind for kind in type(error).__mro__
                               if kind.__module__ in ("builtins", "numpy.exceptions")).__name__)
        else:
            raised.append("")
    kept = {name: value for name, value in names.items()
            if name in NAMES or (name[0] == "r" and name[1:].isdigit())}
    return kept, raised


def differs(found: Any, wanted: Any) -> str:
    """Why one value is not NumPy's; empty where it is."""
    one, other = np.asarray(found), np.asarray(wanted)
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype} {one.shape}; NumPy: {other.dtype} {other.shape}"
    if one.dtype.kind in "fc":
        # Sums and powers are added in another order: some units in the last place of the largest.
        finite = other[np.isfinite(other)]
        most = float(np.abs(finite).max(initial=0))
        bound = 32 * float(np.finfo(one.dtype).eps) * most
        same = np.isclose(one, other, rtol=0, atol=bound, equal_nan=True)
    else:
        same = one == other
    if same.all():
        return ""
    place = tuple(int(index[0]) for index in np.nonzero(~same)) if one.ndim else ()
    return f"{one[place]!r} at {place}; NumPy: {other[place]!r}"


def difference(xp: Any, lines: Sequence[str]) -> str:
    """What is wrong with a program under `xp`; empty where nothing is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted, expected = run(np, lines)
        found, raised = run(xp, lines)
        for line, one, other in zip(lines, raised, expected, strict=True):
            if one != other:
                return f"{line}: {one or 'no error'}; NumPy: {other or 'no error'}"
        arrays = [value for value in found.values() if isinstance(value, xp.ndarray)]
        error = _raised(lambda: xp.evaluate(*arrays))  # one program, as far as they are fused
        if error:
            return f"evaluate: {error}"
        for name, value in wanted.items():
            try:
                problem = differs(found[name], value)
            except Exception as error:  # noqa: BLE001 (whatever is raised is not a value)
                problem = f"{type(error).__name__}: {error}"
            if problem:
                return f"{name} is {problem}"
    return ""


def _raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 (whatever is raised is not a value)
        return f"{type(error).__name__}: {error}"
    return ""


def check(budget: Budget) -> Finding:
    """Programs until the time is spent: half of them by kernels, whatever their size."""
    xp = importlib.import_module("clfuse")
    finding, count = Finding(), 0
    while not budget.is_spent and len(finding.problems) < MOST_SHOWN:
        lines = generate(budget.seed + count)
        changes = WAYS[count % len(WAYS)]
        with xp.config.override(**changes):
            problem = difference(xp, lines)
        if problem:
            program = "\n".join(f"    {line}" for line in lines)
            finding.problems.append(f"{problem}, with {changes or 'defaults'} in\n{program}")
        count += 1
        budget.tell(f"{count} programs")
    finding.what = f"{count} random programs as under NumPy"
    return finding

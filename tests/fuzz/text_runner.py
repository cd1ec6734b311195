"""Runs a program that is text under NumPy and under another module; tests/device/test_fuzz.py and
``python -m tests.fuzz --texts`` call `check_twice` and `shrink`.

Compared are all names at the end, in an order of chance: kind of object, dtype, shape, values,
whether it may be written to; which arrays share memory; what the program looked at; and that no
warning came that NumPy has not, nor one failed to come (but those of floating-point errors,
which kernels have not). A program runs twice in a row: the second time meets what was remembered.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tests.fuzz.texts import data

Blocks = list[list[str]]


def script(blocks: Blocks) -> str:
    return "\n".join(line for block in blocks for line in block)


def _jit(xp: ModuleType) -> Callable[[Any], Any]:
    """`clfuse.jit`, or the function itself where that refuses it."""
    traced, refusal = getattr(xp, "jit", None), getattr(xp, "JitError", None)
    if traced is None or refusal is None:
        return lambda function: function

    def decorate(function: Any) -> Any:
        fast = traced(function)

        def call(*arguments: Any) -> Any:
            try:
                return fast(*arguments)
            except refusal:
                return function(*arguments)

        return call

    return decorate


def _form(value: Any, xp: ModuleType) -> Any:
    """What there is to see of a value, as plain data."""
    if isinstance(value, (list, tuple)):
        return [_form(item, xp) for item in value]
    if isinstance(value, xp.generic | np.generic):
        return "scalar", str(value.dtype), np.asarray(value).tolist()
    if isinstance(value, xp.ndarray | np.ndarray):
        host = np.asarray(value)
        return "array", str(value.dtype), value.shape, value.flags.writeable, host.tolist()
    return value if isinstance(value, (bool, int, float, complex, str)) else str(type(value))


def outcome(blocks: Blocks, xp: ModuleType, seed: int) -> dict[str, Any]:
    """What a program shows."""
    looked: list[Any] = []
    names: dict[str, Any] = {"np": xp, "data": data, "jit": _jit(xp),
                             "look": lambda *seen: looked.extend(_form(s, xp) for s in seen)}
    found: dict[str, Any] = {"error": None}
    with warnings.catch_warnings(record=True) as warned, xp.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            exec(compile(script(blocks), "<program>", "exec"), names)
        except Exception as error:
            found["error"] = _class(error)
        made = sorted(name for name in names if name[0] == "v" and name[1:].isdigit())
        random.Random(seed).shuffle(made)
        for name in made:
            try:
                found[name] = _form(names[name], xp)
            except Exception as error:  # whatever comes so late is a fault
                found[name] = f"{_class(error)}: {error}"
        arrays = [name for name in made if isinstance(names[name], xp.ndarray)
                  and not isinstance(names[name], xp.generic) and names[name].size]
        found["sharing"] = {pair for pair in itertools.combinations(arrays[:12], 2)
                            if xp.shares_memory(names[pair[0]], names[pair[1]])}
    found["looked"] = looked
    found["warnings"] = {w.category.__name__ for w in warned} - {"RuntimeWarning"}
    return found


def _class(error: Exception) -> str:
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ != "clfuse.errors")


def check_twice(blocks: Blocks, xp: ModuleType, seed: int) -> str | None:
    """The first difference, in words, or None."""
    expected = outcome(blocks, np, seed)
    for turn in ("", "the second time: "):
        actual = outcome(blocks, xp, seed)
        for name in expected.keys() | actual.keys():
            wanted, got = expected.get(name), actual.get(name)
            if wanted != got:
                return f"{turn}{name}: {str(got)[:400]}; NumPy: {str(wanted)[:400]}"
    return None


def shrink(blocks: Blocks, is_wrong: Callable[[Blocks], bool]) -> Blocks:
    """The program without the blocks that a difference does not need."""
    for place in reversed(range(len(blocks))):
        smaller = blocks[:place] + blocks[place + 1:]
        if is_wrong(smaller):
            blocks = smaller
    return blocks

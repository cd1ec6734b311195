"""Random expressions that join rows, fold them along any axes, and go on with the result.

Nobody holds a part of such an expression, so that all of it becomes as few kernels as can be. What
they are given are small whole numbers, of which most sums are exact.
"""

from __future__ import annotations

import random
import warnings
from types import ModuleType
from typing import Any

import numpy as np

SHAPES = [(20, 10), (5, 70), (3, 130), (40, 33), (7,), (300,), (4, 6, 9), (2, 3, 40), (150, 3)]
DTYPES = "float64 float64 float64 float64 float32 int64 int32 bool complex128 uint8".split()
FOLDS = "sum sum mean mean mean max max max min std any argmax prod cumsum".split()


class Expression:
    """One expression over ``a`` (an array), ``b`` (another of its shape), and ``r`` (one of its
    rows); `text` calls the module ``np``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shape = self.random.choice(SHAPES)
        self.dtype = self.random.choice(DTYPES)
        self.text = self._after(self._folded(), self.random.randint(0, 3))

    def arguments(self) -> dict[str, Any]:
        """The arrays, the same ones for the same seed."""
        numbers = np.random.default_rng(self.random.randrange(1000))
        high = 2 if self.dtype == "bool" else 6
        a, b = numbers.integers(0, high, (2, *self.shape)).astype(self.dtype)
        return {"a": a, "b": b, "r": numbers.integers(0, high, self.shape[1:]).astype(self.dtype)}

    def _choose(self, choices: str) -> str:
        return self.random.choice(choices.split())

    def _array(self) -> str:
        if self.dtype in ("bool", "uint8"):
            return self._choose("a a a b (a&b) (a|b) a[::-1]")
        return self._choose("a a a a b (a+b) (a*2) (a-b).real a[::-1]")

    def _row(self, axis: int) -> str:
        """Of length 1 along an axis."""
        lead = ":," * axis
        choices = [f"b[{lead}:1]", f"b[{lead}1:2]", f"(a[{lead}:1]+b[{lead}:1])",
                   f"a.max({axis}, keepdims=True)", f"b[{lead}-1][{lead}None]"]
        if axis == 0:
            choices.append("r[None]")
        return self.random.choice(choices)

    def _joined(self, array: str) -> str:
        axis = self.random.randrange(len(self.shape))
        row, how = self._row(axis), self._choose(
            "concatenate concatenate concatenate vstack hstack stack pad pad insert append roll")
        if how == "concatenate":
            parts = self.random.sample([array, row, *([row] if self.random.random() < 0.4 else [])],
                                       2)
            return f"np.concatenate([{', '.join(parts)}], {axis})"
        if how == "vstack":
            return f"np.vstack([{self._row(0)}, {array}])"
        if how == "hstack":
            return f"np.hstack([{array}, {self._row(min(1, len(self.shape) - 1))}])"
        if how == "stack":
            return f"np.stack([{array}, {self._array()}], {self.random.choice([0, axis, -1])})"
        if how == "pad":
            mode = self._choose("constant edge wrap mean maximum")
            if self.dtype == "bool" and mode == "mean":
                mode = "edge"
            widths: Any = self.random.choice([1, 2, (0, 3), (1, 2)])
            return f'np.pad({array}, {widths}, "{mode}")'
        if how == "insert":
            return f"np.insert({array}, {self.random.choice([0, 1, 2])}, {row}, {axis})"
        if how == "append":
            return f"np.append({array}, {row}, {axis})"
        return f"np.roll({array}, {self.random.choice([1, 2, -1])}, {axis})"

    def _map(self, text: str) -> str:
        return self.random.choice([
            *[text] * 7, f"({text} + 1)", f"(lambda t: t * t)({text})", f"np.sqrt({text})",
            f"(lambda t: np.where(t > 2, t, 1))({text})", f"({text}).astype(np.float64)"])

    def _folded(self) -> str:
        text = self._map(self._joined(self._array()))
        fold = self.random.choice(FOLDS)
        axis: Any = self.random.randrange(len(self.shape))
        if fold not in ("argmax", "cumsum") and self.random.random() < 0.25:
            axis = self.random.choice([None, tuple(range(len(self.shape)))])
        keep = ", keepdims=True" if fold != "cumsum" and self.random.random() < 0.2 else ""
        return f"np.{fold}({text}, axis={axis}{keep})"

    def _after(self, text: str, count: int) -> str:
        for _ in range(count):
            text = self.random.choice([
                f"({text} / 2)", f"({text} / 4)", f"({text} * 3)", f"({text} - 1.5)",
                f"np.sqrt(abs({text}))", f"np.concatenate([np.ravel({text}), np.ravel(r)])",
                f"np.append({text}, 2)",
                f"(lambda t: np.where(t > 3, t, 7))({text})", f"({text} + r.sum())"])
        return text


def check(expression: Expression, xp: ModuleType) -> str | None:
    """What is wrong with an expression under `xp`, or None."""
    given = expression.arguments()
    arrays = {name: xp.asarray(array) for name, array in given.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = eval(expression.text, {"np": np, **given})
        except (ValueError, TypeError, IndexError):
            return None
        if hasattr(xp, "KernelBuildWarning"):  # the values are right, but the kernel is not
            warnings.simplefilter("error", xp.KernelBuildWarning)
        try:
            actual = np.asarray(eval(expression.text, {"np": xp, **arrays}))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if actual.dtype != wanted.dtype or actual.shape != wanted.shape:
        return f"{actual.dtype} {actual.shape}, not {wanted.dtype} {wanted.shape}"
    single = wanted.dtype.char in "fF" or expression.dtype == "float32"
    try:
        np.testing.assert_allclose(actual, wanted, rtol=1e-4 if single else 1e-10,
                                   atol=1e-4 if single else 1e-10)
    except AssertionError as error:
        return str(error)
    return None


def report(seed: int, expression: Expression, problem: str) -> str:
    """The expression and what is wrong with it."""
    return (f"python -m tests.fuzz --joined --seed {seed}: {expression.dtype} {expression.shape}\n"
            f"{expression.text}\n{problem}")

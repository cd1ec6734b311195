"""Bodies in OpenCL C that are translated to NumPy's functions, and are as fast as array code.

    z = (x - y) * (x - y)             subtract, multiply
    d = fabs(x); z = d > 1.0 ? d : y  fabs, greater, where

A body is translated where all is of one type, float or double, and where it has only assignments of
expressions: then C and NumPy mean the same. Other bodies are functions in OpenCL C (`text`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.arrays.promotion import BOOL
from clfuse.ir import build
from clfuse.ir.nodes import Node

from .names import without_comments
from .text import c_type, statements

FUNCTIONS: Final = {
    "sqrt": "sqrt", "fabs": "fabs", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log",
    "log2": "log2", "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "pow": "power",
    "fmin": "fmin", "fmax": "fmax", "fmod": "fmod", "hypot": "hypot", "cbrt": "cbrt",
    "copysign": "copysign",
}
"""OpenCL C's functions -> rows that give the same."""

_TWO: Final = frozenset(["arctan2", "power", "fmin", "fmax", "fmod", "hypot", "copysign"])

_LEVELS: Final = (
    {"||": "logical_or"},
    {"&&": "logical_and"},
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide"},
)
"""C's operators, those that bind least first."""

_TRUTHS: Final = 4
"""How many of these levels give truths."""

_TOKEN: Final = re.compile(
    r"\s*(?:((?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?[fF]?)(?![\w.])"
    r"|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|[-+*/()?:,<>!]))"
)

Step = tuple[str, Any]
"""What is done with a stack: (load, name), (number, value), (row, operands) or (set, name)."""

PROGRAMS_KEPT: Final = 512


class _Unknown(Exception):
    """Something that C and NumPy may not mean alike."""


class _Reader:
    """Reads one expression; kinds are ``int`` (literals alone), ``real`` and ``truth``."""

    def __init__(self, text: str, kind: str, names: Mapping[str, str], steps: list[Step]) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.kind = kind
        self.names = names
        self.steps = steps
        self.place = 0
        place = 0
        text = text.strip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise _Unknown
            number, name, sign = found.groups()
            self.tokens.append(("number", number) if number else ("name", name) if name
                               else ("sign", sign))
            place = found.end()

    def whole(self) -> str:
        """All of the text; its kind."""
        kind = self._choice()
        if self.place != len(self.tokens):
            raise _Unknown
        return kind

    def _sign(self) -> str:
        if self.place < len(self.tokens) and self.tokens[self.place][0] == "sign":
            return self.tokens[self.place][1]
        return ""

    def _expect(self, sign: str) -> None:
        if self._sign() != sign:
            raise _Unknown
        self.place += 1

    def _choice(self) -> str:
        kind = self._binary(0)
        if self._sign() != "?":
            return kind
        if kind != "truth":
            raise _Unknown
        self.place += 1
        one = self._choice()
        self._expect(":")
        other = self._choice()
        if "real" not in (one, other) or "truth" in (one, other):
            raise _Unknown
        self.steps.append(("where", 3))
        return "real"

    def _binary(self, level: int) -> str:
        if level == len(_LEVELS):
            return self._unary()
        kind = self._binary(level + 1)
        while self._sign() in _LEVELS[level]:
            row = _LEVELS[level][self._sign()]
            self.place += 1
            other = self._binary(level + 1)
            wanted = ("truth", "truth") if level < 2 else ("real", "real")
            # Two literals are calculated as C's integers.
            if (kind, other) == ("int", "int") or any(
                each != need and not (each == "int" and need == "real")
                for each, need in zip((kind, other), wanted, strict=True)
            ):
                raise _Unknown
            self.steps.append((row, 2))
            kind = "truth" if level < _TRUTHS else "real"
        return kind

    def _unary(self) -> str:
        sign = self._sign()
        if sign in ("-", "+", "!"):
            self.place += 1
            kind = self._unary()
            if (kind == "truth") != (sign == "!"):
                raise _Unknown
            if sign != "+":
                self.steps.append(("negative" if sign == "-" else "logical_not", 1))
            return kind
        if self.place == len(self.tokens):
            raise _Unknown
        what, text = self.tokens[self.place]
        self.place += 1
        if what == "number":
            return self._number(text)
        if what == "name":
            if self._sign() == "(":
                return self._call(text)
            if text not in self.names:
                raise _Unknown
            self.steps.append(("load", text))
            return self.names[text]
        if text != "(":
            raise _Unknown
        kind = self._choice()
        self._expect(")")
        return kind

    def _number(self, text: str) -> str:
        if text.isdigit():
            if len(text) > 6 or (text[0] == "0" and text != "0"):  # octal
                raise _Unknown
            self.steps.append(("number", int(text)))
            return "int"
        is_float = text[-1] in "fF"
        if is_float != (self.kind == "float"):
            raise _Unknown  # of the other type: all is calculated in that
        self.steps.append(("number", float(text.rstrip("fF"))))
        return "real"

    def _call(self, name: str) -> str:
        row = FUNCTIONS.get(name)
        if row is None:
            raise _Unknown
        self._expect("(")
        count = 2 if row in _TWO else 1
        for number in range(count):
            if number:
                self._expect(",")
            if self._choice() != "real":
                raise _Unknown
        self._expect(")")
        self.steps.append((row, count))
        return "real"


@lru_cache(PROGRAMS_KEPT)
def program_of(
    body: str, inputs: tuple[tuple[str, np.dtype], ...], outputs: tuple[tuple[str, np.dtype], ...]
) -> tuple[Step, ...] | None:
    """What a body does as steps; None where it must stay C.

    >>> double = np.dtype(float)
    >>> program_of("z = x * 2.0", (("x", double),), (("z", double),))
    (('load', 'x'), ('number', 2.0), ('multiply', 2), ('set', 'z'))
    """
    reals = {dtype for _, dtype in (*inputs, *outputs) if dtype.kind != "b"}
    if len(reals) != 1 or any(dtype.kind == "b" for _, dtype in inputs):
        return None
    kind = c_type(reals.pop())
    if kind not in ("float", "double"):
        return None
    results = {name: "truth" if dtype.kind == "b" else "real" for name, dtype in outputs}
    known = {name: "real" for name, _ in inputs}
    constant = set(known)
    steps: list[Step] = []
    try:
        for statement in statements(without_comments(body)):
            head = re.match(
                rf"((?:const\s+)?{kind}\s+)?([A-Za-z_]\w*)\s*([-+*/]?)=(?!=)", statement
            )
            if head is None:
                return None
            declares, target, sign = head.groups()
            if target in constant or (declares and (target in results or target in known)):
                return None
            if not declares and target not in results and target not in known:
                return None
            if sign:
                if known.get(target) != "real":
                    return None
                steps.append(("load", target))
            found = _Reader(statement[head.end() :], kind, known, steps).whole()
            wanted = results.get(target, "real")
            if found != wanted and (found, wanted) != ("int", "real"):
                return None
            if sign:
                steps.append((_LEVELS[4].get(sign) or _LEVELS[5][sign], 2))
            known[target] = wanted
            steps.append(("set", target))
    except _Unknown:
        return None
    return tuple(steps) if all(name in known for name in results) else None


def results_of(
    program: Sequence[Step], nodes: Mapping[str, Node], names: Sequence[str], dtype: np.dtype
) -> list[Node]:
    """The nodes of these names after a program."""
    values = dict(nodes)
    stack: list[Node] = []
    for what, argument in program:
        if what == "load":
            stack.append(values[argument])
        elif what == "number":
            stack.append(build.constant(dtype.type(argument)))
        elif what == "set":
            values[argument] = stack.pop()
        else:
            operands = stack[-argument:]
            del stack[-argument:]
            shape = np.broadcast_shapes(*[node.shape for node in operands])
            is_truth = what in _TRUTH_ROWS
            stack.append(build.apply(what, operands, BOOL if is_truth else dtype, shape))
    return [values[name] for name in names]


_TRUTH_ROWS: Final = frozenset(
    [row for level in _LEVELS[:_TRUTHS] for row in level.values()] + ["logical_not"]
)

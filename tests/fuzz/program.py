"""A random program as data: steps over named variables, each one Python statement.

The generator makes these, the runner executes their statements, the bounds follow their structure,
and `Program.script` prints them as the NumPy script that a bug report shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Key = tuple[Any, ...]
INLINE_ELEMENTS = 40  # constants up to this size are printed value by value


@dataclass(frozen=True, slots=True)
class Var:
    """The variable of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A NumPy scalar: strong in promotion, where a Python number is weak (NEP 50)."""

    dtype: str
    value: Any


@dataclass(frozen=True, slots=True)
class Data:
    """A constant host array of the program, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """The values of a `Data`, and how to make them when they are too many to print."""

    values: NDArray[Any]
    recipe: str = ""

    def text(self) -> str:
        if self.values.size > INLINE_ELEMENTS and self.recipe:
            return self.recipe
        dtype = self.values.dtype.name
        if self.values.dtype.kind == "c":
            flat = ", ".join(show(v) for v in self.values.ravel().tolist())
            return f"numpy.array([{flat}], {dtype!r}).reshape({self.values.shape})"
        if self.values.size == 0:
            return f"numpy.empty({self.values.shape}, {dtype!r})"
        return f"numpy.array({show(self.values.tolist())}, {dtype!r})"


# How a statement is spelled for each kind of step; the kinds are all there are.
CALL, METHOD, ATTRIBUTE, GETITEM, SETITEM = "call", "method", "attribute", "getitem", "setitem"
OPERATOR, INPLACE, ALIAS, OBSERVE, DELETE = "operator", "inplace", "alias", "observe", "delete"
EVALUATE, DRAW, JIT = "evaluate", "draw", "jit"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement.

    ``function`` is the name of what is called: ``"add"`` for ``np.add(...)``, ``"+"`` for an
    operator, ``"float"`` for an observation; ``args`` and ``kwargs`` hold `Var`, `Scalar`, `Data`,
    slices, tuples and plain values. Of a traced function, ``function`` is what it returns, ``args``
    are the arguments of each call, and ``inner`` is its body, over `parameters`.
    """

    kind: str
    function: str = ""
    targets: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    inner: tuple[Step, ...] = ()

    def text(self) -> str:
        """The statement."""
        targets = ", ".join(self.targets)
        shown = [show(a) for a in self.args]
        named = [f"{k}={show(v)}" for k, v in self.kwargs.items()]
        if self.kind == CALL:
            return f"{targets} = np.{self.function}({', '.join(shown + named)})"
        if self.kind == METHOD:
            call = f"{shown[0]}.{self.function}({', '.join(shown[1:] + named)})"
            return f"{targets} = {call}" if targets else call
        if self.kind == ATTRIBUTE:
            return f"{targets} = {shown[0]}.{self.function}"
        if self.kind == GETITEM:
            return f"{targets} = {shown[0]}[{show_key(self.args[1])}]"
        if self.kind == SETITEM:
            return f"{shown[0]}[{show_key(self.args[1])}] = {shown[2]}"
        if self.kind == OPERATOR:
            if len(shown) == 1:
                return f"{targets} = {self.function}{shown[0]}"
            return f"{targets} = {shown[0]} {self.function} {shown[1]}"
        if self.kind == INPLACE:
            return f"{shown[0]} {self.function}= {shown[1]}"
        if self.kind == ALIAS:
            return f"{targets} = {shown[0]}"
        if self.kind == OBSERVE:
            return f"observe({self.function}({shown[0]}))"
        if self.kind == EVALUATE:
            return f"evaluate({', '.join(shown)})"
        if self.kind == DELETE:
            return f"del {shown[0]}"
        if self.kind == DRAW:
            return f"{targets} = drawn(np, {self.function!r}, {', '.join(shown)})"
        if self.kind == JIT:
            body = "".join(f"    {step.text()}\n" for step in self.inner)
            return (f"def f({', '.join(self.parameters())}):\n{body}    return {self.function}\n"
                    f"{targets} = replayed(f, {', '.join(shown)})")
        raise ValueError(f"unknown kind of step {self.kind!r}")

    def parameters(self) -> list[str]:
        """The names that the arguments of a traced function have inside: arrays, and a number."""
        return [*(f"p{n}" for n in range(len(self.args[0]) - 1)), "t"]

    def reads(self) -> set[str]:
        """Variables that must exist before the step."""
        return {v.name for v in walk((self.args, tuple(self.kwargs.values())))
                if isinstance(v, Var)}

    def constants(self) -> set[str]:
        return {v.name for v in walk((self.args, tuple(self.kwargs.values())))
                if isinstance(v, Data)}

    def mapped(self, change: Callable[[Any], Any]) -> Step:
        """The step with every leaf of its arguments changed."""
        return replace(self, args=map_leaves(self.args, change),
                       kwargs={k: map_leaves(v, change) for k, v in self.kwargs.items()})


def walk(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples, lists and slices."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from walk(item)
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nest with each leaf changed."""
    if isinstance(value, tuple):
        return tuple(map_leaves(v, change) for v in value)
    if isinstance(value, list):
        return [map_leaves(v, change) for v in value]
    if isinstance(value, slice):
        return slice(change(value.start), change(value.stop), change(value.step))
    return change(value)


def show(value: Any) -> str:
    """Source text of an argument; evaluating it with numpy as ``np`` gives the argument."""
    if isinstance(value, (Var, Data)):
        return value.name
    if isinstance(value, Scalar):
        inner = f"{value.value!r}" if _is_special(value.value) else show(value.value)
        return f"np.{'bool' if value.dtype == 'bool' else value.dtype}({_quoted(inner)})"
    if isinstance(value, slice):
        return f"slice({show(value.start)}, {show(value.stop)}, {show(value.step)})"
    if isinstance(value, tuple):
        inner = ", ".join(show(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(show(v) for v in value)}]"
    if isinstance(value, complex):
        return f"complex({show(value.real)}, {show(value.imag)})"
    if isinstance(value, float) and _is_special(value):
        return f"float({str(value)!r})"
    if value is Ellipsis:
        return "..."
    return repr(value)


def _is_special(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


def _quoted(text: str) -> str:
    return f"'{text}'" if text.lstrip("-") in ("inf", "nan") else text


def show_key(key: Any) -> str:
    """An index expression as it stands between brackets."""
    if not isinstance(key, tuple):
        return _show_index(key)
    if not key:
        return "()"
    return ", ".join(_show_index(k) for k in key) + ("," if len(key) == 1 else "")


def _show_index(item: Any) -> str:
    if isinstance(item, slice):
        start = "" if item.start is None else str(item.start)
        stop = "" if item.stop is None else str(item.stop)
        step = "" if item.step is None else f":{item.step}"
        return f"{start}:{stop}{step}"
    return "None" if item is None else show(item)


@dataclass(frozen=True)
class Program:
    """Steps, the constants that they name, and the settings of the run under clfuse."""

    steps: tuple[Step, ...]
    constants: Mapping[str, Constant]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def script(self, module: str = "clfuse") -> str:
        """The program as a script; with ``module="numpy"`` it shows what is expected."""
        used = set().union(*(s.constants() for s in self.steps)) if self.steps else set()
        lines = [f"import numpy\nimport {module} as np"]
        if any(c.values.size > INLINE_ELEMENTS and c.recipe
               for name, c in self.constants.items() if name in used):
            lines.append("from tests.support.hostile import ordinary")
        if any(step.kind == DRAW for outer in self.steps for step in (outer, *outer.inner)):
            lines.append("from tests.fuzz.functions import drawn")
        if any(step.kind == JIT for step in self.steps):
            lines += ["from tests.fuzz.functions import Replayer", "replayed = Replayer(np)"]
        if self.settings and module == "clfuse":
            chosen = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
            lines.append(f"np.config.override({chosen}).__enter__()")
        lines += [f"{name} = {constant.text()}" for name, constant in self.constants.items()
                  if name in used]
        lines += [self._line(step) for step in self.steps]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _line(step: Step) -> str:
        text = step.text()
        if step.kind == OBSERVE:
            return f"print({text[len('observe('):-1]})"
        if step.kind == EVALUATE:
            return f"getattr(np, 'evaluate', print)({', '.join(show(a) for a in step.args)})"
        return text

"""Runs a program under NumPy and keeps, beside every value, how far another library may be from it.

The generator takes its steps here one by one, so that it knows every shape and value; the runner
takes a whole program to know what to expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz import bounds, program
from tests.fuzz.bounds import Unbounded
from tests.fuzz.functions import Replayer, drawn
from tests.fuzz.program import Program, Scalar, Step, Var, walk

# Functions that only move values: the same statement, executed on the bounds, moves the bounds.
MOVES = frozenset("""
    reshape ravel transpose swapaxes moveaxis expand_dims squeeze flip fliplr flipud roll
    concatenate stack vstack hstack dstack column_stack insert append repeat tile broadcast_to
    diagonal rot90 atleast_1d atleast_2d copy flatten take T tril triu
""".split())
CREATION = frozenset("""
    arange linspace zeros ones full eye array identity zeros_like ones_like full_like asarray
""".split())
REDUCTIONS = frozenset("""
    sum prod min max any all mean var std argmin argmax count_nonzero
""".split())
# Of exact values alone.
ORDERS = (
    "sort", "argsort", "lexsort", "unique", "searchsorted", "isin", "union1d", "intersect1d",
    "setdiff1d", "setxor1d",
)
# Right in integers, where no order of evaluation can be told from another.
INTEGER_ONLY = frozenset("""
    diff dot matmul outer flatnonzero argwhere
""".split())
SCANS = {
    "cumsum": "add", "cumprod": "multiply", "maximum.accumulate": "maximum",
    "logical_or.accumulate": "logical_or", "bitwise_xor.accumulate": "bitwise_xor",
}
OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide",
    "%": "remainder", "**": "power", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor",
    "<<": "left_shift", ">>": "right_shift", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal", "==": "equal", "!=": "not_equal", "~": "invert",
}
UNARY_OPERATORS = {"-": "negative", "+": "positive", "~": "invert", "abs": "absolute"}


@dataclass(frozen=True, slots=True)
class Observation:
    """What a step showed to the user: a value with its bound, or an error."""

    value: Any = None
    bound: Any = None
    error: Exception | None = None


@lru_cache(maxsize=4096)
def compiled(text: str) -> CodeType:
    return compile(text, f"<{text}>", "exec")


def namespace(module: ModuleType, known: Program | None, observe: Callable[[Any], None],
              ) -> dict[str, Any]:
    """The names that a program's statements see."""
    evaluate = getattr(module, "evaluate", None) or (lambda *arrays: None)
    names: dict[str, Any] = {"np": module, "numpy": np, "observe": observe, "evaluate": evaluate,
                             "drawn": drawn, "replayed": Replayer(module)}
    if known is not None:
        names.update({name: c.values for name, c in known.constants.items()})
    return names


def execute(step: Step, names: dict[str, Any]) -> None:
    """The step's statement, among these names."""
    exec(compiled(step.text()), names)


class Reference:
    """NumPy's values and the bounds, step by step.

    Attributes
    ----------
    values : dict
        Name to array or NumPy scalar.
    bounds : dict
        Name to bound, of the same shape; it aliases other bounds where the value aliases values.
    """

    def __init__(self, constants: Mapping[str, program.Constant]) -> None:
        self.values: dict[str, Any] = {}
        self.bounds: dict[str, Any] = {}
        self._seen: list[Any] = []
        self._names = namespace(np, None, self._seen.append)
        self.constants = constants

    def take(self, step: Step) -> Observation:
        """Execute one step; `Unbounded` leaves the state as it was."""
        missing = step.reads() - self.values.keys()
        if missing:
            raise Unbounded(f"{step.text()}: {missing} not defined")
        with np.errstate(all="ignore"):
            if step.kind == program.DELETE:
                name = step.args[0].name
                del self.values[name], self.bounds[name]
                return Observation()
            if step.kind == program.OBSERVE:
                return self._observe(step)
            if step.kind == program.EVALUATE:
                return Observation()
            if step.kind in (program.SETITEM, program.INPLACE) or step.function == "fill":
                return self._write(step)
            if step.kind == program.JIT:
                return self._call(step)
            return self._bind(step)

    # How values are made

    def _all_names(self) -> dict[str, Any]:
        names = dict(self._names)
        names.update({name: c.values for name, c in self.constants.items()})
        names.update(self.values)
        return names

    def _run(self, step: Step) -> tuple[dict[str, Any], Exception | None]:
        names = self._all_names()
        compiled(step.text())  # a statement that is none is a fault of the generator
        try:
            execute(step, names)
        except Exception as error:  # an error is a result: the other library must raise it too
            if "negative integer powers" in str(error):
                raise Unbounded("an error that depends on values") from error
            return names, error
        return names, None

    def value_of(self, argument: Any) -> Any:
        """The NumPy value of an argument of a step."""
        if isinstance(argument, Var):
            return self.values[argument.name]
        if isinstance(argument, Scalar):
            return np.dtype(argument.dtype).type(argument.value)
        if isinstance(argument, program.Data):
            return self.constants[argument.name].values
        if isinstance(argument, (tuple, list)):
            return type(argument)(self.value_of(a) for a in argument)
        return argument

    def bound_of(self, argument: Any) -> NDArray[Any]:
        if isinstance(argument, Var):
            return np.asarray(self.bounds[argument.name])
        return np.zeros(np.shape(self.value_of(argument)))

    def _observe(self, step: Step) -> Observation:
        (variable,) = step.args
        value, bound = self.values[variable.name], self.bounds[variable.name]
        if step.function not in ("float", "complex", "numpy.asarray", "len") and np.any(bound):
            raise Unbounded(f"{step.function} of inexact values")
        if step.function == "int" and not np.all(np.isfinite(value)):
            raise Unbounded("an error that depends on values")
        if step.function in ("float", "int") and np.asarray(value).dtype.kind == "c":
            raise Unbounded("a warning, not an error")
        self._seen.clear()
        _, error = self._run(step)
        if error is not None:
            return Observation(error=error)
        seen = self._seen[0]
        if step.function == "len" or not np.size(bound):  # NumPy 2.0: an empty array is false
            return Observation(np.array(seen), np.zeros(np.shape(seen)))
        if isinstance(seen, str):
            return Observation(seen, None)
        return Observation(np.array(seen), np.array(bound).reshape(np.shape(seen)))

    # Steps that bind a name

    def _bind(self, step: Step) -> Observation:
        out = step.kwargs.get("out")
        if "where" in step.kwargs and step.function not in REDUCTIONS and out is None:
            raise Unbounded("elements that nobody writes have any value")
        if "where" in step.kwargs and isinstance(out, Var) and any(
                np.may_share_memory(self.values[out.name], self.value_of(argument))
                for argument in step.args if argument != out):
            # numpy.less_equal(v, numpy.rot90(w), out=w, where=False) writes all of w.
            raise Unbounded("NumPy 2.4 writes what it has not computed")
        made: Any = None
        if isinstance(out, Var):
            if not isinstance(self.values[out.name], np.ndarray):
                raise Unbounded("out= names a NumPy scalar, where others have a 0-d array")
            without = Step(step.kind, step.function, ("_",), step.args,
                           {k: v for k, v in step.kwargs.items() if k not in ("out", "where")
                            or (k == "where" and step.function in REDUCTIONS)})
            # The arguments as they are before the write, which may overlap them.
            names, error = self._run(without)
            if error is None:
                made = self._bound(without, names["_"])
                made = _after_cast(names["_"], made, self.values[out.name])
        names, error = self._run(step)
        if error is not None:
            return Observation(error=error)
        results = [names[t] for t in step.targets]
        if not all(isinstance(r, (np.ndarray, np.generic)) for r in results):
            raise Unbounded("a Python number: numpy.float64 is a float, and 1j * float a complex")
        if isinstance(out, Var):
            if made is None:
                raise Unbounded("out= made a call legal that is not without it")
            where = step.kwargs.get("where", True) if step.function not in REDUCTIONS else True
            bounds.assign(self.bounds[out.name], made, self.value_of(where))
            new = [self.bounds[out.name]]
        elif step.kind == program.ALIAS:
            new = [self.bounds[step.args[0].name]]
        elif len(results) > 1:
            new = [bounds.like(r, b) for r, b in zip(results, self._bounds(step, results),
                                                     strict=True)]
        else:
            new = [self._aliasing_bound(step, results[0])]
        for name, value, bound in zip(step.targets, results, new, strict=True):
            if np.shape(value) != np.shape(bound):
                raise AssertionError(f"{step.text()}: bounds of shape {np.shape(bound)}")
            self.values[name] = value
            self.bounds[name] = bound if isinstance(value, np.ndarray) else bound[()]
        return Observation()

    def _aliasing_bound(self, step: Step, result: Any) -> Any:
        """The bound of one result, which aliases other bounds if the result aliases values."""
        if step.kind == program.GETITEM or step.function in MOVES:
            return self._moved(step, result)
        if step.function == "real":
            bound = self.bounds[step.args[0].name]
            return bound.real if np.iscomplexobj(bound) else bound
        if step.function == "imag":
            bound = self.bounds[step.args[0].name]
            return bound.imag if np.iscomplexobj(bound) else bounds.no_bound(result)
        if step.function == "astype":
            source = step.args[0]
            bound = _after_cast(self.value_of(source), self.bound_of(source), result)
            made = bounds.no_bound(result)
            made[...] = bound if np.iscomplexobj(made) else np.real(bound)
            return made
        if step.function in CREATION or step.kind == program.DRAW:
            return bounds.no_bound(result)
        return bounds.like(result, self._bound(step, result))

    def _moved(self, step: Step, result: Any) -> Any:
        names = dict(self._names)
        names.update({name: c.values for name, c in self.constants.items()})
        names.update(self.bounds)
        indices = step.args[1:-1] if step.function in ("insert", "append") else step.args[1:]
        names.update({v.name: self.values[v.name] for v in walk(indices)
                      if isinstance(v, Var)})  # they select bounds as they select values
        kwargs = {k: 0 if k == "constant_values" else v for k, v in step.kwargs.items()}
        execute(Step(step.kind, step.function, step.targets, step.args, kwargs), names)
        made = names[step.targets[0]]
        return made if isinstance(result, np.ndarray) else np.asarray(made)

    def _bounds(self, step: Step, results: list[Any]) -> list[Any]:
        """Of functions with two results: modf, frexp, divmod."""
        inputs = [self.value_of(a) for a in step.args]
        given = [self.bound_of(a) for a in step.args]
        if not bounds.is_exact(given):
            raise Unbounded("two results of inexact values")
        if step.function == "frexp" and not np.all(np.isfinite(inputs[0])):
            raise Unbounded("the exponent of infinity is unspecified in C")
        return [bounds.for_ufunc(step.function, inputs, given, np.asarray(r)) for r in results]

    def _bound(self, step: Step, result: Any) -> NDArray[Any]:
        """The bound of a fresh result of arithmetic or a reduction."""
        name = step.function
        if step.kind == program.OPERATOR:
            name = UNARY_OPERATORS[name] if len(step.args) == 1 else OPERATORS[name]
        inputs = [self.value_of(a) for a in step.args]
        given = [self.bound_of(a) for a in step.args]
        if name == "pad":
            mode = step.kwargs.get("mode", "constant")
            if mode in ("mean", "maximum", "minimum"):
                return _padded(inputs, given, np.asarray(result), mode)
            fill = {"constant_values": 0} if mode == "constant" else {}
            return np.asarray(np.pad(given[0], *inputs[1:], mode=mode, **fill))
        if name in REDUCTIONS:
            return self._reduced(step, inputs, given, result)
        if name in SCANS:
            return self._scanned(step, inputs, given, result)
        if name in ORDERS:
            if not bounds.is_exact([self.bounds[v.name] for v in walk(step.args)
                                    if isinstance(v, Var)]):
                raise Unbounded(f"{name} of inexact values")
            return np.zeros(np.shape(result))
        if name in INTEGER_ONLY:
            if np.asarray(result).dtype.kind in "fc" or not bounds.is_exact(given):
                raise Unbounded(f"{name} of floats")
            return np.zeros(np.shape(result))
        integers = np.asarray(inputs[0]).dtype.kind in "biu"
        if name == "reciprocal" and integers and not np.all(inputs[0]):
            raise Unbounded("1/0 in integers is undefined in C")
        if name == "clip":
            inputs = [inputs[0], *(0 if i is None else i for i in inputs[1:])]
        return bounds.for_ufunc(name, inputs, given, result)

    def _reduced(self, step: Step, inputs: list[Any], given: list[Any], result: Any,
                 ) -> NDArray[Any]:
        value = np.asarray(inputs[0])
        options = {k: self.value_of(v) for k, v in step.kwargs.items()}
        axis = options.get("axis")
        dtype = options.get("dtype")
        if dtype is None and step.function in ("sum", "prod", "mean"):
            dtype = np.asarray(result).dtype
        if dtype is not None:
            if np.dtype(dtype).kind in "biu" and value.dtype.kind in "fc":
                raise Unbounded("a sum of floats in integers")
            value = value.astype(dtype)
        return bounds.for_reduction(
            step.function, value, given[0], np.asarray(result), axis,
            where=options.get("where", True), ddof=options.get("ddof", 0),
            initial=options.get("initial"))

    def _scanned(self, step: Step, inputs: list[Any], given: list[Any], result: Any,
                 ) -> NDArray[Any]:
        value, bound = np.asarray(inputs[0]), np.asarray(given[0])
        axis = step.kwargs.get("axis", None if step.function.startswith("cum") else 0)
        if np.asarray(result).dtype.kind in "biu" and value.dtype.kind in "fc":
            if step.function != "logical_or.accumulate":
                raise Unbounded("a scan of floats in integers")
        elif SCANS[step.function] in ("add", "multiply"):
            value = value.astype(np.asarray(result).dtype)
        if axis is None:
            value, bound, axis = value.ravel(), bound.ravel(), 0
        return bounds.for_scan(SCANS[step.function], value, bound, np.asarray(result), axis)

    # Functions of several steps

    def _call(self, step: Step) -> Observation:
        """A traced function: its steps, once for every call, on the arguments themselves."""
        for trial in (True, False):  # on copies first: nothing may be half done
            for call in step.args:
                values = [self.value_of(a) for a in call]
                given = [self.bounds[a.name] if isinstance(a, Var) else np.float64(0) for a in call]
                if trial:
                    values, given = [np.copy(v) if isinstance(v, np.ndarray) else v
                                     for v in values], [np.copy(b) for b in given]
                inside = Reference(self.constants)
                inside.values.update(zip(step.parameters(), values, strict=True))
                inside.bounds.update(zip(step.parameters(), given, strict=True))
                for each in step.inner:
                    if inside.take(each).error is not None:
                        raise Unbounded("an error inside of a traced function")
        (target,) = step.targets
        if not isinstance(inside.values[step.function], (np.ndarray, np.generic)):
            raise Unbounded("a Python number")
        self.values[target] = inside.values[step.function]
        self.bounds[target] = inside.bounds[step.function]
        return Observation()

    # Steps that write

    def _write(self, step: Step) -> Observation:
        """``v[key] = w``, ``v op= w`` and ``v.fill(w)``; bounds first, they may refuse."""
        name = step.args[0].name
        target = self.values[name]
        if step.kind == program.INPLACE:
            return self._write_in_place(step, name, target)
        source = step.args[-1]
        value = np.asarray(self.value_of(source))
        bound = _after_cast(value, self.bound_of(source), target)
        # What is written may be what selects.
        indices = {v.name: np.array(self.values[v.name]) for v in walk(step.args[1:-1])
                   if isinstance(v, Var)}
        if any(other != name and np.may_share_memory(self.values[other], target)
               for other in indices):
            # w = numpy.flip(v); v[w] = x selects with elements that it has already written.
            raise Unbounded("NumPy 2.4 selects with what it has written")
        _, error = self._run(step)
        if error is not None:
            return Observation(error=error)
        names = {"target": self.bounds[name], "bound": bound if np.iscomplexobj(self.bounds[name])
                 else np.real(bound)}
        key = program.show_key(step.args[1]) if step.kind == program.SETITEM else "..."
        names.update(indices)
        names.update({name: c.values for name, c in self.constants.items()})
        exec(compiled(f"target[{key}] = bound"), names)
        return Observation()

    def _write_in_place(self, step: Step, name: str, target: Any) -> Observation:
        pure = Step(program.OPERATOR, step.function, ("_",), step.args)
        names, error = self._run(pure)
        made = None
        if error is None:
            made = self._bound(pure, names["_"])
            if isinstance(target, np.ndarray):
                made = _after_cast(names["_"], made, target)
        names, error = self._run(step)
        if error is not None:
            return Observation(error=error)
        if made is None:
            raise Unbounded("an operator that only works in place")
        if isinstance(target, np.ndarray):
            bounds.assign(self.bounds[name], made)
        else:  # a scalar is never changed: the name is bound anew
            self.values[name] = names[name]
            made = bounds.like(names[name], made)
            self.bounds[name] = made if isinstance(names[name], np.ndarray) else made[()]
        return Observation()


def _after_cast(value: Any, bound: Any, target: Any) -> NDArray[Any]:
    """The bound after a cast to the target's dtype, or `Unbounded` where C leaves it undefined."""
    value, bound = np.asarray(value), np.asarray(bound)
    dtype = np.asarray(target).dtype
    if value.dtype.kind in "fc" and dtype.kind in "biu":
        if np.any(bound):
            raise Unbounded("a cast of inexact values to integers")
        numbers = np.real(value).astype(np.longdouble)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            inside = (numbers > np.longdouble(limits.min) - 1) & (
                numbers < np.longdouble(limits.max) + 1)
            if not np.all(inside & (np.abs(numbers) < 2.0 ** 63)):
                raise Unbounded("a cast that C leaves undefined")
    if value.dtype == dtype or not np.any(bound):
        return bound
    one = bounds.spacing(value.astype(dtype))
    if np.iscomplexobj(bound):
        made = np.array(bound)
        made.real += np.where(bound.real > 0, one, 0)
        made.imag += np.where(bound.imag > 0, one, 0)
        return made
    return np.asarray(bound + np.where(bound > 0, one, 0))


def _padded(inputs: list[Any], given: list[Any], result: NDArray[Any], mode: str) -> NDArray[Any]:
    """The bound of what is padded with folds of all rows."""
    value = np.asarray(inputs[0])
    if not bounds.is_exact(given):
        raise Unbounded(f"pad with {mode} of inexact values")
    if mode != "mean" or value.dtype.kind not in "fc":
        return np.zeros(result.shape)
    if not np.all(np.isfinite(result)):
        raise Unbounded("means that are not finite")
    largest = np.max(np.abs(value), initial=0).astype(value.real.dtype)
    one = (4 + value.size) * bounds.spacing(np.asarray(largest))
    own = np.pad(np.zeros(value.shape), *inputs[1:], mode="constant", constant_values=1)
    return np.where(own > 0, one, 0.0)


def variables(step: Step) -> list[str]:
    """Names of the variables in a step's arguments, in order."""
    return [v.name for v in walk((step.args, tuple(step.kwargs.values()))) if isinstance(v, Var)]

"""Draws random programs: `generate(seed)` gives the same one for the same seed.

The generator runs NumPy while it draws, so it knows every shape, dtype and value, and chooses steps
that mean something; now and then it keeps one that raises. Each ``draw_*`` method proposes one
kind of step; `WEIGHTS` says how often.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz import program
from tests.fuzz.bounds import Unbounded
from tests.fuzz.folds import Folds
from tests.fuzz.program import Data, Program, Step, Var
from tests.fuzz.reference import Observation, Reference
from tests.support import hostile

FEWEST_STEPS, MOST_STEPS = 5, 40
KEEP_ERROR = 0.25          # of the steps that happen to raise; the others are drawn again
ATTEMPTS = 30              # to draw one step, before the program ends early

UNARY = """
    negative positive absolute fabs sign rint floor ceil trunc sqrt square reciprocal isnan isinf
    isfinite signbit spacing logical_not invert conjugate bitwise_count exp exp2 expm1 log log2
    log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt
    deg2rad rad2deg
""".split()
BINARY = """
    add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin equal
    not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
    bitwise_or bitwise_xor left_shift right_shift copysign nextafter heaviside gcd lcm ldexp power
    arctan2 hypot logaddexp float_power
""".split()
COMMON = ["add", "subtract", "multiply", "divide", "maximum", "less", "equal", "sqrt", "negative"]
OPERATORS = "+ - * / // % ** & | ^ << >> < <= > >= == !=".split()
INPLACE = "+ - * / // % & | ^ << >>".split()


def generate(seed: int) -> Program:
    """The program of a seed."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return Generator(seed).program()


class Generator(Folds):
    """One program in the making."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed
        self.inside = False  # of a traced function
        self.steps: list[Step] = []

    # The whole

    def program(self) -> Program:
        wanted = self.random.randint(FEWEST_STEPS, MOST_STEPS)
        for _ in range(self.random.randint(1, 3)):
            self.keep(self.draw_creation())
        names, weights = zip(*WEIGHTS, strict=True)
        while len(self.steps) < wanted:
            for _ in range(ATTEMPTS):
                draw: Callable[[], Step | None] = getattr(
                    self, "draw_" + self.random.choices(names, weights)[0])
                if self.keep(draw()):
                    break
            else:
                break
        used = set().union(*(step.constants() for step in self.steps))
        constants = {name: c for name, c in self.constants.items() if name in used}
        return Program(tuple(self.steps), constants, self.settings(), self.seed)

    def settings(self) -> dict[str, Any]:
        """How clfuse runs the program: mostly as it pleases."""
        chosen: dict[str, Any] = {}
        if self.random.random() < 0.25:
            chosen["schedule"] = self.random.choice(["gpu", "gpu", "cpu"])
        if self.random.random() < 0.15:
            chosen["vector_bytes"] = self.random.choice([16, 32, 64])
        if self.random.random() < 0.15:
            chosen["work_items"] = self.random.choice([1, 2, 5, 64])
        if self.random.random() < 0.1:
            chosen["fusion"] = "off"
        return chosen

    def keep(self, step: Step | None) -> bool:
        """Take the step if it is one that can be compared and does not grow too large."""
        if step is None:
            return False
        step = step.mapped(self._named)
        if self.inside and step.constants():  # a replay would not see them change: refused
            return False
        try:
            seen = self.reference.take(step)
        except Unbounded:
            return False
        except MemoryError:
            return False
        if seen.error is not None and not self._keep_error(seen, step):
            return False
        if any(np.size(self.reference.values[t]) > self.most_elements for t in step.targets
               if seen.error is None):
            for target in step.targets:
                del self.reference.values[target], self.reference.bounds[target]
            return False
        self.steps.append(step)
        return True

    def _keep_error(self, seen: Observation, step: Step) -> bool:
        if self.inside:
            return False
        if step.kind == program.OBSERVE:
            return self.random.random() < 0.3
        return self.random.random() < KEEP_ERROR

    @staticmethod
    def _named(value: Any) -> Any:
        """NumPy integers and such do not belong in a script."""
        return value.item() if isinstance(value, np.generic) else value

    # Kinds of steps

    def new(self, letter: str = "v") -> tuple[str]:
        """The name of what the next step makes: v7 is made by step 7."""
        return (f"{letter}{len(self.steps)}",)

    def draw_creation(self) -> Step | None:
        dtype, shape = self.dtype(), self.shape()
        kind = self.random.choices(
            ["array", "arange", "linspace", "zeros", "ones", "full", "eye", "like"],
            [8, 3, 2, 2, 1, 2, 1, 1])[0]
        if kind == "array":
            return Step(program.CALL, "array", self.new(), (self.constant(shape, dtype),))
        if kind == "arange":
            args: tuple[Any, ...] = self.random.choice([
                (self.length(),), (1, self.length() + 1), (self.length(), 0, -1), (0, 5, 0.5)])
            kwargs = {"dtype": dtype} if self.random.random() < 0.6 and dtype != "bool" else {}
            return Step(program.CALL, "arange", self.new(), args, kwargs)
        if kind == "linspace":
            kwargs = {"endpoint": False} if self.random.random() < 0.3 else {}
            if dtype in hostile.FLOATS:
                kwargs["dtype"] = dtype
            ends = self.random.choice([(0, 1), (-1.0, 1.0), (0.25, 8), (3, -3)])
            return Step(program.CALL, "linspace", self.new(), (*ends, self.length()), kwargs)
        if kind in ("zeros", "ones"):
            return Step(program.CALL, kind, self.new(), (shape, dtype))
        if kind == "full":
            kwargs = {"dtype": dtype} if self.random.random() < 0.5 else {}
            return Step(program.CALL, "full", self.new(), (shape, self.number()), kwargs)
        if kind == "eye":
            extra = {"k": self.random.choice([-1, 1, 2])} if self.random.random() < 0.4 else {}
            return Step(program.CALL, "eye", self.new(), (min(self.length(), 20),),
                        {"dtype": dtype, **extra})
        like = self.variable()
        function = self.random.choice(["zeros_like", "ones_like"])
        return None if like is None else Step(program.CALL, function, self.new(), (like,))

    def draw_unary(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        function = self.random.choice(UNARY if self.random.random() < 0.7 else COMMON[-2:])
        return self._ufunc(function, (Var(name),), np.shape(self.value(name)))

    def draw_binary(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        function = self.random.choice(BINARY if self.random.random() < 0.6 else COMMON[:-2])
        args: tuple[Any, ...] = (Var(name), self.partner(name))
        if self.random.random() < 0.5:
            args = args[::-1]
        return self._ufunc(function, args, None)

    def _ufunc(self, function: str, args: tuple[Any, ...], shape: Any) -> Step | None:
        """A ufunc call, sometimes with out=, where= or dtype=."""
        kwargs: dict[str, Any] = {}
        chance = self.random.random()
        if chance < 0.12:
            if shape is None:
                try:
                    shape = np.broadcast_shapes(*(np.shape(self.reference.value_of(a))
                                                  for a in args))
                except ValueError:
                    return None
            out = self.name(lambda v: isinstance(v, np.ndarray) and v.shape == shape)
            if out is None:
                return None
            kwargs["out"] = Var(out)
            if self.random.random() < 0.4:
                mask = self.name(lambda v: np.asarray(v).dtype == bool
                                 and self._broadcasts(np.shape(v), shape))
                kwargs["where"] = Var(mask) if mask else self.random.random() < 0.5
        elif chance < 0.16:
            kwargs["dtype"] = self.dtype()
        return Step(program.CALL, function, self.new(), args, kwargs)

    def draw_two_results(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        function = self.random.choice(["modf", "frexp", "divmod"])
        targets = (*self.new(), *self.new("w"))
        args = (Var(name), self.partner(name)) if function == "divmod" else (Var(name),)
        return Step(program.CALL, function, targets, args)

    def draw_operator(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        if self.random.random() < 0.15:
            return Step(program.OPERATOR, self.random.choice("-~+"), self.new(), (Var(name),))
        args: tuple[Any, ...] = (Var(name), self.partner(name))
        if self.random.random() < 0.4:
            args = args[::-1]
        symbol = self.random.choice(OPERATORS if self.random.random() < 0.5 else "+-*")
        return Step(program.OPERATOR, symbol, self.new(), args)

    def draw_inplace(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        symbol = self.random.choice(INPLACE if self.random.random() < 0.5 else "+-*")
        return Step(program.INPLACE, symbol, (), (Var(name), self.partner(name)))

    def draw_where(self) -> Step | None:
        mask = self.name(lambda v: np.asarray(v).dtype == bool)
        if mask is None:
            return None
        return Step(program.CALL, "where", self.new(),
                    (Var(mask), self.partner(mask), self.partner(mask)))

    def draw_clip(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        low, high = self.random.choice([(0, 1), (-1, 3), (-0.5, 0.5), (None, 2), (1, None)])
        return Step(program.CALL, "clip", self.new(), (Var(name), low, high))

    def draw_astype(self) -> Step | None:
        name = self.array()
        if name is None:
            return None
        return Step(program.METHOD, "astype", self.new(), (Var(name), self.dtype()))

    def draw_getitem(self) -> Step | None:
        name = self.array(1)
        if name is None:
            return None
        key = self.key(np.shape(self.value(name)))
        return Step(program.GETITEM, "", self.new(), (Var(name), key))

    def _gather_key(self, name: str) -> tuple[Any, ...] | None:
        """An index with one or two integer arrays in it, mostly arrays of the device."""
        shape = np.shape(self.value(name))
        key: list[Any] = [self.cut(n) if self.random.random() < 0.7
                          else self.random.randrange(-n, n) if n else slice(None) for n in shape]
        for axis in self.random.sample(range(len(shape)), min(len(shape),
                                                               self.random.choice([1, 1, 2]))):
            indices = self.indices(shape[axis], name)
            if isinstance(indices, Data) and self.random.random() < 0.6:
                (made,) = self.new()
                if not self.keep(Step(program.CALL, "array", (made,), (indices,))):
                    return None
                indices = Var(made)
            key[axis] = indices
        if self.random.random() < 0.2:
            key.insert(self.random.randint(0, len(key)), None)
        return tuple(key)

    def draw_gather(self) -> Step | None:
        name = self.array(1)
        key = None if name is None else self._gather_key(name)
        if name is None or key is None:
            return None
        if self.random.random() < 0.25:
            axis = self.axis(len(np.shape(self.value(name))))
            arrays = [k for k in key if isinstance(k, (Var, Data))]
            if arrays and np.size(self.value(name)):  # NumPy 2.4 hangs on empty axes that wrap
                return Step(program.CALL, "take", self.new(), (Var(name), arrays[0], axis),
                            {"mode": self.random.choice(["raise", "wrap", "clip"])})
        return Step(program.GETITEM, "", self.new(), (Var(name), key))

    def draw_scatter(self) -> Step | None:
        name = self.array(1)
        key = None if name is None else self._gather_key(name)
        if name is None or key is None:
            return None
        try:
            shape = self.value(name)[tuple(self.reference.value_of(k) for k in key)].shape
        except (IndexError, ValueError):
            return Step(program.SETITEM, "", (), (Var(name), key, 1))
        other = self.name(lambda v: self._broadcasts(np.shape(v), shape))
        source = Var(other) if other is not None else self.number()
        return Step(program.SETITEM, "", (), (Var(name), key, source))

    def draw_setitem(self) -> Step | None:
        name = self.array(0)
        if name is None:
            return None
        value = self.value(name)
        key = self.key(value.shape) if self.random.random() < 0.8 else (Ellipsis,)
        if self.random.random() < 0.3:
            return Step(program.SETITEM, "", (), (Var(name), key, self.number()))
        try:
            shape = value[key].shape
        except IndexError:
            return Step(program.SETITEM, "", (), (Var(name), key, 1))
        other = self.name(lambda v: self._broadcasts(np.shape(v), shape))
        source = Var(other) if other is not None else self.number()
        return Step(program.SETITEM, "", (), (Var(name), key, source))

    def draw_shift(self) -> Step | None:
        """Reads and writes of one array that overlap."""
        name = self.array(1)
        if name is None or self.value(name).shape[0] < 2:
            return None
        ahead, behind = (slice(1, None),), (slice(None, -1),)
        write, read = self.random.choice([(ahead, behind), (behind, ahead)])
        (source,) = self.new()
        if not self.keep(Step(program.GETITEM, "", (source,), (Var(name), read))):
            return None
        if self.random.random() < 0.5:
            return Step(program.SETITEM, "", (), (Var(name), write, Var(source)))
        (target,) = self.new()
        if not self.keep(Step(program.GETITEM, "", (target,), (Var(name), write))):
            return None
        return Step(program.INPLACE, self.random.choice("+-*"), (), (Var(target), Var(source)))

    def draw_move(self) -> Step | None:
        name = self.array(0)
        if name is None:
            return None
        value, new, v = self.value(name), self.new(), Var(name)
        ndim = value.ndim
        function = self.random.choice("""
            reshape reshape ravel transpose transpose swapaxes moveaxis expand_dims squeeze flip
            roll repeat tile broadcast_to diagonal concatenate concatenate stack pad copy rot90
        """.split())
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if function == "reshape":
            args = (self._reshaping(value.size),)
        elif function == "transpose":
            if self.random.random() < 0.6 and ndim:
                args = (tuple(self.random.sample(range(ndim), ndim)),)
        elif function in ("swapaxes", "moveaxis"):
            args = (self.axis(ndim), self.axis(ndim))
        elif function == "expand_dims":
            args = (self.axis(ndim + 1),)
        elif function == "squeeze":
            kwargs = {"axis": self.axis(ndim)} if self.random.random() < 0.3 else {}
        elif function in ("flip", "roll", "repeat"):
            if function != "flip":
                args = (self.random.choice([-2, -1, 1, 2, 3]) if function == "roll"
                        else self.random.choice([0, 1, 2, 3]),)
            kwargs = {"axis": self.axis(ndim)} if self.random.random() < 0.7 else {}
        elif function == "tile":
            args = (self.random.choice([2, (2, 1), (1, 2), 0]),)
        elif function == "broadcast_to":
            lengths = tuple(self.length() if n == 1 else n for n in value.shape)
            args = ((self.random.choice([1, 2, 3]), *lengths) if self.random.random() < 0.6
                    else lengths,)
        elif function == "diagonal":
            args = (self.random.choice([0, 1, -1]),)
        elif function in ("concatenate", "stack"):
            other = self.name(lambda o: isinstance(o, np.ndarray)
                              and (o.shape == value.shape or (
                                  function == "concatenate" and o.ndim == ndim
                                  and o.shape[1:] == value.shape[1:])))
            parts = [v, Var(other or name)] + ([v] if self.random.random() < 0.2 else [])
            kwargs = {"axis": self.axis(ndim)} if self.random.random() < 0.5 else {}
            return Step(program.CALL, function, new, (parts,), kwargs)
        elif function == "pad":
            widths = [(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in range(ndim)]
            fill = self.random.choice([0, 0, 1, 2])
            kwargs = {"constant_values": fill}
            return Step(program.CALL, function, new, (v, widths), kwargs)
        methods = ("reshape", "ravel", "transpose", "swapaxes", "squeeze", "repeat", "diagonal",
                   "copy")
        kind = program.METHOD if function in methods and self.random.random() < 0.5 else (
            program.CALL)
        return Step(kind, function, new, (v, *args), kwargs)

    def draw_attribute(self) -> Step | None:
        name = self.array(0)
        if name is None:
            return None
        kinds = ["real", "imag"] if self.value(name).dtype.kind == "c" else ["T", "T", "real"]
        return Step(program.ATTRIBUTE, self.random.choice(kinds), self.new(), (Var(name),))

    def draw_jit(self) -> Step | None:
        """A function that is traced, and called once or twice with another number."""
        names = [self.array(0) for _ in range(self.random.randint(1, 2))]
        if self.inside or None in names:
            return None
        numbers = [self.random.choice([2, 0.5, -1.5, 3, 0.25, -1, 7, 1.0]) for _ in range(3)]
        calls = tuple((*[Var(name) for name in names], number)
                      for number in numbers[:self.random.randint(1, 3)])
        body = Generator.__new__(Generator)
        body.__dict__.update(self.__dict__)
        body.inside, body.steps, body.reference = True, [], Reference(self.constants)
        inner = Step(program.JIT, "", self.new(), calls)
        for parameter, argument in zip(inner.parameters(), calls[-1], strict=True):
            value = self.reference.value_of(argument)
            bound = self.reference.bound_of(argument)
            body.reference.values[parameter] = np.copy(value) if np.ndim(value) else value
            body.reference.bounds[parameter] = np.copy(bound)
        if self.random.random() < 0.6:
            args = (Var("p0"), Var("t"))
            body.keep(Step(program.OPERATOR, self.random.choice("+-*/<"), body.new(),
                           args if self.random.random() < 0.7 else args[::-1]))
        kinds, weights = zip(*[(kind, w) for kind, w in WEIGHTS if kind in TRACED], strict=True)
        for _ in range(self.random.randint(2, 7)):
            draw = getattr(body, "draw_" + self.random.choices(kinds, weights)[0])
            body.keep(draw())
        made = [name for name in body.reference.values if name not in inner.parameters()]
        if not made:
            return None
        result = made[-1] if self.random.random() < 0.7 else self.random.choice(made)
        return Step(program.JIT, result, self.new(), calls, {}, tuple(body.steps))

    def draw_host(self) -> Step | None:
        """What is not fused, or not yet: sorts, products."""
        name = self.array(1)
        if name is None:
            return None
        function = self.random.choice("sort diff dot matmul outer".split())
        if function in ("dot", "matmul", "outer"):
            return Step(program.CALL, function, self.new(), (Var(name), self.partner(name)))
        return Step(program.CALL, function, self.new(), (Var(name),))

    def draw_observe(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        value = self.value(name)
        if np.size(value) == 1 and np.ndim(value) == 0:
            functions = ["float", "int", "bool", "str", "numpy.asarray", "complex"]
        else:
            functions = ["numpy.asarray", "numpy.asarray", "repr", "str", "len", "bool", "float"]
        return Step(program.OBSERVE, self.random.choice(functions), (), (Var(name),))

    def draw_delete(self) -> Step | None:
        name = self.name() if len(self.reference.values) > 3 else None
        return None if name is None else Step(program.DELETE, "", (), (Var(name),))

    def draw_alias(self) -> Step | None:
        name = self.variable()
        return None if name is None else Step(program.ALIAS, "", self.new(), (name,))

    def draw_evaluate(self) -> Step | None:
        name = self.array(0)
        return None if name is None else Step(program.EVALUATE, "", (), (Var(name),))

    def draw_fill(self) -> Step | None:
        name = self.array(0)
        if name is None:
            return None
        return Step(program.METHOD, "fill", (), (Var(name), self.number()))

    def draw_fault(self) -> Step | None:
        """Calls that raise at once."""
        name = self.array(1)
        if name is None:
            return None
        v, n = Var(name), self.value(name).shape[0]
        ndim = self.value(name).ndim
        wrong = self.constant((n + 2,) + (1,) * (ndim - 1), "float32")
        return self.random.choice([
            Step(program.CALL, "add", self.new(), (v, wrong)),
            Step(program.SETITEM, "", (), (v, (Ellipsis,), wrong)),
            Step(program.CALL, "sum", self.new(), (v,), {"axis": ndim}),
            Step(program.CALL, "sum", self.new(), (v,), {"axis": (0, 0)}),
            Step(program.METHOD, "reshape", self.new(), (v, (-1, -1))),
            Step(program.CALL, "concatenate", self.new(), ([v, wrong],)),
            Step(program.CALL, "swapaxes", self.new(), (v, 0, ndim + 1)),
            Step(program.CALL, "broadcast_to", self.new(), (v, (n + 1,))),
            Step(program.GETITEM, "", self.new(), (v, (0,) * (ndim + 1))),
            Step(program.CALL, "zeros", self.new(), (-1,)),
            Step(program.METHOD, "astype", self.new(), (v, "no such dtype")),
            Step(program.CALL, "transpose", self.new(), (v, (0,) * (ndim + 1))),
            Step(program.CALL, "sin", self.new(), (v, v, v)),
        ])


TRACED = frozenset("""
    unary binary operator inplace where clip astype getitem setitem shift move attribute reduction
    scan rows rolls pairs random joined_rows
""".split())
"""What a traced function may do."""

WEIGHTS = [
    ("creation", 9), ("unary", 12), ("binary", 16), ("operator", 14), ("inplace", 9),
    ("where", 4), ("clip", 2), ("astype", 4), ("getitem", 11), ("setitem", 11), ("shift", 3),
    ("move", 14), ("gather", 4), ("scatter", 3), ("attribute", 3), ("reduction", 9),
    ("scan", 3), ("mask", 5), ("rows", 4), ("random", 3), ("rolls", 3), ("pairs", 3), ("jit", 5),
    ("joined", 4), ("joined_rows", 5), ("order", 4),
    ("two_results", 1), ("host", 1), ("observe", 3), ("delete", 4), ("alias", 1), ("evaluate", 1),
    ("fill", 1), ("fault", 1),
]

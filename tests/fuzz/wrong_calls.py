"""Wrong calls by the signature: every public callable with arguments that NumPy refuses.

`wrong_calls` reads NumPy's signatures, finds one call of each callable that NumPy takes, and
changes one thing in it: an argument less, too many, an unknown keyword, another kind of value for
one parameter. What NumPy then refuses is a wrong call. Calls are expressions over the names ``np``
and those of `VALUES`, so a failure can be pasted into a shell; the same seed gives the same calls.
"""

from __future__ import annotations

import inspect
import random
import re
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, Final

import numpy as np

VALUES: Final[dict[str, str]] = {
    "f23": "np.arange(6.0).reshape(2, 3)",
    "f33": "np.arange(9.0).reshape(3, 3) + np.eye(3)",
    "f234": "np.arange(24.0).reshape(2, 3, 4)",
    "v4": "np.arange(4.0)",
    "i4": "np.arange(4)",
    "u3": "np.arange(3, dtype='uint8')",
    "b3": "np.array([True, False, True])",
    "c2": "np.array([1j, 2])",
    "e0": "np.zeros(0)",
    "e03": "np.zeros((0, 3))",
    "z": "np.array(2.5)",
    "s": "np.float64(1.5)",
    "o2": "np.array([object(), None])",
    "t2": "np.array(['a', 'b'])",
    "f57": "np.ones((5, 7))",
}
"""Arrays that calls may use; made anew for every call, because wrong calls may still write."""

SCALARS: Final = ("0", "1", "2", "-1", "3", "0.5", "2.5", "1j", "True", "None", "'a'", "(0, 1)",
                  "(2, 3)", "[0, 1]", "[1.0, 2.0]", "(0,)", "int", "'float32'", "[f23, f23]",
                  "(v4, v4)", "abs")

WRONG: Final = ("object()", "'nonsense'", "2.5", "-7", "99", "None", "(0, 0)", "(7, 8, 9)", "[]",
                "[[1, 2], [3]]", "{}", "f57", "e0", "t2", "o2", "1j", "abs", "b''", "b3", "v4",
                "c2", "z", "True")
"""Values for a parameter whose kind is not known; NumPy says which are wrong."""

BY_NAME: Final[dict[str, tuple[str, ...]]] = {
    "axis": ("5", "-5", "1.5", "'x'", "(0, 0)", "(0, 9)", "None", "[0]", "object()", "v4", "True"),
    "axes": ("5", "(0, 0)", "(0, 9)", "'x'", "(0,)", "[[0]]", "object()"),
    "dtype": ("'nonsense'", "object()", "3", "'U5'", "[('a', 'i4')]", "'i3'", "'c8'", "'m8[s]'",
              "'>f4,'", "{}", "'O'", "(0,)"),
    "out": ("3", "f57", "v4", "'x'", "(v4, v4)", "np.zeros(0)", "np.zeros((2, 3), 'int8')",
            "[1, 2]", "()", "(None, None, None)", "np.zeros((), bool)", "i4"),
    "where": ("f57 > 0", "'x'", "v4", "3", "object()", "np.ones((5, 7), bool)"),
    "casting": ("'nonsense'", "3", "None", "'no'", "'equiv'"),
    "order": ("'X'", "3", "object()", "''", "'CF'", "(0,)"),
    "keepdims": ("'x'", "v4", "object()", "np._NoValue"),
    "initial": ("'x'", "v4", "object()", "()"),
    "mode": ("'nonsense'", "7", "None", "object()", "('clip',)"),
    "shape": ("-1", "(2, -3)", "1.5", "'x'", "(2, 'a')", "None", "object()", "((1, 2), 3)",
              "(1,) * 65", "2 ** 70", "(2**40, 2**40)"),
    "size": ("-1", "(2, -3)", "1.5", "'x'", "(2, 'a')", "object()"),
    "indices": ("99", "[0, 99]", "[0.5]", "'x'", "[[0], [0, 1]]", "object()", "[-99]", "t2"),
    "device": ("'nonsense'", "3.5", "object()"),
    "copy": ("'x'", "v4", "object()"),
    "like": ("'x'", "3", "object()"),
    "kind": ("'nonsense'", "3", "object()"),
    "method": ("'nonsense'", "3", "None", "object()"),
    "signature": ("'nonsense'", "3", "()", "'d->'", "('d',)"),
    "subok": ("'x'", "v4"),
}

DANGEROUS: Final = frozenset("""
    test info show_config show_runtime set_printoptions seterr seterrcall setbufsize printoptions
    errstate memmap save savez savez_compressed savetxt tofile dump setflags get_include tolist
    set_state seed get_state set_bit_generator get_bit_generator require getbufsize bytes
""".split())
"""Change the process or write files, print, or take no wrong argument worth a test.

`numpy.random.set_bit_generator` takes anything, and damages NumPy's memory."""

NO_ARRAYS: Final = ("3", "'x'", "(v4, v4)", "[1, 2]", "()", "(None, None, None)")
"""As ``out=`` of NumPy's generators these are read as if they were arrays, and end the process:
``default_rng(3).random(out=(v4, v4))``."""

ATTEMPTS: Final = 160
"""Calls tried for each callable until NumPy takes one."""

SECONDS: Final = 2
"""More than any of NumPy's calls here takes; a longer one is left out."""


@dataclass(frozen=True)
class WrongCall:
    """An expression that NumPy refuses, the class of the exception, and its words."""

    text: str
    error: type[BaseException]
    words: str

    def run(self, module: ModuleType) -> BaseException | None:
        """What the call raises under `module`, or None."""
        return outcome(self.text, module)

    def has_words(self, found: BaseException) -> bool:
        """Whether `found` has the words of NumPy's error, or that is about a signature."""
        return str(found) == self.words or bool(_OF_SIGNATURES.search(self.words))


def public(kind: type[BaseException]) -> type[BaseException]:
    """The nearest class that a program can name: NumPy's private subclasses are details."""
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg"):
            return base
    return kind


_OF_SIGNATURES: Final = re.compile("argument|keyword|object at 0x")
"""What is said of a call that does not fit a signature: it has names of ours in it."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def outcome(text: str, module: ModuleType) -> BaseException | None:
    """What evaluating `text` with `module` as ``np`` raises, or None. Nothing is looked at."""
    namespace: dict[str, Any] = {"np": module}
    before = signal.signal(signal.SIGALRM, _too_long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for name, made in VALUES.items():
                if name in text:
                    namespace[name] = eval(made, namespace)
            signal.alarm(SECONDS * 10)
            eval(text, namespace)
        except Exception as error:  # whatever it is, it is the result
            return error
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
    return None


# -- what there is to call ------------------------------------------------------------------------


def callables() -> Iterator[tuple[str, Any, list[str]]]:
    """(expression, NumPy's function, values to call it on first) for every public callable."""
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft),
                           ("np.random", np.random)):
        for name in sorted(dir(module)):
            found = getattr(module, name)
            if name[0] == "_" or name in DANGEROUS or not callable(found):
                continue
            if inspect.isclass(found) and found is not np.ndarray:
                continue
            yield f"{prefix}.{name}", found, []
    for name in sorted(dir(np.ndarray)):
        found = getattr(np.ndarray, name)
        if name[0] != "_" and name not in DANGEROUS and callable(found):
            for array in ("f23", "i4"):
                yield f"{array}.{name}", found, [array]
    for name in ("add", "maximum", "logical_and", "multiply"):
        for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
            yield f"np.{name}.{method}", getattr(np.add, method), []
    generator = np.random.Generator
    for name in sorted(dir(generator)):
        if name[0] != "_" and name not in DANGEROUS and callable(getattr(generator, name)):
            yield f"np.random.default_rng(3).{name}", getattr(generator, name), ["self"]
    for name in ("__getitem__", "__setitem__", "__add__", "__iadd__", "__matmul__", "__pow__",
                 "__lt__", "__and__", "__ilshift__", "__itruediv__", "__imatmul__", "__contains__"):
        yield f"f23.{name}", getattr(np.ndarray, name), ["f23"]


@dataclass(frozen=True)
class _Call:
    """A call as its parts: text of the function, positional arguments by parameter, keywords."""

    function: str
    positional: tuple[tuple[str, str], ...]
    keywords: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        arguments = [value for _, value in self.positional]
        arguments += [f"{name}={value}" for name, value in self.keywords]
        return f"{self.function}({', '.join(arguments)})"

    def with_argument(self, name: str, value: str) -> _Call:
        if any(known == name for known, _ in self.positional):
            changed = tuple((known, value if known == name else old)
                            for known, old in self.positional)
            return _Call(self.function, changed, self.keywords)
        return _Call(self.function, self.positional, (*self.keywords, (name, value)))


_FITTING: Final[dict[str, tuple[str, ...]]] = {
    "shape": ("(2, 3)", "6"), "newshape": ("(3, 2)",), "axis": ("0",), "axis1": ("0",),
    "axis2": ("1",), "dtype": ("'float64'",), "indices": ("[0, 1]",), "repeats": ("2",),
    "reps": ("2",), "n": ("2",), "N": ("2",), "M": ("2",), "num": ("3",), "subscripts": ("'ij'",),
    "func1d": ("np.sum",), "func": ("np.sum",), "function": ("lambda i: i",), "k": ("1",),
    "kth": ("1",), "bins": ("4",), "q": ("0.5",), "object": ("[1, 2]",), "string": ("'1 2'",),
    "indices_or_sections": ("1",), "pad_width": ("1",), "shift": ("1",), "source": ("0",),
    "destination": ("1",), "condlist": ("[v4 > 1]",), "choicelist": ("[v4]",), "deg": ("1",),
    "mask": ("f23 > 1",), "condition": ("f23 > 1",), "low": ("0",), "high": ("5",),
    "pvals": ("[0.5, 0.5]",), "cov": ("np.eye(2)",), "mean": ("[0.0, 0.0]",), "p": ("0.5",),
    "buffer": ("b'12345678'",), "window_shape": ("2",), "multi_index": ("([0], [1])",),
    "dims": ("(2, 3)",), "seq": ("[1.0, 2.0]",), "key": ("0",), "value": ("1",), "iter": ("[1]",),
}
"""Values that a required parameter of that name usually takes."""


def _base_call(text: str, required: list[str], rng: random.Random) -> _Call | None:
    """A call that NumPy takes, without optional arguments."""
    pool = (*VALUES, *SCALARS)
    for attempt in range(ATTEMPTS):
        arguments = []
        for name in required:
            fitting = _FITTING.get(name)
            if fitting and attempt < ATTEMPTS // 2:
                value = rng.choice(fitting)
            elif attempt < ATTEMPTS // 4:
                value = rng.choice(("f23", "f33", "v4", "i4", "f234"))
            else:
                value = rng.choice(pool)
            arguments.append((name, value))
        call = _Call(text, tuple(arguments))
        if outcome(call.text(), np) is None:
            return call
    return None


def _mutations(call: _Call, parameters: list[inspect.Parameter]) -> Iterator[tuple[str, _Call]]:
    """(what is wrong, call), one thing changed in each."""
    if call.positional:
        yield "missing", _Call(call.function, call.positional[:-1])
    yield "too many", _Call(call.function, call.positional + (("more", "1"),) * 40)
    yield "unknown keyword", call.with_argument("nonsense", "1")
    for parameter in parameters:
        name = parameter.name
        is_given = any(name == known for known, _ in call.positional)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL) and not is_given:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            for known in ("keepdims", "initial", "where"):
                for value in BY_NAME[known]:
                    yield known, call.with_argument(known, value)
            continue
        for value in BY_NAME.get(name, WRONG):
            if name == "out" and "random" in call.function and value in NO_ARRAYS:
                continue
            yield name, call.with_argument(name, value)
        if is_given and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            yield f"{name} twice", _Call(call.function, call.positional, ((name, "1"),))


def wrong_calls(seed: int = 0, most_of_a_kind: int = 1) -> Iterator[WrongCall]:
    """Every wrong call that this seed finds.

    At most `most_of_a_kind` for one callable, parameter and class of exception.
    """
    for text, function, first in callables():
        rng = random.Random(f"{seed} {text}")
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except ValueError:
            continue
        parameters = parameters[len(first):]
        empty = inspect.Parameter.empty
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        required = [p.name for p in parameters if p.default is empty and p.kind in by_position]
        if not required and any(p.kind is p.VAR_POSITIONAL for p in parameters):
            required = ["args"]
        base = _base_call(text, required, rng)
        if base is None:
            continue
        found: dict[tuple[str, type], int] = {}
        for what, call in _mutations(base, parameters):
            error = outcome(call.text(), np)
            if error is None or isinstance(error, TimeoutError):
                continue
            kind = what, public(type(error))
            found[kind] = found.get(kind, 0) + 1
            if found[kind] <= most_of_a_kind:
                yield WrongCall(call.text(), public(type(error)), str(error))


def difference(wrong: WrongCall, error: BaseException | None) -> str | None:
    """What was raised in the place of NumPy's class, in words; None where it is that class."""
    if error is None:
        return f"{wrong.text}: NumPy raises {wrong.error.__name__}, nothing was raised"
    if isinstance(error, wrong.error):
        return None
    return (f"{wrong.text}: NumPy raises {wrong.error.__name__}, "
            f"here it is {type(error).__name__}: {str(error)[:120]}")

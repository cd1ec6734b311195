"""Random calls by the signature: every public callable, with operands and keywords that fit often.

`generate` draws one call. It goes through the callables of `tests.fuzz.wrong_calls`, so that each
has its turn, reads NumPy's signature, and takes a value for each parameter from
`tests.fuzz.call_arguments`. Most calls are right; NumPy says which are. A call is text over ``np``
and the names of its operands, so a failure can be pasted into a shell; the same seed gives the same
call.
"""

from __future__ import annotations

import functools
import inspect
import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.fuzz import wrong_calls
from tests.fuzz.call_arguments import KEYWORDS, SCANS, SPREAD, Drawing
from tests.fuzz.call_operands import LAYOUTS

UFUNC_METHODS: Final = ("reduce", "accumulate", "reduceat", "outer", "at")

LEFT_OUT: Final = frozenset(
    """
    asmatrix bmat matrix array2string array_repr array_str format_float_positional
    format_float_scientific get_printoptions geterr geterrcall genfromtxt loadtxt load fromfile
    fromregex fromstring mask_indices frompyfunc vectorize to_device dumps setfield getfield
    einsum_path unique_values nested_iters busday_count busday_offset is_busday
    datetime_as_string datetime_data isnat mintypecode typename seterr from_dlpack resize
""".split()
)
"""What takes no arrays of numbers, prints, or reads files. `ndarray.resize` counts references."""


OFTEN: Final = frozenset(
    (
        "clip a_min",
        "clip a_max",
        "clip min",
        "clip max",
        "where x",
        "where y",
        "searchsorted side",
        "pad mode",
        "interp left",
        "cov y",
        "norm ord",
        "norm axis",
        "std correction",
        "trapezoid x",
        "median axis",
        "ones dtype",
        "at b",
    )
)

OPERATORS: Final = (
    *[
        f"__{prefix}{name}__"
        for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
        for prefix in ("", "r", "i")
    ],
    *"""
    __divmod__ __lt__ __ge__ __eq__ __ne__ __neg__ __invert__ __abs__ __bool__ __float__ __int__
    __complex__ __index__ __len__ __copy__
    """.split(),
)


@dataclass(frozen=True)
class RandomCall:
    """A call as text, and the operands that it names, as text too."""

    operands: tuple[tuple[str, str], ...]
    function: str
    positional: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        arguments = [*self.positional, *(f"{name}={value}" for name, value in self.keywords)]
        return f"{self.function}({', '.join(arguments)})"

    def script(self) -> str:
        """What shows the call in a shell, behind ``from tests.fuzz.call_operands import made``."""
        lines = [f"{name} = {value}" for name, value in self.operands if name in self.text]
        return "\n".join([*lines, f"r = {self.text}"])

    def without(self, place: int) -> RandomCall:
        """The same without one of its keywords."""
        return RandomCall(
            self.operands,
            self.function,
            self.positional,
            self.keywords[:place] + self.keywords[place + 1 :],
        )


def _call(draw: Drawing, parameters: tuple[inspect.Parameter, ...]) -> RandomCall:
    """A call with a value for each parameter that is required, and for some that are not."""
    positional: list[str] = []
    keywords: list[tuple[str, str]] = []
    by_keyword = False
    for parameter in parameters:
        name, kind = parameter.name, parameter.kind
        if name in ("mod", "subok", "signature", "device", "like", "ldict", "gdict", "refcheck"):
            by_keyword = by_keyword or kind is not parameter.KEYWORD_ONLY
            continue
        if kind is parameter.VAR_POSITIONAL:
            spread = SPREAD.get(draw.name)
            positional += (
                spread(draw) if spread else [draw.array() for _ in range(draw.random.randint(0, 3))]
            )
            by_keyword = True
            continue
        if kind is parameter.VAR_KEYWORD:
            for extra in KEYWORDS.get(draw.name, ()):
                if draw.random.random() < 0.25:
                    keywords.append((extra, draw.value(extra)))
            continue
        if parameter.default is not parameter.empty:
            if name == "out" and draw.name in SCANS and (len(draw.shape) != 1 or 0 in draw.shape):
                continue
            likely = 0.6 if f"{draw.name} {name}" in OFTEN else 0.22
            if draw.random.random() > likely:
                by_keyword = by_keyword or kind is not parameter.KEYWORD_ONLY
                continue
        if kind is parameter.POSITIONAL_ONLY and by_keyword:
            continue
        value = draw.value(name)
        named = (
            kind is parameter.KEYWORD_ONLY
            or by_keyword
            or (kind is parameter.POSITIONAL_OR_KEYWORD and draw.random.random() < 0.3)
        )
        if named:
            keywords.append((name, value))
            by_keyword = by_keyword or kind is not parameter.KEYWORD_ONLY
        else:
            positional.append(value)
    return RandomCall(tuple(draw.operands), draw.function, tuple(positional), tuple(keywords))


@functools.cache
def functions() -> tuple[tuple[str, tuple[inspect.Parameter, ...], bool], ...]:
    """(text, parameters, whether the first operand comes before the dot) of all that is called."""
    found: dict[str, tuple[str, tuple[inspect.Parameter, ...], bool]] = {}

    def add(text: str, function: Any, is_method: bool) -> None:
        try:
            parameters = tuple(inspect.signature(function).parameters.values())
        except ValueError:
            return
        found[text] = (text, parameters[is_method:], is_method)

    for text, function, first in wrong_calls.callables():
        name = text.rpartition(".")[2]
        if ".random" in text or name in LEFT_OUT or (name in UFUNC_METHODS and first == []):
            continue
        add(f".{name}" if first else text, function, bool(first))
        if isinstance(function, np.ufunc) and function.nout == 1 and function.signature is None:
            names = UFUNC_METHODS if function.nin == 2 else ("at",)
            for method in names:
                add(f"{text}.{method}", getattr(function, method), False)
    for operator in OPERATORS:
        add(f".{operator}", getattr(np.ndarray, operator), True)
    lib = np.lib.stride_tricks
    add("np.lib.stride_tricks.sliding_window_view", lib.sliding_window_view, False)
    return tuple(found[text] for text in sorted(found))


def generate(seed: int) -> RandomCall:
    """The call of a seed: consecutive seeds go through all functions."""
    everything = functions()
    text, parameters, is_method = everything[seed % len(everything)]
    chance = random.Random(seed)
    while text.rpartition(".")[2] in UFUNC_METHODS and chance.random() < 0.7:
        text, parameters, is_method = chance.choice(everything)  # ufuncs have many of them
    draw = Drawing(text, f"call {seed}")
    if text.startswith("np.linalg") and draw.dtype == "float16" and draw.random.random() < 0.8:
        draw.dtype = "float32"
    if is_method:
        receiver = draw.operand(
            draw.dtype,
            draw.shape,
            tuple(layout for layout in LAYOUTS if layout not in ("numpy", "list")),
        )
        draw.function = receiver + text
    return _call(draw, parameters)

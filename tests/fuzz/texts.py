"""Draws random programs as text: loops, functions, conditions, calls with options, looks.

`tests.fuzz.generate` draws operations whose results have bounds; here every number stays a small
multiple of 1/64, so that all sums are exact and results are the same to the last digit. What that
leaves out is `generate`'s part; what is here are statements that NumPy's users write around their
operations. `tests.fuzz.text_runner` runs them.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST, MOST = 5, 25           # statements
MOST_ELEMENTS = 20_000
ATTEMPTS = 12                  # for each statement that there is to be
KEEP_ERROR = 0.2               # of the statements that happen to raise
DTYPES = "bool int8 int32 int64 int64 uint8 uint32 float32 float64 float64 complex64 complex128"
LENGTHS = [0, 1, 2, 3, 5, 17, 300, 4097]
BODIES = """
    t = a * 2; t[:1] = b.ravel()[0]; return t + a
    a[...] = a * 2; return a
    return a[::-1], a.sum()
    m = a > a.min(); return np.where(m, a, -a)
    a += 1; b = a[:2]; b *= 2; return b
    return a - a.max(axis=0, keepdims=True)
    out = np.empty_like(a); out[...] = a; out[0] = 3; return out
    c = np.concatenate([a, a]); c[1] += 1; return c[: len(a)]
    a.ravel()[::2] = 0; return a.T
    w = np.zeros(a.shape, a.dtype); w += a; a -= w; return w
    return a[1:] if a.shape[0] > 2 else a.copy()
"""
ROUNDS = """
    {x}[i % len({x})] = {x}[i % len({x})] * 2 % 8 + i
    {x}[i % len({x})] += {x}[i % len({x}) - 1]; {x} %= 16
    {x} = {x} + 1; {x}[0] = i
    {x}[{x} > i] -= 1
    {x} -= {x}.min(axis=0)
    {x} = np.roll({x}, 1, axis=0); {x}[0] = 0
    np.add({x}, 1, out={x}); {x}[::2] = {x}[::2] - 1
    {x} = np.where({x} > 3, {x} - 3, {x} + i)
    {x}[0], {x}[-1] = {x}[-1], {x}[0]
    {x}[::2] += 1; look({x}.max()) if i % 5 == 4 else None
"""
VIEWS = """
    {x}.T|{x}.ravel()|{x}.reshape(-1)|{x}.squeeze()|{x}[::-1]|{x}[None]|{x}[..., None]|{x}.view()
    {x}[1:]|{x}.real|{x}[..., ::2]|np.broadcast_to({x}, (2,) + {x}.shape)|np.flip({x})
    np.atleast_2d({x})|np.swapaxes({x}, 0, -1)|np.expand_dims({x}, 0)
    np.ravel({x}, order={order!r})|{x}.diagonal()|np.split({x}, [1, 3])[1]|np.moveaxis({x}, 0, -1)
    {x}.reshape({x}.shape[::-1])|{x}.mT|{x}[-1]
    np.lib.stride_tricks.sliding_window_view({x}, 2, axis=0)|{x}.flatten()|{x}.copy()|np.rot90({x})
    {x}.astype({dtype!r}, copy=False)|np.asarray({x})|np.ascontiguousarray({x})
    np.array({x}, copy=None)
"""
PLACES = """
    np.take({x}, {places})|np.take({x}, {places}, axis={axis}, mode='clip')|{x}[{x} > 2]
    {x}[{places}]|np.compress([True, False, True], {x}, axis={axis})|np.repeat({x}, 2, axis={axis})
    np.repeat({x}, np.arange({x}.shape[{axis}]) % 3, axis={axis})
    np.tile({x}, 2)|np.roll({x}, 2, axis={axis})|np.pad({x}, 1, mode={mode!r})
    np.insert({x}, 0, 3, axis={axis})|np.delete({x}, 0, axis={axis})|np.append({x}, {x})
    np.resize({x}, (2, 3))|{x}.flat[1:3]|np.flatnonzero({x})
    np.take_along_axis({x}, np.argsort({x}, axis={axis}, kind='stable'), axis={axis})
    np.argwhere({x})|{x}[np.ix_({places}, [0])]|np.choose({x} > 2, [{x}, 5])
    np.extract({x} > 0, {x})|{x}[:, None] == {x}
    np.select([{x} > 2, {x} < 0], [{x}, -{x}], {number})|np.where({x} > 1, {x}, {number})
    np.diff({x}, axis={axis})|np.concatenate([{x}, {y}], axis={axis})|np.stack([{x}, {x}], axis=-1)
    np.block([[{x}, {x}]])|np.r_[{x}, 1]
"""
SEARCHES = """
    np.sort({x}, axis={axis})|np.argsort({x}, axis={axis}, kind='stable')|np.unique({x})
    np.digitize({x}, [0, 3])|np.unique({x}, return_counts=True)|np.unique({x}, return_inverse=True)
    np.partition({x}, 0)[..., 0]|np.searchsorted(np.sort({x}, axis=None), {y})|np.isin({x}, {y})
    np.intersect1d({x}, {y})|np.union1d({x}, {y})|np.setdiff1d({x}, {y})
    np.lexsort(({x}.ravel(), {x}.ravel()[::-1]))|np.bincount({x}.ravel())
    np.bincount(np.abs({x}.ravel()).astype(int) % 7, minlength=9)|np.histogram({x}, 4, (0, 8))
    np.histogram({x}, bins=[0, 1, 5, 9])|np.clip({x}, 0, 3)|np.clip({x}, 0, 3, out={x})
    np.trim_zeros({x})|np.argmax({x}, axis={axis})|{x}.argmin(axis={axis}, keepdims=True)
    np.count_nonzero({x}, axis={axis})|np.apply_along_axis(lambda r: r[::-1], {axis}, {x})
    np.vectorize(lambda q: q * 2)({x}[:9])|np.modf({x})
    np.piecewise({x}, [{x} < 0, {x} >= 3], [-1, lambda q: q * 2, 7])|np.median({x})
    np.ptp({x}, axis={axis})
"""
FOLDS = """
    {x}.sum(axis={axes}, keepdims={bool})|np.sum({x}, axis={axes}, where={x} > 1)
    {x}.max(axis={axes}, initial=2)|np.sum({x}, axis={axis}, dtype={dtype!r})
    np.cumsum({x}, axis={axis})|np.any({x}, axis={axes})
    np.add.reduce({x}, axis={axes}, keepdims={bool})|np.maximum.accumulate({x}, axis={axis})
    {x}.min()|{x}.all()|np.nansum({x}, axis={axes})|np.nanmax({x}, axis={axes})|np.trace({x})
    np.dot({x}, {x})|{x} @ {x}.T|np.einsum('...i->...', {x})|np.tensordot({x}, {x}, axes={x}.ndim)
    np.outer({x}[:5], {x}[:5])|np.vdot({x}, {x})|np.add.outer({x}[:5], {x}[:5])
    np.add.reduceat({x}, [0, 1], axis={axis})|np.subtract.reduce({x}, axis={axis})
"""
UFUNCS = """
    add subtract multiply maximum minimum less equal logical_and floor_divide remainder
""".split()
WRITES = """
    {x}[{index}] = {source}|{x}[{index}] = {source}|{x}[{index}] {sign}= {source}
    {x}[{x} > 2] = {number}|{x} {sign}= {source}|{x}[...] = {source}|{x}.fill({number})
    {x}.flat[1] = {number}|{x}.sort(axis={axis})|np.copyto({x}, {source}, where={x} > 1)
    np.put({x}, {places}, [1, 2])|np.putmask({x}, {x} > 2, [1, 2, 3])
    np.place({x}, {x} > 1, [5, 6])|np.add.at({x}, {places}, 1)|np.fill_diagonal({x}, 3)
    {x}.real = {number}|{x}[{places}] = {x}[{places}] + 1|{x}[1:] = {x}[:-1]|{x}[::-1] = {x}
    {x}[{places}] = {x}[{places}][::-1]|{x}[..., {places}] = {number}|{x}[{places}] {sign}= {number}
    np.subtract.at({x}, {places}, {x}[{places}])|np.maximum.at({x}, {places}, {number})
    np.put({x}, {places}, {x}.ravel()[:3], mode='wrap')|np.multiply.at({x}, (..., {places}), 2)
    {x}.flags.writeable = {bool}
    np.put_along_axis({x}, np.argmax({x}, axis=-1, keepdims=True), 9, axis=-1)
    {x}[{x} < 1] {sign}= 2
"""
LOOKS = """
    float({e})|int({e})|bool({e})|len({x})|'%g' % {e}|f'{{{e}:.2f}}'|str({e})|repr({x}[:3])
    [q * 2 for q in {x}[:4]]|list(zip({x}[:3], {x}[1:4]))|3 in {x}|0 < {e} < 10|{e}.item()
    {e} == {e}|round(float({e}), 1)|{x}.tolist()|[(k, int(q)) for k, q in np.ndenumerate({x}[:3])]
    type({e}).__name__|hash({e}) == hash(float({e}))|{e} ** 2|[*{x}.flat][:4]
    {x}[int(abs({e})) % len({x})]|{e} * {x}|{e} and 3|divmod({e}, 3)|np.array([{e}, {e}])
    np.squeeze({e})|({e}.dtype, {e}.shape)|{e} // 2|2 - {e}|{e}.astype('f4')
    np.take({e}, [0], axis=0)|np.reshape({e}, ())|{x} is {x}[...]
"""
FAULTS = """
    {x} + np.ones({x}.size + 2)|{x}.reshape({x}.size + 1)|{x}[len({x}) + 5]
    np.concatenate([{x}, {x}[None]])|{x}.sum(axis={x}.ndim)|{x}['a']|{x}[1.5]|bool({x})
    np.int8(300)|np.stack([{x}, {x}[None]])|{x} @ 3|np.take({x}, 10**6)|np.arange(3)[[0, 7]]
    np.max(np.array([]))|np.squeeze(np.ones((2, 3)), 0)|hash({x})|np.split(np.arange(5), 2)
"""


def table(text: str) -> list[str]:
    return [item for line in text.strip().splitlines() for item in line.strip().split("|")]


FAMILIES: list[tuple[str, list[str], int]] = [
    ("view", table(VIEWS), 12), ("place", table(PLACES), 10), ("search", table(SEARCHES), 9),
    ("fold", table(FOLDS), 9), ("write", table(WRITES), 14), ("look", table(LOOKS), 9),
    ("fault", table(FAULTS), 2),
]


def data(seed: int, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """An array of small numbers; programs call it by this name."""
    draw = np.random.RandomState(seed)
    kind = np.dtype(dtype).kind
    size = math.prod(shape)
    numbers = draw.randint(0 if kind in "bu" else -20, 2 if kind == "b" else 40, size)
    values = numbers / 4 if kind in "fc" else numbers
    if kind == "c":
        values = values + 1j * draw.randint(-9, 9, size)
    return values.astype(dtype).reshape(shape)


class Text:
    """One program in the making: blocks of lines, and what NumPy makes of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks: list[list[str]] = []
        self.made = 0
        self.names: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self.names = {"np": np, "data": data, "look": lambda *seen: None, "jit": lambda f: f}

    def arrays(self, fits: Callable[[NDArray[Any]], bool] = lambda v: True) -> list[str]:
        return [name for name, value in self.names.items()
                if name[0] == "v" and isinstance(value, np.ndarray) and fits(value)]

    def new(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choices([0, 1, 2, 3], [1, 8, 8, 2])[0]
        if rank == 1:
            return (self.random.choice(LENGTHS),)
        return tuple(self.random.choice([1, 2, 3, 4, 7]) for _ in range(rank))

    def creation(self, shape: tuple[int, ...] | None = None) -> str:
        shape, dtype = self.shape() if shape is None else shape, self.dtype()
        size = math.prod(shape)
        order = f", order={self.random.choice('CF')!r}" if self.random.random() < 0.2 else ""
        return self.random.choice(
            [f"np.array(data({self.random.randrange(10**6)}, {shape}, {dtype!r}){order})"] * 4
            + [f"np.zeros({shape}, {dtype!r})", f"np.full({shape}, 2, {dtype!r})",
               f"(np.arange({size}) % 50).astype({dtype!r}).reshape({shape})"])

    def dtype(self) -> str:
        return self.random.choice(DTYPES.split())

    def index(self, shape: Sequence[int]) -> str:
        parts = []
        for extent in shape[:self.random.randint(1, max(1, len(shape)))]:
            at = str(self.random.randint(-extent, extent - 1)) if extent else ":"
            parts.append(self.random.choice(
                [":", "1:", "::-1", "-3:", "::2", at, at, f"[{at}, {at}, 0]" if extent else ":"]))
        if self.random.random() < 0.1:
            parts.insert(0, "...")
        return ", ".join(parts) if shape else "()"

    def fill(self, template: str, name: str) -> str:
        """The template with everything named in it, for one array."""
        value, choose = self.names[name], self.random.choice
        extent, rank = (value.shape[0] if value.ndim else 1), max(value.ndim, 1)
        at = [self.random.randint(-extent, extent - 1)
              for _ in range(choose([1, 3, 8]) if extent else 0)]
        others = self.arrays(lambda v: v.dtype.kind in "biuf" and v.size < 5000) or [name]
        number = choose(["0", "1", "3", "-2", "0.5", "2.0", "True", "np.int8(3)", "np.float32(2)"])
        index = self.index(value.shape)
        position = "()" if not value.ndim else ", ".join(
            str(self.random.randint(-n, n - 1)) if n else "0" for n in value.shape)
        axes = ["None", str(choose(range(-rank, rank))), repr(tuple(range(rank)))]
        return template.format(
            x=name, y=choose(others), e=f"{name}[{position}]", index=index, number=number,
            places=f"np.array({at}, dtype=int)" if self.random.random() < 0.5 else at,
            source=choose([number, name, f"{name}[{index}]", f"{name}[{index}] + 1",
                           choose(others)]),
            axis=choose(range(-rank, rank)), axes=choose(axes), bool=choose([True, False]),
            dtype=self.dtype(), order=choose("CFAK"), sign=choose("+-*"),
            mode=choose(["edge", "wrap", "reflect", "symmetric", "constant"]))

    def statement(self) -> list[str]:
        """The lines of a statement, which may turn out to be none."""
        kind = self.random.choices(
            ["create", "ufunc", "loop", "function", "condition", "delete", "alias", "family"],
            [5, 8, 3, 4, 3, 3, 2, 60])[0]
        names = self.arrays()
        if kind == "create" or not names:
            return [f"{self.new()} = {self.creation()}"]
        name = self.random.choice(names[-5:] if self.random.random() < 0.5 else names)
        if kind == "delete":
            return [f"del {self.random.choice(names)}"] if len(names) > 3 else []
        if kind == "alias":
            return [f"{self.new()} = {name}"]
        if kind == "ufunc":
            return [self._ufunc(name)]
        if kind == "loop":
            rounds = self.random.choice([2, 3, 8, 20, 60])
            text = self.random.choice(ROUNDS.strip().splitlines()).strip()
            lines = text.format(x=name).split("; ")
            return [f"for i in range({rounds}):", *["    " + line for line in lines]]
        if kind == "function":
            lines = self.random.choice(BODIES.strip().splitlines()).strip().split("; ")
            made, other = self.new(), self.random.choice(names)
            traced = ["@jit"] if self.random.random() < 0.3 else []
            again = [f"{self.new()} = f({name}, {other})"] * self.random.randint(0, 1)
            return [*traced, "def f(a, b):", *["    " + line for line in lines],
                    f"{made} = f({name}, {other})", *again]
        if kind == "condition":
            what = self.random.choice(["({x} > 3).any()", "{x}.sum() > 5", "{x}.ravel()[0] > 0"])
            inner = [*self._of_family(name), *self._of_family(name)]
            return [f"if {what.format(x=name)}:", *["    " + line for line in inner]]
        return self._of_family(name)

    def _ufunc(self, name: str) -> str:
        shape = self.names[name].shape
        outs = self.arrays(lambda v: v.shape == shape)
        options = self.random.choice(
            ["", "", f", out={self.random.choice(outs)}", f", dtype={self.dtype()!r}",
             f", out={name}.copy(), where={name} > 1", ", casting='unsafe'"])
        # Not under a mask into an operand: NumPy 2.4 casts what is masked there and back.
        other = self.random.choice([self.random.choice(outs), "2", "np.uint8(3)", f"{name}[:1]"])
        return f"{self.new()} = np.{self.random.choice(UFUNCS)}({name}, {other}{options})"

    def _of_family(self, name: str) -> list[str]:
        kinds, tables, weights = zip(*FAMILIES, strict=True)
        place = self.random.choices(range(len(kinds)), weights)[0]
        text = self.fill(self.random.choice(tables[place]), name)
        if kinds[place] == "write":  # NumPy's `at` writes to what is read-only
            return [text] if self.names[name].flags.writeable or ".at(" not in text else []
        if kinds[place] in ("look", "fault"):
            return [f"look({text})"]
        return [f"{self.new()} = {text}"]

    def keep(self, lines: list[str]) -> None:
        """Take a statement on which NumPy has one answer; where it raises, sometimes, caught."""
        if not lines or ("wrap" in lines[0] and "take" in lines[0]):
            return
        try:
            exec("\n".join(lines), self.names)
        except Exception:
            # A traced function that raises leaves arrays as they were, NumPy half written.
            if self.random.random() > KEEP_ERROR or lines[0] == "@jit":
                self._again()
                return
            lines = ["try:", *["    " + line for line in lines],
                     "except Exception as error:", "    look(type(error).__name__)"]
        self.blocks.append(lines)
        if not all(map(_is_simple, self.names.values())):
            self.blocks.pop()
            self._again()

    def _again(self) -> None:
        self._begin()
        exec("\n".join(line for block in self.blocks for line in block), self.names)


def _is_simple(value: Any) -> bool:
    """Whether sums of it are exact in whatever order, and few."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_simple, value))
    if not isinstance(value, np.ndarray | np.generic) or not value.size:
        return True
    if value.size > MOST_ELEMENTS:
        return False
    if value.dtype.kind not in "fc":
        return value.dtype.kind in "biu"
    digits = np.finfo(value.dtype).nmant - 8
    parts = np.array([np.real(value), np.imag(value)]).astype(float) * 64
    return bool(np.isfinite(parts).all() and (parts == np.floor(parts)).all()
                and np.abs(parts).sum() < 2.0 ** digits)


def generate(seed: int) -> list[list[str]]:
    """The program of a seed: blocks of lines, each of which may be left out."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        text = Text(seed)
        wanted = text.random.randint(FEWEST, MOST)
        for _ in range(2):
            text.keep([f"{text.new()} = {text.creation()}"])
        for _ in range(ATTEMPTS * wanted):
            if len(text.blocks) < wanted:
                text.keep(text.statement())
        return text.blocks

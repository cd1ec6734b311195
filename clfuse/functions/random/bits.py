"""Random bits by counter, and the numbers that are made of them.

Philox4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy
as 1, 2, 3, SC 2011) turns 128 bits of counter and 64 of key into 128 random bits. The key comes
from the seed. Every draw takes the next *position*; its element k, counted in C order, has k and
the position for its counter. So a number depends on (seed, position, k) alone: not on the device,
the schedule, or what it is fused with.

A recorded draw is an `iota` and some element-wise operations, with key and position as constants:
it needs no memory, and the next draw of the same kind has the same plan. A draw of one number,
which NumPy returns as a Python scalar, is made here on the host, of the same bits. A small draw is
eager, and lies on the host. The compiled part makes it (``_core/philox.pxi``). Without that part,
many small draws of one kind are made at once, as soon as a second one comes.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays.expressions import convert, scalar
from clfuse.arrays.handle import Handle, fresh, native_dtype, node_of
from clfuse.arrays.promotion import FLOAT64, INT64, UINT64
from clfuse.config import settings
from clfuse.engine.evaluate import host_view, upload
from clfuse.interpreter.host_functions import host_function
from clfuse.interpreter.rng import NEARLY
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node, Op, loop, structural
from clfuse.ir.trace import active
from clfuse.process import locks
from clfuse.runtime.devices.selection import current_device

if loading.load() is None:
    from clfuse.interpreter import rejection  # noqa: F401  (NumPy draws what is drawn by rejection)

_LOW: Final = 0xFFFFFFFF
_WORD: Final = 0xFFFFFFFFFFFFFFFF
_ROUNDS: Final = 10
_BLOCK: Final = 256
"""Single numbers made at once when a program draws one after the other: 0.5 us each, not 4."""

_core: Final = loading.load()

_SMALL: Final = 1024 if _core is None else 4096
"""Elements of a draw that the host makes before a kernel started: it is not recorded."""

_AHEAD: Final = 4096
"""Elements made at once for small draws that follow each other."""

_KINDS: Final = 16
"""Kinds and sizes of small draws for which a generator keeps what was made ahead."""

_SINGLE: Final = {"uniform": "uniform", "open": "inner", "positive": "positive", "normal": "normal"}
"""Names of numbers made of bits -> the methods of `SingleDraw`."""

KIND_OF: Final = {
    name: -1 if _core is None else _core.MADE_OF_BITS[f"{name}_of_bits_float64"]
    for name in _SINGLE
}
"""The same names -> what the compiled part knows them by."""

DRAWN: Final[dict[str, int]] = {} if _core is None else {
    name.removesuffix("_draw_float64"): kind
    for name, kind in _core.DRAWN.items() if name.endswith("64")
}  # fmt: skip
"""Names of `Draw.accepted` -> what the compiled part knows them by."""

Drawn = tuple[str, tuple[float, ...], float, float, bool]
"""A name of `Draw.accepted`, parameters, where numbers start and how they are scaled, and whether
they are whole."""

_NORMAL: Final = NormalDist()
_CONSTANT: Final = structural(Kind.CONSTANT, "constant", INT64)
_BITS: Final = loop("philox_bits", (INT64,) * 3, UINT64)
_MORE_BITS: Final = loop("philox_more_bits", (INT64,) * 3, UINT64)
FEW: Final = float(_SMALL), _BITS.weight
"""How many numbers are made at the call in any case, and what one takes, in additions."""

_HIGH: Final = loop("multiply_high", (UINT64, UINT64), UINT64)
_ADD: Final = loop("add", (INT64, INT64), INT64)


def philox(index: int, key: int, position: int) -> tuple[int, int]:
    """The 128 bits of one counter as two numbers of 64, as ``kernels/lib/philox.cl`` makes them.

    >>> [hex(bits) for bits in philox(0, 0, 0)]
    ['0xe169c58d6627e8d5', '0x9b00dbd8bc57ac4c']
    """
    word0, word1 = index & _LOW, index >> 32
    word2, word3 = position & _LOW, position >> 32
    key0, key1 = key & _LOW, key >> 32
    for _ in range(_ROUNDS):
        product0 = word0 * 0xD2511F53
        product2 = word2 * 0xCD9E8D57
        word0, word1 = (product2 >> 32) ^ word1 ^ key0, product2 & _LOW
        word2, word3 = (product0 >> 32) ^ word3 ^ key1, product0 & _LOW
        key0 = (key0 + 0x9E3779B9) & _LOW
        key1 = (key1 + 0xBB67AE85) & _LOW
    return word1 << 32 | word0, word3 << 32 | word2


def _philox_block(key: int, position: int) -> list[tuple[int, int]]:
    """`philox` of index 0 at `_BLOCK` positions from `position` on."""
    low, bits = np.uint64(_LOW), np.uint64(32)
    word2 = np.arange(_BLOCK, dtype=np.uint64) + np.uint64(position)  # wraps
    word3 = word2 >> bits
    word0 = word1 = np.zeros(_BLOCK, np.uint64)
    key0, key1 = key & _LOW, key >> 32
    for _ in range(_ROUNDS):
        product0 = (word0 & low) * np.uint64(0xD2511F53)
        product2 = (word2 & low) * np.uint64(0xCD9E8D57)
        word0, word1 = (product2 >> bits) ^ word1 ^ np.uint64(key0), product2 & low
        word2, word3 = (product0 >> bits) ^ word3 ^ np.uint64(key1), product0 & low
        key0 = (key0 + 0x9E3779B9) & _LOW
        key1 = (key1 + 0xBB67AE85) & _LOW
    first, more = word1 << bits | word0, word3 << bits | word2
    return list(zip(first.tolist(), more.tolist(), strict=True))


def _rows(op: Op, key: int, position: int, height: int, count: int) -> np.ndarray:
    """What `count` elements of each of `height` draws are: of the draws from `position` on."""
    shape = (height, count)
    steps = build.reshape(build.iota(height), (height, 1))
    positions = build.elementwise(_ADD, (steps, _constant(position)), (height, 1))
    index = build.reshape(build.iota(count), (1, count))
    bits = _MORE_BITS if op is _MORE_BITS else _BITS
    node = build.elementwise(bits, (index, _constant(key), positions), shape)
    return host_view(node if op is bits else build.elementwise(op, (node,), shape))


ADOPTIONS: Final = [0]
"""How often a `RandomState` has changed its bit generator, which a trace remembers."""


def refuse_in_trace(what: str, generator: Philox4x32 | None = None) -> None:
    """Raise JitError while a function is traced that did not make this generator itself."""
    tracing = active()
    if tracing is not None and (generator is None or generator.made_in is not tracing):
        raise tracing.refused(
            what,
            "a replay would not do it again: draw arrays (size=1 for one number), or pass what was "
            "drawn as an argument",
        )


class Philox4x32:
    """The bit generator of `Generator`: a key and the position of the next draw.

    Parameters
    ----------
    seed : None, int, array_like of ints, SeedSequence
        As for `numpy.random.default_rng`.

    Attributes
    ----------
    state : dict
        ``{"bit_generator": "Philox4x32", "state": {"key": int, "position": int}}``, both below
        2**64. What was drawn, and in which order, follows from it.
    seed_seq : SeedSequence or None
        What the key comes from; None where the state was set by hand.
    lock : threading.RLock
        Held while a position is taken, but by what is compiled, which needs none.

    Raises
    ------
    TypeError, ValueError
        For seeds that `numpy.random.SeedSequence` does not take.
    """

    _numpys: Any = None

    @property  # type: ignore[misc] # one that cannot be set
    def __class__(self) -> Any:
        return np.random.BitGenerator  # whose instance a program takes it for

    def __init__(self, seed: Any = None) -> None:
        if seed is None:
            refuse_in_trace("a generator without a seed is made")
        if not hasattr(seed, "generate_state"):
            seed = np.random.SeedSequence(seed)
        self.seed_seq: Any = seed
        self.lock = locks.make()
        self._set(int(seed.generate_state(1, np.uint64)[0]), 0)

    def _set(self, key: int, position: int) -> None:
        self._key = key
        self._position = position
        if self._numpys is not None:  # compiled code may hold its address
            self._numpys.state = np.random.Philox(key=key, counter=position).state
        #: The trace of a jitted function that made it: its draws are the same at every replay.
        self.made_in = active()
        self._key_node = _constant(key)
        self._ahead: list[tuple[int, int]] = []
        self._ahead_from = -_BLOCK
        self._rows: dict[tuple[Op, int], tuple[int, np.ndarray]] = {}

    def single(self) -> tuple[int, int, int]:
        """The 128 bits of a draw of one number, by `philox`, and its position."""
        position = self.next_position()
        if _core is not None:
            return *_core.both_words(self._key, position), position
        with self.lock:
            place = position - self._ahead_from
            if 0 <= place < len(self._ahead):
                return *self._ahead[place], position
            follows = 0 <= place <= _BLOCK
            self._ahead_from = position
            if not follows:  # perhaps the only one
                self._ahead = []
                return *philox(0, self._key, position), position
            self._ahead = _philox_block(self._key, position)
            return *self._ahead[0], position

    def next_position(self, count: int = 1) -> int:
        """The position of a draw of one number, or the first of so many."""
        refuse_in_trace("one random number is drawn, for Python to see", self)
        if _core is not None:
            return _core.advance(self, count)  # type: ignore[no-any-return]
        with self.lock:
            position = self._position
            self._position = (position + count) & _WORD
            return position

    def number(self, name: str) -> float:
        """A draw of one float64: ``uniform``, ``open``, ``positive`` or ``normal`` of bits."""
        if _core is None:
            return getattr(SingleDraw(self), _SINGLE[name])().item()  # type: ignore[no-any-return]
        return _core.number(KIND_OF[name], self._key, self.next_position())  # type: ignore[no-any-return]

    def below(self, count: int) -> int:
        """A draw of one whole number below `count`."""
        if _core is None or count > 1 << 32:
            return SingleDraw(self).below(count)
        return _core.number_below(self._key, self.next_position(), count)  # type: ignore[no-any-return]

    def few(self, name: str, size: Any, start: float = 0.0, scale: float = 1.0) -> Any:
        """A small draw of numbers as of `number`, scaled, from `start` on; None where something
        else has to make it."""
        if _core is None:
            return None
        kind = KIND_OF[name]
        return _core.few(self, kind, size, *FEW, start, scale)

    def few_drawn(self, size: Any, weight: float, asked: Drawn) -> Any:
        """A small draw of numbers that are drawn until one is accepted, of `weight` each; None
        where something else has to make it."""
        if _core is None:
            return None
        kind = DRAWN[asked[0]]
        return _core.few_drawn(self, kind, size, few_of(weight), weight, *asked[1:])

    def drawn(self, asked: Drawn) -> Any:
        """The same of one number; None where there is no compiled part."""
        if _core is None:
            return None
        name, parameters, start, scale, whole = asked
        made = _core.number_drawn(DRAWN[name], self._key, self.next_position(), parameters)
        made = made * scale + start
        return int(made) if whole else made

    def few_below(self, low: int, count: int, size: Any) -> Any:
        """The same of whole numbers from `low` on, `count` of them, as int64."""
        if _core is None or count > 1 << 32:
            return None
        return _core.few_below(self, size, *FEW, count, low)

    def row(self, op: Op, position: int, count: int) -> np.ndarray:
        """What `op` makes of the bits of the draw at `position`, on the host."""
        kind = None if _core is None else _core.MADE_OF_BITS.get(op.name)
        if kind is not None:
            assert op.dtype is not None
            row = np.empty(count, op.dtype)
            _core.draw(kind, row, count, self._key, position)  # type: ignore[union-attr]
            return row
        with self.lock:
            first, rows = self._rows.get((op, count), (0, None))
            place = position - first
            if rows is None or not 0 <= place < len(rows):
                follows = rows is not None and 0 <= place <= 2 * _BLOCK
                height = max(min(_BLOCK, _AHEAD // count), 1) if follows else 1
                rows = _rows(op, self._key, position, height, count)
                if len(self._rows) >= _KINDS:
                    self._rows.clear()
                self._rows[op, count] = position, rows
                place = 0
            drawn: np.ndarray = rows[place]
            return drawn

    def take(self, count: int = 1) -> tuple[int, int, Node]:
        """Key and position of a draw, and the key as a node; later draws have other positions."""
        refuse_in_trace("random numbers are drawn on the host", self)
        if _core is not None:
            return self._key, _core.advance(self, count & _WORD), self._key_node
        with self.lock:
            position = self._position
            self._position = (position + count) & _WORD
            return self._key, position, self._key_node

    def untake(self, count: int, position: int) -> None:
        """Have a draw not be made, unless others came after it."""
        if _core is not None:
            _core.retreat(self, count & _WORD, position)
            return
        with self.lock:
            if self._position == (position + count) & _WORD:
                self._position = position

    @property
    def _seed_seq(self) -> Any:
        """`seed_seq`, as bit generators of NumPy's name it too."""
        return self.seed_seq

    @property
    def capsule(self) -> Any:
        """What compiled code (SciPy's samplers) draws from, as from NumPy's: one of these, which
        begins with this key and position and goes on by itself."""
        if self._numpys is None:
            self._numpys = np.random.Philox(key=self._key, counter=self._position)
        return self._numpys.capsule

    @property
    def state(self) -> dict[str, Any]:
        """Key and position."""
        with self.lock:
            numbers = {"key": self._key, "position": self._position}
        return {"bit_generator": type(self).__name__, "state": numbers}

    @state.setter
    def state(self, value: Any) -> None:
        refuse_in_trace("the state of a generator is set", self)
        if not isinstance(value, dict):
            raise TypeError("state must be a dict")
        name = value.get("bit_generator", "")
        if name != type(self).__name__:
            raise ValueError(f"state must be for a {type(self).__name__} RNG, not {name!r}")
        key, position = (int(value["state"][part]) for part in ("key", "position"))
        if not (0 <= key <= _WORD and 0 <= position <= _WORD):
            raise ValueError(f"key and position must be below 2**64: {key}, {position}")
        with self.lock:
            self.seed_seq = None
            self._set(key, position)

    def advance(self, delta: int) -> Philox4x32:
        """Skip `delta` draws, of whatever size each; return the generator itself."""
        self.take(int(delta))
        return self

    def spawn(self, n_children: int) -> list[Philox4x32]:
        """New independent bit generators; TypeError when the state was set by hand."""
        if self.seed_seq is None or not hasattr(self.seed_seq, "spawn"):
            raise TypeError("The underlying SeedSequence does not implement spawning.")
        return [type(self)(child) for child in self.seed_seq.spawn(n_children)]

    def __reduce__(self) -> Any:
        return _restored, (self.seed_seq, self._key, self._position)

    def __repr__(self) -> str:
        return f"<clfuse.random.{type(self).__name__} at 0x{id(self):X}>"


def few_of(weight: float) -> float:
    """How many numbers, each of so many additions, are few."""
    return _BITS.weight * _SMALL / weight


def _is_few(count: int, weight: float) -> bool:
    """Whether the host makes so many numbers, each of so many additions, of a draw that is not
    traced: few, or what would be left to NumPy."""
    if count <= few_of(weight):
        return True
    return _core is not None and _core.is_done_at_once(float(weight * count))


def _restored(seed_seq: Any, key: int, position: int) -> Philox4x32:
    generator = object.__new__(Philox4x32)
    generator.seed_seq = seed_seq
    generator.lock = locks.make()
    generator._set(key, position)
    return generator


def _constant(number: int) -> Node:
    """64 bits as an int64 scalar of the program, a node of its own.

    `build.constant` would share the node with an equal number elsewhere in the program: now and
    then another structure, and a new plan.
    """
    value = np.int64(number - (1 << 64) if number >> 63 else number)
    return Node(_CONSTANT, (), (), INT64, value)


class Draw:
    """The random bits of one draw, as numbers: lazy arrays of `shape`.

    The methods may be called more than once: they look at the same bits. `weight` is what the host
    takes for a number, in additions.
    """

    def __init__(
        self, generator: Philox4x32, shape: tuple[int, ...], weight: float = _BITS.weight
    ) -> None:
        self._shape = shape
        self._count = math.prod(shape)
        tracing = active()
        self._generator: Philox4x32 | None = None
        if tracing is not None and generator.made_in is not tracing:
            self._key, self._position = tracing.draw(generator)
        else:
            _, position, self._key = generator.take()
            if tracing is None and self._count and _is_few(self._count, weight):
                self._here = current_device()
                if settings.host_us and settings.fusion and self._here.fp64:
                    self._generator, self._at = generator, position
                    return
            self._position = _constant(position)
        self._index = build.reshape(build.iota(self._count), shape)

    def _small(self, op: Op) -> Any:
        """What `op` makes of the bits of a small draw, in memory: an array."""
        assert self._generator is not None
        row = self._generator.row(op, self._at, self._count)
        if _core is not None:  # it is nobody else's
            whole = row if len(self._shape) == 1 else row.reshape(self._shape)
            return _core.result(whole, self._here)
        return fresh(upload(row.reshape(self._shape)))

    def node(self, *, more: bool = False) -> Node:
        """64 bits an element, uint64; `more` gives 64 others."""
        op = _MORE_BITS if more else _BITS
        if self._generator is not None:
            return node_of(self._small(op))
        return build.elementwise(op, (self._index, self._key, self._position), self._shape)

    def bits(self) -> Any:
        """`node` as an array."""
        return fresh(self.node())

    def accepted(self, name: str, *parameters: Any, dtype: np.dtype = FLOAT64) -> Any:
        """Numbers that are drawn until one is accepted (``kernels/lib/rejection.cl``), of
        parameters that broadcast to the shape."""
        dtype = native_dtype(dtype) or dtype
        op = accepted_loop(name, len(parameters), dtype)
        if self._generator is not None:
            self._position = _constant(self._at)
            self._index = build.reshape(build.iota(self._count), self._shape)
        given = [
            convert(node_of(each), dtype) if isinstance(each, Handle) else scalar(each, dtype)
            for each in parameters
        ]
        counter = self._index, self._key, self._position
        return fresh(build.elementwise(op, (*counter, *given), self._shape))

    def _made(self, name: str, dtype: np.dtype) -> Any:
        dtype = native_dtype(dtype) or dtype  # CLFUSE_FP64=downcast
        op = loop(f"{name}_of_bits_float{8 * dtype.itemsize}", (UINT64,), dtype)
        if self._generator is not None:
            return self._small(op)
        return fresh(build.elementwise(op, (self.node(),), self._shape))

    def uniform(self, dtype: np.dtype = FLOAT64) -> Any:
        """In [0, 1), multiples of 2**-53 (float32: 2**-24)."""
        return self._made("uniform", dtype)

    def inner(self) -> Any:
        """In (0, 1), without the ends; float64."""
        return self._made("open", FLOAT64)

    def positive(self, dtype: np.dtype = FLOAT64) -> Any:
        """In (0, 1], the finer the smaller."""
        return self._made("positive", dtype)

    def normal(self, dtype: np.dtype = FLOAT64) -> Any:
        """Normal, by the inverse of their distribution function."""
        return self._made("normal", dtype)

    def below(self, count: int) -> Any:
        """Whole numbers 0, 1, ... count-1 as uint64; `count` is at most 2**64.

        The upper half of a product with 64 random bits (128 for counts above 2**32): no value is
        more than one part in 2**32 more frequent than another.
        """
        if count > _WORD:
            return fresh(self.node())
        return self._scaled(build.constant(np.uint64(count)), wide=count > 1 << 32)

    def below_each(self, counts: Any) -> Any:
        """`below` for an array of counts, uint64, that broadcasts to the shape; 0 means 2**64."""
        scaled = self._scaled(node_of(counts), wide=True)
        return np.where(np.equal(counts, np.uint64(0)), self.bits(), scaled)

    def _scaled(self, factor: Node, *, wide: bool) -> Any:
        def high(bits: Node) -> Any:
            return fresh(build.elementwise(_HIGH, (bits, factor), self._shape))

        first = self.node()
        if not wide:
            return high(first)
        low = fresh(first) * fresh(factor)
        return high(first) + np.less(low + high(self.node(more=True)), low)  # the carry


def accepted_loop(name: str, parameters: int, dtype: np.dtype) -> Op:
    """The operation of `Draw.accepted`."""
    inputs = (INT64,) * 3 + (dtype,) * parameters
    return loop(f"{name}_draw_float{8 * dtype.itemsize}", inputs, dtype)


def key_and_position(key: int, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Key and position as NumPy's arrays of int64."""
    both = np.array([key, position], np.uint64).view(np.int64)
    return both[0], both[1]


class SingleDraw:
    """What `Draw` is for one number, on the host: NumPy scalars, normal ones to a few ulp where
    there is no compiled part."""

    def __init__(self, generator: Philox4x32) -> None:
        self._generator = generator
        *self._bits, self._at = generator.single()

    def accepted(self, name: str, *parameters: Any, dtype: np.dtype = FLOAT64) -> Any:
        """Drawn until it is accepted."""
        if _core is not None and dtype is FLOAT64:
            at = self._generator._key, self._at
            return np.float64(_core.number_drawn(DRAWN[name], *at, tuple(map(float, parameters))))
        op = accepted_loop(name, len(parameters), dtype)
        draw = host_function(op) or NEARLY[op.name]
        counter = np.zeros(1, np.int64), *key_and_position(self._generator._key, self._at)
        given = [np.asarray(each, dtype) for each in parameters]
        return draw(*counter, *given)[0]

    def bits(self) -> Any:
        """64 random bits, uint64."""
        return np.uint64(self._bits[0])

    def uniform(self, dtype: np.dtype = FLOAT64) -> Any:
        """In [0, 1)."""
        kept = 53 if dtype.itemsize == 8 else 24
        return dtype.type((self._bits[0] >> (64 - kept)) / 2.0**kept)

    def inner(self) -> Any:
        """In (0, 1), without the ends."""
        return np.float64(((self._bits[0] >> 12) + 0.5) * 2.0**-52)

    def positive(self, dtype: np.dtype = FLOAT64) -> Any:
        """In (0, 1]."""
        return (np.uint64(self._bits[0]).astype(dtype) + dtype.type(0.5)) * dtype.type(2.0**-64)

    def normal(self, dtype: np.dtype = FLOAT64) -> Any:
        """Normal."""
        if _core is not None:
            kind = _core.MADE_OF_BITS[f"normal_of_bits_float{8 * dtype.itemsize}"]
            bits, number = np.array([self._bits[0]], np.uint64), np.empty(1, dtype)
            _core.numbers_made(kind, bits, number)
            return number[0]
        whole = self._bits[0] >> 11
        upper = whole >> 52  # of a signed number: below 0
        size = whole ^ (1 << 53) - 1 if upper else whole
        tail = ((1 << 52) - 1 - size + 0.5) * 2.0**-53
        distance = -_NORMAL.inv_cdf(tail)
        return dtype.type(-distance if upper else distance)

    def below(self, count: int) -> int:
        """A whole number below `count`."""
        first, more = self._bits
        if count > _WORD:
            return first
        if count <= 1 << 32:
            return first * count >> 64
        return (first << 64 | more) * count >> 128


def as_array(value: Any) -> Any:
    """What was computed of a `Draw` as an array of its own; NumPy returns a scalar for no shape
    only."""
    return fresh(node_of(value)) if not value._shape else value

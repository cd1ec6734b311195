"""Wrong statements: writes, in-place operators, ufunc methods, attributes, linear algebra and files
that NumPy refuses, drawn at random.

`tests.fuzz.wrong_calls` changes one argument of a call. Here a whole statement is put together from
arrays, indices and values that may not fit each other; those that NumPy takes are left out. Arrays
are named by one letter, are made anew for every statement, and are small or, where `SIZE` says so,
large enough to be recorded. After the error the arrays must hold what NumPy's hold.
"""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from tests.fuzz.wrong_calls import public

ARRAYS: Final[dict[str, str]] = {
    "v": "np.arange(float(N)) + 1",
    "i": "np.arange(N) - 2",
    "m": "np.arange(float(3 * N)).reshape(3, N) * 0.5",
    "c": "np.arange(N) * 1j",
    "u": "(np.arange(N) % 7).astype('u1')",
    "b": "np.arange(N) % 2 == 0",
    "h": "np.arange(N).astype('f2')",
    "w": "np.broadcast_to(np.arange(float(N)), (3, N))",
    "z": "np.array(2.5)",
    "e": "np.zeros((0, 3))",
    "s": "np.ones((3, 3)) + np.arange(3)",
    "t": "np.arange(float(N))[::-2]",
}
"""Name -> how it is made, of `N` elements in a row."""

INDICES: Final = (
    "0", "-1", "N", "-N - 1", "99999999", "...", "None", "()", "1.0", "'a'", "True", "False", ":",
    "1:3", "::-1", "5:1", "1:2.5", "'a':2", "::0", "[0, 1]", "[0, N]", "[-N - 1]", "[]", "[1.5]",
    "[True, False]", "[[0], [1, 2]]", "b", "b[:-1]", "i", "i[i > 0]", "u", "v", "c", "m > 3", "z",
    "np.int64(1)", "np.array(True)", "np.array([0, 1])", "np.array([0.0])", "object()", "1j",
    "np.array(['a'])", "np.zeros(0)", "np.zeros((0, 2), int)", "{}", "range(2)", "(0,)",
)  # fmt: skip
VALUES: Final = (
    "1", "2.5", "1j", "None", "'a'", "'3'", "[]", "[1, 2]", "[1, 2, 3]", "[[1], [2]]", "v", "i",
    "m", "c", "z", "e", "s", "b", "u", "v[:3]", "m[:, :2]", "v[None]", "m.T", "object()", "{}",
    "np.datetime64(3, 's')", "10 ** 30", "-1", "300", "float('nan')", "np.float32(3)", "t",
    "[[1], [2, 3]]", "np.array(['a'])", "np.array([None])", "b'x'", "np.timedelta64(1, 'D')",
    "(1, 2)", "range(3)",
)  # fmt: skip
OPERATORS: Final = tuple("+= -= *= /= //= %= **= &= |= ^= <<= >>= @=".split())
UFUNCS: Final = tuple(
    name for name in sorted(vars(np))
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).signature is None
)
ATTRIBUTES: Final = {
    "shape": ("(N,)", "(2, -1)", "-1", "(-1, -1)", "(7, 7)", "'a'", "None", "1.5", "(N, 0)", "[]"),
    "dtype": ("'i4'", "'f4'", "'nonsense'", "'O'", "None", "'c16'", "'u1'", "3"),
    "strides": ("(1,)", "(8, 8)", "-8", "'a'", "()"),
    "real": VALUES, "imag": VALUES, "flat": VALUES, "T": ("v",), "size": ("3",), "ndim": ("1",),
    "nbytes": ("1",), "itemsize": ("1",), "base": ("None",), "flags": ("3",), "data": ("v",),
    "nonsense": ("1",),
}  # fmt: skip
MATRICES: Final = (
    "s", "m", "v", "e", "c", "z", "np.zeros((3, 3))", "np.full((2, 2), np.nan)",
    "np.ones((2, 3, 3))", "np.zeros((0, 0))", "np.ones((2, 2), 'f2')", "np.eye(3, dtype=int)",
    "np.eye(2) * 1j", "b", "'a'", "[[1, 2], [3]]", "np.ones((3, 3), bool)", "[[1, 2], [2, 4]]",
    "np.eye(3)[:, ::-1]", "None",
    "np.ones((3, 3), 'O')", "-np.eye(3)", "np.array([[np.inf, 1], [1, 2]])",
)  # fmt: skip
ALGEBRA: Final[dict[str, int]] = {
    "inv": 1, "det": 1, "slogdet": 1, "cholesky": 1, "qr": 1, "svd": 1, "eig": 1, "eigh": 1,
    "eigvals": 1, "eigvalsh": 1, "pinv": 1, "matrix_rank": 1, "cond": 1, "norm": 1, "trace": 1,
    "diagonal": 1, "matrix_transpose": 1, "solve": 2, "lstsq": 2, "matmul": 2, "outer": 2,
    "cross": 2, "tensordot": 2, "vecdot": 2, "matrix_norm": 1, "vector_norm": 1, "multi_dot": -1,
    "tensorinv": 1, "tensorsolve": 2, "matrix_power": -2,
}  # fmt: skip
"""Name -> operands; -1: a list of them, -2: one and a power."""


@dataclass(frozen=True)
class WrongStatement:
    """A statement that NumPy refuses, how long a row is, and the class of the exception."""

    text: str
    size: int
    error: type[BaseException]


def _index(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(INDICES)
    return ", ".join(rng.choice(INDICES) for _ in range(rng.choice((2, 2, 3))))


def _written(rng: random.Random) -> str:
    name = rng.choice("vvimmcubhwzest")
    target = f"{name}[{_index(rng)}]"
    if rng.random() < 0.7:
        return f"{target} = {rng.choice(VALUES)}"
    return f"{target} {rng.choice(OPERATORS)} {rng.choice(VALUES)}"


def _read(rng: random.Random) -> str:
    return f"{rng.choice('vimcubhwzest')}[{_index(rng)}]"


def _changed(rng: random.Random) -> str:
    return f"{rng.choice('vimcubhwzest')} {rng.choice(OPERATORS)} {rng.choice(VALUES)}"


def _operand(rng: random.Random) -> str:
    return rng.choice(VALUES + tuple("vimcubhwzest"))


_OPTIONS: Final = (
    "axis=0", "axis=5", "axis=(0, 0)", "axis=None", "dtype='f4'", "dtype='i4'", "dtype='nonsense'",
    "out=v", "out=i", "out=w", "out=(v, i)", "out='a'", "keepdims=True", "where=b", "where=m > 1",
    "where=3", "initial=1", "initial='a'", "casting='no'", "casting='safe'", "order='X'",
    "nonsense=1", "signature='dd->d'", "subok=3", "out=()", "where=None", "keepdims=None",
)  # fmt: skip


def _method(rng: random.Random) -> str:
    name = f"np.{rng.choice(UFUNCS)}"
    method = rng.choice(("", "reduce", "accumulate", "reduceat", "outer", "at"))
    count = {"": getattr(np, name[3:]).nin, "reduceat": 2, "outer": 2}.get(method, 1)
    arguments = [rng.choice("vimcubhwzest")] + [_operand(rng) for _ in range(count - 1)]
    if method == "reduceat":
        arguments[1] = rng.choice(INDICES)
    if method == "at":
        arguments = [arguments[0], rng.choice(INDICES), _operand(rng)][: rng.choice((2, 3, 3))]
    if any(":" in argument and argument[0] not in "'[mn{" for argument in arguments):
        arguments = [argument.replace(":", "0") for argument in arguments]
    options = rng.sample(_OPTIONS, rng.choice((0, 1, 1, 2)) if method != "at" else 0)
    call = name + ("." + method if method else "")
    return f"{call}({', '.join([*arguments, *options])})"


def _attribute(rng: random.Random) -> str:
    name = rng.choice(tuple(ATTRIBUTES))
    return f"{rng.choice('vimcubhwzest')}.{name} = {rng.choice(ATTRIBUTES[name])}"


def _algebra(rng: random.Random) -> str:
    name = rng.choice(tuple(ALGEBRA))
    count = ALGEBRA[name]
    if count == -1:
        operands = ["[" + ", ".join(rng.choice(MATRICES) for _ in range(rng.randint(0, 3))) + "]"]
    elif count == -2:
        operands = [rng.choice(MATRICES), rng.choice(("2", "-1", "0", "1.5", "'a'", "None"))]
    else:
        operands = [rng.choice(MATRICES) for _ in range(count)]
    if rng.random() < 0.2:
        operands.append(rng.choice(("axis=9", "nonsense=1", "ord='x'", "compute_uv=2", "mode='x'",
                                    "UPLO='X'", "rcond='a'", "keepdims=True", "axis=(0, 0)")))
    return f"np.linalg.{name}({', '.join(operands)})"


def _file(rng: random.Random) -> str:
    damage = rng.choice((
        "data[:{0}]", "data[{0}:]", "data[:{0}] + b'?' + data[{0} + 1:]", "b'\\0' * {0}", "b''",
        "data.replace(b'f8', b'q9')", "data.replace(b'shape', b'shade')",
        "data.replace(b'(', b'[')", "data.replace(b'descr', b'dexcr')",
        "data.replace(b'NUMPY', b'MUMPY')", "data * 2",
    )).format(rng.randrange(1, 200))  # fmt: skip
    saved = rng.choice(("save(v)", "save(m)", "save(c)", "savez(v)", "savez(m)", "savez(v[:3])"))
    read = rng.choice(("np.load(file)", "np.load(file, allow_pickle=True)",
                       "np.load(file)['arr_0']", "np.load(file)['nonsense']",
                       "np.lib.format.read_array(file)"))
    return f"data = {saved}; file = open({damage}); {read}"


LARGE: Final = 9000
"""Elements of a row that are recorded, and few enough for all arrays of a statement to be stood in
for (`refusals.MOST_ELEMENTS`)."""

KINDS: Final[dict[str, Callable[[random.Random], str]]] = {
    "write": _written, "read": _read, "in place": _changed, "ufunc": _method,
    "attribute": _attribute, "linalg": _algebra, "file": _file,
}  # fmt: skip
"""What is drawn -> how; every kind as often as any other."""


def _saving(save: Callable[..., None]) -> Callable[[Any], bytes]:
    def saved(array: Any) -> bytes:
        file = io.BytesIO()
        save(file, array)
        return file.getvalue()

    return saved


def outcome(text: str, size: int, module: ModuleType) -> tuple[BaseException | None, list[Any]]:
    """What the statement raises under `module`, or None; and the arrays after it."""
    names: dict[str, Any] = {
        "np": module, "N": size, "open": io.BytesIO, "save": _saving(module.save),
        "savez": _saving(module.savez),
    }  # fmt: skip
    error = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, made in ARRAYS.items():
            names[name] = eval(made, names)
        before = [names[name] for name in ARRAYS]
        try:
            exec(text, names)
        except Exception as raised:  # whatever it is, it is the result
            error = raised
        return error, [np.array(array) for array in before]


def wrong_statements(
    kind: str, count: int, seed: int = 0, sizes: tuple[int, ...] = (5, 5, 5, LARGE)
) -> Iterator[WrongStatement]:
    """`count` statements of one of `KINDS` that NumPy refuses."""
    rng = random.Random(f"{seed} {kind}")
    seen: set[str] = set()
    while count:
        text = KINDS[kind](rng)
        size = rng.choice(sizes)
        if text in seen or (kind in ("linalg", "ufunc") and size > 5 and "outer" in text):
            continue
        seen.add(text)
        try:
            compile(text, "", "exec")
        except SyntaxError:
            continue
        error, _ = outcome(text, size, np)
        if error is not None and not isinstance(error, MemoryError):
            count -= 1
            yield WrongStatement(text, size, public(type(error)))


def difference(wrong: WrongStatement, module: ModuleType) -> str | None:
    """What is other than with NumPy, in words; None where nothing is."""
    _, expected = outcome(wrong.text, wrong.size, np)
    error, left = outcome(wrong.text, wrong.size, module)
    said = f"{wrong.text} (N = {wrong.size}): NumPy raises {wrong.error.__name__}"
    if error is None:
        return f"{said}, nothing was raised"
    if not isinstance(error, wrong.error):
        return f"{said}, here it is {type(error).__name__}: {str(error)[:120]}"
    for name, theirs, ours in zip(ARRAYS, expected, left, strict=True):
        is_inexact = theirs.dtype.kind in "fc"
        if theirs.dtype != ours.dtype or not np.array_equal(theirs, ours, equal_nan=is_inexact):
            return f"{said}, and leaves {name} another"
    return None

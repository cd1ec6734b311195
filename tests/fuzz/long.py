"""Long runs: as many evaluations of varied programs as asked for, in one process; afterwards there
is no more of anything that a process holds than at the beginning.

    python -m tests.fuzz.long --evaluations 1000000
    python -m tests.fuzz.long --only draws,jitted --evaluations 100000

Every program is a function of a module (clfuse or NumPy) and a source of choices; every so often
its values are compared with NumPy's. A line of figures is printed at each of `--lines` places:
resident memory, objects of pyopencl and of ours, plans and programs, open files, threads.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import clfuse as cf

SETTLED = 20_000
"""Evaluations after which memory shall not grow."""

GROWTH_MB = 5
"""By which it may grow, for a million evaluations."""

BLOCK = 500
"""Evaluations that are made with the same settings."""

# Few enough that most plans are known: what is made anew all the time would take days.
LENGTHS = (7, 1000, 20_000)
SHAPES = ((3, 4), (40, 40))
DTYPES = ("f8", "i4")

Program = Callable[[ModuleType, random.Random], Sequence[Any]]
PROGRAMS: dict[str, tuple[Program, float]] = {}
"""Name -> the program, and how often it runs next to the others."""


def often(weight: float) -> Callable[[Program], Program]:
    """A decorator: the program runs this often next to the others."""

    def put(program: Program) -> Program:
        PROGRAMS[program.__name__] = program, weight
        return program

    return put


def _array(xp: ModuleType, draw: random.Random, dtypes: Sequence[str] = DTYPES) -> Any:
    shape = draw.choice(LENGTHS) if draw.random() < 0.6 else draw.choice(SHAPES)
    size = int(np.prod(shape))
    return (xp.arange(size) % 7).astype(draw.choice(dtypes)).reshape(shape)


@often(3)
def arithmetic(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "f4", "i8"))
    y = x * 2 + 1
    for _ in range(draw.randint(0, 2)):
        y = (y - x) * 3
    return [y, y.sum()] if draw.random() < 0.5 else [y]


@often(2)
def folds(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "u1"))
    axis = draw.randrange(x.ndim)
    return [draw.choice([xp.sum, xp.max, xp.argmax, xp.cumsum, xp.any])(x, axis=axis)]


@often(2)
def views(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "i4"))
    x[1:] += 2
    x[::2] *= 3
    view = x[::-1]
    view[:1] = 5
    x.T[...] = x.T + 1
    return [x, view]


@often(2)
def masks(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "i8"))
    x[x > 3] = 0
    chosen = x[x > draw.choice([1, 6])]
    return [x, chosen, xp.where(x == 2, x, -x)]


@often(1)
def places(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "i8"))
    index = xp.arange(len(x))[:: draw.choice([1, -2])] // 2
    found = x[index]
    xp.add.at(x, index, 1)
    x[index] = 4
    return [x, found]


@often(1)
def sorts(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8", "i4", "u1")) * 5 % 11
    x.sort(axis=-1)
    return [x, xp.argsort(x % 3, axis=0, kind="stable"), xp.unique(x)]


@often(1)
def draws(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    source = xp.random.default_rng(draw.randrange(1 << 40))
    size = draw.choice(LENGTHS)
    numbers = source.random(size) + 1, source.integers(0, 9, size), source.normal(size=size)
    # Not NumPy's numbers.
    return [(low < each).all() for low, each in zip([0.9, -1, -9], numbers, strict=True)]


@often(1)
def products(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    n = draw.choice([3, 16, 40])
    x = (xp.arange(n * n) % 5).reshape(n, n).astype(draw.choice(["f8", "f4"]))
    return [x @ x.T + 1, xp.linalg.norm(x), xp.tensordot(x, x)]


@often(1)
def fallbacks(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8",))
    return [xp.interp(x.ravel(), xp.arange(5.0), xp.arange(5.0)), xp.histogram(x, 4)[0],
            xp.fft.rfft(x.ravel()).real.round(6)]


@often(1)
def texts(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw)
    return [xp.asarray(len(str(x)) > 0), float(abs(x.ravel()[0])), x.tolist()]


@often(1)
def host_arrays(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    given = np.arange(draw.choice(LENGTHS) * 1.0)
    x, y = xp.asarray(given), xp.array(given, copy=True)
    y += x
    held = np.asarray(y)
    return [x + held, held.nbytes]


@often(1)
def chained(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = xp.zeros(draw.choice(LENGTHS))
    for number in range(draw.choice([3, 12])):
        x = x * 0.5 + number
        if draw.random() < 0.1:
            float(x[0])
    return [x]


def _step(a: Any, b: Any) -> Any:
    c = a + b
    c[1:] += 1
    return c % 16, c.sum()


_jitted, _donating = cf.jit(_step), cf.jit(_step, donate="a")


@often(2)
def jitted(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    n = draw.choice(LENGTHS)
    ours = draw.choice([_jitted, _donating])
    step = _step if xp is np else ours
    x, y = xp.arange(n * 1.0), xp.ones(n)
    for _ in range(draw.choice([1, 3])):
        x, total = step(x, y)
    return [x, total]


@cf.kernel
def _smoothed(i: Any, x: Any, y: Any, w: Any) -> None:
    if i > 0:
        y[i] = x[i] * w + x[i - 1]


@cf.kernel(group=8)  # type: ignore[untyped-decorator]
def _turned(i: Any, x: Any, y: Any) -> None:
    q = cf.group.local_id()
    t = cf.group.local_array(8)
    t[q] = x[i]
    cf.group.barrier()
    y[i] = t[7 - q]


@often(2)
def kernels(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    n = draw.choice([8, 104, 1000])
    x, y, z = xp.arange(n * 1.0), xp.ones(n), xp.zeros(n)
    smoothed, turned = (_smoothed.python, _turned.python) if xp is np else (_smoothed, _turned)
    smoothed(n, x, y, draw.choice([0.5, 2.0]))
    turned(n, y, z)
    return [y + 1, z]


_elementwise = cf.ElementwiseKernel("T x, T y", "T z", "z = x * y + 1", "long_run_product")
_raw = cf.RawKernel(
    "__kernel void twice(__global double *x) { x[get_global_id(0)] *= 2; }", "twice"
)


@often(1)
def texts_in_c(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = xp.arange(draw.choice([7, 100]) * 1.0)
    if xp is np:
        return [(x * x + 1) * 2]
    y = _elementwise(x, x)
    _raw((len(x),), (1,), (y,))
    return [y]


@often(2)
def mistakes(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8",))
    y = x + 1
    before = y * 2

    def unfit() -> Any:
        return xp.ones(3) + xp.ones(4)

    def outside() -> Any:
        return xp.ones(3)[5]

    def loud() -> None:
        with xp.errstate(all="raise"):
            (xp.ones(7) / xp.zeros(7)).tolist()

    def singular() -> Any:
        return xp.linalg.inv(xp.zeros((3, 3)))

    def unknown() -> None:
        y.nonsense  # noqa: B018

    def loops() -> Any:
        return _jitted(xp.ones(3), xp.ones(5)) if xp is not np else _step(xp.ones(3), xp.ones(5))

    def warned() -> None:
        w = xp.ones((4, 4))
        w[0] = np.inf
        v = xp.ones((4, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with xp.errstate(all="warn"):
                v += 1
                ((v - 2) @ w).tolist()
        raise RuntimeWarning  # kernels do not warn

    chosen = draw.choice([unfit, outside, loud, singular, unknown, loops, warned])
    try:
        chosen()
    except (ValueError, IndexError, ArithmeticError, AttributeError, RuntimeWarning,
            np.linalg.LinAlgError):
        pass
    else:
        raise AssertionError(f"no error: {chosen.__name__}")
    return [before]


@often(0.3)
def held_cycles(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    """What the garbage collector has to find."""
    x = _array(xp, draw, ("f8",)) + 1
    holder: dict[str, Any] = {"x": x, "y": x * 2}
    holder["self"] = holder
    return [holder["y"]]


@often(0.2)
def recorded_in_vain(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    x = _array(xp, draw, ("f8",))
    for _ in range(20):
        x + 1  # nobody looks at it
        x[:1] += 1
    return [x]


@often(0.02)
def functions_of_its_own(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    """A traced function, and a kernel, that go with the call."""
    factor = draw.choice([2, 3])
    x = xp.arange(10.0)

    def scaled(a: Any) -> Any:
        return a * factor

    return [(scaled if xp is np else xp.jit(scaled))(x)]


@often(0.001)
def new_structures(xp: ModuleType, draw: random.Random) -> Sequence[Any]:
    """What is planned, and built."""
    x = xp.arange(100.0)
    for _ in range(6):
        symbol = draw.choice(["add", "subtract", "maximum", "minimum"])
        x = getattr(xp, symbol)(x, draw.choice([x[::-1], x.max(), xp.float64(2)]))
    return [x]


# -- what a process holds --------------------------------------------------------------------------


@dataclass
class Figures:
    """What there is of everything."""

    mb: float
    handles: dict[str, int]

    def __str__(self) -> str:
        return f"{self.mb:8.2f} MB  " + "  ".join(f"{k} {v}" for k, v in self.handles.items())


def figures() -> Figures:
    """Count, after a collection; what `malloc` keeps for later is given back first, and what is
    forgotten only now and then is forgotten: the weak references to what was recorded."""
    import pyopencl as cl

    from clfuse.engine import plans
    from clfuse.ir.nodes import Node, Storage, sweep
    from clfuse.runtime.launches import program
    from clfuse.runtime.memory.blocks import Block, Buffer
    from clfuse.user_kernels.opencl import record_launch

    cf.synchronize()
    sweep()
    record_launch._latest.clear()
    for _ in range(3):
        gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    kinds: dict[str, type] = {
        "cl.Buffer": cl.Buffer, "cl.Event": cl.Event, "cl.Kernel": cl.Kernel,
        "cl.Program": getattr(cl, "_cl", cl)._Program,
        "Node": Node, "Storage": Storage, "Block": Block, "Buffer": Buffer,
        "ndarray": cf.ndarray,
    }
    for kind in kinds.values():
        _references.setdefault(kind, sys.getrefcount(kind))
    handles = {name: _instances(kind) for name, kind in kinds.items()}
    handles |= {
        "plans": len(plans.kept), "programs": len(program._programs),
        "built": cf.stats()["programs_built"],
        "device_kB": cf.stats()["device_bytes_now"] >> 10,
        "objects": len(gc.get_objects()),
        "files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
    }
    return Figures(resident, handles)


def _instances(kind: type) -> int:
    """How many objects of a class there are: each holds its class."""
    return sys.getrefcount(kind) - _references[kind]


_references: dict[type, int] = {}


def fill_caches(draw: random.Random) -> None:
    """Build as many programs as are kept: from here on a new one takes the place of another one,
    and memory cannot grow by those that come for the first time."""
    from clfuse.runtime.launches import program

    for _ in range(4 * program.PROGRAMS_LIMIT):
        if len(program._programs) >= program.PROGRAMS_LIMIT:
            break
        looked(new_structures(cf, draw))


# -- the run ---------------------------------------------------------------------------------------


@contextmanager
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def looked(values: Sequence[Any]) -> list[Any]:
    return [np.asarray(value).tolist() if hasattr(value, "dtype") else value for value in values]


def run(
    evaluations: int, names: Sequence[str], seed: int = 0, lines: int = 20, every: int = 50,
    seconds: float = float("inf"), show: Callable[[str], None] = print,
    host_us: Sequence[float] = (0, 0, 50, 1_000_000),
) -> tuple[list[tuple[int, Figures]], list[str]]:
    """Figures, with the number of evaluations after which they were taken; and wrong values.

    One program in `every` is compared with NumPy.
    """
    draw = random.Random(seed)
    programs = [PROGRAMS[name][0] for name in names]
    weights = [PROGRAMS[name][1] for name in names]
    taken: list[tuple[int, Figures]] = []
    problems: list[str] = []
    begin = time.monotonic()
    step = max(evaluations // lines // BLOCK, 1) * BLOCK
    for done in range(0, evaluations + 1, BLOCK):
        if done == SETTLED and "new_structures" in names:
            with _quiet(), cf.config.override(host_us=0, build_after_ms=0):
                fill_caches(draw)
        is_late = time.monotonic() - begin > seconds
        if done % step == 0 or done == SETTLED or is_late:
            taken.append((done, figures()))
            show(f"{done:8} {time.monotonic() - begin:6.0f} s {taken[-1][1]}")
        if is_late or done >= evaluations:
            break
        with _quiet(), cf.config.override(host_us=draw.choice(host_us)):
            for program in draw.choices(programs, weights, k=BLOCK):
                one = draw.randrange(1 << 30)
                found = looked(program(cf, random.Random(one)))
                if one % every == 0:
                    wanted = looked(program(np, random.Random(one)))
                    problem = difference(found, wanted)
                    if problem:
                        problems.append(f"{program.__name__}, seed {one}: {problem}")
                        show(problems[-1])
    return taken, problems


def difference(found: list[Any], wanted: list[Any]) -> str:
    for one, other in zip(found, wanted, strict=True):
        if not np.allclose(one, other, rtol=1e-5, equal_nan=True):
            return f"{str(one)[:200]}; NumPy: {str(other)[:200]}"
    return ""


def growth(taken: Sequence[tuple[int, Figures]]) -> tuple[float, int]:
    """By how many MB memory has grown since it was settled, and in how many evaluations."""
    settled = [each for each in taken if each[0] >= SETTLED] or list(taken)
    (first, before), (last, after) = settled[0], settled[-1]
    return after.mb - before.mb, last - first


def main() -> int:
    """Run the command line; 1 if something has grown, or a value was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.long", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--only", default=",".join(PROGRAMS), help="names of programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most")
    options = parser.parse_args()

    def show(line: str) -> None:
        print(line, flush=True)

    taken, problems = run(options.evaluations, options.only.split(","), options.seed,
                          options.lines, seconds=options.seconds, show=show)
    grown, count = growth(taken)
    print(f"{grown:.2f} MB more in {count} evaluations, {len(problems)} wrong")
    return 1 if problems or grown > GROWTH_MB * max(count / 1e6, 0.1) else 0


if __name__ == "__main__":
    sys.exit(main())

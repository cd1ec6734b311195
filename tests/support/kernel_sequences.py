"""Random kernels, array code, folds and kernels in OpenCL C by turns, over overlapping views of the
same buffers; `tests/device/user_kernels/test_kernels_fuzz.py` compares what they leave and give
with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import clfuse as cf

from .kernel_programs import LENGTH, Call, random_call, random_view, view_of, written

BLEND: Final = cf.ElementwiseKernel("T x, T y", "T z", "z = x * 0.5 + y", "blend")
SQUARES: Final = cf.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")

Bases = list[Any]


@dataclass
class Step:
    """One statement: on NumPy's buffers and on clfuse's; it may give a value.

    Attributes
    ----------
    on_numpy, on_clfuse : callable
        Of the buffers.
    about : str
    """

    on_numpy: Callable[[Bases], Any]
    on_clfuse: Callable[[Bases], Any]
    about: str


def places(view: Any) -> set[int]:
    """The elements of a buffer that a view has."""
    base = np.arange(LENGTH)
    _, shape, offset, strides = view
    return set(view_of(base, shape, offset, strides).ravel().tolist())


def _step_of_call(call: Call) -> Step:
    return Step(
        lambda bases: call.kernel.python(call.domain, *call.arrays(bases)),
        lambda bases: call.kernel(call.domain, *call.arrays(bases)),
        f"{call.text}{call.domain} {call.views}",
    )


def _kernel(random: np.random.Generator) -> Step:
    while True:
        call = random_call(random, odd=random.random() < 0.5)
        if call.is_defined():
            return _step_of_call(call)


def _views(random: np.random.Generator, count: int, rank: int) -> list[Any]:
    """Views of one shape."""
    while True:
        found = [(int(random.integers(0, 2)), *random_view(random, rank)) for _ in range(count)]
        shortest = min(view[1][0] for view in found)
        if rank == 2:
            return found
        return [(b, (shortest,), offset, strides) for b, _, offset, strides in found]


def _of(bases: Bases, view: Any) -> Any:
    base, shape, offset, strides = view
    return view_of(bases[base], shape, offset, strides)


def _array_code(random: np.random.Generator) -> Step:
    """``z[...] = x * 0.5 + y``, ``z += x``, or another name for the buffer's new contents."""
    target, one, other = _views(random, 3, int(random.integers(1, 3)))
    kind = int(random.integers(0, 3))

    def run(bases: Bases) -> None:
        z, x, y = (_of(bases, view) for view in (target, one, other))
        if kind == 0:
            z[...] = x * 0.5 + y
        elif kind == 1:
            z += x
        else:
            bases[target[0]] = bases[target[0]] * 0.5 + 1

    return Step(run, run, f"array code {kind} {target} {one} {other}")


def _elementwise(random: np.random.Generator) -> Step:
    while True:
        target, one, other = _views(random, 3, int(random.integers(1, 3)))
        if len(places(target)) == np.prod(target[1]) and all(
            view[0] != target[0] or view == target or not places(view) & places(target)
            for view in (one, other)
        ):
            break

    def on_numpy(bases: Bases) -> None:
        _of(bases, target)[...] = _of(bases, one) * 0.5 + _of(bases, other)

    def on_clfuse(bases: Bases) -> None:
        BLEND(_of(bases, one), _of(bases, other), _of(bases, target))

    return Step(on_numpy, on_clfuse, f"ElementwiseKernel {target} {one} {other}")


def _fold(random: np.random.Generator) -> Step:
    """A fold or a scan of what a kernel returns, or a ReductionKernel."""
    rank = int(random.integers(1, 3))
    one, other = _views(random, 2, rank)
    begins = int(random.integers(0, 2))
    domain = tuple((begins, extent - int(random.integers(0, 2))) for extent in one[1])
    place = ", ".join(f"{extent - 1} - {index}" if random.random() < 0.3 else index
                      for index, extent in zip("ij"[:rank], one[1], strict=True))
    indices = ", ".join("ij"[:rank])
    kernel, text = written(
        f"{indices}, x, y, a=0.5", [f"return x[{place}] * a + y[{indices}]"]
    )
    kind = str(random.choice(["sum", "max", "argmin", "scan", "exclusive", "squares"]))

    def on_numpy(bases: Bases) -> Any:
        x, y = _of(bases, one), _of(bases, other)
        if kind == "squares":
            return (x * x).sum()
        values = np.ravel(kernel.python(domain, x, y=y))
        if kind in ("scan", "exclusive"):
            found = np.cumsum(values)
            return np.concatenate([[0], found[:-1]]) if kind == "exclusive" else found
        return getattr(values, kind)()

    def on_clfuse(bases: Bases) -> Any:
        x, y = _of(bases, one), _of(bases, other)
        if kind == "squares":
            return SQUARES(x)
        if kind in ("scan", "exclusive"):
            return kernel.scan(domain, x, y=y, exclusive=kind == "exclusive")
        return kernel.reduce(domain, x, y=y, op=kind)

    return Step(on_numpy, on_clfuse, f"{kind} of {text}{domain} {one} {other}")


def random_steps(random: np.random.Generator) -> list[Step]:
    """Two to five statements, most of them kernels."""
    kinds = [_kernel, _kernel, _kernel, _array_code, _elementwise, _fold]
    return [kinds[int(random.integers(len(kinds)))](random)
            for _ in range(int(random.integers(2, 6)))]


def run(steps: list[Step], bases: Bases, *, numpy: bool) -> list[Any]:
    """What the steps give, in turn, and then the buffers."""
    given = [(step.on_numpy if numpy else step.on_clfuse)(bases) for step in steps]
    return [*[each for each in given if each is not None], *bases]

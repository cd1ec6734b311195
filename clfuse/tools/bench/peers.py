"""Other libraries of array programs as contenders: numexpr, CuPy, JAX and torch.compile.

Those that are installed are measured. Beside a GPU, JAX and torch run on a GPU, too, and so does
CuPy, which has nothing else; beside a CPU they run on the CPU.

Each runs the lines of `programs` where it understands them. `variants` of a library holds
the programs that it spells differently. A program that a library cannot express is left out for it.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from .contenders import Contender, Run
from .programs import BINS, Arrays, Program, results

__all__ = ["PEERS", "CuPy", "Jax", "Numexpr", "Torch", "installed"]


# -- JAX -------------------------------------------------------------------------------------------


def jacobi2d_jax(np: Any, a: Any) -> Any:
    for _ in range(10):
        new = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a = a.at[1:-1, 1:-1].set(new)
    return a


class Jax:
    """``jax.jit`` with 64-bit types, on JAX's default device, or on the CPU."""

    name = "jax"
    # What a mask selects has no shape when it is traced, and random numbers want a key.
    variants: Mapping[str, Callable[..., Any] | None] = {
        "jacobi2d": jacobi2d_jax,
        "histogram": lambda np, values: np.bincount(values, length=BINS),
        "mask_select": None,
        "random_pi": None,
    }

    def __init__(self, on_gpu: bool = False) -> None:
        # Otherwise it takes three quarters of a GPU's memory, where others compute, too.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        jax.config.update("jax_enable_x64", True)
        if not on_gpu:
            jax.config.update("jax_platforms", "cpu")
        self.jax = jax

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """See `Contender.bind`."""
        jax = self.jax
        compute = self.variants.get(program.name, program.compute)
        if compute is None:
            return None
        compiled = jax.jit(lambda *values: results(compute(jax.numpy, *values)))
        arrays = jax.block_until_ready([jax.device_put(value) for value in inputs])

        def run() -> Arrays:
            return tuple(jax.block_until_ready(compiled(*arrays)))

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(numpy.asarray(value) for value in values)


# -- torch -----------------------------------------------------------------------------------------


def jacobi2d_torch(np: Any, grid: Any) -> Any:
    a = grid.clone()
    for _ in range(10):
        a[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        )
    return a


def life_torch(np: Any, cells: Any) -> Any:
    for _ in range(4):
        rows = np.roll(cells, 1, 0) + cells + np.roll(cells, -1, 0)
        around = np.roll(rows, 1, 1) + rows + np.roll(rows, -1, 1) - cells
        cells = ((around == 3) | ((cells == 1) & (around == 2))).to(cells.dtype)
    return cells


class Torch:
    """``torch.compile`` in its default mode, on the CPU or on the first CUDA (or ROCm) device."""

    name = "torch"
    # torch's statistics divide by n - 1 unless told; its max, cumsum and sort want the axis or
    # return more.
    variants: Mapping[str, Callable[..., Any] | None] = {
        "jacobi2d": jacobi2d_torch,
        "life": life_torch,
        "standardize": lambda np, a: (a - a.mean(0)) / a.std(0, correction=0),
        "softmax": lambda np, a: np.softmax(a, 1),
        "var_all": lambda np, x: x.var(correction=0),
        "cumsum": lambda np, x: np.cumsum(x * 2, 0),
        "sort_f32": lambda np, x: np.sort(x).values,
        "random_pi": None,  # torch.rand has another name and another default dtype
    }

    def __init__(self, on_gpu: bool = False) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if on_gpu and torch.cuda.is_available() else "cpu"

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """See `Contender.bind`."""
        torch = self.torch
        compute = self.variants.get(program.name, program.compute)
        if compute is None:
            return None
        # Programs share code objects (Black-Scholes in two precisions): without this the second
        # would be compiled for any dtype and size, which is slower.
        torch.compiler.reset()
        compiled = torch.compile(lambda *values: results(compute(torch, *values)), dynamic=False)
        arrays = tuple(torch.from_numpy(value).to(self.device) for value in inputs)

        def run() -> Arrays:
            with torch.inference_mode():
                values = tuple(compiled(*arrays))
            if self.device != "cpu":
                torch.cuda.synchronize()
            return values

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(value.cpu().numpy() for value in values)


# -- CuPy ------------------------------------------------------------------------------------------


class CuPy:
    """CuPy, which runs an operation as soon as it is asked for."""

    name = "cupy"

    def __init__(self, on_gpu: bool = True) -> None:
        import cupy

        if not on_gpu:
            raise ImportError("it computes on GPUs, and clfuse's device is none")
        self.cupy = cupy

    def bind(self, program: Program, inputs: Arrays) -> Run:
        """See `Contender.bind`."""
        cupy = self.cupy
        arrays = [cupy.asarray(value) for value in inputs]

        def run() -> Arrays:
            values = results(program.compute(cupy, *arrays))
            cupy.cuda.Device().synchronize()
            return values

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(self.cupy.asnumpy(value) for value in values)


# -- numexpr ---------------------------------------------------------------------------------------


class Numexpr:
    """numexpr's virtual machine: what can be written as expressions in strings."""

    name = "numexpr"

    def __init__(self, on_gpu: bool = False) -> None:
        import numexpr

        self.evaluate = numexpr.evaluate
        numexpr.set_num_threads(numexpr.detect_number_of_cores())

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """See `Contender.bind`."""
        form = getattr(self, program.name.removesuffix("_f32").removesuffix("_f64"), None)
        if form is None:
            return None
        return lambda: results(form(*inputs))

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return values

    def _evaluate(self, text: str, **names: Any) -> Any:
        return self.evaluate(text, local_dict=names, global_dict={})

    def triad(self, b: Any, c: Any) -> Any:
        # A number in the text is an int or a double: the first keeps float32.
        return self._evaluate("b + 3*c", b=b, c=c)

    def sincos(self, x: Any) -> Any:
        return self._evaluate("sin(x)**2 + cos(x)**2", x=x)

    def poly_chain(self, x: Any) -> Any:
        text = "x"
        for _ in range(10):
            text = f"({text})*x + 0.5"
        return self._evaluate(text, x=x)

    def black_scholes(self, spot: Any, strike: Any, years: Any) -> Any:
        # Numbers as arrays of no dimension, so that float32 stays float32.
        numbers = {
            name: numpy.asarray(value, spot.dtype)
            for name, value in {
                "r": 0.08, "v": 0.3, "g": 0.08 + 0.3 * 0.3 / 2, "one": 1.0, "half": 0.5,
                "p": 0.2316419, "q": 0.3989422804014327,
                "a1": 0.31938153, "a2": -0.356563782, "a3": 1.781477937,
                "a4": -1.821255978, "a5": 1.330274429,
            }.items()
        }  # fmt: skip

        def normal_cdf(d: Any) -> Any:
            k = self._evaluate("one / (one + p*abs(d))", d=d, **numbers)
            return self._evaluate(
                "where(d < 0, q*exp(-half*d*d)*k*(a1 + k*(a2 + k*(a3 + k*(a4 + k*a5)))),"
                " one - q*exp(-half*d*d)*k*(a1 + k*(a2 + k*(a3 + k*(a4 + k*a5)))))",
                d=d, k=k, **numbers,
            )  # fmt: skip

        names = {"s": spot, "x": strike, "t": years, **numbers}
        d1 = self._evaluate("(log(s / x) + g*t) / (v*sqrt(t))", **names)
        d2 = self._evaluate("d1 - v*sqrt(t)", d1=d1, **names)
        names |= {"w1": normal_cdf(d1), "w2": normal_cdf(d2)}
        call = self._evaluate("s*w1 - x*exp(-r*t)*w2", **names)
        return call, self._evaluate("x*exp(-r*t)*(one - w2) - s*(one - w1)", **names)

    def mandelbrot(self, x: Any, y: Any) -> Any:
        zr, zi, count = numpy.zeros_like(x), numpy.zeros_like(x), numpy.zeros_like(x)
        for _ in range(20):
            names = {"zr": zr, "zi": zi, "x": x, "y": y, "count": count}
            inside = self._evaluate("zr*zr + zi*zi < 4", **names)
            zi, zr, count = (
                self._evaluate(f"where(inside, {new}, {old})", inside=inside, **names)
                for new, old in (
                    ("2*zr*zi + y", "zi"),
                    ("zr*zr - zi*zi + x", "zr"),
                    ("count + 1", "count"),
                )
            )
        return count

    def small(self, x: Any, y: Any) -> Any:
        for _ in range(20):
            x = self._evaluate("exp(-(x-y)*(x-y)) + 0.1*x", x=x, y=y)
        return x

    def sum_of_squares(self, x: Any) -> Any:
        return self._evaluate("sum((x - 0.5)**2)", x=x)[()]

    def nbody(self, x: Any, y: Any, z: Any, mass: Any) -> Any:
        rows = {
            "x": x,
            "y": y,
            "z": z,
            "m": mass,
            "X": x[:, None],
            "Y": y[:, None],
            "Z": z[:, None],
        }
        squared = self._evaluate("(x-X)*(x-X) + (y-Y)*(y-Y) + (z-Z)*(z-Z) + 0.01", **rows)
        weight = self._evaluate("m / (r*sqrt(r))", r=squared, **rows)
        return tuple(
            self._evaluate(f"sum(({a}-{a.upper()})*w, axis=1)", w=weight, **rows) for a in "xyz"
        )

    def distance_argmin(self, p: Any, q: Any) -> Any:
        columns = {f"p{i}": p[:, i, None] for i in range(3)} | {
            f"q{i}": q[None, :, i] for i in range(3)
        }
        return self._evaluate("(p0-q0)**2 + (p1-q1)**2 + (p2-q2)**2", **columns).argmin(1)

    def softmax(self, a: Any) -> Any:
        e = self._evaluate("exp(a - m)", a=a, m=a.max(1, keepdims=True))
        return self._evaluate("e / s", e=e, s=e.sum(1, keepdims=True))

    def standardize(self, a: Any) -> Any:
        return self._evaluate("(a - m) / s", a=a, m=a.mean(0), s=a.std(0))

    def cumsum(self, x: Any) -> Any:
        return numpy.cumsum(self._evaluate("x * 2", x=x))

    def jacobi2d(self, grid: Any) -> Any:
        a = grid.copy()
        for _ in range(10):
            a[1:-1, 1:-1] = self._evaluate(
                "0.2 * (m + u + d + l + r)",
                m=a[1:-1, 1:-1], u=a[:-2, 1:-1], d=a[2:, 1:-1], l=a[1:-1, :-2], r=a[1:-1, 2:],
            )  # fmt: skip
        return a


PEERS: dict[str, Callable[[bool], Contender]] = {
    "numexpr": Numexpr, "cupy": CuPy, "jax": Jax, "torch": Torch,
}  # fmt: skip
"""Name -> what makes the contender, told whether clfuse computes on a GPU."""


def installed(*, on_gpu: bool = False) -> list[str]:
    """The names of the peers that can be imported here, and that run where clfuse does."""
    return [
        name
        for name in PEERS
        if importlib.util.find_spec(name) is not None and (on_gpu or name != CuPy.name)
    ]

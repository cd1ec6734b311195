"""Hand-written OpenCL for the benchmark's programs: the limit for a generated kernel.

The kernels are in ``kernels/``, one file a program. They run through `clfuse.runtime`, so that
device, context, queue and compiler options are those of the generated ones. They use all that a
person may know: sizes, contiguity, what a program does next. On devices with the CPU's schedule
they use few work-items, a contiguous chunk each, and explicit vectors; the element-wise ones and
the all-pairs ones also run as grid-stride loops.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from clfuse.dataclass import frozen
from clfuse.runtime.devices.device import Device
from clfuse.runtime.launches.launch import enqueue, finish
from clfuse.runtime.launches.program import build
from clfuse.runtime.memory.buffers import Buffer, allocate, download

from . import contenders
from .contenders import Run
from .programs import Arrays, Program

__all__ = ["Copy", "Limit"]

SOURCES = Path(__file__).parent / "kernels"

INT = numpy.dtype(numpy.int32)
# Below this many elements a work-item has too little to do to be worth starting.
LEAST_CHUNK = 512
COPY_NBYTES = 64_000_000
STANDARDIZE_COLUMNS = 64


@frozen
class Result:
    """A buffer of results, with what is needed to read it back."""

    buffer: Buffer
    dtype: numpy.dtype[Any]
    shape: tuple[int, ...]

    def read(self) -> numpy.ndarray[Any, Any]:
        return download(self.buffer, self.dtype, self.shape)


class Bench:
    """One program's source with the definitions for a device, and short ways to build and launch
    its kernels."""

    def __init__(self, device: Device, source: str, dtype: numpy.dtype[Any]) -> None:
        traits = device.traits
        self.device = device
        self.gpu = traits.schedule == "gpu"
        self.dtype = dtype
        self.width = max(traits.vector_bytes // dtype.itemsize, 2)
        real, integer = ("double", "long") if dtype.itemsize == 8 else ("float", "int")
        defines = {
            "WIDTH": self.width,
            "REAL": real,
            "INTEGER": integer,
            "GPU_SCHEDULE": int(self.gpu),
        }
        self.source = "".join(f"#define {name} {value}\n" for name, value in defines.items())
        self.source += (SOURCES / "prelude.cl").read_text(encoding="utf-8")
        self.source += (SOURCES / source).read_text(encoding="utf-8")

    def items(self, elements: int) -> int:
        """Work-items for a launch over that many elements."""
        traits = self.device.traits
        if self.gpu:
            group = traits.work_group
            return min(traits.work_items, -(-elements // group) * group)
        return max(min(traits.work_items, elements // LEAST_CHUNK), 1)

    def launch(self, kernel: str, items: int, *arguments: Any) -> Callable[[], None]:
        """Build a kernel; the function that is returned enqueues it with these arguments: buffers,
        ints."""
        kinds = [None if isinstance(value, Buffer) else INT for value in arguments]
        program = build(self.device, self.source, kernel, kinds)
        local = (self.device.traits.work_group if self.gpu else 1,)

        def start() -> None:
            # It keeps the buffers: the memory of one that nobody has goes to another array.
            values = [value.mem if isinstance(value, Buffer) else value for value in arguments]
            enqueue(program, (items,), local, values)

        return start

    def empty(self, shape: tuple[int, ...], dtype: numpy.dtype[Any] | None = None) -> Result:
        """A buffer for results."""
        kind = self.dtype if dtype is None else dtype
        nbytes = int(numpy.prod(shape, dtype=numpy.int64)) * kind.itemsize
        return Result(allocate(self.device, nbytes), kind, shape)

    def upload(self, arrays: Arrays) -> list[Buffer]:
        """Buffers with these arrays: those that clfuse's own arrays lie in."""
        nodes = [array._storage.node for array in contenders.upload(arrays)]
        return [node.buffer for node in nodes]


Plan = tuple[list[Callable[[], None]], list[Result]]


def element_wise(kernel: str, outputs: int = 1) -> Callable[[Bench, Arrays], Plan]:
    """The plan of one kernel over vectors: all inputs, then `outputs` results of the first one's
    shape."""

    def plan(bench: Bench, inputs: Arrays) -> Plan:
        results = [bench.empty(inputs[0].shape) for _ in range(outputs)]
        count, rest = divmod(inputs[0].size, bench.width)
        if rest:
            raise ValueError(
                f"{kernel}: {inputs[0].size} elements; it takes a multiple of {bench.width}"
            )
        items = bench.items(count if bench.gpu else inputs[0].size)
        buffers = [*bench.upload(inputs), *(result.buffer for result in results)]
        return [bench.launch(kernel, items, count, *buffers)], results

    return plan


def sum_of_squares(bench: Bench, inputs: Arrays) -> Plan:
    (x,) = bench.upload(inputs)
    items = bench.items(inputs[0].size)
    sums, out = bench.empty((items,)), bench.empty(())
    return [
        bench.launch("partial", items, inputs[0].size // bench.width, x, sums.buffer),
        bench.launch("total", 1, items, sums.buffer, out.buffer),
    ], [out]


def var_all(bench: Bench, inputs: Arrays) -> Plan:
    (x,) = bench.upload(inputs)
    items = bench.items(inputs[0].size)
    sums, out = bench.empty((items, 2)), bench.empty(())
    return [
        bench.launch("partial", items, inputs[0].size // bench.width, x, sums.buffer),
        bench.launch("variance", 1, items, inputs[0].size, sums.buffer, out.buffer),
    ], [out]


def nbody(bench: Bench, inputs: Arrays) -> Plan:
    n = inputs[0].size
    forces = [bench.empty((n,)) for _ in range(3)]
    buffers = [*bench.upload(inputs), *(force.buffer for force in forces)]
    return [bench.launch("nbody", bench.items(n * n), n, *buffers)], forces


def distance_argmin(bench: Bench, inputs: Arrays) -> Plan:
    n, m = len(inputs[0]), len(inputs[1])
    p, q = bench.upload(inputs)
    columns = bench.empty((3, m))
    out = bench.empty((n,), numpy.dtype(numpy.int64))
    return [
        bench.launch("columns", bench.items(m), m, q, columns.buffer),
        bench.launch("nearest", bench.items(n * m), n, m, p, columns.buffer, out.buffer),
    ], [out]


def standardize(bench: Bench, inputs: Arrays) -> Plan:
    rows, columns = inputs[0].shape
    if columns != STANDARDIZE_COLUMNS:
        raise ValueError(
            f"standardize: {columns} columns; the kernel is written for {STANDARDIZE_COLUMNS}"
        )
    (a,) = bench.upload(inputs)
    items = bench.items(inputs[0].size)
    sums, moments, out = (
        bench.empty((items, 2, columns)),
        bench.empty((2, columns)),
        bench.empty((rows, columns)),
    )
    return [
        bench.launch("partial", items, rows, a, sums.buffer),
        bench.launch("moments", 1, rows, items, a, sums.buffer, moments.buffer),
        bench.launch("apply", items, rows, a, moments.buffer, out.buffer),
    ], [out]


def softmax(bench: Bench, inputs: Arrays) -> Plan:
    rows, columns = inputs[0].shape
    (a,) = bench.upload(inputs)
    out = bench.empty((rows, columns))
    return [bench.launch("softmax", bench.items(inputs[0].size), rows, columns, a, out.buffer)], [
        out
    ]


def cumsum(bench: Bench, inputs: Arrays) -> Plan:
    (x,) = bench.upload(inputs)
    n = inputs[0].size
    items = bench.items(n)
    sums, out = bench.empty((items,)), bench.empty((n,))
    return [
        bench.launch("partial", items, n, x, sums.buffer),
        bench.launch("scan", items, n, x, sums.buffer, out.buffer),
    ], [out]


def steps(kernel: str, count: int) -> Callable[[Bench, Arrays], Plan]:
    """The plan of a stencil: `count` steps, from the input into two buffers in turn."""

    def plan(bench: Bench, inputs: Arrays) -> Plan:
        (grid,) = inputs
        (source,) = bench.upload(inputs)
        planes = [bench.empty(grid.shape, grid.dtype) for _ in range(2)]
        launches = []
        for step in range(count):
            target = planes[step % 2].buffer
            launches.append(bench.launch(kernel, bench.items(grid.size), len(grid), source, target))
            source = target
        return launches, [planes[(count - 1) % 2]]

    return plan


@frozen
class Row:
    """How a program is run by hand: its source file, the type that it computes in, its plan, and
    whether the GPU's schedule has it."""

    source: str
    dtype: str
    plan: Callable[[Bench, Arrays], Plan]
    gpu: bool = False


ROWS: dict[str, Row] = {
    "triad": Row("triad.cl", "f4", element_wise("triad"), gpu=True),
    "sincos": Row("sincos.cl", "f4", element_wise("sincos_squared"), gpu=True),
    "poly_chain": Row("poly_chain.cl", "f8", element_wise("poly_chain"), gpu=True),
    "black_scholes_f32": Row("black_scholes.cl", "f4", element_wise("black_scholes", 2), gpu=True),
    "black_scholes_f64": Row("black_scholes.cl", "f8", element_wise("black_scholes", 2), gpu=True),
    "mandelbrot": Row("mandelbrot.cl", "f8", element_wise("mandelbrot"), gpu=True),
    "small": Row("small.cl", "f8", element_wise("small_steps"), gpu=True),
    "nbody": Row("nbody.cl", "f8", nbody, gpu=True),
    "distance_argmin": Row("distance_argmin.cl", "f8", distance_argmin, gpu=True),
    "sum_of_squares": Row("sum_of_squares.cl", "f8", sum_of_squares),
    "var_all": Row("var_all.cl", "f4", var_all),
    "standardize": Row("standardize.cl", "f4", standardize),
    "softmax": Row("softmax.cl", "f4", softmax),
    "jacobi2d": Row("jacobi2d.cl", "f8", steps("jacobi2d", 10), gpu=True),
    "life": Row("life.cl", "f4", steps("life", 4), gpu=True),
    "cumsum": Row("cumsum.cl", "f8", cumsum),
}


class Limit:
    """The hand-written kernels as a contender."""

    name = "limit"

    def __init__(self, device: Device) -> None:
        self.device = device

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """See `Contender.bind`."""
        row = ROWS.get(program.name)
        if row is None:
            return None
        bench = Bench(self.device, row.source, numpy.dtype(row.dtype))
        if bench.gpu and not row.gpu:
            return None
        launches, results = row.plan(bench, inputs)

        def run() -> Arrays:
            for launch in launches:
                launch()
            finish(self.device)
            return tuple(results)

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(value.read() for value in values)


class Copy:
    """A copy from one buffer to another: the bandwidth that programs are held against."""

    name = "copy"

    def __init__(self, device: Device, nbytes: int = COPY_NBYTES) -> None:
        self.nbytes = 2 * nbytes
        bench = Bench(device, "copy.cl", numpy.dtype(numpy.float32))
        source = numpy.ones(nbytes // 4, numpy.float32)
        ((self._launch,), _) = element_wise("copy")(bench, (source,))
        self.device = device

    def run(self) -> Arrays:
        """Copy once and wait."""
        self._launch()
        finish(self.device)
        return ()

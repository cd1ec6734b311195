"""Contenders: NumPy, and clfuse with fusion, without fusion, and through `jit`.

A contender turns a program and its inputs into a function without arguments. One call of that
function is timed: when it returns, the results are computed and lie in the memory of the
contender's device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy

import clfuse
from clfuse import config
from clfuse.counters import reset_peak
from clfuse.dataclass import frozen
from clfuse.runtime.memory.buffers import HostBuffer

from .programs import Arrays, Program, results

__all__ = ["Clfuse", "Contender", "Footprint", "Jit", "NumPy"]

Run = Callable[[], Arrays]


class Contender(Protocol):
    """One library, or one way to use it."""

    name: str

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """The function to time, or None where this contender cannot express the program.

        The inputs are brought to where the contender wants them here, so that it is not timed.
        """
        ...

    def to_host(self, values: Arrays) -> Arrays:
        """What a run has returned, as NumPy arrays."""
        ...


class NumPy:
    """NumPy itself: what everything else is compared with."""

    name = "numpy"

    def bind(self, program: Program, inputs: Arrays) -> Run:
        """See `Contender.bind`."""

        def run() -> Arrays:
            # NumPy's own complaints (exp of a large number) are no result of the benchmark.
            with numpy.errstate(all="ignore"):
                return results(program.compute(numpy, *inputs))

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return values


@frozen
class Footprint:
    """What one steady run of a program under clfuse does to the device.

    kernels: kernels launched.
    library_calls: operations that a library of the host did on the device's memory (matrix
        products).
    fallbacks: operations that NumPy did on the host.
    nbytes: bytes that the kernels read and write, by the plan.
    peak_nbytes: the most device memory at one time beyond the inputs.
    result_nbytes: bytes of the results: what `peak_nbytes` is at best.
    """

    kernels: int
    library_calls: int
    fallbacks: int
    nbytes: int
    peak_nbytes: int
    result_nbytes: int


_uploaded: list[tuple[Arrays, str, Arrays]] = []


def upload(inputs: Arrays) -> Arrays:
    """The inputs as clfuse's arrays on its current device; the same ones for the same tuple.

    Whoever computes on the device reads the same memory: which pages an array got makes up to 15%.
    """
    device = repr(clfuse.get_device())
    for known, where, arrays in _uploaded:
        if known is inputs and where == device:
            return arrays
    arrays = tuple(clfuse.asarray(value) for value in inputs)
    clfuse.evaluate(*arrays)
    clfuse.synchronize()
    _uploaded[:] = [(inputs, device, arrays)]
    return arrays


class Clfuse:
    """clfuse on its current device, with the inputs there.

    fusion: False runs one kernel per operation.
    """

    def __init__(self, *, fusion: bool = True) -> None:
        self.name = "clfuse" if fusion else "unfused"
        self.fusion = fusion

    def _settings(self) -> AbstractContextManager[object]:
        # What is measured is the steady state, which has its kernels.
        return config.override(fusion=self.fusion, build_after_ms=0)

    def bind(self, program: Program, inputs: Arrays) -> Run:
        """See `Contender.bind`."""
        arrays = upload(inputs)

        def run() -> Arrays:
            with self._settings():
                values = results(program.compute(clfuse, *arrays))
                clfuse.evaluate(*values)
                clfuse.synchronize()
            return values

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(clfuse.asnumpy(value) for value in values)

    def footprint(self, program: Program, inputs: Arrays) -> Footprint:
        """Look at one steady run of a program instead of timing it."""
        arrays = upload(inputs)
        with self._settings():
            plan = clfuse.explain(*results(program.compute(clfuse, *arrays)))
            nbytes = sum(kernel.nbytes for kernel in plan.kernels)
            del plan
            before = clfuse.stats()
            reset_peak()
            values = results(program.compute(clfuse, *arrays))
            clfuse.evaluate(*values)
            clfuse.synchronize()
            after = clfuse.stats()
        counted = ("plans_made", "plans_reused", "fallbacks", "host_evaluations")
        # What lies on the host was calculated there at the call, uncounted.
        at_once = any(isinstance(value._storage.node.buffer, HostBuffer) for value in values)
        if not at_once and all(after[name] == before[name] for name in counted):
            raise RuntimeError("a later run found the first one's results and did nothing")
        return Footprint(
            kernels=after["kernels_launched"] - before["kernels_launched"],
            library_calls=after["library_calls"] - before["library_calls"],
            fallbacks=after["fallbacks"] - before["fallbacks"],
            nbytes=nbytes,
            peak_nbytes=after["device_bytes_peak"] - before["device_bytes_now"],
            result_nbytes=sum(int(value.nbytes) for value in values),
        )


class Jit:
    """clfuse with the whole program under `clfuse.jit`: calls replay kernels and record nothing."""

    name = "jit"

    def bind(self, program: Program, inputs: Arrays) -> Run | None:
        """See `Contender.bind`; None where the program looks at values or needs the host."""
        arrays = upload(inputs)
        jitted = clfuse.jit(functools.partial(program.compute, clfuse))
        try:
            jitted(*arrays)
        except clfuse.JitError:
            return None

        def run() -> Arrays:
            values = results(jitted(*arrays))
            clfuse.synchronize()
            return values

        return run

    def to_host(self, values: Arrays) -> Arrays:
        """See `Contender.to_host`."""
        return tuple(clfuse.asnumpy(value) for value in values)

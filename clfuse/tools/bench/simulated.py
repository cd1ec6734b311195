"""``python -m clfuse.tools.bench.simulated FILE PART PROGRAM ...``: programs under Oclgrind.

It writes to FILE what each kernel of these programs of the benchmark did. Oclgrind takes a million
instructions a second, so inputs are small. How many work-items a kernel has on whole inputs is read
from its plan, which needs no inputs.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy

import clfuse
from clfuse import config
from clfuse.arrays.handle import fresh
from clfuse.codegen.kernels import render
from clfuse.codegen.matmul import render_matmul
from clfuse.codegen.passes import render_pass
from clfuse.dataclass import frozen
from clfuse.engine.evaluate import pending
from clfuse.engine.executable import Prepared, observers
from clfuse.ir import build
from clfuse.ir.snapshot import take
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import get_device
from clfuse.runtime.simulated.simulation import Simulation
from clfuse.schedule.dataflow import storage_roots
from clfuse.schedule.device_libraries import is_ours
from clfuse.schedule.planner import plan
from clfuse.schedule.records import Kernel, LibraryCall, Pass, Schedule, SortPass
from clfuse.schedule.traffic import call_nbytes, kernel_nbytes, pass_nbytes
from clfuse.target.simulated_devices import SIMULATED_DEVICES
from clfuse.target.traits import DeviceTraits, with_schedule

from .oclgrind import FILE_VARIABLE, Measured, read
from .programs import PROGRAMS, SEED, Arrays, Program, results, sample_count

__all__ = ["H100", "UNITS", "Planned", "Seen"]

#: The device whose kernels are run, and how many multiprocessors it has.
H100: Final = SIMULATED_DEVICES["h100"]
UNITS: Final = H100.compute_units

#: Devices like it, but smaller: the first on which small inputs make the same kernels as whole
#: inputs do on the whole one is simulated.
FEWER_UNITS: Final = (UNITS, 64, 32, 16, 8, 4, 2, 1)


def table(rows: int) -> Callable[[numpy.random.Generator], Arrays]:
    """Inputs: 64 columns, in enough rows for several pieces of each."""

    def inputs(rng: numpy.random.Generator) -> Arrays:
        return (rng.random((rows, 64), dtype="f4"),)

    return inputs


#: Inputs of which a part is too small, or still too large.
INPUTS: Final[dict[str, Callable[[numpy.random.Generator], Arrays]]] = {
    "standardize": table(8192),
    "colsum": table(4096),
    "random_pi": lambda rng: sample_count(rng, 1 / 400),
}


@frozen
class Planned:
    """A kernel of a plan.

    kind: its class: ``map``, ``reduce``, ``scan``, ..., ``sort``, ``fourier``, or ``library``.
    nbytes: bytes that must move: every array once.
    """

    name: str
    kind: str
    work_items: int
    nbytes: int


@frozen
class Seen:
    """One launch of a program.

    planned: on small inputs; None for a kernel that only whole inputs have.
    measured: what that did.
    whole: on whole inputs and a whole H100; None where that depends on values, or has no such
        kernel.
    units: multiprocessors of the device that was simulated.
    """

    planned: Planned | None
    measured: Measured | None
    whole: Planned | None
    units: int


def of_an_h100(own: DeviceTraits, units: int) -> DeviceTraits:
    """The traits of an H100 with so many multiprocessors, and of the compiler at hand."""
    traits = Simulation(H100.key).traits(own, 0)
    return with_schedule(replace(traits, compute_units=units), "gpu")


class NeedsValuesError(Exception):
    """A plan depends on what is in an array."""


class StandIn:
    """The buffer of an input that nobody has: its shape is all that a plan needs."""

    exported = False

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.nbytes = nbytes

    def __getattr__(self, name: str) -> Any:
        raise NeedsValuesError(name)


def stand_in(device: Device, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of clfuse without memory."""
    nbytes = math.prod(shape) * dtype.itemsize
    return fresh(build.leaf(StandIn(device, nbytes), shape, numpy.dtype(dtype)))


def planned(program: Program, inputs: Arrays, device: Device) -> list[Planned] | None:
    """The kernels for inputs of these shapes; None where they depend on values."""
    arrays = [stand_in(device, array.shape, array.dtype) for array in inputs]
    try:
        values = results(program.compute(clfuse, *arrays))
        roots = pending([value._storage.node for value in values])
        schedule = plan(take(roots), device.traits, fuse=True)
    except NeedsValuesError:
        return None
    return list(kernels_of(schedule, device.traits))


def _kind(step: Pass) -> str:
    return "sort" if isinstance(step, SortPass) else "fourier"


def kernels_of(schedule: Schedule, traits: DeviceTraits) -> Iterator[Planned]:
    """What a schedule launches, in order."""
    root = storage_roots(schedule)
    for step in schedule.launches:
        if isinstance(step, Kernel):
            rendered = render(step, traits, root)
            kind, nbytes = step.kind.name, kernel_nbytes(step, schedule)
        elif isinstance(step, Pass):
            rendered, kind, nbytes = (
                render_pass(step, traits, root), _kind(step), pass_nbytes(step, schedule)
            )
        elif isinstance(step, LibraryCall) and is_ours(step, traits):
            rendered, kind, nbytes = (
                render_matmul(step, traits, root), "library", call_nbytes(step, schedule)
            )
        else:
            continue
        yield Planned(rendered.name, kind, math.prod(rendered.global_size), nbytes)


def kernel_of(step: Prepared) -> Planned:
    """A kernel that was launched, as the plan has it."""
    kind = step.kernel.kind.name if isinstance(step.kernel, Kernel) else "library"
    kind = _kind(step.kernel) if isinstance(step.kernel, Pass) else kind
    return Planned(step.rendered.name, kind, math.prod(step.rendered.global_size), step.nbytes)


@contextmanager
def observed() -> Iterator[list[Prepared]]:
    """The launches of a block, in order."""
    steps: list[Prepared] = []

    def observer(step: Prepared, event: Any) -> None:
        steps.append(step)

    observers.append(observer)
    try:
        yield steps
    finally:
        observers.remove(observer)


def run(program: Program, part: float, device: Device, counted: Path) -> list[Seen]:
    """One run of a program on small inputs: every launch, and those of whole inputs."""
    own = device.untuned_traits
    small = INPUTS.get(program.name)
    rng = numpy.random.default_rng(SEED)
    inputs = program.inputs(rng, part) if small is None else small(rng)
    with device.trying(of_an_h100(own, UNITS)):
        whole = planned(program, program.make_inputs(), device)
    units = UNITS
    for fewer in FEWER_UNITS if whole is not None else ():
        with device.trying(of_an_h100(own, fewer)):
            if names_of(planned(program, inputs, device)) == names_of(whole):
                units = fewer
                break
    with device.trying(of_an_h100(own, units)):
        arrays = [clfuse.asarray(array) for array in inputs]
        clfuse.evaluate(*arrays)
        clfuse.synchronize()
        before = len(read(counted))
        with observed() as steps:
            values = results(program.compute(clfuse, *arrays))
            clfuse.evaluate(*values)
            clfuse.synchronize()
        launches = read(counted, before)
    kernels = [kernel_of(step) for step in steps]
    if names_of(kernels) != [launch.kernel for launch in launches]:
        ran = [launch.kernel for launch in launches]
        raise RuntimeError(f"{program.name}: launched {names_of(kernels)}, Oclgrind ran {ran}")
    return together(kernels, launches, whole or [], units)


def names_of(kernels: Sequence[Planned] | None) -> list[str]:
    """Their names, in order."""
    return [kernel.name for kernel in kernels or ()]


def together(
    kernels: Sequence[Planned], launches: Sequence[Measured], whole: Sequence[Planned], units: int
) -> list[Seen]:
    """Each launch beside the kernel of its name on whole inputs, and those that have no launch."""
    left = list(whole)
    seen = []
    for kernel, launch in zip(kernels, launches, strict=True):
        same = next((other for other in left if other.name == kernel.name), None)
        if same is not None:
            left.remove(same)
        seen.append(Seen(kernel, launch, same, units))
    return [*seen, *(Seen(None, None, other, units) for other in left)]


def main(arguments: Sequence[str]) -> int:
    """Run the programs that are named; the exit code is 1 where Oclgrind is not there.

    FILE gets, by program, its `launches` (`Seen`) and how many operations were NumPy's (`on_host`).
    """
    target, part, names = Path(arguments[0]), float(arguments[1]), arguments[2:]
    counted = Path(os.environ[FILE_VARIABLE])
    device = get_device()
    if "oclgrind" not in device.platform_name.lower():
        print(f"the programs ran on {device.platform_name}, not on Oclgrind", file=sys.stderr)
        return 1
    found: dict[str, Any] = {}
    with config.override(build_after_ms=0, host_us=0), warnings.catch_warnings():
        warnings.simplefilter("ignore", clfuse.FallbackWarning)
        for number, name in enumerate(names, 1):
            print(f"{name} ({number} of {len(names)})", file=sys.stderr, flush=True)
            before = clfuse.stats()["fallbacks"]
            launches = [asdict(seen) for seen in run(PROGRAMS[name], part, device, counted)]
            on_host = clfuse.stats()["fallbacks"] - before
            found[name] = {"launches": launches, "on_host": on_host}
    target.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m clfuse.bench.simulated FILE PROGRAM ...``: runs programs of the benchmark under
Oclgrind and writes what each of their kernels did to FILE; `bench.traffic` starts it.

Oclgrind takes a million instructions a second, so inputs are small, and so is the device: as many
multiprocessors as give each work-item about as much to do as the whole device does on whole inputs.
How many work-items a kernel has there is read from its plan, for which no input is needed.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy

import clfuse
from clfuse import config
from clfuse.api.handle import fresh
from clfuse.bench.oclgrind import FILE_VARIABLE, Measured, read
from clfuse.bench.programs import PROGRAMS, SEED, Program, results
from clfuse.evaluate import pending
from clfuse.graph import build
from clfuse.graph.snapshot import take
from clfuse.plan.device_libraries import is_ours
from clfuse.plan.planner import plan
from clfuse.plan.schedule import Kernel, LibraryCall, Schedule, SortPass
from clfuse.planned import Prepared, observers, storage_roots
from clfuse.render.kernels import render
from clfuse.render.matmul import render_matmul
from clfuse.render.sorting import render_sort
from clfuse.runtime.device import Device, get_device
from clfuse.traits import DeviceTraits, with_schedule

__all__ = ["LOCAL_NBYTES", "UNITS", "Seen"]

#: An H100's multiprocessors and the local memory of a group (as its driver says), and how many of
#: them there are here.
H100_UNITS: Final = 132
LOCAL_NBYTES: Final = 48 << 10
UNITS: Final = 132

#: Other inputs than those of ``bench --quick``: columns as many as there are, but few rows of them.
PARTS: Final[dict[str, float]] = {"random_pi": 1 / 400}


@dataclass(frozen=True, slots=True)
class Seen:
    """One launch of a program.

    Attributes
    ----------
    measured : Measured
        What the kernel did.
    kind : str
        Its class: ``map``, ``reduce``, ``scan``, ..., ``sort`` or ``library``.
    nbytes : int
        Bytes that must move, by the plan: every array once.
    whole_items, whole_nbytes : int or None
        Work-items, and bytes that must move, on whole inputs and a whole H100. None where the plan
        depends on values.
    """

    measured: Measured
    kind: str
    nbytes: int
    whole_items: int | None
    whole_nbytes: int | None


def of_an_h100(own: DeviceTraits, units: int) -> DeviceTraits:
    """The traits of Oclgrind's device, but for those of a GPU with `units` multiprocessors."""
    gpu = replace(
        own,
        kind="gpu",
        compute_units=units,
        unified_memory=False,
        local_nbytes=LOCAL_NBYTES,
        max_parameter_nbytes=32764,
        max_work_group=1024,
        libraries=(),
    )
    return with_schedule(gpu, "gpu")


def kind_of(step: Any) -> str:
    """The class of a kernel."""
    if isinstance(step, Kernel):
        return step.kind
    return "sort" if isinstance(step, SortPass) else "library"


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


def planned_whole(program: Program, device: Device) -> list[tuple[int, int]] | None:
    """Work-items and bytes of every kernel on whole inputs; None where that needs their values."""
    forms = [(array.shape, array.dtype) for array in program.make_inputs()]
    arrays = [stand_in(device, *form) for form in forms]
    try:
        values = results(program.compute(clfuse, *arrays))
        schedule = plan(
            take(pending([value._storage.node for value in values])), device.traits, fuse=True
        )
    except NeedsValuesError:
        return None
    return list(launches_of(schedule, device.traits))


def launches_of(schedule: Schedule, traits: DeviceTraits) -> Iterator[tuple[int, int]]:
    """Work-items and bytes of what a schedule launches."""
    from clfuse.plan.traffic import call_nbytes, kernel_nbytes, pass_nbytes

    root = storage_roots(schedule)
    for step in schedule.launches:
        if isinstance(step, Kernel):
            yield math.prod(render(step, traits, root).global_size), kernel_nbytes(step, schedule)
        elif isinstance(step, SortPass):
            items = math.prod(render_sort(step, traits, root).global_size)
            yield items, pass_nbytes(step, schedule)
        elif isinstance(step, LibraryCall) and is_ours(step, traits):
            items = math.prod(render_matmul(step, traits, root).global_size)
            yield items, call_nbytes(step, schedule)


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


def run(program: Program, device: Device, own: DeviceTraits, counted: Path) -> list[Seen]:
    """One run of a program on small inputs: every launch."""
    with device.trying(of_an_h100(own, H100_UNITS)):
        whole = planned_whole(program, device)
    part = PARTS.get(program.name)
    rng = numpy.random.default_rng(SEED)
    inputs = program.make_inputs(quick=True) if part is None else program.inputs(rng, part)
    with device.trying(of_an_h100(own, UNITS)):
        arrays = [clfuse.asarray(array) for array in inputs]
        clfuse.evaluate(*arrays)
        clfuse.synchronize()
        before = len(read(counted))
        with observed() as steps:
            values = results(program.compute(clfuse, *arrays))
            clfuse.evaluate(*values)
            clfuse.synchronize()
        launches = read(counted, before)
    names, ran = [step.rendered.name for step in steps], [launch.kernel for launch in launches]
    if names != ran:
        raise RuntimeError(f"{program.name}: launched {names}, but Oclgrind ran {ran}")
    print(names, whole, [step.nbytes for step in steps], file=sys.stderr)
    if whole is None or len(whole) != len(steps):
        whole = None
    return [
        Seen(
            launch,
            kind_of(step.kernel),
            step.nbytes,
            *(whole[number] if whole is not None else (None, None)),
        )
        for number, (launch, step) in enumerate(zip(launches, steps, strict=True))
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the programs that are named; the exit code is 1 where Oclgrind is not there."""
    target, names = Path(arguments[0]), arguments[1:]
    counted = Path(os.environ[FILE_VARIABLE])
    device = get_device()
    if "oclgrind" not in device.platform_name.lower():
        print(f"the programs ran on {device.platform_name}, not on Oclgrind", file=sys.stderr)
        return 1
    own = device.untuned_traits
    found: dict[str, Any] = {}
    with config.override(build_after_ms=0, host_us=0), warnings.catch_warnings():
        warnings.simplefilter("ignore", clfuse.FallbackWarning)
        for number, name in enumerate(names, 1):
            print(f"{name} ({number} of {len(names)})", file=sys.stderr, flush=True)
            found[name] = [asdict(seen) for seen in run(PROGRAMS[name], device, own, counted)]
    target.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

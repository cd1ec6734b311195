"""Finishing of kernels: a function for each kind fixes the geometry, and may split a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clfuse.schedule.kinds import (
    COMPACT,
    COUNT,
    EXPAND,
    MAP,
    REDUCE,
    SCAN,
    SCATTER,
    TALLY,
    TILES,
    KernelKind,
)
from clfuse.schedule.lower.emission import Registers, ValueTable
from clfuse.schedule.lower.packing import pack
from clfuse.schedule.lower.reductions import finish_reduction
from clfuse.schedule.lower.scans import finish_scan
from clfuse.schedule.lower.scatters import finish_scatter
from clfuse.schedule.lower.selections import finish_selection
from clfuse.schedule.records import Kernel
from clfuse.schedule.shape.geometry import finish_map
from clfuse.schedule.shape.unroll2 import pair_vectors
from clfuse.target.traits import DeviceTraits

from .holding import hold
from .ordering import in_rounds
from .prefetching import ask_ahead

Finisher = Callable[[Kernel, DeviceTraits, ValueTable], list[Kernel]]


def finish(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """The kernels that do on a device what `kernel` says, in order, with their geometry."""
    return FINISHERS[kernel.kind](in_rounds(kernel, traits), traits, values)


def _finish_map(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    return _packed([pair_vectors(finish_map(kernel, traits), traits)], traits, values)


def _finish_reduction(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    made = finish_reduction(kernel, traits, values, _registers_after(kernel))
    return _packed([hold(each) for each in made], traits, values)


def _finish_scan(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    scans = finish_scan(kernel, traits, values, registers=_registers_after(kernel))
    return [ask_ahead(scan, traits, values) for scan in scans]


def _finish_selection(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    return finish_selection(kernel, traits)


def _finish_tiles(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    return [kernel]  # `schedule.fuse.time_tiles` has chosen its tiles


FINISHERS: Final[dict[KernelKind, Finisher]] = {
    MAP: _finish_map,
    REDUCE: _finish_reduction,
    SCAN: _finish_scan,
    COUNT: _finish_selection,
    COMPACT: _finish_selection,
    EXPAND: _finish_selection,
    TALLY: finish_scatter,
    SCATTER: finish_scatter,
    TILES: _finish_tiles,
}


def _packed(kernels: list[Kernel], traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    """The kernels, each behind the copies that lay its operands side by side."""
    found = []
    for kernel in kernels:
        found += [*pack(kernel, traits, values), ask_ahead(kernel, traits, values)]
    return found


def _registers_after(kernel: Kernel) -> Registers:
    """Register numbers that `kernel` does not use yet."""
    registers = Registers()
    for phase in kernel.phases:
        for item in [*phase.body, *phase.epilogue, *phase.accumulators]:
            registers.count = max(registers.count, item.var + 1)
    return registers

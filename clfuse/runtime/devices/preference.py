"""The order of preference of the listed devices, and which of them a spec means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import Device

#: Which platform comes first where several have a device of one kind, by a part of its name.
#: Intel's CPU runtime before PoCL: equal or faster in every program that was measured, a launch
#: and wait takes 6 us instead of 13, and it is there only where it was installed on purpose.
PLATFORM_ORDER = ("nvidia", "amd accelerated", "intel(r) opencl", "portable computing language")
#: Simulators and software renderers: they work, slowly, and come after every native device.
PLATFORM_LAST = ("rusticl", "clover", "fpga", "oclgrind")
KIND_ORDER = ("gpu", "accelerator", "cpu")

#: Words that mean a platform even where a device's name holds them too: PoCL calls its device
#: "pthread-...-Intel(R) Xeon(R)", and CLFUSE_DEVICE=intel must not choose it.
PLATFORM_WORDS = ("pocl", "intel", "nvidia", "amd", "rusticl", "clover", "oclgrind", "apple")


def preference(candidate: Device) -> tuple[int, int, str]:
    """What devices are sorted by, best first."""
    platform = candidate.platform_name.lower()
    if any(part in platform for part in PLATFORM_LAST):
        return len(KIND_ORDER), 0, candidate.index
    first = -1 if candidate.simulation is not None else 0  # the user has asked for it
    rank = len(PLATFORM_ORDER)
    for position, part in enumerate(PLATFORM_ORDER):
        if part in platform:
            rank = position
    return first + KIND_ORDER.index(candidate.kind), rank, candidate.index


def fitting(spec: str, listed: Iterable[Device]) -> list[Device]:
    """Return the devices that a spec means, best first."""
    ranked = sorted(listed, key=preference)
    if re.fullmatch(r"\d+", spec):
        return [d for d in ranked if d.index.split(":")[0] == spec]
    if re.fullmatch(r"\d+:\d+", spec):
        return [d for d in ranked if d.index == spec]
    # A colon may be part of a name; only a number after the last one is a position.
    numbered = re.fullmatch(r"(.+):(\d+)", spec)
    name, position = (numbered[1].strip(), int(numbered[2])) if numbered else (spec, None)
    if name in KIND_ORDER:
        found = [d for d in ranked if d.kind == name]
    else:
        found = [d for d in ranked if name in f"{d.platform_name} {d.vendor_name}".lower()]
        if not found:
            # What a simulated device appears as, after what it is.
            traits = [(d, d.untuned_traits) for d in ranked if d.simulation is not None]
            found = [d for d, its in traits if name in f"{its.platform} {its.vendor}".lower()]
        if not found and name not in PLATFORM_WORDS:
            found = [d for d in ranked if name in d.name.lower()]
    return found if position is None else found[position : position + 1]

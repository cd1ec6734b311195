"""Writes every kernel that clfuse builds in this process for a GPU, as a rule a simulated one, into
a folder; `tests.support.compiling` and `rendering` ask for it."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

from tests.vendors.classes import kernel_class
from tests.vendors.programs import Program, write

__all__ = ["record"]

#: What is not about the kernel: warnings, and the standard, which each target has its own of.
LEFT_OUT = ("-w", "-cl-opt-disable")


def record(folder: Path) -> None:
    """Begin to write."""
    planned: Any = importlib.import_module("clfuse.engine.executable")
    program: Any = importlib.import_module("clfuse.runtime.launches.program")
    build_step, build = planned.program_of, program._build
    building = threading.local()  # some are built in the background

    def built_step(part: Any, device: Any) -> Any:
        # A CPU that is forced to a GPU's schedule has its own way with vectors.
        is_gpu = device.traits.kind == "gpu"
        schedule = device.traits.schedule
        building.of = kernel_class(part.kernels[0], schedule) if is_gpu else None
        try:
            return build_step(part, device)
        finally:
            del building.of

    def built(device: Any, source: str, name: str, options: str, *others: Any) -> Any:
        made = build(device, source, name, options, *others)  # what is refused is a test's
        is_gpu = device.traits.kind == "gpu"
        found = getattr(building, "of", "limit" if is_gpu else None)
        if found is not None:
            kept = [word for word in options.split()
                    if word not in LEFT_OUT and not word.startswith("-cl-std=")]
            write(folder, Program(source, " ".join(kept), found))
        return made

    planned.program_of, program._build = built_step, built

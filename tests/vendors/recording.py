"""Writes every kernel that clfuse builds in this process for a GPU, as a rule a simulated one, into
a folder; `tests.support.compiling` and `rendering` ask for it."""

from __future__ import annotations

import importlib
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
    build_step, build = planned._built, program._build
    classes: list[str | None] = []

    def built_step(kernels: Any, rendered: Any, device: Any, *others: Any) -> Any:
        # A CPU that is forced to a GPU's schedule has its own way with vectors.
        is_gpu = device.traits.kind == "gpu"
        classes.append(kernel_class(kernels[0], device.traits.schedule) if is_gpu else None)
        try:
            return build_step(kernels, rendered, device, *others)
        finally:
            classes.pop()

    def built(device: Any, source: str, name: str, options: str, *others: Any) -> Any:
        made = build(device, source, name, options, *others)  # what is refused is a test's
        is_gpu = device.traits.kind == "gpu"
        found = classes[-1] if classes else ("limit" if is_gpu else None)
        if found is not None:
            kept = [word for word in options.split()
                    if word not in LEFT_OUT and not word.startswith("-cl-std=")]
            write(folder, Program(source, " ".join(kept), found))
        return made

    planned._built, program._build = built_step, built

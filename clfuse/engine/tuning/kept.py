"""Choices of earlier trials: a kernel is rendered with the geometry that was best for its like.

Kernels are alike that have one text, on one device with one driver, under the same settings, over
arrays of about the same size (within a factor of two).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clfuse.codegen.kernels import Rendered, render
from clfuse.config import settings
from clfuse.runtime.files import geometries
from clfuse.runtime.files.geometries import Kept
from clfuse.schedule.records import Kernel
from clfuse.schedule.shape.variants import is_exact, varied

if TYPE_CHECKING:
    from clfuse.target.traits import DeviceTraits

__all__ = ["is_forced", "key_of", "of_plan", "rendered_as"]

FORCED: Final = {"width": "vector_bytes", "work_items": "work_items"}
"""Fields of a geometry, and the settings that force them where they are not 0."""


def key_of(kernel: Kernel, rendered: Rendered) -> str:
    """What a kernel as it was planned has in common with its like."""
    size = math.prod(kernel.extents).bit_length()
    text = f"{size}\0{rendered.relaxed}\0{settings.planning}\0{rendered.source}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def of_plan(
    traits: DeviceTraits, root: Callable[[int], int]
) -> Callable[[Kernel, Rendered], tuple[Rendered, Kept] | None]:
    """What tells of a plan's kernels how they were best for their like, and what was kept of that;
    or None where nothing was. The same text, if nothing was better than what was planned."""
    about = geometries.about(traits)

    def chosen(kernel: Kernel, rendered: Rendered) -> tuple[Rendered, Kept] | None:
        if not kernel.kind.free:
            return None
        found = geometries.find(about, key_of(kernel, rendered))
        if found is None:
            return None
        if not found.changes:
            return rendered, found
        other = rendered_as(kernel, rendered, dict(found.changes), traits, root)
        return None if other is None else (other, found)

    return chosen


def rendered_as(
    kernel: Kernel,
    rendered: Rendered,
    changes: dict[str, int],
    traits: DeviceTraits,
    root: Callable[[int], int],
) -> Rendered | None:
    """A planned kernel with another geometry; None where it cannot have that with the same bits."""
    if any(is_forced(name) for name in changes):
        return None
    other = varied(kernel, changes, traits)
    if other is None:
        return None
    made = render(other, traits, root)
    keeps_text = not is_exact(kernel, traits) or (rendered.relaxed and settings.fp == "fast")
    return None if keeps_text and made.source != rendered.source else made


def is_forced(name: str) -> bool:
    """Whether a setting says what a field of the geometry is."""
    return name in FORCED and getattr(settings, FORCED[name]) != 0

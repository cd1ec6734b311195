"""What was verified on which kind of device, when, and by which version.

A row is about devices, not about clfuse: tests *ran* on one, or kernels were *compiled* by the
vendor's own code generator without the hardware, or a CPU device *simulated* it
(`simulated_devices`). A run of ``bash ci/gpu`` on another device adds a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from clfuse.dataclass import frozen

from .traits import DeviceTraits

__all__ = ["VERIFIED", "Verified", "verified"]


@frozen
class Verified:
    """What was verified on a kind of device.

    match: trait name -> regular expression, searched in what the driver says, case ignored; all
        must hold.
    how: ``"ran"``, ``"compiled"`` or ``"simulated"``.
    where: the device or compiler, with its version.
    date: when, as ``YYYY-MM-DD``.
    version: of clfuse.
    what: which checks, and what they found.
    """

    match: Mapping[str, str]
    how: str
    where: str
    date: str
    version: str
    what: str

    def is_about(self, traits: DeviceTraits) -> bool:
        """Whether a device is of this kind."""
        return all(
            re.search(wanted, str(getattr(traits, trait)), re.IGNORECASE)
            for trait, wanted in self.match.items()
        )

    def __str__(self) -> str:
        return f"{self.how} on {self.where}, {self.date}, clfuse {self.version}: {self.what}"


_EVERY_CHANGE: Final = "device tests, random programs, doctests, at every change (ci/test)"

VERIFIED: Final[tuple[Verified, ...]] = (
    Verified(
        {"platform": "^Portable Computing Language$", "kind": "cpu"},
        "ran",
        "PoCL 3.1, x86-64 (AMD Zen 4 and 5, Intel Sapphire Rapids)",
        "2026-11-26",
        "0.1.0",
        _EVERY_CHANGE,
    ),
    Verified(
        {"platform": r"^Intel\(R\) OpenCL$", "kind": "cpu"},
        "ran",
        "Intel's CPU runtime 2026.2 (AMD Zen 4 and 5, Intel Sapphire Rapids)",
        "2026-11-26",
        "0.1.0",
        _EVERY_CHANGE,
    ),
    Verified(
        {"platform": "NVIDIA", "name": r"\bH100\b"},
        "ran",
        "NVIDIA H100 80GB HBM3, driver 580.159",
        "2026-11-26",
        "0.1.0",
        "8,000 device tests, 1,680 random programs, benchmark (ci/gpu)",
    ),
    Verified(
        {"platform": "NVIDIA"},
        "compiled",
        "clang 15 and ptxas 12.9, sm_70 and sm_90",
        "2026-11-26",
        "0.1.0",
        "every kernel of the tests, registers and loads",
    ),
    Verified(
        {"vendor": "Advanced Micro Devices|AMD", "kind": "gpu"},
        "compiled",
        "clang 15, gfx90a and gfx1100",
        "2026-11-26",
        "0.1.0",
        "every kernel of the tests, registers and loads",
    ),
    Verified(
        {"vendor": "Intel", "kind": "gpu"},
        "compiled",
        "ocloc 22.43, tgllp, dg2 and pvc",
        "2026-11-26",
        "0.1.0",
        "every kernel of the tests, registers and spills",
    ),
)
"""Best evidence first."""


def verified(traits: DeviceTraits) -> list[Verified]:
    """What was verified on devices of this kind, the best evidence first; empty if nothing was."""
    return [row for row in VERIFIED if row.is_about(traits)]

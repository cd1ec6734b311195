"""Messages about devices that are missing or do not work, with what would help."""

from __future__ import annotations

from collections.abc import Sequence

from .base import DeviceBase

INSTALL_HINT = (
    "to get one: python -m pip install 'clfuse[intel]' (any x86-64 CPU, Linux), or apt-get install"
    " pocl-opencl-icd (any CPU, Debian and Ubuntu), or the driver of your GPU; python -m clfuse"
    " doctor shows what was found"
)


def broken(candidate: DeviceBase) -> str:
    """Say why a device does not work, and what would help."""
    if candidate.lost:
        return (
            f"{candidate.name} was lost: {candidate.cause}; what only its memory had is gone,"
            f" arrays that are on the host are not; clfuse.set_device({candidate.index!r}) makes a"
            " new context of it, and another device can be chosen"
        )
    if candidate.is_renewed:
        return (
            f"{candidate.name} was lost, and its driver gives this process no new context:"
            f" {candidate.cause}; choose another device with clfuse.set_device, or start a new"
            " process; arrays that are on the host are not lost"
        )
    return (
        f"{candidate.name} of platform {candidate.platform_name} is listed but does not work:"
        f" {candidate.cause}; {_remedy(candidate.cause or '')}"
    )


def _remedy(cause: str) -> str:
    if "unknown target CPU" in cause:
        return "its compiler is older than this CPU; " + INSTALL_HINT
    return "mend or remove its driver, or select another device with CLFUSE_DEVICE; " + INSTALL_HINT


def inventory(listed: Sequence[DeviceBase]) -> str:
    """Say what there is, which drivers do not load, and what would help."""
    parts = [f"{d.index} {d.name} ({d.platform_name})" for d in listed]
    sentences = ["there are " + ", ".join(parts) if parts else "no OpenCL runtime lists any"]
    from clfuse.runtime.drivers import vendors

    errors = vendors.load_errors()
    sentences += [
        f"{file} names {library}, which does not load: {error}" for file, library, error in errors
    ]
    if not listed and len(errors) < len(vendors.drivers()):
        sentences.append(
            "drivers that do load list nothing; if this program used OpenCL before clfuse did, let"
            " clfuse be the first"
        )
    return "; ".join([*sentences, INSTALL_HINT])

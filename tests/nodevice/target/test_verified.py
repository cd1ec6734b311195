"""What `doctor` says was verified on a kind of device."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from clfuse.target.traits import DeviceTraits
from clfuse.target.verified import VERIFIED, verified

H100 = DeviceTraits(
    name="NVIDIA H100 80GB HBM3", vendor="NVIDIA Corporation", platform="NVIDIA CUDA", kind="gpu"
)
RADEON = DeviceTraits(
    name="gfx1100", vendor="Advanced Micro Devices, Inc.",
    platform="AMD Accelerated Parallel Processing", kind="gpu",
)  # fmt: skip
ARC = DeviceTraits(
    name="Intel(R) Arc(TM) A770 Graphics", vendor="Intel(R) Corporation",
    platform="Intel(R) OpenCL Graphics", kind="gpu",
)  # fmt: skip
POCL = DeviceTraits(name="pthread-AMD EPYC", platform="Portable Computing Language", kind="cpu")
OTHER = DeviceTraits(name="Mali-G710", vendor="ARM", platform="ARM Platform", kind="gpu")


def how(traits: DeviceTraits) -> list[str]:
    return [row.how for row in verified(traits)]


def test_devices_list_what_was_verified_the_best_first() -> None:
    assert how(H100) == ["ran", "compiled"]
    assert how(replace(H100, name="NVIDIA GeForce RTX 4070")) == ["compiled"]
    assert how(RADEON) == ["compiled"]
    assert how(ARC) == ["compiled"]
    assert how(POCL) == ["ran"]
    assert how(OTHER) == []


@pytest.mark.parametrize("row", VERIFIED, ids=lambda row: row.where)
def test_rows_say_when_and_by_which_version(row) -> None:
    assert datetime.date.fromisoformat(row.date).year >= 2026
    assert row.how in ("ran", "compiled", "simulated")
    assert row.version in str(row)

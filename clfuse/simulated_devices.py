"""Devices that ``CLFUSE_SIMULATE`` makes a CPU device appear as: facts with their sources.

A row says what a driver would answer, and what its compiler takes. `runtime.simulation` turns it
into traits and checks every build and launch against it. Pure data: nothing is imported.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SIMULATED_DEVICES", "SimulatedDevice"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """One device that can be simulated.

    Attributes
    ----------
    key : str
        What ``CLFUSE_SIMULATE`` takes.
    name, vendor, platform, version : str
        As the driver gives them.
    compute_units : int
        ``CL_DEVICE_MAX_COMPUTE_UNITS``.
    wave : int
        Work-items that run in lockstep: warp, wavefront or SIMD width.
    language : str
        What ``-cl-std`` is given: the OpenCL C that the compiler takes where nothing is asked for,
        or the highest.
    fp64, fp16 : bool
        ``cl_khr_fp64`` and ``cl_khr_fp16``.
    correctly_rounded_divide : bool
        ``CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT`` for float.
    unified_memory : bool
        ``CL_DEVICE_HOST_UNIFIED_MEMORY``: the host may map buffers without a copy.
    max_work_group : int
        ``CL_DEVICE_MAX_WORK_GROUP_SIZE``.
    max_work_items : tuple of int
        ``CL_DEVICE_MAX_WORK_ITEM_SIZES``.
    local_nbytes, max_parameter_nbytes, max_alloc_nbytes, global_nbytes : int
        Local memory of a group, all arguments of a kernel, the largest buffer, all memory.
    address_bits : int
        Width of a pointer.
    sources : tuple of str
        Where the facts are written down.
    """

    key: str
    name: str
    vendor: str
    platform: str
    version: str
    compute_units: int
    wave: int
    language: str
    fp64: bool
    fp16: bool
    correctly_rounded_divide: bool
    unified_memory: bool
    max_work_group: int
    max_work_items: tuple[int, int, int]
    local_nbytes: int
    max_parameter_nbytes: int
    max_alloc_nbytes: int
    global_nbytes: int
    address_bits: int
    sources: tuple[str, ...]


_ROWS = (
    SimulatedDevice(
        key="h100",
        name="NVIDIA H100 80GB HBM3",
        vendor="NVIDIA Corporation",
        platform="NVIDIA CUDA",
        version="OpenCL 3.0 CUDA",
        compute_units=132,
        wave=32,
        language="CL1.2",  # without -cl-std the highest OpenCL C 1.x, which is 1.2 everywhere
        fp64=True,
        fp16=False,  # not listed, though the hardware has it
        correctly_rounded_divide=True,
        unified_memory=False,
        max_work_group=1024,
        max_work_items=(1024, 1024, 64),
        local_nbytes=48 * KIB,
        max_parameter_nbytes=32_764,
        max_alloc_nbytes=85_000_000_000 // 4,
        global_nbytes=85_000_000_000,
        address_bits=64,
        sources=(
            "asked of the device itself: driver 580.159, OpenCL 3.0, 2026-11-26",
            "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"
            "#features-and-technical-specifications",
        ),
    ),
)

SIMULATED_DEVICES = {row.key: row for row in _ROWS}
"""What ``CLFUSE_SIMULATE`` takes -> row."""

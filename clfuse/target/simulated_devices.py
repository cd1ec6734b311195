"""Devices that ``CLFUSE_SIMULATE`` makes a CPU device appear as: facts with their sources.

A row says what a driver would answer, and what its compiler takes. `runtime.simulated.simulation`
turns it into traits and checks every build and launch against it. Pure data: nothing is imported.
"""

from __future__ import annotations

from clfuse.dataclass import frozen

__all__ = ["SIMULATED_DEVICES", "SimulatedDevice"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@frozen
class SimulatedDevice:
    """One device that can be simulated.

    key: what ``CLFUSE_SIMULATE`` takes.
    name, vendor, platform, version: as the driver gives them.
    compute_units: ``CL_DEVICE_MAX_COMPUTE_UNITS``.
    wave: work-items that run in lockstep: warp, wavefront or SIMD width.
    language: what ``-cl-std`` is given: the OpenCL C that the compiler takes where nothing is asked
        for, or the highest.
    fp64, fp16: ``cl_khr_fp64`` and ``cl_khr_fp16``.
    correctly_rounded_divide: ``CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT`` for float.
    unified_memory: ``CL_DEVICE_HOST_UNIFIED_MEMORY``: the host may map buffers without a copy.
    max_work_group: ``CL_DEVICE_MAX_WORK_GROUP_SIZE``.
    max_work_items: ``CL_DEVICE_MAX_WORK_ITEM_SIZES``.
    local_nbytes, max_parameter_nbytes, max_alloc_nbytes, global_nbytes: local memory of a group,
        all arguments of a kernel, the largest buffer, all memory.
    sources: where the facts are written down.
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
    max_work_group: int
    max_work_items: tuple[int, int, int]
    local_nbytes: int
    max_parameter_nbytes: int
    max_alloc_nbytes: int
    global_nbytes: int
    sources: tuple[str, ...]
    correctly_rounded_divide: bool = True
    unified_memory: bool = False


_ROWS = (
    SimulatedDevice(
        key="h100",
        name="NVIDIA H100 80GB HBM3",
        vendor="NVIDIA Corporation",
        platform="NVIDIA CUDA",
        version="OpenCL 3.0 CUDA",
        compute_units=132,
        wave=32,
        language="CL1.2",
        fp64=True,
        fp16=False,  # not listed, though the hardware has it
        max_work_group=1024,
        max_work_items=(1024, 1024, 64),
        local_nbytes=48 * KIB,
        max_parameter_nbytes=32_764,
        max_alloc_nbytes=85_000_000_000 // 4,
        global_nbytes=85_000_000_000,
        sources=(
            "the device itself: driver 580.159, 2026-11-26",
            "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"
            "#features-and-technical-specifications",
        ),
    ),
    SimulatedDevice(
        key="rtx4070",
        name="NVIDIA GeForce RTX 4070",
        vendor="NVIDIA Corporation",
        platform="NVIDIA CUDA",
        version="OpenCL 3.0 CUDA",
        compute_units=46,
        wave=32,
        language="CL3.0",  # asked for; without it 1.2, as above
        fp64=True,
        fp16=False,
        max_work_group=1024,
        max_work_items=(1024, 1024, 64),
        local_nbytes=48 * KIB,
        max_parameter_nbytes=4352,  # of drivers before 530
        max_alloc_nbytes=3 * GIB,
        global_nbytes=12 * GIB,
        sources=(
            # an RTX 4090's clinfo; units and memory are the 4070's
            "https://github.com/hashcat/hashcat/issues/3916",
            "https://www.nvidia.com/en-us/geforce/graphics-cards/40-series/rtx-4070-family/",
        ),
    ),
    SimulatedDevice(
        key="mi210",
        name="gfx90a:sramecc+:xnack-",
        vendor="Advanced Micro Devices, Inc.",
        platform="AMD Accelerated Parallel Processing",
        version="OpenCL 2.0 ",
        compute_units=104,
        wave=64,
        language="CL2.0",
        fp64=True,
        fp16=True,
        max_work_group=256,  # of CL_DEVICE_MAX_WORK_GROUP_SIZE; AMD's own query says 1,024
        max_work_items=(1024, 1024, 1024),
        local_nbytes=64 * KIB,
        max_parameter_nbytes=1024,
        max_alloc_nbytes=64 * GIB * 85 // 100,
        global_nbytes=64 * GIB,
        sources=(
            "https://github.com/openmm/openmm/issues/3940",  # an MI250's clinfo
            "https://github.com/ROCm/llvm-project/issues/3971",  # units, wavefront
            # the share of one allocation, GPU_SINGLE_ALLOC_PERCENT
            "https://github.com/ROCm/clr/blob/develop/rocclr/utils/flags.hpp",
        ),
    ),
    SimulatedDevice(
        key="rx7900",
        name="gfx1100",
        vendor="Advanced Micro Devices, Inc.",
        platform="AMD Accelerated Parallel Processing",
        version="OpenCL 2.0 ",
        compute_units=48,  # pairs of the 96 compute units
        wave=32,
        language="CL1.2",
        fp64=True,
        fp16=True,
        max_work_group=256,
        max_work_items=(1024, 1024, 1024),
        local_nbytes=64 * KIB,
        max_parameter_nbytes=1024,
        max_alloc_nbytes=24 * GIB * 85 // 100,
        global_nbytes=24 * GIB,
        sources=(
            "https://github.com/ROCm/hipBLASLt/issues/831",  # units, wavefront
            "https://github.com/ROCm/ROCR-Runtime/issues/180",  # clinfo of the same driver
        ),
    ),
    SimulatedDevice(
        key="arc",
        name="Intel(R) Arc(TM) A770 Graphics",
        vendor="Intel(R) Corporation",
        platform="Intel(R) OpenCL Graphics",
        version="OpenCL 3.0 NEO ",
        compute_units=512,
        wave=16,
        language="CL3.0",
        fp64=False,
        fp16=True,
        max_work_group=1024,
        max_work_items=(1024, 1024, 1024),
        local_nbytes=64 * KIB,
        max_parameter_nbytes=2048,
        max_alloc_nbytes=4 * GIB - 4 * KIB,
        global_nbytes=16 * GIB,
        sources=(
            "https://github.com/intel/compute-runtime/issues/618",
            "https://github.com/openvinotoolkit/openvino/issues/20012",
        ),
    ),
    SimulatedDevice(
        key="gpumax",
        name="Intel(R) Data Center GPU Max 1100",
        vendor="Intel(R) Corporation",
        platform="Intel(R) OpenCL Graphics",
        version="OpenCL 3.0 NEO ",
        compute_units=448,
        wave=32,
        language="CL3.0",
        fp64=True,
        fp16=True,
        max_work_group=1024,
        max_work_items=(1024, 1024, 1024),
        local_nbytes=128 * KIB,
        max_parameter_nbytes=2048,
        max_alloc_nbytes=48 * GIB * 95 // 100,
        global_nbytes=48 * GIB,
        sources=("https://github.com/intel/torch-xpu-ops/issues/4117",),
    ),
    SimulatedDevice(
        key="apple",
        name="Apple M1",
        vendor="Apple",
        platform="Apple",
        version="OpenCL 1.2 ",
        compute_units=8,
        wave=32,
        language="CL1.2",
        fp64=False,
        fp16=False,
        unified_memory=True,
        max_work_group=256,
        max_work_items=(256, 256, 256),
        local_nbytes=32 * KIB,
        max_parameter_nbytes=4352,
        max_alloc_nbytes=2 * GIB,
        global_nbytes=10922 * MIB,
        sources=(
            "https://github.com/diku-dk/futhark/issues/1708",
            "https://github.com/hashcat/hashcat/pull/3068",
            "https://github.com/ProjectPhysX/OpenCL-Benchmark/issues/18",  # an M4's limits
        ),
    ),
    SimulatedDevice(
        key="mobile",
        name="mobile GPU",
        vendor="none",
        platform="mobile",
        version="OpenCL 1.2 ",
        compute_units=2,
        wave=16,
        language="CL1.2",
        fp64=False,
        fp16=False,
        correctly_rounded_divide=False,
        unified_memory=True,
        max_work_group=128,
        max_work_items=(128, 128, 128),
        local_nbytes=16 * KIB,
        max_parameter_nbytes=1024,
        max_alloc_nbytes=256 * MIB,
        global_nbytes=1 * GIB,
        sources=(
            # No device of one name: the least of what phones and boards have. Local memory of a
            # VideoCore, arguments and units of Malis.
            "https://github.com/iree-org/iree/pull/24548",
            "https://github.com/ARM-software/ComputeLibrary/issues/999",
            "https://github.com/plaidml/plaidml/issues/182",
        ),
    ),
)

SIMULATED_DEVICES = {row.key: row for row in _ROWS}
"""What ``CLFUSE_SIMULATE`` takes -> row."""

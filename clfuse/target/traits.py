"""Device facts as plain numbers, and the quirks of platforms that change them.

No OpenCL in here: a test forces any device that it wants by writing its numbers down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from clfuse.dataclass import frozen
from clfuse.ops.table import FAULTY_BUILTINS

from .costs import COSTS, Costs

__all__ = ["QUIRKS", "DeviceTraits", "Quirk", "apply_quirks", "with_schedule"]

#: Chunks of a large launch on a CPU: enough for its units to even out, few enough that a launch
#: stays cheap. Measured on two cores: 64 chunks are as fast as 16 or 256, 16k chunks are 10 to 50
#: times slower.
CHUNKS_PER_UNIT = 32
MIN_CHUNKS, MAX_CHUNKS = 16, 256

#: Work-groups per compute unit of a GPU, enough to hide the latency of its memory.
GROUPS_PER_UNIT = 32

#: Work-items of a work-group on a GPU: a multiple of every warp, wavefront and SIMD width, allowed
#: nearly everywhere.
GPU_WORK_GROUP = 256

#: GPUs load 16 bytes per work-item at best.
GPU_VECTOR_BYTES = 16

#: What every buffer of a GPU begins at a multiple of: the largest type of OpenCL C, to which a
#: pointer may be declared that gets any buffer (OpenCL API, CL_DEVICE_MEM_BASE_ADDR_ALIGN).
BUFFER_ALIGNMENT = 128

#: What a unit of a row program walks over again and again should stay in the second-level cache.
REREAD_NBYTES = 1 << 19

#: A walk across rows of this length or less takes them whole. Half rows, one block of them after
#: the other, took 1.8 times as long (columns of (30000, 300) float32).
WHOLE_NBYTES = 2048

#: A cached store first reads the line that it overwrites; a streaming one does not, but its result
#: is not in the cache for the next reader. Measured (PoCL and Intel's runtime, two cores, 2 MB of
#: L2 each, 480 MB of L3 shared with other machines): 20 to 25% faster from 128 MB on, up to 40%
#: slower in loops that move 64 MB and read them again.
STREAM_NBYTES = 112 << 20

#: Bytes that move in the time of one addition's lane: measured on two-core CPUs (an exp of weight 8
#: costs about 1 ns an element, as do 8 to 10 bytes), and generous for GPUs: they compute faster.
OPERATION_NBYTES = 1.0

#: Bytes that move while a kernel is launched: 10 us at 13 GB/s.
LAUNCH_NBYTES = 128 << 10

#: Bytes that one core moves in its caches while the threads of a device are woken and waited for:
#: 30 us at 20 GB/s.
INLINE_NBYTES = 600 << 10

#: Elements of a row from which on passes over their digits are worth the launches on a CPU, which
#: take half of the time for half as many doubles (PoCL). ``argsort`` keeps the order of equal
#: elements from there on, whether NumPy or a kernel sorts.
LEAST_SORTED = 1 << 17

#: A load at a computed position, in additions: lanes are loaded one by one.
GATHER_WEIGHT = 4.0

#: Operations of one kernel: PoCL's and NVIDIA's build time grows faster than linearly beyond.
MAX_STEPS = 400

#: What a short fold that is written out may cost an element: a loop is better from there on.
UNROLLED_WEIGHT = 64.0

#: What OpenCL C can name (16 lanes of 4 bytes), and the least that fills an SSE register.
MIN_VECTOR_BYTES, MAX_VECTOR_BYTES = 16, 64


@frozen
class DeviceTraits:
    """What the planner and the renderers may know about a device.

    The defaults are a plain CPU device with four units and AVX2, so that a test names only what it
    is about.

    Attributes
    ----------
    name, vendor, platform, driver, version : str
        As the driver gives them; `platform` is the platform's name, `version` the device's OpenCL
        version.
    kind : str
        ``"cpu"``, ``"gpu"`` or ``"accelerator"``.
    features : str
        A CPU's kind and extensions, as its system lists them; empty where it is not known.
    compute_units : int
        Cores of a CPU, multiprocessors of a GPU.
    schedule : str
        ``"cpu"`` (few work-items, chunks, explicit vectors) or ``"gpu"`` (grid-stride, work-group
        trees).
    vector_bytes : int
        Bytes of the vectors that kernels should use.
    light_vector_bytes : int
        The most of them in kernels that read several arrays side by side and calculate little;
        0 where these are like the others.
    work_items : int
        How many work-items a launch over large arrays has.
    work_group : int
        Work-items of a work-group.
    fp64, fp16, unified_memory, correctly_rounded_divide : bool
        Double and half arithmetic; memory shared with the host;
        ``CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT`` for float.
    saturating_casts : bool
        Whether a float past the range of an integer type may become another number than on x86-64,
        so that conversions ask first.
    max_alloc_nbytes, global_nbytes, local_nbytes, max_parameter_nbytes : int
        The largest buffer, all memory, local memory of a work-group, all arguments of a kernel,
        width of a pointer.
    max_work_group : int
        The most work-items that a work-group may have.
    item_words : int
        Registers of 32 bits that a work-item of a GPU may have without spilling.
    stream_nbytes : int
        A kernel on a CPU that reads and writes at least this much stores past the caches.
    operation_nbytes : float
        Bytes that move through memory in the time of one operation of weight 1, an element.
    launch_nbytes : int
        Bytes that move through memory in the time of a launch.
    inline_nbytes : int
        Bytes that would move in the time for which the calling thread does better to run a kernel
        itself, where it can (`runtime.drivers.inline`).
    tile_nbytes : int
        Local memory that a chain of kernels over neighbours may keep a tile of its values in; 0
        where each goes through memory.
    asks_ahead : bool
        Whether loops that read a large array once ask a CPU's caches for what comes next; no other
        device's.
    reads_past : bool
        Whether such loops read past the caches where they move `stream_nbytes` or more.
    sorts_slowly : bool
        Whether our passes over digits sort numbers of four and eight bytes in less time than NumPy
        does on this CPU.
    gather_weight : float
        A load at a computed position, in operations of weight 1.
    max_steps : int
        Operations of one kernel.
    unrolled_weight : float
        Operations of an element that has a short fold in it, up to which the fold is written out.
    tuned : str
        When the device was measured by ``bench --tune``; empty where these are defaults.
    costs : Costs
        What calls, launches and copies take, by which the policy decides who computes.
    whole_vectors : bool
        Whether vectors are loaded and stored through pointers to vectors, because ``vloadn`` and
        ``vstoren`` become several instructions.
    buffer_alignment : int
        Bytes that every buffer begins at a multiple of, so that vectors which lie at multiples of
        their size are loaded and stored as what they are; 1 where memory of the host's may be a
        buffer.
    unaligned_vectors : bool
        Whether ``vloadn`` and ``vstoren`` are single instructions wherever the elements lie.
    groups_progress : bool
        Whether a work-group that runs gets on while another one waits for it, and sees what
        others have stored by atomic operations.
    narrow_positions : bool
        Whether a computed position is made a number of 32 bits before it is added to an address,
        where those are enough.
    build_options : str
        What the compiler is told beside what settings and the other traits ask for.
    group_options : str
        What the compiler is told beside these, of kernels that are written for a GPU.
    builtins_read : str
        The macro by which the compiler's header of built-in functions knows that it was read: where
        it is defined, `runtime.drivers.builtins` declares what a program needs instead. Empty where
        there is no such header, or reading it takes no time.
    subgroups_read : str
        The same for a header of functions of sub-groups: a program that names none of them does not
        read it.
    loads_pages_late : bool
        Whether pages of a kernel's constants come into memory only when a load reads them, on a
        processor whose masked loads read nothing: `runtime.drivers.loaded_pages`.
    libraries : tuple of str
        Packages that make library calls on the device itself: ``"clblast"``, ``"vkfft"``.
    expressions : mapping
        (ufunc name, dtype name) -> OpenCL C expression that replaces the op table's here, for a
        builtin that is wrong.
    quirks : tuple of str
        Names of the quirks that were applied.
    """

    name: str = "plain CPU"
    vendor: str = ""
    platform: str = ""
    driver: str = ""
    version: str = "OpenCL 1.2"
    kind: str = "cpu"
    features: str = ""
    compute_units: int = 4
    schedule: str = "cpu"
    vector_bytes: int = 32
    light_vector_bytes: int = 0
    work_items: int = 4 * CHUNKS_PER_UNIT
    work_group: int = 1
    fp64: bool = True
    fp16: bool = False
    unified_memory: bool = True
    correctly_rounded_divide: bool = True
    saturating_casts: bool = False
    max_alloc_nbytes: int = 2 << 30
    global_nbytes: int = 8 << 30
    local_nbytes: int = 32 << 10
    max_parameter_nbytes: int = 1024
    max_work_group: int = 1024
    item_words: int = 128
    stream_nbytes: int = STREAM_NBYTES
    operation_nbytes: float = OPERATION_NBYTES
    launch_nbytes: int = LAUNCH_NBYTES
    inline_nbytes: int = INLINE_NBYTES
    tile_nbytes: int = 0
    asks_ahead: bool = True
    reads_past: bool = False
    sorts_slowly: bool = False
    gather_weight: float = GATHER_WEIGHT
    max_steps: int = MAX_STEPS
    unrolled_weight: float = UNROLLED_WEIGHT
    tuned: str = ""
    costs: Costs = COSTS
    whole_vectors: bool = False
    buffer_alignment: int = 1
    unaligned_vectors: bool = False
    groups_progress: bool = False
    narrow_positions: bool = False
    build_options: str = ""
    group_options: str = ""
    builtins_read: str = ""
    subgroups_read: str = ""
    loads_pages_late: bool = False
    libraries: tuple[str, ...] = ()
    # A mapping has no hash; traits that differ only here compare unequal and share a bucket, which
    # is allowed.
    expressions: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)
    quirks: tuple[str, ...] = ()


def cpu_vector_bytes(preferred_floats: int, native_floats: int) -> int:
    """Return the bytes of vectors that kernels should use on a CPU device.

    Either figure may be 1 where the compiler vectorises across work-items by itself (Intel's
    runtime: preferred 1, native 16), so the larger one is the width of the registers.
    """
    return min(max(4 * preferred_floats, 4 * native_floats, MIN_VECTOR_BYTES), MAX_VECTOR_BYTES)


def with_schedule(traits: DeviceTraits, schedule: str) -> DeviceTraits:
    """Return `traits` with the launch figures that belong to a schedule, whatever the device is.

    Parameters
    ----------
    traits : DeviceTraits
        A device.
    schedule : str
        ``"cpu"`` or ``"gpu"``.
    """
    units = max(traits.compute_units, 1)
    # A builtin of CPUs' compilers; NVIDIA's takes it for pointers that no kernel has.
    traits = replace(traits, asks_ahead=traits.asks_ahead and traits.kind == "cpu")
    if schedule == "gpu":
        group = min(GPU_WORK_GROUP, traits.max_work_group)
        return replace(
            traits,
            schedule="gpu",
            vector_bytes=GPU_VECTOR_BYTES,
            work_group=group,
            work_items=units * GROUPS_PER_UNIT * group,
            tile_nbytes=0,
            buffer_alignment=BUFFER_ALIGNMENT if traits.kind == "gpu" else 1,
        )
    return replace(
        traits,
        schedule="cpu",
        vector_bytes=max(traits.vector_bytes, MIN_VECTOR_BYTES),
        work_group=1,
        work_items=min(max(CHUNKS_PER_UNIT * units, MIN_CHUNKS), MAX_CHUNKS),
        buffer_alignment=1,
        tile_nbytes=min(traits.local_nbytes, REREAD_NBYTES),
    )


@frozen
class Quirk:
    """A fact that a driver gets wrong, and what stands in its place.

    Attributes
    ----------
    name : str
        A short name, listed by ``python -m clfuse doctor``.
    match : mapping
        Trait name -> regular expression (searched in a text, case ignored), or a value that must be
        equal. All must hold.
    change : mapping
        Trait name -> new value; for `expressions`, entries to add. A callable gets the traits and
        returns the value.
    reason : str
        What was seen.
    url : str
        Where it is written down: the driver's bug, the paragraph of the standard.
    """

    name: str
    match: Mapping[str, str | int | bool]
    change: Mapping[str, Any]
    reason: str
    url: str = ""

    def holds(self, traits: DeviceTraits) -> bool:
        """Return whether this quirk is about that device."""
        for trait, wanted in self.match.items():
            actual = getattr(traits, trait)
            if isinstance(wanted, str):
                if not re.search(wanted, str(actual), re.IGNORECASE):
                    return False
            elif actual != wanted:
                return False
        return True


def _value(change: Any, traits: DeviceTraits) -> Any:
    if isinstance(change, Callable):  # type: ignore[arg-type]
        return change(traits)
    return change


#: Every quirk, in the order in which they are applied.
QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "intel-cpu-rounds-division",
        {"platform": r"^Intel\(R\) OpenCL$", "kind": "cpu"},
        {"correctly_rounded_divide": True},
        "CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT is not reported, but the option is taken, and 4"
        " million random bit patterns divide and take roots exactly as in NumPy, scalar and"
        " float16 (2026.2)",
        "https://registry.khronos.org/OpenCL/specs/3.0-unified/html/OpenCL_API.html",
    ),
    Quirk(
        "amd-prefetches-itself",
        {"name": r"\bAMD\b", "kind": "cpu"},
        {"asks_ahead": False},
        "asking 8 KiB ahead took sums of 128 MB 10 to 15% more processor time (EPYC, PoCL), where"
        " Xeons take a third less",
    ),
    Quirk(
        "amd-reads-past-its-caches",
        {"name": r"\bAMD\b", "kind": "cpu"},
        {"reads_past": True},
        "lines that are asked for as wanted once go from the first cache nowhere: a += b + 3 * c"
        " over 48 MB each and more takes .9 to .95 of the time, .98 to 1.0 while others keep the"
        " memory busy, and what lay in the third cache stays there (EPYC, Zen 4, PoCL and Intel's"
        " runtime)",
    ),
    Quirk(
        "amd-streams-in-half-vectors",
        {"name": r"\bAMD\b", "kind": "cpu"},
        {"light_vector_bytes": 32},
        "with vectors of 64 bytes a += b + 3 * c takes 9 to 13%, a[:] = b + c 4 to 8% more"
        " processor time by turns with others (64 MB each), and no more when it runs alone; nor"
        " where one array is read; arithmetic wants all 64 (EPYC, Zen 4, PoCL and Intel's runtime)",
    ),
    Quirk(
        "amd-compresses-slowly",
        # Zen 5 has VP2INTERSECT, Zen 4 has not.
        {"name": r"\bAMD\b", "kind": "cpu", "vector_bytes": 64,
         "features": r"^(?!.*\bavx512_vp2intersect\b)"},
        {"sorts_slowly": True},
        "NumPy sorts with AVX-512's compressing stores, which Zen 4 takes apart: 2 million float32"
        " take 34 ns an element, on Xeons 5 and on Zen 5 3; our passes took 10 of processor time",
        "https://github.com/numpy/x86-simd-sort/issues/6",
    ),
    Quirk(
        "casts-saturate",
        {"kind": r"^(gpu|accelerator)$"},
        {"saturating_casts": True},
        "a float past the range of an integer type becomes the nearest number of that type, and NaN"
        " becomes 0 (PTX, GCN and Xe alike); OpenCL C leaves it open, and x86-64, whose numbers are"
        " NumPy's, gives the least number of an int or a long",
        "https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cvt",
    ),
    Quirk(
        "intel-gpus-have-few-registers",
        {"vendor": r"^Intel", "kind": "gpu"},
        {"item_words": 64},
        "a thread of 128 registers of 32 bytes (64 on a Data Center GPU) runs 16 or 32 work-items",
        "https://www.intel.com/content/www/us/en/docs/oneapi/optimization-guide-gpu/2024-1/small-register-mode-vs-large-register-mode.html",
    ),
    Quirk(
        "vectors-lie-anywhere",
        {"vendor": r"^(Intel|Advanced Micro Devices|AMD)", "kind": "gpu"},
        {"unaligned_vectors": True},
        "vload4 of floats becomes one load of 16 bytes (gfx90a, gfx1100, pvc, tgllp, dg2-g10; clang"
        " 15, ocloc), where NVIDIA's become four of 4, whose lanes lie apart",
        "https://llvm.org/docs/AMDGPUUsage.html",
    ),
    Quirk(
        "groups-get-on",
        {"vendor": r"^(NVIDIA|Advanced Micro Devices|AMD)", "kind": "gpu"},
        {"groups_progress": True},
        "a group that has begun stays where it is to its end, and volatile loads go past the caches"
        " that only some groups share; scans of CUB and rocPRIM rely on it",
        "https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan-decoupled-look-back",
    ),
    Quirk(
        "oclgrind-takes-no-wide-integers",
        {"platform": r"^Oclgrind"},
        {"build_options": "-cl-opt-disable"},
        "its optimiser writes the sum over a range of integers as a product of 65 bits, which its"
        " interpreter refuses; without it simulations take no longer (21.10)",
        "https://github.com/jrprice/Oclgrind/blob/v21.10/src/core/common.cpp",
    ),
    Quirk(
        "pocl-takes-vectors-apart",
        {"platform": r"^Portable Computing Language$", "kind": "cpu"},
        {"whole_vectors": True},
        "vload8 is made of halves of halves, and what is done with two of them is done by halves of"
        " halves, too: a matrix times a vector took 1.16, a stencil 1.14 times as long (doubles,"
        " 512 bit, 3.1). Intel's runtime makes one load of it, and without it joins work-items to"
        " vectors, 5 times slower",
        "https://github.com/pocl/pocl/blob/v3.1/lib/kernel/vload.cl",
    ),
    Quirk(
        "intel-cpu-loses-positions",
        {"platform": r"^Intel\(R\) OpenCL$", "kind": "cpu"},
        {"narrow_positions": True},
        "where an index of 64 bits also takes part in a maximum of numbers (`i > x[i] ? i : x[i]`),"
        " x[i] was any element, or a crash (2026.2, AVX-512); see the orders in"
        " `ops.table.FAULTY_BUILTINS`, too",
        "https://registry.khronos.org/OpenCL/specs/3.0-unified/html/OpenCL_C.html",
    ),
    Quirk(
        "intel-cpu-joins-work-items",
        {"platform": r"^Intel\(R\) OpenCL$", "kind": "cpu"},
        {"group_options": "-D__kernel=__attribute__((intel_vec_len_hint(1)))__kernel"},
        "where work-items of one vector went different ways, some stored what others were to store:"
        " `if (i < 1) { a[i] = k; ... } else { a[i] = k * k; ... }` (2026.2, AVX-512). Our kernels"
        " for CPUs have vectors of their own and few work-items",
        "https://registry.khronos.org/OpenCL/specs/3.0-unified/html/OpenCL_C.html",
    ),
    Quirk(
        "pocl-reads-a-header",
        {"platform": r"^Portable Computing Language$"},
        {"builtins_read": "_OPENCL_H_"},
        "every build reads 15,000 lines of declarations first: 128 ms of 150 for a new kernel, and"
        " 24 ms for one that is in PoCL's cache, which it asks when it has preprocessed them (3.1)",
        "https://github.com/pocl/pocl/blob/v3.1/lib/CL/pocl_llvm_build.cc",
    ),
    Quirk(
        "pocl-loads-pages-late",
        {"platform": r"^Portable Computing Language$", "kind": "cpu", "features": r"\bavx512vl\b"},
        {"loads_pages_late": True},
        "kernels are shared libraries, whose constants are loaded under masks; a load of no lane"
        " from a page that is not in memory takes hundreds of cycles each time: 17 ns an element"
        " of x == y (3.1, Zen 4)",
        "https://github.com/pocl/pocl/blob/v3.1/lib/CL/devices/common.c",
    ),
    Quirk(
        "intel-cpu-reads-a-header",
        {"platform": r"^Intel\(R\) OpenCL$", "kind": "cpu"},
        {"subgroups_read": "_OPENCL_CTH_"},
        "every build reads 900 declarations of functions of sub-groups: 16 ms of the 35 that the"
        " smallest kernel takes (2026.2)",
        "https://registry.khronos.org/OpenCL/extensions/intel/cl_intel_subgroups.html",
    ),
    *(
        Quirk(
            f"faulty-builtins-{number}",
            {"platform": faulty.platform},
            {"expressions": faulty.expressions},
            faulty.reason,
        )
        for number, faulty in enumerate(FAULTY_BUILTINS)
    ),
)


def apply_quirks(traits: DeviceTraits, quirks: tuple[Quirk, ...] = QUIRKS) -> DeviceTraits:
    """Return `traits` with every quirk applied that holds for the device.

    Examples
    --------
    >>> liar = Quirk("no half", {"platform": "shady"}, {"fp16": False}, "fp16 does not build")
    >>> apply_quirks(DeviceTraits(platform="Shady CL", fp16=True), (liar,)).fp16
    False
    """
    for quirk in quirks:
        if not quirk.holds(traits):
            continue
        changes = {name: _value(change, traits) for name, change in quirk.change.items()}
        if "expressions" in changes:
            changes["expressions"] = {**traits.expressions, **changes["expressions"]}
        traits = replace(traits, **changes, quirks=(*traits.quirks, quirk.name))
    return traits


def forced_to(
    traits: DeviceTraits,
    schedule: str,
    vector_bytes: int,
    work_items: int,
    stream_bytes: int,
    tile_bytes: int = -1,
) -> DeviceTraits:
    """What settings make of a device; an empty, ``"auto"`` or negative one leaves it as it is."""
    if schedule not in ("auto", traits.schedule):
        traits = with_schedule(traits, schedule)
    if vector_bytes:
        traits = replace(traits, vector_bytes=vector_bytes, light_vector_bytes=0)
    if work_items:
        traits = replace(traits, work_items=work_items)
    if stream_bytes >= 0:
        traits = replace(traits, stream_nbytes=stream_bytes)
    if tile_bytes >= 0 and traits.schedule == "cpu":
        traits = replace(traits, tile_nbytes=min(tile_bytes, traits.local_nbytes))
    return traits

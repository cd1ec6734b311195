"""The cost model's constants: how many nanoseconds NumPy, launches and transfers take on a machine.

The choice between NumPy on the host and kernels depends on these numbers alone. The defaults hold
for two cores of a Xeon and the CPU runtimes there. ``bench --tune`` measures some of them for a
device and keeps them with its traits.
"""

from __future__ import annotations

from typing import Final

from clfuse.dataclass import frozen

__all__ = ["COSTS", "Costs"]


@frozen
class Costs:
    """What NumPy takes on the host, and what a device takes besides the work of its kernels.

    addition_ns: NumPy, for an addition of two elements; rows of the op tables count their weights
        in these.
    call_ns: calling one of NumPy's functions, beside the work.
    node_ns: work that an operation may bring along and still be NumPy's: recording it takes longer.
    map_ns: seeing a buffer of a device that shares the host's memory.
    library_additions, gather_additions, blas_additions: additions for an element of a library's
        operands (a sort of some thousand elements), for an element that is chosen by its index, for
        a product of two elements and its addition by BLAS.
    loop_additions, fold_loop_additions: additions for each of NumPy's inner loops, of operations by
        elements and of folds: of three columns ``points - centre`` takes 4 to 5 ns a row beside its
        elements, a sum of rows 13.
    philox_ns: a draw of random bits without the compiled part: a hundred calls of NumPy's.
    cached_nbytes: up to this size NumPy's results stay in a processor's cache, and in memory that
        was used before.
    fresh_nbyte_ns: a byte of a larger result beside the calculation: 10 GB/s. Of float64 an
        addition took 1.2 to 1.8 ns an element then, of float32 0.5 to 1.5.
    interpreted_ns: an operation of a kernel in Python that NumPy calculates, with recording it: a
        step of a wave took 70 us of 14 operations, and 5 (PoCL) to 8 (Intel's runtime) as a launch.
    planning_ns: planning and rendering an operation, at least: 0.1 ms where operations fuse, 0.6 ms
        where each is a launch of its own, as in a recurrence over the rows of an array.
    building_ns: the driver's part for an operation that no earlier run has built: 0.5 to 1 ms
        (PoCL), where a round of 800 operations on 128 x 128 cells becomes seven kernels.
    function_building_ns: the same of an exponential, a sine and their kind, each of which is a
        hundred lines there: 25 to 50 ms of processor time (PoCL), 6 (`exp`) to 120 (`sin`) on
        Intel's runtime.
    program_ns: what the compiler takes for any program, however small: processor time (PoCL).
    opening_ns: looking for the devices, opening one, and importing what plans.
    wake_ns: waking a CPU's threads for a plan, and waiting for them: processor time, on all cores.
        One launch with its wait takes 60 to 90 us.
    launch_ns: each launch: in a row of 98, of 400 elements each, it was 10 (PoCL) to 20 us (Intel's
        runtime).
    inline_ns, inline_launch_ns: the same where the calling thread runs the kernel. The first has a
        part in it that NumPy's way has too: to have a plan again, to hand it to the driver, to see
        the result.
    copy_ns, copied_nbyte_ns: a small array's copy for a kernel, and each byte of it.
    kernel_share, inline_share: what kernels take of the time that NumPy takes for the elements, on
        all cores and on one. Those on one pass over memory less often, and calculate as NumPy does:
        exponentials of 20,000 took 1.1, twelve operations .4.
    """

    addition_ns: float = 0.4
    call_ns: float = 800.0
    node_ns: float = 400.0
    map_ns: float = 20_000.0
    library_additions: float = 30.0
    gather_additions: float = 12.0
    blas_additions: float = 0.1
    loop_additions: float = 12.0
    fold_loop_additions: float = 36.0
    philox_ns: float = 30_000.0
    cached_nbytes: int = 1 << 22
    fresh_nbyte_ns: float = 0.1
    interpreted_ns: float = 5_000.0
    planning_ns: float = 100_000.0
    building_ns: float = 500_000.0
    function_building_ns: float = 25_000_000.0
    program_ns: float = 100_000_000.0
    opening_ns: float = 200_000_000.0
    wake_ns: float = 45_000.0
    launch_ns: float = 15_000.0
    inline_ns: float = 25_000.0
    inline_launch_ns: float = 2_000.0
    copy_ns: float = 2_000.0
    copied_nbyte_ns: float = 0.1
    kernel_share: float = 0.25
    inline_share: float = 0.6


COSTS: Final = Costs()
"""For devices that were not measured, and for decisions before there is a device."""

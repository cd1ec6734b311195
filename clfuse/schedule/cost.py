"""The cost model of planning: bytes of global memory moved are the unit of every decision.

An operation costs as many bytes as move while it is computed, a launch as many as move meanwhile;
what a device takes for them are traits (`traits.DeviceTraits`), measured by ``bench --tune``.

    y = exp(x) * 2          again: 8 loaded + 9 operations       = 17 bytes an element
                            through memory: 8 stored + 8 loaded  = 16 bytes an element

Whether a value is stored does not depend on how many elements it has: the same program at another
length runs the same kernels, none has to be built. Sizes decide only how kernels are laid out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from clfuse.target.traits import DeviceTraits

from .records import Item, Kernel, Step

CACHED_READ_WEIGHT: Final = 3.0
"""A load that hits the cache, and the address for it, in additions."""

CACHED_READS_FROM_NOTHING: Final = 1.0
"""Bytes that travel from a cache for every byte of an element that could be made from nothing."""

VIEWED_SIZE: Final = 1.5
"""How much larger an array may be than a view of it that would go through memory, for the array to
do so instead: other views of it then need no memory of their own."""

MAX_LOOKED_AT: Final = 16
"""Operations that are looked through to see what computing a value from memory would cost."""

MAX_ARGUMENTS: Final = 48
"""Buffers of one kernel as the passes count them: 1,024 bytes of parameters (the least that OpenCL
1.2's full profile promises) hold this many with their offsets and strides. Numbers take less: a
polynomial of a hundred coefficients is one kernel."""

BUFFER_NBYTES: Final = 1024 / MAX_ARGUMENTS
"""Bytes of parameters that a buffer is counted with."""

MAX_UNROLLED: Final = 8
"""Elements of a fold that is written out as operations of an element-wise kernel; NumPy's own sums
are as simple up to here, so the bits are the same."""

MAX_UNROLLED_WINDOW: Final = 32
"""The same for windows that lie side by side in memory: their lanes load whole vectors, where a
loop over a few elements would fold lane by lane. Sums of floats are then added in pairs."""

MAX_VIEWED_WEIGHT: Final = 64.0
"""Operations of a value that several views of it compute anew, though no element twice: a kernel
has them once a view, and what is read through views of views doubles with each step."""

MAX_STORES: Final = 16
"""Results of one kernel: more streams than the caches' ways and write buffers follow."""

MAX_WRITES: Final = 8
"""Writes to boxes of one array that are read where they come from: each cuts what reads them in two
along an axis. Six faces of a cube, and two more."""

MAX_BOXES: Final = 64
"""Boxes that results are cut into for reading concatenations in place: each is a launch."""

MAX_PACKED_NBYTES: Final = 1 << 20
"""What is packed for a kernel should still be in the caches when the kernel reads it."""

MAX_MOVED: Final = 64
"""Operations that are looked through to see whether a value is only made for a later kernel."""

ELEMENT_NBYTES: Final = 8
"""Bytes of the elements that work is counted in where a kernel has several dtypes."""

ITEMS_PER_LAUNCH: Final = 4
"""Work-items that can be started for what a launch costs."""


def max_arguments(traits: DeviceTraits) -> int:
    """How many buffers one kernel may have on this device, if it has no numbers."""
    return max(4, min(MAX_ARGUMENTS, MAX_ARGUMENTS * traits.max_parameter_nbytes // 1024))


def weight_of(items: Iterable[Item]) -> float:
    """The operations of a body, in additions."""
    return sum([item.op.weight for item in items if isinstance(item, Step)])


def pass_weight(kernel: Kernel) -> float:
    """The operations that all passes over an element have, in additions."""
    return sum([weight_of(phase.body) for phase in kernel.phases])


def min_elements_per_item(traits: DeviceTraits, weight: float = 0.0) -> int:
    """Less work than this is not worth another work-item on a CPU: about 1 us of streaming, or of
    operations that are `weight` additions an element."""
    return max(1, min_elements_per_piece(traits, weight) // ITEMS_PER_LAUNCH)


def min_elements_per_piece(traits: DeviceTraits, weight: float = 0.0) -> int:
    """A reduction is not split finer than this: the second stage costs a launch."""
    nbytes = max(float(ELEMENT_NBYTES), weight * traits.operation_nbytes)
    return max(1, int(traits.launch_nbytes // nbytes))


class Cost:
    """Decides between computing a value again and storing it, for one device, where a kernel has
    at most `max_steps` operations (0: as many as the device's kernels have).

    `weight` is always the operations of an element in additions, `loaded` the bytes that they need
    from memory; `itemsize` those of the result.

    >>> cost = Cost(DeviceTraits())
    >>> cost.stores(9.0, 8.0, 8), cost.reason(9.0, 8.0, 8)
    (True, '17 bytes an element to compute it again, 16 through memory')
    """

    def __init__(self, traits: DeviceTraits, max_steps: int = 0) -> None:
        self._per_weight = traits.operation_nbytes
        self.gather_weight = traits.gather_weight
        self.max_steps = max_steps or traits.max_steps
        self.max_arguments = max_arguments(traits)
        self.max_parameter_nbytes = max(traits.max_parameter_nbytes, math.ceil(4 * BUFFER_NBYTES))
        self.max_unrolled_weight = traits.unrolled_weight

    def again(self, weight: float, loaded: float) -> float:
        """Bytes an element for computing it once more: what it loads, and its operations."""
        return loaded + weight * self._per_weight

    def through_memory(self, itemsize: int) -> float:
        """Bytes an element for storing it and loading it once."""
        return 2.0 * itemsize

    def stores(self, weight: float, loaded: float, itemsize: int) -> bool:
        """Whether a value that one more kernel reads goes through memory."""
        return self.again(weight, loaded) > self.through_memory(itemsize)

    def reason(self, weight: float, loaded: float, itemsize: int) -> str:
        """What `stores` has compared."""
        return (
            f"{_short(self.again(weight, loaded))} bytes an element to compute it again, "
            f"{_short(self.through_memory(itemsize))} through memory"
        )

    def _rereads(
        self, weight: float, loaded: float, itemsize: int, reads: float
    ) -> tuple[float, float]:
        cached = CACHED_READ_WEIGHT * self._per_weight
        if not loaded:
            cached += CACHED_READS_FROM_NOTHING * itemsize
        once = weight * self._per_weight
        return reads * once, once + self.through_memory(itemsize) + reads * cached

    def stores_for_reads(self, weight: float, loaded: float, itemsize: int, reads: float) -> bool:
        """Whether a value goes through memory that one kernel reads `reads` times an element.

        Computed again, its inputs are still in the cache, as it would be itself. Measured on two
        cores, in ms, computed again / stored, for 4 million float64: the difference of neighbours
        (2 reads) of 12 operations 2.0 / 3.4 (PoCL) and 4.8 / 6.8 (Intel), of 20 operations
        3.3 / 3.8 and 5.9 / 11.8; a sum of five neighbours of 8 operations 2.7 / 5.0 and 7.7 / 9.0,
        of 20 operations 6.7 / 4.9 and 16.1 / 9.9.
        """
        again, stored = self._rereads(weight, loaded, itemsize, reads)
        return reads > 1 and again > stored

    def reason_for_reads(self, weight: float, loaded: float, itemsize: int, reads: float) -> str:
        """What `stores_for_reads` has compared."""
        again, stored = self._rereads(weight, loaded, itemsize, reads)
        return (
            f"read {_short(reads)} times: {_short(again)} bytes an element to compute it every "
            f"time, {_short(stored)} through memory"
        )


def _short(number: float) -> str:
    if number < 1000:
        return f"{number:.3g}"
    return f"{number:.0f}" if number < 1e6 else f"{number:.1e}"

"""The geometry of a kernel on a device: merged dimensions, vector lanes, pieces and work-items.

CPU: few work-items, each takes a contiguous run of rows (or of one row's pieces) and walks it in
explicit vectors; a reduction with few results is split into pieces whose partial results a
second kernel folds.
GPU: a work-item takes a vector; a work-group folds one result (or one piece of it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from clfuse.dtypes import register_nbytes
from clfuse.ir.nodes import Op
from clfuse.ir.scalar_functions import Function
from clfuse.schedule import cost
from clfuse.schedule.records import (
    Access,
    Carried,
    Held,
    Item,
    Kernel,
    Load,
    Scalar,
    Step,
    Store,
)
from clfuse.target.traits import DeviceTraits

from . import local_tiles, map_ranges, tiles
from .positions import counted
from .vector_axis import PLACED, accesses, best_along, suits_vectors

MAX_LANES: Final = 16
"""The widest vector of OpenCL C."""

MAX_STREAMED_WEIGHT: Final = 8.0
"""Results of heavier steps are stored through the caches: there is nothing to win where arithmetic
takes the time, and a streaming store right behind a sine made it three times slower (PoCL)."""

SMALL_BODY: Final = 32
"""A body for less than this part of the elements is not worth the text of a vector loop."""

LONG_SUM: Final = 128
"""Additions to one accumulator (a lane of a vector) before it is folded into a compensated total;
NumPy's pairwise summation has blocks of the same length."""

SHORT_SUM: Final = 16
"""The same where lanes run along what is folded: NumPy's blocks have eight accumulators. Where the
magnitudes of what is added are far apart, 32 additions lost 1.2 times, 64 twice as much."""

MANY_ROWS: Final = 1024
"""Of fewer rows most work-items have only some: sums and squares are not made in one pass."""

_COMPLEX_FOLDS: Final = frozenset(["add", "multiply"])
"""Folds of complex numbers that are vectors; the others compare them one by one."""


LEAST_RESERVE: Final = 1 << 16
"""How far indices may go past the end at least: work-groups of a reduction are so many
(`MOST_GROUPS`), and vectors, tiles and what is asked for ahead are much shorter."""

MOST_GROUPS: Final = 1 << 16
"""Work-groups of a reduction along rows on a GPU, which take more results than one in turn."""

OVERSHOOT_OF_ITEM: Final = 128
"""How far a work-item of a CPU may be counted past the end: its pieces are whole unrolled vectors
(64 elements), its runs whole blocks of rows."""


_LOADED: Final = (Load, Carried, Held)


def begin(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """The kernel over as few dimensions as possible, for the traits' schedule."""
    kernel = merge_dimensions(kernel)
    kernel.schedule = traits.schedule
    kernel.wide_index = needs_wide_index(kernel, traits)
    return kernel


def finish_map(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """Fix the geometry of a kernel without folds."""
    kernel = _finish_map(begin(kernel, traits), traits)
    is_guarded = any(len(sister.stores) != len(kernel.stores) for sister in kernel.then)
    kernel.streams = (is_guarded or not kernel.then) and should_stream(kernel, traits)
    for sister in kernel.then:
        sister.streams = kernel.streams
    return kernel


def _kept_accesses(kernel: Kernel) -> Iterator[Access]:
    for phase in kernel.phases:
        for item in phase.epilogue:
            if isinstance(item, PLACED):
                yield item.access
        for store in phase.results:
            yield store.access


def _rearranged(
    kernel: Kernel,
    extents: tuple[int, ...],
    reduced: int,
    loop_access: Callable[[Access], Access],
    kept_access: Callable[[Access], Access],
    order: Sequence[int] = (),
) -> Kernel:
    """The same kernel, phases included, over other dimensions: those in `order`, of boxes."""

    def moved(box: Sequence[tuple[int, int]], rank: int) -> tuple[tuple[int, int], ...]:
        # A dimension that was joined with others has no seams: its boxes are as long as it is. So
        # are those of a new one.
        sides = [(0, extent) for extent in extents]
        for place, dim in enumerate(order[:rank]):
            if box[dim] != (0, kernel.extents[dim]):
                sides[place] = box[dim]
        return tuple(sides[:rank])

    return replace(
        kernel,
        where=tuple([moved(box, len(extents)) for box in kernel.where]),
        kept=moved(kernel.kept, len(extents) - reduced) if kernel.kept else (),
        extents=extents,
        reduced=reduced,
        body=with_accesses(kernel.body, loop_access),
        stores=[replace(store, access=loop_access(store.access)) for store in kernel.stores],
        epilogue=with_accesses(kernel.epilogue, kept_access),
        results=[replace(store, access=kept_access(store.access)) for store in kernel.results],
        then=[
            _rearranged(phase, extents, reduced, loop_access, kept_access, order)
            for phase in kernel.then
        ],
    )


def merge_dimensions(kernel: Kernel) -> Kernel:
    """Drop extents of 1 and join neighbours that every access walks as one dimension.

    Kept and reduced dimensions stay apart, and those with seams. Epilogue accesses only have the
    kept ones.
    """
    kept = len(kernel.extents) - kernel.reduced
    extents = list(kernel.extents)
    groups: list[list[int]] = []  # old dimensions that make a new one
    loop = list(dict.fromkeys(access.strides for access in accesses(kernel)))
    after = list(dict.fromkeys(access.strides for access in _kept_accesses(kernel)))
    seamed = {dim for access in accesses(kernel) for dim, _ in access.seams}
    if kernel.where:
        seamed.update([dim for dim in range(len(extents)) if kernel.seams(dim)])
    for dim in range(len(extents)):
        if extents[dim] == 1:
            continue
        if groups and (groups[-1][0] < kept) == (dim < kept):
            previous = groups[-1][-1]
            joins = (
                seamed.isdisjoint((previous, dim))
                and all(strides[previous] == strides[dim] * extents[dim] for strides in loop)
                and (
                    dim >= kept
                    or all(strides[previous] == strides[dim] * extents[dim] for strides in after)
                )
            )
            if joins:
                groups[-1].append(dim)
                continue
        groups.append([dim])
    new_extents = tuple([math.prod([extents[dim] for dim in group]) for group in groups])
    kept_groups = [group for group in groups if group[0] < kept]

    def loop_access(access: Access) -> Access:
        return access.over([group[-1] for group in groups])

    def kept_access(access: Access) -> Access:
        return access.over([group[-1] for group in kept_groups])

    reduced = len(groups) - len(kept_groups)
    order = [group[-1] for group in groups]
    return _rearranged(kernel, new_extents, reduced, loop_access, kept_access, order)


def with_accesses(items: list[Item], change: Any) -> list[Item]:
    """The items with `change` applied to every access."""
    return [
        replace(item, access=change(item.access)) if isinstance(item, PLACED) else item
        for item in items
    ]


def _reach(access: Access, extents: tuple[int, ...]) -> int:
    jumps = sum([abs(by) for _, _, by in access.jumps])
    return abs(access.offset) + jumps + sum(
        abs(stride) * max(extent - 1, 0)
        for stride, extent in zip(access.strides, extents, strict=False)
    )


def index_limit(traits: DeviceTraits, overshoot: int = 0) -> int:
    """From how many elements on an index needs 64 bits.

    Loops go past the end before they stop: on a GPU by as many elements as there are work-items,
    which is a million on large ones, on a CPU by what its pieces are rounded up by. `overshoot` is
    what a kernel of its own kind goes further.
    """
    items = round_up(traits.work_items, max(traits.work_group, 1))
    if traits.schedule == "cpu":
        items *= OVERSHOOT_OF_ITEM
    return 2**31 - max(LEAST_RESERVE, items, overshoot)


def needs_wide_index(kernel: Kernel, traits: DeviceTraits, overshoot: int = 0) -> bool:
    """Whether an index of this kernel may leave 32 bits: see `index_limit`."""
    limit = index_limit(traits, overshoot)
    if math.prod(kernel.extents) >= limit:
        return True
    return any(
        _reach(access, kernel.extents) >= limit
        for access in (*accesses(kernel), *_kept_accesses(kernel))
    )


def lane_nbytes(kernel: Kernel) -> int:
    """Bytes of the widest element that the loop's vectors hold; 0 when it cannot be vectors.

    What follows the folds of a row is done once, and not in vectors.

    So many complex numbers are side by side as there are vectors of eight bytes: their two parts
    are two vectors then, or halves of one.
    """
    loops_only = kernel.reduced > 0 and kernel.vector >= len(kernel.extents) - kernel.reduced
    dtypes = [dtype for phase in kernel.phases for dtype in _dtypes(phase, loops_only)]
    if any(dtype.kind == "c" for dtype in dtypes):
        return 8 if _has_complex_vectors(kernel) else 0
    return _widest(kernel, dtypes)


def element_nbytes(kernel: Kernel) -> int:
    """Bytes of the widest element that a kernel holds in registers."""
    return _widest(kernel, [dtype for phase in kernel.phases for dtype in _dtypes(phase)])


def _widest(kernel: Kernel, dtypes: list[np.dtype]) -> int:
    """The same, of which `dtypes` are those of all but positions."""
    widest = max([1, *[register_nbytes(dtype) for dtype in dtypes]])
    if any(counted(kernel, phase) for phase in kernel.phases):
        return max(widest, 8)
    return widest


def _dtypes(kernel: Kernel, loop_only: bool = False) -> list[np.dtype]:
    """Of all registers of one phase, or of its loop, each once: nearly all items share a few, and
    to compare dtypes takes longer than to compare whether they are the same object."""
    dtypes: dict[int, np.dtype] = {}
    operations: set[Op] = set()
    for items in (kernel.body, () if loop_only else kernel.epilogue):
        for item in items:
            if isinstance(item, Step):
                dtypes[id(item.dtype)] = item.dtype
                for dtype in item.dtypes:
                    dtypes[id(dtype)] = dtype
                operations.add(item.op)
            elif isinstance(item, _LOADED):
                dtypes[id(item.dtype)] = item.dtype
    for op in operations:
        dtypes.update([(id(dtype), dtype) for dtype in op.input_dtypes])
    for store in kernel.stores if loop_only else kernel.stores + kernel.results:
        dtypes[id(store.dtype)] = store.dtype
    for accumulator in kernel.accumulators:
        dtypes[id(accumulator.dtype)] = accumulator.dtype
    return list(dtypes.values())


def _has_complex_vectors(kernel: Kernel) -> bool:
    """Whether complex numbers are computed several at a time: on CPUs, in maps and sums."""
    if kernel.schedule == "gpu" or kernel.kind.scans or kernel.selection is not None:
        return False
    for phase in kernel.phases:
        for accumulator in phase.accumulators:
            if accumulator.dtype.kind == "c" and accumulator.name not in _COMPLEX_FOLDS:
                return False
        for item in phase.body + phase.epilogue:
            if isinstance(item, Step) and isinstance(item.op.row, Function):
                return False
    return True


def width_for(kernel: Kernel, traits: DeviceTraits, extent: int) -> int:
    """Vector lanes for a loop over `extent`."""
    nbytes = lane_nbytes(kernel)
    if nbytes == 0:
        return 1
    width = min(MAX_LANES, max(1, traits.vector_bytes // nbytes))
    if 0 < traits.light_vector_bytes < traits.vector_bytes and is_light(kernel, traits):
        width = min(width, max(1, traits.light_vector_bytes // nbytes))
    if kernel.kind.elementwise and len(kernel.extents) == 1:
        return width  # short arrays take the scalar loop: their length must not change the source
    while width > 1 and width > extent:
        width //= 2
    return width


def is_light(kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether it reads several arrays side by side, each once, and its arithmetic takes less than
    half of the time in which they come."""
    if kernel.then or not kernel.extents:
        return False
    is_long_fold = kernel.kind.folds and _moved(kernel) >= traits.stream_nbytes
    if not kernel.kind.elementwise and not is_long_fold:
        return False  # what comes from the caches comes sooner in whole vectors
    read: set[int] = set()
    nbytes, weight = sum([store.dtype.itemsize for store in kernel.stores]), 0.0
    weight += len(kernel.accumulators)
    for item in kernel.body:
        if isinstance(item, Step):
            weight += item.op.weight
        elif isinstance(item, Load):
            aside = item.position is not None or abs(item.access.strides[-1]) > 1
            if aside or item.value in read:
                return False
            # A vector that every row is multiplied with stays in the caches.
            if all(item.access.strides) or (kernel.kind.elementwise and item.access.strides[-1]):
                read.add(item.value)
                nbytes += item.dtype.itemsize
        elif not isinstance(item, Scalar):
            return False
    return len(read) > 1 and 2 * weight * traits.operation_nbytes <= nbytes


def last(kernel: Kernel, dim: int) -> Kernel:
    """The same kernel with kept dimension `dim` moved to be the last kept one."""
    kept = len(kernel.extents) - kernel.reduced
    order = [other for other in range(kept) if other != dim] + [dim]
    full = order + list(range(kept, len(kernel.extents)))

    def permuted(access: Access) -> Access:
        chosen = full if len(access.strides) == len(full) else order
        return access.over(chosen)

    extents = tuple([kernel.extents[other] for other in full])
    return _rearranged(kernel, extents, kernel.reduced, permuted, permuted, full)


def permute_map(kernel: Kernel, order: Sequence[int]) -> Kernel:
    """The same map with its dimensions in this order."""
    extents = tuple([kernel.extents[dim] for dim in order])

    def moved(access: Access) -> Access:
        return access.over(order)

    return _rearranged(kernel, extents, 0, moved, moved, order)


def _finish_map(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    lanes = max(1, traits.vector_bytes // max(1, lane_nbytes(kernel) or 64))
    if not kernel.extents:
        kernel = replace(
            kernel,
            extents=(1,),
            body=with_accesses(kernel.body, lambda access: Access(access.offset, (0,))),
            stores=[
                replace(store, access=Access(store.access.offset, (0,))) for store in kernel.stores
            ],
        )
    best = best_along(kernel, traits, lanes)
    if traits.schedule == "gpu":
        beside = local_tiles.beside(kernel, best)
    else:
        beside = tiles.beside(kernel, best, traits)
    if beside is not None:
        kernel = last(kernel, beside)
        best -= beside < best
    kernel = last(kernel, best)
    rank = len(kernel.extents)
    kernel.vector = rank - 1
    extent = kernel.extents[-1]
    kernel.width = width_for(kernel, traits, extent)
    if traits.schedule == "gpu":
        if beside is not None:
            local_tiles.lay(kernel, traits)
        if any(kernel.local_tile):
            kernel.width, kernel.work_group = 1, traits.work_group
            groups = min(local_tiles.tiles_of(kernel), MOST_GROUPS)
            kernel.work_items = groups * kernel.work_group
        else:
            map_ranges.lay(kernel, traits)
        for sister in kernel.then:
            _like_sister(sister, kernel)
        return kernel
    total = math.prod(kernel.extents)
    least = cost.min_elements_per_item(traits, cost.weight_of(kernel.body))
    items = max(1, min(traits.work_items, total // least))
    rows = total // max(extent, 1)
    pieces = 1 if rows >= items else -(-items // max(rows, 1))
    if beside is not None:
        pieces = max(pieces, -(-extent // tiles.LONGEST_PIECE))
        tiles.turn(kernel, lane_nbytes(kernel), _moved(kernel))
        kernel.tile_rows = tiles.rows_of(rows, pieces, items, tiles.most_rows(kernel))
    kernel.chunks = pieces
    kernel.chunk_length = round_up(-(-extent // pieces), kernel.width)
    units = pieces * (-(-rows // kernel.tile_rows) if kernel.tile_rows else rows)
    kernel.work_items = items_for(max(1, units), items)
    for sister in kernel.then:
        _like_sister(sister, kernel)
    return kernel


def _like_sister(kernel: Kernel, first: Kernel) -> None:
    """Give a body for some boxes the geometry of the first; vectors where they are worth it."""
    kernel.schedule, kernel.vector = first.schedule, first.vector
    kernel.wide_index, kernel.work_group = first.wide_index, first.work_group
    kernel.lead = first.lead
    elements = sum([math.prod([high - low for low, high in box]) for box in kernel.where])
    longest = max([box[first.vector][1] - box[first.vector][0] for box in kernel.where])
    is_small = elements * SMALL_BODY < math.prod(kernel.extents)
    kernel.width = 1 if is_small or longest < first.width else first.width


def should_stream(kernel: Kernel, traits: DeviceTraits) -> bool:
    """Whether results go past the caches: of CPU kernels that wait for memory, on large arrays."""
    items = [item for phase in kernel.phases for item in phase.body]
    heaviest = max([step.op.weight for step in items if isinstance(step, Step)], default=0.0)
    return (
        kernel.schedule == "cpu"
        and heaviest <= MAX_STREAMED_WEIGHT
        and _moved(kernel) >= traits.stream_nbytes
    )


def rows_are_aligned(kernel: Kernel, part: Kernel) -> bool:
    """Whether each row that a part stores begins with a whole vector if its array does."""
    return not any(
        place % kernel.width
        for store in part.stores
        for place in (
            store.access.offset, *[stride for stride in store.access.strides if stride != 1],
        )
    )


def _moved(kernel: Kernel) -> int:
    """Bytes that the loops of a kernel read and write, every array once."""
    moved: dict[int, int] = {}
    for item in [item for phase in kernel.phases for item in [*phase.body, *phase.stores]]:
        if isinstance(item, Load | Store):
            walked = zip(kernel.extents, item.access.strides, strict=True)
            elements = math.prod([extent for extent, stride in walked if stride])
            nbytes = elements * item.dtype.itemsize
            moved[item.value] = max(moved.get(item.value, 0), nbytes)
    return sum(moved.values())


def round_up(count: int, multiple: int) -> int:
    """The least multiple of `multiple` from `count` up."""
    return -(-count // multiple) * multiple


def orient_reduction(kernel: Kernel, traits: DeviceTraits) -> Kernel:
    """A reduction with its dimensions in the order of the loops, and its `vector` dimension."""
    if kernel.reduced == 0:  # only extents of 1 are reduced
        kernel = _rearranged(
            kernel,
            (*kernel.extents, 1),
            1,
            lambda access: access._replace(strides=(*access.strides, 0)),
            lambda access: access,
            range(len(kernel.extents)),
        )
    kept = len(kernel.extents) - kernel.reduced
    lanes = max(1, traits.vector_bytes // max(1, lane_nbytes(kernel) or 64))
    if traits.schedule == "gpu":
        lanes = 1  # few columns are side by side in a group with the rows that follow
    along = len(kernel.extents) - 1
    if kept:
        candidates = [*range(kept), *range(kept, len(kernel.extents))]
        if traits.schedule == "cpu":  # strips of columns do not lie across seams
            seamed = {dim for access in accesses(kernel) for dim, _ in access.seams}
            candidates = [dim for dim in candidates if dim >= kept or dim not in seamed]
        along = max(candidates, key=lambda dim: (suits_vectors(kernel, dim, lanes), dim))
    if along < kept:
        kernel = last(kernel, along)
        kernel.vector = kept - 1
    else:
        kernel = _reduced_last(kernel, along)
        kernel.vector = len(kernel.extents) - 1
    return kernel


def _reduced_last(kernel: Kernel, dim: int) -> Kernel:
    """The same kernel with reduced dimension `dim` innermost."""
    kept = len(kernel.extents) - kernel.reduced
    order = [
        *range(kept),
        *[other for other in range(kept, len(kernel.extents)) if other != dim],
        dim,
    ]

    def permuted(access: Access) -> Access:
        return access.over(order)

    extents = tuple([kernel.extents[other] for other in order])
    return _rearranged(kernel, extents, kernel.reduced, permuted, lambda access: access, order)


def pieces_of(kernel: Kernel, traits: DeviceTraits, groups: int, length: int) -> int:
    """Into how many pieces each fold is split, so that the device has enough to do."""
    lanes = 1
    if kernel.vector < len(kernel.extents) - kernel.reduced:
        lanes = min(kernel.width * kernel.strips, kernel.extents[kernel.vector])
    smallest = max(1, cost.min_elements_per_piece(traits, cost.pass_weight(kernel)) // lanes)
    if traits.schedule == "gpu":
        wanted = max(1, traits.work_items // max(traits.work_group, 1))
        smallest = max(traits.work_group * 4, 1)
    else:
        wanted = traits.work_items
    if groups * 2 > wanted:
        return 1
    longest = max(kernel.extents[len(kernel.extents) - kernel.reduced :], default=1)
    return max(1, min(-(-wanted // max(groups, 1)), length // smallest, longest))


def count_items(kernel: Kernel, traits: DeviceTraits, groups: int, length: int) -> None:
    """Fix the work-items of a kernel that walks `groups` rows of `length`, each in its pieces."""
    units = max(1, groups * kernel.chunks)
    if traits.schedule == "gpu":
        if kernel.vector < len(kernel.extents) - kernel.reduced:
            kernel.work_items = round_up(min(units, traits.work_items), kernel.work_group)
        else:
            kernel.work_items = min(units, MOST_GROUPS) * kernel.work_group
        return
    work = groups * max(kernel.width, 1) * kernel.strips * length
    most = work // cost.min_elements_per_item(traits, cost.pass_weight(kernel))
    kernel.work_items = items_for(units, max(1, min(traits.work_items, most)))


def items_for(units: int, most: int) -> int:
    """Work-items of a CPU for so many units, of which each takes as many in a row: no more than
    have work.

    Of 66 units 64 work-items would take two each, and the last 31 none. Runtimes deal work-items to
    their threads in long runs: one thread would have nearly all of the work.
    """
    run = -(-units // min(units, most))
    return -(-units // run)


def is_long(kernel: Kernel, length: int, *, passes: int = 1) -> bool:
    """Whether a plain running sum would lose more than NumPy's pairwise one.

    Many rows that are passed over again have plain sums for longer: only of those are the moments
    made in one pass (`codegen.kinds.moments`).
    """
    if not any(
        accumulator.name == "add" and accumulator.dtype.kind in "fc"
        for accumulator in kernel.accumulators
    ):
        return False
    across_results = kernel.vector < len(kernel.extents) - kernel.reduced
    lanes = 1 if across_results else kernel.width * kernel.unroll
    if kernel.schedule == "gpu":
        lanes = max(kernel.fold_items or (1 if across_results else kernel.work_group), 1)
    along_lanes = lanes > 1 and not (kernel.schedule == "gpu" and across_results)
    if kernel.schedule == "cpu" and along_lanes and passes > 1:
        along_lanes = math.prod(kernel.extents[: -kernel.reduced]) < MANY_ROWS
    return length // lanes > (SHORT_SUM if along_lanes else LONG_SUM)


def stored_nbytes(stores: list[Store], extents: tuple[int, ...]) -> int:
    """Bytes that `stores` write over `extents`."""
    return sum(math.prod(extents) * store.dtype.itemsize for store in stores)

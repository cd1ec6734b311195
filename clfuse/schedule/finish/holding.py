"""Row programs on a GPU whose elements stay in registers from one phase to the next.

    softmax of rows:   a  ->  maximum;   exp(a - maximum), stored  ->  sum;   loaded again, divided
    held:              h0 = a  ->  maximum;   h1 = exp(h0 - maximum)  ->  sum;   h1 divided

In each phase a work-item takes the same elements of a result (`shape.groups`). So it loads an
element once, and what only later phases read is not stored at all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.dtypes import register_nbytes
from clfuse.schedule.memory.buffers import reads_of
from clfuse.schedule.records import Access, Held, Item, Kernel, Load
from clfuse.schedule.shape.groups import MOST_HELD, folding_items

HELD_NBYTES: Final = 128
"""Registers of a work-item for such elements: half of what each has on an H100 where a
multiprocessor has 1,024 of them."""

Place = tuple[int, np.dtype, Access]


def hold(kernel: Kernel) -> Kernel:
    """The kernel with loads of what an earlier phase has had as registers; itself where nothing is
    loaded again, or there are too few registers."""
    if kernel.schedule != "gpu" or kernel.where or not kernel.then or kernel.chunk >= 0:
        return kernel
    kept = len(kernel.extents) - kernel.reduced
    count = -(-math.prod(kernel.extents[kept:]) // folding_items(kernel))
    if count > MOST_HELD:
        return kernel
    bodies, lives = _bodies(kernel)
    nbytes = max(_living(lives, number) for number in range(len(bodies)))
    if not lives or count * nbytes > HELD_NBYTES:
        return kernel
    first, *others = [
        replace(phase, body=body, then=[])
        for phase, body in zip(kernel.phases, bodies, strict=True)
    ]
    first.then = others
    loaded = {value for value, _ in reads_of(first)}
    dropped = kernel.inner - loaded
    for number, phase in enumerate(first.phases):
        phase.held = count
        phase.lent = frozenset([source for source, life in lives.items() if life[0] == number])
        phase.stores = [store for store in phase.stores if store.value not in dropped]
    first.dropped = dropped
    return first


def _bodies(kernel: Kernel) -> tuple[list[list[Item]], dict[int, tuple[int, int, int]]]:
    """The phases' bodies with what is held, and for each held register its first and last phase,
    and its bytes."""
    known: dict[Place, int] = {}
    made_in: dict[int, int] = {}
    lives: dict[int, tuple[int, int, int]] = {}
    bodies: list[list[Item]] = []
    for number, phase in enumerate(kernel.phases):
        body: list[Item] = []
        for item in phase.body:
            if isinstance(item, Load) and _is_own(item):
                place = (item.value, item.dtype, item.access)
                source = known.setdefault(place, item.var)
                if source != item.var and made_in[source] < number:
                    begin = made_in[source]
                    lives[source] = (begin, number, register_nbytes(item.dtype))
                    body.append(Held(item.var, source, item.dtype))
                    continue
                made_in.setdefault(source, number)
            body.append(item)
        for store in phase.stores:
            known = {place: var for place, var in known.items() if place[0] != store.value}
            if store.dtype is store.var_dtype:
                known[store.value, store.dtype, store.access] = store.var
                made_in.setdefault(store.var, number)
        bodies.append(body)
    return bodies, lives


def _is_own(load: Load) -> bool:
    """Whether a load is of an element of its own in each iteration."""
    plain = load.position is None and load.other is None and not load.turned
    return plain and all(load.access.strides) and not load.access.seams


def _living(lives: dict[int, tuple[int, int, int]], phase: int) -> int:
    """Bytes an element of all registers that a phase makes or finds, and a later one reads."""
    return sum([nbytes for begin, end, nbytes in lives.values() if begin <= phase < end])

"""Scans along rows on a GPU, tile by tile through local memory, as the contents of their template.

What a tile of 16 elements is, of 4 work-items with 4 elements each:

    loaded       0 1 2 3 | 0 1 2 3 | ...    neighbours by neighbours, as memory hands them out
    scanned      0 0 0 0 | 1 1 1 1 | ...    a work-item the four that follow one another
    folds        the work-items' last ones, by the group
    stored       0 1 2 3 | 0 1 2 3 | ...

What comes before a tile is known to the group that walks the row. In one pass over a long row every
tile has a group of its own, which looks back (Merrill and Garland, "Single-pass Parallel Prefix
Scan with Decoupled Look-back", 2016): each leaves the fold of its tile in memory, and then that of
all up to it. A group finds the nearest tile before it of which the latter is there, and adds to it
the folds of those between, in order: so the result is the same on every run, also of floats. A
group waits for smaller tickets only, whose groups run already.

A word in memory has 16 bits of a fold beside the number 1, which says that they are there: the
order in which a device shows its stores to others does not matter.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.components import LANES
from clfuse.codegen.lines.expressions import Expressions
from clfuse.codegen.lines.loops import before, chunk_arguments, decode, mask_lanes
from clfuse.schedule.dataflow import needed_items, prefixes
from clfuse.schedule.lower.scan_tiles import (
    TICKET_WORDS,
    fold_nbytes,
    pad_of,
    padded,
    words_of,
)
from clfuse.schedule.records import Kernel

from .scan_loops import PrefixFold, folds_of

WORD: Final = np.dtype(np.uint32)


def fill(kernel: Kernel, body: Body, k: Any) -> str:
    """Fill the context of the template."""
    arguments, axis = body.arguments, kernel.vector
    single = body.writer(1)
    folds = folds_of(kernel, mask_lanes)
    every = list(folds.values())
    k.row_extents = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(axis)]
    k.extent = arguments.integer(f"n{axis}", kernel.extents[axis])
    k.group, k.each = kernel.work_group, kernel.unroll
    chunk_arguments(kernel, body, k)
    k.decode = decode(body, list(range(axis)), "row")
    k.looks_back = kernel.looks_back
    k.declared = [fold.neutral_operand(single) for fold in every]
    k.folds = [_fold(kernel, fold, single) for fold in every]
    if kernel.looks_back:
        _look_back(kernel, body, every, k)
    elif kernel.chunk >= 0:
        for fold, made in zip(every, k.folds, strict=True):
            made.partial = fold.partial(body, "row * chunks + before")
    bodies = [body, *[body.in_boxes(sister) for sister in kernel.then]]
    k.bodies = [_body(each, folds) for each in bodies]
    k.bodies[-1].test = ""  # what is left
    k.has_seams = bool(body.seams)
    k.is_plain = len(bodies) == 1 and not body.seams
    return "scan_tiles.cl.mako"


def _fold(kernel: Kernel, fold: PrefixFold, writer: Expressions) -> SimpleNamespace:
    nbytes = fold_nbytes(fold.dtype)
    fold.combined(writer, "", "")  # collects what must stand above the kernel
    return SimpleNamespace(
        number=fold.number,
        type=fold.fold.type_at(writer),
        identity=fold.identity(writer),
        elements=padded(kernel.work_group * kernel.unroll, nbytes),
        pad=pad_of(nbytes),
        combined=lambda one, other: fold.combined(writer, one, other),
        partial="",
    )


def _body(body: Body, folds: dict[int, PrefixFold]) -> SimpleNamespace:
    """What is done with an element before the scan and after it, which both parts make anew."""
    kernel, single = body.kernel, body.writer(1)
    b = SimpleNamespace(test=body.is_within(kernel.where))
    b.before, uniform = before(body, kernel)
    _, inside = body.split(kernel.body)
    own = prefixes(inside)
    registers = dict(uniform)
    b.first = body.lines(needed_items(inside, {item.operand for item in own}), 1, registers)
    b.first += [folds[item.var].taken(single, registers, item) for item in own]
    registers = dict(uniform)
    b.after = []
    for item in own:
        fold = folds[item.var]
        registers[item.var] = fold.register(f"r{item.var}")
        kind = fold.fold.type_at(single)
        b.after.append(f"const {kind} r{item.var} = s{fold.number}[place + place / "
                       f"{pad_of(fold_nbytes(fold.dtype))}];")
    stored = {store.var for store in kernel.stores}
    rest = needed_items([item for item in inside if item not in own], stored)
    b.after += body.lines(rest, 1, registers)
    for store in kernel.stores:
        b.after += body.store(store, 1, registers[store.var])
    b.groups = body.group_lines
    return b


def _look_back(kernel: Kernel, body: Body, folds: list[PrefixFold], k: Any) -> None:
    """The words that groups leave for each other, and how to read and write them."""
    place = str(TICKET_WORDS)
    for fold, made in zip(folds, k.folds, strict=True):
        assert fold.prefix.partial is not None
        k.state = body.arguments.buffer(fold.prefix.partial, WORD, written=True)
        count = words_of(fold.dtype)
        made.words = count
        made.own, made.upto = (
            [f"{k.state} + {place} + {first + part} * units" for part in range(count)]
            for first in (0, count)
        )
        made.parts = [_part(fold, part, count) for part in range(count)]
        made.whole = _whole(fold, made.type, [f"w{part}" for part in range(count)])
        place += f" + {2 * count} * units"


def _part(fold: PrefixFold, part: int, count: int) -> str:
    """16 bits of the fold ``value``."""
    nbytes = fold_nbytes(fold.dtype)
    if nbytes == 1:
        return "as_uchar(value)"
    if count == 1:
        return "as_ushort(value)"
    return f"as_ushort{count}(value).s{LANES[part]}"


def _whole(fold: PrefixFold, kind: str, words: list[str]) -> str:
    """The fold of these words."""
    if fold_nbytes(fold.dtype) == 1:
        return f"as_{kind}((uchar)({words[0]}))"
    if len(words) == 1:
        return f"as_{kind}((ushort)({words[0]}))"
    parts = ", ".join([f"(ushort)({word})" for word in words])
    return f"as_{kind}((ushort{len(words)})({parts}))"

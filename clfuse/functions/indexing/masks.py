"""Boolean masks: selection, replacement, and the positions of true elements.

How many elements a mask selects is a shape, so it must be known at the call. The mask is counted
piece by piece, with one wait, and the mask's node keeps the counts. The selection itself is
recorded like everything else; but NumPy finds the true elements at the call where there are up to
`FEW`, and takes what a mask selects where that is little (`LITTLE`). A write through a mask is a
selection between old and new elements by the mask itself wherever the new elements lie in the
places of the old ones: scalars, and expressions of elements that the same mask selected
(``a[m] += b[m]``). Only other vectors are spread by the counts.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import NotNative, adopt_host_array, as_handle, from_host
from clfuse.arrays.expressions import choose, combine, convert
from clfuse.arrays.handle import Handle, fresh, node_of, write
from clfuse.arrays.host_array import is_seen_here
from clfuse.arrays.promotion import BOOL
from clfuse.arrays.views import normalized_axis, reshape_view, transpose_view
from clfuse.dispatch.host_call import native
from clfuse.engine.evaluate import evaluate_nodes, lock
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.value_ranges import known_within
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import HOST_NBYTES, SELECTED, HostBuffer

PIECES: Final = 256
"""Pieces that a mask is counted in on a CPU: more than it has work-items."""

LEAST_PIECE: Final = 4096
"""Elements of a piece at least: about 1 us of streaming on a CPU."""

CHEAP_STEPS: Final = 3
"""Operations of a mask that is computed again instead of stored when it selects."""

MOST_STEPS: Final = 64
"""Operations on selected elements that are followed back to the elements' own places."""


FEW: Final = 1 << 18
"""Elements of a mask up to which NumPy finds the true ones: at 2 GB/s in 0.1 ms, which the launches
that count and number them take on PoCL."""


LITTLE: Final = 128
"""Parts of a mask, of which NumPy takes one at the call if a mask selects no more. What comes next
is as little, while kernels that do not pack it look at all elements in every step."""

MOST_LOOKED_AT: Final = 1 << 20
"""Elements of such a mask: its bytes stay in a cache while they are counted and looked through, at
10 GB/s."""


class Tally:
    """How many elements a mask selects, in all and before each of its pieces.

    piece (int): elements of a piece.
    count (int)
    places (numpy.ndarray or None): where the mask is true, if NumPy has looked.
    """

    __slots__ = ("_before", "_starts", "count", "piece", "places")

    def __init__(self, piece: int, counts: np.ndarray) -> None:
        self.piece = piece
        self._before = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._starts: dict[int, Node] = {}
        self.places: np.ndarray | None = None
        self.count = int(self._before[-1])

    def starts(self, repeats: int) -> Node:
        """Elements selected before each piece, where every element of the mask counts so often."""
        if repeats not in self._starts:
            self._starts[repeats] = node_of(from_host(self._before * repeats))
        return self._starts[repeats]


def tally_of(mask: Node) -> Tally:
    """Count a mask of any shape and at least two elements; waits for the counts, once a mask."""
    known: Tally | None = getattr(mask, "tally", None)
    return _count(mask, build.reshape(mask, (math.prod(mask.shape),))) if known is None else known


def _count(mask: Node, flat: Node, *, stores: bool = False) -> Tally:
    """Count a mask, of which `flat` has the elements in a row; whether it `stores` these, though
    the mask does not keep them."""
    (size,) = flat.shape
    piece = max(LEAST_PIECE, -(-size // _pieces()))
    counts = build.counts(flat, piece)
    is_costly = _is_costly(flat)
    evaluate_nodes([counts, flat] if is_costly or stores else [counts])
    if flat.buffer is not None and (is_costly or not stores):
        mask.buffer, mask.inputs = flat.buffer.of(mask.dtype, mask.shape), ()  # the same bytes
    # It must not refer to the mask: a cycle would keep the mask's buffer.
    tally = mask.tally = Tally(piece, stored_view(counts))
    return tally


def _pieces() -> int:
    """Pieces that the current device counts a mask in: each keeps a work-group of a GPU busy."""
    traits = current_device().assumed_traits
    if traits.schedule == "cpu":
        return PIECES
    return max(PIECES, traits.work_items // traits.work_group)


def _is_costly(mask: Node) -> bool:
    """Whether a mask is better stored when it is counted than computed again to select."""
    steps = 0
    stack = [mask]
    while stack:
        node = stack.pop()
        kind = node.op.kind
        if node.buffer is not None or kind is Kind.CONSTANT or kind is Kind.IOTA:
            continue
        if kind is not Kind.MAP and kind is not Kind.VIEW:
            return True
        steps += kind is Kind.MAP
        if steps > CHEAP_STEPS:
            return True
        stack.extend(node.inputs)
    return False


def _spread(mask: Node, rest: tuple[int, ...]) -> Node:
    """A mask of n elements as (n * m,), for n elements of shape `rest`, of m elements each."""
    repeats, size = math.prod(rest), math.prod(mask.shape)
    mask = build.reshape(mask, (size,))
    if repeats == 1:
        return mask
    return build.reshape(build.view(mask, (size, repeats), 0, (1, 0)), (size * repeats,))


# -- reading --------------------------------------------------------------------------------------


def select_by_mask(value: Node, mask: Node) -> Node:
    """The elements of `value` where `mask`, of its leading axes, is true: (count, *other axes)."""
    rest = value.shape[len(mask.shape) :]
    repeats = math.prod(rest)
    size = math.prod(mask.shape)
    if size < 2:
        count = int(np.count_nonzero(stored_view(mask)))
    else:
        little = _little(value, mask, repeats)
        if little is not None:
            return little
        tally = tally_of(mask)
        count = tally.count
    shape = (count, *rest)
    if count * repeats == 0:
        return build.full(value.dtype.type(0), shape)
    if count == size:
        return build.reshape(value, shape)
    flat = build.reshape(value, (size * repeats,))
    starts = tally.starts(repeats)
    spread = _spread(mask, rest)
    made = build.compact(spread, flat, starts, count * repeats, tally.piece * repeats)
    return build.reshape(made, shape)


def _little(value: Node, mask: Node, repeats: int) -> Node | None:
    """What a mask selects of an array where NumPy sees it, if that is little; the mask is counted
    then.

    An array that is still recorded is computed: with all masks that follow it would be as often.
    """
    places = None
    if value.buffer is not None or math.prod(value.shape) <= MOST_LOOKED_AT:
        places = little_places(mask, repeats)
    if places is None or len(places) == 0:
        return None
    if value.op.kind is Kind.IOTA:
        return known_within(node_of(from_host(places.copy())), math.prod(mask.shape))
    rest = value.shape[len(mask.shape) :]
    found = stored_view(value).reshape(math.prod(mask.shape), *rest).take(places, 0)
    made = node_of(from_host(found))
    if type(made.buffer) is HostBuffer:
        made.buffer.use = SELECTED
    return made


def little_places(mask: Node, repeats: int) -> np.ndarray | None:
    """Where a mask is true, in C order, if it selects little, each element of it `repeats` times,
    and NumPy sees it; None where not."""
    size = math.prod(mask.shape)
    if not 1 < size <= MOST_LOOKED_AT or not is_seen_here(current_device()):
        return None
    tally: Tally | None = getattr(mask, "tally", None)
    if tally is None:
        flat = _again(build.reshape(mask, (size,)))
        tally = _count(mask, flat, stores=True)
        if LITTLE * tally.count <= size:
            tally.places = np.flatnonzero(stored_view(flat))
    return tally.places if LITTLE * tally.count * repeats <= size else None


def _again(mask: Node) -> Node:
    """The same mask, to be stored for nobody else; one that is stored as it is."""
    if mask.buffer is not None or mask.op.kind is not Kind.MAP:
        return mask
    return Node(mask.op, mask.inputs, mask.shape, mask.dtype, mask.param)


def positions(mask: Node) -> Node:
    """Where `mask` is true, in C order of its elements: (count,) int64."""
    size = math.prod(mask.shape)
    return select_by_mask(build.iota(size), build.reshape(mask, (size,)))


def coordinates(handle: Handle) -> list[Node]:
    """Where elements are not zero: one node (count,) an axis."""
    shape = handle._shape
    if not shape:
        raise NotNative("of a 0-d array")
    mask = convert(node_of(handle), BOOL)
    if _is_looked_through(math.prod(shape)):
        columns = stored_view(mask).nonzero()
        return [
            known_within(_adopted(column), extent)
            for column, extent in zip(columns, shape, strict=True)
        ]
    if len(shape) == 1:
        return [known_within(positions(mask), shape[0])]
    flat = positions(mask)
    found: list[Node] = []
    step = math.prod(shape)
    for extent in shape:
        step //= max(extent, 1)
        node = flat
        if step > 1:
            node = combine(np.floor_divide, node, build.constant(np.int64(step)))
        if found:  # the first axis has nothing before it
            node = combine(np.remainder, node, build.constant(np.int64(max(extent, 1))))
        found.append(known_within(node, extent))
    return found


def _is_looked_through(size: int) -> bool:
    """Whether NumPy finds the true elements of so many, where they lie."""
    return size <= FEW and is_seen_here(current_device())


def _adopted(column: np.ndarray) -> Node:
    """Positions along an axis, of those that NumPy has found along all of them."""
    if len(column) == 0 or not column.flags.c_contiguous or column.nbytes <= HOST_NBYTES:
        column = column.copy()  # so that nobody else has its memory
    return node_of(adopt_host_array(column, is_given=not column.flags.owndata))


@native(np.nonzero)
def nonzero(a: Any) -> Any:
    """Where elements are not zero: a vector of indices for every axis."""
    return tuple([fresh(node) for node in coordinates(as_handle(a))])


@native(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """Where elements are not zero, counted in C order."""
    handle = as_handle(a)
    return nonzero(reshape_view(handle, (math.prod(handle._shape),)))[0]


@native(np.argwhere)
def argwhere(a: Any) -> Any:
    """Where elements are not zero: an index in every row."""
    found = coordinates(as_handle(a))
    rows = [build.reshape(node, (1, *node.shape)) for node in found]
    return transpose_view(fresh(build.concatenate(rows, 0)), None)


@native(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where a condition is not zero."""
    mask, handle = as_handle(condition), as_handle(arr)
    size = math.prod(handle._shape)
    if math.prod(mask._shape) != size:
        raise NotNative("of another size than the condition")
    chosen = build.reshape(convert(node_of(mask), BOOL), (size,))
    return fresh(select_by_mask(build.reshape(node_of(handle), (size,)), chosen))


@native(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices along an axis where a condition is not zero."""
    if out is not None:
        raise NotNative("into an array")
    mask, handle = as_handle(condition), as_handle(a)
    if axis is None:
        handle, axis = reshape_view(handle, (math.prod(handle._shape),)), 0
    elif not handle._shape:
        handle = reshape_view(handle, (1,))
    place = normalized_axis(axis, len(handle._shape))
    (extent, *more) = mask._shape or (0, 0)
    if more or extent != handle._shape[place]:
        raise NotNative("by a condition of another length")
    order = (place, *[other for other in range(len(handle._shape)) if other != place])
    chosen = select_by_mask(node_of(transpose_view(handle, order)), convert(node_of(mask), BOOL))
    back = tuple([order.index(other) for other in range(len(order))])
    return fresh(node_of(transpose_view(fresh(chosen), back)))


def is_of_selected(node: Node) -> bool:
    """Whether a node is an expression of what masks select, and of numbers: when it is folded,
    nothing has to be packed (`schedule.rewrite.masked_folds`)."""
    size = math.prod(node.shape)
    seen = {node}
    stack = [node]
    selects = False
    while stack:
        below = stack.pop()
        kind = below.op.kind
        if below.buffer is not None or len(seen) > MOST_STEPS:
            return False
        if kind is Kind.COMPACT:
            selects = True
            continue
        whole = (0, contiguous_strides(below.shape))
        if kind is not Kind.MAP and not (kind is Kind.VIEW and below.param == whole):
            return False
        new = [
            each for each in below.inputs if each not in seen and math.prod(each.shape) == size
        ]
        if any(math.prod(each.shape) not in (1, size) for each in below.inputs):
            return False
        seen.update(new)
        stack += new
    return selects


def spread_sum(node: Node) -> Node:
    """What to add up instead of all that a mask selected: the same elements in their own places,
    and zeros. Nothing has to be packed then, and sums by several masks read an array together.

    Any other node is returned as it is. Of expressions of what was selected NumPy would warn, and
    not of the elements that were not: they stay.
    """
    selected_node = node
    while selected_node.op.kind is Kind.VIEW and selected_node.buffer is None:
        if selected_node.param != (0, contiguous_strides(selected_node.shape)):
            return node
        (selected_node,) = selected_node.inputs
    if selected_node.op.kind is not Kind.COMPACT or selected_node.buffer is not None:
        return node
    mask, value, _ = selected_node.inputs
    if math.prod(node.shape) != math.prod(selected_node.shape):
        return node
    zero = build.constant(value.dtype.type(0))
    return choose(mask, value, zero, value.dtype, value.shape)


# -- writing --------------------------------------------------------------------------------------


def replace_by_mask(old: Node, mask: Node, value: Node) -> Node | None:
    """`old` with `value` (count, *other axes) where `mask`, of its leading axes, is true.

    None where `value` has not that shape, nor one that broadcasts to it: NumPy has the error then.
    """
    rest = old.shape[len(mask.shape) :]
    size, repeats = math.prod(mask.shape), math.prod(rest)
    if size < 2 or repeats == 0:
        return None
    tally = tally_of(mask)
    shape = (tally.count, *rest)
    if len(value.shape) != len(shape) or any(
        given not in (1, wanted) for given, wanted in zip(value.shape, shape, strict=True)
    ):
        return None
    if tally.count == 0:
        return old
    if tally.count == size:
        return build.reshape(build.broadcast(value, shape), old.shape)
    starts = tally.starts(repeats)
    whole = (size * repeats,)
    in_place = _unselected(value, starts, tally.count * repeats, whole)
    if in_place is not None:
        chooser = build.reshape(mask, mask.shape + (1,) * len(rest))
        return choose(chooser, build.reshape(in_place, old.shape), old, old.dtype, old.shape)
    packed = build.reshape(build.broadcast(value, shape), (tally.count * repeats,))
    flat = build.reshape(old, whole)
    spread = _spread(mask, rest)
    made = build.expand(spread, flat, starts, packed, tally.piece * repeats)
    return build.reshape(made, old.shape)


def write_by_mask(handle: Handle, mask: Node, value: Node) -> bool:
    """Let the array have what `replace_by_mask` makes of it; False where that is None."""
    if math.prod(handle._shape) and math.prod(mask.shape) > 1:
        tally_of(mask)  # waits, while other threads may write
    with lock:
        changed = replace_by_mask(node_of(handle), mask, value)
        if changed is not None:
            write(handle, changed)
    return changed is not None


def choose_by_mask(handle: Handle, mask: Node, value: Node) -> None:
    """Let the array have `value` where a mask is true; both broadcast to its shape."""
    with lock:
        write(handle, choose(mask, value, node_of(handle), handle._dtype, handle._shape))


def _unselected(value: Node, starts: Node, count: int, whole: tuple[int, ...]) -> Node | None:
    """An expression of what a mask selected, on all elements instead; None if it is no such thing.

    `starts` is the mask's; only elements in its places are the same.
    """
    made: dict[Node, Node | None] = {}
    stack = [value]
    while stack:
        node = stack[-1]
        if node in made:
            stack.pop()
            continue
        kind = node.op.kind
        size = math.prod(node.shape)
        if len(made) > MOST_STEPS:
            return None
        if size == 1 and count != 1:
            made[node] = build.reshape(node, ())
        elif node.buffer is not None or size != count:
            return None
        elif kind is Kind.COMPACT:
            if node.inputs[2] is not starts:
                return None
            made[node] = node.inputs[1]
        elif kind is Kind.VIEW and node.param == (0, contiguous_strides(node.shape)):
            (operand,) = node.inputs
            if operand not in made:
                stack.append(operand)
                continue
            made[node] = made[operand]
        elif kind is Kind.MAP:
            waiting = [operand for operand in node.inputs if operand not in made]
            if waiting:
                stack += waiting
                continue
            operands = tuple([made[operand] for operand in node.inputs])
            made[node] = build.elementwise(node.op, operands, whole)  # type: ignore[arg-type]
        else:
            return None
        stack.pop()
    found = made[value]
    return found if found is not None and found.shape == whole else None

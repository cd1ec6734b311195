"""`numpy.einsum`: views, sums of products in one kernel, and matrix products.

Where nothing is summed the result of one operand is a view. Two operands are a (stacked) matrix
product, computed by the host's BLAS, where an index is summed and both have indices of their own.
Other products fuse with their sums. The product of more operands is one kernel, unless that kernel
would go over far more elements than the arrays have: then `numpy.einsum_path` says which two are
multiplied next.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clfuse.arrays.conversion import NotNative, as_handle, requested_dtype
from clfuse.arrays.expressions import combine, convert
from clfuse.arrays.handle import Handle, fresh, layout, native_dtype, node_of, result, view_of
from clfuse.arrays.promotion import BOOL
from clfuse.dataclass import mutable
from clfuse.dispatch.host_call import native
from clfuse.functions.math.folds import fold_axes
from clfuse.ir import build
from clfuse.ir.nodes import Node

from . import products

LEAST_PRODUCT: Final = 4096
"""Multiplications of one matrix product from which on BLAS is faster than a kernel."""

MOST_SPREAD: Final = 4
"""How many times the elements of its largest array one kernel for several operands may go over."""

MULTIPLIES_PAIRS: Final = hasattr(np._core.einsumfunc, "bmm_einsum")
"""Whether NumPy's paths are made of matrix products, before which every operand is summed over what
it has alone: since 2.4."""


@mutable
class Term:
    """An operand, and the label of each of its axes: none twice."""

    handle: Any
    labels: str

    def extent(self, label: str) -> int:
        place = self.labels.find(label)
        return 1 if place < 0 else int(self.handle._shape[place])


# -- subscripts -----------------------------------------------------------------------------------


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as subscripts and operands."""

    def text(items: Any) -> str:
        parts = []
        for item in items:
            if item is Ellipsis:
                parts.append("...")
            elif isinstance(item, int | np.integer) and 0 <= item < len(string.ascii_letters):
                parts.append((string.ascii_uppercase + string.ascii_lowercase)[item])
            else:
                raise NotNative("with subscripts of another kind")
        return "".join(parts)

    count = len(operands) // 2
    subscripts = ",".join([text(operands[2 * place + 1]) for place in range(count)])
    if len(operands) % 2:
        subscripts += "->" + text(operands[-1])
    return subscripts, list(operands[: 2 * count : 2])


def _labelled(subscripts: str, operands: Sequence[Handle]) -> tuple[list[str], str]:
    """The labels of each operand's axes and of the result's, with letters for the dots.

    `NotNative` for what NumPy refuses.
    """
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    inputs = given.split(",")
    if len(inputs) != len(operands):
        raise NotNative("of another number of operands")
    widest = 0
    found = []
    for part, operand in zip(inputs, operands, strict=True):
        before, dots, after = part.partition("...")
        named = before + after
        rest = len(operand._shape) - len(named)
        if not all(label in string.ascii_letters for label in named) or rest < 0:
            raise NotNative("with subscripts that do not fit")
        if rest and not dots:
            raise NotNative("with too few subscripts")
        widest = max(widest, rest)
        found.append((before, rest, after))
    spread = "".join([chr(0x100 + place) for place in range(widest)])
    labels = [before + spread[widest - rest :] + after for before, rest, after in found]
    if arrow:
        before, dots, after = wanted.partition("...")
        output = before + (spread if dots else "") + after
        if spread and not dots:
            raise NotNative("with dots in the operands alone")
    else:
        named = given.replace(",", "").replace(".", "")
        output = spread + "".join(sorted(x for x in set(named) if named.count(x) == 1))
    known = set("".join(labels))
    if len(set(output)) != len(output) or not set(output) <= known:
        raise NotNative("with a result that does not fit")
    return labels, output


def _diagonal(handle: Handle, labels: str) -> Term:
    """The operand with each label once: a view of the diagonal of axes that share one."""
    once = "".join(dict.fromkeys(labels))
    if once == labels:
        return Term(handle, labels)
    offset, strides = layout(handle)
    shape, steps = [], []
    for label in once:
        places = [place for place, other in enumerate(labels) if other == label]
        extents = {handle._shape[place] for place in places}
        if len(extents) != 1:
            raise NotNative("of a diagonal of axes that differ")
        shape.append(extents.pop())
        steps.append(sum(strides[place] for place in places))
    return Term(view_of(handle, tuple(shape), offset, tuple(steps), rearranged=True), once)


def _extents(terms: Sequence[Term]) -> dict[str, int]:
    """How long each label is; axes of one element stretch."""
    extents: dict[str, int] = {}
    for term in terms:
        for label, extent in zip(term.labels, term.handle._shape, strict=True):
            known = extents.get(label, 1)
            if 1 not in (known, extent) and known != extent:
                raise NotNative("of extents that differ")
            extents[label] = extent if known == 1 else known
    return extents


# -- computing ------------------------------------------------------------------------------------


def _aligned(term: Term, labels: str) -> Node:
    """The operand with its axes in the order of `labels`, of one element where it has none."""
    offset, strides = layout(term.handle)
    places = [term.labels.find(label) for label in labels]
    shape = tuple([term.handle._shape[place] if place >= 0 else 1 for place in places])
    steps = tuple([strides[place] if place >= 0 else 0 for place in places])
    return node_of(view_of(term.handle, shape, offset, steps, rearranged=True))


def _summed(terms: Sequence[Term], output: str, dtype: np.dtype) -> Term:
    """The product of the operands, summed over the labels that are not in `output`: one kernel."""
    extents = _extents(terms)
    gone = "".join([label for label in extents if label not in output])
    every = output + gone
    product: Node | None = None
    for term in terms:
        node = convert(_aligned(term, every), dtype)
        product = node if product is None else combine(np.multiply, product, node)
    assert product is not None
    product = build.broadcast(product, tuple([extents[label] for label in every]))
    if gone:
        axes = tuple(range(len(output), len(every)))
        product = fold_axes(np.logical_or if dtype is BOOL else np.add, product, axes, dtype)
    return Term(result(product), output)


def _pair(left: Term, right: Term, kept: set[str], output: str, dtype: np.dtype) -> Term:
    """The product of two operands, summed over labels that nobody needs any more."""
    extents = _extents([left, right])
    both = [label for label in left.labels if label in right.labels]
    batch = [label for label in both if label in kept]
    inner = [label for label in both if label not in kept]
    rows = [label for label in left.labels if label not in both]
    columns = [label for label in right.labels if label not in both]

    def size(labels: Sequence[str]) -> int:
        return math.prod([extents[label] for label in labels])

    stretched = any(left.extent(label) != right.extent(label) for label in both)
    sizes = (size(rows), size(inner), size(columns))
    is_product = (
        dtype.kind in "fc" and dtype.itemsize > 2 and min(sizes) > 1 and not stretched
    ) and math.prod(sizes) >= LEAST_PRODUCT
    needed = [label for label in batch + rows + columns if label in kept]
    if not is_product or len(needed) != len(batch + rows + columns):
        wanted = output if set(output) == set(needed) else "".join(needed)
        return _summed([left, right], wanted, dtype)
    stack = tuple([extents[label] for label in batch])
    one = _aligned(left, "".join(batch + rows + inner))
    two = _aligned(right, "".join(batch + inner + columns))
    first, second = [
        result(build.reshape(convert(node, dtype), (*stack, *shape)))
        for node, shape in ((one, sizes[:2]), (two, sizes[1:]))
    ]
    made = products.product_node(first, second, called="")
    labels = "".join(batch + rows + columns)
    return Term(result(build.reshape(made, tuple([extents[x] for x in labels]))), labels)


def _contracted(terms: list[Term], output: str, dtype: np.dtype) -> Term:
    """All operands, two at a time where one kernel for all would be wasteful."""
    extents = _extents(terms)
    largest = max([math.prod(term.handle._shape) for term in terms])
    largest = max(largest, math.prod([extents[label] for label in output]))
    if len(terms) > 2 and math.prod(extents.values()) > MOST_SPREAD * largest:
        for pair in _path(terms, output):
            chosen = [terms.pop(place) for place in sorted(pair, reverse=True)]
            kept = set(output).union(*[term.labels for term in terms])
            if len(chosen) == 2:
                made = _pair(chosen[0], chosen[1], kept, output, dtype)
            else:
                needed = [x for x in _extents(chosen) if x in kept]
                made = _summed(chosen, "".join(needed), dtype)
            terms.append(made)
    elif len(terms) == 2:
        left, right = _narrowed(terms, output, dtype)
        terms = [_pair(left, right, set(output), output, dtype)]
    if len(terms) == 1 and terms[0].labels == output:
        return terms[0]
    return _summed(terms, output, dtype)


def _narrowed(terms: list[Term], output: str, dtype: np.dtype | None) -> list[Term]:
    """Two operands, each summed over the labels that it alone has and nobody needs; in its own
    dtype if none is given."""
    narrowed = []
    for term, other in (terms, terms[::-1]):
        needed = "".join([x for x in term.labels if x in output or x in other.labels])
        if needed != term.labels:
            term = _summed([term], needed, dtype or term.handle._dtype)
        narrowed.append(term)
    return narrowed


def _path(terms: Sequence[Term], output: str) -> list[tuple[int, ...]]:
    names = string.ascii_letters
    every = "".join(_extents(terms))
    if len(every) > len(names):
        raise NotNative("of too many axes")
    plain = dict(zip(every, names, strict=False))
    given = ",".join(["".join([plain[x] for x in term.labels]) for term in terms])
    stand_ins = [np.broadcast_to(np.float64(0), term.handle._shape) for term in terms]
    subscripts = f"{given}->{''.join([plain[x] for x in output])}"
    return list(np.einsum_path(subscripts, *stand_ins, optimize="greedy")[0][1:])


def _by_steps(
    terms: list[Term], output: str, path: Sequence[tuple[int, ...]], wanted: np.dtype | None
) -> Term:
    """All operands by NumPy's path, each product of the dtype that its own operands have: whole
    numbers wrap there, and the result may be of another dtype than all of them together have."""
    for step in path:
        chosen = [terms.pop(place) for place in sorted(step, reverse=True)]
        kept = set(output).union(*[term.labels for term in terms])
        needed = "".join([label for label in _extents(chosen) if label in kept])
        dtype = wanted or native_dtype(np.result_type(*[term.handle._dtype for term in chosen]))
        if dtype is None:
            raise NotNative("of dtypes that do not fit")
        if MULTIPLIES_PAIRS and len(chosen) == 2:
            chosen = _narrowed(chosen, "".join(kept), None)
        terms.append(_contracted(chosen, needed if terms else output, dtype))
    return terms[0]


@functools.lru_cache(maxsize=512)
def _numpys_path(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> tuple[tuple[int, ...], ...]:
    """The operands of each of NumPy's steps, by their places among those that are left."""
    stand_ins = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
    if isinstance(optimize, tuple) and optimize[:1] == ("einsum_path",):
        optimize = list(optimize)
    return tuple(np.einsum_path(subscripts, *stand_ins, optimize=optimize)[0][1:])


@functools.lru_cache(maxsize=512)
def _ends_as_array(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], path: tuple[tuple[int, ...], ...]
) -> bool:
    """Whether NumPy gives an array without axes for a result without axes, as it does where the
    last step of the path is a matrix product. Its releases differ."""
    tiny = [np.ones([min(extent, 2) for extent in shape]) for shape in shapes]
    return isinstance(np.einsum(subscripts, *tiny, optimize=["einsum_path", *path]), np.ndarray)


_CASTINGS: Final = ("no", "equiv", "safe", "same_kind", "unsafe")
_ORDERS: Final = ("K", "C", "F", "A", "k", "c", "f", "a", None)


@native(np.einsum, library=True)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    """Sums of products over labelled axes; a view where there is one operand and no sum."""
    dtype = requested_dtype(options.pop("dtype", None))
    casting, order = options.pop("casting", "safe"), options.pop("order", "K")
    plain = casting == "safe" and order in ("K", "C", "k", "c")
    if out is not None or options or casting not in _CASTINGS or order not in _ORDERS:
        raise NotNative("into an array, or with options")
    if not operands:
        raise NotNative("of nothing")
    if isinstance(operands[0], str):
        subscripts, given = operands[0], list(operands[1:])
    else:
        subscripts, given = _from_lists(operands)
    if not given:
        raise NotNative("of nothing")
    arrays = [as_handle(operand) for operand in given]
    if isinstance(optimize, list | tuple):
        einsum_path(*operands, optimize=optimize)  # NumPy's error, where it is no path
    labels, output = _labelled(subscripts, arrays)
    terms = [_diagonal(array, names) for array, names in zip(arrays, labels, strict=True)]
    _extents(terms)
    if len(terms) == 1 and set(terms[0].labels) == set(output):  # whatever the options say
        (term,) = terms
        offset, strides = layout(term.handle)
        places = [term.labels.index(label) for label in output]
        if not places:  # a number, where it would be a view of nothing but one
            return result(node_of(term.handle))
        return view_of(
            term.handle,
            tuple([term.handle._shape[place] for place in places]),
            offset,
            tuple([strides[place] for place in places]),
            rearranged=True,
        )
    if not plain:
        raise NotNative("with options")
    found = native_dtype(np.result_type(*[array._dtype for array in arrays]))
    if found is None or (dtype is not None and not np.can_cast(found, dtype, "safe")):
        raise NotNative("of dtypes that do not fit")
    if optimize is False or len(terms) == 1:
        return _contracted(terms, output, dtype or found).handle
    shapes = tuple([array._shape for array in arrays])
    path = _numpys_path(
        subscripts, shapes, tuple(optimize) if isinstance(optimize, list) else optimize
    )
    if all(array._dtype is (dtype or found) for array in arrays):
        made = _contracted(terms, output, found).handle
    else:
        made = _by_steps(terms, output, path, dtype).handle
    if not output and _ends_as_array(subscripts, shapes, path):
        return fresh(node_of(made))
    return made


@native(np.einsum_path)
def einsum_path(*operands: Any, **options: Any) -> Any:
    """In which order `einsum` should multiply: only shapes are looked at."""
    plain = [
        np.broadcast_to(np.zeros((), item._dtype), item._shape)
        if isinstance(item, Handle)
        else item
        for item in operands
    ]
    return np.einsum_path(*plain, **options)

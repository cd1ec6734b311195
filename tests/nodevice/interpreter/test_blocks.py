"""Element-wise operations in blocks: which are done together, in what order, and to what bits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from clfuse.interpreter import blocks
from clfuse.interpreter.blocks import Group, grouped
from clfuse.interpreter.host_functions import cast, host_function
from clfuse.interpreter.rng import NEARLY, NUMBERS
from clfuse.ir import build, nodes
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.ops.table import UFUNCS
from tests.support.recording import array, call, number

DTYPES = [
    np.dtype(name)
    for name in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 7 doubles, and arrays of 8 elements go through them."""
    monkeypatch.setattr(blocks, "BLOCK", 7 * 8)
    monkeypatch.setattr(blocks, "LEAST", 8)


def steps_of(*roots: Node, kept: tuple[Node, ...] = ()) -> list[list[Node]]:
    """The nodes of a program, those of a group together, without what is there before."""
    snapshot = take(list(roots))
    places = {id(node): place for place, node in enumerate(snapshot.nodes)}
    stay = {places[id(node)] for node in (*roots, *kept)}
    steps, groups = grouped(snapshot, range(len(snapshot.items)), stay, ())
    found = []
    for step in steps:
        if step < 0:
            found.append([snapshot.nodes[each] for each in members_of(groups[-1 - step], snapshot)])
        elif snapshot.items[step][0] is not None and len(snapshot.items[step]) > 1:
            found.append([snapshot.nodes[step]])
    assert sorted(places[id(node)] for step in found for node in step) == [
        place for place, item in enumerate(snapshot.items) if item[0] is not None and len(item) > 1
    ]
    return found


def members_of(group: Group, snapshot: Snapshot) -> list[int]:
    """The positions of its operations, which it calls by their `Op`, in order."""
    called = [op for op, *_ in group._calls]
    positions = iter(range(len(snapshot.items)))
    return [
        next(place for place in positions if snapshot.items[place][0] is op)
        for op in dict.fromkeys(called)
    ]


def unlike(name: str, *operands: Node) -> Node:
    """As `call`, with an `Op` of its own."""
    made = call(name, *operands)
    op = made.op
    made.op = nodes.Op(op.kind, op.name, op.row, op.input_dtypes, op.dtype)
    return made


def test_operations_of_one_shape_are_a_group() -> None:
    x, y = array(100), array(100)
    product = unlike("multiply", x, y)
    total = unlike("add", product, number(1.5))
    root = unlike("sqrt", total)
    assert steps_of(root) == [[product, total, root]]


def test_what_depends_on_no_open_group_goes_before_it() -> None:
    x, small = array(100), array(3)
    first = unlike("negative", x)
    other = unlike("exp", small)
    factor = build.view(other, (), 1, ())
    root = unlike("multiply", first, factor)
    assert steps_of(root) == [[other], [factor], [first, root]]


def test_a_sum_of_a_group_ends_it() -> None:
    x = array(100)
    square = unlike("square", x)
    root = unlike("sqrt", square)
    total = build.reduce("add", root, (0,), np.dtype(np.float64))
    scaled = unlike("divide", root, total)
    shifted = unlike("subtract", scaled, number(1.0))
    assert steps_of(shifted) == [[square, root], [total], [scaled, shifted]]


def test_groups_of_two_shapes_are_open_at_a_time() -> None:
    x, y = array(100), array(200)
    one = unlike("negative", x)
    two = unlike("negative", y)
    three = unlike("exp", one)
    four = unlike("exp", two)
    found = steps_of(three, four)
    assert sorted(found, key=len) == found
    assert {tuple(map(id, step)) for step in found} == {
        (id(one), id(three)), (id(two), id(four))}


def test_a_group_of_rows_reads_vectors_that_are_another() -> None:
    x, row = array(20, 10), array(10)
    above = unlike("exp", row)
    scaled = unlike("multiply", above, above)
    first = unlike("negative", x)
    root = unlike("add", first, scaled)
    assert steps_of(root) == [[above, scaled], [first, root]]


def test_a_write_ends_what_may_read_the_array_as_it_was() -> None:
    x = array(100)
    before = unlike("negative", x)
    written = build.update(x, array(1), 3, (1,))
    after = unlike("add", before, written)
    found = steps_of(before, after)
    assert found == [[before], [written], [after]]


def test_small_arrays_are_in_no_group() -> None:
    x = array(7)
    first = unlike("negative", x)
    root = unlike("exp", first)
    assert steps_of(root) == [[first], [root]]


def test_a_group_has_no_more_operations_than_the_limit() -> None:
    chain = [array(100)]
    for _ in range(2 * blocks.MOST + 3):
        chain.append(unlike("negative", chain[-1]))
    assert [len(step) for step in steps_of(chain[-1])] == [blocks.MOST, blocks.MOST, 3]


# -- values ---------------------------------------------------------------------------------------


def values_of(root: Node, given: dict[int, Any], in_blocks: bool) -> Any:
    """What a program of element-wise operations is, by blocks or by whole arrays."""
    snapshot = take([root])
    (top,) = snapshot.roots
    values: list[Any] = [None] * len(snapshot.nodes)
    for place, node in enumerate(snapshot.nodes):
        if id(node) in given:
            values[place] = given[id(node)]
        elif node.op.kind is Kind.CONSTANT:
            values[place] = node.param
    order = range(len(snapshot.items))
    steps, groups = grouped(snapshot, order, {top}, ()) if in_blocks else (order, [])
    with np.errstate(all="ignore"):
        for step in steps:
            if step < 0:
                groups[-1 - step].calculate(values, lambda op: None)
            elif values[step] is None:
                op, _, _, *operands = snapshot.items[step]
                pairs = zip(operands, op.input_dtypes, strict=True)
                function = host_function(op)
                values[step] = function(*[cast(values[each], dtype) for each, dtype in pairs])
    assert bool(groups) == in_blocks
    return values[top]


def numbers(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 12, shape).astype(dtype)
    x = rng.normal(0, 3, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.normal(0, 3, shape)
    x = x.astype(dtype)
    x.flat[:: 17] = np.nan
    x.flat[5 :: 23] = np.inf
    x.flat[3 :: 29] = -0.0
    return x


def loops() -> Iterator[tuple[str, tuple[np.dtype[Any], ...], np.dtype[Any]]]:
    """The rows that are NumPy's ufuncs, with the dtypes that NumPy has for them."""
    for name in UFUNCS:
        ufunc = getattr(np, name, None)
        if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
            continue
        for dtype in DTYPES:
            try:
                *given, result = ufunc.resolve_dtypes((*[dtype] * ufunc.nin, None))
            except TypeError:
                continue
            if given == [dtype] * ufunc.nin and result in DTYPES:
                yield name, tuple(given), result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_blocks_have_the_bits_of_whole_arrays(
    dtype: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are whole vectors of any processor, as the real ones are: NumPy may compute what is
    left of a vector by another instruction."""
    monkeypatch.setattr(blocks, "BLOCK", 64 * 16)
    met = 0
    for name, dtypes, result in loops():
        if dtypes[0] != dtype:
            continue
        op = nodes.loop(name, dtypes, result)
        if host_function(op) is None or name in NUMBERS or name in NEARLY:
            continue
        operands = [array(1003, dtype=dtype) for _ in dtypes]
        arrays = {id(x): numbers(dtype, (1003,), seed) for seed, x in enumerate(operands)}
        first = build.elementwise(op, tuple(operands), (1003,))
        root = build.cast(first, np.dtype("c16" if result != "c16" else "c8"))
        expected = values_of(root, arrays, False)
        assert values_of(root, arrays, True).tobytes() == expected.tobytes(), name
        met += 1
    assert met > 10


SHAPES: list[tuple[tuple[int, ...], Callable[[Any], Any]]] = [
    ((100,), lambda x: x),
    ((10, 10), lambda x: x),
    ((10, 10), lambda x: x.T),
    ((13, 11), lambda x: np.asfortranarray(x)),
    ((50,), lambda x: np.repeat(x, 2)[::2]),
    ((4, 5, 6), lambda x: np.flip(x, 1)),
    ((1, 40), lambda x: np.asfortranarray(np.repeat(x, 2, 1))[:, ::2]),
]


@pytest.mark.parametrize(("shape", "laid"), SHAPES)
def test_arrays_that_lie_otherwise_go_by_rows(
    shape: tuple[int, ...], laid: Callable[[Any], Any]
) -> None:
    x, y = array(*shape), array(*shape)
    row, column = array(shape[-1]), array(*(*shape[:-1], 1))
    one = array(*(1,) * len(shape))
    root = call("negative", call("add", call("multiply", x, row), call("subtract", column, y)))
    root = call("maximum", root, call("multiply", call("absolute", column), one))
    arrays = {
        id(x): laid(numbers(np.dtype("f8"), shape, 1)), id(y): numbers(np.dtype("f8"), shape, 2),
        id(row): numbers(np.dtype("f8"), shape[-1:], 3),
        id(column): numbers(np.dtype("f8"), (*shape[:-1], 1), 4),
        id(one): numbers(np.dtype("f8"), (1,) * len(shape), 5),
    }
    expected = values_of(root, arrays, False)
    found = values_of(root, arrays, True)
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_have_the_bits_of_whole_arrays(seed: int) -> None:
    """With casts between, results that are read again much later, and numbers."""
    drawn = random.Random(seed)
    size = drawn.choice([8, 14, 15, 100])
    leaves = [array(size, dtype=drawn.choice(DTYPES[1:12])) for _ in range(3)]
    arrays = {id(x): numbers(x.dtype, (size,), seed + k) for k, x in enumerate(leaves)}
    made = [*leaves, build.constant(np.float32(1.5)), build.constant(np.int8(3))]
    for _ in range(drawn.randrange(2, 30)):
        one, two = drawn.choice(made), drawn.choice(made[:3])
        if drawn.random() < 0.2:
            dtype = drawn.choice(DTYPES[1:12])
            made.append(build.cast(two, dtype))
            continue
        dtype = np.result_type(one.dtype, two.dtype)
        ufunc = drawn.choice(["add", "multiply", "maximum"])
        op = nodes.loop(ufunc, (dtype, dtype), dtype)
        made.append(build.elementwise(op, (one, two), (size,)))
    total = made[-1]
    for other in made[5:-1]:
        op = nodes.loop("add", (np.dtype("f8"),) * 2, np.dtype("f8"))
        total = build.elementwise(op, (total, other), (size,))
    if len(made) > 6:
        expected = values_of(total, arrays, False)
        assert values_of(total, arrays, True).tobytes() == expected.tobytes()

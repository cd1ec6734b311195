"""The rules of placement one by one: what a kernel's arguments take, which way a fold reads, which
writes are made together, which regions of an array touch."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.layout import contiguous_strides
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import take
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph
from clfuse.schedule.partition.directions import MAX_LOOKED_AT, is_read_across
from clfuse.schedule.partition.parameters import Parameters, Taken
from clfuse.schedule.rewrite.forwarding import just_written
from clfuse.schedule.rewrite.joint_writes import JointWrites, are_apart, seen_between
from clfuse.schedule.rewrite.write_regions import (
    Region,
    apart,
    apart_at_a_glance,
    elements_of,
    normal_form,
)
from tests.support.recording import FLOAT64, array, call

# -- arguments -----------------------------------------------------------------------------------


KINDS = [Kind.LEAF, Kind.CONSTANT, Kind.VIEW, Kind.MAP, Kind.LEAF, Kind.CONSTANT]
SEALED = [True, False, False, False, True, False]
DTYPES = [FLOAT64, np.dtype("f4"), FLOAT64, FLOAT64, FLOAT64, np.dtype("c16")]


def parameters(buffers: int = 48, nbytes: float = 1024) -> Parameters:
    graph: Any = SimpleNamespace(kinds=KINDS, dtypes=DTYPES)
    limits: Any = SimpleNamespace(max_arguments=buffers, max_parameter_nbytes=nbytes)
    return Parameters(graph, SEALED, limits)


def test_arguments_are_arrays_views_and_numbers_each_once() -> None:
    taken = Taken()
    assert parameters().take(taken, (0, 1, 2, 3, 0), ()) == ""
    assert taken.named == {0, 1, 2}  # 3 is computed in the kernel
    assert taken.buffers == 2
    assert taken.nbytes == 8  # a number of 4 bytes takes 8
    assert parameters().take(taken, (2, 1, 0), (0,)) == ""
    assert (taken.buffers, taken.nbytes) == (2, 8)
    assert parameters().take(taken, (5, 5), (4, 4, 3)) == ""
    assert taken.named == {0, 1, 2, 3, 4, 5}
    assert (taken.buffers, taken.nbytes) == (4, 24)  # a complex number takes 16


def test_a_kernel_takes_as_many_buffers_as_the_device_does() -> None:
    taken = Taken()
    few = parameters(buffers=2)
    assert few.take(taken, (0, 2), ()) == ""
    before = replace(taken, named=set(taken.named))
    assert few.take(taken, (4,), ()) == "a kernel has 2 arguments at most"
    assert taken == before  # nothing is noted of what it cannot have
    assert few.take(taken, (1,), ()) == ""  # numbers are no buffers
    assert few.take(taken, (), (4,)) == "a kernel has 2 arguments at most"


def test_a_kernel_takes_as_many_bytes_as_the_device_does() -> None:
    for nbytes, is_taken in ((2 * cost.BUFFER_NBYTES + 8, True),
                             (2 * cost.BUFFER_NBYTES + 7.9, False)):
        taken = Taken()
        small = parameters(nbytes=nbytes)
        assert small.take(taken, (0, 1), ()) == ""
        refused = f"the arguments of a kernel have {nbytes} bytes at most"
        assert small.take(taken, (4,), ()) == ("" if is_taken else refused)
        assert taken.buffers == 1 + is_taken


# -- directions of folds -------------------------------------------------------------------------


def read_across(operand: Node, axes: tuple[int, ...], computed: tuple[Node, ...] = ()) -> bool:
    """Whether a fold reads across, where leaves and the nodes of `computed` lie in memory."""
    root = build.reduce("add", operand, axes, FLOAT64)
    snapshot = take([root, *computed])
    graph = Graph(snapshot)
    node = next(n for n, kind in enumerate(graph.kinds) if kind is Kind.REDUCE)
    stored = [kind is Kind.LEAF or graph.requested[n] for n, kind in enumerate(graph.kinds)]
    return is_read_across(graph, node, stored, [True] * len(graph))


def turned(x: Node) -> Node:
    rows, columns = x.shape
    return build.view(x, (columns, rows), 0, (1, columns))


def test_folds_of_columns_read_across_and_folds_of_rows_along() -> None:
    x = array(30, 40)
    assert not read_across(x, (1,))
    assert read_across(x, (0,))
    assert read_across(turned(x), (1,))
    assert not read_across(turned(x), (0,))
    assert not read_across(x, (0, 1))
    assert not read_across(array(40), (0,))


def test_a_fold_reads_along_where_any_of_its_arrays_lies_so() -> None:
    x, y = array(30, 30), array(30, 30)
    assert not read_across(call("add", x, turned(y)), (1,))
    assert not read_across(call("add", turned(y), x), (1,))
    assert read_across(call("add", turned(x), turned(y)), (1,))


def test_small_arrays_beside_a_large_one_give_no_direction() -> None:
    x, row, column = array(30, 40), array(40), array(30, 1)
    beside = call("add", call("add", x, build.broadcast(row, (30, 40))),
                  build.broadcast(column, (30, 40)))
    assert not read_across(beside, (1,))
    assert read_across(beside, (0,))
    assert not read_across(build.broadcast(row, (30, 40)), (0,))


def test_axes_of_one_element_or_repeated_have_no_direction() -> None:
    assert not read_across(array(30, 1), (0,))
    assert read_across(array(30, 2), (0,))
    assert not read_across(array(1, 40), (1,))
    many = array(3000, 40)
    assert read_across(build.view(many, (3000, 40), 0, (40, 1)), (0,))


def test_views_of_what_is_computed_are_read_as_they_say() -> None:
    x = array(30, 40)
    y = call("exp", x)
    assert read_across(turned(y), (1,))
    assert not read_across(turned(y), (0,))


def test_few_operations_are_looked_through_for_a_direction() -> None:
    value = array(30, 40)
    few = value
    for _ in range(MAX_LOOKED_AT - 2):
        few = call("exp", few)
    assert read_across(few, (0,))
    for _ in range(4):
        few = call("exp", few)
    assert not read_across(few, (0,))


# -- writes that are made together ---------------------------------------------------------------


def graph_of(*roots: Node) -> tuple[Graph, list[int]]:
    graph = Graph(take(list(roots)))
    return graph, [n for n, kind in enumerate(graph.kinds) if kind is Kind.UPDATE]


def column(x: Node, index: int, value: Node) -> Node:
    return build.update(x, value, index, (x.shape[1],))


def columns(*indices: int) -> tuple[Graph, list[int], JointWrites]:
    """An array whose columns are written one after the other."""
    x = array(5, 4)
    for index in indices:
        x = column(x, index, array(5))
    graph, updates = graph_of(x)
    return graph, updates, JointWrites(graph)


def test_writes_to_different_elements_are_made_together() -> None:
    graph, (first, second, third), writes = columns(0, 1, 3)
    assert not writes.can_join(first)  # what it is one of is an array in memory
    assert writes.can_join(second)
    writes.join(second)
    assert writes.can_join(third)
    writes.join(third)
    assert writes.members(third) == (first, second, third)
    assert writes.members(first) == (first,)
    assert writes.base(third) == graph.inputs[first][0]
    assert writes.regions(third) == [((5,), index, (4,)) for index in (0, 1, 3)]
    writes.rebase(third, 17)
    assert writes.base(third) == 17
    assert writes.base(second) == first


def test_a_write_that_touches_another_is_made_for_itself() -> None:
    _, (_, second, third), writes = columns(0, 1, 0)
    writes.join(second)
    assert not writes.can_join(third)


def test_joint_writes_are_no_more_than_a_kernels_results() -> None:
    count = cost.MAX_STORES + 1
    x = array(5, count)
    for index in range(count):
        x = column(x, index, array(5))
    graph, updates = graph_of(x)
    writes = JointWrites(graph)
    for node in updates[1:-1]:
        assert writes.can_join(node)
        writes.join(node)
    assert not writes.can_join(updates[-1])
    assert writes.can_join(updates[-2])


def test_what_anybody_looks_at_between_two_writes_is_known() -> None:
    def between(*more: str) -> int:
        """How many updates somebody sees: of three, the second one is at stake."""
        once = column(array(5, 4), 0, array(5))
        twice = column(once, 1, array(5))
        last = column(twice, 2, array(5))
        roots = [last]
        if "asked for" in more:
            roots.append(twice)
        if "computed from" in more:
            roots.append(call("exp", twice))
        if "written into another" in more:
            roots.append(build.update(array(6, 4), twice, 0, (4, 1)))
        if "updated twice" in more:
            roots.append(column(twice, 3, array(5)))
        held = twice if "held" in more else None
        del once, twice
        graph, updates = graph_of(*roots)
        seen = seen_between(graph)
        del held
        assert seen <= set(updates)
        assert {n for n in updates if graph.requested[n]} <= seen
        return len(seen & set(updates[:2]))

    assert between() == 0
    for how in ("asked for", "computed from", "written into another", "updated twice", "held"):
        assert between(how) == 1, how


def test_boxes_are_apart_where_they_are_along_any_axis() -> None:
    inside: Region = ((2, 2), 0, (4, 1))

    def boxes(one: Any, other: Any) -> bool:
        return are_apart(one, other, inside, inside)

    assert boxes(((0, 2), (0, 2)), ((2, 4), (0, 2)))
    assert boxes(((0, 2), (2, 4)), ((0, 2), (0, 2)))
    assert not boxes(((0, 2), (0, 2)), ((1, 4), (1, 2)))
    # Where one is no box, their elements are compared as far as that takes no look at them.
    for one, other in ((None, ((0, 2), (0, 2))), (((0, 2), (0, 2)), None), (None, None)):
        assert not boxes(one, other)
        assert are_apart(one, other, inside, ((2, 2), 20, (4, 1)))


# -- what was just written -----------------------------------------------------------------------


def part(x: Node, start: int, count: int) -> Node:
    return build.view(x, (count,), start, (1,))


def forwarded(reader: Any, start: int = 3, count: int = 5) -> int:
    """How many views are replaced by the value that was written to elements 3 to 7."""
    x = build.update(array(20), call("exp", array(5)), 3, (1,))
    graph = Graph(take([x, *reader(part(x, start, count))]))
    found = just_written(graph)
    assert all(graph.kinds[view] is Kind.VIEW and graph.ops[value].name == "exp"
               for view, value in found.items())
    return len(found)


def test_views_of_just_what_was_written_are_the_value() -> None:
    assert forwarded(lambda view: [call("negative", view)]) == 1
    assert forwarded(lambda view: [call("negative", view)], start=4) == 0
    assert forwarded(lambda view: [call("negative", view)], count=4) == 0
    assert forwarded(lambda view: [build.reduce("add", view, (0,), FLOAT64)]) == 1
    assert forwarded(lambda view: [call("add", view, array(3, 5))]) == 0  # computed for each row
    assert forwarded(lambda view: [call("negative", view), call("add", view, array(3, 5))]) == 0
    assert forwarded(lambda view: [build.scan("add", view, 0, FLOAT64)]) == 0
    assert forwarded(lambda view: [build.concatenate([view, array(2)], 0)]) == 0


def test_what_is_folded_along_two_ways_is_read_from_memory() -> None:
    x = build.update(array(20, 30), call("exp", array(5, 6)), 33, (30, 1))
    view = build.view(x, (5, 6), 33, (30, 1))
    for axes, count in (([(0,), (0,)], 1), ([(0,), (1,)], 0)):
        folds = [build.reduce(name, view, each, FLOAT64)
                 for name, each in zip(("add", "maximum"), axes, strict=True)]
        assert len(just_written(Graph(take([x, *folds])))) == count


def test_nothing_is_forwarded_where_nothing_is_written() -> None:
    assert just_written(Graph(take([call("negative", part(array(20), 3, 5))]))) == {}


# -- regions -------------------------------------------------------------------------------------


def touched(region: Region) -> set[int]:
    shape, offset, strides = region
    return {offset + int(np.dot(index, strides)) for index in np.ndindex(*shape)}


def test_regions_that_are_told_apart_at_a_glance_are_apart() -> None:
    assert apart_at_a_glance(((4,), 0, (1,)), ((4,), 4, (1,)))
    assert apart_at_a_glance(((4,), 4, (1,)), ((4,), 0, (1,)))
    assert not apart_at_a_glance(((4,), 0, (1,)), ((4,), 3, (1,)))
    assert not apart_at_a_glance(((4,), 3, (1,)), ((4,), 0, (1,)))
    assert apart_at_a_glance(((5,), 0, (2,)), ((5,), 1, (2,)))
    assert not apart_at_a_glance(((5,), 0, (2,)), ((5,), 2, (2,)))
    assert apart_at_a_glance(((5,), 0, (4,)), ((3,), 2, (4,)))
    assert not apart_at_a_glance(((5,), 0, (4,)), ((3,), 2, (6,)))  # 8 is in both
    assert apart_at_a_glance(((0,), 0, (1,)), ((4,), 0, (1,)))
    assert apart_at_a_glance(((4,), 0, (1,)), ((0, 3), 0, (1, 1)))
    assert not apart_at_a_glance(((), 3, ()), ((), 3, ()))
    assert apart_at_a_glance(((), 3, ()), ((), 4, ()))
    assert not apart_at_a_glance(((1, 5), 0, (7, 2)), ((5,), 4, (2,)))


def test_more_elements_than_are_compared_are_not_called_apart() -> None:
    one, other = ((5000, 2), 0, (3, 30_000)), ((5000, 2), 4, (3, 30_000))
    assert apart_at_a_glance(one, ((5000, 2), 1, (3, 30_000)))
    assert touched(one).isdisjoint(touched(other))
    assert apart(one, other)
    odd = ((5000,), 0, (7,)), ((5000,), 35_000 - 1, (-5,))
    assert not apart(*odd)
    assert elements_of(list(odd), 9999) == (None, None)
    owners, elements = elements_of(list(odd), 10_000)
    assert owners is not None
    assert elements is not None
    assert len(owners) == len(elements) == 10_000


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_regions_meet_where_their_elements_do(seed: int) -> None:
    """Common dimensions are left out, and blocks stand for their elements: never two fates."""
    generator = np.random.default_rng(seed)
    extents = (4, 3, int(generator.choice([1, 2, 6])))
    steps = contiguous_strides(extents)
    regions: list[Region] = []
    for _ in range(3):
        shape, offset, strides = [], 0, []
        for axis, (extent, step) in enumerate(zip(extents, steps, strict=True)):
            first = int(generator.integers(extent))
            if axis == 2 or generator.integers(3) == 0:
                first, length = 0, extent
            else:
                length = int(generator.integers(1, extent - first + 1))
            turn = bool(generator.integers(2))
            offset += (first + (length - 1 if turn else 0)) * step
            shape.append(length)
            strides.append(-step if turn else step)
        regions.append((tuple(shape), offset, tuple(strides)))
    owners, elements = elements_of(regions)
    assert owners is not None
    assert elements is not None
    for one in range(3):
        for other in range(3):
            meets = bool(np.isin(elements[owners == one], elements[owners == other]).any())
            assert meets is not touched(regions[one]).isdisjoint(touched(regions[other]))


def test_a_region_has_one_normal_form() -> None:
    assert normal_form((3, 4), (4, 1)) == (0, [(12, 1)])
    assert normal_form((3, 4), (5, 1)) == (0, [(3, 5), (4, 1)])
    assert normal_form((4, 3), (1, 5)) == (0, [(3, 5), (4, 1)])
    assert normal_form((3, 4), (-4, 1)) == (-8, [(12, 1)])
    assert normal_form((3, 4), (-4, -1)) == (-11, [(12, 1)])
    assert normal_form((3, 1, 4), (0, 9, 2)) == (0, [(4, 2)])
    assert normal_form((), ()) == (0, [])

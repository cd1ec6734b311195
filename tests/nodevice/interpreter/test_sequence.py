"""The order in which a program is calculated node by node: what is written over is read before."""

from __future__ import annotations

import numpy as np

from clfuse.interpreter.order import calculation
from clfuse.ir import build
from clfuse.ir.nodes import Kind, Node
from clfuse.ir.snapshot import Snapshot, take
from tests.support.recording import array, call


def element(x: Node, index: int) -> Node:
    return build.view(x, (), index, ())


def calculated(snapshot: Snapshot) -> list[tuple[Node, bool]]:
    """The nodes in order, and which are copied."""
    way = calculation(snapshot, snapshot.roots)
    assert sorted(way.order) == list(range(len(snapshot.items)))
    return [(snapshot.nodes[number], number in way.copied) for number in way.order]


def test_a_view_of_what_is_overwritten_is_copied_before() -> None:
    x = call("negative", array(1000))
    first, second = element(x, 3), element(x, 4)
    once = build.update(x, second, 3, ())
    twice = build.update(once, first, 4, ())
    found = calculated(take([twice]))
    assert [node for node, _ in found[2:]] in (
        [second, first, once, twice], [first, second, once, twice])
    assert [node for node, is_copied in found if is_copied] == [second, first] or (
        [node for node, is_copied in found if is_copied] == [first, second])


def test_what_a_view_is_needed_for_before_a_write_is_not_copied() -> None:
    x = call("negative", array(1000))
    once = build.update(x, call("exp", element(x, 3)), 3, ())
    assert not any(is_copied for _, is_copied in calculated(take([once])))


def test_large_views_are_not_copied_but_their_small_results() -> None:
    x = call("negative", array(1000))
    most = build.view(x, (998,), 1, (1,))
    once = build.update(x, call("exp", element(x, 3)), 3, ())
    snapshot = take([build.update(once, element(most, 2), 9, ())])
    found = calculated(snapshot)
    assert [node.shape for node, is_copied in found if is_copied] == [()]
    copied = [number for number, (_, is_copied) in enumerate(found) if is_copied]
    update = next(n for n, (node, _) in enumerate(found) if node.op.kind is Kind.UPDATE)
    assert copied[0] < update
    total = call("add", build.view(once, (998,), 2, (1,)), most)
    assert not any(is_copied for _, is_copied in calculated(take([total])))


def test_without_writes_nothing_is_moved_and_nothing_let_go_of() -> None:
    x = call("negative", array(1000))
    way = calculation(take([call("add", element(x, 1), element(x, 2))]), ())
    assert list(way.order) == list(range(5))
    assert not way.last


def test_a_number_that_is_written_to_has_a_shape() -> None:
    x = build.constant(np.bool_(True))
    wide = build.view(x, (3,), 0, (0,))
    written = build.update(x, call("logical_not", array(3, dtype=bool)), 0, (0,))
    found = calculated(take([call("logical_not", wide), written]))
    assert [node.shape for node, _ in found if node is x] == [()]

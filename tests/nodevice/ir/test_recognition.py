"""Graphs that came often are recognised, and nothing else is taken for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from clfuse._core import loading
from clfuse.ir import build, known_graphs
from clfuse.ir import nodes as ir
from clfuse.ir.nodes import Node
from clfuse.ir.snapshot import Snapshot, take
from clfuse.ir.updates import modify_view
from tests.support.recording import FLOAT64, array, call, number


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    known_graphs.forget()
    yield
    known_graphs.forget()


def step(x: Node, y: Node, *, shift: float = 0.5, name: str = "sin", last: int = 1) -> list[Node]:
    inner = call(name, call("multiply", x, x))
    shifted = call("add", inner, number(shift))
    part = build.view(shifted, (8,), last, (1,))
    total = build.reduce("add", call("multiply", part, build.view(y, (8,), 0, (1,))), (0,), FLOAT64)
    joined = build.concatenate([part, y, part, build.iota(3), x], 0)
    return [total, joined, inner]


def learned(make: Callable[[], list[Node]]) -> None:
    roots = make()
    snapshot = take(roots)
    structure = Snapshot([], snapshot.items, snapshot.flags, snapshot.roots, [])
    known_graphs.learn(snapshot, structure)


def noted(make: Callable[[], list[Node]]) -> None:
    roots = make()
    known_graphs.note(known_graphs.find(roots) or take(roots))


def test_what_numpy_computes_is_known_the_third_time() -> None:
    x, y = array(8), array(8)
    for turn in range(5):
        assert recognised(lambda: step(x, y)) == (turn >= 3)
        noted(lambda: step(x, y))
    assert not recognised(lambda: step(x, y, name="cos"))
    assert len(known_graphs.known) == 1


def test_a_plan_shares_the_structure_of_what_was_known() -> None:
    x, y = array(8), array(8)
    for _ in range(3):
        noted(lambda: step(x, y))
    roots = step(x, y)
    snapshot = known_graphs.find(roots)
    assert snapshot is not None
    structure = known_graphs.structure_of(snapshot)
    assert not structure.nodes
    known_graphs.learn(snapshot, structure)
    assert [kept for _, kept in known_graphs.known.values()] == [structure]


def recognised(make: Callable[[], list[Node]]) -> bool:
    """Whether these roots are known; then the snapshot must be the one that walking gives.

    They are made here: pytest holds what is made within an assertion.
    """
    roots = make()
    known = known_graphs.find(roots)
    if known is None:
        return False
    nodes = [id(node) for node in known.nodes]
    buffers = [id(buffer) for buffer in known.buffers]
    flags, items = known.flags, known.items
    del known  # it holds every node
    walked = take(roots)
    assert nodes == [id(node) for node in walked.nodes]
    assert buffers == [id(buffer) for buffer in walked.buffers]
    assert (flags, items) == (walked.flags, walked.items)
    return True


def test_the_same_step_on_other_arrays_is_recognised() -> None:
    learned(lambda: step(array(12), array(12)))
    assert recognised(lambda: step(array(12), array(12), shift=2.0))


def test_steps_that_differ_are_not() -> None:
    learned(lambda: step(array(12), array(12)))
    held = [array(12), array(12)]
    assert not recognised(lambda: step(*held))
    held.clear()
    same = array(12)
    assert not recognised(lambda: step(same, same))
    assert not recognised(lambda: step(array(12), array(12), name="cos"))
    assert not recognised(lambda: step(array(12), array(12), last=2))
    assert not recognised(lambda: step(array(13), array(12)))
    assert not recognised(lambda: step(array(12), call("negative", array(12))))
    assert not recognised(lambda: step(array(12, dtype=np.float32), array(12)))
    assert not recognised(lambda: step(array(12), array(12))[:2])
    roots = step(array(12), array(12))
    assert not recognised(lambda: [roots[1], roots[0], roots[2]])


def test_arrays_in_one_buffer_are_another_program() -> None:
    learned(lambda: step(array(12), array(12)))
    x, y = array(12), array(12)
    y.buffer = x.buffer
    roots = step(x, y)
    del x, y
    assert not recognised(lambda: roots)
    known_graphs.forget()
    learned(lambda: roots)
    assert recognised(lambda: roots)
    assert not recognised(lambda: step(array(12), array(12)))


@pytest.mark.parametrize("depth", range(4))
def test_who_else_holds_a_node_decides(depth: int) -> None:
    def chain() -> list[Node]:
        return [call("add", call("sin", call("cos", array(5))), number(1.0))]

    learned(chain)
    roots = chain()
    held = roots[0]
    for _ in range(depth):
        held = held.inputs[0]
    # A root is held by whoever asks for it, here and when it was learned.
    assert not recognised(lambda: roots)
    del held
    assert recognised(lambda: roots)
    held = roots[0].inputs[0]
    learned(lambda: roots)
    assert recognised(lambda: roots)
    del held
    assert recognised(lambda: roots)  # as the first that was learned


def test_what_was_computed_meanwhile_is_not_recognised() -> None:
    learned(lambda: step(array(12), array(12)))
    roots = step(array(12), array(12))
    roots[2].inputs[0].computed = True
    assert not recognised(lambda: roots)
    roots = step(array(12), array(12))
    roots[1].inputs[1].buffer.exported = True
    assert not recognised(lambda: roots)
    roots = step(array(12), array(12))
    roots[2].buffer = roots[1].inputs[1].buffer
    assert not recognised(lambda: roots)


def test_results_that_share_their_inputs_are_never_learned() -> None:
    def both() -> list[Node]:
        first, second = call("add", *(pair := (array(4), array(4)))), call("subtract", *pair)
        first.inputs = second.inputs = pair
        return [first, second]

    learned(both)
    assert not recognised(both)

    def apart() -> list[Node]:
        x, y = array(4), array(4)
        return [call("add", x, y), call("subtract", x, y)]

    learned(apart)
    assert recognised(apart)
    assert not recognised(both)


def test_the_longest_unmet_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_graphs, "MOST_KNOWN", 2)
    for name in ("sin", "cos"):
        learned(lambda name=name: [call(name, array(4))])  # type: ignore[misc]
    assert recognised(lambda: [call("sin", array(4))])
    learned(lambda: [call("exp", array(4))])
    assert recognised(lambda: [call("sin", array(4))])
    assert not recognised(lambda: [call("cos", array(4))])
    assert recognised(lambda: [call("exp", array(4))])


@pytest.mark.skipif(loading.load() is None, reason="in plain Python their code is not worth it")
def test_large_graphs_are_known_and_those_of_many_arrays_not() -> None:
    def chain(length: int) -> list[Node]:
        node = array(4)
        for _ in range(length):
            node = call("add", node, array(4)) if length > 10_000 else call("sin", node)
        return [node]

    learned(lambda: chain(5000))
    assert recognised(lambda: chain(5000))
    assert not recognised(lambda: chain(4999))
    learned(lambda: chain(10_001))
    assert not recognised(lambda: chain(10_001))


def test_all_known_graphs_together_have_so_many_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_graphs, "MOST_ITEMS", 5)
    for name in ("sin", "cos"):  # two nodes each
        learned(lambda name=name: [call(name, array(4))])  # type: ignore[misc]
    assert recognised(lambda: [call("sin", array(4))])
    learned(lambda: [call("exp", array(4))])
    assert recognised(lambda: [call("sin", array(4))])
    assert not recognised(lambda: [call("cos", array(4))])


def test_loops_of_statements_are_what_they_were_joined_to() -> None:
    add = ir.loop("add", (FLOAT64, FLOAT64), FLOAT64)

    def increments(rows: Iterable[int], shift: Node, a: Node) -> list[Node]:
        for row in rows:
            a = modify_view(a, add, shift, (4,), 4 * row, (1,))
        return [a]

    def fourth_of(a: Node) -> Node:
        return call("add", build.view(a, (4,), 12, (1,)), array(4))

    def last(rows: Iterable[int]) -> list[Node]:
        a = array(10, 4)
        return increments(rows, fourth_of(a), a)

    learned(lambda: increments(range(2, 10), number(1.0), array(10, 4)))
    assert recognised(lambda: increments(range(2, 10), number(2.0), array(10, 4)))
    assert not recognised(lambda: increments(range(1, 10), number(1.0), array(10, 4)))
    assert not recognised(lambda: increments(range(9, 10), number(1.0), array(10, 4)))
    learned(lambda: last(range(3, 4)))
    assert recognised(lambda: last(range(3, 4)))
    # Joined, these write everything: what they add is where the first one's sum was.
    assert not recognised(lambda: last(range(9, -1, -1)))
    assert not recognised(lambda: last([*range(3), *range(4, 10), 3]))

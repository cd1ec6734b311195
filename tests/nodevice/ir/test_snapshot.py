"""Snapshots: what is alive, what is the same structure, and depth without recursion."""

from __future__ import annotations

from clfuse.ir.build import elementwise
from clfuse.ir.nodes import loop
from clfuse.ir.snapshot import COMPUTED, LIVE, take
from tests.support.recording import array, call, number


def test_intermediates_that_nobody_holds_are_dead() -> None:
    x = array(10)
    snapshot = take([call("negative", call("sin", x))])
    assert [flags & LIVE for flags in snapshot.flags] == [LIVE, 0, 0]


def test_an_intermediate_in_a_variable_is_alive() -> None:
    held = call("sin", array(10))
    snapshot = take([call("negative", held)])
    assert [flags & LIVE for flags in snapshot.flags] == [0, LIVE, 0]


def test_an_intermediate_that_other_pending_work_needs_is_alive() -> None:
    shared = call("sin", array(10))
    other = call("cos", shared)
    root = call("negative", shared)
    del shared
    snapshot = take([root])
    assert snapshot.flags[1] & LIVE
    assert other.shape == (10,)


def test_a_buffer_that_two_arrays_share_is_alive() -> None:
    first = array(10)
    other = array(10)
    other.buffer = first.buffer
    root = call("negative", first)
    del first
    assert take([root]).flags[0] & LIVE


def test_the_same_step_recorded_again_has_the_same_structure() -> None:
    def step() -> object:
        x = array(10)
        return take([call("add", call("multiply", x, x), number(2.0))])

    assert step().same_structure(step())


def test_other_constants_are_one_structure_other_shapes_not() -> None:
    def step(value: float, count: int) -> object:
        return take([call("add", array(count), number(value))])

    assert step(1.0, 10).same_structure(step(2.0, 10))
    assert not step(1.0, 10).same_structure(step(1.0, 11))


def test_computed_nodes_are_marked() -> None:
    node = call("sin", array(10))
    node.computed = True
    assert take([call("negative", node)]).flags[1] & COMPUTED


def test_a_chain_of_100_000_operations_is_no_recursion() -> None:
    value = array(4)
    for _ in range(100_000):
        value = call("negative", value)
    assert len(take([value]).nodes) == 100_001
    del value  # and neither is freeing it


def test_an_input_that_two_results_share_lives_while_held() -> None:
    held = array(10)
    inputs = (held, held)
    first, second = call("add", held, held), call("subtract", held, held)
    first.inputs = second.inputs = inputs
    del inputs
    snapshot = take([first, second])
    assert snapshot.flags[snapshot.nodes.index(held)] & LIVE


def test_inputs_live_while_a_result_not_asked_for_needs_them() -> None:
    x, y = array(10), array(10)
    ops = [loop(name, (x.dtype, y.dtype), x.dtype) for name in ("floor_divide", "remainder")]
    operands = (x, y)
    quotient, rest = [elementwise(op, operands, x.shape) for op in ops]
    del x, y, operands
    snapshot = take([quotient])
    assert [flags & LIVE for flags in snapshot.flags[:2]] == [LIVE, LIVE]
    del snapshot
    snapshot = take([quotient, rest])
    assert [flags & LIVE for flags in snapshot.flags[:2]] == [0, 0]

"""What arrays of the program hold is stored when that pays, looked at or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Schedule
from tests.support.recording import FLOAT64, TRAITS, array, call, kernels, number, planned

N = 1_000_000


def total(node: Node) -> Node:
    return build.reduce("add", node, (0,), FLOAT64)


def stored(schedule: Schedule) -> int:
    """How many values of all elements its kernels write."""
    return sum([len(kernel.stores) for kernel in kernels(schedule)])


def steps(state: Node, count: int) -> Node:
    for _ in range(count):
        state = call("exp", call("negative", call("multiply", state, state)))
    return state


def test_a_held_value_computed_before_is_stored_the_second_time() -> None:
    held = call("exp", array(N))
    assert stored(planned(total(held))) == 0
    held.computed = True
    assert stored(planned(total(held))) == 1


def test_what_stands_for_a_value_computed_before_is_stored() -> None:
    before = call("exp", array(N))
    before.computed = True
    held = call("exp", before)
    del before
    schedule = planned(total(held))
    assert stored(schedule) == 1
    assert "in the place of what is computed a second time" in schedule.cuts[0].reason


def test_a_dear_state_is_stored_the_first_time() -> None:
    """A loop that looks at a sum of its state computes each round once."""
    held = steps(array(N), 8)
    schedule = planned(total(held))
    assert stored(schedule) == 1
    assert len([each for each in schedule.launches if each.work_items > 1]) == 1
    assert "dear" in schedule.cuts[0].reason


def test_a_dear_value_that_nobody_holds_is_not_stored() -> None:
    schedule = planned(total(steps(array(N), 8)))  # within assert pytest would hold it
    assert stored(schedule) == 0


def test_what_is_held_is_dear_only_from_what_is_stored_on() -> None:
    """Of a chain of held values the few are stored that much has led to."""
    chain = [array(N)]
    for _ in range(40):
        chain.append(call("exp", chain[-1]))
    assert stored(planned(total(chain[-1]))) == 5


def test_views_of_a_dear_value_are_not_stored_beside_it() -> None:
    held = steps(array(N), 4)  # stored because it is read twice
    views = [build.view(held, (N - 1,), start, (1,)) for start in (0, 1)]
    assert stored(planned(total(call("subtract", *views)))) == 1


@pytest.mark.parametrize("size", [20_000, 30_000, 100_000])
def test_work_items_go_by_the_operations_of_an_element(size: int) -> None:
    """30,000 elements of twenty exponentials are work for every core."""
    light, heavy = call("multiply", array(size), number(3.0)), steps(array(size), 20)
    for root in (heavy, total(heavy)):
        assert 24 <= kernels(planned(root))[0].work_items <= 64
    assert kernels(planned(light))[0].work_items == size // 4096
    free = replace(TRAITS, operation_nbytes=0.001)
    assert kernels(planned(heavy, traits=free))[0].work_items == size // 4096

"""Steps that repeat are found, with what is carried from round to round, and written as a loop."""

from __future__ import annotations

import random
import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.codegen.repeats import Repeats
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule import rounds
from clfuse.schedule.dataflow import storage_roots
from clfuse.schedule.records import Kernel, Step
from clfuse.schedule.rounds import Each, Kept, Own, Same
from clfuse.schedule.rounds import find as find_rounds
from clfuse.target.traits import DeviceTraits
from tests.support.recording import BOOL, FLOAT64, TRAITS, array, call, kernels, number, planned

N = 1000


def pendulum(count: int) -> tuple[Node, Node]:
    x, y, step = array(N), array(N), number(0.01)
    for _ in range(count):
        y = call("subtract", y, call("multiply", step, call("sin", x)))
        x = call("add", x, call("multiply", step, y))
    return x, y


def leapfrog(count: int) -> tuple[Node, ...]:
    before, now, two = array(N), array(N), number(2.0)
    for _ in range(count):
        before, now = now, call("subtract", call("multiply", two, now), before)
    return before, now


def only_kernel(*nodes: Node) -> Kernel:
    (kernel,) = kernels(planned(*nodes))
    return kernel


def stretches(kernel: Kernel, traits: DeviceTraits = TRAITS) -> list[rounds.Stretch]:
    uses, numbers = rounds.outer_uses(kernel, kernel.body), rounds.numbers_of(kernel, traits)
    return find_rounds(kernel.body, uses, numbers)


def loops(kernel: Kernel) -> list[rounds.Rounds]:
    return [one for _, _, one in stretches(kernel)]


def text(*nodes: Node) -> str:
    schedule = planned(*nodes)
    (kernel,) = kernels(schedule)
    return render(kernel, TRAITS, storage_roots(schedule)).source


def test_a_round_takes_from_itself_earlier_rounds_and_outside() -> None:
    (loop,) = loops(only_kernel(*pendulum(100)))
    assert loop.count == 100
    assert [step.op.name for step in loop.steps] == [
        "sin", "multiply", "subtract", "multiply", "add",
    ]  # fmt: skip
    sin, scaled, y, moved, x = loop.sources
    assert sin == (Kept(4, 1),)
    assert isinstance(scaled[0], Same)
    assert scaled[1:] == (Own(0),)
    assert y == (Kept(2, 1), Own(1))
    assert (type(moved[0]), moved[1], *x) == (Same, Own(2), Kept(4, 1), Own(3))
    assert loop.carried == [(2, 1), (4, 1)]


def test_registers_of_two_rounds_ago_are_carried_twice() -> None:
    (loop,) = loops(only_kernel(*leapfrog(200)))
    assert loop.carried == [(1, 2), (1, 1)]
    assert sorted(loop.left.values()) == [(1, 1), (1, 2)]


def test_any_number_of_rounds_has_one_text() -> None:
    short, long = text(*pendulum(40)), text(*pendulum(75))
    assert short == long
    assert short.count("for (int turn = 0; turn < rounds0; turn++)") == 2  # vectors, and the rest
    assert text(*pendulum(3)) != short


def test_what_follows_a_loop_has_one_text_for_any_rounds() -> None:
    def summed(count: int) -> str:
        x, y = pendulum(count)
        return text(call("exp", call("add", x, y)))

    assert summed(40) == summed(61)


def test_a_value_that_is_stored_on_the_way_ends_a_loop() -> None:
    x, y = pendulum(60)
    kept = x
    for _ in range(50):
        y = call("subtract", y, call("sin", x))
        x = call("add", x, y)
    counts = [loop.count for kernel in kernels(planned(x, kept)) for loop in loops(kernel)]
    assert len(counts) >= 2
    assert 105 <= sum(counts) <= 110


def test_what_is_stored_is_left_by_a_loop_or_stands_outside() -> None:
    values, x = [], array(N)
    for _ in range(40):
        x = call("sin", x)
        values.append(x)
    for kernel in kernels(planned(*values)):
        stored = {store.var for store in kernel.stores}
        for first, end, loop in stretches(kernel):
            inside = {item.var for item in kernel.body[first:end]}
            assert stored & inside <= set(loop.left)


def test_rounds_that_read_other_arrays_are_no_loop() -> None:
    x = array(N)
    for _ in range(20):
        x = call("exp", call("multiply", x, array(N)))
    for kernel in kernels(planned(x)):
        assert loops(kernel) == []


def with_numbers(count: int, function: str = "exp") -> Node:
    x = array(N)
    for turn in range(count):
        x = call(function, call("multiply", x, number(turn / 8)))
    return x


def test_rounds_may_have_numbers_of_their_own() -> None:
    kernel = only_kernel(with_numbers(60))
    (loop,) = loops(kernel)
    assert loop.count == 60
    assert loop.sources[0] == (Kept(1, 1), Each(0))
    (numbers,) = loop.numbers
    assert len(set(numbers)) == 60
    source = text(with_numbers(60))
    assert source.count("turn++") == 2  # vectors, and the rest
    assert re.search(r"\btabler\d+_0\[turn\]", source)
    assert source.count("exp(") < 10


def test_tables_of_numbers_are_for_cpus_and_heavy_rounds() -> None:
    kernel = only_kernel(with_numbers(60))
    assert stretches(kernel, replace(TRAITS, schedule="gpu")) == []
    assert loops(only_kernel(with_numbers(60, "negative"))) == []


def test_few_short_rounds_are_left_to_the_compiler() -> None:
    x = array(N)
    for _ in range(30):
        x = call("multiply", x, x)
    assert loops(only_kernel(x)) == []


def test_a_number_that_all_rounds_take_is_found_before_the_loop() -> None:
    x, scale = array(N), call("exp", array(N))
    for _ in range(60):
        x = call("sin", call("multiply", x, scale))
    (loop,) = loops(only_kernel(x))
    assert loop.count == 60
    assert [type(source) for source in loop.sources[0]] == [Kept, Same]


def test_masks_that_are_carried_have_lanes_of_one_size() -> None:
    limit = number(0.5)
    x, seen = array(N), call("less", array(N, dtype=np.int8), array(N, dtype=np.int8), dtype=BOOL)
    for _ in range(40):
        x = call("sin", x)
        seen = call("bitwise_or", seen, call("greater", x, limit, dtype=BOOL), dtype=BOOL)
    source = text(x, seen)
    assert "turn < rounds0" in source
    assert "char8 carry" not in source  # as wide as what is compared in each round


def test_kernels_may_have_more_operations_where_they_are_rounds() -> None:
    x = array(N)
    for _ in range(3 * TRAITS.max_steps):
        x = call("sin", x)
    kernel = only_kernel(x)
    assert rounds.text_length(kernel, TRAITS) < 10
    assert kernel.unroll == 2  # the text is short, and each step waits for the one before


def test_rounds_of_which_a_kernel_has_too_few_make_none_longer() -> None:
    draws = random.Random(1)
    length = rounds.MAX_REPEATED // rounds.LEAST + 1
    names = [draws.choice(["add", "subtract", "multiply"]) for _ in range(length)]
    x = array(N)
    for name in names * rounds.LEAST:
        x = call(name, x, number(1.5))
    sizes = [
        sum(isinstance(item, Step) for item in kernel.body) for kernel in kernels(planned(x))
    ]
    assert sum(sizes) == rounds.LEAST * length
    assert max(sizes) <= TRAITS.max_steps


def test_a_sum_of_what_a_loop_leaves_is_folded_in_its_kernel() -> None:
    x, _ = pendulum(40)
    first = kernels(planned(build.reduce("add", x, (0,), FLOAT64)))[0]
    (loop,) = loops(first)
    assert loop.count == 40


@pytest.mark.parametrize("count", [1, 4])
def test_short_loops_stay_as_they_are(count: int) -> None:
    assert loops(only_kernel(*pendulum(count))) == []


@pytest.mark.parametrize("count", [200, 203])
def test_rounds_with_own_numbers_are_kernels_of_one_text(count: int) -> None:
    x = array(N)
    for turn in range(count):
        x = call("sin", call("add", call("multiply", x, number(0.5)), number(turn / 8)))
    schedule = planned(x)
    shared = Repeats(TRAITS, storage_roots(schedule))
    texts = [shared.render(kernel).source for kernel in kernels(schedule)]
    assert len(texts) == 4
    assert len(set(texts[1:-1])) == 1
    lengths = [rounds.text_length(kernel, TRAITS) for kernel in kernels(schedule)]
    assert max(lengths) < TRAITS.max_steps


def test_what_waits_for_no_loop_stands_before_it() -> None:
    x, y = array(N), array(N)
    other = call("multiply", y, y)
    for _ in range(40):
        x = call("sin", x)
    kernel = only_kernel(x, call("subtract", other, y), call("add", x, other))
    ((first, end, _),) = stretches(kernel)
    before = [item.op.name for item in kernel.body[:first] if isinstance(item, Step)]
    behind = [item.op.name for item in kernel.body[end:] if isinstance(item, Step)]
    assert sorted(before) == ["multiply", "subtract"]
    assert behind == ["add"]


def test_a_join_of_thousands_takes_no_square_of_memory() -> None:
    parts = []
    for _ in range(1500):
        x = array(4)
        parts.append(call("add", call("multiply", x, x), call("sin", x)))
    tracemalloc.start()
    planned(build.concatenate(parts, 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1500 * 6 * 4000  # a table of operands by steps has 1500 * 6000 * 8 bytes

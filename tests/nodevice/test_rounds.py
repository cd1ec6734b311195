"""The part of its cases that a test takes where not all are asked for."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.support.rounds import covering

AXES = (range(5), "abc", (False, True), ("x", "y", "z"))


def pairs(cases):
    """Any two values that meet, with their axes."""
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


@pytest.mark.parametrize("key", ["", "float64", ("int8", 3)])
def test_any_two_values_meet(key):
    taken = covering(*AXES, key=key, is_long=False)
    assert pairs(taken) == pairs(product(*AXES))
    assert len(taken) == len(set(taken)) <= 20
    assert taken == covering(*AXES, key=key, is_long=False)


def test_two_values_meet_in_cases_that_there_are():
    def allows(number, letter, flag, other):
        return not (flag and letter == "a") and not (number == 3 and other != "x")

    there = [case for case in product(*AXES) if allows(*case)]
    taken = covering(*AXES, allows=allows, is_long=False)
    assert set(taken) <= set(there)
    assert pairs(taken) == pairs(there)
    assert covering(*AXES, allows=allows, is_long=True) == there
    assert covering(*AXES, allows=lambda *case: False, is_long=False) == []


def test_two_conditions_alone_have_all_cases():
    assert covering("abc", range(4), is_long=False) == list(product("abc", range(4)))


def test_another_key_has_other_cases():
    assert covering(*AXES, key="a", is_long=False) != covering(*AXES, key="b", is_long=False)


def test_long_runs_take_all():
    assert covering(*AXES, is_long=True) == list(product(*AXES))

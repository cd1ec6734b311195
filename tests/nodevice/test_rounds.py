"""The part of its cases that a test takes where not all are asked for."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.support.rounds import covering, part_of

AXES = (range(5), "abc", (False, True), ("x", "y", "z"))


@pytest.mark.parametrize("key", ["", "float64", ("int8", 3)])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_any_values_of_so_many_axes_meet(together, key):
    taken = covering(*AXES, together=together, key=key, is_long=False)
    for axes in combinations(range(len(AXES)), together):
        wanted = set(product(*(AXES[axis] for axis in axes)))
        assert {tuple(case[axis] for axis in axes) for case in taken} == wanted
    assert len(taken) == len(set(taken)) < len(list(product(*AXES)))
    assert taken == covering(*AXES, together=together, key=key, is_long=False)


def test_few_cases_are_enough():
    assert len(covering(*AXES, together=1, is_long=False)) == 5
    assert len(covering(*AXES, is_long=False)) <= 20


def test_another_key_has_other_cases():
    assert covering(*AXES, key="a", is_long=False) != covering(*AXES, key="b", is_long=False)
    values = "abcdefgh"
    parts = [part_of(values, 3, key, is_long=False) for key in range(40)]
    assert all(len(set(part)) == 3 for part in parts)
    assert set().union(*parts) == set(values)


def test_long_runs_take_all():
    assert covering(*AXES, is_long=True) == list(product(*AXES))
    assert part_of("abc", 1, 0, is_long=True) == ["a", "b", "c"]
    assert part_of("abc", 7, 0, is_long=False) in (list("abc"), list("bca"), list("cab"))

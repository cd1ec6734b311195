"""Loops are found in what was recorded."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.ir.loop_detection import LEAST_ROUNDS, MAX_LOOKED_AT, period


def slow_period(text: str) -> tuple[int, int] | None:
    """The same by trying everything."""
    found = None
    for count in range(2, len(text) + 1):
        tail = text[-count:]
        for length in range(1, count // LEAST_ROUNDS + 1):
            if tail[length:] == tail[:-length]:
                found = length, len(text) - count
                break
    return found


def test_the_period_of_random_texts_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        part = "".join(rng.choice(list("ab"), rng.integers(1, 6)))
        text = "".join(rng.choice(list("ab"), rng.integers(0, 6))) + part * int(rng.integers(1, 6))
        text += part[: rng.integers(0, len(part))]
        assert period(text) == slow_period(text), text


def test_of_loops_in_a_loop_the_outermost_is_found() -> None:
    assert period("x" + ("aaaa" + "b") * 4) == (5, 1)


@pytest.mark.parametrize("text", ["", "a", "ab", "aabb", "abcabc"])
def test_what_does_not_repeat_itself_often_enough_is_no_loop(text: str) -> None:
    assert period(text) is None


def test_no_more_than_the_end_is_looked_at() -> None:
    length, start = period([*range(10), *[0, 1] * MAX_LOOKED_AT]) or (0, 0)
    assert (length, start) == (2, 10 + MAX_LOOKED_AT)

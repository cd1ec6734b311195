"""Views at every offset give NumPy's values where vectors are loaded as what they are: a vector
that is said to lie at a multiple of its size and does not is a fault on many devices, on CPUs too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.engine.evaluate import forget_plans
from clfuse.target.traits import BUFFER_ALIGNMENT, with_schedule
from tests.support.rounds import HERE, covering

CHARS = "?bBhHiIlqQefdFD"
LENGTHS = (1, 3, 16, 17, 1000, 1003)


@pytest.fixture(autouse=True)
def aligned(xp: ModuleType) -> Iterator[None]:
    """A GPU's schedule, and the promise that a GPU's buffers keep, as those of the pool do."""
    device = xp.get_device()
    traits = with_schedule(device.untuned_traits, "gpu")
    with ExitStack() as stack:
        forget_plans()
        stack.callback(forget_plans)
        stack.enter_context(
            device.trying(replace(traits, buffer_alignment=BUFFER_ALIGNMENT)))
        yield


def numbers(char: str, count: int) -> np.ndarray[Any, Any]:
    return (np.arange(count) * 37 % 101).astype(char)


def on_device(xp: ModuleType, host: np.ndarray[Any, Any]) -> Any:
    """The same values in memory of the pool."""
    return xp.concatenate([xp.asarray(host), xp.asarray(host[:1])])[:-1].copy()


def same(expected: Any, actual: Any) -> None:
    np.testing.assert_array_equal(np.asarray(actual), expected)


@pytest.mark.parametrize("char", CHARS)
def test_views_at_every_offset(xp: ModuleType, char: str) -> None:
    host = numbers(char, 1100)
    there = on_device(xp, host)
    for offset in range(9):
        for length in LENGTHS:
            part = slice(offset, offset + length)
            same(host[part] == host[:length], there[part] == there[:length])
            backwards = slice(1099 - offset, 1099 - offset - length, -1)
            same(host[backwards] != host[:length], there[backwards] != there[:length])


@pytest.mark.parametrize("char", "?bHifdFe")
def test_parts_that_are_written_at_every_offset(xp: ModuleType, char: str) -> None:
    host = numbers(char, 1100)
    for offset in range(9):
        for length in (17, 1000):
            expected, actual = host.copy(), on_device(xp, host)
            for m, array in ((np, expected), (xp, actual)):
                array[offset : offset + length] = m.where(
                    array[:length] == array[1 : length + 1], array[:length], array[9 : length + 9])
                array[offset : offset + length][::-1] = array[: length] + array[1 : length + 1]
            same(expected, actual)


@pytest.mark.parametrize("char", "bhifdFe")
def test_rows_that_begin_anywhere(xp: ModuleType, char: str) -> None:
    for columns, first, left in covering((61, 62, 64, 72), range(5), (0, 4), key=(char, HERE)):
        host = numbers(char, 20 * columns).reshape(20, columns)
        there = on_device(xp, host.ravel()).reshape(20, columns)
        last = columns - left
        part = np.s_[1:, first:last]
        same(host[part] + host[:-1, first:last], there[part] + there[:-1, first:last])
        same(-host[part][:, ::-1], -there[part][:, ::-1]) if char not in "b" else None


def random_part(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """An index of an array of twice the shape, five elements more in each dimension."""
    parts = []
    for extent in shape:
        first, kind = int(rng.integers(5)), rng.integers(6)
        if kind == 0:
            parts.append(slice(first + extent - 1, first - 1 if first else None, -1))
        elif kind == 1:
            parts.append(slice(first, first + 2 * extent, 2))
        else:
            parts.append(slice(first, first + extent))
    return tuple(parts)


def random_update(m: ModuleType, whole: Any, parts: list[tuple[slice, ...]], kind: int) -> Any:
    one, two, three = parts
    if kind == 0:
        return whole[one] + whole[two]
    if kind == 1:
        return m.where(whole[one] > whole[two], whole[three], whole[one])
    changed = whole.copy()
    if kind == 2:
        changed[one] = whole[two] + whole[three]
        changed[three] *= whole[one]
    else:
        rows = changed[one]
        rows += whole[two][:1]
    return changed


@pytest.mark.parametrize("seed", range(40))
def test_random_views_of_up_to_four_dimensions(xp: ModuleType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    char = rng.choice(list("ffddbHilqeF?"))
    rank = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 17, 33, 100][: 10 - rank], rank))
    whole = numbers(char, math.prod(2 * n + 5 for n in shape))
    parts = [random_part(rng, shape) for _ in range(3)]
    kind = int(rng.integers(4))
    there = on_device(xp, whole).reshape([2 * n + 5 for n in shape])
    expected = random_update(np, whole.reshape(there.shape), parts, kind)
    same(expected, random_update(xp, there, parts, kind))


@pytest.mark.parametrize("char", "bhifd")
def test_arrays_that_are_rolled_or_joined(xp: ModuleType, char: str) -> None:
    host = numbers(char, 640)
    there = on_device(xp, host)
    for count in range(9):
        for m, array, results in ((np, host, []), (xp, there, [])):
            table = array.reshape(20, 32)
            results += [
                m.roll(array, count) + array, m.roll(table, count, 0) + table,
                m.roll(table, count, 1) + table,
                m.concatenate([array[count:], array[: 64 + count]]) + array[3],
                m.concatenate([table[:, count:], table], axis=1)[2:] + array[3],
            ]
            if m is np:
                expected = results
        for one, other in zip(expected, results, strict=True):
            same(one, other)


def test_a_whole_array_is_loaded_in_vectors(xp: ModuleType) -> None:
    array = on_device(xp, numbers("f", 1000))
    (kernel,) = xp.explain(array * 2 + 1).kernels
    assert "(*(__global const float4 *)(" in kernel.source
    (kernel,) = xp.explain(array[1:] * 2 + 1).kernels
    assert "(*(__global const float4 *)(" not in kernel.source

"""`where` of recorded arrays and numbers is NumPy's, whoever records it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.rounds import covering

pytestmark = pytest.mark.clfuse_only

DTYPES = "?bBhHiIlLqQfdFD"

NUMBERS = (
    0, 1, -1, 300, 2**40, 0.5, -0.0, float("nan"), 1e300, 2j, True, np.float32(3), np.int8(4),
)  # fmt: skip

SHAPES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x, lambda x: x[1:], lambda x: x.T, lambda x: x[:, ::2], lambda x: x[0],
    lambda x: x[:1], lambda x: x.reshape(-1), lambda x: x[2, 3],
)  # fmt: skip


CASES = covering(DTYPES, SHAPES, range(3))


def told(call: Callable[[], Any]) -> Any:
    """What it gives, with its dtype, or what it raises, and of what it warns."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = call()
            made: Any = (str(value.dtype), value.shape, np.asarray(value).tobytes())
        except Exception as error:
            made = type(error).__name__
    return made, [str(one.category) for one in seen]


@pytest.mark.parametrize("char", DTYPES)
def test_choices_between_arrays_and_numbers(
    xp: ModuleType, setting: Callable[..., None], char: str
) -> None:
    setting(host_us=0)
    draw = np.random.default_rng(4)
    x, y = ((draw.random((4, 6)) * 9).astype(char) for _ in range(2))
    mask = draw.random((4, 6)) < 0.5

    def pairs(m: Any) -> list[Callable[[], Any]]:
        a, b, c = (m.asarray(one) * m.ones_like(m.asarray(one)) for one in (mask, x, y))
        calls: list[Callable[[], Any]] = []
        forms = (
            lambda seen: m.where(seen(a), seen(b), seen(c)),
            lambda seen: m.where(a, seen(b), c),
            lambda seen: m.where(seen(a), b, c),
        )
        calls += [partial(forms[form], seen) for of, seen, form in CASES if of == char]
        for number in NUMBERS:
            calls += [lambda n=number: m.where(a, b, n), lambda n=number: m.where(a, n, c)]
        calls += [lambda: m.where(b, b, c), lambda: m.where(a, b, c.astype("f4")),
                  lambda: m.where(a, 1, 2.5), lambda: m.where(a, b), lambda: m.where(a, a, b)]
        return calls

    for number, (ours, numpys) in enumerate(zip(pairs(xp), pairs(np), strict=True)):
        assert told(ours) == told(numpys), number


def test_a_choice_is_recorded_and_fused(xp: ModuleType, setting: Callable[..., None]) -> None:
    setting(host_us=0)
    x = xp.asarray(np.linspace(-1, 1, 1000))
    before = xp.stats()["kernels_launched"]
    y = xp.where(x * 2 > 0.5, x + 1, 0.25)
    z = xp.where(y > 1, y, -y)
    assert xp.stats()["kernels_launched"] == before
    expected = np.where(np.linspace(-1, 1, 1000) * 2 > 0.5, np.linspace(-1, 1, 1000) + 1, 0.25)
    np.testing.assert_array_equal(z, np.where(expected > 1, expected, -expected))
    assert xp.stats()["kernels_launched"] == before + 1

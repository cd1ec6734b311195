"""A mask that selects little: NumPy takes and writes it, where kernels count the mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.functions.indexing.masks import LITTLE
from tests.support.agreement import assert_bitwise, host

pytestmark = pytest.mark.clfuse_only

SIZE = 300_007
VALUES = np.random.default_rng(3).random(SIZE)
OTHERS = np.random.default_rng(4).random(SIZE)
LIMITS = {
    "none": 2.0, "one": OTHERS.max(), "few": 1 - 0.4 / LITTLE, "many": 1 - 2 / LITTLE, "all": -1.0,
}  # fmt: skip


@pytest.fixture(autouse=True, params=[0, 50], ids=["kernels", "numpy"])
def costs(request: pytest.FixtureRequest, xp: ModuleType) -> Iterator[None]:
    """NumPy may look at arrays; kernels count at once, or not yet."""
    with xp.config.override(host_us=50, build_after_ms=request.param):
        yield


def masked(module: Any, others: Any, limit: float, how: str) -> Any:
    """A mask that is cheap to compute again, or costly, or of two axes."""
    if how == "costly":
        return module.sqrt(module.abs(others * 2 - 1) + 1) * 0 + others >= limit
    if how == "square":
        return (others >= limit)[: 500 * 600].reshape(500, 600)
    return others >= limit


@pytest.mark.parametrize("how", ["cheap", "costly", "square"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_what_is_selected_is_numpys(xp: ModuleType, limit: float, how: str) -> None:
    def results(module: Any) -> list[Any]:
        values, others = module.asarray(VALUES), module.asarray(OTHERS)
        if module is not np:
            module.evaluate(values, others)
        mask = masked(module, others, limit, how)
        if how == "square":
            values = values[: 500 * 600].reshape(500, 600)
        chosen = values[mask]
        places = module.nonzero(mask)
        rows = values.reshape(-1)[: SIZE // 3 * 3].reshape(-1, 3)
        by_rows = rows[rows[:, 1] >= limit]
        recorded = (values * 2)[mask]  # of an array that nobody has computed
        return [chosen, chosen * 2 + 1, *places, by_rows, recorded, mask, ~mask, mask.sum()]

    for found, wanted in zip(results(xp), results(np), strict=True):
        assert_bitwise(host(found), np.asarray(wanted))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "int64", "complex128"])
def test_of_every_size_of_element(xp: ModuleType, dtype: str) -> None:
    given = (VALUES * 100).astype(dtype)
    values, mask = xp.asarray(given), xp.asarray(OTHERS) >= LIMITS["few"]
    xp.evaluate(values)
    assert_bitwise(host(values[mask]), given[LIMITS["few"] <= OTHERS])


def increment(x: Any, mask: Any) -> None:
    x[mask] += 1


def replace(x: Any, mask: Any) -> None:
    x[mask] = x[mask][::-1] * 2


def every_second(x: Any, mask: Any) -> None:
    part = x[::2]
    part[mask[::2]] -= part[mask[::2]] / 2


def rows(x: Any, mask: Any) -> None:
    table = x[: SIZE // 2 * 2].reshape(-1, 2)
    chosen = mask[: SIZE // 2]
    table[chosen] = table[chosen][:, ::-1]


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("write", [increment, replace, every_second, rows])
def test_writes_change_what_is_selected(
    xp: ModuleType, limit: float, write: Callable[[Any, Any], None]
) -> None:
    """And nothing that was read before, whatever shares the memory."""
    wanted = VALUES.copy()
    others, values = xp.asarray(OTHERS), xp.asarray(VALUES.copy())
    xp.evaluate(others, values)
    kept, copied, view = values + 0, values.copy(), values[5:]
    xp.evaluate(kept)
    for _ in range(3):
        write(wanted, limit <= OTHERS)
        write(values, limit <= others)
    assert_bitwise(host(values), wanted)
    assert_bitwise(host(view), wanted[5:])
    assert_bitwise(host(kept), VALUES)
    assert_bitwise(host(copied), VALUES)


def test_a_mask_may_be_asked_twice(xp: ModuleType) -> None:
    """What it selects of rows may be more than little, where its elements are not."""
    limit = 1 - 0.3 / LITTLE
    others = xp.asarray(OTHERS[:100_000])
    table, wanted = xp.asarray(VALUES[:300_000].reshape(-1, 3)), VALUES[:300_000].reshape(-1, 3)
    column = xp.asarray(VALUES[:100_000])
    xp.evaluate(others, table, column)
    mask, plain = others > limit, OTHERS[:100_000] > limit
    for _ in range(2):
        assert_bitwise(host(table[mask]), wanted[plain])
        assert_bitwise(host(column[mask]), VALUES[:100_000][plain])


def test_wrong_lengths_are_numpys_errors(xp: ModuleType) -> None:
    values, others = xp.asarray(VALUES.copy()), xp.asarray(OTHERS)
    xp.evaluate(values, others)
    mask = others > LIMITS["few"]
    plain = LIMITS["few"] < OTHERS
    wrong = np.zeros(np.count_nonzero(plain) + 1)
    with pytest.raises(ValueError) as expected:  # noqa: PT011 (NumPy's words are compared)
        VALUES.copy()[plain] = wrong
    with pytest.raises(ValueError) as found:  # noqa: PT011
        values[mask] = xp.asarray(wrong)
    assert str(found.value) == str(expected.value)
    assert_bitwise(host(values), VALUES)

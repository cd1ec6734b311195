"""Copies in parts have all bytes, whatever the array's order."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.runtime.memory import parts

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-1],
    "every second": lambda x: x[:, ::2],
    "one row": lambda x: x[:1],
    "short first axis": lambda x: x.reshape(1, 2, -1)[..., ::3],
    "repeated": lambda x: np.broadcast_to(x[0], (30, x.shape[1])),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fresh_copy_has_all_elements(layout: str) -> None:
    array = LAYOUTS[layout](np.arange(2400.0).reshape(40, 60))
    for most in (1, 100, 4096, 1 << 20):
        made = parts.fresh_copy(array, most)
        assert made.flags.c_contiguous
        assert made.flags.owndata
        np.testing.assert_array_equal(made, array)


def test_blocks_are_small_and_are_all() -> None:
    array = np.arange(5000.0).reshape(1, 5, 1000)
    blocks = list(parts._blocks(np.empty(array.shape), array, 1000))
    assert all(target.nbytes <= 1000 for target, _ in blocks)
    assert sum(target.nbytes for target, _ in blocks) == array.nbytes


def test_bytes_come_in_parts() -> None:
    content = np.arange(100, dtype=np.uint8)
    assert [(start, len(part)) for start, part in parts.parts(content, "copying", 30)] == [
        (0, 30), (30, 30), (60, 30), (90, 10)
    ]  # fmt: skip

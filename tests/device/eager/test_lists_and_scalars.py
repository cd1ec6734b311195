"""Views and choices of lists, numbers and NumPy's scalars: as NumPy gives them of arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import host

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast_to": lambda m, a: m.broadcast_to(a([1.0, 2.0]), (3, 2)),
    "broadcast_to of a list": lambda m, a: m.broadcast_to([1, 2], (2, 2)),
    "broadcast_to of a number": lambda m, a: m.broadcast_to(2.5, 4),
    "broadcast_to of a scalar": lambda m, a: m.broadcast_to(np.float32(2.5), (2, 3)),
    "broadcast_to a column": lambda m, a: m.broadcast_to(a([[1.0], [2.0]])[::-1], (2, 3)).T,
    "broadcast_to nothing": lambda m, a: m.broadcast_to(a([1.0]), (0,)),
    "broadcast_to and on": lambda m, a: m.broadcast_to(a([1.0, 2.0]), (3, 2))[1:, ::-1] * 2 + 1,
    "broadcast_arrays": lambda m, a: m.broadcast_arrays(a([1.0, 2.0]), 3, [[1], [2]]),
    "broadcast_arrays alike": lambda m, a: m.broadcast_arrays(a([1.0, 2.0]), np.int64(3)),
    "atleast_2d of a scalar": lambda m, a: m.atleast_2d(np.int16(3)),
    "atleast_3d of a complex one": lambda m, a: m.atleast_3d(np.complex64(3)),
    "expand_dims of a scalar": lambda m, a: m.expand_dims(np.float64(3), 0),
    "real of a list": lambda m, a: m.real([1 + 2j, 3 - 1j]),
    "imag of a list": lambda m, a: m.imag([[1 + 2j], [3 - 1j]]),
    "imag of numbers": lambda m, a: m.imag([1.0, 2.0]),
    "ix_ of lists": lambda m, a: m.ix_([1, 2], [0, 3, 4]),
    "ix_ of nothing": lambda m, a: m.ix_([], [1]),
    "ix_ of a mask": lambda m, a: m.ix_([True, False, True], [1]),
    "piecewise": lambda m, a: m.piecewise(a([1.0, 2, 3]), [a([1.0, 2, 3]) < 2], [5.0, 7.0]),
    "piecewise of functions": lambda m, a: m.piecewise(
        a([1.0, 2, 3]), [a([1.0, 2, 3]) < 2], [lambda x: x * 2, lambda x: -x]
    ),
    "piecewise of integers": lambda m, a: m.piecewise(a([1, 2, 3]), [[True, False, True]], [1.7]),
    "piecewise of a number": lambda m, a: m.piecewise(0.3, [True, False], [0.0, 1.0]),
    "linalg.outer of lists": lambda m, a: m.linalg.outer([1.0, 2.0], [3, 4]),
}


def parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("name", CALLS)
def test_calls_give_what_numpy_gives(xp: ModuleType, name: str) -> None:
    wanted = parts(CALLS[name](np, np.array))
    for _ in range(3):
        found = parts(CALLS[name](xp, xp.array))
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            np.testing.assert_array_equal(host(ours), theirs)


def test_stretched_arrays_see_what_is_written_and_are_read_only(xp: ModuleType) -> None:
    array = xp.array([1.0, 2.0, 3.0])
    wide = xp.broadcast_to(array, (2, 3))
    array[1] = 9.0
    np.testing.assert_array_equal(host(wide), [[1, 9, 3], [1, 9, 3]])
    assert not wide.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        wide[0, 0] = 5.0
    same, other = xp.broadcast_arrays(array, 2.0)
    array[0] = 7.0
    np.testing.assert_array_equal(host(same), [7, 9, 3])
    np.testing.assert_array_equal(host(other), [2, 2, 2])


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 3), (3, 2))])
def test_shapes_that_do_not_fit_are_refused(xp: ModuleType, shapes: Any) -> None:
    one, two = xp.ones(shapes[0]), xp.ones(shapes[1])
    with pytest.raises(ValueError, match="mismatch"):
        xp.broadcast_arrays(one, two)
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_to(one, shapes[1])

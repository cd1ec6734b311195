"""``x.flags`` as it is assigned to, ``__setstate__``, and arrays that are repeated less than never:
small members of arrays that other libraries' tests call."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

SIZES = (6, 5000)


@pytest.mark.parametrize("name", ["aligned", "writebackifcopy", "writeable"])
def test_a_flag_is_assigned_to_by_all_its_names(xp: ModuleType, name: str) -> None:
    short = {"aligned": "A", "writebackifcopy": "X", "writeable": "W"}[name]
    wanted = name != "writebackifcopy"
    for key in (short, name.upper()):
        x = xp.zeros((2, 3))
        x.flags[key] = wanted
        assert x.flags[key] == wanted
        assert getattr(x.flags, name) == wanted
    x = xp.zeros((2, 3))
    setattr(x.flags, name, wanted)
    assert getattr(x.flags, name) == wanted
    with pytest.raises(KeyError, match="Unknown flag"):
        x.flags["C"] = True


def test_writebackifcopy_cannot_be_set(xp: ModuleType) -> None:
    x = xp.zeros(3)
    for assign in (lambda: setattr(x.flags, "writebackifcopy", True),
                   lambda: x.flags.__setitem__("X", True)):
        with pytest.raises(ValueError, match="cannot set WRITEBACKIFCOPY flag to True"):
            assign()


@pytest.mark.parametrize("size", SIZES)
def test_an_array_becomes_that_of_a_state(xp: ModuleType, size: int) -> None:
    values = np.arange(size, dtype="i2").reshape(2, -1)
    for given in (values, values.T, values[:, ::2], values[0, 0], values[:0]):
        state: Any = np.asarray(given).__reduce__()[2]
        x = xp.ones(size) + 1
        head = x[:3]
        x.__setstate__(state)
        assert x.dtype == np.int16
        assert x.shape == given.shape
        np.testing.assert_array_equal(np.asarray(x), given)
        np.testing.assert_array_equal(np.asarray(head), [2, 2, 2])
        x += 1
        np.testing.assert_array_equal(np.asarray(x), given + 1)


@pytest.mark.clfuse_only
def test_a_state_of_texts_is_refused(xp: ModuleType) -> None:
    x = xp.arange(3)
    with pytest.raises(TypeError, match="an array of dtype <U1 is NumPy's"):
        x.__setstate__(np.array(["a"]).__reduce__()[2])
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("repeats", [-3, [-3], 0])
def test_nothing_is_repeated_less_than_never(xp: ModuleType, repeats: Any) -> None:
    for shape, axis in (((0,), None), ((0,), 0), ((2, 0), 1), ((2, 0), None), ((0, 2), 0)):
        expected = np.repeat(np.ones(shape), repeats, axis)
        found = xp.repeat(xp.ones(shape), repeats, axis)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if repeats:
        with pytest.raises(ValueError, match="negative"):
            xp.repeat(xp.ones((0, 2)), repeats, 1)

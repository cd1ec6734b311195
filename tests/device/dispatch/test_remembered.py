"""What a call recorded once is recorded again for an equal call, and for no other."""

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import assert_ulp

SHAPE = (40, 50)
CALLS = {
    "all": lambda v: v.sum(),
    "one axis": lambda v: v.sum(1),
    "kept": lambda v: v.sum(1, keepdims=True),
    "not kept": lambda v: v.sum(1, keepdims=False),
    "both axes": lambda v: v.sum(axis=(0, 1)),
    "product": lambda v: v.prod(0),
    "least": lambda v: v.min(),
    "greatest": lambda v: v.max(-1),
    "where": lambda v: v.argmax(),
    "where along": lambda v: v.argmin(axis=0, keepdims=True),
    "mean": lambda v: v.mean(keepdims=True),
    "deviation": lambda v: v.std(0),
    "any": lambda v: (v > 1).any(),
    "every": lambda v: (v > 1).all(0),
}


def arrays(dtype):
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE) % 7 - 3
    return values.astype(dtype), values[::-1].astype(dtype)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_a_call_gives_the_same_kind_of_answer_every_time(name, dtype):
    for values in arrays(dtype) * 2:
        mine = cf.array(values) + values.dtype.type(0)
        expected = CALLS[name](values + values.dtype.type(0))
        found = CALLS[name](mine)
        assert type(found).__name__ == type(expected).__name__
        assert_ulp(found, expected)


def test_true_is_no_axis_where_one_was():
    values, _ = arrays("float64")
    mine = cf.array(values)
    for _ in range(3):
        mine.sum(1)
        with pytest.raises(TypeError):
            mine.sum(True)


def test_keepdims_of_one_call_is_not_that_of_the_next():
    values, _ = arrays("float64")
    mine = cf.array(values)
    for keepdims in (True, False) * 3:
        assert cf.sum(mine, 0, None, None, keepdims).shape == np.sum(
            values, 0, None, None, keepdims
        ).shape


def test_views_of_a_known_shape_are_read_directly():
    values = np.arange(2000.0).reshape(SHAPE)
    mine = cf.array(values)
    for _ in range(3):
        assert_ulp(mine.sum(0), values.sum(0))
        other = np.arange(2000.0).reshape(SHAPE[::-1])
        assert_ulp(cf.array(other).T.sum(0), other.T.sum(0))
        longer = np.arange(4000.0).reshape(80, 50)
        assert_ulp(cf.array(longer)[::2].sum(0), longer[::2].sum(0))
        flat = np.arange(-1000.0, 1000.0)
        assert_ulp(cf.array(flat).sum(), flat.sum())
        twice = np.concatenate([flat, flat])
        chosen = cf.array(twice)[cf.array(twice >= 0)]
        assert chosen.shape == flat.shape
        assert_ulp(chosen.sum(), twice[twice >= 0].sum())


def test_a_call_in_another_state_of_errors_is_another():
    mine = cf.array(np.full(3000, 1e308))
    for _ in range(3):
        assert np.isinf(float(mine.sum()))
        with cf.errstate(over="raise"), pytest.raises(FloatingPointError):
            float(mine.sum())


def test_what_is_recorded_again_fuses_as_the_first_time():
    counts = []
    for _ in range(4):
        mine = cf.arange(5000.0) * 2
        before = cf.stats()["kernels_launched"]
        float((mine * mine).sum())
        counts.append(cf.stats()["kernels_launched"] - before)
    assert len(set(counts)) == 1

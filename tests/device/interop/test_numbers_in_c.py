"""Lazy scalars where code in C, or Python's own numbers, know floats by their memory."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.marks import compiled

READERS: dict[str, Callable[[Any, Any], Any]] = {
    "timedelta": lambda x, i: (timedelta(x), timedelta(hours=x, minutes=x)),
    "dates": lambda x, i: (datetime.fromtimestamp(x, timezone.utc), date.fromtimestamp(x)),
    "decimal": lambda x, i: (Decimal(x), Decimal.from_float(x)),
    "time": lambda x, i: (time.sleep(x * 0), time.gmtime(x), time.ctime(x), time.localtime(x)),
    "times of numpy": lambda x, i: (
        np.timedelta64(i, "D"), np.timedelta64(i), np.timedelta64(2, ("s", i)),
    ),
    "dtypes": lambda x, i: (
        np.dtype(("f4", i)), np.dtype(("f4", (i, 2))), np.dtype([("a", "f4", i)]),
    ),
    "objects": lambda x, i: (np.void(i), np.object_(x)),
}  # fmt: skip


class Hours(timedelta):
    """A class that derives from one of C's."""


def number(xp: ModuleType, value: Any) -> Any:
    """A lazy scalar under clfuse."""
    return xp.full(3, value).max()


@compiled
@pytest.mark.parametrize("name", READERS)
def test_readers_of_memory_get_numpys_numbers(name: str, xp: ModuleType) -> None:
    ours = READERS[name](number(xp, 2.5), number(xp, 3))
    theirs = READERS[name](number(np, 2.5), number(np, 3))
    assert ours == theirs
    assert list(map(type, ours)) == list(map(type, theirs))


@compiled
def test_derived_classes_and_errors_are_as_before(xp: ModuleType) -> None:
    assert type(Hours(hours=number(xp, 1.5))) is Hours
    assert Hours(hours=number(xp, 1.5)) == timedelta(hours=1.5)
    assert np.dtypes.StringDType() == np.dtypes.StringDType()  # made in C, without arguments
    with pytest.raises(ValueError, match="NaN"):
        timedelta(number(xp, np.nan))
    with pytest.raises(TypeError, match="unsupported type for timedelta"):
        timedelta("1")
    with pytest.raises(TypeError):
        time.sleep("1")  # type: ignore[arg-type]


@pytest.mark.parametrize("short", ["add", "sub", "mul", "truediv", "pow"])
def test_complex_and_float64_are_a_complex_of_pythons(short: str, xp: ModuleType) -> None:
    made = getattr(operator, short)(1.5j, number(xp, 2.0))
    assert type(made) is complex
    assert made == getattr(operator, short)(1.5j, 2.0)
    assert (made * xp.ones(2, np.complex64)).dtype == np.complex64
    single = getattr(operator, short)(1.5j, number(xp, np.float32(2)))
    assert single.dtype == np.complex64


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex128", "bool"])
def test_the_class_of_a_number_is_a_dtype_to_numpy(dtype: str, xp: ModuleType) -> None:
    value = number(xp, np.ones((), dtype)[()])
    kind = type(value)
    assert np.dtype(kind) == dtype
    assert np.zeros(2, kind).dtype == dtype
    assert np.frombuffer(bytes(16), kind).dtype == dtype
    assert np.fromiter([1, 0], dtype=kind).dtype == dtype
    assert xp.zeros(2, kind).dtype == dtype
    assert value.dtype == dtype
    assert np.result_type(kind, np.int8) == np.result_type(np.dtype(dtype).type, np.int8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "bool"])
def test_only_integers_have_an_index(dtype: str, xp: ModuleType) -> None:
    value = number(xp, np.ones((), dtype)[()])
    assert not hasattr(value, "__index__")
    with pytest.raises(TypeError):
        operator.index(value)
    assert operator.index(number(xp, 3)) == 3

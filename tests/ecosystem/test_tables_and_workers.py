"""Polars' tables hold our arrays; joblib's workers get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse

LINE = np.linspace(0.0, 1.0, 6)

TABLES: dict[str, Callable[[Any, Any], Any]] = {
    "columns": lambda pl, x: pl.DataFrame({"x": x, "y": x > 0.3, "z": x.astype(np.int8)}),
    "a matrix": lambda pl, x: pl.DataFrame(x.reshape(3, 2)),
    "rows": lambda pl, x: pl.DataFrame([{"x": x[0], "y": x.max()}]),
    "series": lambda pl, x: pl.Series("x", x) * x + x.sum(),
    "on the right": lambda pl, x: x * pl.Series("x", x),
    "numbers": lambda pl, x: pl.Series("x", [x[1], x.sum()]),
    "expressions": lambda pl, x: pl.DataFrame({"x": x}).with_columns(
        pl.lit(x.mean()).alias("m"), pl.col("x") * x[2], pl.Series("y", x[::-1])
    ),
    "a mask": lambda pl, x: pl.DataFrame({"x": x}).filter(x > 0.3),
    "places": lambda pl, x: pl.DataFrame({"x": x})[(x * 5).astype(int)[::2]],
    "back": lambda pl, x: pl.Series("x", (x + pl.Series("x", x).to_numpy())),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", TABLES)
def test_polars_takes_our_arrays(name: str, host_us: int) -> None:
    pl = pytest.importorskip("polars")
    expected = TABLES[name](pl, LINE)
    with clfuse.config.override(host_us=host_us):
        actual = TABLES[name](pl, clfuse.asarray(LINE) + 0)
    assert type(actual) is type(expected)
    assert actual.equals(expected)


@pytest.mark.parametrize("count", [10, 400_000])
def test_workers_of_joblib_get_our_arrays(count: int) -> None:
    joblib = pytest.importorskip("joblib")
    arrays = [clfuse.ones(count) * number for number in range(3)]  # large ones in mapped files
    found = joblib.Parallel(2)(joblib.delayed(clfuse.mean)(array) for array in arrays)
    assert list(map(float, found)) == [0, 1, 2]

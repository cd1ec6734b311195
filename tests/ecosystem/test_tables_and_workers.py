"""Tables of Polars and pandas hold our arrays and numbers; joblib's workers get them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.support.processes import python

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


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "records": lambda pd, x: pd.DataFrame.from_records([(x.max(), x[1]), (x.min(), x[2])]),
    "a dict": lambda pd, x: pd.DataFrame.from_dict({"r": [x.max(), x[1]]}, orient="index"),
    "pairs": lambda pd, x: pd.MultiIndex.from_tuples([(x[1], x[2]), (x[2], x[3])]).to_frame(),
    "products": lambda pd, x: pd.MultiIndex.from_product([[x[1], x[2]], [x.max()]]).to_frame(),
    "extension": lambda pd, x: pd.Series(pd.array([x.sum(), x[1]])),
    "categories": lambda pd, x: pd.Series(pd.Categorical([x[1], x[2], x[1]]).categories),
    "numeric": lambda pd, x: pd.Series(pd.to_numeric([x.sum(), x[1]])),
    "datetimes": lambda pd, x: pd.Series(pd.to_datetime([x.max(), x[1]], unit="s")),
    "timedeltas": lambda pd, x: pd.Series(pd.to_timedelta([x.max(), x[1]], unit="s")),
    "a timedelta": lambda pd, x: pd.Series([pd.Timedelta(x.max(), unit="s")]),
    "a range": lambda pd, x: pd.Series(pd.date_range("2020-01-01", periods=_whole(x))),
    "the first": lambda pd, x: pd.Series(LINE).head(_whole(x)),
    "cut": lambda pd, x: pd.Series(LINE).iloc[: _whole(x)],
    "rolling": lambda pd, x: pd.Series(LINE).rolling(_whole(x)).sum(),
    "drawn": lambda pd, x: pd.Series(LINE).sample(_whole(x), random_state=_whole(x)),
    "largest": lambda pd, x: pd.Series(LINE).nlargest(_whole(x)),
    "keys": lambda pd, x: pd.concat({x[1]: pd.Series([1.0]), x[2]: pd.Series([2.0])}),
    "applied": lambda pd, x: pd.Series(LINE).apply(lambda y: (x * y).sum()),
    "mapped": lambda pd, x: pd.Series(LINE).map(lambda y: (x * y).sum()),
    "applied to rows": lambda pd, x: pd.DataFrame({"y": LINE}).apply(
        lambda row: (x * row["y"]).sum(), axis=1
    ),
    "one place": lambda pd, x: pd.Series([
        pd.Series(LINE).at[_whole(x)], pd.DataFrame({"y": LINE}).iat[_whole(x), 0]
    ]),
    "a row": lambda pd, x: pd.DataFrame({"y": LINE}).xs(_whole(x)),
    "differences": lambda pd, x: pd.Series(LINE).diff(_whole(x)) + pd.Series(
        LINE + 1
    ).pct_change(_whole(x)),
    "combined": lambda pd, x: pd.Series(LINE).combine(x.max(), lambda a, b: a + b),
    "operands": lambda pd, x: pd.DataFrame({"y": LINE, "z": LINE}).add([x.max(), x.sum()]),
    "an operand": lambda pd, x: pd.DataFrame({"y": np.arange(3, dtype="i4")}).pow(
        (x[:2] > 0).sum().astype(np.int32)
    ),
    "an index": lambda pd, x: pd.DataFrame({"y": LINE}).set_index(x * 2),
    "no rows": lambda pd, x: pd.Series(x[:0]).combine_first(pd.Series(x[:0])),
    "an empty table": lambda pd, x: pd.DataFrame(x[:0].reshape(0, 2), columns=["y", "z"]),
    "mapped in a table": lambda pd, x: pd.DataFrame({"y": LINE}).map(lambda y: (x * y).max()),
}


def test_functions_of_pandas_that_came_first_are_opened(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    program = (
        "import pandas, clfuse\n"
        "print(len(pandas.date_range('2000', periods=clfuse.full(3, 2).max())))"
    )
    done = python("-c", program, cwd=tmp_path, CLFUSE_HOST_US="0")
    assert done.stdout.split() == ["2"], done.stderr


def _whole(x: Any) -> Any:
    """The number 2."""
    return (x * 10).astype(np.int64)[1]


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", NUMBERS)
def test_pandas_takes_lazy_scalars_for_numbers(name: str, host_us: int) -> None:
    pd = pytest.importorskip("pandas")
    expected = NUMBERS[name](pd, LINE)
    with clfuse.config.override(host_us=host_us):
        actual = NUMBERS[name](pd, clfuse.asarray(LINE) + 0)
    compare = pd.testing.assert_frame_equal if hasattr(actual, "columns") else (
        pd.testing.assert_series_equal
    )
    compare(actual, expected)


@pytest.mark.parametrize("count", [10, 400_000])
def test_workers_of_joblib_get_our_arrays(count: int) -> None:
    joblib = pytest.importorskip("joblib")
    arrays = [clfuse.ones(count) * number for number in range(3)]  # large ones in mapped files
    found = joblib.Parallel(2)(joblib.delayed(clfuse.mean)(array) for array in arrays)
    assert list(map(float, found)) == [0, 1, 2]


@pytest.mark.parametrize("host_us", [None, 0])
@pytest.mark.parametrize("name", ["add", "rsub", "mul", "div", "floordiv", "pow", "eq", "lt"])
def test_methods_of_pandas_for_operators_take_ours(name: str, host_us: int | None) -> None:
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, np.nan, 3.0])
    frame = pd.DataFrame({"a": series, "b": [4.0, 5.0, 6.0]})
    with clfuse.config.override(**({} if host_us is None else {"host_us": host_us})):
        for table, shapes in ((series, [(3,)]), (frame, [(2,), (3, 2)])):
            for shape in shapes:
                host = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
                filled = {} if table is frame and name in ("eq", "lt") else {"fill_value": 2.0}
                for options in ({}, filled):
                    expected = getattr(table, name)(host, **options)
                    found = getattr(table, name)(clfuse.asarray(host) * 1, **options)
                    assert type(found) is type(expected)
                    assert found.equals(expected)

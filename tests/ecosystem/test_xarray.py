"""xarray around clfuse arrays: values are NumPy's, data stays ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.ecosystem.comparing import HOLES, VALUES, agree

xr = pytest.importorskip("xarray")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning",
                                        "ignore::RuntimeWarning")


def labelled(m: Any, values: Any = VALUES) -> Any:
    return xr.DataArray(m.asarray(values), dims=("x", "y"), name="q", coords={
        "x": np.arange(8), "y": list("abcdef"), "g": ("x", np.array([0, 1, 0, 1, 2, 2, 0, 1]))})


def written(d: Any) -> Any:
    d = d.copy()
    d[2:4] = 5
    d.loc[{"x": slice(6, 7)}] = d[0]
    return d


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda d, h: d * 2 + d[0], "ufunc": lambda d, h: np.sin(d),
    "mean": lambda d, h: h.mean("x"), "sum": lambda d, h: h.sum("y"),
    "std": lambda d, h: d.std("y"),
    "median": lambda d, h: d.median("x"), "quantile": lambda d, h: d.quantile([0.1, 0.5], "x"),
    "max": lambda d, h: d.max("x"), "argmax": lambda d, h: d.argmax("x"),
    "idxmax": lambda d, h: d.idxmax("x"), "count": lambda d, h: h.count("x"),
    "cumsum": lambda d, h: d.cumsum("x"), "slices": lambda d, h: d.isel(x=slice(1, 7, 2)),
    "list": lambda d, h: d.isel(x=[1, 3, 0]), "label": lambda d, h: d.sel(y=["a", "d"]),
    "where": lambda d, h: d.where(d > 0), "fill": lambda d, h: h.fillna(0),
    "null": lambda d, h: h.isnull(), "drop": lambda d, h: h.dropna("x"),
    "group mean": lambda d, h: d.groupby("g").mean(),
    "group sum": lambda d, h: h.groupby("g").sum(),
    "group anomaly": lambda d, h: d.groupby("g") - d.groupby("g").mean(),
    "group map": lambda d, h: d.groupby("g").map(lambda part: part - part.mean()),
    "bins": lambda d, h: d.groupby_bins("x", [0, 3, 8]).sum(),
    "rolling": lambda d, h: d.rolling(x=3).mean(), "coarsen": lambda d, h: d.coarsen(x=2).mean(),
    "shift": lambda d, h: d.shift(x=1), "roll": lambda d, h: d.roll(x=1),
    "diff": lambda d, h: d.diff("x"), "differentiate": lambda d, h: d.differentiate("x"),
    "integrate": lambda d, h: d.integrate("x"), "pad": lambda d, h: d.pad(x=2, mode="reflect"),
    "concat": lambda d, h: xr.concat([d, d], "n"), "inner": lambda d, h: d[1:] + d[:-1],
    "outer": lambda d, h: xr.align(d[1:], d[:-1], join="outer")[0],
    "dot": lambda d, h: xr.dot(d, d, dim="x"),
    "weighted": lambda d, h: d.weighted(d[:, 0] ** 2).mean("x"),
    "stack": lambda d, h: d.drop_vars("g").stack(z=("x", "y")),
    "corr": lambda d, h: xr.corr(d, d ** 2, "x"),
    "sort": lambda d, h: d.sortby("x", ascending=False), "written": lambda d, h: written(d),
    "dataset": lambda d, h: xr.Dataset({"a": d, "b": d * 2}).mean("x").b,
    "apply": lambda d, h: xr.apply_ufunc(lambda values: values * 2, d),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_xarray_gives_numpys_values_in_our_arrays(name: str) -> None:
    body = PROGRAMS[name]
    result = agree(lambda m: body(labelled(m), labelled(m, HOLES)).data)
    assert type(result) is clfuse.ndarray


def test_what_xarray_does_on_the_host_is_right_too() -> None:
    agree(lambda m: labelled(m).interp(x=[0.5, 2.5]).data)
    agree(lambda m: labelled(m).interp(x=m.asarray([0.5, 2.5])).data)
    agree(lambda m: labelled(m).sum().data)
    agree(lambda m: labelled(m).to_pandas().values)
    agree(lambda m: labelled(m).to_numpy())
    assert labelled(clfuse).identical(labelled(clfuse))
    assert repr(labelled(clfuse)).count("clfuse") == 0
    assert "clfuse.ndarray" in labelled(clfuse)._repr_html_()


def _assigned(d: Any, place: Any, value: Any) -> Any:
    d = d.copy()
    d[place] = value
    return d


def _points(*places: int) -> Any:
    return xr.DataArray(list(places), dims="points")


POINTWISE: dict[str, Callable[[Any], Any]] = {
    "two axes": lambda d: d.isel(x=_points(0, 1, 5), y=_points(2, 3, 0)),
    "one axis of two": lambda d: d.isel(x=_points(3, 3)),
    "a table of places": lambda d: d.isel(y=xr.DataArray([[0, 1], [2, 3]], dims=("a", "b"))),
    "labels": lambda d: d.sel(x=_points(1, 2), method="nearest"),
    "orthogonal": lambda d: d.isel(x=[0, 2], y=[1, 1, 3]),
    "slices": lambda d: d.isel(x=slice(1, 4), y=2),
    "a mask": lambda d: d.isel(x=d[:, 0].values > 0),
    "written": lambda d: _assigned(d, {"x": _points(0, 1), "y": _points(1, 2)}, 7.0),
    "a part written": lambda d: _assigned(d, {"x": slice(2, 4)}, 7.0),
    "transposed": lambda d: d.T.isel(x=_points(0, 1), y=_points(2, 3)),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_xarray_picks_points_of_our_arrays(name: str) -> None:
    result = agree(lambda m: POINTWISE[name](labelled(m)).data)
    assert type(result) is clfuse.ndarray


@pytest.mark.parametrize("order", ["import xarray as xr\nimport clfuse as cf",
                                   "import clfuse as cf\nimport xarray as xr"])
def test_xarray_picks_points_whichever_is_imported_first(order: str) -> None:
    program = f"""{order}
x = xr.DataArray(cf.arange(12.0).reshape(3, 4), dims=("y", "x"))
at = xr.DataArray([0, 2], dims="p")
print(x.isel(y=at, x=at).values.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[0.0, 10.0]\n", done.stderr


def test_xarray_takes_a_place_of_no_dimension() -> None:
    agree(lambda m: labelled(m)[m.array(2)].data)
    agree(lambda m: labelled(m).variable[m.array(2), 1:3].data)
    agree(lambda m: labelled(m).variable[m.array([2, 0])].data)


def test_attributes_that_are_arrays_become_lists_in_dicts() -> None:
    attributes = {"a": clfuse.array([1.0, 2.0]), "b": clfuse.array(3), "c": clfuse.int8(4)}
    shown = labelled(clfuse).assign_attrs(attributes).to_dict()["attrs"]
    assert shown == {"a": [1.0, 2.0], "b": 3, "c": 4}


def test_chunked_by_dask() -> None:
    pytest.importorskip("dask.array")
    result = agree(lambda m: labelled(m, HOLES).chunk(x=3).mean("x").compute().data)
    assert type(result) is clfuse.ndarray


def test_the_text_of_a_dataset_shows_numbers() -> None:
    def shown(m: Any) -> str:
        return str(xr.Dataset({
            "a": (("x", "y"), m.arange(6.0).reshape(2, 3) / 7),
            "b": ("x", m.asarray([True, False])),
            "c": ((), m.float32(2.5)),
            "d": ("z", m.arange(1000)),
            "e": (("p", "q"), m.zeros((0, 3))),
            "g": ("u", m.linspace(0, 1, 300_000)),
        }))  # fmt: skip

    assert shown(clfuse) == shown(np)

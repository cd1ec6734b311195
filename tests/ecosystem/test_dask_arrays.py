"""clfuse arrays as chunks of `dask.array`, in threads of this process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse
from tests.ecosystem.comparing import HOLES, LINE, MATRIX

dask = pytest.importorskip("dask")
pytest.importorskip("dask.array")
import dask.array as da
from dask.sizeof import sizeof
from dask.tokenize import tokenize

import clfuse.dask
from clfuse.dask.arrays import Backend

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning",
                                        "ignore:Increasing number of chunks")

WHOLE = np.random.default_rng(3).integers(-5, 9, (23, 17))
FLOATS = np.random.default_rng(4).standard_normal((23, 17))
FLOATS[3, 4] = np.nan
POINTS = np.random.default_rng(5).standard_normal(101)


def assigned(x: Any) -> Any:
    x = x.copy()
    x[2:4] = 7
    x[x > 5] = 0
    return x


# Of floats with a NaN, of whole numbers, and of a vector.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "arithmetic": lambda x, k, v: np.sin(x) * 2 + k ** 2 - x.mean(axis=0),
    "sum": lambda x, k, v: k.sum(), "nansum": lambda x, k, v: da.nansum(x, axis=0),
    "mean": lambda x, k, v: k.mean(axis=1), "var": lambda x, k, v: k.var(axis=0, ddof=1),
    "nanstd": lambda x, k, v: da.nanstd(x), "moment": lambda x, k, v: da.moment(v, 3),
    "max": lambda x, k, v: da.nanmax(x, axis=1), "any": lambda x, k, v: (k > 5).any(axis=0),
    "argmax": lambda x, k, v: k.argmax(axis=0), "argmin": lambda x, k, v: k.argmin(),
    "median": lambda x, k, v: da.median(k, axis=1),
    "nanmedian": lambda x, k, v: da.nanmedian(x, axis=0),
    "percentile": lambda x, k, v: da.percentile(v, [10, 50, 90]),
    "quantile": lambda x, k, v: da.nanquantile(x, 0.3, axis=1),
    "cumsum": lambda x, k, v: da.cumsum(k, axis=1),
    "cumprod": lambda x, k, v: da.cumprod(v, axis=0),
    "blelloch": lambda x, k, v: da.cumsum(k, axis=0, method="blelloch"),
    "concatenate": lambda x, k, v: da.concatenate([x, k[:3]]),
    "stack": lambda x, k, v: da.stack([x, k]), "block": lambda x, k, v: da.block([[x, k], [k, x]]),
    "slices": lambda x, k, v: x[20:2:-3, ::-1].T, "rows": lambda x, k, v: x[[3, 1, 20, 3]],
    "points": lambda x, k, v: x.vindex[[1, 5, 22], [0, 16, 3]],
    "gather": lambda x, k, v: v[da.from_array(np.array([3, 99, 0, 5]))],
    "mask": lambda x, k, v: v[v > 0], "mask of two": lambda x, k, v: x[k > 3],
    "assignment": lambda x, k, v: assigned(k), "where": lambda x, k, v: da.where(k > 0, x, 0),
    "rechunk": lambda x, k, v: x.rechunk((23, 2)), "ravel": lambda x, k, v: x.ravel(),
    "pad": lambda x, k, v: da.pad(k, 2, mode="reflect"), "roll": lambda x, k, v: da.roll(x, 3),
    "repeat": lambda x, k, v: da.repeat(x, 2, axis=0), "tile": lambda x, k, v: da.tile(x, (2, 1)),
    "insert": lambda x, k, v: da.insert(x, 3, 5, axis=0), "diff": lambda x, k, v: da.diff(v),
    "coarsen": lambda x, k, v: da.coarsen(np.sum, v[:100].rechunk(20), {0: 5}),
    "matmul": lambda x, k, v: k @ k.T, "vdot": lambda x, k, v: da.vdot(v, v),
    "tensordot": lambda x, k, v: da.tensordot(k, k, axes=([0], [0])),
    "einsum": lambda x, k, v: da.einsum("ij,kj->ik", k, k), "outer": lambda x, k, v: da.outer(v, v),
    "map_blocks": lambda x, k, v: x.map_blocks(lambda chunk: np.cos(chunk) * 2 + 1),
    "map_overlap": lambda x, k, v: k.map_overlap(
        lambda chunk: chunk + np.roll(chunk, 1, 0), depth=1, boundary="reflect"),
    "gufunc": lambda x, k, v: da.apply_gufunc(
        lambda row: row.mean(axis=-1), "(i)->()", k.rechunk((5, 17)), output_dtypes=float),
    "reduction": lambda x, k, v: da.reduction(
        v, chunk=lambda c, axis, keepdims: (c ** 2).sum(axis=axis, keepdims=keepdims),
        aggregate=np.sum, dtype=float),
    "histogram": lambda x, k, v: da.histogram(v, bins=7, range=(-3, 3))[0],
    "bincount": lambda x, k, v: da.bincount(da.ravel(k) + 5, minlength=20),
    "searchsorted": lambda x, k, v: da.searchsorted(da.from_array(np.arange(10.0)), v),
    "unique": lambda x, k, v: da.unique(da.ravel(k)), "topk": lambda x, k, v: v.topk(5),
    "isin": lambda x, k, v: da.isin(k, [1, 2]), "nonzero": lambda x, k, v: da.nonzero(k > 3)[0],
    "fft": lambda x, k, v: da.fft.fft(v.rechunk(101)), "cov": lambda x, k, v: da.cov(k),
    "svd": lambda x, k, v: da.linalg.svd(k.rechunk((8, 17)))[1],
    "solve": lambda x, k, v: da.linalg.solve(k[:5, :5] * 1.0 + 20 * np.eye(5), v[:5]),
    "astype": lambda x, k, v: x.astype("f4"), "view": lambda x, k, v: v.view("i8"),
}


def collections(convert: Callable[[Any], Any]) -> list[Any]:
    return [da.from_array(convert(values), chunks=chunks)
            for values, chunks in ((FLOATS, (7, 6)), (WHOLE, (7, 6)), (POINTS, 20))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_dask_with_our_chunks_gives_what_it_gives_with_numpys(name: str) -> None:
    program = PROGRAMS[name]
    expected = np.asarray(program(*collections(np.asarray)).compute(scheduler="sync"))
    actual = np.asarray(program(*collections(clfuse.array)).compute(scheduler="threads"))
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_chunks_and_meta_stay_ours() -> None:
    x, k, _ = collections(clfuse.array)
    for made in (x + k, np.sin(x), x.T, da.concatenate([x, k]), k.mean(axis=0), k @ k.T,
                 x.map_blocks(lambda chunk: chunk * 2), x.rechunk(5), da.where(k > 0, x, 0)):
        assert type(made._meta) is clfuse.ndarray
        assert type(made.compute(scheduler="sync")) is clfuse.ndarray


def test_chunks_of_many_operations_are_computed_by_one_kernel(
    launched: Callable[..., int]
) -> None:
    with clfuse.config.override(host_us=0):
        x = clfuse.arange(60_000.0)
        clfuse.evaluate(x)
        blocks = da.from_array(x, chunks=20_000)
        made = (np.sqrt(blocks) * 2 + 1 - blocks / 3).map_blocks(np.abs).to_delayed()
        assert launched(lambda: clfuse.evaluate(
            dask.compute(*made, scheduler="sync"))) == 1


def test_the_backend_creates_converts_and_draws() -> None:
    host = da.from_array(LINE, chunks=20)
    ours = host.to_backend("clfuse")
    assert type(ours._meta) is clfuse.ndarray
    assert ours.to_backend("clfuse") is ours
    back = ours.to_backend("numpy").compute(scheduler="sync")
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, LINE)
    with dask.config.set({"array.backend": "clfuse"}):
        for made, expected in (
            (da.ones((5, 3), chunks=2), np.ones((5, 3))),
            (da.zeros(4, dtype="i2"), np.zeros(4, "i2")),
            (da.full((3,), 2.5), np.full(3, 2.5)), (da.arange(10, chunks=3), np.arange(10)),
        ):
            found = made.compute(scheduler="sync")
            assert type(found) is clfuse.ndarray
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(found), expected)
        draws = [da.random.default_rng(1).normal(size=300, chunks=100).compute() for _ in range(2)]
        assert type(draws[0]) is clfuse.ndarray
        assert (draws[0] == draws[1]).all()
        assert len(np.unique(np.asarray(draws[0]))) == 300
        assert da.random.RandomState(1).uniform(size=9, chunks=3).compute().shape == (9,)
    assert Backend.to_backend_dispatch()(LINE).shape == LINE.shape


def test_importing_clfuse_imports_none_of_these_packages() -> None:
    names = "dask distributed xarray pandas matplotlib sklearn scipy einops IPython".split()
    code = f"import sys, clfuse; print([name for name in {names} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_equal_contents_have_equal_names() -> None:
    x = clfuse.arange(6.0).reshape(2, 3)
    assert tokenize(x) == tokenize(clfuse.array(np.arange(6.0).reshape(2, 3)))
    assert tokenize(x[:, ::2]) == tokenize(clfuse.array([[0.0, 2.0], [3.0, 5.0]]))
    names = [tokenize(other) for other in (x, x.T, x + 1, -x, x.astype("f4"), np.asarray(x), x[0])]
    assert len(set(names)) == len(names)
    assert da.from_array(x).name == da.from_array(x.copy()).name


def test_sizes_are_bytes() -> None:
    x = clfuse.zeros((100, 50))
    assert sizeof(x) == 40_000
    assert sizeof(x[3:13]) == 4_000
    assert sizeof(clfuse.broadcast_to(x[0], (100, 50))) == 400
    assert sizeof(x.sum()) <= 32  # NumPy's own scalar, where x lies on the host
    assert x.__sizeof__() > 40_000 > 1_000 > x[3:13].__sizeof__()


FOREIGN = (np.arange(24.0).reshape(4, 6), np.arange(24, dtype="i2").reshape(4, 6).T,
           np.arange(24.0)[::-2], np.zeros((0, 3), "c8"), np.array(3.5),
           np.broadcast_to(np.array([1, 2, 3], "u1")[:, None], (3, 4)))


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("values", FOREIGN, ids=lambda values: str(values.shape))
def test_pickles_are_arrays_of_their_own(values: Any, protocol: int) -> None:
    x = clfuse.asarray(values)
    buffers: list[Any] = []
    takes = {"buffer_callback": buffers.append} if protocol == 5 else {}
    made = pickle.loads(pickle.dumps(x, protocol, **takes), buffers=buffers)
    np.testing.assert_array_equal(np.asarray(made), values)
    assert made.dtype == values.dtype
    assert made.flags.writeable == x.flags.writeable
    if made.flags.writeable:
        doubled = made * 2
        made[...] = 1
        np.testing.assert_array_equal(np.asarray(doubled), values * 2)
        np.testing.assert_array_equal(np.asarray(x), values)


def test_a_lazy_scalar_and_its_class_travel() -> None:
    total = clfuse.array(MATRIX).sum()
    assert pickle.loads(pickle.dumps(total)) == total
    assert issubclass(pickle.loads(pickle.dumps(type(total))), np.float64)
    with clfuse.config.override(host_us=0):
        kind = type((clfuse.array(MATRIX) * 2).sum())
        assert pickle.loads(pickle.dumps(kind)) is np.float64


def test_what_travels_is_the_arrays_own_memory_and_once() -> None:
    if not clfuse.get_device().traits.unified_memory:
        pytest.skip("the device copies")
    x = clfuse.array(np.arange(200_000.0)) + 1
    buffers: list[Any] = []
    frame = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert np.shares_memory(np.frombuffer(buffers[0], "f8"), np.asarray(x))
    before = clfuse.stats()["bytes_to_device"]
    made = pickle.loads(frame, buffers=[bytearray(buffers[0])])
    np.testing.assert_array_equal(np.asarray(made * 2), np.asarray(x) * 2)
    assert clfuse.stats()["bytes_to_device"] == before
    wide = clfuse.broadcast_to(x, (1000, 200_000))
    pickle.dumps(wide, 5, buffer_callback=buffers.append)
    assert buffers[1].raw().nbytes == x.nbytes


def test_holes_in_threads_at_once() -> None:
    blocks = da.from_array(clfuse.array(np.tile(HOLES, (40, 5))), chunks=(16, 5))
    made = (da.nanmean(blocks, axis=0) + da.nansum(blocks ** 2, axis=0)).compute(
        scheduler="threads", num_workers=8)
    whole = np.tile(HOLES, (40, 5))
    expected = np.nanmean(whole, axis=0) + np.nansum(whole ** 2, axis=0)
    np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-12)


@pytest.mark.parametrize("imports", [
    "import numpy as np\nimport dask.array as da", "import dask.array as da\nimport numpy as np",
    "import numpy as np\nfrom dask import array as da",
])
def test_a_program_unaware_of_clfuse_has_percentiles_of_chunks(
    imports: str, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(imports + """
x = np.arange(100.0) % 37
chunks = da.from_array(x, chunks=30)
print(type(x).__module__)
print(da.percentile(chunks, [25, 50]).compute(scheduler="sync"))
""")
    printed = [
        subprocess.run([sys.executable, *how, str(script)], capture_output=True, text=True,
                       check=True, timeout=300).stdout.split("\n", 1)
        for how in ([], ["-m", "clfuse", "run"])
    ]
    assert [module for module, _ in printed] == ["numpy", "clfuse"]
    assert printed[0][1] == printed[1][1]

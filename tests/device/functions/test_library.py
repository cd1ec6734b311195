"""What NumPy's compiled parts do on the device's memory: orders, decompositions, transforms, sums
of products. Values, dtypes and errors are NumPy's; where memory is shared nothing is copied, and
nothing counted as a fallback.
"""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_bitwise, assert_same_error, given, host
from tests.support.hostile import hostile, ordinary

DTYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
Setting = Callable[..., None]


def tolerance(expected: Any, factor: float = 200) -> Any:
    """What rounding in another order may do to results of this size."""
    found = np.asarray(expected)
    if found.dtype.kind not in "fc" or not found.size:
        return 0
    finite = np.abs(found[np.isfinite(found)])
    size = max(float(finite.max()) if finite.size else 0.0, 1e-3)
    bound = float(np.finfo(found.dtype).eps) * factor * size
    return np.full(found.shape, bound * (1 + 1j) if found.dtype.kind == "c" else bound)


class Near(Batch):
    """A batch whose results may be rounded in another order."""

    def same(self, label: str, function: Callable[[Any], Any], **options: Any) -> None:
        try:
            found = function(np)
        except Exception:
            found = 0
        if isinstance(found, tuple | list):
            for place in range(len(found)):

                def one(m: Any, place: int = place) -> Any:
                    return function(m)[place]

                super().same(f"{label}[{place}]", one, bound=tolerance(found[place]))
        elif isinstance(found, np.ndarray | np.generic):
            super().same(label, function, bound=tolerance(found))
        else:
            super().same(label, function)


def arrangements(m: ModuleType, data: Any) -> Iterator[tuple[str, Any]]:
    """The same kind of matrix lying in several ways."""
    yield "plain", m.asarray(data)
    yield "Fortran", m.asfortranarray(m.asarray(data))
    yield "backwards", m.asarray(data)[::-1, ::-1]
    yield "expression", m.asarray(data) + m.asarray(data)
    yield "slices", m.asarray(np.stack([data] * 4, 1))[:, 1]


# -- sorting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_hostile_values(xp: ModuleType, dtype: str) -> None:
    values = hostile(dtype)
    data = np.random.default_rng(3).permutation(np.concatenate([values] * 3))
    rows = data[: len(data) // 3 * 3].reshape(3, -1)
    batch = Batch(xp)

    def in_order(m: ModuleType) -> list[Any]:
        x, made = m.asarray(rows), []
        for axis in (0, 1, -1, None):
            made += [
                m.sort(x, axis, stable=True),
                m.argsort(x, axis=axis, kind="stable"),
                x.argsort(axis, stable=True),
            ]
        return made

    def several(m: ModuleType) -> list[Any]:
        x, made = m.asarray(rows), []
        for axis in (0, 1, -1, None):
            made += [m.sort(x, axis=axis), m.sort(x, axis, "heapsort")]
            made.append(m.sort(m.partition(x, 1, axis=axis), axis))
        y = x.copy()
        made += [y.sort(), y]
        z = x.copy()
        z.T.sort(0)
        z[1, ::-2].sort()
        made += [
            z,
            m.lexsort((x[0], x[1], x[2])),
            m.lexsort(x),
            m.sort(x[:, :0]),
            m.sort(x[:1, :1]),
        ]
        return [item for item in made if item is not None]

    batch.same(f"{dtype} in order", in_order)
    batch.same(dtype, several, zero_signs=False)  # equal zeros may come out in any order
    batch.same("one", lambda m: m.sort(m.asarray([7]).astype(dtype)))
    batch.same("flat one", lambda m: m.sort(m.asarray(7).astype(dtype), axis=None))
    batch.check()


def test_sorts_of_views_and_expressions(xp: ModuleType) -> None:
    data = ordinary(5, (6, 8), "float64", "unit")
    batch = Batch(xp)
    for place, (name, _) in enumerate(arrangements(np, data)):
        for axis in (0, 1, None):

            def sorts(m: ModuleType, place: int = place, axis: Any = axis) -> list[Any]:
                x = list(arrangements(m, data))[place][1]
                y = m.sort(x, axis=axis)
                return [
                    y,
                    m.sort(-y, axis) * 2,
                    x,
                    m.argsort(x, axis),
                    m.sort(x + 1, axis)[..., :3],
                ]

            batch.same(f"{name} {axis}", sorts)
    batch.check()


def test_partitions_hold_what_they_promise(xp: ModuleType) -> None:
    data = ordinary(6, (5, 40), "float32", "unit")
    x = xp.asarray(data)
    for places in (3, -1, [2, 7, 30], np.array([0]), xp.asarray([4, 9])):
        at = np.sort(host(places).reshape(-1) % 40)
        found, order = host(xp.partition(x, places)), host(xp.argpartition(x, places, axis=-1))
        moved = xp.array(x)
        moved.partition(places)
        for made in (found, np.take_along_axis(data, order, 1), host(moved)):
            assert_bitwise(np.sort(made), np.sort(data))
            for k in at:
                assert_bitwise(made[:, k], np.sort(data)[:, k])
                assert (made[:, :k].max(1, initial=-9) <= made[:, k]).all()
                assert (made[:, k:].min(1) == made[:, k]).all()


def test_errors_of_sorts(xp: ModuleType) -> None:
    def frozen(m: ModuleType) -> Any:
        x = m.zeros(3)
        x.flags.writeable = False
        return x

    for call in (
        lambda m: m.sort(m.zeros(3), axis=1),
        lambda m: m.sort(m.zeros(())),
        lambda m: m.sort(m.zeros(3), kind="no"),
        lambda m: m.zeros(()).sort(),
        lambda m: m.sort(m.zeros(3), kind="stable", stable=True),
        lambda m: m.sort(m.zeros(3), order="x"),
        lambda m: m.zeros((2, 2)).sort(2),
        lambda m: m.partition(m.zeros(3), 3),
        lambda m: m.partition(m.zeros(3), 1.0),
        lambda m: m.zeros((4, 2)).partition(3),
        lambda m: m.argpartition(m.zeros(3), -4),
        lambda m: m.argsort(m.zeros(3), 1),
        lambda m: m.lexsort(()),
        lambda m: m.lexsort((m.zeros(3), m.zeros(2))),
        lambda m: m.lexsort((m.zeros(3), m.zeros(3)), axis=2),
        lambda m: frozen(m).sort(),
        lambda m: frozen(m).partition(1),
    ):
        assert_same_error(call, xp)


@pytest.mark.clfuse_only
def test_sorts_are_recorded_and_copy_nothing(xp: ModuleType, setting: Setting) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    setting(fallback="raise")
    data = ordinary(7, 100_000, "float64", "unit")
    x = xp.asarray(data)
    seen = np.asarray(x)
    xp.synchronize()
    gc.collect()  # what earlier tests left would go meanwhile
    before = xp.stats()
    y = xp.sort(x * 2)
    assert [kernel.kind for kernel in xp.explain(y).kernels] == ["map", "library"]
    assert xp.stats()["library_calls"] == before["library_calls"]
    xp.counters.reset_peak()
    xp.evaluate(y)
    after = xp.stats()
    assert after["library_calls"] == before["library_calls"] + 1
    assert after["device_bytes_peak"] - before["device_bytes_now"] == data.nbytes
    assert after["bytes_to_host"] == before["bytes_to_host"]
    assert after["bytes_to_device"] == before["bytes_to_device"]
    x.sort()
    assert_bitwise(x, np.sort(data))
    assert_bitwise(seen, data)
    assert_bitwise(y, np.sort(data * 2))


@pytest.mark.clfuse_only
def test_memory_that_was_looked_at_is_written_to_again(xp: ModuleType) -> None:
    x = xp.asarray(ordinary(8, 50_000, "float64", "unit"))
    x.sort()
    xp.evaluate(x)
    place = np.asarray(x).ctypes.data
    seen = np.asarray(x)
    x += 1
    assert np.asarray(x).ctypes.data != place
    assert_bitwise(seen + 1, host(x))
    del seen
    place = np.asarray(x).ctypes.data
    x += 1
    if xp.get_device().traits.unified_memory:
        assert np.asarray(x).ctypes.data == place


# -- linear algebra -------------------------------------------------------------------------------


def matrices(m: ModuleType, shape: tuple[int, ...], dtype: str) -> Any:
    return m.asarray(ordinary(9, shape, dtype, "halves" if dtype[0] in "fc" else "small"))


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64", "complex128"])
def test_decompositions(xp: ModuleType, dtype: str) -> None:
    batch = Near(xp)

    @functools.cache  # one array: what is computed of it shares kernels
    def regular(m: ModuleType, shape: tuple[int, ...]) -> Any:
        return matrices(m, shape, dtype) + 9 * m.eye(4, dtype=dtype)

    linalg: dict[str, Callable[[Any, Any], Any]] = {
        "inv": lambda m, a: m.linalg.inv(a),
        "det": lambda m, a: m.linalg.det(a),
        "slogdet": lambda m, a: m.linalg.slogdet(a),
        "solve": lambda m, a: m.linalg.solve(a, a[..., :, :1]),
        "eigvalsh": lambda m, a: m.linalg.eigvalsh(a),
        "pinv": lambda m, a: m.linalg.pinv(a),
        "svd": lambda m, a: m.linalg.svd(a, compute_uv=False),
        "svdvals": lambda m, a: m.linalg.svdvals(a),
        "qr": lambda m, a: m.linalg.qr(a),
        "rank": lambda m, a: m.linalg.matrix_rank(a),
        "cond": lambda m, a: m.linalg.cond(a),
        "power": lambda m, a: m.linalg.matrix_power(a, 5),
        "inverse": lambda m, a: m.linalg.matrix_power(a, -2),
        "one": lambda m, a: m.linalg.matrix_power(a, 0),
        "cholesky": lambda m, a: m.linalg.cholesky(a @ a.swapaxes(-1, -2).conj() + m.eye(4)),
        "norms": lambda m, a: [
            m.linalg.norm(a, o, (-2, -1), k)
            for k in (False, True)
            for o in (None, "fro", 1, -1, np.inf, -np.inf, 2, "nuc")
        ],
        "turned": lambda m, a: [m.linalg.norm(a, o, (-1, -2)) for o in (1, -1, np.inf)],
        "vectors": lambda m, a: [
            m.linalg.norm(a, o, axis)
            for axis in (0, -1)
            for o in (None, 0, 1, 2, 3, 2.5, -1, np.inf, -np.inf)
        ],
        "names": lambda m, a: [
            m.linalg.matrix_norm(a),
            m.linalg.vector_norm(a, ord=1),
            m.linalg.vector_norm(a, axis=-1),
            m.linalg.matrix_transpose(a),
            m.linalg.diagonal(a, offset=1),
            m.linalg.trace(a),
            m.linalg.matmul(a, a),
            m.linalg.tensordot(a, a, axes=((-1,), (-2,))),
            m.vecdot(a, a + 1),
            m.linalg.vecdot(a, a),
            m.matvec(a, a[..., 0]),
            m.vecmat(a[..., 0], a),
        ],
        "multi_dot": lambda m, a: [
            m.linalg.multi_dot([a, a, a[:, :1]]),
            m.linalg.multi_dot([a[0], a, a, a[0]]),
            m.linalg.multi_dot([a, a, a, a, a[:, 0]]),
        ],
    }
    fused = ("norms", "turned", "vectors", "names", "multi_dot")
    for name, call in linalg.items():
        if name in fused and dtype not in ("float32", "complex128"):
            continue
        for shape in ((4, 4), (3, 4, 4)):
            if (name == "multi_dot" and len(shape) > 2) or (name in fused[:-1] and len(shape) < 3):
                continue

            batch.same(f"{name} {shape}", lambda m, call=call, shape=shape: call(
                m, regular(m, shape)))
    for name in ("inv", "det", "qr"):
        batch.same(
            f"{name} Fortran",
            lambda m, name=name: getattr(m.linalg, name)(
                m.asfortranarray(matrices(m, (4, 4), dtype) + 5 * m.eye(4, dtype=dtype))[::-1]
            ),
        )
        batch.same(
            f"{name} empty", lambda m, name=name: getattr(m.linalg, name)(m.zeros((2, 0, 0), dtype))
        )
    batch.same(
        "singular",
        lambda m: [
            *m.linalg.slogdet(m.ones((3, 3), dtype)),
            m.linalg.det(m.zeros((2, 3, 3), dtype)),
        ],
    )
    batch.check()


def test_eigenvectors_and_lstsq_solve_what_they_should(xp: ModuleType) -> None:
    data = ordinary(10, (40, 40), "float64", "unit")
    a = xp.asarray(data + data.T)
    for values, vectors in (xp.linalg.eigh(a), xp.linalg.eig(a)):
        assert np.allclose(host(a @ vectors), host(vectors * values), atol=1e-9)
    u, s, vh = xp.linalg.svd(a[:, :30], full_matrices=False)
    assert np.allclose(host((u * s) @ vh), host(a[:, :30]), atol=1e-9)
    x, residuals, rank, singular = xp.linalg.lstsq(a[:, :30], a[:, 0], rcond=None)
    expected = np.linalg.lstsq(host(a)[:, :30], host(a)[:, 0], rcond=None)
    assert np.allclose(host(x), expected[0], atol=1e-9)
    assert rank == expected[2]
    assert residuals.shape == expected[1].shape
    assert np.allclose(host(singular), expected[3])


def test_errors_of_linear_algebra_are_raised_at_the_call(xp: ModuleType) -> None:
    for call in (
        lambda m: m.linalg.inv(m.zeros((3, 3))),
        lambda m: m.linalg.inv(m.zeros((2, 3))),
        lambda m: m.linalg.solve(m.ones((3, 3)), m.ones(3)),
        lambda m: m.linalg.cholesky(-m.eye(3)),
        lambda m: m.linalg.det(m.zeros(3)),
        lambda m: m.linalg.det(m.zeros((2, 3))),
        lambda m: m.linalg.slogdet(m.zeros((2, 3))),
        lambda m: m.linalg.inv(m.eye(3, dtype="float16")),
        lambda m: m.linalg.det(m.eye(3, dtype="float16")),
        lambda m: m.linalg.eigvals(m.full((3, 3), np.nan)),
        lambda m: m.linalg.matrix_power(m.eye(3), 1.5),
        lambda m: m.linalg.matrix_power(m.zeros((3, 3)), -1),
        lambda m: m.linalg.matrix_power(m.ones((2, 3)), 2),
        lambda m: m.linalg.norm(m.ones((2, 2, 2)), 1),
        lambda m: m.linalg.norm(m.ones(3), "fro"),
        lambda m: m.linalg.norm(m.ones((3, 3)), 3),
        lambda m: m.linalg.norm(m.ones((3, 3)), axis=(0, 0)),
        lambda m: m.linalg.multi_dot([m.eye(3)]),
        lambda m: m.linalg.multi_dot([m.eye(3), m.eye(2), m.eye(2)]),
        lambda m: m.linalg.outer(m.eye(3), m.ones(3)),
        lambda m: m.vecdot(m.ones(3), m.ones(4)),
    ):
        assert_same_error(call, xp)


# -- einsum ---------------------------------------------------------------------------------------


EINSUMS = """
ii->i ii ij->j jk,ij ij,ij-> ij,jk->ki i,j->ij aij,ajk->aik aij,ajk->ak ij,jk,kl->il i,j,k->kij
...ij,...jk->...ik i...->... ...,... ij...,jk...->ik... iij,j->i ijk,ilm->jklm ij,kl-> ij,kj,ik->
ij,jj->i
""".split()
MORE_EXTENTS = dict(zip("aijklmbc", (3, 20, 20, 20, 20, 4, 5, 6), strict=True))


def operands(subscripts: str, dtype: str) -> list[Any]:
    found = []
    for place, part in enumerate(subscripts.split("->")[0].split(",")):
        labels = part.replace("...", "a")
        found.append(ordinary(place, [MORE_EXTENTS[x] for x in labels], dtype, "small"))
    return found


def test_einsum(xp: ModuleType) -> None:
    batch = Near(xp)
    dtypes = itertools.cycle(["float32", "int8", "float64", "complex128"])
    for subscripts, dtype in zip(EINSUMS, dtypes, strict=False):
        data = operands(subscripts, dtype)
        batch.same(subscripts, lambda m, s=subscripts, d=data: m.einsum(s, *map(m.asarray, d)))
    for subscripts in ("ij,jk->ki", "aij,ajk->aik", "ij,jk,kl"):
        turned = [np.asfortranarray(item) for item in operands(subscripts, "float64")]
        batch.same(
            f"{subscripts} turned",
            lambda m, s=subscripts, d=turned: m.einsum(s, *map(m.asarray, d), optimize=True),
        )
    batch.same("lists", lambda m: m.einsum(m.ones((2, 3)), [0, 1], m.ones((3, 4)), [1, 2], [2, 0]))
    batch.same("bool", lambda m: m.einsum("ij,jk", *map(m.asarray, operands("ij,jk", "bool"))))
    batch.same("mixed", lambda m: m.einsum("ij,j", m.ones((2, 3), "int32"), m.ones(3, "float32")))
    batch.same("stretched", lambda m: m.einsum("ij,ij->ij", m.ones((1, 3)), m.ones((4, 1))))
    batch.same(
        "empty",
        lambda m: [
            m.einsum("ij,jk", m.ones((2, 0)), m.ones((0, 3))),
            m.einsum("ij->i", m.ones((2, 0))),
        ],
    )
    batch.same("half", lambda m: m.einsum("ij,j->i", m.ones((2, 3), "e"), m.ones(3, "e")))
    batch.check()


def test_einsum_gives_views_and_errors(xp: ModuleType) -> None:
    for m in (np, xp):
        x = m.zeros((3, 3))
        m.einsum("ii->i", x)[:] = 5
        m.einsum("ij->ji", x)[0, 1] = 2
        assert_bitwise(x, np.diag([5.0] * 3) + np.array([[0, 0, 0], [2.0, 0, 0], [0, 0, 0]]))
        out = m.zeros((3, 3))
        assert m.einsum("ij,jk", x, x, out=out) is out
        assert float(out[0, 0]) == 25
    for call in (
        lambda m: m.einsum("ij,jk", m.ones((2, 3)), m.ones((4, 2))),
        lambda m: m.einsum("ij", m.ones(3)),
        lambda m: m.einsum("i->ii", m.ones(3)),
        lambda m: m.einsum("i->j", m.ones(3)),
        lambda m: m.einsum("ii", m.ones((2, 3))),
        lambda m: m.einsum("i,i", m.ones(3)),
        lambda m: m.einsum("...i->i", m.ones((2, 3))),
        lambda m: m.einsum("i?", m.ones((2, 3))),
        lambda m: m.einsum("i"),
    ):
        assert_same_error(call, xp)


# -- Fourier transforms ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "complex64", "complex128"])
def test_transforms(xp: ModuleType, dtype: str) -> None:
    data = ordinary(11, (3, 5, 6), dtype)
    batch = Near(xp)
    one = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for name, axis in itertools.product(one, (-1, 0, 1)):
        for n, norm in ((None, None), (4, "ortho"), (7, "forward"), (1, "backward")):

            def one_axis(m: ModuleType, name: str = name, how: Any = (n, axis, norm)) -> Any:
                return getattr(m.fft, name)(m.asarray(data), *how)

            batch.same(f"{name} {axis} {n}", one_axis)
        batch.same(
            f"{name} {axis} turned",
            lambda m, name=name, axis=axis: (
                getattr(m.fft, name)(m.asfortranarray(m.asarray(data))[::-1] * 2, axis=axis) * 2
            ),
        )
    for name in ("fft", "ifft", "rfft", "irfft"):
        for axes, s in ((None, None), ((0, 2), None), ((2, 0), (4, 5)), ((1,), (7,))):
            batch.same(
                f"{name}n {axes} {s}",
                lambda m, name=name, axes=axes, s=s: getattr(m.fft, f"{name}n")(
                    m.asarray(data), s, axes
                ),
            )
        batch.same(
            f"{name}2",
            lambda m, name=name: getattr(m.fft, f"{name}2")(m.asarray(data), norm="ortho"),
        )
    if dtype == "float32":
        batch.same(
            "shifts",
            lambda m: [
                m.fft.fftshift(m.asarray(data)),
                m.fft.ifftshift(m.asarray(data), 1),
                m.fft.fftshift(m.asarray(data), (0, 2)),
            ],
        )
    batch.check()


def test_frequencies_and_errors_of_transforms(xp: ModuleType) -> None:
    batch = Batch(xp)
    for n in (1, 2, 7, 8):
        batch.same(
            f"{n}",
            lambda m, n=n: [
                m.fft.fftfreq(n),
                m.fft.fftfreq(n, 0.1),
                m.fft.fftfreq(n, 3),
                m.fft.rfftfreq(n, np.float64(0.3)),
                m.fft.rfftfreq(n),
            ],
        )
    batch.same("one", lambda m: [m.fft.fft(m.ones(1)), m.fft.fft(m.zeros((2, 1)), 3)])
    batch.check()
    for call in (
        lambda m: m.fft.fft(m.ones(3), 0),
        lambda m: m.fft.fft(m.ones(3), axis=1),
        lambda m: m.fft.fft(m.ones(())),
        lambda m: m.fft.fft(m.ones(0)),
        lambda m: m.fft.fft(m.ones(3), norm="no"),
        lambda m: m.fft.irfft(m.ones(1)),
        lambda m: m.fft.fftn(m.ones((3, 3)), (2,), (0, 1)),
        lambda m: m.fft.fftfreq(2.5),
        lambda m: m.fft.rfft(m.ones(3, complex)),
        lambda m: m.fft.fftshift(m.ones(3), 2),
        lambda m: m.fft.fft2(m.ones(3)),
    ):
        assert_same_error(call, xp)


# -- sets, copies, counting -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
def test_sets(xp: ModuleType, dtype: str) -> None:
    one, two = given(np.tile(hostile(dtype), 3)), given(hostile(dtype)[::2])
    batch = Batch(xp)
    batch.same(
        dtype,
        lambda m: [
            *m.unique(one(m), return_index=True, return_inverse=True, return_counts=True),
            m.unique(one(m)),
            m.union1d(one(m), two(m)),
            m.intersect1d(one(m), two(m)),
            m.setdiff1d(one(m), two(m)),
            m.setxor1d(one(m), two(m)),
            m.isin(one(m), two(m)),
            m.unique(one(m)[:0]),
            m.isin(one(m), two(m), invert=True),
        ],
        zero_signs=False,  # of equal zeros any one may be left
    )
    batch.check()

"""Creation, conversion and rearrangement give NumPy's dtypes, shapes and values."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_bitwise, host
from tests.support.hostile import DTYPES, FLOATS, INTEGERS, SHAPES, hostile, ordinary


def test_zeros_ones_full_and_empty_have_shape_and_dtype(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in DTYPES:
        for shape in SHAPES:
            batch.same(f"zeros {shape} {dtype}", lambda m, s=shape, d=dtype: m.zeros(s, d))
        batch.same(f"ones {dtype}", lambda m, d=dtype: m.ones((2, 3), d))
        batch.same(f"full {dtype}", lambda m, d=dtype: m.full((2, 3), 1, dtype=d))
        batch.same(f"full of {dtype}", lambda m, d=dtype: m.full(3, np.dtype(d).type(1)))
        batch.same(f"empty {dtype}", lambda m, d=dtype: m.empty((2, 0), d))
        for like in ("zeros_like", "ones_like"):
            batch.same(f"{like} {dtype}", lambda m, d=dtype, f=like: getattr(m, f)(
                m.array(ordinary(1, (2, 3), d))))
        batch.same(f"full_like {dtype}", lambda m, d=dtype: m.full_like(
            m.array(ordinary(1, (2, 3), d)), 1))
    for value in (True, 1, 2.5, 1j, [1, 2, 3], np.float32(2), np.nan, -0.0):
        batch.same(f"full({value})", lambda m, v=value: m.full((2, 3), v))
        batch.same(f"full_like({value})", lambda m, v=value: m.full_like(m.ones((2, 3)), v,
                                                                         dtype="complex64"))
    batch.same("zeros()", lambda m: m.zeros(()))
    batch.same("ones with a NumPy integer", lambda m: m.ones(np.int64(3)))
    batch.same("zeros_like with a shape", lambda m: m.zeros_like(m.ones(3), shape=(2, 2)))
    batch.check()


def test_arange_counts_as_numpy_does(xp: ModuleType) -> None:
    batch = Batch(xp)
    for arguments in ((5,), (0,), (-3,), (2, 7), (7, 2), (7, 2, -1), (0, 1, 0.1), (0, 1, 0.3),
                      (1.5, 6), (0, -1, -0.1), (0.5, 5.5, 2), (np.float32(1), 4), (10, 0, -3),
                      (2 ** 40, 2 ** 40 + 5), (np.int8(3),), (True,), (0, 100_000, 7), (1e6,)):
        batch.same(f"arange{arguments}", lambda m, a=arguments: m.arange(*a))
    for dtype in DTYPES[1:]:
        batch.same(f"arange(7, {dtype})", lambda m, d=dtype: m.arange(7, dtype=d))
        batch.same(f"arange(1, 9, 2, {dtype})", lambda m, d=dtype: m.arange(1, 9, 2, dtype=d))
    batch.same("stop=", lambda m: m.arange(start=1, stop=4))
    batch.same("bool", lambda m: m.arange(2, dtype=bool))
    batch.check()


def test_linspace_ends_where_numpys_does(xp: ModuleType) -> None:
    batch = Batch(xp)
    for arguments in ((0, 1), (0, 1, 7), (1, 0, 5), (-1.5, 2.5, 1), (0, 1, 0), (3, 3, 4),
                      (0, 1, 1000), (-1e300, 1e300, 3), (0, 5e-324, 3), (1, 1e16, 10)):
        for endpoint in (True, False):
            batch.same(f"linspace{arguments} {endpoint}", lambda m, a=arguments, e=endpoint:
                       m.linspace(*a, endpoint=e))
    for dtype in (*FLOATS, "int32", "complex128"):
        batch.same(dtype, lambda m, d=dtype: m.linspace(-2, 9, 21, dtype=d))
    batch.same("retstep", lambda m: m.linspace(0, 1, 5, retstep=True)[0])
    batch.same("arrays", lambda m: m.linspace(m.array([0.0, 1]), m.array([5.0, 7]), 4))
    batch.same("logspace", lambda m: m.logspace(0, 2, 5), ulp=8)
    batch.same("geomspace", lambda m: m.geomspace(1, 100, 5), ulp=8)
    batch.check()


def test_eye_identity_and_triangles(xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("bool", "int8", "float32", "float64", "complex64"):
        for arguments in ((3,), (3, 5), (5, 3), (0,), (4, None, 1), (4, 6, -2), (3, 3, 7)):
            batch.same(f"eye{arguments} {dtype}", lambda m, a=arguments, d=dtype:
                       m.eye(*a, dtype=d))
    batch.same("identity", lambda m: m.identity(4))
    batch.same("tri", lambda m: m.tri(3, 4, 1))
    batch.same("tril", lambda m: m.tril(m.arange(12).reshape(3, 4)))
    batch.same("triu", lambda m: m.triu(m.arange(12).reshape(3, 4), 1))
    batch.same("diag", lambda m: m.diag(m.arange(3)))
    batch.same("meshgrid", lambda m: m.meshgrid(m.arange(3), m.linspace(0, 1, 4)))
    batch.same("indices", lambda m: m.indices((2, 3)))
    batch.same("fromfunction", lambda m: m.fromfunction(lambda i, j: i * 10 + j, (3, 4)))
    batch.same("mgrid", lambda m: m.mgrid[0:3, 0:2])
    batch.check()


def test_arrays_are_made_of_whatever_numpy_makes_them_of(xp: ModuleType) -> None:
    batch = Batch(xp)
    for value in (3, 2.5, True, 1j, [], [1, 2], [[1, 2], [3, 4]], (1, 2.5), [True, 2], [1, 2j],
                  range(4), np.arange(3)[::-1], np.float32(3), [np.float32(1), 2], np.array(7),
                  np.ones((2, 3)).T, b"ab", bytearray(b"xy"), memoryview(b"abc"), [[], []],
                  2 ** 63, -1, [2 ** 63, 1]):
        for function in ("array", "asarray", "asanyarray", "ascontiguousarray"):
            batch.same(f"{function}({value!r})", lambda m, v=value, f=function: getattr(m, f)(v))
    batch.same("of arrays", lambda m: m.array([m.arange(3), m.ones(3)]))
    batch.same("of elements", lambda m: m.array([m.ones(3).sum(), 2.0]))
    batch.same("ndmin", lambda m: m.array([1, 2], ndmin=3))
    batch.same("dtype", lambda m: m.array([1.7, 2.2], dtype="int16"))
    batch.same("of an array, other dtype", lambda m: m.asarray(m.arange(3), dtype="float32"))
    batch.check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_come_back_from_the_device_as_they_went(dtype: str, xp: ModuleType) -> None:
    data = hostile(dtype)
    batch = Batch(xp)
    for shape in SHAPES:
        values = np.resize(data, shape) if np.prod(shape) else np.empty(shape, dtype)
        batch.same(f"{shape}", lambda m, v=values: m.array(v))
    batch.same("not contiguous", lambda m: m.array(np.tile(data, (3, 1)).T[::-2]))
    batch.same("byte-swapped", lambda m: m.array(data.astype(data.dtype.newbyteorder(">")))
               .astype(dtype))
    batch.check()


def test_asarray_of_a_numpy_array_is_a_snapshot(xp: ModuleType) -> None:
    if xp is np:
        pytest.skip("numpy.asarray shares")
    data = np.arange(5.0)
    x = xp.asarray(data)
    y = x * 2
    data[:] = -1
    assert_bitwise(x, np.arange(5.0))
    assert_bitwise(y, np.arange(5.0) * 2)
    z = xp.array(data)
    data[0] = 7
    assert_bitwise(z, np.full(5, -1.0))


def test_what_the_host_gets_does_not_change_with_later_writes(xp: ModuleType) -> None:
    x = xp.array(np.arange(6.0))
    first = host(x + 0)
    given = np.array(np.asarray(x)) if xp is np else np.asarray(x)
    x += 100
    x[2] = -5
    assert_bitwise(first, np.arange(6.0))
    assert_bitwise(given, np.arange(6.0))
    expected = np.arange(6.0) + 100
    expected[2] = -5
    assert_bitwise(x, expected)


@pytest.mark.clfuse_only
def test_a_writable_host_copy_is_not_the_arrays_memory(xp: ModuleType) -> None:
    x = xp.arange(6.0) * 1
    shown = np.asarray(x)
    if shown.flags.writeable:
        shown[:] = -1
    copied = x.get()
    copied[:] = -2
    also = xp.asnumpy(x)
    asked = np.array(x)
    asked[:] = -3
    assert_bitwise(x, np.arange(6.0))
    assert_bitwise(also, np.arange(6.0))


@pytest.mark.parametrize("source", DTYPES)
def test_astype_converts_where_c_defines_it(source: str, xp: ModuleType) -> None:
    values = hostile(source)
    batch = Batch(xp)
    for target in DTYPES:
        data = values
        if np.dtype(source).kind in "fc" and target in INTEGERS:
            limits = np.iinfo(target)
            real = values.real.astype(np.longdouble)
            inside = (real > limits.min - 1) & (real < np.longdouble(limits.max) + 1)
            data = values[inside & (np.abs(real) < 2 ** 63)]
        batch.same(f"{source} to {target}", lambda m, d=data, t=target: m.array(d).astype(t),
                   inputs=[data])
        batch.same(f"{source} to {target} by assignment", lambda m, d=data, t=target: _assigned(
            m, d, t), inputs=[data])
    batch.check()


def _assigned(m: ModuleType, data: Any, dtype: str) -> Any:
    made = m.zeros(data.shape, dtype)
    made[...] = m.array(data)
    return made


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "concatenate": lambda m, x: m.concatenate([x, x[:1], x * 2]),
    "concatenate axis": lambda m, x: m.concatenate([x, x[:, :1]], axis=-1),
    "concatenate axis=None": lambda m, x: m.concatenate([x, x[0]], axis=None),
    "concatenate dtypes": lambda m, x: m.concatenate([x, m.ones((2, 4), "float64"),
                                                      m.zeros((1, 4), "int8")]),
    "concatenate dtype=": lambda m, x: m.concatenate([x, x], dtype="complex128"),
    "concatenate out=": lambda m, x: m.concatenate([x, x], out=m.zeros((6, 4), "complex128")),
    "concatenate one": lambda m, x: m.concatenate([x]),
    "concatenate empty": lambda m, x: m.concatenate([x[:0], x, x[:0]]),
    "stack": lambda m, x: m.stack([x, x[::-1]]),
    "stack axis": lambda m, x: m.stack([x, x], axis=-1),
    "vstack": lambda m, x: m.vstack([x[0], x[1]]),
    "hstack": lambda m, x: m.hstack([x, x]),
    "dstack": lambda m, x: m.dstack([x, x]),
    "column_stack": lambda m, x: m.column_stack([x[:, 0], x[:, 1]]),
    "append": lambda m, x: m.append(x, x[0]),
    "repeat": lambda m, x: m.repeat(x, 3),
    "repeat axis": lambda m, x: m.repeat(x, 2, axis=1),
    "repeat counts": lambda m, x: m.repeat(x, [1, 0, 2], axis=0),
    "tile": lambda m, x: m.tile(x, 2),
    "tile 3": lambda m, x: m.tile(x, (2, 1, 3)),
    "roll": lambda m, x: m.roll(x, 5),
    "roll axes": lambda m, x: m.roll(x, (1, -1), axis=(0, 1)),
    "roll far": lambda m, x: m.roll(x, -103, axis=1),
    "pad": lambda m, x: m.pad(x, 2),
    "pad each": lambda m, x: m.pad(x, ((1, 0), (0, 2)), constant_values=1),
    "pad values": lambda m, x: m.pad(x, 1, constant_values=((1, 0), (0, 1))),
    "pad edge": lambda m, x: m.pad(x, 1, mode="edge"),
    "pad reflect": lambda m, x: m.pad(x, 1, mode="reflect"),
    "pad wrap": lambda m, x: m.pad(x, 1, mode="wrap"),
    "rot90": lambda m, x: m.rot90(x, 3),
    "diag": lambda m, x: m.diag(x),
    "broadcast_arrays": lambda m, x: m.broadcast_arrays(x, x[0], x[:, :1]),
    "split": lambda m, x: m.split(x, 2, axis=1),
    "array_split": lambda m, x: m.array_split(x, 2),
    "where": lambda m, x: m.where(x != x[::-1], x, 0),
    "where 3 dtypes": lambda m, x: m.where(x, x, 2.5),
    "where by number": lambda m, x: m.where(1, x, x[0]),
    "choose the clipped": lambda m, x: m.clip(x.real, 0, 1),
    "clip method": lambda m, x: x.real.clip(None, 1),
    "clip arrays": lambda m, x: m.clip(x.real, x.real[0], x.real[1]),
    "flip of a roll of an expression": lambda m, x: m.flip(m.roll(x + x, 1, axis=0), axis=1),
    "pad of a pad": lambda m, x: m.pad(m.pad(x, 1)[1:], 1),
    "take": lambda m, x: m.take(x, [2, 0, 0], axis=1),
    "compress": lambda m, x: m.compress([True, False, True], x, axis=0),
    "unique": lambda m, x: m.unique(x),
    "sort": lambda m, x: m.sort(x, axis=1),
    "argsort": lambda m, x: m.argsort(x, axis=1, kind="stable"),
    "cumsum": lambda m, x: m.cumsum(x, axis=0),
    "nonzero": lambda m, x: m.nonzero(x),
    "mask": lambda m, x: x[x != 0],
    "fancy": lambda m, x: x[[0, 2], [1, -1]],
    "fancy by arrays": lambda m, x: x[m.array([2, 0]), 1:3],
    "diff": lambda m, x: m.diff(x.real.astype("int64")),
    "outer": lambda m, x: m.outer(x[0], x[1]),
    "kron": lambda m, x: m.kron(x[0], x[1]),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_values_agree_with_numpy(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in ("bool", "int32", "float32", "complex64"):
        data = ordinary(2, (3, 4), dtype)
        batch.same(f"{name} of {dtype}", lambda m, d=data: MOVES[name](m, m.array(d)))
        batch.same(f"{name} of a view of {dtype}", lambda m, d=data: MOVES[name](
            m, m.array(np.concatenate([d, d])[:, ::-1].copy())[1:4, ::-1]))
    batch.check()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint32", "float16", "float32",
                                   "float64", "complex64", "complex128"])
def test_products_of_vectors_and_matrices(dtype: str, xp: ModuleType) -> None:
    batch = Batch(xp)

    def data(seed: int, *shape: int) -> Any:
        return ordinary(seed, shape, dtype)  # small integers: every sum is exact

    for first, second in (((5,), (5,)), ((3, 4), (4, 2)), ((3, 4), (4,)), ((4,), (4, 3)),
                          ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (6, 4, 2)),
                          ((0,), (0,)), ((3, 0), (0, 2)), ((1, 1), (1, 1)), ((33, 17), (17, 40))):
        a, b = data(3, *first), data(4, *second)
        batch.same(f"{first} @ {second}", lambda m, a=a, b=b: m.array(a) @ m.array(b))
        batch.same(f"dot {first} {second}", lambda m, a=a, b=b: m.dot(m.array(a), m.array(b)))
    square = data(5, 20, 20)
    batch.same("transposed", lambda m: m.array(square).T @ m.array(square))
    batch.same("views", lambda m: m.array(square)[::2, 1:] @ m.array(square)[1:, ::-3])
    batch.same("with its operand", lambda m: (lambda x: x @ x + x)(m.array(square)))
    batch.same("vdot", lambda m: m.vdot(m.array(square[0]), m.array(square[1])))
    batch.same("inner", lambda m: m.inner(m.array(square[:2]), m.array(square)))
    batch.same("tensordot", lambda m: m.tensordot(m.array(square), m.array(square[:3]), (1, 1)))
    batch.same("einsum", lambda m: m.einsum("ij,jk->ik", m.array(square), m.array(square)))
    batch.same("matmul out", lambda m: m.matmul(m.array(square), m.array(square),
                                                out=m.zeros((20, 20), dtype)))
    batch.check()


def test_constants_and_types_are_numpys_own(xp: ModuleType) -> None:
    for name in ("pi", "e", "inf", "nan", "newaxis", "float32", "float64", "int64", "uint8",
                 "complex64", "complex128", "bool_", "intp", "dtype", "finfo", "iinfo", "integer",
                 "floating", "number", "result_type", "promote_types", "can_cast", "issubdtype",
                 "ndindex", "exceptions", "euler_gamma"):
        assert getattr(xp, name) is getattr(np, name) or name == "nan", name
    assert xp.nan != xp.nan
    batch = Batch(xp)
    batch.same("dtype by class", lambda m: m.zeros(3, m.float32))
    batch.same("dtype by type", lambda m: m.zeros(3, int))
    batch.same("np.float32(array)", lambda m: m.float32(m.arange(3)))
    batch.check()

"""Calls with a quirk of NumPy's in them, which a lazy library forgets easily: what random programs
found.

Each list runs under NumPy and under clfuse, small enough to be NumPy's at the call and recorded,
some on the device: the same classes of errors, warnings, kinds, dtypes and values.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse

SETUP = """
z = m.array(4.0)
s = m.arange(3.0).sum()
n = m.float64(2.5)
u = m.arange(SIZE).astype('u4')
v = m.arange(-2, SIZE - 2)
w = m.zeros(SIZE)
c = m.ones(SIZE, 'c8') + 3j
g = m.ones((4, 3), 'i4') * 2
e = m.zeros((0, 3), 'i4')
"""
SIZES = (5, 4097)

LINES = {
    "a 0-d array is a vector of one element to functions that take": r"""
r = m.take(z, [0], axis=-1)
r = m.take(z, 0, axis=0)
r = m.take(z, [0], axis=1)
r = m.take(s, [0, 0], axis=0)
r = m.take(z, 1, axis=0)
r = m.compress([True], z, axis=0)
r = m.compress([False], z, axis=-1)
r = m.compress([True], z, axis=1)
""",
    "NumPy's scalars stay scalars": r"""
r = m.squeeze(n)
r = m.squeeze(n, 0)
r = m.transpose(n)
r = m.reshape(n, ())
r = m.reshape(n, 1)
r = m.squeeze(s)
r = m.reshape(s, ())
r = s.reshape(())
r = m.reshape(w[-1], ())
r = m.transpose(w[-1])
r = m.einsum('->', z)
r = m.einsum('->', n)
r = (v > 0).any() ** 2
r = (v > 0)[3] ** 2
r = (v > 0) ** 2
""",
    "Python's numbers wrap where NumPy casts unsafely": r"""
r = m.select([u > 1], [u], -1)
r = m.select([z > 1], [m.uint8(3)], -1)
r = m.select([u > 1, u > 2], [u, -1])
r = m.select([u > 1, u > 2], [u.astype('i1'), 300], 5)
u.real = -2; r = u
w.real = 3j; r = w
c.imag = 7; r = c
""",
    "and are refused where NumPy converts them": r"""
m.putmask(w, w == 0, 1j)
m.putmask(u, u > 1, -1)
m.putmask(u, u > 1, [1, 2]); r = u
m.place(w, w == 0, [1j])
m.put(w, [0], 1j)
m.put(u, [0, 1], [1, -1])
m.put(u, [0, 1], [1.5, 7]); r = u
m.put(w, [0], c)
w.flat[3:2] = 3j
w.flat[[]] = 3j
w.flat[3:2] = 'a'
r = w.flat[[]]
w.flat[3:2] = 7; r = w
""",
    "a dropped imaginary part is warned of, once the shapes fit": r"""
r = c.sum(dtype='f8')
r = c.mean(dtype='f8')
r = c.cumsum(dtype='f8')
r = c.prod(dtype='i8')
r = m.array(c, dtype='f8')
r = m.asarray(c, dtype='f4')
r = m.concatenate([c, c], dtype='f8', casting='unsafe')
r = m.mean(c, out=m.zeros(()))
w[...] = c[:3]
w[[0, 1]] = c[:3]
w[0] = c[:3]
w[:] = c; r = w
w[[0, 1]] = c[:2]; r = w
g[[3], 2:-4] = c
c[-1] = m.ones((3, 1), 'c16')
w[-1] = m.ones((3, 1))
""",
    "variances have the dtype that was asked for": r"""
r = c.var(dtype='c16')
r = c.std(dtype='c16', keepdims=True)
r = c.std()
r = m.nanvar(c, dtype='c8')
r = g.var(axis=0, dtype='c16')
""",
    "a variance goes through no dtype but its own on the way to the one it is written in": r"""
t = m.zeros(()); m.var(c + v, out=t); r = t
t = m.zeros((), 'f4'); m.std(c * v, out=t); r = t
t = m.zeros((), 'f2'); m.var(v * 1.5 + 1000, out=t); r = t
t = m.zeros(3, 'i4'); m.var(g + m.arange(3.0), axis=0, out=t); r = t
t = m.zeros(3, 'i4'); m.std(g + m.arange(3.0), axis=0, out=t); r = t
t = m.zeros(()); m.nanvar(m.where(v > 0, c * v, m.nan), out=t); r = t
t = m.zeros((), 'c8'); m.nanstd(c * v, out=t); r = t
""",
    "`out` and `keepdims` may come without their names": r"""
r = m.any(g, 0, None, True)
r = m.all(g, None, None, False)
r = m.any(v.reshape(1, -1), (0, 1), None, True)
t = m.zeros((1, 3), bool); m.all(g, 0, t, True); r = t
r = g.any(0, None)
r = m.all(v > -9, 0, None)
""",
    "a product is written to an array that is just like it": r"""
t = m.zeros((2, 3, 3), 'f4'); m.dot(m.ones((2, 3, 4)), m.ones((4, 3)), out=t); r = t
t = m.zeros((2, 3, 2, 3)); m.dot(m.ones((2, 3, 4)), m.ones((2, 4, 3)), out=t); r = t
t = m.zeros((4, 3, 2, 3))[::2]; m.dot(m.ones((2, 3, 4)), m.ones((2, 4, 3)), out=t); r = t
t = m.ndarray((4, 4), 'i4', order='F'); m.dot(g, g.T, out=t); r = t
t = m.zeros((4, 3), 'f4'); m.dot(2.0, g, out=t); r = t
t = m.zeros((4, 3), 'f8'); m.dot(g, 2, out=t); r = t
t = m.zeros((4, 3)); m.dot(2.0, g, out=t); r = t
""",
    "an array made by its class lies as it says": r"""
r = m.arange(2 + m.ndarray((2, 3), order='F').flags.f_contiguous)
r = m.arange(m.ndarray((2, 3), 'i2', order='F').strides[1])
r = m.arange(m.ndarray((2, 3), 'i2', strides=(2, 4)).strides[1])
x = m.ndarray((2, 3), order='F'); x.shape = (3, 2)
""",
    "matrices to the power of 0 lie as the matrices do": r"""
r = m.linalg.matrix_power(m.ones((2, 2, 2)), 0); r[0, 0, 0] = 5
r = m.arange(m.linalg.matrix_power(m.ones((2, 2, 2)), 0).strides[0])
r = m.arange(m.linalg.matrix_power(m.ones((4, 2, 2), 'c8', order='F'), 0).strides[2])
""",
    "edges of bins may be on no side of others": r"""
r = m.digitize(v * 1.5, m.array([0.0, 2.0, m.nan]))
r = m.digitize(v * 1.5, m.array([m.nan, 2.0, 0.0]), right=True)
r = m.digitize(v * 1.5, m.array([m.nan, m.nan]))
r = m.digitize(v * 1.5, m.array([0.0, 2.0, m.nan, 1.0]))
""",
    "a density has the dtype of the widths in float64": r"""
r = m.histogram((v % 50).astype('f2'), density=True)[0]
r = m.histogram((v % 8).astype('f2'), 4, (0, 8), weights=(v % 2).astype('f2'), density=True)[0]
r = m.histogram((v % 8).astype('f4'), 4, (0, 8), weights=(v % 2).astype('f4'), density=True)[0]
r = m.histogram((v % 8).astype('f4'), 4, (0, 8), weights=(v % 2).astype('f4'))[0]
""",
    "axes that are only renamed keep the array's dtype": r"""
r = m.einsum('ij->ji', g, dtype='f8')
r = m.einsum('ij->j', g, dtype='f8')
r = m.einsum('ij->ji', g, dtype='i2')
r = m.einsum('ij->i', g, dtype='i2')
r = m.einsum('ii->i', c[:1].reshape(1, 1), dtype='f4')
r = m.einsum('', 2, dtype='f8')
""",
    "a masked element may be what is refused elsewhere": r"""
m.power(2, v, out=v, where=v > 0); r = v
r = m.power(v, v, where=v >= 0, out=m.zeros(SIZE, int))
m.power(v, v, out=v, where=m.array([False])); r = v
m.power(2, v, out=v, where=v < 0); r = v
""",
    "quantiles of nothing": r"""
r = m.nanpercentile(e, 25)
r = m.nanpercentile(e, [25, 50], axis=0)
r = m.nanquantile(e, 0.5, keepdims=True)
r = m.nanpercentile(g, 50, axis=0)
""",
    "read-only memory stays so": r"""
r = m.frombuffer(bytes(range(64)), 'i8'); r[0] = 1
r = m.frombuffer(bytes(range(64)), 'i8') + 1
r = m.frombuffer(bytearray(range(64)), 'i8')
""",
    "text is equal to no number, and comes before none": r"""
r = v == ['a', 'b', 'c', 'd', 'e']
r = v != ['a']
r = ['a'] == w
r = z == ('a', b'b')
r = s != [['a'], ['b']]
r = g == [['a', 'b', 'c']]
r = v == ['a', 'b']
r = c == [None]
r = (v > 0) == [m.array('a')]
r = v < ['a']
r = ['a'] >= v
r = m.equal(v, ['a'])
""",
    "an iterator over the elements starts again only when it is indexed": r"""
f = g.flat; x = [next(f), next(f)]; r = m.array([len(list(f)), f.index, len(list(f))])
f = g.flat; next(f); iter(f); r = m.array(next(f), int) + f.index
f = w.flat; next(f); f[3]; r = m.array([f.index, *[next(f) for _ in range(3)]])
f = v.flat; next(f); f[2] = 9; r = m.array([f.index, *[next(f) for _ in range(3)]])
f = v.flat; next(f); next(f); f[...]; r = m.array(f.index)
f = z.flat; list(f); next(f)
""",
    "a number is a vector to a partition, and no sequence of roots": r"""
r = m.argpartition(z, 0)
r = m.argpartition(s, -1)
r = m.argpartition(2.5, 0)
r = z.argpartition(0)
r = z.argsort()
r = z.argsort(kind="stable")
r = z.argsort(stable=True)
r = z.sort()
r = m.argpartition(z, 1)
r = m.roots(z)
r = m.roots(2.5)
r = m.poly(s)
r = m.poly(p for p in ())
""",
    "a subclass of arrays is an index like any other": r"""
r = v[np.ma.array(v > 0, mask=v > 1)]
r = v[np.ma.array([0, 2], mask=[True, False])]
r = v[np.matrix([[0, 1]])]
r = g[np.ma.array([True, False, True, False]), 1:]
v[np.ma.array(v > 0)] = 7; r = v
w[np.ma.array([1, 1])] += 7; r = w
""",
    "a masked element is no number": r"""
w[0] = np.ma.masked; r = w
z[()] = np.ma.masked; r = z
w[1:3] = np.ma.masked; r = w
w[2] = np.ma.array(3.0, mask=True); r = w
w.fill(np.ma.masked); r = w
w[0] = np.matrix([[3.0]]); r = w
v[1] = np.ma.array(3); r = v
""",
    "None is a value to choose": r"""
r = m.where(True, None, None) == None
r = m.where(v > 0, None, v) == None
r = m.where(v > 0, None)
r = m.where(z, v, None) == None
r = m.where(v > 0)[0]
""",
    "numbers of dtypes that live on no device are assigned": r"""
w[0] = m.clongdouble(2 + 3j); r = w
w[1:3] = m.clongdouble(2 + 3j); r = w
w[:2] = np.array([2j, 1], 'G'); r = w
w[0] = m.longdouble(2); r = w
c[0] = m.clongdouble(2 + 3j); r = c
v[0] = m.clongdouble(3); r = v
""",
    "no array has more than 64 axes": r"""
r = m.zeros((1,) * 65)
r = m.ones(1).reshape((1,) * 65)
r = m.ones(1).reshape((1,) * 64)
r = m.broadcast_to(w[:1], (1,) * 65)
r = m.expand_dims(m.zeros((1,) * 64), 0)
r = m.tensordot(m.zeros((1,) * 33), m.zeros((1,) * 33), 0)
r = m.multiply.outer(m.zeros((1,) * 33), m.zeros((1,) * 33))
r = w[:1][(None,) * 64]
r = m.full((1,) * 65, 2)
""",
    "a shape that is none, and an order that reshaping does not know": r"""
r = m.zeros(None)
r = m.full(None, 3)
r = m.zeros(2.0)
r = g.reshape((2, 2), order='K')
r = g.reshape((6, 2), order='K')
""",
    "arrays stand in for the numbers of a grid": r"""
r = m.mgrid[m.zeros(3)[:, None]:m.ones(3)[:, None]:4j, m.zeros(3)[:, None]:m.ones(3)[:, None]:4j]
r = m.mgrid[m.float64(1):n:3j, z:7]
r = m.ogrid[0:SIZE:1, 2:n][1]
r = m.array(m.zeros((3, 0, 2)).strides)
""",
    "what stands in for NaN is assigned": r"""
x = w.copy(); x[1], x[2] = m.nan, m.inf; r = m.nan_to_num(x, nan=m.arange(SIZE))
x = m.asarray([[1, m.nan, m.inf], [m.nan, 0, 9]]); r = m.nan_to_num(x, nan=m.arange(3), neginf=z)
x = m.asarray([[1, m.nan, m.inf], [m.nan, 0, 9]]).T; r = m.nan_to_num(x, nan=m.arange(2.0))
x = m.asarray([[1, m.nan, m.inf], [m.nan, 0, 9]]).T; r = m.nan_to_num(x, posinf=[[1], [2], [3]])
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=m.ones((1, 1, 2)))
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=m.ones((2, 2)))
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=m.ones(3))
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=1j)
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=m.ones(2, 'c8'))
x = m.asarray([m.nan, 1.0]); r = m.nan_to_num(x, nan=None)
""",
    "the width of integers does not overflow": r"""
v[0], v[1] = 2**62, -2**62; r = m.histogram(v.astype('i8'), bins=3)[0]
x = g.copy(); x[0, 0], x[0, 1] = 2**31 - 1, -2**31; r = m.histogram(x, bins=3)[0]
""",
    "`out` by its place is written, whatever the operands are": r"""
t = np.zeros(()); m.tanh(2.0, t); r = m.array(t)
t = np.zeros(()); m.fabs(n, t); r = m.array(t)
t = np.zeros((), int); m.logical_not(s, t, casting='no')
t = m.zeros(()); m.add(n, 2, t); r = t
""",
    "a mask and `order` have a say in how a result lies": r"""
r = m.arange(m.sin(g.T, where=[True]).strides[0])
r = m.arange(m.sin(g, where=g > 0, order='F').strides[0])
r = m.arange(m.add(g.T, [1]).strides[0])
r = m.arange(m.add(g, g > 0, where=(m.ones((3, 4)) > 0).T).strides[0])
r = m.add(g, 1, where=g > 1, order='F')
r = m.arange(m.isreal(g.T).strides[0])
r = m.arange(g.T.copy(None).strides[0])
""",
    "indices of an open mesh are views": r"""
x = m.ix_(v > 0, v % 3); x[1][...] = 9; r = v % 3
x = m.ix_([True, False], v); x[1][...] = 9; r = v
r = m.ix_(v > 0, [0, 2])[0]
""",
    "coordinates that are not copied are views": r"""
x = m.meshgrid(w, u, copy=False, sparse=True); x[0][...] = 9; r = w
x = m.meshgrid(w, u, copy=0, sparse=True, indexing='ij'); x[1][...] = 9; r = u
x = m.meshgrid(z, copy=None); x[0][...] = 9; r = z
""",
    "`at` drops no extent of its values": r"""
m.add.at(w, 0, [1.0]); r = w
m.add.at(g, 0, m.ones((1, 3), 'i4')); r = g
m.add.at(w, [0, 1], m.ones((1, 2))); r = w
m.add.at(g, 0, m.ones(3, 'i4')); r = g
m.add.at(n, ..., 1)
""",
    "axes that are only renamed are a view, whatever the options are": r"""
m.einsum('ij->ji', g, casting='unsafe')[...] = 9; r = g
m.einsum('ii->i', g[:3], order=None)[...] = 9; r = g
r = m.einsum('ij->i', g, order='F')
""",
    "numbers are copied by NumPy's rules": r"""
m.copyto(u, m.inf, casting='unsafe'); r = u[:0]
m.copyto(v, m.nan, casting='unsafe'); r = v[:0]
m.copyto(v, -1, casting='equiv'); r = v
m.copyto(u, -1); r = u
m.copyto(w, 3, 'no'); r = w
m.copyto(w, 2j, casting='unsafe'); r = w
m.copyto(v, True, 'no'); r = v
m.copyto(v, 2.5, casting='unsafe', where=v > 0); r = v
""",
    "a given mean decides the dtype": r"""
r = m.std(w.astype('f4'), mean=m.zeros(1))
r = m.var(w.astype('f2'), mean=m.zeros(1, 'f4'))
r = m.var(w.astype('f2'), mean=m.zeros(1, 'f2'))
r = m.std(g, axis=0, mean=m.zeros((1, 3), 'f4'))
r = m.nanstd(w.astype('f4'), mean=m.zeros(1))
""",
    "no root is an integer": r"""
r = m.std(g, axis=0, dtype='u4')
r = m.std(g, dtype='u4')
r = m.std(g, dtype='i8', keepdims=True)
r = m.ptp(w, out=m.zeros((), int))
r = m.ptp(g, axis=0, out=m.zeros(3, 'i4'))
""",
    "truth is enough for `keepdims` of what is not NaN": r"""
r = m.nanmedian(g, keepdims=1)
r = m.nanquantile(g, 0.5, 0, keepdims=m.True_)
t = m.zeros(3, 'i1'); m.nanpercentile(g, 50, 0, out=t); r = t
t = m.zeros(1); m.nanmedian(g, out=t); r = t
""",
    "what may not be written to is not, even if it is empty": r"""
e.flags.writeable = False; e.partition(0)
x = m.array(m.nan); x.flags.writeable = False; m.nan_to_num(x, copy=False)
""",
    "arguments that NumPy looks at though nothing needs them": r"""
r = m.geomspace(1, 8, axis=2)
r = m.geomspace(1, 8, 4, axis=(0, 1))
r = m.average(e, axis=1)
r = m.indices((2, 3), bool)
w.fill(value=3)
r = m.array(g, 'f4', ndmax=1)
r = w.astype('f4', casting='same_value')
r = (w + 0.1).astype('i4', casting='same_value')
""",
    "a product begins with its initial value": r"""
r = m.prod(w + 1e300, initial=0)
r = m.prod(w - 1e300, initial=0)
r = m.prod((w + 1e300).reshape(1, -1) * m.array([[1], [m.inf]]), axis=1, initial=0.0)
r = m.prod((w + 1e300) * 1j, initial=0)
r = m.multiply.reduce(w + 1e300, initial=-0.0)
r = m.prod(w + m.inf, initial=0, where=v > 99999)
r = m.signbit(m.prod(w - 1e300, initial=0))
r = m.nanprod(w + 1e300, initial=0)
""",
    "an integral has at least one axis": r"""
r = m.trapezoid(z)
r = m.trapezoid(z, x=w)
r = m.trapezoid(w, axis=2)
r = m.trapezoid(w, axis=1.5)
r = m.trapezoid(g, axis=-2)
""",
    "an integral goes along an axis of what both make": r"""
r = m.trapezoid(m.ones((3, 3)), x=m.arange(18.0).reshape(2, 3, 3))
r = m.trapezoid(m.ones((2, 3, 3)), x=m.arange(9.0).reshape(3, 3), axis=1)
""",
    "exponents are looked at as the loop has them": r"""
r = m.power(g, -1.0 * g, casting='unsafe', dtype='i8')
r = m.power(v.astype('u8'), m.full(SIZE, 2**64 - 1, 'u8'), casting='unsafe', dtype='i2')
r = m.power(g, 2.5 + 0 * g, casting='unsafe', dtype='i8')
r = m.real(m.int8(3))
r = m.imag(m.float32(3))
r = m.nan_to_num(m.array(m.nan), copy=False)
r = m.array(g, ndmax=1)
r = m.arange(m.iscomplex(g.T).strides[0])
""",
    "a third operand of these is deprecated": r"""
r = m.maximum(w, 1, w)
r = m.minimum(v[::-1], v, m.zeros(SIZE, int))
r = m.add(w, 1, w)
""",
}  # fmt: skip

KERNELS = (
    "what stands in for NaN is assigned",
    "a masked element may be what is refused elsewhere",
    "Python's numbers wrap where NumPy casts unsafely",
    "a product begins with its initial value",
)
"""Topics that differ on the device too; kernels take long to build."""


def _outcome(m: ModuleType, line: str, size: int) -> Any:
    """What there is to see of `r`, or the error's class, and which warnings came.

    Of those about floating point only the spurious ones count: kernels do not warn.
    """
    names: dict[str, Any] = {"m": m, "np": np, "SIZE": size}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(SETUP, names)
        try:
            exec(line, names)
        except Exception as error:
            return _class_of(error), _categories(seen)
        value = names.get("r")
        if value is None:
            return None, _categories(seen)
        kind = "scalar" if isinstance(value, m.generic | np.generic) else "array"
        is_writeable = kind == "scalar" or value.flags.writeable
        host = np.asarray(value)
        return (kind, host.dtype, host.shape, is_writeable, host), _categories(seen)


def _class_of(error: Exception) -> str:
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ != "clfuse.errors")


def _categories(seen: list[warnings.WarningMessage]) -> set[str]:
    return {item.category.__name__ for item in seen}


def _same(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, tuple) or not isinstance(actual, tuple):
        return bool(actual == expected)
    return actual[:-1] == expected[:-1] and np.allclose(
        actual[-1], expected[-1], rtol=1e-5, equal_nan=True
    )


@pytest.mark.parametrize(
    ("topic", "host_us"),
    [(topic, host_us) for topic in LINES for host_us in (50, 1)]
    + [(topic, 0) for topic in KERNELS],
)
def test_odd_calls_do_what_numpys_do(topic: str, host_us: int, xp: ModuleType) -> None:
    wrong = []
    with xp.config.override(host_us=host_us):
        for line in LINES[topic].strip().split("\n"):
            for size in SIZES:
                expected, warned = _outcome(np, line, size)
                actual, heard = _outcome(xp, line, size)
                if (
                    not _same(actual, expected)
                    or heard - {"RuntimeWarning"} != warned - {"RuntimeWarning"}
                    or not heard <= warned
                ):
                    wrong.append(f"{line} ({size}): {actual} {heard}; NumPy: {expected} {warned}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line", ["m.std(a + 1, axis=0, ddof=2)", "m.mean(b + 1, axis=0, dtype='f8')"]
)
def test_a_statistic_warns_every_time_it_is_recorded(
    line: str, xp: ModuleType
) -> None:
    with xp.config.override(host_us=1), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        names = {"m": xp, "a": xp.ones((2, 3000)) * 2, "b": xp.ones((20, 300), "c8") * 2}
        for _ in range(3):
            eval(line, names)
    assert len([item for item in seen if "divide" not in str(item.message)]) == 3


@pytest.mark.parametrize("dtype", ["i8", "f4", "c16", "?"])
@pytest.mark.parametrize("value", [[1, 2], (), "text", [[]], {1: 2}])
@pytest.mark.parametrize("size", [12, 120_000])
def test_an_element_that_is_given_no_number_is_numpys_error(
    dtype: str, value: object, size: int
) -> None:
    outcomes: list[Any] = []
    for module in (np, clfuse):
        x = module.zeros(size, dtype).reshape(3, -1) + module.ones((), dtype)
        try:
            x[2, 3] = value
        except Exception as error:
            outcomes.append(type(error))
        else:
            outcomes.append(np.asarray(x).tolist())
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("bounds", [(3, 3), (5, 1), (0,), ([3], [3])])
@pytest.mark.parametrize("size", [0, (2, 0), (), 3])
def test_of_no_whole_numbers_any_bounds_will_do_as_in_numpy(
    bounds: tuple[Any, ...], size: Any, xp: ModuleType
) -> None:
    for make in ("random.default_rng(0).integers", "random.RandomState(0).randint"):
        outcomes = []
        for module in (np, xp):
            try:
                made = eval(f"m.{make}(*bounds, size=size)", {"m": module, **locals()})
                outcomes.append((made.shape, made.dtype))
            except ValueError:
                outcomes.append((None, None))
        assert outcomes[0] == outcomes[1]

"""Arrays that are read across their rows give what NumPy's do, in tiles as in whole rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.support.agreement import Batch


def assert_tiled(xp: ModuleType, result: object) -> None:
    """One kernel; on a CPU its rows come in tiles."""
    (kernel,) = xp.explain(result).kernels
    assert ("until" in kernel.source) == (xp.get_device().traits.schedule == "cpu")


@pytest.mark.parametrize(("dtype", "length"), [
    ("float64", 1104), ("float64", 1101), ("float32", 1103), ("float16", 1100), ("complex64", 1104),
    ("int64", 1104), ("int16", 1100), ("uint8", 1105), ("bool", 1100),
])
def test_transposed_arrays_agree_with_numpys(xp: ModuleType, dtype: str, length: int) -> None:
    tall = (np.arange(length * 70) * 7 % 251).reshape(length, 70).astype(dtype)
    other = (np.arange(70 * length) % 13).reshape(70, length).astype(dtype)
    is_number = np.dtype(dtype).kind in "fc"
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        batch.same("copied", lambda m: m.asarray(tall).T.copy())
        batch.same("flipped", lambda m: m.asarray(tall)[::-1, ::-1].T | m.asarray(other[:, 1:2])
                   if not is_number else m.asarray(tall)[::-1, ::-1].T * 3)
        batch.same("with another", lambda m: m.where(
            m.asarray(other).real > 5, m.asarray(tall).T, m.asarray(other)))
        batch.same("joined", lambda m: m.concatenate(
            [m.asarray(tall).T, m.asarray(other)[:, :30], m.asarray(tall[::-1]).T], axis=1))
        batch.same("part", lambda m: m.asarray(tall)[3:-5, 2:].real.T.astype("f4") + 1)

        def written(m: ModuleType) -> object:
            result = m.asarray(other) + m.asarray(other)
            result[2:, 5 : length - 5] = m.asarray(tall)[7 : length - 3, :68].T
            return result

        def both(m: ModuleType) -> object:
            a, b = m.asarray(tall), m.asarray(other)
            b = b & a.T if dtype == "bool" else b + a.T
            return [a ^ True if dtype == "bool" else a + 1, b]

        batch.same("written", written)
        batch.same("both ways", both)
        batch.check()
        assert_tiled(xp, xp.asarray(tall).T.copy())


def test_axes_in_every_order(xp: ModuleType) -> None:
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        for shape, axes in (
            ((1030, 3, 17), (2, 1, 0)), ((3, 1030, 17), (0, 2, 1)), ((3, 1030, 17), (2, 0, 1)),
            ((17, 1030, 3), (0, 2, 1)), ((2, 1030, 3, 9), (3, 0, 2, 1)),
            ((3, 1032, 17), (0, 2, 1)), ((3, 1032, 17), (2, 0, 1)), ((3, 1036, 2, 6), (2, 0, 3, 1)),
        ):
            values = np.arange(float(np.prod(shape))).reshape(shape)
            batch.same(f"{shape} {axes}", lambda m, v=values, a=axes: m.asarray(v).transpose(a) + 0)
        batch.check()
        values = xp.asarray(np.arange(3.0 * 1030 * 17).reshape(3, 1030, 17))
        assert_tiled(xp, values.transpose(0, 2, 1) * 2)


def test_kernels_in_python_are_tiled_as_array_code_is(xp: ModuleType) -> None:
    @xp.kernel
    def turn(i, j, a, b):
        b[i, j] += a[j, i]

    values = np.arange(1100.0 * 20).reshape(1100, 20)
    with xp.config.override(stream_bytes=0):
        a, b = xp.asarray(values), xp.asarray(np.ones((20, 1100)))
        turn(b.shape, a, b)
        assert_tiled(xp, b)
        np.testing.assert_array_equal(xp.asnumpy(b), 1 + values.T)


def test_numbers_of_each_row_and_column_beside_what_is_turned(xp: ModuleType) -> None:
    tall = np.arange(1104.0 * 37).reshape(1104, 37)
    tall[::5], tall[1::7], tall[3, 3] = np.inf, -0.0, np.nan
    row, column = np.linspace(-1, 1, 1104), np.arange(37.0)
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        batch.same("a column", lambda m: m.asarray(tall).T * m.asarray(column)[:, None])
        batch.same("a row", lambda m: m.asarray(tall).T - m.asarray(row))
        batch.same("both", lambda m: [
            m.asarray(row) < m.asarray(tall).T, m.asarray(column)[:, None] + m.asarray(tall).T])
        batch.same("rolled", lambda m: m.roll(m.asarray(tall).T, 5, 0) + m.asarray(row))
        batch.same("rolled along the rows", lambda m: m.roll(m.asarray(tall).T, 5, 1) * 2)
        batch.same("twice", lambda m: m.asarray(tall).T[1:] + m.asarray(tall).T[:-1])
        batch.same("taken", lambda m: m.take(m.asarray(row), m.asarray(tall).T % 7 < 3, mode="clip")
                   + m.asarray(tall).T)
        batch.same("indices", lambda m: m.asarray(tall).T + m.arange(37.0 * 1104).reshape(37, 1104))
        batch.check()

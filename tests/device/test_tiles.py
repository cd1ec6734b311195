"""Arrays that are read across their rows give what NumPy's do, in tiles as in whole rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.agreement import Batch


def assert_tiled(xp: ModuleType, result: object) -> None:
    """One kernel; on a CPU its rows come in tiles."""
    (kernel,) = xp.explain(result).kernels
    assert ("until" in kernel.source) == (xp.get_device().traits.schedule == "cpu")


@pytest.mark.parametrize("dtype", ["float64", "int16", "bool"])
def test_transposed_arrays_agree_with_numpys(xp: ModuleType, dtype: str) -> None:
    tall = (np.arange(1100 * 70) * 7 % 251).reshape(1100, 70).astype(dtype)
    other = (np.arange(70 * 1100) % 13).reshape(70, 1100).astype(dtype)
    batch = Batch(xp)
    with xp.config.override(stream_bytes=0):
        batch.same("copied", lambda m: m.asarray(tall).T.copy())
        batch.same("flipped", lambda m: m.asarray(tall)[::-1, ::-1].T | m.asarray(other[:, 1:2])
                   if dtype != "float64" else m.asarray(tall)[::-1, ::-1].T * 3)
        batch.same("with another", lambda m: m.where(
            m.asarray(other) > 5, m.asarray(tall).T, m.asarray(other)))
        batch.same("joined", lambda m: m.concatenate(
            [m.asarray(tall).T, m.asarray(other)[:, :30], m.asarray(tall[::-1]).T], axis=1))
        batch.same("part", lambda m: m.asarray(tall)[3:-5, 2:].T.astype("f4") + 1)

        def written(m: ModuleType) -> object:
            result = m.asarray(other) + m.asarray(other)
            result[2:, 5:1095] = m.asarray(tall)[7:1097, :68].T
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

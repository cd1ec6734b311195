"""Library calls on several cores give what one core gives, wherever arrays are cut."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from clfuse.runtime.drivers import threads
from clfuse.runtime.host import host_steps

DTYPES = ["?", "b", "B", "h", "H", "i", "q", "Q", "e", "f", "d", "F", "D"]


@pytest.fixture(params=[1, 3])
def eager_threads(monkeypatch, request):
    """Every call that can be cut is; by as many as there are cores said to be."""
    monkeypatch.setattr(threads, "worker_count", lambda: request.param)
    monkeypatch.setattr(threads, "PART_NBYTES", 1)
    monkeypatch.setattr(threads, "LEAST_SPLIT", 4)


def values(shape, char, seed=0):
    """Numbers with many equal ones; floats with NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-9, 9, shape).astype(char)
    if found.dtype.kind in "fc":
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-310], char)
        found = np.where(rng.random(shape) < 0.5, found, special[rng.integers(0, 6, shape)])
    return found


def laid_out(array):
    """The array itself, in Fortran order, and with a negative stride."""
    yield array
    yield np.asfortranarray(array)
    yield array[..., ::-1].copy()[..., ::-1]


@pytest.mark.parametrize("char", DTYPES)
def test_sorts_in_parts_are_numpys(char, eager_threads):
    for shape in [(1,), (3,), (4,), (1001,), (2, 601), (7, 5, 3), (1, 64), (3, 1)]:
        array = values(shape, char)
        for axis in range(-1, array.ndim):
            for kind in (None, "stable", "heapsort"):
                expected = np.sort(array, axis, kind)
                for given in laid_out(array):
                    actual = np.empty_like(array)
                    strides = [s // array.itemsize for s in array.strides]
                    layout = (char, shape, 0, strides)
                    how = (("axis", axis), ("kind", kind))
                    host_steps.FUNCTIONS["sort"]([given], actual, (layout, (), how))
                    np.testing.assert_array_equal(actual, expected)
                    order = np.empty(shape, np.int64)
                    host_steps.FUNCTIONS["argsort"]([given], order, ((shape,), how))
                    np.testing.assert_array_equal(order, np.argsort(array, axis, kind))
        keys = [values(shape, char, seed) for seed in range(3)]
        order = np.empty(shape, np.int64)
        host_steps.FUNCTIONS["lexsort"](keys, order, ((shape,) * 3, -1))
        np.testing.assert_array_equal(order, np.lexsort(keys))


def test_transforms_determinants_and_products_agree_in_parts(eager_threads):
    signal = values((5, 6, 8), "d")
    signal[~np.isfinite(signal)] = 3
    for name, sizes, axes in [
        ("fft", None, -1), ("fft", 5, 0), ("rfft", 9, 1), ("fft2", None, (-2, -1)),
        ("fftn", (4, 7), (0, 2)), ("fftn", None, None), ("irfft", 6, 2), ("hfft", None, 1),
    ]:  # fmt: skip
        expected = getattr(np.fft, name)(signal, sizes, axes)
        actual = np.empty_like(expected)
        parameters = (signal.shape,), (name, sizes, axes, None)
        host_steps.FUNCTIONS["fourier"]([signal], actual, parameters)
        np.testing.assert_array_equal(actual, expected)
    matrices = np.random.default_rng(2).random((7, 2, 4, 4))
    out = np.empty((7, 2))
    host_steps.FUNCTIONS["det"]([matrices], out, ((matrices.shape,), None))
    np.testing.assert_array_equal(out, np.linalg.det(matrices))
    both = np.empty((2, 7, 2))
    host_steps.FUNCTIONS["slogdet"]([matrices], both, ((matrices.shape,), None))
    np.testing.assert_array_equal(both, np.linalg.slogdet(matrices))
    one, two = values((17, 9), "q"), values((9, 5), "q", 1) * 2**61
    product = np.empty((17, 5), np.int64)
    host_steps.FUNCTIONS["matmul"]([one, two], product, None)
    np.testing.assert_array_equal(product, one @ two)


def test_an_error_in_one_part_is_raised(eager_threads):
    def change(part):
        if 5 in part:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        threads.in_parts(change, [np.arange(9)], (), 9)


def test_calls_that_wait_for_calls_do_not_wait_for_a_worker(monkeypatch):
    workers = ThreadPoolExecutor(1)
    monkeypatch.setattr(threads, "_workers", lambda: workers)
    done = []

    def call():
        threads._together([lambda: done.append(1), lambda: time.sleep(0.01)])

    waiting = threading.Thread(target=threads._together, args=([call] * 3,), daemon=True)
    waiting.start()
    waiting.join(60)
    assert len(done) == 3
    workers.shutdown()

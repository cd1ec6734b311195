"""CLBlast and VkFFT where they are installed; what stands around their transforms everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.schedule.device_libraries import LEAST_SIDE

RNG = np.random.default_rng(5)
# Lengths that are cut and filled, axes that are not the last, real and complex, whole numbers.
ALONG_ONE: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((6,), {}),
    ((3, 5), {"axis": 0, "norm": "ortho"}),
    ((3, 5), {"axis": 1, "n": 8, "norm": "forward"}),
    ((4, 7, 3), {"axis": 1, "n": 5}),
    ((2, 1), {"n": 1}),
]
ALONG_SEVERAL: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((4, 6), {}),
    ((3, 4, 5), {"axes": (2, 0), "norm": "ortho"}),
    ((3, 4, 5), {"axes": (0, 1), "s": (4, 3), "norm": "forward"}),
]
CASES = [
    (name, shape, options)
    for names, forms in (
        (("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), ALONG_ONE),
        (("fftn", "ifftn", "rfftn", "irfftn"), ALONG_SEVERAL),
    )
    for name in names
    for shape, options in forms
    if not (name in ("irfft", "hfft") and shape == (2, 1) and not options)
]


def operand(name: str, shape: tuple[int, ...], char: str) -> np.ndarray:
    values = RNG.standard_normal(shape) * 9
    if char in "FD" and name not in ("rfft", "ihfft", "rfftn"):
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(char if values.dtype.kind == "c" else char.lower())


def compare(xp: ModuleType, name: str, values: np.ndarray, options: dict[str, Any]) -> None:
    expected = getattr(np.fft, name)(values, **options)
    made = getattr(xp.fft, name)(xp.asarray(values), **options)
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    scale = float(np.abs(expected).max())
    exact = 2e-6 if expected.dtype.char in "fF" else 1e-14
    np.testing.assert_allclose(
        made.get(), expected, rtol=0, atol=scale * exact, err_msg=f"{name} {values.shape} {options}"
    )


@pytest.fixture
def recording(xp: ModuleType, setting: Callable[..., None]) -> Callable[..., Any]:
    """Record a call as for a device with VkFFT; evaluate it where there is none."""
    setting(host_us=0, build_after_ms=0, schedule="cpu")
    device = xp.get_device()
    helped = replace(device.traits, libraries=("vkfft",))

    def record(name: str, array: Any, options: dict[str, Any]) -> Any:
        with device.trying(helped):
            return getattr(xp.fft, name)(array, **options)

    return record


def test_lengths_norms_and_axes_are_numpys_around_vkfft(
    xp: ModuleType, recording: Callable[..., Any]
) -> None:
    made, expected = [], []
    for (name, shape, options), char in zip(CASES, itertools.cycle("dFbD"), strict=False):
        values = operand(name, shape, char)
        expected.append(getattr(np.fft, name)(values, **options))
        made.append(recording(name, xp.asarray(values), options))
    xp.evaluate(*made)
    for (name, shape, options), one, other in zip(CASES, made, expected, strict=True):
        what = f"{name} {shape} {options}"
        assert (one.dtype, one.shape) == (other.dtype, other.shape), what
        exact = 2e-6 if other.dtype.char in "fF" else 1e-14
        atol = float(np.abs(other).max()) * exact
        np.testing.assert_allclose(one.get(), other, rtol=0, atol=atol, err_msg=what)


def test_half_a_spectrum_loses_what_real_values_have_not(
    xp: ModuleType, recording: Callable[..., Any]
) -> None:
    half = RNG.standard_normal((3, 5)) + 1j * RNG.standard_normal((3, 5))
    for points in (8, 9):
        made = recording("irfft", xp.asarray(half), {"n": points})
        np.testing.assert_allclose(made.get(), np.fft.irfft(half, points), atol=1e-14)


@pytest.fixture
def own_memory(setting: Callable[..., None]) -> None:
    setting(schedule="gpu", host_us=0, build_after_ms=0, fallback="raise")


@pytest.mark.usefixtures("own_memory")
def test_vkfft_makes_numpys_transforms(xp: ModuleType) -> None:
    pytest.importorskip("pyvkfft.opencl")
    before = xp.stats()["library_calls"]
    compare(xp, "fft", operand("fft", (3, 12), "D"), {})
    compare(xp, "ifftn", operand("ifftn", (4, 7, 6), "F"), {"axes": (2, 0), "norm": "ortho"})
    compare(xp, "rfft", operand("rfft", (5, 4), "d"), {"axis": 0})
    compare(xp, "irfftn", operand("irfftn", (3, 4, 5), "D"), {})
    assert xp.stats()["library_calls"] == before + 5  # the last in two steps


@pytest.mark.usefixtures("own_memory")
def test_a_transform_fuses_with_what_is_before_and_behind_it(xp: ModuleType) -> None:
    pytest.importorskip("pyvkfft.opencl")
    values = operand("fft", (3, 12), "D")
    x = xp.asarray(values)
    power = (xp.abs(xp.fft.fft(x * 2 - 1)) ** 2).sum()
    plan = xp.explain(power)
    assert sum(kernel.kind == "library" for kernel in plan.kernels) == 1
    expected = (np.abs(np.fft.fft(values * 2 - 1)) ** 2).sum()
    np.testing.assert_allclose(float(power), expected, rtol=1e-13)


@pytest.mark.usefixtures("own_memory")
def test_clblast_multiplies_large_matrices(xp: ModuleType) -> None:
    pytest.importorskip("pyclblast")
    n = LEAST_SIDE
    left = RNG.integers(-5, 5, (2, n, n + 2)).astype("f")
    right = RNG.integers(-5, 5, (n + 4, n + 2)).astype("f")
    a, b = xp.asarray(left), xp.asarray(right)
    before = xp.stats()["library_calls"]
    batch, one = a @ b.T, a[1, :, 1:] @ b[:, 1:].T + 0.5
    np.testing.assert_array_equal(batch.get(), left @ right.T)
    np.testing.assert_array_equal(one.get(), left[1, :, 1:] @ right[:, 1:].T + 0.5)
    assert xp.stats()["library_calls"] == before + 2


@pytest.mark.usefixtures("own_memory")
def test_what_a_library_refuses_numpy_does(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clfuse.runtime.drivers import libraries
    from clfuse.runtime.launches import device_libraries

    def refuse(*_: Any) -> None:
        raise RuntimeError("no plan for this")

    monkeypatch.setattr(libraries, "usable", lambda: ("clblast", "vkfft"))
    monkeypatch.setattr(device_libraries, "call", refuse)
    device = xp.get_device()
    device.reread_tuning()
    try:
        x = RNG.standard_normal((4, 6))
        with pytest.warns(RuntimeWarning, match="no plan for this; NumPy did it"):
            np.testing.assert_allclose(xp.fft.rfft(xp.asarray(x)).get(), np.fft.rfft(x), atol=1e-14)
    finally:
        device.reread_tuning()

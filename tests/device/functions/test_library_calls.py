"""What the host's libraries do: without copies where memory is shared, as fallbacks elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from tests.support.agreement import host
from tests.support.hostile import ordinary

Setting = Callable[..., None]


@pytest.mark.clfuse_only
def test_library_calls_copy_nothing_and_are_no_fallbacks(xp: ModuleType, setting: Setting) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    setting(fallback="raise")
    data = ordinary(12, (200, 200), "float64", "unit") + 20 * np.eye(200)
    x = xp.asarray(data) * 1
    xp.evaluate(x)
    xp.synchronize()
    before = xp.stats()
    inverse = xp.linalg.inv(x)
    values, vectors = xp.linalg.eigh(x + x.T)
    found = xp.unique(x)
    spectrum = xp.fft.rfft2(x)
    product = inverse @ x
    xp.evaluate(inverse, values, vectors, found, spectrum, product)
    xp.synchronize()
    after = xp.stats()
    assert after["fallbacks"] == before["fallbacks"]
    counted = after["library_calls"] - before["library_calls"]
    assert counted == (
        5
        if any(k.kind == "library" for k in xp.explain(x @ x).kernels)
        and xp.get_device().traits.schedule == "cpu"
        else 4
    )
    small = values.nbytes
    assert after["bytes_to_device"] - before["bytes_to_device"] <= small
    assert after["bytes_to_host"] == before["bytes_to_host"]
    assert np.allclose(host(product), np.eye(200))
    inverse += 1
    assert np.allclose(host(inverse) - 1, np.linalg.inv(data))


@pytest.mark.clfuse_only
def test_devices_that_copy_count_fallbacks(
    xp: ModuleType, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from clfuse.target.traits import with_schedule

    device = xp.get_device()
    setting(fallback="warn")
    x = xp.asarray(ordinary(13, (30, 30), "float64", "unit"))
    traits = with_schedule(replace(device.traits, unified_memory=False), "cpu")  # which has no sort
    monkeypatch.setattr(type(device), "traits", property(lambda self: traits))
    for call, name in (
        (xp.sort, "sort"),
        (xp.linalg.inv, "linalg.inv"),
        (xp.fft.fft, "fourier"),
        (xp.linalg.det, "det"),
    ):
        before = xp.stats()["fallbacks"]
        with pytest.warns(xp.FallbackWarning, match=name):
            made = call(x)
        assert xp.stats()["fallbacks"] == before + 1
        assert np.allclose(
            host(made),
            {"sort": np.sort, "unique": np.unique, "fourier": np.fft.fft, "det": np.linalg.det}.get(
                name, np.linalg.inv
            )(host(x)),
        )

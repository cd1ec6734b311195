"""Wrong arguments of Fourier transforms: NumPy's errors at the call, and no warning beside them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.support.agreement import assert_same_error


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.fft.fft(m.ones(3, "f"), 0),
        lambda m: m.fft.fft(m.ones(3, "f"), -2),
        lambda m: m.fft.fft(m.ones(3, "f"), axis=1),
        lambda m: m.fft.fft(m.ones((), "f")),
        lambda m: m.fft.fft(m.ones(0, "f")),
        lambda m: m.fft.fft(m.ones(3, "f"), norm="no"),
        lambda m: m.fft.irfft(m.ones(1, "F")),
        lambda m: m.fft.fftn(m.ones((3, 3), "f"), (2,), (0, 1)),
        lambda m: m.fft.rfft(m.ones(3, "F")),
        lambda m: m.fft.fft2(m.ones(3, "f")),
        lambda m: m.fft.fft(m.ones(3, "F"), out=m.zeros(4, "F")),
    ],
)
def test_wrong_arguments_raise_numpys_errors_at_the_call(
    xp: ModuleType, setting: Callable[..., None], call: Callable[[Any], Any]
) -> None:
    setting(schedule="gpu", fallback="warn", host_us=0)
    assert_same_error(call, xp)

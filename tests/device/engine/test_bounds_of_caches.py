"""What is remembered of a program has a bound, however many other things it does: by number of
entries, not by memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clfuse as cf
from clfuse.arrays import handle
from clfuse.eager import bringing
from clfuse.ir import scalar_functions
from clfuse.policy import warm_start
from clfuse.user_kernels.language.calls import specializations
from clfuse.user_kernels.opencl import names

pytestmark = pytest.mark.clfuse_only

FEW = 8


def test_dtypes_of_records_and_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "MOST_NOT_NATIVE", len(handle._native) + FEW)
    monkeypatch.setattr(bringing, "MOST_FITTING", FEW)
    for length in range(200, 200 + 4 * FEW):
        assert handle.native_dtype(np.dtype(f"U{length}")) is None
        assert handle.native_dtype(np.dtype([(f"a{length}", "f8")])) is None
        assert bringing.fits(np.dtype(f"U{length}"), np.dtype(f"U{length + 1}"))
    assert len(handle._native) <= handle.MOST_NOT_NATIVE
    assert len(bringing._fitting) <= FEW
    assert handle.native_dtype(np.dtype("f8")) is handle.DTYPES["float64"]


def test_structures_that_earned_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(warm_start, "MOST_KNOWN", FEW)
    monkeypatch.setattr(warm_start, "cache_folder", lambda: None)
    warm_start.forget()
    try:
        for number in range(4 * FEW):
            warm_start.note(f"{number:032x}")
            assert warm_start.is_known(f"{number:032x}")
        assert len(warm_start._known[None]) <= FEW
    finally:
        warm_start.forget()


def test_typed_functions_of_a_kernel_whose_numbers_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specializations, "FUNCTIONS_KEPT", FEW)
    factor = 0

    @cf.kernel
    def scaled(i, x, y):  # type: ignore[no-untyped-def]
        y[i] = x[i] * factor

    made = scaled.specializations if hasattr(scaled, "specializations") else None
    for factor in range(1, 3 * FEW):
        x, y = cf.arange(4.0), cf.zeros(4)
        scaled(4, x, y)
        assert y.tolist() == [0, factor, 2 * factor, 3 * factor]
    found = made or next(
        value for value in vars(scaled).values()
        if isinstance(value, specializations.Specializations)
    )  # fmt: skip
    assert 1 < len(found._functions) <= FEW


def test_texts_and_functions_of_users_kernels() -> None:
    for known in (names.macros, names.defined_macros, names.declared_names, names.members):
        assert known.cache_info().maxsize == names.TEXTS_KEPT
    kept = scalar_functions.operation.cache_info().maxsize
    assert kept == scalar_functions.FUNCTIONS_KEPT

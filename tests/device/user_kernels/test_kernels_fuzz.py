"""Random kernels one after the other over random overlapping views, with array code, folds and
kernels in OpenCL C between them: fused, unfused and in Python they leave the same bytes."""

from __future__ import annotations

import os

import numpy as np
import pytest

import clfuse as cf
from tests.support.kernel_programs import LENGTH, random_call
from tests.support.kernel_sequences import random_steps, run

pytestmark = pytest.mark.clfuse_only
PROGRAMS = max(int(os.environ.get("CLFUSE_FUZZ_PROGRAMS", "60")) // 6, 1)  # nine kernels each
SEED = int(os.environ.get("CLFUSE_FUZZ_SEED", "20"))


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_kernels_over_overlapping_views_agree_with_python(seed: int) -> None:
    random = np.random.default_rng(seed)
    calls = []
    while len(calls) < 3:
        call = random_call(random)
        if call.is_defined():
            calls.append(call)
    start = [random.integers(-3, 4, LENGTH) * 0.5 for _ in range(2)]
    expected = [base.copy() for base in start]
    for call in calls:
        call.kernel.python(call.domain, *call.arrays(expected))
    about = "\n".join(f"{c.text}{c.domain} {c.views}" for c in calls)
    for fusion in ("on", "off"):
        with cf.config.override(fusion=fusion, debug=True):
            bases = [cf.asarray(base) for base in start]
            for call in calls:
                call.kernel(call.domain, *call.arrays(bases))
            for actual, wanted in zip(bases, expected, strict=True):
                np.testing.assert_array_equal(actual.get(), wanted, f"fusion {fusion}\n{about}")


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS // 2 + 1))
def test_kernels_between_other_statements_agree_with_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = random_steps(random)
    start = [random.integers(-3, 4, LENGTH) * 0.5 for _ in range(2)]
    expected = run(steps, [base.copy() for base in start], numpy=True)
    about = "\n".join(step.about for step in steps)
    for fusion in (True, False):
        with cf.config.override(fusion=fusion, debug=True, build_after_ms=0):
            given = run(steps, [cf.asarray(base) for base in start], numpy=False)
            for actual, wanted in zip(given, expected, strict=True):
                np.testing.assert_allclose(
                    np.asarray(actual), wanted, rtol=1e-12, atol=1e-12,
                    err_msg=f"fusion {fusion}\n{about}",
                )

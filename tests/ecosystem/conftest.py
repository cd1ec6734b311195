"""Tests with the packages that programs use beside NumPy: what they give must be NumPy's.

What is tested is how they take our arrays, not kernels: small programs are left to NumPy, which
builds none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import clfuse

HOST_US = 50
"""The default of CLFUSE_HOST_US; tests/conftest.py sets it to 0."""


@pytest.fixture(autouse=True)
def small_programs_on_the_host() -> Iterator[None]:
    with clfuse.config.override(host_us=HOST_US):
        yield

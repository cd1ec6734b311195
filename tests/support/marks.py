"""Marks that tests of several modules carry."""

from __future__ import annotations

import pytest

from clfuse._core import loading

compiled = pytest.mark.skipif(loading.load() is None, reason="the compiled part does this")
"""For tests of what is recorded without the compiled part, and calculated at the call with it."""

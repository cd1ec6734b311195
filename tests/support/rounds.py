"""How many random cases a test takes: a quarter of them, or all with ``CLFUSE_TEST_LONG=1``."""

from __future__ import annotations

import os
from typing import Final

IS_LONG: Final = bool(os.environ.get("CLFUSE_TEST_LONG"))
"""Whether tests take as long as they like: `ci/test --long`."""


def rounds(number: int) -> int:
    """How many of `number` random cases to take."""
    return number if IS_LONG else -(-number // 4)

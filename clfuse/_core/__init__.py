"""The compiled part: common cases of recording, evaluation and small arrays in C.

Programs that run on clfuse take ``numpy._core`` for what it is in NumPy, so its names are here, too.
"""

from __future__ import annotations

import typing as _typing


def __getattr__(name: str) -> _typing.Any:
    import numpy as np

    if name[:2] != "__" and hasattr(np._core, name):
        return getattr(np._core, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The compiled part: common cases of recording, evaluation and small arrays in C.

Programs that run on clfuse know a ``numpy._core``, so its names are here, too.
"""

from __future__ import annotations

import typing as _typing


def __getattr__(name: str) -> _typing.Any:
    if name[:2] != "__":
        import numpy as np

        core: _typing.Any = vars(np)["_core"]
        if hasattr(core, name):
            return getattr(core, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

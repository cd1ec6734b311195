"""Frames that other packages count: those of our functions, which lie between theirs, are left out.

patsy and formulaic look the names of a formula (``y ~ np.log(x)``) up where it was written: so many
frames above the function that asks, as statsmodels' own functions lie between.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

__all__ = ["count_in_formulaic", "count_in_patsy"]


def count_in_patsy(module: types.ModuleType) -> None:
    """Replace ``EvalEnvironment.capture`` of `patsy.eval`."""
    kind: Any = module.EvalEnvironment
    plain = kind.capture.__func__

    @functools.wraps(plain)
    def capture(cls: Any, eval_env: Any = 0, reference: int = 0) -> Any:
        if isinstance(eval_env, cls):
            return plain(cls, eval_env, reference)
        return plain(cls, _counted(eval_env + reference) + 1)

    kind.capture = classmethod(capture)


def count_in_formulaic(module: types.ModuleType) -> None:
    """Replace ``capture_context`` of `formulaic.utils.context`."""
    plain: Any = module.capture_context

    @functools.wraps(plain)
    def capture_context(context: Any = 0) -> Any:
        return plain(_counted(context) + 1 if isinstance(context, int) else context)

    module.capture_context = capture_context  # type: ignore[attr-defined]


def _counted(depth: int) -> int:
    """How many frames above the caller's caller the one lies that is `depth` above it without
    ours."""
    frame: types.FrameType | None = sys._getframe(2)
    places = 0
    while depth > 0 and frame is not None:
        frame = frame.f_back
        places += 1
        if frame is None or not _is_ours(frame):
            depth -= 1
    return places


def _is_ours(frame: types.FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and name.startswith("clfuse.interop.")

"""Packages that count frames find the program's names through functions that are opened to ours."""

from __future__ import annotations

import sys
import types
from typing import Any

from clfuse.interop.counted_frames import count_in_formulaic, count_in_patsy
from clfuse.interop.opening import open_to_ours
from clfuse.interop.third_party_patches import in_host_view


class Environment:
    """patsy's, as far as it counts."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    @classmethod
    def capture(cls, eval_env: Any = 0, reference: int = 0) -> Any:
        if isinstance(eval_env, cls):
            return eval_env
        return cls(sys._getframe(eval_env + reference + 1).f_locals)


def capture_context(context: Any = 0) -> Any:
    """formulaic's, as far as it counts."""
    return sys._getframe(context + 1).f_locals if isinstance(context, int) else context


def _patsy() -> Any:
    module = types.ModuleType("patsy.eval")
    module.EvalEnvironment = type("EvalEnvironment", (Environment,), {})  # type: ignore[attr-defined]
    count_in_patsy(module)
    return module


def _formulaic() -> Any:
    module = types.ModuleType("formulaic.utils.context")
    module.capture_context = capture_context  # type: ignore[attr-defined]
    count_in_formulaic(module)
    return module


def test_patsy_does_not_count_our_frames() -> None:
    environment = _patsy().EvalEnvironment

    def matrices(depth: int) -> Any:
        return environment.capture(depth, reference=1)

    def fit(formula: str) -> Any:
        return opened(1)

    opened = open_to_ours(matrices, in_host_view)
    mine = 5
    assert open_to_ours(fit, in_host_view)("y ~ x").names["mine"] == mine
    assert environment.capture().names["mine"] == mine
    assert environment.capture(0).names["mine"] == mine
    known = environment({})
    assert environment.capture(known) is known


def test_formulaic_does_not_count_our_frames() -> None:
    module = _formulaic()

    def matrix(depth: int) -> Any:
        return module.capture_context(depth)

    def fit() -> Any:
        inner = 7
        return opened(1), opened(2), inner

    opened = open_to_ours(matrix, in_host_view)
    mine = 5
    inside, outside, _ = open_to_ours(fit, in_host_view)()
    assert inside["inner"] == 7
    assert outside["mine"] == mine
    assert module.capture_context()["mine"] == mine
    assert module.capture_context({"x": 1}) == {"x": 1}
    assert module.capture_context(None) is None

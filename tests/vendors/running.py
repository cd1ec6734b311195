"""Runs one compiler as a process: its output, or its log as an error."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextvars import ContextVar

from tests.vendors.figures import CompileError

__all__ = ["TooSlowError", "limit_s", "run"]

#: A batch takes a second; what takes this long hangs.
TIMEOUT_S = 600

limit_s: ContextVar[float] = ContextVar("limit_s", default=TIMEOUT_S)
"""Seconds that a compiler may take in this context."""


class TooSlowError(CompileError):
    """It took longer than `limit_s`."""


def run(command: Sequence[object], **environment: str) -> str:
    """Return what a command writes, both streams.

    Raises
    ------
    CompileError
        It failed or crashed; `TooSlowError` where it took too long.
    """
    texts = [str(each) for each in command]
    try:
        done = subprocess.run(
            texts, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s.get(),
            check=False, text=True, errors="replace", env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired as error:
        raise TooSlowError(f"{texts[0]} took more than {limit_s.get()} s") from error
    if done.returncode:
        raise CompileError(f"{texts[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout

"""Runs one compiler as a process: its output, or its log as an error."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from tests.vendors.figures import CompileError

__all__ = ["run"]

#: A batch takes a second; what takes this long hangs.
TIMEOUT_S = 600


def run(command: Sequence[object], **environment: str) -> str:
    """Return what a command writes, both streams.

    Raises
    ------
    CompileError
        It failed, crashed or took too long.
    """
    texts = [str(each) for each in command]
    try:
        done = subprocess.run(
            texts, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False,
            text=True, errors="replace", env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"{texts[0]} took more than {TIMEOUT_S} s") from error
    if done.returncode:
        raise CompileError(f"{texts[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout
